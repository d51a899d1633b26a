"""Runs the tests in parts, each in a process of its own, two more at a time than there are
processors: `run_tests.py [file or folder...] [argument of pytest...]`. `make test` calls it.

A part collects only its own tests, and they run in the main thread of its process, where signals
arrive. What a part meets comes over a pipe, a line of JSON each (tests/part_events.py). One that
ends before its last test fails. A single part is run by pytest itself, on the terminal.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO

from parts import PARTS, Part
from progress import Line

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "tests"
TIMES = KEPT / "seconds.json"  # what each part took last time
EVENTS = "PULSARX_TEST_EVENTS"  # the descriptor that a part writes to
PART = "PULSARX_TEST_PART"  # what all processes of a part know it by
# Half of the time of most parts is waiting: for processes that start or end, for the disk.
MORE_THAN_PROCESSORS = 2
# Where tests have their folders whose subject is no file: a third of their time is the disk's.
MEMORY = Path("/dev/shm")
MEMORY_MIN_BYTES = 4 << 30  # free
NO_TESTS = 5  # what pytest ends with where it found none
PARTING_SECONDS = 5.0  # from the interrupt of a part to its end
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
SHOWN_SKIPS, SHOWN_SLOW = 12, 10


@dataclass
class Run:
    """A part that was begun."""

    part: Part
    process: subprocess.Popen[bytes]
    ended: int  # a descriptor that is readable when the process has ended
    events: int  # the one it is read from
    log: Path
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None  # it took; None: it runs
    processor_seconds: float = 0.0
    unread: bytes = b""
    collected: int = 0
    done: int = 0  # of them
    finished: bool = False  # pytest has said so
    died: bool = False
    running: str = ""  # the test that was begun last
    outcomes: Counter[str] = field(default_factory=Counter)


class Suite:
    """All parts of one call."""

    def __init__(self, parts: list[Part], arguments: list[str]) -> None:
        times = times_of_last_run()
        self.weights = {part.name: float(times.get(part.name, part.seconds)) for part in parts}
        self.waiting = sorted(parts, key=lambda part: self.weights[part.name])
        self.arguments = arguments
        self.runs: list[Run] = []
        self.failures: list[str] = []
        self.skips: Counter[str] = Counter()
        self.slow: list[tuple[float, str]] = []
        self.began = time.monotonic()
        self.line = Line()
        self.selector = selectors.DefaultSelector()
        remove_folders_of_ended_runs()
        self.scratch, lock = new_folder(Path(tempfile.gettempdir()))
        self.memory, self.locks = self.scratch, [lock]
        if _has_room(MEMORY):
            self.memory, lock = new_folder(MEMORY)
            self.locks.append(lock)  # held until this process ends

    def run(self) -> int:
        slots = len(os.sched_getaffinity(0)) + MORE_THAN_PROCESSORS
        try:
            while self.waiting or self.running():
                while self.waiting and len(self.running()) < slots:
                    self.begin(self.waiting.pop())
                for key, _ in self.selector.select(timeout=1):
                    self.read(key.data)
                    if key.fd == key.data.ended:
                        self.ended(key.data)
                self.line.show(self.text)
        finally:
            self.stop()
        self.summary()
        passed = sum(run.outcomes["passed"] for run in self.runs)
        return 1 if self.failures or not passed else 0

    def running(self) -> list[Run]:
        return [run for run in self.runs if run.seconds is None]

    def begin(self, part: Part) -> None:
        read, write = os.pipe()
        left_out = [f"--ignore={each}" for path in part.paths for each in _named_below(path)]
        log = KEPT / "logs" / f"{part.name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        place = (self.scratch if part.needs_disk else self.memory) / part.name
        command = [sys.executable, "-m", "pytest", "-q", f"--basetemp={place}"]
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*command, *self.arguments, *part.paths, *left_out],
                cwd=ROOT,
                env=os.environ | {EVENTS: str(write), PART: self.name_of(part)},
                pass_fds=[write],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # stopped with all that it has started
            )
        os.close(write)
        os.set_blocking(read, False)
        run = Run(part, process, os.pidfd_open(process.pid), read, log)
        self.runs.append(run)
        self.selector.register(run.ended, selectors.EVENT_READ, run)
        self.selector.register(run.events, selectors.EVENT_READ, run)

    def name_of(self, part: Part) -> str:
        return f"{self.scratch}/{part.name}"

    def read(self, run: Run) -> None:
        """What there is."""
        while run.events in self.selector.get_map():
            try:
                data = os.read(run.events, 1 << 16)
            except BlockingIOError:
                return
            *lines, run.unread = (run.unread + data).split(b"\n")
            for each in lines:
                try:
                    self.heard(run, json.loads(each))
                except ValueError:
                    self.failures.append(f"{run.part.name} said what is no JSON: {each[:200]!r}")
            if not data:
                self.selector.unregister(run.events)

    def heard(self, run: Run, event: dict[str, Any]) -> None:
        run.collected = event.get("collected", run.collected)
        run.running = event.get("began", run.running)
        run.finished = run.finished or "finished" in event
        if "outcome" not in event:
            return
        run.outcomes[event["outcome"]] += 1
        run.done += event["test"] == run.running
        self.slow.append((event["seconds"], event["test"]))
        if event["outcome"] == "skipped":
            self.skips[event["text"]] += 1
        elif event["outcome"] == "failed":
            self.failures.append(event["test"])
            self.line.say(f"\nFAILED {event['test']}\n{event['text']}\n")

    def ended(self, run: Run) -> None:
        """What of it still writes has no part in it any more."""
        self.selector.unregister(run.ended)
        if run.events in self.selector.get_map():
            self.selector.unregister(run.events)
        os.close(run.events)
        os.close(run.ended)
        _, status, usage = os.wait4(run.process.pid, 0)
        code = run.process.returncode = os.waitstatus_to_exitcode(status)
        run.processor_seconds = usage.ru_utime + usage.ru_stime
        run.seconds = time.monotonic() - run.began
        kill_all(f"{self.name_of(run.part)}\0")  # what it has left running
        ended_early = not run.finished or (code == 0 and run.done != run.collected)
        if code in (0, 1) and ended_early:
            how = f"{run.done} of {run.collected} tests"
        elif code not in (0, 1, NO_TESTS) or (code == 1 and not run.outcomes["failed"]):
            how = f"signal {-code}, {signal.strsignal(-code)}" if code < 0 else f"code {code}"
        else:
            return
        said = run.log.read_text(errors="replace")[-6000:]
        where = f" in {run.running}" if run.running else ""
        run.died = True
        self.failures.append(f"{run.part.name} ended with {how}{where}")
        self.line.say(f"\nENDED {self.failures[-1]}; the end of {run.log}:\n{said}\n")

    def stop(self) -> None:
        """All parts that run are interrupted, and what does not end by itself is killed."""
        for each in ENDING:  # once is enough
            signal.signal(each, signal.SIG_IGN)
        running = self.running()
        for run in running:
            run.process.send_signal(signal.SIGINT)
        until = time.monotonic() + PARTING_SECONDS
        for run in running:
            try:
                run.process.wait(max(until - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                run.process.kill()
                run.process.wait()
        kill_all(f"{self.scratch}/")
        failed = {run.part.name for run in self.runs if run.died or run.outcomes["failed"]}
        for place in {self.scratch, self.memory}:
            for folder in place.iterdir():
                if folder.name not in failed:
                    shutil.rmtree(folder, ignore_errors=True)
            if not any(place.iterdir()):
                place.rmdir()
            else:
                self.line.say(f"what the tests left in folders is in {place}, until the next run")

    # What is shown --------------------------------------------------------------------------------

    def text(self) -> str:
        """Parts that run, and how long it will take."""
        shown = []
        for run in self.runs:
            if run.seconds is None:
                shown.append(f"{run.part.name} {run.outcomes.total():,} of {run.collected:,}")
        done, total = self.done_and_total()
        seconds = time.monotonic() - self.began
        left = ""
        if done > 0.02 * total:
            left = f", about {seconds * (total - done) / done:.0f} s left"
        failed = f", {len(self.failures)} FAILED" if self.failures else ""
        ended = sum(run.outcomes.total() for run in self.runs if run.seconds is not None)
        return f"tests: {ended:,} done; {', '.join(shown)}{failed}{left}"

    def done_and_total(self) -> tuple[float, float]:
        """In seconds that the parts are expected to take."""
        done = 0.0
        for run in self.runs:
            part = 1.0 if run.seconds is not None else 0.0
            if run.seconds is None and run.collected:
                part = run.outcomes.total() / run.collected
            done += self.weights[run.part.name] * part
        return done, sum(self.weights.values())

    def summary(self) -> None:
        outcomes = sum((run.outcomes for run in self.runs), Counter[str]())
        self.line.say("")
        for run in sorted(self.runs, key=lambda run: run.part.name):
            failed = f", {run.outcomes['failed']} FAILED" if run.outcomes["failed"] else ""
            passed = f"{run.outcomes['passed']:,} passed{failed}"
            skipped = f", {run.outcomes['skipped']} skipped" if run.outcomes["skipped"] else ""
            took = f"{run.seconds or 0:5.0f} s {run.processor_seconds:5.0f} s of processor"
            print(f"{run.part.name:<16} {took}   {passed}{skipped}")
        if self.skips:
            print(f"\nskipped, {self.skips.total()} tests:")
            for reason, count in self.skips.most_common(SHOWN_SKIPS):
                print(f"{count:6,}  {reason[:110]}")
            others = self.skips.total() - sum(n for _, n in self.skips.most_common(SHOWN_SKIPS))
            if others:
                print(f"{others:6,}  for other reasons")
        print("\nslowest:")
        for seconds, test in sorted(self.slow, reverse=True)[:SHOWN_SLOW]:
            print(f"{seconds:6.1f} s  {test}")
        for each in self.failures:
            print(f"FAILED {each}")
        seconds = time.monotonic() - self.began
        counts = [f"{outcomes[each]:,} {each}" for each in ("passed", "failed", "skipped")]
        print(f"\n{', '.join(counts)} in {seconds:.0f} s", flush=True)
        if not self.arguments and all(run.part in PARTS for run in self.runs):
            times = {run.part.name: round(run.seconds or 0, 1) for run in self.runs}
            partly = TIMES.with_suffix(".partly")
            partly.write_text(json.dumps(times_of_last_run() | times, indent=1))
            partly.replace(TIMES)


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= MEMORY_MIN_BYTES


def times_of_last_run() -> dict[str, float]:
    """By the name of the part."""
    try:
        found: dict[str, float] = json.loads(TIMES.read_text())
        return found
    except (FileNotFoundError, ValueError):
        return {}


def new_folder(place: Path) -> tuple[Path, TextIO]:
    """For this run, with the open note of it. What tests leave there when they fail is kept until
    the next run: that of another run which is under way is locked by it."""
    found = Path(tempfile.mkdtemp(prefix="pulsarx-pytest-", dir=place))
    note = (KEPT / "folders" / found.name).open("w")
    fcntl.flock(note, fcntl.LOCK_EX)
    note.write(str(found))
    note.flush()
    return found, note


def remove_folders_of_ended_runs() -> None:
    notes = KEPT / "folders"
    notes.mkdir(parents=True, exist_ok=True)
    for path in notes.iterdir():
        with path.open() as note:
            try:
                fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if folder := note.read():
                shutil.rmtree(folder, ignore_errors=True)
                path.unlink(missing_ok=True)


def kill_all(name: str) -> None:
    """The processes that were started by parts whose names begin so, in whatever session. A zero
    byte ends a name."""
    wanted, found = f"{PART}={name}".encode(), True
    while found:  # one may start another meanwhile
        found = False
        for each in Path("/proc").iterdir():
            try:
                if each.name.isdigit() and wanted in (each / "environ").read_bytes():
                    os.kill(int(each.name), signal.SIGKILL)
                    found = True
            except OSError:
                pass  # it has ended, or is another's


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def chosen(paths: list[str]) -> list[Part]:
    """The parts with tests below the paths, each with those alone."""
    found = []
    for part in PARTS:
        mine: list[str] = []
        for path in paths:
            given = os.path.relpath(path.partition("::")[0], ROOT)
            for each in part.paths:
                if each == given:
                    mine.append(path if "::" in path else each)
                elif each.startswith(f"{given}/") or given == ".":
                    mine.append(each)
                elif given.startswith(f"{each}/") and not _is_of_another(given, each):
                    mine.append(path)
        if mine:
            found.append(replace(part, paths=tuple(dict.fromkeys(mine))))
    return found


def _is_of_another(given: str, path: str) -> bool:
    return any(f"{given}/".startswith(f"{each}/") for each in _named_below(path))


def _named_below(path: str) -> list[str]:
    """What other parts name of a folder of this one."""
    return [each for part in PARTS for each in part.paths if each.startswith(f"{path}/")]


def main(given: list[str]) -> int:
    os.chdir(ROOT)
    paths = list(takewhile(lambda each: not each.startswith("-"), given))
    arguments = given[len(paths) :]
    for path in paths:
        file = os.path.abspath(path.partition("::")[0])
        if not os.path.exists(file) or not f"{file}/".startswith(f"{ROOT}/tests/"):
            print(f"tests: there is no {path} below {ROOT}/tests", file=sys.stderr)
            return 2
    parts = chosen(paths or ["tests"])
    if len(parts) <= 1:
        command = [sys.executable, "-m", "pytest", *arguments, *(paths or ["tests"])]
        os.execv(sys.executable, command)
    for each in ENDING:
        if signal.getsignal(each) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(each, interrupt)
    try:
        return Suite(parts, arguments).run()
    except KeyboardInterrupt:
        print("\ntests: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
