"""Facts about the library's locks, conditions and events."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pulsarx._pycore.ground.collector_paused import CollectorPaused
from pulsarx._pycore.ground.locks import Condition, Event, Lock, RLock

LONG_SECONDS = 60


def test_what_a_signal_handler_notifies_while_the_main_thread_waits_is_heard() -> None:
    """It was lost between two sleeps of the wait, which went on to its end."""
    condition = Condition()
    main = threading.get_ident()

    def interrupt() -> None:
        with condition:  # given back by the wait
            signal.pthread_kill(main, signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, lambda *_: condition.notify_all())
    thread = threading.Thread(target=interrupt)
    try:
        with condition:
            thread.start()
            assert condition.wait(LONG_SECONDS)
    finally:
        thread.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(("lock", "again"), [(Lock(), False), (RLock(), True)])
def test_a_lock_is_had_by_one_thread_and_a_reentrant_one_by_it_again(
    lock: Lock, again: bool
) -> None:
    found: list[bool] = []
    with lock:
        assert lock.locked() and lock.acquire(blocking=False) is again
        other = threading.Thread(target=lambda: found.append(lock.acquire(False)))
        other.start()
        other.join()
        if again:
            lock.release()
    assert found == [False] and not lock.locked()
    with pytest.raises(RuntimeError, match="does not hold"):
        lock.release()


def test_a_condition_gives_all_of_a_reentrant_lock_back_while_it_waits() -> None:
    lock = RLock()
    condition, had = Condition(lock), Event()

    def notify() -> None:
        with lock:
            had.set()
            condition.notify_all()

    thread = threading.Thread(target=notify)
    with lock, lock:
        thread.start()
        assert condition.wait_for(had.is_set, LONG_SECONDS)
        assert lock.locked()
    thread.join()
    assert not lock.locked()


def test_an_event_is_waited_for_until_its_time_is_over() -> None:
    event = Event()
    assert not event.wait(0.001)
    event.set()
    assert event.wait() and event.is_set()
    event.clear()
    assert not event.is_set()


@pytest.mark.parametrize("made", [Lock, RLock, Condition, CollectorPaused])
def test_a_block_gives_back_what_it_has_without_memory(made: Callable[[], Any]) -> None:
    """The call made a tuple, and where there was no memory for it the lock was held for ever."""
    memory = pytest.importorskip("_testcapi", reason="only Python's own tests let memory run out")
    lock = made()
    lock.__enter__()
    leave = lock.__exit__
    kept = [(number, number, number) for number in range(5000)]  # else Python has some in store
    memory.set_nomemory(0)
    try:
        leave(None, None, None)
    finally:
        memory.remove_mem_hooks()
    assert kept
    with lock:
        pass
