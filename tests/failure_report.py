"""Says of a test that fails, or takes too long, what it was at: the stacks of all threads, the
processes that it started and what they said last, the ends of its log files.

A test that takes too long is interrupted, and fails. Where that does not help, in native code that
hears no signal, all goes to the standard error of the run, and the process of the tests ends.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import pytest
import seeds

# By the size of a test. What takes hours has limits of its own, and so have rounds of campaigns.
LIMIT_SECONDS = {"quick": 120.0, "standard": 300.0}
SANITIZED_FACTOR = 10.0
PARTING_SECONDS = 60.0  # from the interrupt to the end of the process
SIGNAL = signal.SIGPROF  # that no test uses
LOOK_SECONDS = 1.0
STACK_DEPTH = 25
LINES_MAX = 40
LINE_SIZE_MAX = 300

Sections = list[tuple[str, str]]


@dataclass
class Watched:
    """The test that runs."""

    name: str
    limit_seconds: float
    until: float  # then it is interrupted
    parting: float | None = None  # it was; then the process ends
    found: Sections = field(default_factory=list)  # when it was interrupted
    is_running: bool = False  # else pytest is at work on what came of it


class FailureReport:
    """Puts what it finds into the reports of pytest. One for a process of tests."""

    def __init__(self) -> None:
        self.test: Watched | None = None
        self.main = threading.get_ident()
        # What is written to 2 while a test runs is for pytest.
        self.error = os.dup(2)
        self.ended = threading.Event()
        self.watch = threading.Thread(target=self.look, name="failure-report", daemon=True)

    def pytest_sessionstart(self) -> None:
        self.handler = signal.signal(SIGNAL, self.interrupt)
        self.watch.start()

    def pytest_sessionfinish(self) -> None:
        self.ended.set()
        signal.signal(SIGNAL, self.handler)
        os.close(self.error)

    # What takes too long --------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        limit = limit_of(item)
        self.test = Watched(item.nodeid, limit, time.monotonic() + limit) if limit else None
        try:
            return (yield)
        finally:
            self.test = None

    def look(self) -> None:
        while not self.ended.wait(LOOK_SECONDS):
            test = self.test
            if test is None:
                continue
            if test.parting is not None and time.monotonic() > test.parting:
                self.part(test)
            elif test.parting is None and time.monotonic() > test.until:
                test.found = found(None, of_all=True)
                test.parting = time.monotonic() + PARTING_SECONDS
                signal.pthread_kill(self.main, SIGNAL)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        return (yield from self.run())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        return (yield from self.run())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        return (yield from self.run())

    def run(self) -> Generator[None, object, object]:
        test = self.test
        if test is None:
            return (yield)
        test.is_running = True
        try:
            return (yield)
        finally:
            test.is_running = False

    def interrupt(self, _: int, __: FrameType | None) -> None:
        test = self.test
        if test is None or test.parting is None:
            return  # it has ended meanwhile
        if test.is_running:
            pytest.fail(f"it took more than {test.limit_seconds:g} s")
        test.until = time.monotonic() + LOOK_SECONDS
        test.parting = None

    def part(self, test: Watched) -> None:
        """The test does not end: so does its process."""
        limit = f"{test.limit_seconds:g} s"
        lines = [f"\n{test.name} took more than {limit}, and cannot be interrupted"]
        for title, text in test.found:
            lines += [f"{title:-^100}", text]
        os.write(self.error, "\n".join([*lines, ""]).encode())
        os._exit(pytest.ExitCode.INTERNAL_ERROR)

    # What fails -----------------------------------------------------------------------------------

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            folder = getattr(item, "funcargs", {}).get("tmp_path")
            interrupted = self.test.found if self.test is not None else []
            report.sections += interrupted or found(folder)
            interrupted.clear()
        return report


def limit_of(item: pytest.Item) -> float:
    """In seconds; 0: there is none."""
    limits = [LIMIT_SECONDS[each] for each in LIMIT_SECONDS if item.get_closest_marker(each)]
    if not limits or seeds.GIVEN:
        return 0.0
    return max(limits) * (SANITIZED_FACTOR if os.environ.get("PULSARX_SANITIZE") else 1.0)


def found(folder: Path | None, of_all: bool = False) -> Sections:
    """As sections; what goes wrong there does not hide the failure."""
    try:
        return sections(folder, of_all)
    except Exception:
        return [("What was to be said of it", traceback.format_exc())]


def sections(folder: Path | None, of_all: bool = False) -> Sections:
    """of_all: also of the main thread, whose stack a failure shows anyway."""
    found = {
        "Threads": threads(of_all),
        "Processes": processes(),
        "Ends of log files": ends_of_logs(folder),
    }
    return [(title, text) for title, text in found.items() if text]


def threads(of_all: bool) -> str:
    names = {each.ident: each for each in threading.enumerate()}
    left_out = {threading.get_ident()}
    if not of_all:
        left_out.add(threading.main_thread().ident or 0)
    lines = []
    for ident, frame in sys._current_frames().items():
        thread = names.get(ident)
        if ident in left_out or (thread is not None and thread.name == "failure-report"):
            continue
        where = f", {_wait(os.getpid(), thread.native_id)}" if thread is not None else ""
        lines.append(f"{thread.name if thread is not None else ident}{where}")
        stack = [each for each in traceback.extract_stack(frame) if not is_of_pytest(each.filename)]
        lines += traceback.format_list(stack[-STACK_DEPTH:])
    return "".join(each if each.endswith("\n") else f"{each}\n" for each in lines)


def is_of_pytest(file: str) -> bool:
    return any(f"/{each}/" in file for each in ("_pytest", "pluggy", "xdist", "execnet"))


def processes() -> str:
    """All that descend from this one."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (text := _read(f"/proc/{name}/stat")):
            parents[int(name)] = int(text.rpartition(")")[2].split()[1])
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    lines = []
    for pid in sorted(ours - {os.getpid()}):
        command = _read(f"/proc/{pid}/cmdline").replace("\0", " ").replace("\n", " ")
        lines.append(f"{pid} of {parents[pid]}, {_wait(pid, pid)}: {command[:LINE_SIZE_MAX]}")
    known = sys.modules.get("child_process")
    for child in known.running() if known is not None else ():
        lines.append(shortened(child.last_words()))
    return "\n".join(lines)


def _wait(pid: int, native_id: int | None) -> str:
    """The state of a thread, and its system call by number."""
    status = _read(f"/proc/{pid}/task/{native_id}/status")
    state = next((line for line in status.splitlines() if line.startswith("State")), "State: gone")
    call = _read(f"/proc/{pid}/task/{native_id}/syscall").partition(" ")[0].strip()
    return state.partition("\t")[2] + (f", system call {call}" if call.isdigit() else "")


def ends_of_logs(folder: Path | None) -> str:
    lines = []
    for path in sorted(folder.rglob("*.log")) if folder is not None else ():
        lines += [str(path), shortened(_read(str(path)))]
    return "\n".join(lines)


def shortened(text: str) -> str:
    """The last lines."""
    return "\n".join(line[:LINE_SIZE_MAX] for line in text.splitlines()[-LINES_MAX:])


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""  # it is gone, or another's
