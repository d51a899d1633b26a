"""The official Python client over TCP, for everything that it can do on one broker."""

from __future__ import annotations

import contextlib
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from served import Served
from support.waiting import wait_until

import pulsarx
from pulsarx.clock import ManualClock

pulsar: Any = pytest.importorskip("pulsar")

PATIENCE_MS = 60_000
TYPES = ("Exclusive", "Shared", "Failover", "KeyShared")
Open = Callable[..., Served]


def opened(served: Served, **options: Any) -> Any:
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(served.service.service_url, logger=quiet, **options)


@pytest.fixture
def client(served: Served) -> Iterator[Any]:
    made = opened(served)
    yield made
    # Of a producer that was fenced, depending on when it was told.
    with contextlib.suppress(pulsar.AlreadyClosed):
        made.close()


def receive(consumer: Any, count: int, acknowledge: bool = True) -> list[Any]:
    found = []
    for _ in range(count):
        found.append(consumer.receive(PATIENCE_MS))
        if acknowledge:
            consumer.acknowledge(found[-1])
    return found


def payloads(messages: list[Any]) -> list[bytes]:
    return [each.data() for each in messages]


def subscribed(client: Any, topic: Any = "t", **options: Any) -> Any:
    options.setdefault("initial_position", pulsar.InitialPosition.Earliest)
    return client.subscribe(topic, "s", **options)


def sent(client: Any, *data: bytes, topic: str = "t", **options: Any) -> list[Any]:
    producer = client.create_producer(topic, **options)
    found = [producer.send(each) for each in data]
    producer.close()
    return found


@pytest.mark.parametrize("name", TYPES)
def test_what_is_acknowledged_does_not_come_again(client: Any, name: str) -> None:
    kind = getattr(pulsar.ConsumerType, name)
    consumer = subscribed(client, consumer_type=kind)
    ids = sent(client, *(b"%d" % number for number in range(10)))
    assert len({str(each) for each in ids}) == 10
    assert payloads(receive(consumer, 5)) == [b"%d" % number for number in range(5)]
    consumer.close()  # which sends what is acknowledged
    again = subscribed(client, consumer_type=kind)
    assert payloads(receive(again, 5)) == [b"%d" % number for number in range(5, 10)]


def test_a_cumulative_acknowledgement_takes_what_is_before_it(client: Any) -> None:
    consumer = subscribed(client)
    sent(client, b"a", b"b", b"c")
    found = receive(consumer, 2, acknowledge=False)
    consumer.acknowledge_cumulative(found[1])
    consumer.close()
    assert payloads(receive(subscribed(client), 1)) == [b"c"]


def test_an_exclusive_subscription_has_one_consumer(client: Any) -> None:
    first = subscribed(client)
    with pytest.raises(pulsar.ConsumerBusy):
        subscribed(client)
    first.close()
    subscribed(client)


def test_the_next_consumer_takes_over_when_one_fails(served: Served, client: Any) -> None:
    kind = {"consumer_type": pulsar.ConsumerType.Failover}
    other = opened(served)
    active = subscribed(other, consumer_name="a", **kind)
    waiting = subscribed(client, consumer_name="b", **kind)
    sent(client, b"1", b"2")
    assert payloads(receive(active, 1, acknowledge=False)) == [b"1"]
    other.close()
    assert payloads(receive(waiting, 2)) == [b"1", b"2"]


KINDS = ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")


@pytest.mark.parametrize("name", KINDS)
def test_batches_come_whole(client: Any, name: str) -> None:
    consumer = subscribed(client)
    producer = client.create_producer(
        "t",
        batching_enabled=True,
        batching_max_messages=7,
        compression_type=getattr(pulsar.CompressionType, name),
    )
    data = [b"%03d" % number * 50 for number in range(50)]
    told: list[Any] = []
    for each in data:
        producer.send_async(each, lambda result, _: told.append(result))
    producer.flush()
    wait_until(lambda: len(told) == 50)  # its callbacks may run behind the flush
    assert told == [pulsar.Result.Ok] * 50
    found = receive(consumer, 50)
    assert payloads(found) == data
    assert found[6].message_id().batch_index() == 6


