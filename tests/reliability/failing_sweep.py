"""Tells scenes (failure_scenes) while one call on files, or one allocation, fails: the first, the
second and so on. For test_every_failure, in a process of its own.

failing_sweep.py <folder> <kind> <scene>,... <points> [<planted bug>]

kind, points: one, or as many as there are scenes.
kind: files, memory, or the beginning of some faults, such as system:stat:error.
points: so many of each scene; n/m, the n-th of m shares of all; or all, until none strikes.

Each point in a process forked from this one, which has imported all. FAILING_SWEEP_AT repeats one.
"""

from __future__ import annotations

import ctypes
import errno
import faulthandler
import importlib
import logging
import os
import shutil
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from failure_scenes import SCENES, Scene
from planted_failures import PLANTED, Planted

import pulsarx
import pulsarx.admin
import pulsarx.processes.guest.folders
from pulsarx import Client, PulsarException
from pulsarx.testing.faults import FaultPlan, fault_plan

HANG_SECONDS = 60
LOADER_GAVE_UP = 127  # the status of a process that has no memory for the variables of a thread
LOGGED_MAX = 5
WITHOUT_END = 1 << 40
ONE = os.environ.get("FAILING_SWEEP_AT")
SHOWS = ONE is not None  # which errors were raised
SYSTEM = ctypes.CDLL(None)
# Of failing_files.c.
CALLS = ("open", "read", "write", "flush", "allocate", "truncate", "rename", "link", "unlink",
         "make_directory", "stat", "list", "map", "close")  # fmt: skip
KINDS = {"error": 1, "short": 2, "short_error": 3, "late": 4, "drop": 5, "lie": 6}


@dataclass(frozen=True)
class Fault:
    """One that may strike. A value. way: plan (of the core's table of file operations), system (a
    call of the C library), memory. call: from 1; count: so many in a row."""

    way: str
    op: str
    kind: str = "error"
    error: int = errno.EIO
    call: int = 0
    count: int = 1

    def __str__(self) -> str:
        many = "" if self.count == 1 else "+"
        name = errno.errorcode[self.error]
        return f"{self.way}:{self.op}:{self.kind}:{name}:{self.call}{many}"

    @property
    def is_unseen(self) -> bool:
        """The program goes on behind it, and nobody is told."""
        return self.error == errno.EINTR or (self.kind == "short" and self.way == "system")

    @property
    def poisons(self) -> bool:
        """Whether what is on the device may be unknown behind it: not where there was no room."""
        return not (self.error == errno.ENOSPC and self.op in ("write", "allocate", "zeros"))


def each_way(way: str, op: str, kind: str = "error", *numbers: int) -> list[Fault]:
    """Once, and for ever."""
    once = [Fault(way, op, kind, number) for number in numbers or (errno.EIO,)]
    return once + [replace(each, count=WITHOUT_END) for each in once]


