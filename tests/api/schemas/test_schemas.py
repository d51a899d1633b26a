"""Facts about topics with schemas: what producers and consumers may bring, and what they read."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import InitialPosition, errors
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.schema import (
    AutoConsumeSchema,
    AvroSchema,
    BytesSchema,
    Int32Schema,
    Int64Schema,
    Integer,
    JsonSchema,
    KeyValueSchema,
    Record,
    Schema,
    SchemaInfo,
    SchemaType,
    String,
    StringSchema,
)
from pulsarx.topic_name import TopicName

EARLIEST = InitialPosition.Earliest


class Old(Record):
    a = String(required=True)


class New(Record):
    a = String(required=True)
    b = Integer(default=5, required_default=True)


class Other(Record):
    a = String(required=True)
    c = Integer(required=True)


def of_one_name(record_cls: type[Record]) -> AvroSchema:
    """All classes stand for versions of one record."""
    return AvroSchema(None, {**record_cls.schema(), "name": "One"})


def texts(client: pulsarx.Client, topic: str) -> list[tuple[int | None, str]]:
    return [(each.version(), each.schema()) for each in client.admin.schemas.get_all_schemas(topic)]


def version(number: int) -> str:
    return number.to_bytes(8, "big").decode("latin-1")


def receive_all(consumer: Any, count: int) -> list[Any]:
    return [consumer.receive(60_000) for _ in range(count)]


# Versions -----------------------------------------------------------------------------------------


def test_messages_carry_the_version_of_their_producers_schema(client: pulsarx.Client) -> None:
    consumer = client.subscribe("t", "s", schema=AutoConsumeSchema(), initial_position=EARLIEST)
    client.create_producer("t").send(b"raw")
    client.create_producer("t", schema=of_one_name(Old)).send({"a": "x"})
    client.create_producer("t", schema=of_one_name(New)).send({"a": "y", "b": 6})
    client.create_producer("t", schema=of_one_name(Old)).send({"a": "z"})
    found = [(each.schema_version(), each.value()) for each in receive_all(consumer, 4)]
    assert found == [
        ("", b"raw"),
        (version(0), {"a": "x"}),
        (version(1), {"a": "y", "b": 6}),
        (version(0), {"a": "z"}),
    ]


@pytest.mark.parametrize("batched", [False, True])
def test_messages_of_a_batch_carry_it_too(client: pulsarx.Client, batched: bool) -> None:
    producer = client.create_producer("t", schema=StringSchema(), batching_enabled=batched)
    consumer = client.subscribe("t", "s", schema=StringSchema(), initial_position=EARLIEST)
    for number in range(3):
        producer.send_async(str(number), None)
    producer.send("last", partition_key="k", properties={"p": "q"})
    producer.send_many(["m", "n"])
    found = receive_all(consumer, 6)
    assert [each.value() for each in found] == ["0", "1", "2", "last", "m", "n"]
    assert {each.schema_version() for each in found} == {version(0)}


def test_every_message_of_a_consumer_is_resolved_from_its_writers_version(
    client: pulsarx.Client,
) -> None:
    client.create_producer("t", schema=of_one_name(Old)).send({"a": "x"})
    client.create_producer("t", schema=of_one_name(New)).send({"a": "y", "b": 6})
    reader = client.create_reader(
        "t", pulsarx.MessageId.earliest, schema=AvroSchema(None, {**New.schema(), "name": "One"})
    )
    assert [reader.read_next(60_000).value() for _ in range(2)] == [
        {"a": "x", "b": 5},
        {"a": "y", "b": 6},
    ]
    consumer = client.subscribe("t", "s", schema=of_one_name(Old), initial_position=EARLIEST)
    assert [each.value() for each in receive_all(consumer, 2)] == [{"a": "x"}, {"a": "y"}]


def test_the_schema_of_a_version_is_looked_up_once(client: pulsarx.Client) -> None:
    asked = []

    class Counting(StringSchema):
        def decoder(self, writer: SchemaInfo | None) -> Any:
            asked.append(None if writer is None else writer.version())
            return self.decode

    client.create_producer("t", schema=StringSchema()).send_many(["x"] * 10)
    consumer = client.subscribe("t", "s", schema=Counting(), initial_position=EARLIEST)
    assert [each.value() for each in receive_all(consumer, 10)] == ["x"] * 10
    assert asked == [0]


def test_value_decodes_once_and_none_is_none(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", schema=JsonSchema(Old))
    consumer = client.subscribe("t", "s", schema=JsonSchema(Old), initial_position=EARLIEST)
    producer.send(Old(a="x"))
    producer.send(None)
    first, second = receive_all(consumer, 2)
    assert first.value() is first.value() and first.value() == Old(a="x")
    assert second.value() is None and second.has_null_value() and second.data() == b""


def test_a_redelivery_has_a_value_of_its_own(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", schema=JsonSchema(Old), batching_enabled=True)
    consumer = client.subscribe("t", "s", schema=JsonSchema(Old), initial_position=EARLIEST)
    producer.send_many([Old(a="x"), Old(a="y")])
    for each in receive_all(consumer, 2):
        each.value().a = "changed"
    consumer.redeliver_unacknowledged_messages()
    assert [each.value().a for each in receive_all(consumer, 2)] == ["x", "y"]


class OwnText(StringSchema):
    def decode(self, data: bytes) -> str:
        return str(json.loads(data))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (BytesSchema(), b""),
        (StringSchema(), ""),
        (OwnText(), None),
        (JsonSchema(Old), None),
        (AvroSchema(Old), None),
    ],
)
def test_none_is_empty_where_a_value_can_be(
    client: pulsarx.Client, schema: Schema[Any], value: object
) -> None:
    """As in the official client, whose other schemas raise: they are given an empty payload."""
    producer = client.create_producer("t", schema=schema, batching_enabled=True)
    consumer = client.subscribe("t", "s", schema=schema, initial_position=EARLIEST)
    producer.send(None)
    message = consumer.receive(60_000)
    assert message.value() == value and message.has_null_value()


def test_wrong_bytes_raise_at_value_and_not_at_receive(client: pulsarx.Client) -> None:
    consumer = client.subscribe("t", "s", schema=AvroSchema(Old), initial_position=EARLIEST)
    client.create_producer("t").send(b"\xff")
    message = consumer.receive(60_000)
    for _ in range(2):
        with pytest.raises(ValueError, match="decode 1 bytes of Avro as Old"):
            message.value()
    assert message.data() == b"\xff"
    consumer.acknowledge(message)


def test_a_schema_with_decode_message_is_given_the_message(client: pulsarx.Client) -> None:
    class Keyed(BytesSchema):
        def decode_message(self, msg: Any) -> Any:
            return (msg.partition_key(), msg.data())

    client.create_producer("t").send(b"x", partition_key="k")
    consumer = client.subscribe("t", "s", schema=Keyed(), initial_position=EARLIEST)
    assert consumer.receive(60_000).value() == ("k", b"x")


def test_pairs_and_numbers_travel(client: pulsarx.Client) -> None:
    pair = KeyValueSchema(StringSchema(), Int64Schema())
    for topic, schema, value in (("p", pair, ("k", 5)), ("n", Int32Schema(), -7)):
        consumer = client.subscribe(topic, "s", schema=schema, initial_position=EARLIEST)
        auto = client.subscribe(topic, "a", schema=AutoConsumeSchema(), initial_position=EARLIEST)
        client.create_producer(topic, schema=schema).send(value)
        assert consumer.receive(60_000).value() == auto.receive(60_000).value() == value


# Several schemas of one producer ------------------------------------------------------------------


def test_a_batch_is_closed_where_the_schema_changes(client: pulsarx.Client) -> None:
    producer = client.create_producer(
        "t", schema=of_one_name(Old), batching_enabled=True, batching_max_publish_delay_ms=60_000
    )
    producer.send_async({"a": "x"}, None)
    producer.use_schema(of_one_name(New))
    producer.send_async({"a": "y", "b": 1}, None)
    producer.send_async({"a": "z", "b": 2}, None)
    producer.use_schema(BytesSchema())
    producer.send_async(b"raw", None)
    producer.flush()
    consumer = client.subscribe("t", "s", schema=AutoConsumeSchema(), initial_position=EARLIEST)
    found = receive_all(consumer, 4)
    assert [each.value() for each in found] == [
        {"a": "x"},
        {"a": "y", "b": 1},
        {"a": "z", "b": 2},
        b"raw",
    ]
    entries = [each.message_id().entry_id() for each in found]
    assert entries == [0, 1, 1, 2]


def test_a_refused_change_of_schema_changes_nothing(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", schema=of_one_name(Old))
    before = texts(client, "t")
    for refused, error in (
        (of_one_name(Other), errors.IncompatibleSchema),
        (StringSchema(), errors.IncompatibleSchema),
        (AutoConsumeSchema(), ValueError),
        ("text", ValueError),
    ):
        with pytest.raises(error):
            producer.use_schema(refused)  # type: ignore[arg-type]
    producer.send({"a": "x"})
    assert texts(client, "t") == before
    producer.close()
    with pytest.raises(errors.AlreadyClosed):
        producer.use_schema(StringSchema())


# What may come to a topic -------------------------------------------------------------------------


def test_an_incompatible_producer_is_refused_and_leaves_nothing(client: pulsarx.Client) -> None:
    client.create_producer("t", schema=AvroSchema(Old)).close()
    before = (texts(client, "t"), client.admin.topics.get_list())
    for schema in (AvroSchema(Other), JsonSchema(Old), StringSchema(), Int32Schema()):
        with pytest.raises(errors.IncompatibleSchema, match="public/default/t"):
            client.create_producer("t", "named", schema=schema)
    assert (texts(client, "t"), client.admin.topics.get_list()) == before
    made = client.create_producer("t", "named", schema=AvroSchema(Old))
    assert made.is_connected()
    assert len(client.admin.topics.stats("t")["publishers"]) == 1


def test_an_incompatible_consumer_is_refused_and_leaves_nothing(client: pulsarx.Client) -> None:
    client.create_producer("t", schema=AvroSchema(Old))
    for schema in (AvroSchema(Other), JsonSchema(Old), StringSchema()):
        with pytest.raises(errors.IncompatibleSchema):
            client.subscribe("t", "s", schema=schema)
        with pytest.raises(errors.IncompatibleSchema):
            client.create_reader("t", pulsarx.MessageId.earliest, schema=schema)
    assert client.admin.topics.stats("t")["subscriptions"] == {}


@pytest.mark.border(left_out="a topic is made first")
@pytest.mark.parametrize("partitions", [0, 3])
def test_a_malformed_definition_makes_no_topic(client: pulsarx.Client, partitions: int) -> None:
    class Malformed(BytesSchema):
        def __init__(self) -> None:
            Schema.__init__(self, bytes, SchemaType.AVRO, {"type": "zork"}, "AVRO")

    if partitions:
        client.admin.topics.create_partitioned_topic("there", partitions)
    topics = client.admin.topics.get_list()
    for topic in ("new", *(["there"] if partitions else [])):
        for call in (
            lambda name: client.create_producer(name, schema=Malformed()),
            lambda name: client.subscribe(name, "s", schema=Malformed()),
            lambda name: client.create_reader(name, pulsarx.MessageId.earliest, schema=Malformed()),
        ):
            with pytest.raises(ValueError, match="no definition of Avro"):
                call(topic)
    assert client.admin.topics.get_list() == topics
    if partitions:
        assert texts(client, "there") == []


def test_a_consumer_brings_its_schema_to_an_idle_topic(client: pulsarx.Client) -> None:
    client.subscribe("t", "s", schema=AvroSchema(Old))
    assert [each for each, _ in texts(client, "t")] == [0]
    client.create_reader("r", pulsarx.MessageId.latest, schema=StringSchema())
    assert [each for each, _ in texts(client, "r")] == [0]


def test_a_consumer_brings_none_to_a_topic_in_use_without_one(client: pulsarx.Client) -> None:
    there = [client.create_producer("produced"), client.subscribe("consumed", "other")]
    sender = client.create_producer("written")
    sender.send(b"x")
    sender.close()
    for topic in ("produced", "consumed", "written"):
        with pytest.raises(errors.IncompatibleSchema, match="in use without a schema"):
            client.subscribe(topic, "s", schema=StringSchema())
        with pytest.raises(errors.IncompatibleSchema, match=r"admin\.schemas\.create_schema"):
            client.create_reader(topic, pulsarx.MessageId.earliest, schema=StringSchema())
        assert texts(client, topic) == []
        assert "s" not in client.admin.topics.stats(topic)["subscriptions"]
    assert len(there) == 2


def test_it_does_once_the_topic_has_been_given_one(client: pulsarx.Client) -> None:
    sender = client.create_producer("t")
    sender.send(b"x")
    client.admin.schemas.create_schema("t", StringSchema().schema_info())
    consumer = client.subscribe("t", "s", schema=StringSchema(), initial_position=EARLIEST)
    assert consumer.receive(60_000).value() == "x"


def test_consumers_that_left_and_those_that_read_any_do_not_count(client: pulsarx.Client) -> None:
    client.subscribe("t", "bytes").close()
    client.create_producer("t").close()
    reading = client.subscribe("t", "any", schema=AutoConsumeSchema())
    client.subscribe("t", "s", schema=StringSchema())
    assert len(texts(client, "t")) == 1 and reading.is_connected()


def test_a_consumer_is_checked_by_what_it_can_read(client: pulsarx.Client) -> None:
    client.create_producer("t", schema=AvroSchema(Old))
    client.subscribe("t", "newer", schema=AvroSchema(New))
    assert len(texts(client, "t")) == 1
    with pytest.raises(errors.IncompatibleSchema, match="cannot read what was written"):
        client.subscribe("t", "wants more", schema=AvroSchema(Other))


def test_bytes_are_welcome_on_a_topic_with_a_schema(client: pulsarx.Client) -> None:
    client.create_producer("t", schema=AvroSchema(Old))
    consumer = client.subscribe("t", "s", initial_position=EARLIEST)
    client.create_producer("t").send(b"x")
    assert consumer.receive(60_000).value() == b"x"


def test_a_producer_cannot_read(client: pulsarx.Client) -> None:
    with pytest.raises(ValueError, match="AutoConsumeSchema reads"):
        client.create_producer("t", schema=AutoConsumeSchema())
    assert client.admin.topics.get_list() == []


def test_what_is_no_schema_info_is_refused(client: pulsarx.Client) -> None:
    class Odd(BytesSchema):
        def schema_info(self) -> Any:
            return "odd"

    for call in (
        lambda: client.create_producer("t", schema=Odd()),
        lambda: client.subscribe("t", "s", schema=Odd()),
    ):
        with pytest.raises(ValueError, match="must be a SchemaInfo"):
            call()


# Partitions, restarts, several clients ------------------------------------------------------------


@pytest.mark.border(left_out="several topics")
def test_partitions_share_the_schemas_of_their_topic(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 3)
    producer = client.create_producer("t", schema=of_one_name(Old))
    for number in range(6):
        producer.send({"a": str(number)})
    producer.use_schema(of_one_name(New))
    client.admin.topics.update_partitioned_topic("t", 4)
    for number in range(8):
        producer.send({"a": str(number), "b": 0})
    assert [each for each, _ in texts(client, "t")] == [0, 1]
    assert texts(client, "t") == texts(client, "t-partition-2")
    with pytest.raises(errors.IncompatibleSchema):
        client.create_producer("t-partition-1", schema=StringSchema())
    consumer = client.subscribe("t", "s", schema=of_one_name(New), initial_position=EARLIEST)
    found = receive_all(consumer, 14)
    assert sorted({each.schema_version() for each in found}) == [version(0), version(1)]
    assert sum(each.value()["b"] for each in found) == 6 * 5


@pytest.mark.border(left_out="several topics")
def test_a_consumer_of_several_topics_is_refused_by_any_of_them(client: pulsarx.Client) -> None:
    client.create_producer("a", schema=StringSchema())
    client.create_producer("b", schema=Int32Schema())
    with pytest.raises(errors.IncompatibleSchema, match="public/default/b"):
        client.subscribe(["new", "a", "b"], "s", schema=StringSchema())
    assert client.admin.topics.stats("a")["subscriptions"] == {}
    assert len(client.admin.topics.get_list()) == 2
    client.subscribe(["new", "a"], "s", schema=StringSchema())
    assert len(texts(client, "new")) == 1


@pytest.mark.standard
def test_schemas_survive_a_restart(tmp_path: Path) -> None:
    with pulsarx.Client(tmp_path) as client:
        client.subscribe("t", "s", initial_position=EARLIEST)
    for round_number in range(3):
        with pulsarx.Client(tmp_path) as client:
            producer = client.create_producer("t", schema=of_one_name(New))
            producer.send({"a": "x", "b": round_number})
            assert [each for each, _ in texts(client, "t")] == [0]
            for number in range(60 * round_number):  # so that a checkpoint is written
                client.admin.namespaces.set_retention("public/default", number, number)
    with pulsarx.Client(tmp_path) as client:
        consumer = client.subscribe("t", "s", schema=of_one_name(Old), initial_position=EARLIEST)
        assert [each.value() for each in receive_all(consumer, 3)] == [{"a": "x"}] * 3
        with pytest.raises(errors.IncompatibleSchema):
            client.create_producer("t", schema=StringSchema())


@pytest.mark.border(left_out="letters and read-only clients")
def test_a_read_only_client_reads_values_of_versions_that_come(tmp_path: Path) -> None:
    with (
        pulsarx.Client(tmp_path) as client,
        pulsarx.Client(tmp_path, read_only=True) as watcher,
    ):
        client.create_producer("t", schema=of_one_name(Old)).send({"a": "x"})
        reader = watcher.create_reader(
            "t", pulsarx.MessageId.earliest, schema=AutoConsumeSchema()
        )  # fmt: skip
        assert reader.read_next(60_000).value() == {"a": "x"}
        client.create_producer("t", schema=of_one_name(New)).send({"a": "y", "b": 1})
        assert reader.read_next(60_000).value() == {"a": "y", "b": 1}
        with pytest.raises(errors.IncompatibleSchema):
            watcher.create_reader("t", pulsarx.MessageId.earliest, schema=StringSchema())
        client.create_producer("idle").close()
        watcher.create_reader("idle", pulsarx.MessageId.earliest, schema=StringSchema())
        assert texts(client, "idle") == []


def test_a_folder_beside_its_owner_looks_again_for_a_version_it_does_not_know(
    tmp_path: Path,
) -> None:
    with pulsarx.Client(tmp_path) as client:
        client.create_producer("t", schema=of_one_name(Old))
        beside = ReadOnlyBroker(str(tmp_path))
        topic = TopicName.of("t")
        for number in (0, 1):
            found = beside.schemas.find(topic, number)
            assert found is not None and found.version() == number
            client.create_producer("t", schema=of_one_name(New))
        assert beside.schemas.find(topic, 2) is None
        beside.close()


def test_threads_that_register_at_once_get_one_version_each_schema(client: pulsarx.Client) -> None:
    client.admin.namespaces.set_schema_compatibility_strategy("public/default", "ALWAYS_COMPATIBLE")
    schemas = [
        AvroSchema(
            None,
            {
                "type": "record",
                "name": "One",
                "fields": [{"name": f"f{number}", "type": "int", "default": 0}],
            },
        )
        for number in range(4)
    ]
    start = threading.Barrier(16)
    sent: list[tuple[int, str]] = []
    failed: list[Exception] = []

    def work(number: int) -> None:
        start.wait()
        try:
            producer = client.create_producer("t", schema=schemas[number % 4])
            producer.send({f"f{number % 4}": number})
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failed
    assert [each for each, _ in texts(client, "t")] == [0, 1, 2, 3]
    consumer = client.subscribe("t", "s", schema=AutoConsumeSchema(), initial_position=EARLIEST)
    for each in receive_all(consumer, 16):
        ((field, value),) = each.value().items()
        assert field == f"f{value % 4}"
        sent.append((value, each.schema_version()))
    assert sorted(value for value, _ in sent) == list(range(16))


def test_incompatible_schemas_that_come_at_once_are_one(client: pulsarx.Client) -> None:
    schemas: list[Schema[Any]] = [StringSchema(), Int32Schema(), Int64Schema(), AvroSchema(Old)]
    start = threading.Barrier(4)
    outcomes: list[str] = []
    made = []

    def work(schema: Schema[Any]) -> None:
        start.wait()
        try:
            made.append(client.create_producer("t", schema=schema))
            outcomes.append("made")
        except errors.IncompatibleSchema:
            outcomes.append("refused")

    threads = [threading.Thread(target=work, args=(each,)) for each in schemas]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(outcomes) == ["made", "refused", "refused", "refused"]
    assert len(texts(client, "t")) == 1
    assert len(client.admin.topics.stats("t")["publishers"]) == len(made) == 1


# Letters ------------------------------------------------------------------------------------------


@pytest.mark.border(left_out="letters and read-only clients")
def test_letters_carry_the_schema_of_what_they_copy(client: pulsarx.Client) -> None:
    """They had none, and could be read as bytes alone."""
    for record_cls, value in ((Old, {"a": "x"}), (New, {"a": "y", "b": 6})):
        client.create_producer("t", schema=of_one_name(record_cls)).send(value)
    client.create_producer("t").send(b"\x02z")
    consumer = client.subscribe(
        "t",
        "s",
        pulsarx.ConsumerType.Shared,
        schema=AutoConsumeSchema(),
        initial_position=EARLIEST,
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(
            max_redeliver_count=1, initial_subscription_name="letters"
        ),
        retry_enable=True,
    )
    for _ in range(6):
        message = consumer.receive(60_000)
        consumer.reconsume_later(message, 0)
    reader = client.create_reader(
        "t-s-DLQ", pulsarx.MessageId.earliest, schema=AutoConsumeSchema()
    )  # fmt: skip
    found = [reader.read_next(60_000).value() for _ in range(3)]
    assert sorted(map(str, found)) == sorted(map(str, [{"a": "x"}, {"a": "y", "b": 6}, b"\x02z"]))
