"""Facts about the threads that PulsarX starts for itself."""

from __future__ import annotations

import _thread
import os
import threading

import pytest
from child_process import ChildProcess
from collected import nothing_collected

from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.clock import SystemClock

LATE = """
import atexit, os, sys, threading
def who_runs():
    names = [each.name for each in threading.enumerate()]
    os.write(1, b"begun" if "late-1" in names else b"not begun")
atexit.register(who_runs)  # first: it is called last
def start():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # no thread begins while this one runs
    if sys.argv[1] == "pool":
        WorkPool(1, "late").grow()
    else:
        OwnThread(threading.Event().wait, "late-1").start()
if sys.argv[2] == "at exit":
    atexit.register(start)  # behind what PulsarX has done then
import pulsarx.clock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx._pycore.ground.work_pool import WorkPool
if sys.argv[2] != "at exit":
    start()
"""


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("when", ["before", "at exit"])
@pytest.mark.parametrize("what", ["pool", "thread"])
def test_a_thread_that_was_just_started_begins_before_the_interpreter_ends(
    what: str, when: str, turn: int
) -> None:
    """It took a state that was freed by then: `pulsarx serve` ended with SIGSEGV, once in a
    thousand interrupts on a busy machine."""
    with ChildProcess(LATE, what, when) as child:
        assert child.end() == ["begun"]


FINALIZING = """
import asyncio, sys, threading
import pulsarx.aio
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx._pycore.ground.work_pool import WorkPool

class Late:
    def __init__(self):
        self.itself = self  # so that it goes while what it names is there

    def __del__(self):
        print("finalizing" if sys.is_finalizing() else "not yet")
        {late}
        print("over")

async def open_client():
    return await pulsarx.aio.Client.open("memory:")

async def close(client):
    await client.close()

client = asyncio.run(open_client())
late = Late()
"""
AT_THE_END = {
    "jobs run in the caller's thread": """
        queue = JobQueue("late")
        queue.post(lambda: print("ran"))
        queue.wait()
    """,
    "a pool says that it has no thread": """
        try:
            WorkPool(1, "late").grow()
        except RuntimeError:
            print("ran")
    """,
    "so does a thread": """
        try:
            OwnThread(print, "late").start()
        except RuntimeError:
            print("ran")
    """,
    "no control thread is kept ready": """
        control_plane.hold()
        control_plane.perform(print, ("ran",))
    """,
    "a loop performs what a coroutine awaits": """
        asyncio.run(close(client))
        print("ran")
    """,
}


@pytest.mark.parametrize("what", AT_THE_END)
def test_no_finalizer_waits_for_a_thread_while_the_interpreter_ends(what: str) -> None:
    """None begins then. Before Python 3.12 it seemed to be started, and was waited for for ever;
    and what a loop posted was dropped."""
    with ChildProcess(FINALIZING.replace("{late}", AT_THE_END[what].strip())) as child:
        assert child.end() == ["finalizing", "ran", "over"]


def test_a_thread_starts_where_python_starts_none_as_the_main_thread_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python 3.12 and later, where threads live on and exit hooks run that use clients."""

    def refuse(*_: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    names: list[str] = []
    thread = OwnThread(lambda: names.append(threading.current_thread().name), "own")
    thread.start()
    thread.join()
    assert names == ["own"]


RAISING_HOOK = """
import _thread, sys, threading
from pulsarx._pycore.ground.threads import OwnThread
told = threading.Event()

def fail(*_):
    raise ZeroDivisionError

def tell(given):
    print(given.exc_type.__name__, flush=True)
    told.set()

threading.excepthook, sys.unraisablehook = fail, tell
if sys.argv[1] == "patched":
    _thread.start_new_thread.__module__ = "gevent.thread"  # as it is then: ours start natively
elif sys.argv[1] == "leaving":
    def refuse(*_):
        raise RuntimeError("can't create new thread at interpreter shutdown")
    _thread.start_new_thread = refuse
thread = OwnThread(fail, "own")
thread.start()
thread.join()
told.wait()
print("over", flush=True)
"""


@pytest.mark.parametrize("when", ["always", "patched", "leaving"])
def test_a_hook_that_raises_ends_its_thread_alone(when: str) -> None:
    """The thread ended with the interpreter's lock in hand, and the process hung for ever."""
    with ChildProcess(RAISING_HOOK, when) as child:
        assert child.end() == ["ZeroDivisionError", "over"]


# Without memory -----------------------------------------------------------------------------------


def test_a_thread_that_has_no_memory_for_its_name_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its starter waited for it for ever, and with it what needs the clock, and `close`."""

    def fail() -> None:
        raise MemoryError

    done: list[str] = []
    thread = OwnThread(lambda: done.append("ran"), "own")
    with monkeypatch.context() as patched:
        patched.setattr(threading, "current_thread", fail)
        thread.start()
        thread.join()
    assert done == ["ran"]


def test_threads_are_traced_as_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """A debugger stops in a listener."""
    seen: list[object] = []

    def work() -> None:
        pass

    before = threading.gettrace()
    threading.settrace(lambda frame, *_: seen.append(frame.f_code))
    try:
        thread = OwnThread(work, "own")
        thread.start()
        thread.join()
    finally:
        threading.settrace(before)  # type: ignore[arg-type]
    assert work.__code__ in seen


def test_a_timer_that_had_no_memory_fires_again() -> None:
    """What it was to begin, a flush for one, was never begun."""
    clock, turns, done = SystemClock(), [], threading.Event()

    def due() -> None:
        turns.append(None)
        if len(turns) == 1:
            raise MemoryError
        done.set()

    clock.call_after(0, due)
    assert done.wait(60)
    clock.stop()


# Threads that others wait for ---------------------------------------------------------------------


def test_joining_returns_when_the_work_is_done() -> None:
    free, done = threading.Event(), []

    def work() -> None:
        free.wait(20)
        done.append(thread.runs_here())

    thread = OwnThread(work, "own")
    thread.join()  # it was not started
    thread.start()
    assert not thread.runs_here()
    threading.Timer(0.05, free.set).start()
    thread.join()
    assert done == [True]
    thread.join()


def test_a_forked_child_waits_for_no_thread_of_its_parent() -> None:
    free = threading.Event()
    thread = OwnThread(free.wait, "own")
    thread.start()
    child = os.fork()
    if child == 0:
        thread.join()
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    free.set()
    thread.join()


def test_what_a_thread_raises_is_told_and_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda given: told.append(given.exc_type))

    def fail() -> None:
        raise ZeroDivisionError

    thread = OwnThread(fail, "own")
    thread.start()
    thread.join()
    while not told:  # a moment later
        os.sched_yield()
    assert told == [ZeroDivisionError]


def test_where_an_own_thread_goes_no_python_runs() -> None:
    """A `threading.Thread` runs a callback in Python where it goes, which loses what a signal
    handler raises in it: in the middle of a call, where the collector found it."""
    with nothing_collected() as collect:
        holder: list[object] = []
        thread = OwnThread(lambda: None, "own")
        holder += [thread, holder]  # a circle, as a broker is
        thread.start()
        thread.join()
        while any(each.name == "own" for each in threading.enumerate()):
            os.sched_yield()
        del holder, thread
        assert not collect()