IO, FULL, HANDLES, MEMORY = errno.EIO, errno.ENOSPC, errno.EMFILE, errno.ENOMEM
OF_THE_PLAN = [
    *each_way("plan", "open", "error", IO, HANDLES, FULL),
    *each_way("plan", "close"),
    *each_way("plan", "read"),
    *each_way("plan", "write", "error", IO, FULL),
    *each_way("plan", "write", "late"),
    Fault("plan", "write", "short", IO),
    Fault("plan", "write", "short", FULL),
    *each_way("plan", "allocate", "error", FULL, IO),
    *each_way("plan", "flush", "error", IO, FULL),
    *each_way("plan", "flush", "late"),
    *each_way("plan", "flush_directory"),
    *each_way("plan", "rename", "error", IO, FULL),
    *each_way("plan", "rename", "late"),
    *each_way("plan", "rename_new"),
    *each_way("plan", "link", "error", IO, FULL, errno.EPERM),
    *each_way("plan", "link", "late"),
    *each_way("plan", "unlink"),
    *each_way("plan", "make_directory", "error", IO, FULL),
    *each_way("plan", "size"),
    *each_way("plan", "map", "error", MEMORY),
    *each_way("plan", "open_memory", "error", HANDLES),
    *each_way("plan", "punch_hole", "error", IO, errno.EOPNOTSUPP),
    *each_way("plan", "zeros", "error", IO, FULL),
]
INTERRUPTED = 3  # in a row: Python's own repeat for ever
OF_THE_SYSTEM = [
    *each_way("system", "open"),
    *each_way("system", "read"),
    *each_way("system", "write", "error", IO, FULL),
    *each_way("system", "flush", "drop"),
    *each_way("system", "flush", "late"),
    *each_way("system", "truncate"),
    *each_way("system", "stat"),
    *each_way("system", "list"),
    *each_way("system", "unlink"),
    *each_way("system", "rename"),
    *each_way("system", "make_directory"),
    *each_way("system", "map", "error", MEMORY),
    *each_way("system", "close"),
    Fault("system", "write", "short"),
    Fault("system", "write", "short", count=WITHOUT_END),
    Fault("system", "write", "short_error", FULL, count=2),
    Fault("system", "read", "short"),
    Fault("system", "read", "short", count=WITHOUT_END),
    *(
        Fault("system", op, "error", errno.EINTR, count=INTERRUPTED)
        for op in ("open", "read", "write", "allocate")
    ),
]
OF_MEMORY = [Fault("memory", "memory", "error", errno.ENOMEM)]


