"""Facts about non-persistent topics in processes that do not own the folder: what is published
goes to consumers with room wherever they are, and nothing is kept, or delivered twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sharing_process import SharingProcess
from support.consumer_types import ALL_TYPES
from support.waiting import wait_until

import pulsarx
from pulsarx import (
    ConsumerType,
    MessageId,
    RegexSubscriptionMode,
    errors,
)
from pulsarx.schema import Integer, Record

pytestmark = pytest.mark.standard

PATIENCE_MS = 60_000
SOON_MS = 50  # in which what is not coming does not come
TOPIC = "non-persistent://public/default/n"


class Row(Record):
    number = Integer()


@pytest.fixture
def owner(owner: SharingProcess) -> SharingProcess:
    """Publishes to the topic by publish(values, key)."""
    owner.run(
        f"def publish(values, key=None, topic='{TOPIC}', **options):\n"
        "  with client.create_producer(topic, **options) as producer:\n"
        "    for each in values:\n"
        "      producer.send_async(each, None, partition_key=key)\n"
    )
    return owner


@pytest.fixture
def guest(folder: Path, owner: SharingProcess) -> Iterator[pulsarx.Client]:
    with pulsarx.Client(folder) as client:
        yield client


def received(consumer: pulsarx.Consumer, count: int) -> list[bytes]:
    found = []
    for _ in range(count):
        message = consumer.receive(PATIENCE_MS)
        consumer.acknowledge(message)
        found.append(message.data())
    return found


def has_nothing(consumer: pulsarx.Consumer) -> bool:
    with pytest.raises(pulsarx.Timeout):
        consumer.receive(SOON_MS)
    return True


def dropped(client: pulsarx.Client, subscription: str = "s", topic: str = TOPIC) -> int:
    count = client.admin.topics.stats(topic)["subscriptions"][subscription]["msg_drop_count"]
    assert isinstance(count, int)
    return count


@pytest.mark.parametrize("kind", ALL_TYPES)
def test_consumers_get_what_the_owner_publishes(
    owner: SharingProcess, guest: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = guest.subscribe(TOPIC, "s", kind)
    values = [b"%d" % n for n in range(300)]
    for options in ("", ", batching_enabled=True, compression_type=pulsarx.CompressionType.LZ4"):
        owner.run(f"publish({values!r}, 'k'{options})")
        assert received(consumer, 300) == values
    assert dropped(guest) == 0


def test_the_owner_gets_what_guests_publish(owner: SharingProcess, guest: pulsarx.Client) -> None:
    owner.run(f"consumer = client.subscribe('{TOPIC}', 's')")
    with guest.create_producer(TOPIC) as producer:
        for n in range(5):
            assert str(producer.send(b"%d" % n)) == "(0,0,-1,-1)"
    assert owner.run("[consumer.receive(60000).data() for _ in range(5)]") == [
        b"%d" % n for n in range(5)
    ]


def test_what_nobody_has_room_for_is_dropped_and_counted(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    owner.run("publish([b'nobody is there'])")
    consumer = guest.subscribe(TOPIC, "s", receiver_queue_size=4)
    owner.run("publish([b'%d' % n for n in range(10)])")
    assert received(consumer, 4) == [b"0", b"1", b"2", b"3"]
    assert has_nothing(consumer)
    assert dropped(guest) == 6
    # There is room again.
    owner.run("publish([b'more'])")
    assert received(consumer, 1) == [b"more"]


@pytest.mark.parametrize("kind", ALL_TYPES)
@pytest.mark.parametrize("queue", [1, 2, 10])
def test_what_was_received_has_made_room_when_receive_returns(
    guest: pulsarx.Client, kind: ConsumerType, queue: int
) -> None:
    """With a queue of one each second message was dropped: permits came with the next receive."""
    consumer = guest.subscribe(TOPIC, "s", kind, receiver_queue_size=queue)
    producer = guest.create_producer(TOPIC)
    values = [b"%d" % number for number in range(20)]
    for value in values:
        producer.send(value)
        assert received(consumer, 1) == [value]
    half = max(1, queue // 2)  # permits come in halves
    for value in values[:half]:
        producer.send(value)
    assert received(consumer, half) == values[:half]


def test_a_consumer_without_a_queue_gets_what_it_waits_for(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    consumer = guest.subscribe(TOPIC, "s", ConsumerType.Shared, receiver_queue_size=0)
    owner.run("publish([b'lost'])")
    got: list[bytes] = []
    waits = threading.Thread(target=lambda: got.append(consumer.receive().data()))
    waits.start()

    def has_asked() -> bool:
        found = guest.admin.topics.stats(TOPIC)["subscriptions"]["s"]["consumers"]
        return bool(found[0]["available_permits"] == 1)

    wait_until(has_asked)
    owner.run("publish([b'came', b'lost'])")
    waits.join()
    assert got == [b"came"]


def test_a_shared_subscription_is_shared_with_the_owner(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    owner.run(f"consumer = client.subscribe('{TOPIC}', 's', pulsarx.ConsumerType.Shared)")
    consumer = guest.subscribe(TOPIC, "s", ConsumerType.Shared)
    owner.run("publish([b'%d' % n for n in range(20)])")
    mine = received(consumer, 10)
    theirs = owner.run("[consumer.receive(60000).data() for _ in range(10)]")
    assert sorted(mine + theirs, key=int) == [b"%d" % n for n in range(20)]


def test_a_batch_of_several_keys_is_split(owner: SharingProcess, guest: pulsarx.Client) -> None:
    consumers = [guest.subscribe(TOPIC, "s", ConsumerType.KeyShared) for _ in range(3)]
    owner.run(
        f"def mixed(count, **options):\n"
        f"  producer = client.create_producer('{TOPIC}', batching_enabled=True,\n"
        "    batching_max_messages=count, batching_max_publish_delay_ms=60000, **options)\n"
        "  for n in range(count):\n"
        "    producer.send_async(b'%d' % n, None, partition_key=str(n % 30))\n"
        "  producer.close()\n"
    )
    for options in ("", ", compression_type=pulsarx.CompressionType.ZSTD"):
        owner.run(f"mixed(300{options})")
        wait_until(lambda: sum(each.has_message() for each in consumers) == 3)
        found: list[tuple[str, bytes]] = []
        for consumer in consumers:
            keys = set()
            while consumer.has_message():
                message = consumer.receive(PATIENCE_MS)
                keys.add(message.partition_key())
                found.append((message.partition_key(), message.data()))
            assert len(keys) < 30
        assert sorted(found, key=lambda each: int(each[1])) == [
            (str(n % 30), b"%d" % n) for n in range(300)
        ]
    assert dropped(guest) == 0


def test_failover_goes_from_one_process_to_the_next(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    told: list[tuple[str, str]] = []

    class Events:
        def __init__(self, name: str) -> None:
            self.name = name

        def became_active(self, *_: object) -> None:
            told.append((self.name, "active"))

        def became_inactive(self, *_: object) -> None:
            told.append((self.name, "inactive"))

    first, second = (
        guest.subscribe(
            TOPIC, "s", ConsumerType.Failover, consumer_name=name,
            consumer_event_listener=Events(name),
        )
        for name in "ab"
    )  # fmt: skip
    wait_until(lambda: told == [("a", "active"), ("b", "inactive")])
    owner.run("publish([b'1'])")
    assert received(first, 1) == [b"1"]
    first.close()
    wait_until(lambda: told[-1] == ("b", "active"))
    owner.run("publish([b'2'])")
    assert received(second, 1) == [b"2"]


def test_subscriptions_are_refused_as_in_the_owner(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    owner.run(f"consumer = client.subscribe('{TOPIC}', 's')")
    with pytest.raises(errors.ConsumerBusy):
        guest.subscribe(TOPIC, "s")
    owner.run("consumer.close()")
    first = guest.subscribe(TOPIC, "s", ConsumerType.Shared)
    second = guest.subscribe(TOPIC, "s", ConsumerType.Shared)
    with pytest.raises(errors.BrokerMetadataError):
        first.unsubscribe()
    second.close()
    first.unsubscribe()
    assert guest.admin.topics.stats(TOPIC)["subscriptions"] == {}
    with pytest.raises(errors.InvalidConfiguration):
        guest.subscribe(TOPIC, "s", is_read_compacted=True)
    consumer = guest.subscribe(TOPIC, "s")
    with pytest.raises(errors.OperationNotSupported):
        consumer.seek(MessageId.earliest)
    with pytest.raises(errors.NotAllowedError):
        guest.create_producer(TOPIC, chunking_enabled=True, batching_enabled=False)


def test_readers_and_listeners_get_what_comes(owner: SharingProcess, guest: pulsarx.Client) -> None:
    reader = guest.create_reader(TOPIC, MessageId.earliest)
    got: list[bytes] = []
    listening = guest.subscribe(
        TOPIC, "s", message_listener=lambda _, message: got.append(message.data())
    )
    owner.run("publish([b'1', b'2'])")
    assert [reader.read_next(PATIENCE_MS).data() for _ in range(2)] == [b"1", b"2"]
    wait_until(lambda: got == [b"1", b"2"])
    reader.close()
    listening.close()
    wait_until(lambda: guest.admin.topics.stats(TOPIC)["subscriptions"] == {})


def test_partitions_are_published_and_consumed(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    name = "non-persistent://public/default/p"
    guest.admin.topics.create_partitioned_topic(name, 3)
    consumer = guest.subscribe(name, "s")
    producer = guest.create_producer(name)
    for n in range(30):
        producer.send(b"%d" % n, partition_key=str(n))
    assert sorted(received(consumer, 30), key=int) == [b"%d" % n for n in range(30)]


def test_a_pattern_finds_topics_that_come(owner: SharingProcess, guest: pulsarx.Client) -> None:
    owner.run("first = client.create_producer('non-persistent://public/default/found-1')")
    import re

    consumer = guest.subscribe(
        re.compile("non-persistent://public/default/found-.*"), "s",
        regex_subscription_mode=RegexSubscriptionMode.NonPersistentOnly,
    )  # fmt: skip
    owner.run("first.send(b'1')")
    assert received(consumer, 1) == [b"1"]
    owner.run("second = client.create_producer('non-persistent://public/default/found-2')")
    found = "client.admin.topics.stats('non-persistent://public/default/found-2')['subscriptions']"

    def has_room() -> bool:
        attached = owner.run(f"{found}.get('s', {{}}).get('consumers', [])")
        return any(each["available_permits"] for each in attached)

    wait_until(has_room)
    owner.run("second.send(b'2')")
    assert received(consumer, 1) == [b"2"]


def test_schemas_are_the_owners(owner: SharingProcess, guest: pulsarx.Client) -> None:
    from pulsarx.schema import AutoConsumeSchema, JsonSchema, String

    class Other(Record):
        number = String()

    producer = guest.create_producer(TOPIC, schema=JsonSchema(Row))
    owner.run(f"anything = client.subscribe('{TOPIC}', 'a')")
    consumer = guest.subscribe(TOPIC, "s", schema=AutoConsumeSchema())
    producer.send(Row(number=3))
    assert consumer.receive(PATIENCE_MS).value() == {"number": 3}
    with pytest.raises(errors.IncompatibleSchema):
        guest.create_producer(TOPIC, schema=JsonSchema(Other))


def test_a_deleted_topic_ends_its_consumers(owner: SharingProcess, guest: pulsarx.Client) -> None:
    consumer = guest.subscribe(TOPIC, "s")
    owner.run(f"client.admin.topics.delete('{TOPIC}', force=True)")

    def is_closed() -> bool:
        try:
            consumer.receive(SOON_MS)
        except errors.AlreadyClosed:
            return True
        except pulsarx.Timeout:
            pass
        return False

    wait_until(is_closed)


def test_all_goes_on_with_the_next_owner(owner: SharingProcess, guest: pulsarx.Client) -> None:
    """Which is this process: what was on its way is lost, and all else there again."""
    consumer = guest.subscribe(TOPIC, "s", ConsumerType.Shared, receiver_queue_size=5)
    producer = guest.create_producer(TOPIC)
    producer.send(b"before")
    wait_until(consumer.has_message)
    owner.__exit__(None, None, None)
    got: list[bytes] = []

    def arrives() -> bool:
        producer.send(b"after")
        if consumer.has_message():
            got.append(consumer.receive(PATIENCE_MS).data())
        return b"after" in got

    wait_until(arrives)
    assert got[0] == b"before"  # it was in the queue here


def test_typed_consumers_come_to_topics_that_have_their_schema(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    """They were refused: the schemas of such topics were unknown beside the owner."""
    from pulsarx.schema import StringSchema

    producer = guest.create_producer(TOPIC, schema=StringSchema())
    consumer = guest.subscribe(TOPIC, "s", schema=StringSchema())
    reader = guest.create_reader(TOPIC, MessageId.latest, schema=StringSchema())
    producer.send("x")
    assert consumer.receive(PATIENCE_MS).value() == "x"
    assert reader.read_next(PATIENCE_MS).value() == "x"
    with pytest.raises(errors.IncompatibleSchema):
        guest.subscribe(TOPIC, "other", schema=pulsarx.schema.JsonSchema(Row))


def test_what_another_process_uses_is_known_here(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    """A consumer brought its schema to a topic that others used without one."""
    from pulsarx.schema import JsonSchema, StringSchema

    owner.run(f"p = client.create_producer('{TOPIC}')")
    with pytest.raises(errors.IncompatibleSchema):
        guest.subscribe(TOPIC, "s", schema=StringSchema())
    owner.run("from pulsarx.schema import StringSchema")
    owner.run(f"q = client.create_producer('{TOPIC}-typed', schema=StringSchema())")
    with pytest.raises(errors.IncompatibleSchema):
        guest.subscribe(f"{TOPIC}-typed", "s", schema=JsonSchema(Row))
    guest.subscribe(f"{TOPIC}-typed", "s", schema=StringSchema()).close()


def test_a_topic_that_was_deleted_gets_its_schema_anew(
    owner: SharingProcess, guest: pulsarx.Client
) -> None:
    """To subscribe with a schema never ended, beside the owner."""
    from pulsarx.schema import JsonSchema, StringSchema

    guest.create_producer(TOPIC, schema=StringSchema()).close()
    owner.run(f"client.admin.topics.delete('{TOPIC}')")
    guest.subscribe(TOPIC, "s", schema=JsonSchema(Row))
    assert len(guest.admin.schemas.get_all_schemas(TOPIC)) == 1


def test_readers_do_not_count(owner: SharingProcess, guest: pulsarx.Client) -> None:
    """They counted as consumers of a subscription each, and policies refused them."""
    policies = guest.admin.namespaces
    consumer = guest.subscribe(TOPIC, "s", ConsumerType.Shared)
    policies.set_max_subscriptions_per_topic("public/default", 1)
    policies.set_max_consumers_per_topic("public/default", 1)
    policies.set_subscription_types_enabled("public/default", ["Shared"])
    readers = [guest.create_reader(TOPIC, MessageId.latest) for _ in range(2)]
    owner.run("publish([b'1'])")
    assert [each.read_next(PATIENCE_MS).data() for each in readers] == [b"1", b"1"]
    with pytest.raises(errors.ConsumerBusy):
        guest.subscribe(TOPIC, "s", ConsumerType.Shared)
    with pytest.raises(errors.NotAllowedError, match="1 consumers and 2 readers"):
        guest.admin.topics.delete(TOPIC)
    consumer.close()
    guest.subscribe(TOPIC, "other", ConsumerType.Shared)


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_deleted_topic_ends_its_producers(
    owner: SharingProcess, guest: pulsarx.Client, partitions: int
) -> None:
    """They made it anew, as soon as it was deleted, without its schema."""
    deletes = "delete"
    if partitions:
        guest.admin.topics.create_partitioned_topic(TOPIC, partitions)
        deletes = "delete_partitioned_topic"
    producer = guest.create_producer(TOPIC)
    producer.send(b"x")
    owner.run(f"client.admin.topics.{deletes}('{TOPIC}', force=True)")

    def is_closed() -> bool:
        try:
            producer.send(b"x")
        except errors.AlreadyClosed:
            return True
        return False

    wait_until(is_closed)
    assert owner.run("client.admin.topics.get_list('public/default')") == []
    producer.close()
    guest.create_producer(TOPIC).send(b"x")
