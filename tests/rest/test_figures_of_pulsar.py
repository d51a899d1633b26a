"""Statistics over REST and `/metrics` are what Apache Pulsar 4.2.4 told after a client had done the
same to it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from administered import Administered

import pulsarx
from pulsarx import BrokerOptions, ConsumerType
from pulsarx.clock import ManualClock

EARLIEST = pulsarx.InitialPosition.Earliest
P = "/persistent/public/default"


def stats(administered: Administered, topic: str = "t") -> Any:
    return administered.get(f"{P}/{topic}/stats")


def metric(administered: Administered, name: str, *labels: str) -> float:
    """Of topic t."""
    text = administered.ask("GET", "//metrics?consumers=true").body
    wanted = ['topic="persistent://public/default/t"', *labels]
    [found] = [
        line.rpartition(" ")[2]
        for line in text.splitlines()
        if re.match(rf"{name}\{{", line) and all(each in line for each in wanted)
    ]
    return float(found)


def subscription_metric(administered: Administered, name: str) -> float:
    return metric(administered, f"pulsar_subscription_{name}", 'subscription="s"')


def receive(consumer: Any, count: int) -> list[Any]:
    return [consumer.receive(60_000) for _ in range(count)]


def publish(client: pulsarx.Client, count: int = 10, topic: str = "t") -> None:
    with client.create_producer(topic, batching_enabled=False) as producer:
        for _ in range(count):
            producer.send(b"x" * 100)


def publish_batches(client: pulsarx.Client) -> None:
    """Two of ten."""
    with client.create_producer("t", batching_enabled=True) as producer:
        for _ in range(2):
            for _ in range(10):
                producer.send_async(b"x", None)
            producer.flush()


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ConsumerType.Exclusive, 0),
        (ConsumerType.Failover, 0),
        (ConsumerType.Shared, 7),
        (ConsumerType.KeyShared, 7),
    ],
)
def test_unacknowledged_messages_are_counted_where_several_share(
    administered: Administered, kind: ConsumerType, expected: int
):
    client = administered.client
    consumer = client.subscribe("t", "s", kind)
    publish(client)
    for each in receive(consumer, 10)[:3]:
        consumer.acknowledge(each)
    found = stats(administered)["subscriptions"]["s"]
    assert (found["unackedMessages"], found["consumers"][0]["unackedMessages"]) == (expected,) * 2
    assert found["msgBacklog"] == 7
    assert subscription_metric(administered, "unacked_messages") == expected
    assert metric(administered, "pulsar_consumer_unacked_messages") == expected


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_chunks_count_as_messages(open_administered: Any, kind: ConsumerType):
    administered = open_administered(broker_options=BrokerOptions(max_message_size=100_000))
    client = administered.client
    consumer = client.subscribe("t", "s", kind)
    producer = client.create_producer("t", chunking_enabled=True)
    for size in (240_000, 10):
        producer.send(b"y" * size)
    receive(consumer, 2)
    found = stats(administered)
    assert (found["msgInCounter"], found["msgOutCounter"]) == (4, 4)
    subscription = found["subscriptions"]["s"]
    assert (subscription["msgOutCounter"], subscription["consumers"][0]["msgOutCounter"]) == (4, 4)
    assert found["publishers"][0]["chunkedMessageRate"] == pytest.approx(3 / 60)
    assert metric(administered, "pulsar_out_messages_total", "consumer_name=") == 4


@pytest.mark.parametrize(("acknowledged", "expected"), [(0, 2), (4, 2), (10, 1), (14, 1)])
def test_what_expires_is_counted_in_entries(
    open_administered: Any, acknowledged: int, expected: int
):
    clock = ManualClock()
    administered = open_administered(clock)
    client = administered.client
    consumer = client.subscribe("t", "s", ConsumerType.Shared, initial_position=EARLIEST)
    publish_batches(client)
    for each in receive(consumer, 20)[:acknowledged]:
        consumer.acknowledge(each)
    consumer.close()
    clock.advance(5)
    administered.do("POST", f"{P}/t/subscription/s/expireMessages/1")
    found = stats(administered)["subscriptions"]["s"]
    assert (found["msgBacklog"], found["totalMsgExpired"]) == (0, expected)
    assert found["msgRateExpired"] == pytest.approx(expected / 60)
    assert subscription_metric(administered, "total_msg_expired") == expected
    assert client.admin.topics.stats("t")["subscriptions"]["s"]["total_expired"] == (
        20 - acknowledged
    )


def test_what_is_too_old_when_its_turn_comes_is_counted_in_entries(open_administered: Any):
    clock = ManualClock()
    administered = open_administered(clock)
    client = administered.client
    client.admin.namespaces.set_message_ttl("public/default", 10)
    client.subscribe("t", "s", ConsumerType.Shared).close()
    publish_batches(client)
    clock.advance(11)
    consumer = client.subscribe("t", "s", ConsumerType.Shared)
    publish(client, 1)
    receive(consumer, 1)
    assert stats(administered)["subscriptions"]["s"]["totalMsgExpired"] == 2


def test_messages_that_wait_for_their_time_are_told_apart(administered: Administered):
    consumer = administered.client.subscribe("t", "s", ConsumerType.Shared)
    producer = administered.client.create_producer("t")
    for _ in range(4):
        producer.send(b"x", deliver_after=timedelta(hours=1))
    publish(administered.client, 2)
    receive(consumer, 2)
    found = stats(administered)["subscriptions"]["s"]
    told = found["msgBacklog"], found["msgBacklogNoDelayed"], found["msgDelayed"]
    assert told == (6, 2, 4)
    names = ("back_log", "back_log_no_delayed", "delayed")
    assert tuple(subscription_metric(administered, name) for name in names) == told


def test_a_subscription_keeps_its_type_when_its_consumers_have_left(administered: Administered):
    client = administered.client
    client.create_producer("t")
    client.admin.topics.create_subscription("t", "s", pulsarx.MessageId.earliest)
    assert stats(administered)["subscriptions"]["s"]["type"] == "None"
    for kind in (ConsumerType.Exclusive, ConsumerType.Shared):
        client.subscribe("t", "s", kind).close()
        assert stats(administered)["subscriptions"]["s"]["type"] == kind.name


def test_a_consumer_of_a_partitioned_topic_is_one(administered: Administered):
    client = administered.client
    client.admin.topics.create_partitioned_topic("t", 2)
    consumer = client.subscribe("t", "s", ConsumerType.Shared)
    empty = administered.get(f"{P}/t/partitioned-stats")
    assert empty["oldestBacklogMessageAgeSeconds"] == 0
    producer = client.create_producer("t", batching_enabled=False)
    for number in range(10):
        producer.send(b"x", partition_key=f"k{number}")
    for each in receive(consumer, 10)[:3]:
        consumer.acknowledge(each)
    found = administered.get(f"{P}/t/partitioned-stats")
    [figures] = found["subscriptions"]["s"]["consumers"]
    assert (figures["msgOutCounter"], figures["unackedMessages"]) == (10, 7)
    assert figures["consumerName"] == consumer.consumer_name()
    other = client.subscribe("t", "s", ConsumerType.Shared, consumer_name=consumer.consumer_name())
    found = administered.get(f"{P}/t/partitioned-stats")
    assert len(found["subscriptions"]["s"]["consumers"]) == 2
    other.close()


def test_entries_of_the_open_ledger_are_told_once(administered: Administered):
    publish(administered.client)
    found = administered.get(f"{P}/t/internalStats")
    assert (found["numberOfEntries"], found["currentLedgerEntries"]) == (10, 10)
    [ledger] = found["ledgers"]
    assert (ledger["entries"], ledger["size"]) == (0, 0)


def test_readers_have_cursors_and_hold_no_storage(administered: Administered):
    client = administered.client
    publish(client, 5)
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    for _ in range(2):
        reader.read_next(60_000)
    [(name, cursor)] = administered.get(f"{P}/t/internalStats")["cursors"].items()
    assert name.startswith("reader-")
    assert cursor["active"]
    assert cursor["markDeletePosition"].endswith(":1")
    found = stats(administered)
    assert (found["backlogSize"], found["oldestBacklogMessageAgeSeconds"]) == (0, -1)
    assert metric(administered, "pulsar_storage_backlog_size") == 0
    assert metric(administered, "pulsar_storage_backlog_age_seconds") == -1


def test_a_subscription_that_is_not_durable_holds_no_storage(administered: Administered):
    """As a reader of the official client, which is one."""
    client = administered.client
    publish(client, 5)
    mode = pulsarx.SubscriptionMode.NonDurable
    client.subscribe("t", "s", initial_position=EARLIEST, subscription_mode=mode)
    assert list(administered.get(f"{P}/t/internalStats")["cursors"]) == ["s"]
    assert subscription_metric(administered, "back_log") == 5
    assert metric(administered, "pulsar_storage_backlog_size") == 0


def test_limits_and_what_is_offloaded_are_told(administered: Administered):
    publish(administered.client, 1)
    names = [f"pulsar_storage_{name}" for name in (
        "offloaded_size", "backlog_quota_limit", "backlog_quota_limit_time"
    )]  # fmt: skip
    assert [metric(administered, name) for name in names] == [0, -1, -1]
    quota = {"limitSize": 1000, "limitTime": 60, "policy": "producer_exception"}
    for kind in ("destination_storage", "message_age"):
        administered.do(
            "POST", f"/namespaces/public/default/backlogQuota?backlogQuotaType={kind}", quota
        )
    assert [metric(administered, name) for name in names] == [0, 1000, 60]


def test_messages_that_are_not_kept_have_no_age(administered: Administered):
    administered.client.create_producer("non-persistent://public/default/t")
    found = administered.get("/non-persistent/public/default/t/stats")
    assert found["oldestBacklogMessageAgeSeconds"] == 0