class FailingCalls:
    """Calls that fail, and what is documented of it."""

    def __init__(self, fault: Fault | None, folder: Path) -> None:
        self.fault = fault
        self.folder = folder
        self.over = True
        self.plan: FaultPlan | None = None
        self.planned: Any = None

    def begin(self) -> None:
        self.over = False
        if self.fault is not None and self.fault.way == "memory":
            SYSTEM.memory_fails_anywhere(ctypes.c_long(self.fault.call - 1))
            return
        self.planned = fault_plan()
        self.plan = self.planned.__enter__()
        fault = self.fault
        if fault is None:
            SYSTEM.files_fail(-1, 0, ctypes.c_long(0), ctypes.c_long(0), 0)
            SYSTEM.memory_fails_anywhere(ctypes.c_long(-1))
        elif fault.way == "system":
            SYSTEM.files_fail(CALLS.index(fault.op), KINDS[fault.kind], ctypes.c_long(fault.call),
                              ctypes.c_long(fault.count), fault.error)  # fmt: skip
        elif fault.kind == "short":
            self.plan.short_write(fault.call, error=fault.error)
        else:
            self.plan.fail(fault.op, fault.call, error=fault.error, sticky=fault.count > 1,
                           late=fault.kind == "late")  # fmt: skip

    def attempt(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            self.counts_memory(1)
            return call(*arguments, **named)
        except Exception as error:
            self.counts_memory(0)
            self.judge(error)
            return None
        finally:
            self.counts_memory(0)

    def is_poisoned(self, error: Exception) -> bool:
        fault = self.fault
        detail = pulsarx.errors.detail_of(error)
        return fault is not None and fault.poisons and "open it again" in detail

    def counts_memory(self, on: int) -> None:
        if self.over or (self.fault is not None and self.fault.way != "memory"):
            return
        try:
            SYSTEM.memory_counts_anywhere(on)
        except MemoryError:  # the one
            SYSTEM.memory_counts_anywhere(on)

    def judge(self, error: Exception) -> None:
        """Raise it again unless it is what is documented of the fault."""
        fault = self.fault
        if SHOWS:
            print(f"{type(error).__name__}: {pulsarx.errors.detail_of(error)}", flush=True)
        if fault is None or fault.is_unseen:
            raise error
        if fault.way == "memory":
            if isinstance(error, (MemoryError, PulsarException)):
                return
            if isinstance(error, RuntimeError) and str(error).startswith("can't "):
                return  # Python has no memory for a thread, a lock
            if isinstance(error, TypeError) and "expected str, bytes or os.PathLike" in str(error):
                return  # Python takes a path for none where it has no memory for its method
            raise error
        if isinstance(error, pulsarx.Timeout) and self.struck():
            return
        if not isinstance(error, PulsarException):
            raise error
        if isinstance(error, pulsarx.StorageError):
            # What cannot be looked at may be taken for there, or not, and then is not found so.
            known = (None, fault.error, errno.ENOENT, errno.EEXIST, errno.EBADF)
            assert error.errno in known, (error.errno, error)
            detail = error.detail
            assert "/" in detail or "ledger" in detail or "topic" in detail, detail

    def struck(self) -> bool:
        fault = self.fault
        if fault is None:
            return False
        if fault.way == "memory":
            return int(SYSTEM.memory_counted_anywhere()) >= fault.call
        if fault.way == "system":
            return bool(SYSTEM.files_struck())
        assert self.plan is not None
        return self.over or self.plan.calls(fault.op) >= fault.call

    def counts(self) -> dict[tuple[str, str], int]:
        """How often each was called."""
        assert self.plan is not None
        found = {("system", op): int(SYSTEM.files_calls(at)) for at, op in enumerate(CALLS)}
        found |= {("plan", each.op): self.plan.calls(each.op) for each in OF_THE_PLAN}
        return found | {("memory", "memory"): int(SYSTEM.memory_counted_anywhere())}

    def end(self) -> None:
        if self.over:
            return
        self.was_struck = self.struck()
        self.over = True
        if self.fault is not None and self.fault.way == "memory":
            return
        SYSTEM.files_fail(-1, 0, ctypes.c_long(0), ctypes.c_long(0), 0)
        if self.planned is not None:
            self.planned.__exit__(None, None, None)


class Logged(logging.Handler):
    """What the library said, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


LOGGED = Logged()


class Untold:
    """Errors that no call raised."""

    def __init__(self) -> None:
        self.found: list[str] = []
        threading.excepthook = lambda told: self.note(told.exc_value)
        sys.unraisablehook = lambda told: self.note(told.exc_value)

    def note(self, error: BaseException | None) -> None:
        self.found.append("".join(traceback.format_exception(error)) if error else "?")


def tell(kind: type[Scene], folder: Path, fault: Fault | None) -> tuple[Any, ...]:
    """One scene, in this process. Whether the fault struck; where there is none, how often what was
    called, and the modules that were imported."""
    SYSTEM.files_watch(os.fsencode(str(folder.parent)))
    if fault is not None and fault.kind in ("drop", "lie"):
        SYSTEM.files_keep()
    untold = Untold()
    failures = FailingCalls(fault, folder)
    scene = kind(folder, failures)
    scene.begin()
    failures.begin()
    scene.act()
    counts = failures.counts() if fault is None else {}
    failures.end()
    scene.go_on()
    scene.close()
    scene.prove()
    for whole in scene.whole():
        scene.is_whole(whole)
    if fault is None or fault.way != "memory":
        assert not untold.found, untold.found
    return failures.was_struck, counts, sorted(sys.modules) if fault is None else []


class Sweep:
    """The points of one scene."""

    def __init__(self, name: str, base: Path, planted: Planted | None) -> None:
        self.name = name
        self.scene = SCENES[name]
        self.base = base / name
        self.base.mkdir(parents=True)
        self.planted = planted
        self.template = self.base / "prepared"
        self.in_a_child(lambda: self.scene.prepare(self.template), "prepare")
        self.told = 0
        self.struck = 0
        self.bad: list[str] = []

    def in_a_child(self, work: Callable[[], Any], what: str) -> Any:
        """What it returns, as text; None: it failed, which it printed."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                faulthandler.enable()
                planted = self.planted
                hang_seconds = HANG_SECONDS if planted is None else planted.hang_seconds
                faulthandler.dump_traceback_later(hang_seconds, exit=True)
                answer = work()
                os.write(write, repr(answer).encode())
                status = 0
            except BaseException:
                print(f"{self.name}: {what}", *LOGGED.texts[-LOGGED_MAX:], sep="\n", flush=True)
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(write)
        text = b""
        while piece := os.read(read, 65536):
            text += piece
        os.close(read)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status == LOADER_GAVE_UP:
            return "True, {}, ()"
        if status != 0:
            if status != 1:
                print(f"{self.name}: {what}: the process ended with {status}", flush=True)
            return None
        return text.decode()

    def point(self, fault: Fault | None) -> Any:
        """Tell it once; None: something was wrong."""
        told_in = self.base / "told"
        folder = told_in / "folder"
        told_in.mkdir()
        if self.template.exists():
            shutil.copytree(self.template, folder, ignore=shutil.ignore_patterns("*.sock"))
        planted = self.planted if fault is not None else None

        def told() -> Any:
            if planted is not None:
                planted.plant()
            return tell(self.scene, folder, fault)

        try:
            answer = self.in_a_child(told, f"FAILING_SWEEP_AT={fault}")
        finally:
            shutil.rmtree(told_in, ignore_errors=True)
        return None if answer is None else eval(answer)

    def clean(self) -> dict[Any, int]:
        """How often each is called where nothing fails."""
        answer = self.point(None)
        assert answer is not None, f"{self.name} fails by itself"
        for name in answer[2]:
            # Else each point does it anew, and Python's compiler crashes where memory fails.
            with suppress(Exception):
                importlib.import_module(name)
        counts: dict[Any, int] = self.point(None)[1]
        return counts

    def run(self, fault: Fault) -> bool:
        """Whether it struck."""
        answer = self.point(fault)
        self.told += 1
        if answer is None:
            self.bad.append(str(fault))
            return True
        self.struck += bool(answer[0])
        return bool(answer[0])

    def some(self, faults: list[Fault], which: str) -> None:
        """which: so many, or the n-th of so many shares: n/shares."""
        counts = self.clean()
        found = [
            replace(fault, call=call)
            for fault in faults
            for call in range(1, counts[fault.way, fault.op] + 1)
        ]
        share, is_share, shares = which.partition("/")
        if is_share:
            found = found[int(share) :: int(shares)]
        else:
            last = len(found) - 1
            wanted = min(int(which), len(found))
            found = [found[at * last // max(wanted - 1, 1)] for at in range(wanted)]
        for fault in found:
            self.run(fault)
            if self.bad and self.planted is not None:
                return

    def all(self, faults: list[Fault]) -> None:
        """Until a scene ends without having been struck."""
        self.clean()
        for fault in faults:
            call = 1
            while self.run(replace(fault, call=call)):
                call += 1


def chosen(kind: str, planted: Planted | None) -> list[Fault]:
    """kind: files, memory, or how what is printed of some of the first begins."""
    if planted is not None and planted.faults is not None:
        return [Fault(*each) for each in planted.faults]
    if kind == "memory":
        return OF_MEMORY
    of_files = OF_THE_PLAN + OF_THE_SYSTEM
    return (
        of_files if kind == "files" else [each for each in of_files if str(each).startswith(kind)]
    )


def repeated(faults: list[Fault], text: str) -> Fault:
    """The one that was printed as this."""
    call = int(text.rpartition(":")[2].rstrip("+"))
    return next(one for each in faults if str(one := replace(each, call=call)) == text)


def main(folder: str, kind: str, names: str, points: str, bug: str = "") -> int:
    logging.getLogger("pulsarx").addHandler(LOGGED)
    planted = PLANTED[bug] if bug else None
    base = Path(folder)
    with Client(base / "warm") as client:  # imports what is imported late
        client.create_producer("t").send(b"1")
    bad = []
    scenes, kinds, counts = names.split(","), kind.split(","), points.split(",")
    if len(kinds) == 1:
        kinds, counts = kinds * len(scenes), counts * len(scenes)
    for number, (name, each, count) in enumerate(zip(scenes, kinds, counts, strict=True)):
        faults = chosen(each, planted)
        began = time.perf_counter()
        sweep = Sweep(name, base / str(number), planted)
        if ONE:
            sweep.clean()
            sweep.run(repeated(faults, ONE))
        elif count == "all":
            sweep.all(faults)
        else:
            sweep.some(faults, count)
        seconds = time.perf_counter() - began
        print(f"{name}: {sweep.told} points, {sweep.struck} struck, {len(sweep.bad)} left something"
              f" wrong, {seconds:.1f} s: {' '.join(sweep.bad)}", flush=True)  # fmt: skip
        bad += sweep.bad
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
