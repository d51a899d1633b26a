"""Random histories of an owner and its guests, in one thread of control: a seed says who goes on,
what arrives, who is killed or stopped."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import process
import pytest
import seeds
from history import new_plan, run_plan

HISTORIES = 1000


def in_a_thread(work: Callable[[], None]) -> None:
    """As all of the broker: not by the main thread, where signals arrive."""
    failures: list[BaseException] = []

    def run() -> None:
        try:
            with process.simulation():
                work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def test_random_histories_keep_what_is_promised() -> None:
    seed = seeds.new_seed()

    def work() -> None:
        for number in range(seeds.scaled(HISTORIES)):
            plan = new_plan(seed * 1_000_000 + number)
            try:
                run_plan(plan)
            except BaseException:
                print(plan.text())
                raise

    in_a_thread(work)
