"""JobQueue: jobs that must not be lost, whenever they come."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from sleeping_thread import until_asleep

import pulsarx
from pulsarx._pycore.ground.interval_job import IntervalJob
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.clock import system_clock


@pytest.fixture(params=[RuntimeError("can't start new thread"), MemoryError()], ids=repr)
def no_threads(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[pytest.MonkeyPatch]:
    """As where the system has no more of them, where Python 3.12 leaves, and without memory."""
    refuse_threads(monkeypatch, request.param)
    yield monkeypatch
    monkeypatch.undo()


@pytest.mark.parametrize("kind", ["job", "flush"])
def test_a_queue_that_was_refused_a_thread_asks_again(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its jobs waited for the next one, which never came where it was a flush: what else asked for
    one found that it had been asked for."""
    start, refused, ran = _thread.start_new_thread, threading.Event(), threading.Event()

    def refuse_once(function: Callable[..., object], arguments: tuple[object, str]) -> int:
        if arguments[1] == "jobs" and not refused.is_set():
            refused.set()
            raise RuntimeError("can't start new thread")
        return start(function, arguments)

    monkeypatch.setattr(_thread, "start_new_thread", refuse_once)
    jobs = JobQueue("jobs")
    if kind == "job":
        jobs.post(ran.set)
    else:
        IntervalJob(system_clock(), jobs, 1, ran.set).arm()
    assert ran.wait(60) and refused.is_set()
    jobs.close()


def test_a_job_that_ran_out_of_memory_runs_once_more() -> None:
    """Nobody puts it again."""
    turns: list[int] = []

    def run() -> None:
        turns.append(len(turns))
        if len(turns) == 1:
            raise MemoryError

    jobs = JobQueue("jobs")
    jobs.post(run)
    jobs.close()
    assert turns == [0, 1]


def test_a_flush_without_memory_is_due_again() -> None:
    """It was forgotten, until something else asked for one."""
    turns, done = [], threading.Event()

    def flush() -> None:
        turns.append(None)
        if len(turns) < 4:
            raise MemoryError
        done.set()

    jobs = JobQueue("jobs")
    IntervalJob(system_clock(), jobs, 1, flush).arm()
    assert done.wait(60)
    jobs.close()


def test_without_a_thread_jobs_wait_for_one(no_threads: pytest.MonkeyPatch) -> None:
    done: list[int] = []
    jobs = JobQueue("jobs")
    jobs.post(lambda: done.append(1))
    assert done == []  # it may want what this caller holds
    no_threads.undo()
    jobs.post(lambda: done.append(2))
    jobs.wait()
    assert done == [1, 2]
    jobs.close()


def test_without_a_thread_who_waits_or_closes_runs_the_jobs(no_threads: object) -> None:
    done: list[int] = []
    jobs = JobQueue("jobs")
    jobs.post(lambda: done.append(1))
    jobs.wait()
    assert done == [1]
    jobs.post(lambda: jobs.post(lambda: done.append(3)))
    jobs.post(lambda: done.append(2))
    jobs.close()
    assert sorted(done) == [1, 2, 3]


class HeldJobs:
    """A queue that was refused its thread, and whose jobs another thread runs, which is held."""

    def __init__(self, how: str) -> None:
        self.queue = JobQueue("jobs")
        self.begun, self.free = threading.Event(), threading.Event()
        self.ran: list[tuple[str, int]] = []
        self.queue.post(self._hold)
        self.queue.post(lambda: self.note("second"))
        self.caller = threading.Thread(target=getattr(self.queue, how))
        self.caller.start()
        assert self.begun.wait(60)

    def _hold(self) -> None:
        self.note("first")
        self.begun.set()
        assert self.free.wait(60)

    def note(self, name: str) -> None:
        self.ran.append((name, threading.get_ident()))

    def let_go(self) -> list[str]:
        """What ran, all of it in one thread."""
        self.free.set()
        self.caller.join()
        assert len({thread for _, thread in self.ran}) == 1
        return [name for name, _ in self.ran]


