"""Facts about the verbs on subscriptions: create, delete, list, reset, skip, expire, peek."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from support.topics import backlog, filled
from topic_reading import OpenClient, numbers, payloads

import pulsarx
from pulsarx import ConsumerType, MessageId, errors

SMALL = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=3)
TYPES = [pytest.param(kind, id=kind.name) for kind in ConsumerType.__members__.values()]


def peeked(client: pulsarx.Client, name: str = "s", topic: str = "t") -> list[bytes]:
    return [each.data() for each in client.admin.topics.peek_messages(topic, name, 100)]


def test_a_subscription_begins_where_it_is_told(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    ids = filled(client, partition_key="k")
    topics = client.admin.topics
    topics.create_subscription("t", "earliest", MessageId.earliest)
    topics.create_subscription("t", "latest")
    topics.create_subscription("t", "at", ids[7])
    topics.create_subscription("t", "time", 0)
    assert topics.get_subscriptions("t") == ["at", "earliest", "latest", "time"]
    assert peeked(client, "latest") == []
    assert peeked(client, "earliest") == peeked(client, "time") == numbers(10)
    assert peeked(client, "at") == payloads(client.subscribe("t", "at")) == numbers(3, 7)
    with pytest.raises(errors.NotAllowedError, match="exists already"):
        topics.create_subscription("t", "at")


def test_a_created_subscription_outlives_its_owner(open_client: OpenClient) -> None:
    with open_client() as client:
        ids = filled(client, partition_key="k")
        client.admin.topics.create_subscription("t", "s", ids[8])
    assert payloads(open_client().subscribe("t", "s")) == numbers(2, 8)


def test_a_subscription_is_deleted_unless_it_is_used(open_client: OpenClient) -> None:
    client = open_client()
    filled(client, partition_key="k")
    topics = client.admin.topics
    topics.create_subscription("t", "s", MessageId.earliest)
    consumer = client.subscribe("t", "s")
    with pytest.raises(errors.NotAllowedError, match="1 consumers"):
        topics.delete_subscription("t", "s")
    assert payloads(consumer) == numbers(10)
    topics.delete_subscription("t", "s", force=True)
    with pytest.raises(errors.AlreadyClosed):
        consumer.receive(1000)
    assert topics.get_subscriptions("t") == []
    with pytest.raises(errors.SubscriptionNotFound):
        topics.delete_subscription("t", "s")


def test_partitions_are_meant_together(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=manual_clock)
    topics = client.admin.topics
    topics.create_partitioned_topic("p", 3)
    topics.create_subscription("p", "s", MessageId.earliest)
    with client.create_producer("p") as producer:
        ids = [producer.send(each) for each in numbers(9)]
    assert topics.get_subscriptions("p") == topics.get_subscriptions("p-partition-2") == ["s"]
    for call in (
        lambda: topics.create_subscription("p", "x", ids[0]),
        lambda: topics.reset_cursor("p", "s", ids[0]),
        lambda: topics.skip_messages("p", "s", 1),
        lambda: topics.peek_messages("p", "s", 1),
    ):
        with pytest.raises(errors.OperationNotSupported):
            call()

    def total() -> int:
        found = topics.partitioned_stats("p")["subscriptions"]["s"]["msg_backlog"]
        return int(found)

    topics.skip_all_messages("p", "s")
    assert total() == 0
    topics.reset_cursor("p", "s", 0)
    assert total() == 9
    topics.expire_messages("p", "s", -1)
    assert total() == 0
    topics.reset_cursor("p", "s", MessageId.earliest)
    assert total() == 9
    topics.create_subscription("p-partition-1", "x")
    with pytest.raises(errors.NotAllowedError):
        topics.create_subscription("p", "x")
    assert topics.get_subscriptions("p-partition-0") == ["s"]
    topics.delete_subscription("p", "s")
    assert topics.get_subscriptions("p") == ["x"]


@pytest.mark.parametrize("kind", TYPES)
def test_resetting_moves_the_consumers(open_client: OpenClient, kind: Any) -> None:
    client = open_client(broker_options=SMALL)
    client.admin.namespaces.set_retention("public/default", -1, -1)  # nothing is trimmed
    consumer = client.subscribe("t", "s", kind)
    ids = filled(client, partition_key="k")
    for message in consumer.receive_many(6, 1000):
        consumer.acknowledge(message)
    client.admin.topics.reset_cursor("t", "s", ids[4])
    assert payloads(consumer) == numbers(6, 4)
    client.admin.topics.reset_cursor("t", "s", MessageId.latest)
    assert payloads(consumer) == []
    assert backlog(client) == 0


@pytest.mark.parametrize("kind", TYPES)
def test_skipped_messages_leave_the_queues(open_client: OpenClient, kind: Any) -> None:
    """What was acknowledged before does not count, and stays acknowledged."""
    client = open_client(broker_options=SMALL)
    consumer = client.subscribe("t", "s", kind)
    filled(client, partition_key="k")
    messages = consumer.receive_many(3, 1000)
    consumer.acknowledge(messages[1])
    client.admin.topics.skip_messages("t", "s", 0)
    assert backlog(client) == 9
    client.admin.topics.skip_messages("t", "s", 4)
    assert peeked(client) == numbers(5, 5)
    assert payloads(consumer) == numbers(5, 5)
    consumer.acknowledge(messages[0])  # of which it is too late
    client.admin.topics.skip_messages("t", "s", 100)
    assert backlog(client) == 0
    assert peeked(client) == []
    filled(client, 1, partition_key="k")
    assert payloads(consumer) == [b"0"]


@pytest.mark.parametrize("kind", TYPES)
def test_skipping_all_wakes_and_lasts(open_client: OpenClient, kind: Any) -> None:
    with open_client(broker_options=SMALL) as client:
        consumer = client.subscribe("t", "s", kind, negative_ack_redelivery_delay_ms=1)
        filled(client, partition_key="k")
        consumer.negative_acknowledge(consumer.receive(60_000))
        client.admin.topics.skip_all_messages("t", "s")
        assert payloads(consumer) == []
        assert backlog(client) == 0
    client = open_client(broker_options=SMALL)
    assert backlog(client) == 0
    filled(client, 2, partition_key="k")
    assert payloads(client.subscribe("t", "s", kind)) == numbers(2)


def test_skipping_passes_over_holes(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    consumer = client.subscribe("t", "s", ConsumerType.Shared)
    filled(client, 12, partition_key="k")
    for message in consumer.receive_many(12, 1000):
        if message.data() in (b"1", b"3", b"4", b"5", b"8", b"10"):
            consumer.acknowledge(message)
    assert peeked(client) == [b"0", b"2", b"6", b"7", b"9", b"11"]
    for count in (1, 2, 1):
        client.admin.topics.skip_messages("t", "s", count)
    assert peeked(client) == [b"9", b"11"]
    client.admin.topics.skip_messages("t", "s", 1)
    assert peeked(client) == [b"11"]
    assert backlog(client) == 1


def test_what_is_older_expires(clocked_client: pulsarx.Client) -> None:
    client = clocked_client
    clock = pulsarx.ManualClock
    from pulsarx.testing import inspect

    found = inspect(client).runtime.clock
    assert isinstance(found, clock)
    consumer = client.subscribe("t", "s", ConsumerType.Shared)
    producer = client.create_producer("t")
    for number in range(5):
        producer.send(b"%d" % number)
        found.advance(10)
    client.admin.topics.expire_messages("t", "s", 60)
    assert backlog(client) == 5
    client.admin.topics.expire_messages("t", "s", 30)  # 50, 40, 30, 20 and 10 seconds old
    assert payloads(consumer) == numbers(3, 2)
    # As in Pulsar, which refuses it while consumers are there, and else does nothing.
    with pytest.raises(errors.NotAllowedError, match="expires nothing"):
        client.admin.topics.expire_messages("t", "s", 0)
    assert backlog(client) == 3
    client.admin.topics.expire_messages("t", "s", -1)
    assert backlog(client) == 0


def test_peeking_leaves_all_as_it_is(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    client.subscribe("t", "s").close()
    with client.create_producer("t") as producer:
        producer.send(
            b"\x00\xff", {"a": "b"}, partition_key="k", ordering_key="o", event_timestamp=5
        )
        producer.send(None)
        sent = producer.send(b"")
    for _ in range(2):
        first, second, third = client.admin.topics.peek_messages("t", "s", 10)
        assert first.data() == b"\x00\xff"
        assert first.properties() == {"a": "b"}
        assert (first.partition_key(), first.ordering_key()) == ("k", "o")
        assert first.event_timestamp() == 5
        assert first.publish_timestamp() > 0
        assert first.producer_name() == "standalone-1-0"
        assert (second.data(), second.has_null_value()) == (b"", True)
        assert (third.data(), third.has_null_value()) == (b"", False)
        assert third.message_id() == sent
    assert backlog(client) == 3
    client.admin.topics.delete("t")  # no reader is left


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_number_to_peek_is_in_bounds(open_client: OpenClient, count: int) -> None:
    client = open_client()
    client.subscribe("t", "s").close()
    with pytest.raises(ValueError, match="from 1 to 1000"):
        client.admin.topics.peek_messages("t", "s", count)


def test_too_much_to_peek_is_refused(open_client: OpenClient) -> None:
    client = open_client()
    client.subscribe("t", "s").close()
    with client.create_producer("t") as producer:
        for _ in range(5):
            producer.send(bytes(4_000_000))
    with pytest.raises(errors.NotAllowedError, match="ask for 4 at most"):
        client.admin.topics.peek_messages("t", "s", 5)
    assert len(client.admin.topics.peek_messages("t", "s", 4)) == 4


def test_what_is_not_there_is_told(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    for call in (
        lambda: topics.create_subscription("none", "s"),
        lambda: topics.get_subscriptions("none"),
        lambda: topics.skip_all_messages("none", "s"),
        lambda: topics.peek_messages("none", "s"),
    ):
        with pytest.raises(errors.TopicNotFound):
            call()
    client.create_producer("t").close()
    for call in (
        lambda: topics.reset_cursor("t", "none", 0),
        lambda: topics.skip_messages("t", "none", 1),
        lambda: topics.skip_all_messages("t", "none"),
        lambda: topics.expire_messages("t", "none", 1),
        lambda: topics.peek_messages("t", "none"),
    ):
        with pytest.raises(errors.SubscriptionNotFound):
            call()
    client.subscribe("t", "s").close()
    for call in (
        lambda: topics.reset_cursor("t", "s", "x"),  # type: ignore[arg-type]
        lambda: topics.skip_messages("t", "s", -1),
        lambda: topics.skip_messages("t", "s", "1"),  # type: ignore[arg-type]
        lambda: topics.skip_messages("t", "s", 1 << 70),
        lambda: topics.expire_messages("t", "s", 1 << 70),
        lambda: topics.reset_cursor("t", "s", 1 << 70),
        lambda: topics.create_subscription("t", "other", 1 << 70),
        lambda: topics.merge_ledgers("t", 1 << 70),
    ):
        with pytest.raises(ValueError):
            call()
    assert topics.get_subscriptions("t") == ["s"]
    # A topic without a message has no position to move to, and no call fails.
    topics.skip_all_messages("t", "s")
    topics.skip_messages("t", "s", 5)
    topics.expire_messages("t", "s", 1)
    topics.reset_cursor("t", "s", MessageId.earliest)
    assert topics.peek_messages("t", "s") == []


@pytest.mark.parametrize("beside_owner", [True, False])
def test_a_read_only_client_peeks(
    open_client: OpenClient, folder: Path, beside_owner: bool
) -> None:
    owner = open_client(broker_options=SMALL)
    consumer = owner.subscribe("t", "s", ConsumerType.Shared)
    ids = filled(owner, partition_key="k")
    for message in consumer.receive_many(6, 1000):
        if message.data() != b"3":
            consumer.acknowledge(message)
    if not beside_owner:
        owner.close()
    program = """
import sys, pulsarx
from pulsarx import errors
with pulsarx.Client(sys.argv[1], read_only=True) as client:
    topics = client.admin.topics
    print(topics.get_subscriptions("t"), topics.get_last_message_id("t"))
    print([each.data().decode() for each in topics.peek_messages("t", "s", 3)])
    try:
        topics.skip_all_messages("t", "s")
    except errors.OperationNotSupported:
        print("refused")
"""
    with ChildProcess(program, folder) as child:
        assert child.end() == [f"['s'] {ids[-1]}", "['3', '6', '7']", "refused"]


def test_skipped_ledgers_are_trimmed(open_client: OpenClient) -> None:
    from pulsarx.testing import inspect

    client = open_client(broker_options=SMALL)
    client.subscribe("t", "s").close()
    filled(client, partition_key="k")
    client.admin.topics.skip_all_messages("t", "s")
    inspect(client).settle()
    assert len(client.admin.topics.stats("t")["ledgers"]) == 1
