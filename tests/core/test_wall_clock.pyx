"""Waits are measured by monotonic time: the time of day may be set back meanwhile. A clock of our
own stands for the system's."""

import asyncio
import threading

from libc.stdint cimport int64_t

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground.clock_core cimport SystemClockCore
from sleeping_thread import until_asleep

HOUR_MS = 3_600_000
PATIENCE_SECONDS = 30


cdef class SettableClock(SystemClockCore):
    cdef public int64_t set_back_ms

    cdef int64_t now(self) noexcept:
        return SystemClockCore.now(self) - self.set_back_ms


class Run:
    """A client with such a clock."""

    def __enter__(self):
        self.clock = SettableClock()
        self.client = pulsarx.Client("memory:set-back", clock=self.clock)
        return self

    def __exit__(self, *_):
        self.client.shutdown()
        self.clock.stop()

    def outcome(self, function):
        """What it returns or raises in a thread, while it waits in which the time is set back."""
        found = []

        def work():
            try:
                found.append(function())
            except Exception as error:
                found.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        until_asleep(thread)
        self.clock.set_back_ms = HOUR_MS
        thread.join(PATIENCE_SECONDS)
        assert found, "it still waits"
        return found[0]


def test_a_send_waits_for_the_publish_rate_no_longer_than_its_period():
    """It used to wait for longer than its send timeout: until the time of day was there again."""
    with Run() as run:
        producer = run.client.create_producer("t", send_timeout_millis=0)
        run.client.admin.topics.set_publish_rate("t", msgs=1)
        producer.send(b"0")
        assert isinstance(run.outcome(lambda: producer.send(b"1")), pulsarx.MessageId)


def test_a_send_that_is_held_times_out():
    with Run() as run:
        producer = run.client.create_producer("t", send_timeout_millis=500)
        run.client.admin.topics.set_publish_rate("t", bytes=1)
        producer.send(b"x" * 100_000)        # the periods of a day pay for it
        assert isinstance(run.outcome(lambda: producer.send(b"1")), errors.Timeout)


def test_a_queued_send_that_is_held_times_out():
    """Of asyncio: no thread waits with it."""
    with Run() as run:
        run.client.admin.topics.create_non_partitioned_topic("t")
        run.client.admin.topics.set_publish_rate("t", bytes=1)

        async def main():
            from pulsarx import aio

            client = await aio.Client.open("memory:set-back")
            producer = await client.create_producer("t", send_timeout_millis=500)
            await producer.send(b"x" * 100_000)
            sent = asyncio.ensure_future(producer.send(b"1"))
            await asyncio.sleep(0)           # it is queued
            run.clock.set_back_ms = HOUR_MS
            try:
                await asyncio.wait_for(sent, PATIENCE_SECONDS)
            except errors.Timeout:
                return True
            finally:
                await client.close()

        assert asyncio.run(main())


def test_a_consumer_waits_for_the_dispatch_rate_no_longer_than_its_period():
    with Run() as run:
        producer = run.client.create_producer("t")
        producer.send(b"0")
        producer.send(b"1")
        run.client.admin.topics.set_dispatch_rate("t", msgs=1)
        consumer = run.client.subscribe(
            "t", "s", initial_position=pulsarx.InitialPosition.Earliest)
        assert consumer.receive().data() == b"0"
        assert run.outcome(lambda: consumer.receive().data()) == b"1"


def test_an_open_batch_goes_out_after_its_delay():
    """It used to stay open until the time of day was there again."""
    told = threading.Event()
    with Run() as run:
        producer = run.client.create_producer(
            "t", batching_enabled=True, batching_max_publish_delay_ms=500)
        producer.send_async(b"x", lambda *_: told.set())
        run.clock.set_back_ms = HOUR_MS
        assert told.wait(PATIENCE_SECONDS)


KINDS = (pulsarx.ConsumerType.Exclusive, pulsarx.ConsumerType.Shared,
         pulsarx.ConsumerType.KeyShared)


def test_a_negative_acknowledgement_waits_for_its_delay():
    """It used to wait until the time of day was there again."""
    for kind in KINDS:
        with Run() as run:
            consumer = run.client.subscribe(
                "t", "s", kind, negative_ack_redelivery_delay_ms=200)
            run.client.create_producer("t").send(b"x")
            consumer.negative_acknowledge(consumer.receive(PATIENCE_SECONDS * 1000))
            run.clock.set_back_ms = HOUR_MS
            again = consumer.receive(PATIENCE_SECONDS * 1000)
            assert again.redelivery_count() == 1


def is_empty(consumer):
    try:
        consumer.receive(0)
    except errors.Timeout:
        return True
    return False


def set_forward(run, consumer, producer):
    """Set the time of day forward, and have the subscription look at its deadlines."""
    run.clock.set_back_ms = -HOUR_MS
    producer.send(b"y")
    found = consumer.receive(PATIENCE_SECONDS * 1000)
    assert found.data() == b"y"
    consumer.negative_acknowledge(found)


def test_a_time_of_day_that_is_set_forward_ends_no_acknowledgement_timeout():
    """The message used to come again at once, though its consumer was still at work."""
    for kind in KINDS:
        with Run() as run:
            consumer = run.client.subscribe(
                "t", "s", kind, unacked_messages_timeout_ms=600_000,
                negative_ack_redelivery_delay_ms=100)
            producer = run.client.create_producer("t")
            producer.send(b"x")
            consumer.receive(PATIENCE_SECONDS * 1000)
            set_forward(run, consumer, producer)
            again = consumer.receive(PATIENCE_SECONDS * 1000)
            assert (again.data(), again.redelivery_count()) == (b"y", 1)
            assert is_empty(consumer)


def test_a_delayed_message_comes_at_its_time_of_day():
    """What a producer names is a time of day, which may be set."""
    with Run() as run:
        consumer = run.client.subscribe(
            "t", "s", pulsarx.ConsumerType.Shared, negative_ack_redelivery_delay_ms=100)
        producer = run.client.create_producer("t")
        producer.send(b"x", deliver_at=run.clock.now_ms() + HOUR_MS // 2)
        assert is_empty(consumer)
        set_forward(run, consumer, producer)
        found = {consumer.receive(PATIENCE_SECONDS * 1000).data() for _ in range(2)}
        assert found == {b"x", b"y"}