@pytest.mark.parametrize("how", ["wait", "close"])
def test_the_clock_starts_no_second_thread_beside_one_that_runs_the_jobs(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of them ran jobs at once, out of order."""
    started = refuse_first(monkeypatch)
    held = HeldJobs(how)
    started.is_open = True
    held.queue.start_again()  # as the clock does, of its own accord as well
    held.queue.post(lambda: held.note("third"))
    assert held.let_go() == ["first", "second", "third"]
    assert not started.count
    held.queue.close()


@pytest.mark.parametrize("how", ["wait", "close"])
def test_closing_returns_when_the_jobs_that_another_thread_runs_are_done(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It returned while one of them still ran, and ran the others meanwhile."""
    refuse_first(monkeypatch)
    held = HeldJobs(how)
    freed: list[bool] = []

    def close() -> None:
        held.queue.close()
        freed.append(held.free.is_set())

    closer = threading.Thread(target=close)
    closer.start()
    until_asleep(closer)
    assert held.let_go() == ["first", "second"]
    closer.join()
    assert freed == [True]
    assert held.queue.closed


def test_a_thread_that_is_granted_later_runs_what_comes_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = refuse_first(monkeypatch)
    jobs = JobQueue("jobs")
    jobs.post(lambda: None)
    jobs.wait()
    started.is_open = True
    ran: list[int] = []
    jobs.post(lambda: ran.append(threading.get_ident()))
    jobs.close()
    assert started.count == 1
    assert ran and ran[0] != threading.get_ident()


class Started:
    """How many threads of a queue were started, and whether any may be."""

    is_open = False
    count = 0


def refuse_first(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The system has no thread for the queue until the answer says that it is open."""
    start, started = _thread.start_new_thread, Started()

    def refuse(function: Callable[..., object], arguments: tuple[object, str]) -> int:
        if arguments[1:] == ("jobs",):
            if not started.is_open:
                raise RuntimeError("can't start new thread")
            started.count += 1
        return start(function, arguments)

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    return started


def test_a_request_without_an_owner_is_done_without_a_thread(
    tmp_path: Path, no_threads: pytest.MonkeyPatch
) -> None:
    """The folder used to stay locked: closing failed with the thread that was never there."""
    no_threads.undo()
    folder = tmp_path / "data"
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"1")
    refuse_threads(no_threads, RuntimeError("can't start new thread"))
    arguments = {"topics": ["t"], "name": "s", "position": "earliest"}
    assert ask_owner(folder, "subscriptions.create", arguments) == {"created": 1, "found": {}}
    arguments = {"name": "s", "positions": {"persistent://public/default/t": [2, 1]}}
    ask_owner(folder, "subscriptions.move", arguments)
    no_threads.undo()
    with pulsarx.Client(folder) as client:
        assert client.subscribe("t", "s")


def test_a_client_without_threads_stores_what_it_is_given(
    tmp_path: Path, no_threads: pytest.MonkeyPatch
) -> None:
    """It used to fail half open, with the folder locked."""
    folder = tmp_path / "data"
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=5)
    with pulsarx.Client(folder, broker_options=options) as client:
        producer = client.create_producer("t")
        for number in range(12):
            producer.send(b"%d" % number)
    no_threads.undo()
    with pulsarx.Client(folder) as client:
        ledgers = client.admin.topics.stats("t")["ledgers"]
        assert [each["entries"] for each in ledgers] == [5, 5, 2]


def refuse_threads(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(threading, "_start_new_thread", refuse)
    monkeypatch.setattr(_thread, "start_new_thread", refuse)


def test_a_job_is_over_when_its_objects_are_gone() -> None:
    """What the end of these puts, as that of the last producer puts what closes its client, had not
    been put yet when who waited for the job went on."""
    jobs, waited, ran = JobQueue("jobs"), threading.Event(), threading.Event()

    class Kept:
        def __del__(self) -> None:
            waited.wait(0.1)
            jobs.post(ran.set)

    jobs.post(partial(id, Kept()))
    jobs.wait()
    waited.set()
    jobs.wait()
    assert ran.is_set()
    jobs.close()
