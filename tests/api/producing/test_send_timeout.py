"""Facts about send_timeout_millis: what is told of a message that waits for the disk too long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sleeping_thread import until_asleep
from topic_reading import numbers, whole_topic

import pulsarx
from pulsarx import Result, errors
from pulsarx.testing.faults import FaultPlan, fault_plan

WAIT = 60


class Answers:
    """Results of callbacks, in the order they came."""

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._came = threading.Semaphore(0)

    def __call__(self, result: Result, _: object) -> None:
        self.results.append(result)
        self._came.release()

    def wait(self, count: int = 1) -> list[Result]:
        for _ in range(count):
            assert self._came.acquire(timeout=WAIT)
        return self.results


@pytest.fixture
def manual_clock() -> pulsarx.ManualClock:
    """It waits for a disk that stands still as long as the test does."""
    return pulsarx.ManualClock(settle_seconds=600)


@pytest.fixture
def client(folder: Path, manual_clock: pulsarx.ManualClock) -> Iterator[pulsarx.Client]:
    with pulsarx.Client(folder, clock=manual_clock, durability="sync") as opened:
        yield opened


@contextmanager
def stalled_by_a_callback_flush(producer: pulsarx.Producer) -> Iterator[FaultPlan]:
    """The thread of the callbacks flushes, and the disk does not answer."""
    with fault_plan() as plan:
        plan.stall("flush", sticky=True)
        producer.send_async(b"stuck", None)
        while not plan.stalled():
            pass
        try:
            yield plan
        finally:
            plan.release()


@contextmanager
def advancing(clock: pulsarx.ManualClock, seconds: float) -> Iterator[None]:
    """advance waits for the thread of the callbacks, which waits for the disk."""
    thread = threading.Thread(target=clock.advance, args=(seconds,))
    thread.start()
    yield
    thread.join(WAIT)
    assert not thread.is_alive()


def other_thread(call: object) -> tuple[threading.Thread, list[object]]:
    ended: list[object] = []

    def run() -> None:
        try:
            ended.append(call())  # type: ignore[operator]
        except errors.PulsarException as error:
            ended.append(type(error))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, ended


def test_the_callback_is_told_a_timeout_while_the_disk_does_not_answer(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    answers = Answers()
    producer = client.create_producer("t", send_timeout_millis=5000)
    producer.send(b"first")
    with stalled_by_a_callback_flush(producer) as plan:
        producer.send_async(b"late", answers)
        with advancing(manual_clock, 5):
            assert answers.wait() == [Result.Timeout]
            plan.release()
    with pytest.raises(errors.Timeout, match="may be stored all the same"):
        producer.flush()  # of the message without a callback
    assert answers.results == [Result.Timeout]
    assert whole_topic(client) == [b"first", b"stuck", b"late"]


def test_a_callback_of_a_timeout_does_not_wait_for_room(folder: Path) -> None:
    """It waited for the backlog quota of another topic, and with it the flush and close of its own
    producer."""
    answers = Answers()
    refused: list[Exception] = []
    with pulsarx.Client(folder) as client:
        full = client.create_producer("full")
        client.subscribe("full", "s").close()
        full.send(b"x" * 100)
        client.admin.topics.set_backlog_quota("full", limit_size=1, policy="producer_request_hold")
        producer = client.create_producer("t", send_timeout_millis=100)
        producer.send(b"first")

        def send_on(result: Result, message_id: object) -> None:
            try:
                full.send(b"sent on")
            except errors.PulsarException as error:
                refused.append(error)
            answers(result, message_id)

        with stalled_by_a_callback_flush(producer) as plan:
            producer.send_async(b"late", send_on)
            assert answers.wait() == [Result.Timeout]
            plan.release()
        assert [type(each) for each in refused] == [errors.ProducerBlockedQuotaExceededError]
        with pytest.raises(errors.Timeout):
            producer.close()  # of the message without a callback


def test_what_timed_out_is_told_by_the_next_flush_while_others_flush_too(folder: Path) -> None:
    """The thread of the callbacks had the error in hand while it flushed: a close in that moment
    ended as if nothing had been."""
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"first")
        for _ in range(10):
            producer = client.create_producer("t", send_timeout_millis=50)
            answers = Answers()
            with stalled_by_a_callback_flush(producer) as plan:
                producer.send_async(b"late", answers)
                assert answers.wait() == [Result.Timeout]
                plan.release()
            with pytest.raises(errors.Timeout):
                producer.close()  # of the message without a callback


def test_before_the_timeout_nothing_is_told(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    answers = Answers()
    producer = client.create_producer("t", send_timeout_millis=5000)
    producer.send(b"first")
    with stalled_by_a_callback_flush(producer) as plan:
        producer.send_async(b"in time", answers)
        with advancing(manual_clock, 4.999):
            plan.release()
        assert answers.wait() == [Result.Ok]
    producer.flush()


def test_zero_waits_for_ever(client: pulsarx.Client, manual_clock: pulsarx.ManualClock) -> None:
    answers = Answers()
    producer = client.create_producer("t", send_timeout_millis=0)
    producer.send(b"first")
    with stalled_by_a_callback_flush(producer) as plan:
        producer.send_async(b"patient", answers)
        with advancing(manual_clock, 10_000_000):
            plan.release()
        assert answers.wait() == [Result.Ok]


def test_each_message_has_its_own_time(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    early, late = Answers(), Answers()
    producer = client.create_producer("t", send_timeout_millis=5000)
    producer.send(b"first")
    with stalled_by_a_callback_flush(producer) as plan:
        producer.send_async(b"early", early)
        manual_clock.set_now_ms(manual_clock.now_ms() + 3000)
        producer.send_async(b"late", late)
        with advancing(manual_clock, 2):
            assert early.wait() == [Result.Timeout]
            assert late.results == []
            plan.release()
        assert late.wait() == [Result.Ok]
    with pytest.raises(errors.Timeout):
        producer.flush()


def test_a_send_that_waits_for_the_flush_of_another_raises_timeout(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = client.create_producer("t", send_timeout_millis=5000)
    other = client.create_producer("t", send_timeout_millis=0)
    producer.send(b"first")
    with stalled_by_a_callback_flush(other) as plan:
        thread, ended = other_thread(lambda: producer.send(b"late"))
        while pending_messages(producer) < 1:
            pass
        with advancing(manual_clock, 5):
            thread.join(WAIT)
            assert ended == [errors.Timeout]
            plan.release()
    assert whole_topic(client) == [b"first", b"stuck", b"late"]
    producer.flush()  # its send was told


def pending_messages(producer: pulsarx.Producer) -> int:
    """How many messages of a producer are not durable yet."""
    return int(producer.publisher.pending_count)


def test_flush_raises_timeout_for_what_it_waits_for(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = client.create_producer("t", send_timeout_millis=5000)
    producer.send(b"first")
    with stalled_by_a_callback_flush(producer) as plan:
        thread, ended = other_thread(producer.flush)
        with advancing(manual_clock, 5):
            thread.join(WAIT)
            assert ended == [errors.Timeout]
            plan.release()


def test_what_timed_out_makes_room_in_the_queue(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """As in the official client: it is pending no more, so the send that waits for room goes on."""
    answers = Answers()
    producer = client.create_producer(
        "t", send_timeout_millis=5000, max_pending_messages=1, block_if_queue_full=True
    )
    producer.send(b"first")
    with stalled_by_a_callback_flush(producer) as plan:
        thread, ended = other_thread(lambda: producer.send_async(b"blocked", answers))
        with advancing(manual_clock, 5):
            thread.join(WAIT)
            assert ended == [None]
            assert answers.results == []
            plan.release()
        assert answers.wait() == [Result.Ok]
    with pytest.raises(errors.Timeout):
        producer.flush()
    assert whole_topic(client) == [b"first", b"stuck", b"blocked"]


def test_while_a_send_waits_for_room_other_threads_may_use_the_producer(
    client: pulsarx.Client,
) -> None:
    """It used to hold the producer's mutex: they could not even be refused."""
    producer = client.create_producer("t", max_pending_messages=2, block_if_queue_full=True)
    producer.send(b"first")
    with stalled_by_a_callback_flush(producer) as plan:
        producer.send_async(b"second", None)
        waiting, sent = other_thread(lambda: producer.send_async(b"third", None))
        changing, changed = other_thread(lambda: producer.deduplicate(None))
        changing.join(WAIT)
        assert changed == [None]
        assert sent == []
        plan.release()
        waiting.join(WAIT)
    producer.flush()
    assert whole_topic(client) == [b"first", b"stuck", b"second", b"third"]


