"""The mutexes of producers and subscriptions, by the one of a subscription: two threads are never
inside, and who waits has its turn."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore

PATIENCE = 60.0


@contextmanager
def no_switch_but_by_waiting() -> Iterator[None]:
    """No thread takes the GIL from another that does not give it up."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(10 * PATIENCE)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def let_others_run() -> None:
    threading.Event().wait(0.001)


def test_two_threads_are_never_inside() -> None:
    core = SubscriptionCore(None, None)
    inside: list[int] = []
    most: list[int] = []

    def work() -> None:
        inside.append(1)
        let_others_run()
        most.append(len(inside))
        inside.pop()

    threads = [
        threading.Thread(target=lambda: [core.locked(work) for _ in range(20)]) for _ in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join(PATIENCE)
    assert most == [1] * 80


def test_a_thread_that_waits_has_its_turn_though_another_comes_again_and_again() -> None:
    core = SubscriptionCore(None, None)
    came: list[bool] = []
    waiting = threading.Thread(target=lambda: core.locked(lambda: came.append(True)))
    until = time.monotonic() + PATIENCE
    with no_switch_but_by_waiting():
        core.locked(waiting.start)
        # It is awake only while this thread is inside: each time another was quicker.
        while not came and time.monotonic() < until:
            core.locked(let_others_run)
    assert came
    waiting.join(PATIENCE)


def test_one_that_threads_of_the_parent_wait_for_is_free_in_a_forked_child() -> None:
    core = SubscriptionCore(None, None)

    def fork() -> int:
        let_others_run()  # it looks, and has to wait on
        return os.fork()

    def start() -> None:
        waiting.start()
        let_others_run()  # it comes to wait

    waiting = threading.Thread(target=lambda: core.locked(let_others_run))
    with no_switch_but_by_waiting():
        core.locked(start)
        child = core.locked(fork)
        if child == 0:
            signal.alarm(int(PATIENCE))
            # What was given to the thread that waits is for nobody here.
            core.locked(let_others_run)
            core.locked(let_others_run)
            os._exit(0)
    waiting.join(PATIENCE)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
