"""Facts about operations on files that take long because a test says so."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from support.waiting import wait_until

import pulsarx
from pulsarx.clock import monotonic_ms
from pulsarx.testing import broker, fault_plan


def test_a_flush_takes_as_long_as_the_clock_says():
    with broker() as shop, fault_plan() as plan:
        producer = shop.client.create_producer("orders")
        start_ms = shop.clock.now_ms()
        done: list[int] = []
        plan.delay("flush", seconds=5, clock=shop.clock)
        producer.send_async(b"one", lambda result, _: done.append(shop.clock.now_ms()))
        shop.clock.advance(4.999)
        assert (done, plan.stalled()) == ([], 1)
        assert shop.clock.next_due_ms() == start_ms + 5000
        shop.clock.advance(0.001)
        assert (done, plan.stalled()) == ([start_ms + 5000], 0)


def test_one_step_of_the_clock_goes_through_all_delays():
    with broker() as shop, fault_plan() as plan:
        producer = shop.client.create_producer("orders")
        start_ms = shop.clock.now_ms()
        done: list[int] = []
        plan.delay("flush", seconds=5, clock=shop.clock, sticky=True)
        for _ in range(3):
            producer.send_async(b"one", lambda result, _: done.append(shop.clock.now_ms()))
            shop.clock.advance(60)
        assert done == [start_ms + 5000 + number * 60_000 for number in range(3)]


def test_a_call_is_delayed_that_waits_in_a_thread(tmp_path: Path):
    clock = pulsarx.ManualClock()
    with pulsarx.Client(tmp_path, clock=clock) as client, fault_plan() as plan:
        producer = client.create_producer("orders")
        producer.send(b"one")
        plan.delay("flush", call=2, seconds=60, clock=clock)
        producer.send(b"two")
        sending = threading.Thread(target=producer.send, args=(b"three",))
        sending.start()
        wait_until(lambda: plan.stalled() == 1)
        clock.advance(59)
        assert plan.stalled() == 1
        clock.advance(1)
        sending.join(60)
        assert not sending.is_alive()


def test_a_flush_takes_so_long_in_real_time():
    with broker() as shop, fault_plan() as plan:
        producer = shop.client.create_producer("orders")
        plan.delay("flush", seconds=0.05)
        start_ms = monotonic_ms()
        producer.send(b"one")
        assert monotonic_ms() - start_ms >= 50


@pytest.mark.parametrize("end", ["release", "the block"])
def test_a_delay_ends_earlier(end: str):
    with broker() as shop:
        producer = shop.client.create_producer("orders")
        sending = threading.Thread(target=producer.send, args=(b"one",))
        with fault_plan() as plan:
            plan.delay("flush", seconds=1_000_000)
            sending.start()
            wait_until(lambda: plan.stalled() == 1)
            if end == "release":
                plan.release()
                sending.join(60)
        sending.join(60)
        assert not sending.is_alive()


def test_a_delay_says_what_is_wrong():
    with fault_plan() as plan:
        with pytest.raises(ValueError, match="seconds"):
            plan.delay("flush", seconds=-1)
        with pytest.raises(ValueError, match="op: one of"):
            plan.delay("swim", seconds=1)