def test_a_duplicate_of_what_timed_out_waits_for_the_disk(
    folder: Path, manual_clock: pulsarx.ManualClock
) -> None:
    """It was confirmed at once, as nothing was pending; a power cut took the message."""
    answers = Answers()
    options = pulsarx.BrokerOptions(broker_deduplication_enabled=True)
    with pulsarx.Client(
        folder, clock=manual_clock, durability="sync", broker_options=options
    ) as client:
        producer = client.create_producer("t", producer_name="p", send_timeout_millis=5000)
        producer.send(b"first")
        with fault_plan() as plan:
            plan.stall("flush", sticky=True)
            producer.send_async(b"late", answers, sequence_id=7)
            while not plan.stalled():
                pass
            with advancing(manual_clock, 5):
                assert answers.wait() == [Result.Timeout]
                thread, ended = other_thread(lambda: producer.send(b"late", sequence_id=7))
                until_asleep(thread)
                assert ended == []
                plan.release()
                thread.join(WAIT)
                assert len(ended) == 1
        assert whole_topic(client) == [b"first", b"late"]


def test_many_messages_time_out_once_each(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    answers = Answers()
    producer = client.create_producer(
        "t",
        send_timeout_millis=5000,
        batching_enabled=True,
        batching_max_messages=20,
        batching_max_publish_delay_ms=100_000,
    )
    other = client.create_producer("t")
    other.send(b"first")
    with stalled_by_a_callback_flush(other) as plan:
        for payload in numbers(100):
            producer.send_async(payload, answers)
        with advancing(manual_clock, 6):
            assert answers.wait(100) == [Result.Timeout] * 100
            plan.release()
    assert len(answers.results) == 100


def test_a_send_that_timed_out_makes_its_transaction_fail(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = client.create_producer("t", send_timeout_millis=1000)
    producer.send(b"before")
    transaction = client.new_transaction()
    with fault_plan() as plan:
        plan.stall("flush", sticky=True)
        answers = Answers()
        producer.send_async(b"a", answers, transaction=transaction)
        producer.send_open()
        while not plan.stalled():
            pass
        with advancing(manual_clock, 1.1):
            assert answers.wait() == [Result.Timeout]
            plan.release()
    with pytest.raises(errors.TransactionHasOperationFailed):
        transaction.commit()
    assert whole_topic(client, "t") == [b"before"]
