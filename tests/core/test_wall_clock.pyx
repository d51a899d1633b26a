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
