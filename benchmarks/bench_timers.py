"""Arming and cancelling timers while a million others are pending, and what ten million hold.

Run as a program, `bench_timers.py <count>` arms so many and prints the memory they take.
"""

from __future__ import annotations

import random
import sys

from bench_memory import resident
from floor_build import timers
from fresh_process import print_figures, run_fresh
from measurement import Measurement

START_MS = 1_704_067_200_000
MINUTE_MS = 60_000  # the default delay of a negative acknowledgement


class Wheel:
    """A wheel with timers of the next minute pending, in no order."""

    def __init__(self, measurement: Measurement) -> None:
        chance = random.Random(1)
        count = measurement.sizes.messages
        self.dues_ms = [START_MS + chance.randrange(MINUTE_MS) for _ in range(count)]
        self.pending = measurement.sizes.timers // 10
        self.kind = timers().Timers
        self.empty_anew()

    def empty_anew(self) -> None:
        self.timers = self.kind()
        self.timers.pass_time(START_MS)
        for number in range(self.pending):
            self.timers.insert(START_MS + number * 7919 % MINUTE_MS, number)


def bench_timer_insert(measurement: Measurement) -> None:
    wheel = Wheel(measurement)

    def path() -> None:
        insert = wheel.timers.insert
        for due_ms in wheel.dues_ms:
            insert(due_ms, due_ms)

    measurement.units("timer_insert", wheel.dues_ms, path, before=wheel.empty_anew)
    assert len(wheel.timers) == wheel.pending + len(wheel.dues_ms)


def bench_timer_cancel(measurement: Measurement) -> None:
    wheel = Wheel(measurement)
    handles: list[int] = []

    def arm() -> None:
        insert = wheel.timers.insert
        handles[:] = [insert(due_ms, due_ms) for due_ms in wheel.dues_ms]

    def path() -> None:
        cancel = wheel.timers.cancel
        for handle in handles:
            cancel(handle)

    arm()
    path()
    measurement.units("timer_cancel", handles, path, before=arm)
    assert len(wheel.timers) == wheel.pending


def bench_timer_memory(measurement: Measurement) -> None:
    count = measurement.sizes.timers

    def turn() -> float:
        return float(run_fresh(__file__, str(count))["resident"]) / 1e6

    measurement.values("timer_memory", turn, 3, f"{count} timers, resident")


def main(count: int) -> None:
    pending = timers().Timers()
    pending.pass_time(START_MS)
    pending.insert(START_MS, 0)
    before = resident()
    for number in range(1, count):
        pending.insert(START_MS + number * 7919 % MINUTE_MS, number)
    after = resident()
    assert len(pending) == count
    print_figures(resident=after["resident"] - before["resident"], owned=pending.memory_size())


if __name__ == "__main__":
    main(int(sys.argv[1]))