def test_a_key_goes_where_boost_hash_sends_it_here(served: Served, client: Any) -> None:
    served.client.admin.topics.create_partitioned_topic("keys", 97)
    theirs = client.create_producer("keys")
    ours = served.client.create_producer("keys", hashing_scheme=pulsarx.HashingScheme.BoostHash)
    for length in range(1, 40):
        key = "k\u00e9y-0123456789" * 3
        found = theirs.send(b"", partition_key=key[:length])
        assert found.partition() == ours.send(b"", partition_key=key[:length]).partition()


def deduplicated(served: Served) -> None:
    served.client.create_producer("t").close()
    served.client.admin.topics.set_deduplication("t", True)


def stored(served: Served) -> list[bytes]:
    reader = served.client.create_reader("t", pulsarx.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(PATIENCE_MS).data())
    reader.close()
    return found


def send_numbers(client: Any, ids: list[int], flushes: bool = False, **options: Any) -> None:
    """Each message is its sequence id."""
    producer = client.create_producer(
        "t",
        producer_name="p",
        batching_enabled=True,
        batching_max_publish_delay_ms=60_000,
        **options,
    )
    for each in ids:
        key = f"k{each % 7}"
        producer.send_async(b"%d" % each, lambda *_: None, partition_key=key, sequence_id=each)
        if flushes:
            producer.flush()
    producer.flush()
    producer.close()


def test_batches_by_key_are_stored_whole_where_duplicates_are_not(
    served: Served, client: Any
) -> None:
    """The client tells the id of a batch's first message. Batches of the next keys were taken for
    duplicates: they were lost, and their callbacks told Ok."""
    deduplicated(served)
    by_key = {"batching_type": pulsar.BatchingType.KeyBased}
    numbers = list(range(1, 101))  # the client takes 0 for no sequence id
    for _ in range(2):
        send_numbers(client, numbers, **by_key)
    assert sorted(map(int, stored(served))) == numbers
    served.client.admin.topics.unload("t")
    send_numbers(client, numbers, **by_key)
    assert sorted(map(int, stored(served))) == numbers


def test_a_batch_of_one_sequence_id_is_behind_all_lower_ones(served: Served, client: Any) -> None:
    deduplicated(served)
    send_numbers(client, [40, 40])
    send_numbers(client, [35])
    assert stored(served) == [b"40", b"40"]


