"""Facts about dispatch rates: how fast consumers and readers are given messages."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sleeping_thread
from child_process import run_program
from compaction_steps import compacted, publish
from sleeping_thread import until_asleep
from support.topics import filled
from topic_reading import OpenClient, drain, numbers, payloads

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, MessageId, errors
from pulsarx.admin import Admin
from pulsarx.testing import inspect

NAMESPACE = "public/default"
TYPES = list(ConsumerType.__members__.values())
CATCHING_UP = 1000  # entries behind which a consumer has a backlog


def batch(client: pulsarx.Client, count: int, begin: int = 0) -> None:
    """One entry of so many messages."""
    with client.create_producer("t") as producer:
        producer.send_many(numbers(count, begin))


def events(client: pulsarx.Client, kind: str, name: str = "s") -> int:
    found = client.admin.topics.stats("t")["subscriptions"][name]
    times: int = found[f"dispatch_throttled_{kind}_limit"]
    return times


class Receiving:
    """Receives in a thread, and waits by now."""

    def __init__(self, receive: Callable[[], Any]) -> None:
        self.outcome: Any = None
        self._receive = receive
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        until_asleep(self._thread)
        assert self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.outcome = self._receive()
        except Exception as error:
            self.outcome = error

    def waits(self) -> bool:
        until_asleep(self._thread)
        return self._thread.is_alive()

    def ends(self, clock: pulsarx.ManualClock | None = None) -> Any:
        """What came of it. clock: goes on until it ends."""
        while clock is not None and self._thread.is_alive():
            clock.advance(1)
            self._thread.join(0.01)
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.outcome


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("level", ["topic", "subscription"])
def test_so_many_messages_are_given_a_period(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any, level: str
) -> None:
    topics = clocked_client.admin.topics
    filled(clocked_client)
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    limit = topics.set_dispatch_rate if level == "topic" else topics.set_subscription_dispatch_rate
    limit("t", msgs=3, period_seconds=10)
    assert payloads(consumer) == numbers(3)
    manual_clock.advance(9.999)
    assert payloads(consumer) == []
    manual_clock.advance(0.001)
    assert payloads(consumer) == numbers(3, 3)
    manual_clock.advance(100)  # what a period leaves over is lost
    assert payloads(consumer) == numbers(3, 6)
    manual_clock.advance(10)
    assert payloads(consumer) == numbers(1, 9)
    assert consumer_is_sound(consumer)


def consumer_is_sound(consumer: Any) -> bool:
    return not consumer.dispatcher.check()


EARLIEST = pulsarx.InitialPosition.Earliest


@pytest.mark.parametrize("kind", TYPES)
def test_bytes_are_limited_too_and_the_excess_is_paid(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    with clocked_client.create_producer("t") as producer:
        for _ in range(4):
            producer.send(bytes(2500))
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", bytes=1000)
    came = []
    for _ in range(8):
        came.append(len(drain(consumer)))
        manual_clock.advance(1)
    # Of some 2550 bytes, 1000 are there at once; what is left of a period counts.
    assert came == [1, 0, 1, 0, 0, 1, 0, 1]


@pytest.mark.parametrize("kind", TYPES)
def test_a_batch_passes_whole_and_the_next_periods_pay(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    batch(clocked_client, 10)
    filled(clocked_client, 5, begin=10)
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=3)
    assert payloads(consumer) == numbers(10)
    manual_clock.advance(2)  # 4 of 10 are not paid yet
    assert payloads(consumer) == []
    manual_clock.advance(1)  # 1
    assert payloads(consumer) == numbers(2, 10)
    manual_clock.advance(1)
    assert payloads(consumer) == numbers(3, 12)


@pytest.mark.parametrize("kind", TYPES)
def test_batches_count_once_where_entries_are_counted(
    manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    options = BrokerOptions(dispatch_throttling_on_batch_message_enabled=True)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        for begin in range(0, 40, 10):
            batch(client, 10, begin)
        consumer = client.subscribe("t", "s", kind, initial_position=EARLIEST)
        client.admin.topics.set_dispatch_rate("t", msgs=2)
        assert payloads(consumer) == numbers(20)
        manual_clock.advance(1)
        assert payloads(consumer) == numbers(20, 20)


def test_keys_of_one_batch_share_what_it_takes(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = clocked_client.create_producer("t")
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=4)
    consumers = [
        clocked_client.subscribe("t", "s", ConsumerType.KeyShared, initial_position=EARLIEST)
        for _ in range(3)
    ]
    for begin in (0, 8):
        producer.send_many(numbers(8, begin), keys=[f"key-{at}" for at in range(8)])
    for period in range(4):
        found = [payload for each in consumers for payload in payloads(each)]
        # A batch of 8 takes two periods.
        assert sorted(found, key=int) == (numbers(8, 4 * period) if period % 2 == 0 else [])
        manual_clock.advance(1)
    assert all(consumer_is_sound(each) for each in consumers)


def test_both_limits_hold(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    filled(clocked_client)
    consumers = [
        clocked_client.subscribe("t", name, initial_position=EARLIEST) for name in ("s", "other")
    ]
    topics.set_dispatch_rate("t", msgs=5)
    topics.set_subscription_dispatch_rate("t", msgs=3)
    assert [len(drain(each)) for each in consumers] == [3, 2]  # 5 of the topic together
    manual_clock.advance(1)
    assert [len(drain(each)) for each in reversed(consumers)] == [3, 2]
    assert events(clocked_client, "msg_events_by_subscription") == 1
    assert events(clocked_client, "msg_events_by_topic", "other") == 1
    assert events(clocked_client, "bytes_events_by_topic") == 0


WAYS: dict[str, Callable[[Any], Any]] = {
    "receive": lambda consumer: [consumer.receive()],
    "receive_many": lambda consumer: consumer.receive_many(5),
    "batch_receive": lambda consumer: consumer.batch_receive(),
    "receive_arrow": lambda consumer: consumer.receive_arrow(5).to_numpy()["value"],
    "receive_async": lambda consumer: [consumer.receive_async().result(60)],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("topics", [1, 2])
def test_who_waits_is_woken_when_the_next_period_begins(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    way: str,
    kind: Any,
    topics: int,
) -> None:
    filled(clocked_client, 3)
    policy = pulsarx.ConsumerBatchReceivePolicy(1, -1, -1)
    consumer = clocked_client.subscribe(
        ["t", "empty"][:topics] if topics > 1 else "t",
        "s",
        kind,
        initial_position=EARLIEST,
        batch_receive_policy=policy,
    )
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=1)
    assert payloads(consumer) == [b"0"]
    waiting = Receiving(lambda: WAYS[way](consumer))
    manual_clock.advance(0.9)
    assert waiting.waits()
    manual_clock.advance(0.1)
    assert len(waiting.ends()) == 1
    assert payloads(consumer) == []
    manual_clock.advance(1)
    assert payloads(consumer) == [b"2"]


@pytest.mark.parametrize("kind", TYPES)
def test_a_listener_is_called_when_the_next_period_begins(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    filled(clocked_client, 5)
    clocked_client.admin.topics.set_subscription_dispatch_rate("t", msgs=2)
    came: list[bytes] = []
    clocked_client.subscribe(
        "t",
        "s",
        kind,
        initial_position=EARLIEST,
        message_listener=lambda _, message: came.append(message.data()),
    )
    manual_clock.advance(0)
    assert came == numbers(2)
    manual_clock.advance(1)
    assert came == numbers(4)
    manual_clock.advance(1)
    assert came == numbers(5)


def test_nothing_is_published_and_yet_a_waiting_consumer_gets_what_comes(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    filled(clocked_client, 1)
    consumer = clocked_client.subscribe("t", "s", ConsumerType.Shared, initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=1)
    assert payloads(consumer) == [b"0"]
    manual_clock.advance(5)
    waiting = Receiving(consumer.receive)
    filled(clocked_client, 2, begin=1)
    assert waiting.ends().data() == b"1"
    assert payloads(consumer) == []


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])
def test_redeliveries_count(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    filled(clocked_client, 6)
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=2)
    for message in drain(consumer):
        consumer.redeliver_at_once(message)
    assert payloads(consumer) == []
    manual_clock.advance(1)
    again = drain(consumer)
    assert [(each.data(), each.redelivery_count()) for each in again] == [(b"0", 1), (b"1", 1)]
    for message in again:
        consumer.acknowledge(message)
    manual_clock.advance(1)
    assert payloads(consumer) == numbers(2, 2)
    assert consumer_is_sound(consumer)


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Failover])
def test_what_waits_for_the_rate_was_not_delivered(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    filled(clocked_client, 5)
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=2)
    first = drain(consumer)
    stats = clocked_client.admin.topics.stats("t")["subscriptions"]["s"]
    assert stats["unacked_messages"] == 2
    consumer.redeliver_at_once(first[1])
    manual_clock.advance(1)
    again = drain(consumer)
    assert [(each.data(), each.redelivery_count()) for each in again] == [(b"1", 1), (b"2", 0)]
    consumer.close()
    manual_clock.advance(1)
    after = clocked_client.subscribe("t", "s", kind)
    assert payloads(after) == numbers(2)
    manual_clock.advance(1)
    assert payloads(after) == numbers(2, 2)


def test_the_next_consumer_gets_what_waited_for_the_one_before(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    filled(clocked_client, 4)
    first, second = (
        clocked_client.subscribe(
            "t", "s", ConsumerType.Failover, consumer_name=name, initial_position=EARLIEST
        )
        for name in ("a", "b")
    )
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=2)
    for message in drain(first):
        first.acknowledge(message)
    waiting = Receiving(second.receive)
    first.close()
    assert waiting.waits()
    manual_clock.advance(1)
    assert waiting.ends().data() == b"2"
    assert payloads(second) == [b"3"]


def test_what_waits_stays_when_a_consumer_leaves_that_is_not_active(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    filled(clocked_client, 4)
    active, other = (
        clocked_client.subscribe(
            "t", "s", ConsumerType.Failover, consumer_name=name, initial_position=EARLIEST
        )
        for name in ("a", "b")
    )
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=2)
    assert payloads(active) == numbers(2)
    other.close()
    manual_clock.advance(1)
    assert payloads(active) == numbers(2, 2)


def test_seeking_and_expiry_leave_nothing_behind_that_waited(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    filled(clocked_client, 3)
    consumer = clocked_client.subscribe("t", "s", initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=1)
    assert payloads(consumer) == [b"0"]
    consumer.seek(MessageId.earliest)
    manual_clock.advance(1)
    assert payloads(consumer) == [b"0"]
    clocked_client.admin.topics.set_message_ttl("t", 5)
    manual_clock.advance(6)
    filled(clocked_client, 1, begin=3)
    assert payloads(consumer) == [b"3"]


def test_what_is_skipped_while_it_waits_takes_nothing_of_the_rate(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    filled(clocked_client, 3)
    consumer = clocked_client.subscribe("t", "s", initial_position=EARLIEST)
    topics.set_dispatch_rate("t", msgs=1)
    assert payloads(consumer) == [b"0"]
    topics.skip_messages("t", "s", 2)
    manual_clock.advance(1)
    assert payloads(consumer) == [b"2"]


@pytest.mark.parametrize("kind", TYPES)
def test_a_consumer_without_a_queue_waits_for_the_rate(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    filled(clocked_client, 2)
    consumer = clocked_client.subscribe(
        "t", "s", kind, initial_position=EARLIEST, receiver_queue_size=0
    )
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=1)
    assert consumer.receive().data() == b"0"
    waiting = Receiving(consumer.receive)
    assert waiting.waits()
    manual_clock.advance(1)
    assert waiting.ends().data() == b"1"
    assert consumer_is_sound(consumer)


@pytest.mark.parametrize("partitions", [0, 2])
@pytest.mark.parametrize("read_compacted", [False, True])
def test_readers_are_limited_each_and_say_what_there_is(
    clocked_client: pulsarx.Client,
    manual_clock: pulsarx.ManualClock,
    partitions: int,
    read_compacted: bool,
) -> None:
    topics = clocked_client.admin.topics
    if partitions:
        topics.create_partitioned_topic("t", partitions)
    filled(clocked_client, 8)
    topics.set_subscription_dispatch_rate("t", msgs=2)
    readers = [
        clocked_client.create_reader("t", MessageId.earliest, is_read_compacted=read_compacted)
        for _ in range(2)
    ]
    each_period = 2 * max(partitions, 1)
    for reader in readers:
        assert len(reader.read_many(100, 0)) == each_period
        assert reader.has_message_available()
        with pytest.raises(errors.Timeout):
            reader.read_next(0)
    waiting = Receiving(readers[0].read_next)
    manual_clock.advance(1)
    found = [waiting.ends()]
    while readers[0].has_message_available():
        found += readers[0].read_many(100, 0)
        manual_clock.advance(1)
    assert len(found) == 8 - each_period


def test_compacted_messages_are_limited(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    publish(clocked_client, [(f"{at % 4}", b"%d" % at) for at in range(12)])
    compacted(clocked_client)
    filled(clocked_client, 2, begin=12)
    consumer = clocked_client.subscribe("t", "s", is_read_compacted=True, initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=3)
    came = [payloads(consumer)]
    manual_clock.advance(1)
    came.append(payloads(consumer))
    assert came == [numbers(3, 8), numbers(3, 11)]


def test_a_table_view_is_made_when_all_was_read(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    publish(clocked_client, [(f"{at}", b"%d" % at) for at in range(5)])
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=2)
    making = Receiving(lambda: clocked_client.create_table_view("t"))
    manual_clock.advance(1)
    assert making.waits()
    view = making.ends(manual_clock)
    assert len(view) == 5
    view.close()


def test_chunks_of_a_message_pass_together(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(max_message_size=1000)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        with client.create_producer("t", chunking_enabled=True) as producer:
            for _ in range(2):
                producer.send(bytes(4500))
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        client.admin.topics.set_dispatch_rate("t", bytes=2000)
        came = []
        for _ in range(4):
            came.append(len(drain(consumer)))
            manual_clock.advance(1)
        assert came == [1, 0, 1, 0]


# Relative rates ---------------------------------------------------------------------------------


def test_what_is_published_comes_on_top_of_a_relative_rate(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    consumer = clocked_client.subscribe("t", "s", ConsumerType.Shared, receiver_queue_size=1)
    topics.set_dispatch_rate("t", msgs=2, relative_to_publish_rate=True)
    filled(clocked_client, 300)  # 5 a second, on the average of a minute
    assert len(drain(consumer)) == 7
    topics.set_dispatch_rate("t", msgs=2, period_seconds=2, relative_to_publish_rate=True)
    manual_clock.advance(2)
    assert len(drain(consumer)) == 12
    manual_clock.advance(120)  # nothing was published since
    assert len(drain(consumer)) == 2


# Who has no backlog -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_only_consumers_with_a_backlog_are_limited_where_the_broker_says_so(
    manual_clock: pulsarx.ManualClock, kind: Any
) -> None:
    options = BrokerOptions(
        dispatch_throttling_on_non_backlog_consumer_enabled=False,
        dispatch_throttling_rate_per_topic_in_msg=100,
        managed_ledger_max_entries_per_ledger=700,
    )
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        consumer = client.subscribe("t", "s", kind)
        producer = client.create_producer("t")
        for payload in numbers(150):
            producer.send(payload)
        assert len(drain(consumer)) == 150  # caught up
        for payload in numbers(CATCHING_UP + 300):
            producer.send(payload)
        first = len(drain(consumer))
        assert 100 <= first <= 102
        manual_clock.advance(1)
        second = len(drain(consumer))
        assert 100 <= second <= 102
        manual_clock.advance(1)
        assert first + second + len(drain(consumer)) == CATCHING_UP + 300


# Levels, and changes ----------------------------------------------------------------------------


def test_the_topic_wins_over_its_namespace_and_that_over_the_options(
    manual_clock: pulsarx.ManualClock,
) -> None:
    options = BrokerOptions(
        dispatch_throttling_rate_per_topic_in_msg=5,
        dispatch_throttling_rate_per_subscription_in_msg=4,
    )
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        topics, namespaces = client.admin.topics, client.admin.namespaces
        filled(client, 60)
        consumer = client.subscribe("t", "s", initial_position=EARLIEST)
        steps: list[tuple[Callable[[], object], int]] = [
            (lambda: None, 4),
            (lambda: namespaces.set_subscription_dispatch_rate(NAMESPACE, msgs=9), 5),
            (lambda: namespaces.set_dispatch_rate(NAMESPACE, msgs=7), 7),
            (lambda: topics.set_dispatch_rate("t", msgs=3), 3),
            (lambda: topics.set_dispatch_rate("t"), 9),  # none, whatever the levels above say
            (lambda: topics.remove_dispatch_rate("t"), 7),
            (lambda: namespaces.remove_dispatch_rate(NAMESPACE), 5),
            (lambda: namespaces.remove_subscription_dispatch_rate(NAMESPACE), 4),
        ]
        for change, expected in steps:
            change()
            assert len(drain(consumer)) == expected
            manual_clock.advance(1)


def test_the_rate_of_bytes_in_the_options_holds(manual_clock: pulsarx.ManualClock) -> None:
    for name in ("topic", "subscription"):
        options = BrokerOptions(**{f"dispatch_throttling_rate_per_{name}_in_byte": 100})
        with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
            filled(client, 10)
            consumer = client.subscribe("t", "s", initial_position=EARLIEST)
            first = len(drain(consumer))
            assert 0 < first < 10
            assert events(client, f"bytes_events_by_{name}") == 1


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("change", ["remove", "raise"])
def test_a_change_wakes_who_waits(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: Any, change: str
) -> None:
    topics = clocked_client.admin.topics
    filled(clocked_client, 5)
    topics.set_subscription_dispatch_rate("t", msgs=1)
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    assert payloads(consumer) == [b"0"]
    waiting = Receiving(consumer.receive)
    if change == "remove":
        topics.remove_subscription_dispatch_rate("t")
    else:
        topics.set_subscription_dispatch_rate("t", msgs=2)
    assert waiting.ends().data() == b"1"
    assert payloads(consumer) == (numbers(3, 2) if change == "remove" else [])
    manual_clock.advance(10)
    assert payloads(consumer) == ([] if change == "remove" else numbers(2, 2))


def test_open_readers_and_non_durable_consumers_heed_a_change(
    clocked_client: pulsarx.Client,
) -> None:
    topics = clocked_client.admin.topics
    topics.create_non_partitioned_topic("t")
    sources = [
        clocked_client.create_reader("t", MessageId.earliest),
        clocked_client.subscribe("t", "s", subscription_mode=pulsarx.SubscriptionMode.NonDurable),
    ]
    take = [sources[0].read_many, sources[1].receive_many]
    filled(clocked_client, 10)
    topics.set_subscription_dispatch_rate("t", msgs=2)
    assert [len(each(100, 0)) for each in take] == [2, 2]
    waiting = [Receiving(lambda each=each: each(100)) for each in take]
    topics.remove_subscription_dispatch_rate("t")
    assert [len(each.ends()) for each in waiting] == [8, 8]


def test_another_policy_gives_no_permits(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    filled(clocked_client, 9)
    topics.set_dispatch_rate("t", msgs=2)
    topics.set_subscription_dispatch_rate("t", msgs=2)
    consumer = clocked_client.subscribe("t", "s", initial_position=EARLIEST)
    assert payloads(consumer) == numbers(2)
    topics.set_message_ttl("t", 1000)
    topics.set_dispatch_rate("t", msgs=2)
    assert payloads(consumer) == []


def test_partitions_have_the_whole_rate_each(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    topics.create_partitioned_topic("t", 2)
    topics.set_dispatch_rate("t", msgs=3)
    consumer = clocked_client.subscribe("t", "s")
    with clocked_client.create_producer("t") as producer:
        for payload in numbers(20):
            producer.send(payload)
    assert len(drain(consumer)) == 6
    waiting = Receiving(consumer.receive)
    manual_clock.advance(1)
    waiting.ends()
    assert len(drain(consumer)) == 5


def test_rates_are_kept_and_set_from_other_processes_and_not_by_readers(
    folder: Path, open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    owner = open_client(clock=manual_clock)
    filled(owner)
    there = Admin.at(folder)
    there.topics.set_dispatch_rate("t", 2, 1000, 5, True)
    there.namespaces.set_subscription_dispatch_rate(NAMESPACE, 3)
    beside = open_client(read_only=True, clock=manual_clock)
    wanted = {
        "msgs": 2, "bytes": 1000, "period_seconds": 5, "relative_to_publish_rate": True
    }  # fmt: skip
    for admin in (owner.admin, there, beside.admin):
        assert admin.topics.get_dispatch_rate("t") == wanted
        assert admin.topics.get_subscription_dispatch_rate("t") is None
        found = admin.namespaces.get_subscription_dispatch_rate(NAMESPACE)
        assert found is not None
        assert (found["msgs"], found["bytes"], found["period_seconds"]) == (3, -1, 1)
    with pytest.raises(errors.OperationNotSupported):
        beside.admin.topics.remove_dispatch_rate("t")
    beside.close()
    owner.close()
    again = open_client(clock=manual_clock)
    assert len(drain(again.subscribe("t", "s", initial_position=EARLIEST))) == 2


def test_system_topics_and_those_with_two_underscores_are_exempt(
    clocked_client: pulsarx.Client,
) -> None:
    clocked_client.admin.namespaces.set_dispatch_rate(NAMESPACE, msgs=1)
    clocked_client.admin.namespaces.set_publish_rate(NAMESPACE, msgs=1)
    filled(clocked_client, 5, "__mine")
    consumer = clocked_client.subscribe("__mine", "s", initial_position=EARLIEST)
    assert len(drain(consumer)) == 5


def test_dispatch_of_non_persistent_topics_is_not_limited(clocked_client: pulsarx.Client) -> None:
    clocked_client.admin.namespaces.set_dispatch_rate(NAMESPACE, msgs=1)
    topic = "non-persistent://public/default/n"
    consumer = clocked_client.subscribe(topic, "s")
    filled(clocked_client, 5, topic)
    assert len(drain(consumer)) == 5
    for call in ("set_dispatch_rate", "set_subscription_dispatch_rate", "set_subscribe_rate"):
        with pytest.raises(errors.OperationNotSupported, match="non-persistent"):
            getattr(clocked_client.admin.topics, call)(topic, 5)


@pytest.mark.parametrize("call", ["set_dispatch_rate", "set_subscription_dispatch_rate"])
@pytest.mark.parametrize(
    "wrong",
    [
        {"msgs": True},
        {"msgs": -2},
        {"msgs": 2**31},
        {"bytes": "1"},
        {"bytes": 2**63},
        {"period_seconds": 0},
        {"period_seconds": 1.5},
        {"relative_to_publish_rate": 1},
    ],
)
def test_a_rate_is_a_rate(memory_client: pulsarx.Client, call: str, wrong: dict[str, Any]) -> None:
    filled(memory_client, 1)
    with pytest.raises(ValueError, match=next(iter(wrong))):
        getattr(memory_client.admin.topics, call)("t", **wrong)
    assert getattr(memory_client.admin.topics, call.replace("set_", "get_"))("t") is None


# Ending a wait ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TYPES)
def test_closing_ends_the_wait(clocked_client: pulsarx.Client, kind: Any) -> None:
    filled(clocked_client, 5)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=1)
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    assert payloads(consumer) == [b"0"]
    waiting = Receiving(consumer.receive)
    clocked_client.close()
    assert isinstance(waiting.ends(), errors.AlreadyClosed)


def test_ctrl_c_ends_the_wait_and_loses_nothing(folder: Path) -> None:
    program = """
