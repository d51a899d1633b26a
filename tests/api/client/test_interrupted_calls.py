"""Facts about public calls that are interrupted, at random and at every line.

Each runs interrupted_run.py in a process of its own; how often is scaled by a campaign.
"""

from __future__ import annotations

import gc
import linecache
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import interrupted_run
import pytest
from child_process import PACKAGE_PARENT, ChildProcess
from collected import nothing_collected
from interrupt_kinds import KINDS, PACKAGE, LineInterrupts, RaisedError
from interrupted_calls import CALLS, Outcome, Waiting, World
from seeds import new_seed, scaled

import pulsarx
from pulsarx import ConsumerType, errors

BY_TIME = [name for name, kind in KINDS.items() if not issubclass(kind, LineInterrupts)]
BY_EVENT = [name for name in KINDS if name not in BY_TIME]
# Of each kind in a round of a campaign.
RANDOM_COUNT = 120
SAMPLE = 4  # of each call, besides the last three
# The calls that begin threads of their own.
THREADED = {
    "open_and_close",
    "run_a_function",
    "serve_a_folder",
    "serve_a_folder_over_http",
    "back_up_over_http",
}


def run(kinds: list[str], *arguments: object) -> str:
    """All in one process: what takes longest there is what the calls import."""
    command = [sys.executable, interrupted_run.__file__, *map(str, arguments)]
    command += [each for kind in kinds for each in ("--kind", kind)]
    environment = dict(os.environ, PYTHONPATH=PACKAGE_PARENT)
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment, timeout=3000
    )
    said = f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    assert "not seen by the caller" not in done.stdout, said
    return done.stdout


@pytest.mark.standard
def test_calls_may_be_interrupted_at_any_moment() -> None:
    said = run(BY_TIME, "--interrupts", scaled(RANDOM_COUNT), "--seed", new_seed())
    assert all(f"{kind}: " in said for kind in BY_TIME)


@pytest.mark.standard
def test_calls_may_be_interrupted_at_every_line_and_instruction() -> None:
    """Of what runs in the caller's thread; here at some of them, the last ones of each call."""
    said = run(BY_EVENT, "--interrupts", 100_000, "--seed", new_seed(), "--sample", scaled(SAMPLE))
    assert all(f"{kind}: " in said for kind in BY_EVENT)


@pytest.mark.long
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["line", "opcode"])
def test_each_call_may_be_interrupted_at_every_event(kind: str, call: str) -> None:
    run([kind], "--interrupts", 100_000, "--seed", new_seed(), "--call", call)


# Where the broker runs --------------------------------------------------------------------------


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.clocked.shutdown()
    made.client.shutdown()


def perform(world: World, name: str, trace: Any) -> None:
    """One of the calls as it is, without an interrupt."""
    steps = CALLS[name](world)
    try:
        step: Any = next(steps)
        while True:
            value = None
            interrupted = isinstance(step, Waiting)
            if not interrupted:
                sys.settrace(trace)
                try:
                    value = step()
                finally:
                    sys.settrace(None)
            step = steps.send(Outcome(interrupted, value))
    except StopIteration:
        world.count += 1


def test_no_call_runs_python_of_the_broker_in_the_main_thread(world: World) -> None:
    """A reader that went on to the next ledger did, with a mutex held."""
    met: set[str] = set()
    frames = 0

    def trace(frame: FrameType, event: str, _: Any) -> None:
        nonlocal frames
        frames += 1
        name = frame.f_code.co_filename
        if name.startswith(f"{PACKAGE}/broker/"):
            met.add(f"{name} {frame.f_code.co_qualname}")

    for _ in range(3):
        for name in CALLS:
            perform(world, name, trace)
    assert frames > 1000
    assert not met