def test_few_of_the_sequence_ids_with_gaps_are_known_apart(
    served: Served, client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pulsarx._pycore.publish.producer_sequences.SEEN_MAX", 10)
    deduplicated(served)
    numbers = list(range(100, 400, 10))
    send_numbers(client, numbers, flushes=True)
    send_numbers(client, [395, 105, 390], flushes=True)
    assert [int(each) for each in stored(served)] == [*numbers, 395]


def test_messages_of_a_batch_are_acknowledged_one_by_one(client: Any) -> None:
    options = {"consumer_type": pulsar.ConsumerType.Shared, "batch_index_ack_enabled": True}
    consumer = subscribed(client, **options)
    producer = client.create_producer("t", batching_enabled=True, batching_max_messages=5)
    for number in range(5):
        producer.send_async(b"%d" % number, None)
    producer.flush()
    found = receive(consumer, 5, acknowledge=False)
    for number in (1, 3):
        consumer.acknowledge(found[number])
    consumer.close()
    again = subscribed(client, **options)
    assert payloads(receive(again, 3)) == [b"0", b"2", b"4"]


def test_a_message_bears_what_it_was_sent_with(client: Any) -> None:
    consumer = subscribed(client)
    producer = client.create_producer("t", producer_name="mine", properties={"p": "q"})
    producer.send(
        b"x",
        properties={"a": "b", "c": ""},
        partition_key="key",
        ordering_key="order",
        event_timestamp=77,
        sequence_id=5,
    )
    (found,) = receive(consumer, 1)
    assert found.properties() == {"a": "b", "c": ""}
    assert (found.partition_key(), found.ordering_key()) == ("key", "order")
    assert found.event_timestamp() == 77
    assert found.producer_name() == "mine"
    assert found.topic_name() == "persistent://public/default/t"
    assert producer.last_sequence_id() == 5


def test_a_name_belongs_to_one_producer(client: Any) -> None:
    first = client.create_producer("t", producer_name="mine")
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer("t", producer_name="mine")
    first.close()
    client.create_producer("t", producer_name="mine").send(b"x")


def test_an_exclusive_producer_has_the_topic_to_itself(client: Any) -> None:
    mode = pulsar.ProducerAccessMode
    first = client.create_producer("t", access_mode=mode.Exclusive)
    with pytest.raises(pulsar.ProducerFenced):
        client.create_producer("t", access_mode=mode.Exclusive)
    with pytest.raises(pulsar.ProducerBusy):
        client.create_producer("t")
    first.send(b"x")
    second = client.create_producer("t", access_mode=mode.ExclusiveWithFencing)
    second.send(b"y")
    with pytest.raises(pulsar.PulsarException):
        first.send(b"z")


def test_partitions_are_produced_to_and_consumed(served: Served, client: Any) -> None:
    served.client.admin.topics.create_partitioned_topic("p", 3)
    names = [f"persistent://public/default/p-partition-{number}" for number in range(3)]
    assert client.get_topic_partitions("p") == names
    consumer = subscribed(client, "p", consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer(
        "p", message_routing_mode=pulsar.PartitionsRoutingMode.RoundRobinDistribution
    )
    for number in range(12):
        producer.send(b"%d" % number, partition_key=str(number))
    found = receive(consumer, 12)
    assert sorted(payloads(found)) == sorted(b"%d" % number for number in range(12))
    assert len({each.topic_name() for each in found}) > 1
    assert {each.message_id().partition() for each in found} == {
        names.index(each.topic_name()) for each in found
    }


def test_several_topics_are_consumed_at_once(client: Any) -> None:
    consumer = subscribed(client, ["a", "b"])
    sent(client, b"1", topic="a")
    sent(client, b"2", topic="b")
    assert sorted(payloads(receive(consumer, 2))) == [b"1", b"2"]


def test_a_pattern_finds_the_topics_of_its_namespace(client: Any) -> None:
    for name in ("x-1", "x-2", "y-1"):
        sent(client, name.encode(), topic=name)
    consumer = subscribed(client, re.compile("persistent://public/default/x-.*"))
    assert sorted(payloads(receive(consumer, 2))) == [b"x-1", b"x-2"]
    with pytest.raises(pulsar.Timeout):
        consumer.receive(1)


def test_a_reader_begins_where_it_is_told(client: Any) -> None:
    ids = sent(client, b"a", b"b", b"c")
    first = client.create_reader("t", pulsar.MessageId.earliest)
    assert [first.read_next(PATIENCE_MS).data() for _ in range(3)] == [b"a", b"b", b"c"]
    assert not first.has_message_available()
    behind = client.create_reader("t", ids[0])
    assert behind.read_next(PATIENCE_MS).data() == b"b"
    at = client.create_reader("t", ids[1], start_message_id_inclusive=True)
    assert at.read_next(PATIENCE_MS).data() == b"b"
    assert at.has_message_available()
    last = client.create_reader("t", pulsar.MessageId.latest, start_message_id_inclusive=True)
    assert last.has_message_available()
    assert last.read_next(PATIENCE_MS).data() == b"c"
    new = client.create_reader("t", pulsar.MessageId.latest)
    assert not new.has_message_available()
    sent(client, b"d")
    assert new.read_next(PATIENCE_MS).data() == b"d"


def test_a_reader_seeks(client: Any) -> None:
    ids = sent(client, b"a", b"b", b"c")
    reader = client.create_reader("t", pulsar.MessageId.earliest)
    for _ in range(3):
        reader.read_next(PATIENCE_MS)
    reader.seek(ids[0])
    assert reader.read_next(PATIENCE_MS).data() == b"b"
    reader.seek(0)
    assert reader.read_next(PATIENCE_MS).data() == b"a"
    reader.seek(pulsar.MessageId.latest)
    sent(client, b"d")
    assert reader.read_next(PATIENCE_MS).data() == b"d"


@pytest.mark.parametrize("name", TYPES)
def test_a_consumer_seeks_an_id_and_a_time(client: Any, name: str) -> None:
    consumer = subscribed(client, consumer_type=getattr(pulsar.ConsumerType, name))
    ids = sent(client, b"a", b"b", b"c")
    found = receive(consumer, 3)
    consumer.seek(ids[1])
    assert payloads(receive(consumer, 1)) == [b"c"]
    consumer.seek(found[0].publish_timestamp())
    assert payloads(receive(consumer, 3)) == [b"a", b"b", b"c"]
    consumer.seek(pulsar.MessageId.earliest)
    assert payloads(receive(consumer, 3)) == [b"a", b"b", b"c"]
    assert consumer.get_last_message_id().entry_id() == ids[2].entry_id()


@pytest.mark.parametrize("name", TYPES)
def test_what_is_negatively_acknowledged_comes_again(client: Any, name: str) -> None:
    consumer = subscribed(
        client,
        consumer_type=getattr(pulsar.ConsumerType, name),
        negative_ack_redelivery_delay_ms=10,
    )
    sent(client, b"a")
    (found,) = receive(consumer, 1, acknowledge=False)
    assert found.redelivery_count() == 0
    consumer.negative_acknowledge(found)
    (found,) = receive(consumer, 1)
    assert (found.data(), found.redelivery_count()) == (b"a", 1)


def test_everything_unacknowledged_is_redelivered_when_asked(client: Any) -> None:
    consumer = subscribed(client, consumer_type=pulsar.ConsumerType.Shared)
    sent(client, b"a", b"b")
    receive(consumer, 2, acknowledge=False)
    consumer.redeliver_unacknowledged_messages()
    assert sorted(payloads(receive(consumer, 2))) == [b"a", b"b"]


def test_what_fails_too_often_becomes_a_dead_letter(served: Served, client: Any) -> None:
    policy = pulsar.ConsumerDeadLetterPolicy(2, "dead", "letters")
    consumer = subscribed(
        client,
        consumer_type=pulsar.ConsumerType.Shared,
        negative_ack_redelivery_delay_ms=10,
        dead_letter_policy=policy,
    )
    sent(client, b"bad")
    for _ in range(3):
        (found,) = receive(consumer, 1, acknowledge=False)
        consumer.negative_acknowledge(found)
    # The subscription is there before anybody consumes from it.
    dead = client.subscribe("dead", "letters", consumer_type=pulsar.ConsumerType.Shared)
    (letter,) = receive(dead, 1)
    assert letter.data() == b"bad"
    assert letter.properties()["REAL_TOPIC"] == "persistent://public/default/t"
    # The official client may crash when it is closed in the middle of this.
    while served.client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"]:
        pass
    consumer.close()
    dead.close()


def test_a_delayed_message_comes_when_it_is_due(open_served: Open) -> None:
    clock = ManualClock(int(time.time() * 1000))
    served = open_served(clock)
    client = opened(served)
    consumer = subscribed(client, consumer_type=pulsar.ConsumerType.Shared)
    producer = client.create_producer("t")
    import datetime

    producer.send(b"late", deliver_after=datetime.timedelta(hours=1))
    producer.send(b"soon")
    assert payloads(receive(consumer, 1)) == [b"soon"]
    clock.advance(2 * 3600)
    assert payloads(receive(consumer, 1)) == [b"late"]
    client.close()


@pytest.mark.parametrize("key", ["partition_key", "ordering_key"])
def test_a_key_goes_to_one_consumer(client: Any, key: str) -> None:
    kind = {"consumer_type": pulsar.ConsumerType.KeyShared}
    came: dict[int, set[str]] = {0: set(), 1: set()}
    done = threading.Semaphore(0)

    def listener(number: int) -> Any:
        def listen(consumer: Any, message: Any) -> None:
            came[number].add(getattr(message, key)())
            consumer.acknowledge(message)
            done.release()

        return listen

    for number in (0, 1):
        subscribed(client, message_listener=listener(number), **kind)
    producer = client.create_producer("t")
    for number in range(60):
        producer.send(b"x", **{key: f"k{number % 20}"})
    for _ in range(60):
        assert done.acquire(timeout=PATIENCE_MS / 1000)
    assert came[0] and came[1] and not came[0] & came[1]
    assert len(came[0] | came[1]) == 20


def test_hash_ranges_may_be_chosen(client: Any) -> None:
    def ranged(*ranges: tuple[int, int]) -> Any:
        mode = pulsar.KeySharedMode.Sticky
        policy = pulsar.ConsumerKeySharedPolicy(mode, False, list(ranges))
        kind = pulsar.ConsumerType.KeyShared
        return subscribed(client, consumer_type=kind, key_shared_policy=policy)

    low, _high = ranged((0, 32767)), ranged((32768, 65535))
    with pytest.raises(pulsar.PulsarException):
        ranged((0, 10))
    low.close()
    ranged((0, 32767))


class Point(pulsar.schema.Record):
    x = pulsar.schema.Integer()
    name = pulsar.schema.String()


class Other(pulsar.schema.Record):
    x = pulsar.schema.Array(pulsar.schema.String())


@pytest.mark.parametrize("kind", ["JsonSchema", "AvroSchema"])
def test_values_of_a_schema_come_back(served: Served, client: Any, kind: str) -> None:
    make = getattr(pulsar.schema, kind)
    consumer = subscribed(client, schema=make(Point))
    producer = client.create_producer("t", schema=make(Point))
    producer.send(Point(x=3, name="three"))
    (found,) = receive(consumer, 1)
    assert (found.value().x, found.value().name) == (3, "three")
    with pytest.raises(pulsar.IncompatibleSchema):
        client.create_producer("t", schema=make(Other))
    info = served.client.admin.schemas.get_schema_info("t")
    assert info.schema_type().name == kind.removesuffix("Schema").upper()


def test_text_has_a_schema(client: Any) -> None:
    consumer = subscribed(client, schema=pulsar.schema.StringSchema())
    client.create_producer("t", schema=pulsar.schema.StringSchema()).send("ä")
    assert receive(consumer, 1)[0].value() == "ä"


@pytest.mark.parametrize("batching", [False, True])
def test_what_is_encrypted_passes_unread(client: Any, tmp_path: Path, batching: bool) -> None:
    write_keys(tmp_path)
    keys = pulsar.CryptoKeyReader(f"{tmp_path}/public", f"{tmp_path}/private")
    with_key = subscribed(client, crypto_key_reader=keys)
    options = {"encryption_key": "k", "crypto_key_reader": keys, "batching_enabled": batching}
    producer = client.create_producer("t", **options)
    for text in (b"secret", b"more"):
        producer.send_async(text, None)
    producer.flush()
    assert payloads(receive(with_key, 2)) == [b"secret", b"more"]
    with_key.close()
    raw = client.create_reader(
        "t",
        pulsar.MessageId.earliest,
        crypto_failure_action=pulsar.ConsumerCryptoFailureAction.CONSUME,
    )
    assert b"secret" not in raw.read_next(PATIENCE_MS).data()


def write_keys(folder: Path) -> None:
    """A pair of keys, as files `public` and `private`."""
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    from cryptography.hazmat.primitives import serialization as form

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / "private").write_bytes(private)
    (folder / "public").write_bytes(public)


def test_a_large_message_travels_in_chunks(client: Any) -> None:
    consumer = subscribed(client)
    producer = client.create_producer("t", chunking_enabled=True)
    data = bytes(range(256)) * 50_000  # 12.8 MB, where a message may have 5 MiB
    chunked = producer.send(data)
    assert receive(consumer, 1)[0].data() == data
    consumer.seek(pulsar.MessageId.earliest)
    assert receive(consumer, 1)[0].data() == data
    consumer.close()
    reader = client.create_reader("t", chunked, start_message_id_inclusive=True)
    assert reader.read_next(PATIENCE_MS).data() == data


def test_statistics_say_what_its_producers_published(served: Served, client: Any) -> None:
    """It was -1 without deduplication, and no messages in chunks."""

    def publisher(topic: str) -> dict[str, Any]:
        (found,) = served.client.admin.topics.stats(topic)["publishers"]
        return dict(found)

    producer = client.create_producer("t", chunking_enabled=True)
    assert publisher("t")["last_sequence_id"] == -1
    producer.send(b"x")
    producer.send(bytes(12 << 20))
    assert publisher("t")["last_sequence_id"] == producer.last_sequence_id() == 1
    assert publisher("t")["chunked_message_rate"] == pytest.approx(3 / 60)
    batching = client.create_producer("b", batching_enabled=True)
    for _ in range(10):
        batching.send_async(b"x", lambda *_: None)
    batching.flush()
    assert publisher("b")["last_sequence_id"] == batching.last_sequence_id() == 9
    assert publisher("b")["chunked_message_rate"] == 0


def test_a_message_that_is_too_large_is_refused_by_the_client(client: Any) -> None:
    producer = client.create_producer("t")
    with pytest.raises(pulsar.MessageTooBig):
        producer.send(b"x" * (6 << 20))
    producer.send(b"x" * 5_000_000)


def test_a_table_view_has_the_last_value_of_each_key(served: Served, client: Any) -> None:
    producer = client.create_producer("t")
    for number in range(6):
        producer.send(b"%d" % number, partition_key=f"k{number % 2}")
    view = client.create_table_view("t")
    assert (view.get("k0"), view.get("k1")) == (b"4", b"5")
    # A view of the official client that is closed before it reads on ends the process.
    producer.send(b"6", partition_key="k2")
    while view.get("k2") != b"6":
        pass
    view.close()
    served.client.admin.topics.trigger_compaction("t")
    while served.client.admin.topics.compaction_status("t")["status"] == "RUNNING":
        pass
    compacted = client.create_table_view("t")
    assert len(compacted) == 3
    assert [compacted.get(f"k{number}") for number in range(3)] == [b"4", b"5", b"6"]


def test_a_subscription_that_is_deleted_is_not_there(served: Served, client: Any) -> None:
    consumer = subscribed(client)
    assert served.client.admin.topics.get_subscriptions("t") == ["s"]
    consumer.unsubscribe()
    assert served.client.admin.topics.get_subscriptions("t") == []


def test_a_subscription_that_others_use_is_not_deleted(client: Any) -> None:
    kind = {"consumer_type": pulsar.ConsumerType.Shared}
    first, other = subscribed(client, **kind), subscribed(client, **kind)
    with pytest.raises(pulsar.PulsarException):
        first.unsubscribe()
    other.close()
    first.unsubscribe()


def test_two_clients_share_a_subscription(served: Served, client: Any) -> None:
    other = opened(served)
    kind = {"consumer_type": pulsar.ConsumerType.Shared, "receiver_queue_size": 1}
    consumers = [subscribed(each, **kind) for each in (client, other)]
    sent(client, *(b"%d" % number for number in range(4)))
    found = []
    while len(found) < 4:
        for each in consumers:
            with contextlib.suppress(pulsar.Timeout):
                message = each.receive(20)
                each.acknowledge(message)
                found.append(message.data())
    assert sorted(found) == [b"0", b"1", b"2", b"3"]
    other.close()


def test_messages_are_received_in_batches(client: Any) -> None:
    policy = pulsar.ConsumerBatchReceivePolicy(3, 0, -1)
    consumer = subscribed(client, batch_receive_policy=policy)
    sent(client, b"a", b"b", b"c")
    found = consumer.batch_receive()
    assert payloads(found) == [b"a", b"b", b"c"]


def test_without_a_queue_a_message_comes_when_it_is_asked_for(client: Any) -> None:
    options = {"consumer_type": pulsar.ConsumerType.Shared, "receiver_queue_size": 0}
    consumer, other = subscribed(client, **options), subscribed(client, **options)
    sent(client, b"a", b"b")
    found = [each.receive().data() for each in (consumer, other)]
    assert sorted(found) == [b"a", b"b"]


def test_after_a_cut_both_go_on(served: Served, client: Any) -> None:
    consumer = subscribed(client)
    producer = client.create_producer("t", producer_name="mine")
    unnamed = client.create_producer("t")
    for number in range(3):
        producer.send(b"%d" % number)
        unnamed.send(b"%d+" % number)
        served.cut()
    found = set()
    while len(found) < 6:
        found |= {*payloads(receive(consumer, 1))}
    assert found == {b"0", b"1", b"2", b"0+", b"1+", b"2+"}
    assert producer.producer_name() == "mine"
    # The client may still be bringing a producer back after the last cut.
    with contextlib.suppress(pulsar.NotConnected):
        client.close()


def test_two_sides_see_each_other(served: Served, client: Any) -> None:
    inner = served.client.subscribe("t", "inner")
    outer = subscribed(client)
    sent(client, b"from outside")
    served.client.create_producer("t").send(b"from inside", properties={"a": "b"})
    assert [inner.receive(PATIENCE_MS).data() for _ in range(2)] == [
        b"from outside",
        b"from inside",
    ]
    found = receive(outer, 2)
    assert payloads(found) == [b"from outside", b"from inside"]
    assert found[1].properties() == {"a": "b"}


def test_a_terminated_topic_takes_no_more(served: Served, client: Any) -> None:
    producer = client.create_producer("t")
    producer.send(b"x")
    served.client.admin.topics.terminate("t")
    with pytest.raises(pulsar.PulsarException):
        producer.send(b"y")
    with pytest.raises(pulsar.TopicTerminated):
        client.create_producer("t")


def test_statistics_say_what_a_client_says_of_its_producer(served: Served, client: Any) -> None:
    producer = client.create_producer("t", properties={"team": "blue"})
    [found] = served.client.admin.topics.stats("t")["publishers"]
    assert found["metadata"] == {"team": "blue"}
    assert found["client_version"].startswith("Pulsar-CPP-v")
    producer.close()


@pytest.mark.parametrize("name", ["persistent://no/such/t", "non-persistent://no/such/t"])
def test_what_is_refused_for_good_is_refused_at_once(client: Any, name: str) -> None:
    """Codes that clients try again and again would end in a Timeout, after 30 seconds."""
    with pytest.raises(pulsar.TopicNotFound):
        client.create_producer(name)
    with pytest.raises(pulsar.TopicNotFound):
        subscribed(client, name)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("partitions", [0, 2])
def test_a_non_persistent_topic_goes_to_who_is_there(
    served: Served, client: Any, kind: str, partitions: int
) -> None:
    topic = "non-persistent://public/default/t"
    if partitions:
        served.client.admin.topics.create_partitioned_topic(topic, partitions)
    producer = client.create_producer(topic, batching_enabled=True)
    consumer = subscribed(client, topic, consumer_type=getattr(pulsar.ConsumerType, kind))
    came: list[tuple[str, int]] = []
    for number in range(PATIENCE_MS // 50):  # its permits may come a moment later than it does
        producer.send(b"%d" % number)
        with contextlib.suppress(pulsar.Timeout):
            message = consumer.receive(50)
            consumer.acknowledge(message)
            came.append((message.topic_name(), int(message.data())))
        if len(came) >= 5:
            break
    assert len(came) >= 5
    for place in {place for place, _ in came}:  # one partition may be ahead of the other
        numbers = [number for each, number in came if each == place]
        assert numbers == sorted(numbers)


def test_a_reader_of_a_non_persistent_topic_gets_what_comes(client: Any) -> None:
    topic = "non-persistent://public/default/t"
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    producer = client.create_producer(topic)
    for _ in range(PATIENCE_MS // 50):
        producer.send(b"a")
        with contextlib.suppress(pulsar.Timeout):
            assert reader.read_next(50).data() == b"a"
            return
    raise AssertionError("nothing came")


def test_a_refused_message_does_not_go_round_for_ever(open_served: Open) -> None:
    """Clients in C++ connected anew and sent it again, ten times a second."""
    served = open_served()
    served.client.admin.namespaces.set_delayed_delivery_policies("public/default", True, 1000, 1000)
    client = opened(served)
    producer = client.create_producer("t")
    with pytest.raises(pulsar.ChecksumError):
        producer.send(b"x", deliver_at=int(time.time() * 1000) + 3_600_000)
    producer.send(b"y")
    client.close()


def test_the_folder_outlives_the_service(open_served: Open) -> None:
    served = open_served()
    client = opened(served)
    sent(client, b"x")
    served.service.close()
    served.service.close()  # which is done already
    reader = served.client.create_reader("t", pulsarx.MessageId.earliest)
    assert reader.read_next(PATIENCE_MS).data() == b"x"


def test_closing_the_client_of_the_folder_ends_the_service(open_served: Open) -> None:
    served = open_served()
    client, hasty = opened(served), opened(served, operation_timeout_seconds=1)
    name = f"t{uuid.uuid4().hex}"
    sent(client, b"x", topic=name)
    served.client.close()
    with pytest.raises(pulsar.PulsarException):
        hasty.create_producer(name)
