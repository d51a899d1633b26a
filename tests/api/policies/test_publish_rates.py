"""Facts about publish rates and subscribe rates: how fast producers publish, how often consumers
subscribe."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sleeping_thread
from child_process import run_program
from sleeping_thread import until_asleep
from topic_reading import OpenClient, Told, drain, numbers, payloads, whole_topic

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, Result, errors
from pulsarx.admin import Admin
from pulsarx.testing import inspect

NAMESPACE = "public/default"
VOLATILE = "non-persistent://public/default/n"


class Sending:
    """Sends in a thread, and waits by now."""

    def __init__(self, send: Callable[[], Any]) -> None:
        self.outcome: Any = None
        self._send = send
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        until_asleep(self._thread)

    def _run(self) -> None:
        try:
            self.outcome = self._send()
        except Exception as error:
            self.outcome = error

    def waits(self) -> bool:
        until_asleep(self._thread)
        return self._thread.is_alive()

    def ends(self) -> Any:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.outcome


def send_all(producer: Any, count: int, begin: int = 0) -> None:
    for payload in numbers(count, begin):
        producer.send(payload)


@pytest.mark.parametrize("options", [{}, {"batching_enabled": True}])
def test_above_the_rate_sending_waits_for_the_next_second(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, options: dict[str, Any]
) -> None:
    producer = clocked_client.create_producer("t", **options)
    clocked_client.admin.topics.set_publish_rate("t", msgs=3)
    sending = Sending(lambda: send_all(producer, 8))
    for expected in (3, 6):
        assert sending.waits()
        assert whole_topic(clocked_client) == numbers(expected)
        manual_clock.advance(0.999)
        assert whole_topic(clocked_client) == numbers(expected)
        manual_clock.advance(0.001)
    assert sending.ends() is None
    assert whole_topic(clocked_client) == numbers(8)
    assert clocked_client.admin.topics.stats("t")["publish_rate_limited_times"] == 2


def test_producers_of_a_topic_share_the_rate(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    clocked_client.admin.namespaces.set_publish_rate(NAMESPACE, msgs=3)
    first, second = (clocked_client.create_producer("t") for _ in range(2))
    send_all(first, 2)
    send_all(second, 1)
    waiting = [Sending(lambda each=each: each.send(b"late")) for each in (first, second)]
    other = clocked_client.create_producer("other")
    send_all(other, 3)  # of another topic
    assert all(each.waits() for each in waiting)
    manual_clock.advance(1)
    assert all(isinstance(each.ends(), pulsarx.MessageId) for each in waiting)


def test_bytes_are_limited_and_the_excess_is_paid(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = clocked_client.create_producer("t")
    clocked_client.admin.topics.set_publish_rate("t", bytes=1000)
    producer.send(bytes(2900))  # passes whole
    sending = Sending(lambda: producer.send(b"late"))
    manual_clock.advance(1)
    assert sending.waits()
    manual_clock.advance(1)
    assert isinstance(sending.ends(), pulsarx.MessageId)


def test_a_batch_passes_whole_and_who_comes_next_waits_for_it(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = clocked_client.create_producer("t", batching_enabled=True)
    clocked_client.admin.topics.set_publish_rate("t", msgs=2)
    told = Told()
    for payload in numbers(6):
        producer.send_async(payload, told)
    producer.flush()
    assert [result for result, _ in told.results] == [Result.Ok] * 6
    producer.send_async(b"late", told)
    manual_clock.advance(2)
    assert len(told.results) == 6
    manual_clock.advance(1)
    producer.flush()
    assert len(told.results) == 7


# What send_async does meanwhile ------------------------------------------------------------------


def test_send_async_returns_at_once_until_as_many_wait_as_may(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """It waited in the call, with its queue empty."""
    producer = clocked_client.create_producer("t", max_pending_messages=3)
    clocked_client.admin.topics.set_publish_rate("t", msgs=1)
    told, late = Told(), Told()
    for payload in numbers(4):
        producer.send_async(payload, told)  # the first passes
    producer.send_async(b"late", late)
    with pytest.raises(errors.ProducerQueueIsFull, match="publish rate"):
        producer.send_async(b"late", None)
    manual_clock.advance(0)  # which waits for callbacks
    assert [result for result, _ in late.results] == [Result.ProducerQueueIsFull]
    for passed in range(2, 5):
        manual_clock.advance(1)
        assert [result for result, _ in told.results] == [Result.Ok] * passed
    assert whole_topic(clocked_client) == numbers(4)
    producer.send_async(b"x", None)
    manual_clock.advance(1)
    producer.flush()


def test_send_async_waits_for_a_place_where_it_may_block(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = clocked_client.create_producer("t", max_pending_messages=2, block_if_queue_full=True)
    clocked_client.admin.topics.set_publish_rate("t", msgs=1)
    for payload in numbers(3):
        producer.send_async(payload, None)
    sending = Sending(lambda: producer.send_async(b"3", None))
    assert sending.waits()
    manual_clock.advance(1)
    assert sending.ends() is None
    manual_clock.advance(1)
    manual_clock.advance(1)
    producer.flush()
    assert whole_topic(clocked_client) == numbers(4)


@pytest.mark.parametrize("partitions", [0, 1])
def test_what_send_async_took_goes_before_what_is_sent_after_it(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock, partitions: int
) -> None:
    topics = clocked_client.admin.topics
    if partitions:
        topics.create_partitioned_topic("t", partitions)
    else:
        topics.create_non_partitioned_topic("t")
    producer = clocked_client.create_producer("t")
    topics.set_publish_rate("t", msgs=1)
    for payload in numbers(2):
        producer.send_async(payload, None)
    for number, send in enumerate(
        (
            lambda: producer.send(b"2"),
            lambda: producer.send_many([b"3"]),
            lambda: producer.send_columns(np.array([b"4"])),
        )
    ):
        sending = Sending(send)
        assert sending.waits()
        manual_clock.advance(1)
        if number == 0:
            assert sending.waits()  # the one before went
            manual_clock.advance(1)
        assert not isinstance(sending.ends(), Exception)
    producer.send_async(b"5", None)
    flushing = Sending(producer.flush)
    assert flushing.waits()
    manual_clock.advance(1)
    assert flushing.ends() is None
    name = "t-partition-0" if partitions else "t"
    reader = clocked_client.create_reader(name, pulsarx.MessageId.earliest)
    assert [reader.read_next(60_000).data() for _ in range(6)] == numbers(6)


def test_who_waits_for_a_place_gets_it_when_what_was_sent_is_stored(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    """It looked when the last one that was queued was sent, and not when that was stored."""
    client = open_client(clock=manual_clock, durability="sync")
    producer = client.create_producer("t", max_pending_messages=1, block_if_queue_full=True)
    client.admin.topics.set_publish_rate("t", msgs=1)

    def send() -> None:
        for each in numbers(4):
            producer.send_async(each, None)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    for _ in range(30_000):
        manual_clock.advance(1)
        sender.join(0.002)
        if not sender.is_alive():
            break
    assert not sender.is_alive()
    manual_clock.advance(1)
    producer.flush()
    assert whole_topic(client) == numbers(4)


def test_closing_tells_what_send_async_took_that_it_is_not_sent(
    clocked_client: pulsarx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    producer = clocked_client.create_producer("t")
    clocked_client.admin.topics.set_publish_rate("t", msgs=1)
    told = Told()
    for payload in numbers(2):
        producer.send_async(payload, told)
    producer.send_async(b"2", None)
    producer.close()
    inspect(clocked_client).settle()
    assert [result for result, _ in told.results] == [Result.Ok, Result.AlreadyClosed]
    assert "1 messages that send_async took" in caplog.text


def many(producer: Any) -> Any:
    return producer.send_many(numbers(10))


def columns(producer: Any) -> Any:
    return producer.send_columns(np.array(numbers(10)))


def one_by_one(producer: Any) -> Any:
    for payload in numbers(10):
        producer.send_async(payload, None)
    producer.flush()


@pytest.mark.parametrize(
    ("send", "options"),
    [
        (many, {}),
        (many, {"batching_enabled": True}),
        (many, {"batching_enabled": True, "batching_type": pulsarx.BatchingType.KeyBased}),
        (many, {"chunking_enabled": True}),
        (columns, {}),
        (one_by_one, {}),
        (one_by_one, {"batching_enabled": True}),
    ],
)
@pytest.mark.parametrize("durability", ["os", "sync"])
def test_every_way_to_send_waits_between_its_entries(
    manual_clock: pulsarx.ManualClock,
    send: Callable[[Any], Any],
    options: dict[str, Any],
    durability: str,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, durability=durability) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t", batching_max_messages=2, **options)
        client.admin.topics.set_publish_rate("t", msgs=4)
        sending = Sending(lambda: send(producer))
        came = []
        while sending.waits():
            manual_clock.advance(0)
            came.append(len(drain(consumer)))  # what went out is there while the rest waits
            manual_clock.advance(1)
        sending.ends()
        came.append(len(drain(consumer)))
        assert came == [4, 4, 2]
        assert whole_topic(client) == numbers(10)


def test_partitions_have_the_whole_rate_each(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    topics.create_partitioned_topic("t", 2)
    topics.set_publish_rate("t", msgs=2)
    producer = clocked_client.create_producer("t")
    send_all(producer, 4)
    sending = Sending(lambda: producer.send(b"late"))
    assert sending.waits()
    manual_clock.advance(1)
    assert isinstance(sending.ends(), pulsarx.MessageId)
    assert topics.partitioned_stats("t")["publish_rate_limited_times"] == 1


def test_a_message_in_chunks_passes_whole(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(max_message_size=1000)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t", chunking_enabled=True)
        client.admin.topics.set_publish_rate("t", msgs=2)
        producer.send(bytes(3500))  # 4 chunks
        sending = Sending(lambda: producer.send(b"late"))
        assert [len(each) for each in payloads(consumer)] == [3500]
        manual_clock.advance(1)
        assert sending.waits()
        manual_clock.advance(1)
        sending.ends()
        assert payloads(consumer) == [b"late"]


def test_non_persistent_topics_heed_the_publish_rate(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = clocked_client.subscribe(VOLATILE, "s")
    producer = clocked_client.create_producer(VOLATILE)
    with pytest.raises(errors.OperationNotSupported, match="namespace"):
        clocked_client.admin.topics.set_publish_rate(VOLATILE, msgs=2)
    clocked_client.admin.namespaces.set_publish_rate(NAMESPACE, msgs=2)
    sending = Sending(lambda: send_all(producer, 3))
    assert sending.waits()
    assert payloads(consumer) == numbers(2)
    manual_clock.advance(1)
    sending.ends()
    assert payloads(consumer) == [b"2"]
    assert clocked_client.admin.topics.stats(VOLATILE)["publish_rate_limited_times"] == 1


# Ending a wait ----------------------------------------------------------------------------------


def test_a_send_that_waits_times_out(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = clocked_client.create_producer("t", send_timeout_millis=2000)
    clocked_client.admin.topics.set_publish_rate("t", msgs=1)
    producer.send_many(numbers(10))
    told = Told()
    waiting = [
        Sending(lambda: producer.send(b"late")),
        Sending(lambda: producer.send_many([b"late"])),
    ]
    producer.send_async(b"late", told)
    manual_clock.advance(1.999)
    assert all(each.waits() for each in waiting)
    manual_clock.advance(0.001)
    outcomes = [each.ends() for each in waiting]
    assert isinstance(outcomes[0], errors.Timeout)
    assert isinstance(outcomes[1], errors.Timeout)
    producer.flush()
    assert [result for result, _ in told.results] == [Result.Timeout]
    assert whole_topic(clocked_client) == numbers(10)
    manual_clock.advance(8)
    producer.send(b"in time")


def test_what_was_published_of_many_is_told_when_the_rest_times_out(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = clocked_client.create_producer("t", send_timeout_millis=500, batching_max_messages=2)
    clocked_client.admin.topics.set_publish_rate("t", msgs=2)
    sending = Sending(lambda: producer.send_many(numbers(6)))
    manual_clock.advance(0.5)
    outcome = sending.ends()
    assert isinstance(outcome, errors.Timeout)
    assert "2 of 6 messages were published" in outcome.__notes__
    assert whole_topic(clocked_client) == numbers(2)


def test_no_two_compressed_batches_go_beneath_one_second(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """Without a rate, two batches of a call are compressed at a time."""
    payloads = [b"%06d " % number * 150 for number in range(300)]
    producer = clocked_client.create_producer(
        "t",
        send_timeout_millis=500,
        batching_max_messages=100,
        compression_type=pulsarx.CompressionType.LZ4,
    )
    clocked_client.admin.topics.set_publish_rate("t", msgs=100)
    sending = Sending(lambda: producer.send_many(payloads))
    manual_clock.advance(0.5)
    outcome = sending.ends()
    assert isinstance(outcome, errors.Timeout)
    assert "100 of 300 messages were published" in outcome.__notes__
    assert whole_topic(clocked_client) == payloads[:100]


@pytest.mark.parametrize("way", ["remove", "raise"])
def test_a_change_lets_producers_go_on(clocked_client: pulsarx.Client, way: str) -> None:
    topics = clocked_client.admin.topics
    producer = clocked_client.create_producer("t")
    topics.set_publish_rate("t", msgs=1)
    producer.send(b"0")
    sending = Sending(lambda: producer.send(b"1"))
    assert sending.waits()
    if way == "remove":
        topics.remove_publish_rate("t")
    else:
        topics.set_publish_rate("t", msgs=2)
    assert isinstance(sending.ends(), pulsarx.MessageId)
    if way == "remove":
        send_all(producer, 100)
    else:
        late = Sending(lambda: producer.send(b"2"))
        assert late.waits()
        clocked_client.close()
        assert isinstance(late.ends(), errors.AlreadyClosed)


@pytest.mark.parametrize(
    "end",
    [
        lambda client, producer: producer.close(),
        lambda client, producer: client.close(),
        lambda client, producer: client.admin.topics.delete("t", force=True),
    ],
)
@pytest.mark.parametrize("send", [lambda producer: producer.send(b"late"), many])
def test_closing_ends_the_wait(
    clocked_client: pulsarx.Client, end: Callable[..., Any], send: Callable[[Any], Any]
) -> None:
    producer = clocked_client.create_producer("t", batching_max_messages=2)
    clocked_client.admin.topics.set_publish_rate("t", msgs=1)
    producer.send(b"0")
    sending = Sending(lambda: send(producer))
    assert sending.waits()
    end(clocked_client, producer)
    assert isinstance(sending.ends(), errors.AlreadyClosed)


def test_fencing_ends_the_wait(clocked_client: pulsarx.Client) -> None:
    producer = clocked_client.create_producer("t")
    clocked_client.admin.topics.set_publish_rate("t", msgs=1)
    producer.send(b"0")
    sending = Sending(lambda: producer.send(b"late"))
    mode = pulsarx.ProducerAccessMode.ExclusiveWithFencing
    clocked_client.create_producer("t", access_mode=mode)
    assert isinstance(sending.ends(), errors.ProducerFenced)


def test_ctrl_c_ends_the_wait_and_sends_nothing(folder: Path) -> None:
    program = """
