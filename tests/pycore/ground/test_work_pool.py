"""Facts about the threads that run listeners, futures and consumer events."""

from __future__ import annotations

import threading

from pulsarx._pycore.ground.work_pool import SerialWork, WorkPool

WAIT = 60


def test_what_falls_due_in_a_step_that_a_close_overtakes_is_done_nevertheless() -> None:
    """The step was posted again behind the end of all threads, and never ran: a consumer that was
    closed with its client while a future of it was served left the others waiting for ever. Found
    by tests/model/waking_model.py."""
    pool = WorkPool(1)
    running, closed, done = threading.Event(), threading.Event(), threading.Event()

    def step() -> bool:
        if running.is_set():
            done.set()
        running.set()
        closed.wait(WAIT)
        return False

    work = SerialWork(pool, step, "a step")
    pool.grow()
    work.due()
    assert running.wait(WAIT)
    work.due()
    pool.close()
    closed.set()
    assert done.wait(WAIT / 2)


def test_a_step_that_ran_out_of_memory_is_taken_once_more() -> None:
    """Who has it run when it is due may not ask again."""
    turns: list[int] = []

    def step() -> bool:
        turns.append(len(turns))
        if len(turns) == 1:
            raise MemoryError
        return False

    pool = WorkPool(1)
    pool.grow()
    SerialWork(pool, step, "step").due()
    pool.wait()
    pool.close()
    assert turns == [0, 1]


def test_a_step_runs_as_often_as_it_falls_due_behind_its_begin() -> None:
    pool = WorkPool(1)
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        if count < 5:
            work.due()
        return count in (5, 6)

    work = SerialWork(pool, step, "a step")
    pool.grow()
    work.due()
    assert pool.wait()
    assert count == 7
    pool.close()


def test_a_step_that_has_more_to_do_goes_on_when_the_pool_is_closed_meanwhile() -> None:
    """It was posted behind the end of all threads, and what was left was never done."""
    pool = WorkPool(1)
    running, closed, done = threading.Event(), threading.Event(), threading.Event()

    def step() -> bool:
        if running.is_set():
            done.set()
            return False
        running.set()
        return closed.wait(WAIT)

    work = SerialWork(pool, step, "a step")
    pool.grow()
    work.due()
    assert running.wait(WAIT)
    pool.close()
    closed.set()
    assert done.wait(WAIT / 2)
