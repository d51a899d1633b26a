"""Facts about memory_limit_bytes: how much all producers of a client have on their way at most."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sleeping_thread import until_asleep
from topic_reading import Told, whole_topic

import pulsarx
from pulsarx import Result, errors
from pulsarx.testing.faults import FaultPlan, fault_plan

WAIT = 60


@contextmanager
def stalled_disk() -> Iterator[FaultPlan]:
    with fault_plan() as plan:
        plan.stall("flush", sticky=True)
        try:
            yield plan
        finally:
            plan.release()


def started(client: pulsarx.Client, topic: str, **options: Any) -> pulsarx.Producer:
    """A producer whose topic has a ledger already."""
    producer = client.create_producer(topic, **options)
    producer.send(b"")
    return producer


def test_what_all_producers_have_on_their_way_is_limited(folder: Path) -> None:
    with pulsarx.Client(folder, memory_limit_bytes=100) as client:
        one, two = started(client, "one"), started(client, "two")
        with stalled_disk() as plan:
            one.send_async(b"x" * 60, None)
            two.send_async(b"y" * 60, None)  # one message may go over the limit
            with pytest.raises(errors.MemoryBufferIsFull, match="memory_limit_bytes is 100"):
                one.send_async(b"z", None)
            told = Told()
            two.send_async(b"z", told)
            plan.release()
        one.flush()
        two.flush()
        assert [result for result, _ in told.results] == [Result.MemoryBufferIsFull]
        one.send(b"there is room")
        assert whole_topic(client, "one")[1:] == [b"x" * 60, b"there is room"]
        assert whole_topic(client, "two")[1:] == [b"y" * 60]


def test_a_producer_that_blocks_waits_for_the_messages_of_the_others(folder: Path) -> None:
    with pulsarx.Client(folder, memory_limit_bytes=100) as client:
        one = started(client, "one")
        two = started(client, "two", block_if_queue_full=True)
        with stalled_disk() as plan:
            one.send_async(b"x" * 101, None)
            sender = threading.Thread(target=two.send_async, args=(b"waited", None))
            sender.start()
            until_asleep(sender)
            assert sender.is_alive()
            plan.release()
            sender.join(WAIT)
            assert not sender.is_alive()
        two.flush()
        assert whole_topic(client, "two")[1:] == [b"waited"]


@pytest.mark.parametrize("batching", [False, True])
def test_a_callback_that_waits_for_memory_flushes_what_nobody_else_would(
    folder: Path, batching: bool
) -> None:
    """It waited for ever: for the messages of another producer, which its own thread was to
    flush."""
    called, go_on, sent = threading.Event(), threading.Event(), threading.Event()
    with pulsarx.Client(folder, memory_limit_bytes=100) as client:
        one = started(client, "one", block_if_queue_full=True)
        two = started(client, "two", batching_enabled=batching)

        def send_on(*_: object) -> None:
            called.set()
            assert go_on.wait(WAIT)
            one.send_async(b"sent on", None)
            sent.set()

        one.send_async(b"", send_on)
        assert called.wait(WAIT)
        two.send_async(b"x" * 101, None)
        go_on.set()
        assert sent.wait(WAIT)
        one.flush()
        assert whole_topic(client, "one")[-1] == b"sent on"
        assert whole_topic(client, "two")[-1] == b"x" * 101


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
@pytest.mark.parametrize("batching", [{}, {"batching_enabled": True}, {"by": "key"}], ids=str)
def test_nothing_stays_counted(folder: Path, durability: str, batching: dict[str, Any]) -> None:
    """Many times the limit goes through, in every way to send."""
    options: dict[str, Any] = dict(batching)
    if options.pop("by", None):
        options = {"batching_enabled": True, "batching_type": pulsarx.BatchingType.KeyBased}
    with pulsarx.Client(folder, memory_limit_bytes=50, durability=durability) as client:
        producer = started(client, "t", block_if_queue_full=True, **options)
        for number in range(40):
            producer.send_async(b"a" * 20, None, partition_key=f"{number % 3}")
        for _ in range(5):
            producer.send(b"b" * 20)
        producer.send_many([b"c" * 20] * 40, keys=[f"{number % 3}" for number in range(40)])
        producer.send_async(b"d" * 500, None)
        producer.flush()
        assert sorted(whole_topic(client)[1:]) == sorted(
            [b"a" * 20] * 40 + [b"b" * 20] * 5 + [b"c" * 20] * 40 + [b"d" * 500]
        )


def test_what_is_refused_or_fails_is_not_counted(folder: Path) -> None:
    options = pulsarx.BrokerOptions(max_message_size=1000)
    with pulsarx.Client(folder, memory_limit_bytes=100, broker_options=options) as client:
        producer = started(client, "t")
        batching = started(client, "t", batching_enabled=True, batching_max_publish_delay_ms=10_000)
        for _ in range(5):
            with pytest.raises(errors.MessageTooBig):
                producer.send(b"x" * 1001)
            with fault_plan() as plan:
                plan.fail("write", error=errno.ENOSPC, sticky=True)
                plan.fail("allocate", error=errno.ENOSPC, sticky=True)
                with pytest.raises(errors.PulsarException):
                    producer.send(b"x" * 101)
                told = Told()
                batching.send_async(b"x" * 101, told)
                with pytest.raises(errors.PulsarException):
                    batching.flush()
                assert len(told.results) == 1
        producer.send(b"good")
        assert whole_topic(client)[-1] == b"good"


def test_partitions_and_clients(folder: Path) -> None:
    """The partitions of a producer share the limit of its client; another client has its own."""
    with (
        pulsarx.Client(folder, memory_limit_bytes=100) as client,
        pulsarx.Client(folder) as unlimited,
    ):
        client.admin.topics.create_partitioned_topic("p", 2)
        producer = client.create_producer("p")
        other = unlimited.create_producer("p")
        for _ in range(2):
            producer.send(b"")
        with stalled_disk() as plan:
            producer.send_async(b"x" * 60, None)
            producer.send_async(b"x" * 60, None)
            with pytest.raises(errors.MemoryBufferIsFull):
                producer.send_async(b"x", None)
            other.send_async(b"x" * 1000, None)
            plan.release()
        producer.flush()
        other.flush()


@pytest.mark.parametrize("wrong", [-1, 1 << 63])
def test_a_limit_out_of_bounds_is_refused(wrong: int) -> None:
    with pytest.raises((ValueError, TypeError)):
        pulsarx.Client("memory:", memory_limit_bytes=wrong)


@pytest.mark.parametrize("options", [{}, {"batching_enabled": True}], ids=str)
def test_threads_that_wait_for_room_store_each_message_once_and_in_order(
    folder: Path, options: dict[str, Any]
) -> None:
    """A send that waits gives the mutex of its producer up: others come between, and go on."""
    with pulsarx.Client(folder, memory_limit_bytes=64) as client:
        shared = started(client, "t", block_if_queue_full=True, max_pending_messages=3, **options)
        other = started(client, "t", block_if_queue_full=True, **options)
        results: list[Any] = []

        def work(name: int) -> None:
            for number in range(60):
                producer = other if name % 2 else shared
                content = b"%d %d %s" % (name, number, b"x" * (number % 40))
                if number % 7 == 0:
                    producer.send(content)
                else:
                    producer.send_async(content, lambda result, _: results.append(result))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(WAIT)
            assert not each.is_alive()
        shared.flush()
        other.flush()
        assert len(results) == 6 * (60 - 9)
        assert set(results) == {Result.Ok}
        stored = [tuple(map(int, each.split()[:2])) for each in whole_topic(client)[2:]]
        for name in range(6):
            assert [number for by, number in stored if by == name] == list(range(60))
        started(client, "t")  # which would not wait: nothing is counted any more