def test_a_read_only_client_refreshes_where_nothing_interrupts_it(tmp_path: Path) -> None:
    """An interrupt in the middle of reading a commit left its catalogue half changed: that commit
    was refused from then on."""
    owner = pulsarx.Client(tmp_path / "d", durability="os")
    owner.create_producer("t").send(b"0")
    program = """
import sys, pulsarx
client = pulsarx.Client(sys.argv[1], read_only=True)
reader = client.create_reader("t", pulsarx.MessageId.earliest)
met = set()
def trace(frame, event, _):
    if "/pulsarx/broker" in frame.f_code.co_filename:
        met.add(frame.f_code.co_qualname)
sys.settrace(trace)
assert reader.read_next(60_000).data() == b"0"
print("read", flush=True)
assert reader.read_next(60_000).data() == b"1"
sys.settrace(None)
assert not met, met
"""
    with ChildProcess(program, tmp_path / "d") as child:
        assert child.line() == "read"
        owner.create_producer("other").close()
        owner.create_producer("t").send(b"1")
        child.end()
    owner.close()


@pytest.mark.needs("starlette", "uvicorn")
def test_what_goes_in_the_middle_of_a_call_runs_no_callback(world: World) -> None:
    """A weak reference's callback in Python lost what a signal handler raised in it: the last
    reference to a ledger's mapping went in `receive`."""
    met: set[str] = set()
    files = (weakref.__file__, weakref.WeakSet.__init__.__code__.co_filename)

    def trace(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_filename in files:
            met.add(frame.f_code.co_qualname)

    # A collection finds what tests before this one left, threads above all.
    gc.collect()
    gc.disable()
    for name in CALLS:
        if "futures" not in name:
            perform(world, name, trace)
    consumer = world.subscribe("ex", ConsumerType.Exclusive)
    sys.settrace(trace)
    try:
        del consumer
        world.client.create_producer("t").close()
    finally:
        sys.settrace(None)
        gc.enable()
    assert not met


@pytest.mark.parametrize(
    "call",
    [
        each if each in THREADED else pytest.param(each, marks=pytest.mark.standard)
        for each in CALLS
    ],
)
def test_what_is_closed_runs_no_callback_where_it_is_collected(world: World, call: str) -> None:
    """The thread of a folder's socket, or of a function, ran one in Python: of `threading`, in
    whatever call the collector happened to run. So did the threads, connections and tasks of a
    service over HTTP."""
    if call == "serve_a_folder":
        pytest.importorskip("uvloop", reason="asyncio's own loops have callbacks in Python")
    perform(world, call, None)  # imports
    with nothing_collected() as collect:
        perform(world, call, None)
        assert not collect()


@pytest.mark.parametrize(
    "call", [name for name in CALLS if name.startswith(("refuse", "acknowledge"))]
)
def test_writing_a_cursor_runs_no_python(world: World, call: str) -> None:
    """Not even for the names of files: what a handler raised there was logged as a failed write of
    the cursor, and the caller heard nothing of it."""
    met: set[str] = set()

    def trace(frame: FrameType, event: str, _: Any) -> None:
        if frame.f_code.co_filename.startswith("<frozen"):
            met.add(f"{frame.f_code.co_filename} {frame.f_code.co_qualname}")

    for _ in range(30):
        perform(world, call, trace)
    assert not met


def test_an_interrupted_unsubscribe_is_finished_by_a_second_one(world: World) -> None:
    """It raised SubscriptionNotFound."""
    consumer = world.client.subscribe("t", "gone")
    steps = iter([RaisedError("on purpose")])

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        def step(frame: FrameType, event: str, _: Any) -> Any:
            # The first line behind the one that has it done.
            if "_told = True" in line_of(frame):
                raise next(steps)
            return step

        return step if frame.f_code.co_name == "unsubscribe" else None

    sys.settrace(trace)
    try:
        with pytest.raises(RaisedError):
            consumer.unsubscribe()
    finally:
        sys.settrace(None)
    assert "gone" not in world.client.admin.topics.stats("t")["subscriptions"]
    consumer.unsubscribe()
    with pytest.raises(errors.AlreadyClosed):
        consumer.unsubscribe()
    consumer.close()


def line_of(frame: FrameType) -> str:
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno)