import os, signal, sys, threading, pulsarx

sys.path.insert(0, sys.argv[2])
from sleeping_thread import until_asleep

client = pulsarx.Client(sys.argv[1], durability="os")
producer = client.create_producer("t")
consumer = client.subscribe("t", "s")
client.admin.topics.set_dispatch_rate("t", msgs=1, period_seconds=1000)
for number in range(3):
    producer.send(b"%d" % number)
print(consumer.receive().data().decode())


def strike():
    until_asleep(threading.main_thread())
    os.kill(os.getpid(), signal.SIGINT)


threading.Thread(target=strike).start()
try:
    consumer.receive()
except pulsarx.InterruptedByKeyboard:
    print("interrupted")
client.admin.topics.remove_dispatch_rate("t")
print(consumer.receive(1000).data().decode(), consumer.receive(1000).data().decode())
client.close()
"""
    helpers = Path(str(sleeping_thread.__file__)).parent
    assert run_program(program, folder, helpers) == ["0", "interrupted", "1 2"]


def test_threads_of_several_subscriptions_lose_and_double_nothing(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    filled(clocked_client, 120)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=7)
    came: dict[str, list[int]] = {"a": [], "b": []}

    def receive(consumer: Any, found: list[int]) -> None:
        try:
            while True:
                message = consumer.receive()
                found.append(int(message.data()))
                consumer.acknowledge(message)
        except errors.AlreadyClosed:
            pass

    consumers = [
        (name, clocked_client.subscribe("t", name, ConsumerType.Shared, initial_position=EARLIEST))
        for name in ("a", "a", "b")
    ]
    threads = [
        threading.Thread(target=receive, args=(consumer, came[name]))
        for name, consumer in consumers
    ]
    for thread in threads:
        thread.start()
    while sum(map(len, came.values())) < 240:
        for thread in threads:
            until_asleep(thread)
        manual_clock.advance(1)
    for _, consumer in consumers:
        consumer.close()
    for thread in threads:
        thread.join(60)
    assert sorted(came["a"]) == sorted(came["b"]) == list(range(120))


@pytest.mark.parametrize("kind", TYPES)
def test_what_was_counted_stays_when_the_rate_goes(
    clocked_client: pulsarx.Client, kind: Any
) -> None:
    filled(clocked_client, 6)
    consumer = clocked_client.subscribe("t", "s", kind, initial_position=EARLIEST)
    counts = []
    for _ in range(2):
        clocked_client.admin.topics.set_dispatch_rate("t", msgs=2)
        drain(consumer)
        clocked_client.admin.topics.remove_dispatch_rate("t")
        counts.append(events(clocked_client, "msg_events_by_topic"))
        drain(consumer)
        counts.append(events(clocked_client, "msg_events_by_topic"))
        filled(clocked_client, 6)
    assert counts == [1, 1, 2, 2]


def test_without_a_rate_there_is_no_timer(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    filled(clocked_client, 5)
    consumer = clocked_client.subscribe("t", "s", initial_position=EARLIEST)
    clocked_client.admin.topics.set_dispatch_rate("t", msgs=1)
    assert payloads(consumer) == [b"0"]
    clocked_client.admin.topics.remove_dispatch_rate("t")
    assert payloads(consumer) == numbers(4, 1)
    inspect(clocked_client).settle()
    manual_clock.advance(10)
    before = manual_clock.timer_count
    filled(clocked_client, 5)
    assert payloads(consumer) == numbers(5)
    assert manual_clock.timer_count == before