import os, signal, sys, threading, pulsarx

sys.path.insert(0, sys.argv[2])
from sleeping_thread import until_asleep

client = pulsarx.Client(sys.argv[1], durability="os")
consumer = client.subscribe("t", "s")
producer = client.create_producer("t", send_timeout_millis=0, batching_max_messages=2)
client.admin.topics.set_publish_rate("t", bytes=1)


def strike():
    until_asleep(threading.main_thread())
    os.kill(os.getpid(), signal.SIGINT)


producer.send(bytes(5000))
for send in (lambda: producer.send(b"late"), lambda: producer.send_many([b"late"] * 5)):
    threading.Thread(target=strike).start()
    try:
        send()
    except pulsarx.InterruptedByKeyboard:
        print("interrupted")
client.admin.topics.remove_publish_rate("t")
producer.send(b"in time")
print(len(consumer.receive(60_000).data()), consumer.receive(60_000).data().decode())
client.close()
"""
    helpers = Path(str(sleeping_thread.__file__)).parent
    assert run_program(program, folder, helpers) == ["interrupted", "interrupted", "5000 in time"]


def test_room_for_the_backlog_and_the_rate_are_waited_for_both(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    clocked_client.subscribe("t", "s").close()
    producer = clocked_client.create_producer("t", send_timeout_millis=0)
    topics.set_publish_rate("t", msgs=1)
    producer.send(bytes(5000))
    topics.set_backlog_quota("t", limit_size=1000)
    sending = Sending(lambda: producer.send(b"late"))
    manual_clock.advance(5)
    assert sending.waits()  # for room
    topics.remove_publish_rate("t")
    assert sending.waits()
    topics.set_publish_rate("t", msgs=1)
    topics.remove_backlog_quota("t")
    assert isinstance(sending.ends(), pulsarx.MessageId)
    late = Sending(lambda: producer.send(b"later"))
    assert late.waits()  # for the rate
    manual_clock.advance(1)
    assert isinstance(late.ends(), pulsarx.MessageId)


def test_what_waits_for_company_goes_out_while_the_rate_is_used_up(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    clocked_client.admin.namespaces.set_publish_rate(NAMESPACE, msgs=1)
    batching = clocked_client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=100
    )
    told = Told()
    batching.send_async(b"0", told)
    clocked_client.create_producer("t").send(b"1")
    manual_clock.advance(0.1)
    assert [result for result, _ in told.results] == [Result.Ok]
    batching.close()


def test_letters_do_not_wait_and_are_counted(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics = clocked_client.admin.topics
    policy = pulsarx.ConsumerDeadLetterPolicy(
        max_redeliver_count=1, dead_letter_topic="letters", initial_subscription_name="l"
    )
    consumer = clocked_client.subscribe(
        "t", "s", ConsumerType.Shared, dead_letter_policy=policy,
        negative_ack_redelivery_delay_ms=100,
    )  # fmt: skip
    clocked_client.create_producer("letters").close()
    topics.set_publish_rate("letters", msgs=1)
    with clocked_client.create_producer("t") as producer:
        send_all(producer, 3)
    for _ in range(2):
        for message in drain(consumer):
            consumer.negative_acknowledge(message)
        manual_clock.advance(0.1)
    inspect(clocked_client).settle()
    assert sorted(payloads(clocked_client.subscribe("letters", "l"))) == numbers(3)
    letters = clocked_client.create_producer("letters")
    sending = Sending(lambda: letters.send(b"late"))
    manual_clock.advance(2)
    assert sending.waits()
    manual_clock.advance(1)
    sending.ends()


def test_reconsuming_later_does_not_wait(clocked_client: pulsarx.Client) -> None:
    consumer = clocked_client.subscribe("t", "s", ConsumerType.Shared, retry_enable=True)
    clocked_client.admin.namespaces.set_publish_rate(NAMESPACE, msgs=3)
    with clocked_client.create_producer("t") as producer:
        producer.send_many(numbers(3))
    first, *rest = drain(consumer)
    consumer.reconsume_later(first, 1)
    clocked_client.admin.namespaces.set_publish_rate(NAMESPACE, msgs=1)
    for message in rest:
        assert Sending(lambda each=message: consumer.reconsume_later(each, 1)).ends() is None


def test_what_a_callback_sends_waits_for_its_turn_without_it(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = clocked_client.create_producer("t")
    clocked_client.admin.topics.set_publish_rate("t", msgs=1)
    told = Told()
    producer.send_async(b"0", lambda *_: producer.send_async(b"1", told))
    manual_clock.advance(0)
    assert told.results == []
    sending = Sending(lambda: producer.send(b"2"))
    manual_clock.advance(1)
    assert [result for result, _ in told.results] == [Result.Ok]
    assert sending.waits()
    manual_clock.advance(1)
    assert isinstance(sending.ends(), pulsarx.MessageId)


def test_the_topic_wins_over_its_namespace(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    topics, namespaces = clocked_client.admin.topics, clocked_client.admin.namespaces
    producer = clocked_client.create_producer("t")
    steps: list[tuple[Callable[[], object], int]] = [
        (lambda: namespaces.set_publish_rate(NAMESPACE, msgs=4), 4),
        (lambda: topics.set_publish_rate("t", msgs=2), 2),
        (lambda: topics.remove_publish_rate("t"), 4),
    ]
    for change, expected in steps:
        change()
        manual_clock.advance(1)
        send_all(producer, expected)
        sending = Sending(lambda: producer.send(b"late"))
        assert sending.waits()
        manual_clock.advance(1)
        sending.ends()
    topics.set_publish_rate("t")  # none, whatever the namespace says
    send_all(producer, 20)


def test_rates_are_kept_and_set_from_other_processes_and_not_by_readers(
    folder: Path, open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    owner = open_client(clock=manual_clock)
    owner.create_producer("t").close()
    there = Admin.at(folder)
    there.topics.set_publish_rate("t", 2, 1000)
    there.namespaces.set_subscribe_rate(NAMESPACE, 3, 60)
    beside = open_client(read_only=True, clock=manual_clock)
    for admin in (owner.admin, there, beside.admin):
        assert admin.topics.get_publish_rate("t") == {"msgs": 2, "bytes": 1000}
        assert admin.namespaces.get_publish_rate(NAMESPACE) is None
        assert admin.topics.get_subscribe_rate("t") is None
        found = admin.namespaces.get_subscribe_rate(NAMESPACE)
        assert found == {"per_consumer": 3, "period_seconds": 60}
    for call in ("remove_publish_rate", "remove_subscribe_rate"):
        with pytest.raises(errors.OperationNotSupported):
            getattr(beside.admin.topics, call)("t")
    beside.close()
    owner.close()
    again = open_client(clock=manual_clock)
    producer = again.create_producer("t")
    send_all(producer, 2)
    sending = Sending(lambda: producer.send(b"late"))
    assert sending.waits()
    again.close()
    assert isinstance(sending.ends(), errors.AlreadyClosed)


@pytest.mark.parametrize(
    ("call", "wrong", "text"),
    [
        ("publish_rate", {"msgs": -2}, "msgs"),
        ("publish_rate", {"bytes": 1.0}, "bytes"),
        ("publish_rate", {"msgs": 2**31}, "msgs"),
        ("subscribe_rate", {"per_consumer": -2}, "per_consumer"),
        ("subscribe_rate", {"per_consumer": True}, "per_consumer"),
        ("subscribe_rate", {"per_consumer": 1, "period": 0}, "period"),
    ],
)
def test_a_rate_is_a_rate(
    memory_client: pulsarx.Client, call: str, wrong: dict[str, Any], text: str
) -> None:
    memory_client.create_producer("t").close()
    with pytest.raises(ValueError, match=text):
        getattr(memory_client.admin.topics, f"set_{call}")("t", **wrong)
    assert getattr(memory_client.admin.topics, f"get_{call}")("t") is None


def test_threads_above_the_rate_lose_and_double_nothing(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    clocked_client.admin.namespaces.set_publish_rate(NAMESPACE, msgs=9)
    producers = [
        clocked_client.create_producer(
            "t", send_timeout_millis=0, batching_enabled=batching, batching_max_messages=3
        )
        for batching in (False, True)
    ]

    def send(producer: Any, begin: int) -> None:
        for at in range(begin, begin + 30, 3):
            if at % 2:
                producer.send_many(numbers(3, at))
                continue
            for payload in numbers(3, at):
                producer.send(payload)

    threads = [threading.Thread(target=send, args=(producers[at % 2], 30 * at)) for at in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        for thread in threads:
            until_asleep(thread)
        manual_clock.advance(1)
    for thread in threads:
        thread.join()
    assert sorted(whole_topic(clocked_client), key=int) == numbers(120)


# Subscribing ------------------------------------------------------------------------------------


def test_a_consumer_may_subscribe_so_often_a_period(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    clocked_client.admin.namespaces.set_subscribe_rate(NAMESPACE, per_consumer=2, period=30)

    def subscribe(name: str) -> None:
        clocked_client.subscribe("t", "s", consumer_name=name).close()

    subscribe("a")
    subscribe("a")
    with pytest.raises(errors.NotAllowedError, match=r"consumer a .* 2 times in 30 s"):
        subscribe("a")
    subscribe("b")
    subscribe("")  # a generated name
    clocked_client.create_reader("t", pulsarx.MessageId.latest).close()
    clocked_client.subscribe("other", "s", consumer_name="a").close()  # of another topic
    manual_clock.advance(29.999)
    with pytest.raises(errors.NotAllowedError):
        subscribe("a")
    manual_clock.advance(0.001)
    subscribe("a")
    subscribe("a")
    clocked_client.admin.topics.set_subscribe_rate("t", per_consumer=3)
    subscribe("a")
    with pytest.raises(errors.NotAllowedError):
        subscribe("a")
    clocked_client.admin.topics.set_subscribe_rate("t")  # none, whatever the namespace says
    subscribe("a")
    clocked_client.admin.topics.remove_subscribe_rate("t")
    with pytest.raises(errors.NotAllowedError):
        subscribe("a")
    clocked_client.admin.namespaces.remove_subscribe_rate(NAMESPACE)
    subscribe("a")


def test_a_refused_subscription_is_not_made(clocked_client: pulsarx.Client) -> None:
    topics = clocked_client.admin.topics
    clocked_client.create_producer("t").close()
    topics.set_subscribe_rate("t", per_consumer=1)
    clocked_client.subscribe("t", "s", consumer_name="a").close()
    with pytest.raises(errors.NotAllowedError):
        clocked_client.subscribe("t", "other", consumer_name="a")
    assert topics.get_subscriptions("t") == ["s"]
