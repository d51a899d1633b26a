"""Runs the tests in parts, each in a process of its own, as many at a time as processors and one
more: `run_tests.py [file or folder...] [argument of pytest...]`. `make test` calls it.

A part collects only its own tests, and they run in the main thread of its process, where signals
arrive. What a part meets comes over a pipe, a line of JSON each (tests/part_events.py). A single
part is run by pytest itself, on the terminal.
"""

from __future__ import annotations

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parts import PARTS, Part
from progress import Line

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "tests"
TIMES = KEPT / "seconds.json"  # what each part took last time
EVENTS = "PULSARX_TEST_EVENTS"  # the descriptor that a part writes to
# Half of the time of most parts is waiting: for processes that start or end, for the disk.
MORE_THAN_PROCESSORS = 2
# Where tests have their folders whose subject is no file: a third of their time is the disk's.
MEMORY = Path("/dev/shm")
MEMORY_MIN_BYTES = 4 << 30  # free
NO_TESTS = 5  # what pytest ends with where it found none
SHOWN_SKIPS, SHOWN_SLOW = 12, 10


@dataclass
class Run:
    """A part that was begun."""

    part: Part
    process: subprocess.Popen[bytes]
    events: int  # the descriptor it is read from
    log: Path
    began: float = field(default_factory=time.monotonic)
    seconds: float | None = None  # it took; None: it runs
    processor_seconds: float = 0.0
    unread: bytes = b""
    collected: int = 0
    running: str = ""  # the test that was begun last
    outcomes: Counter[str] = field(default_factory=Counter)


class Suite:
    """All parts of one call."""

    def __init__(self, parts: list[Part], arguments: list[str]) -> None:
        times = json.loads(TIMES.read_text()) if TIMES.exists() else {}
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
        self.scratch = Path(tempfile.mkdtemp(prefix="pulsarx-pytest-"))
        self.memory = self.scratch
        if _has_room(MEMORY):
            self.memory = Path(tempfile.mkdtemp(prefix="pulsarx-pytest-", dir=MEMORY))

    def run(self) -> int:
        slots = len(os.sched_getaffinity(0)) + MORE_THAN_PROCESSORS
        try:
            while self.waiting or self.selector.get_map():
                while self.waiting and len(self.selector.get_map()) < slots:
                    self.begin(self.waiting.pop())
                for key, _ in self.selector.select(timeout=1):
                    self.read(key.data)
                self.line.show(self.text)
        finally:
            self.stop()
        self.summary()
        passed = sum(run.outcomes["passed"] for run in self.runs)
        return 1 if self.failures or not passed else 0

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
                env=os.environ | {EVENTS: str(write)},
                pass_fds=[write],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # stopped with all that it has started
            )
        os.close(write)
        run = Run(part, process, read, log)
        self.runs.append(run)
        self.selector.register(read, selectors.EVENT_READ, run)

    def read(self, run: Run) -> None:
        data = os.read(run.events, 1 << 16)
        *lines, run.unread = (run.unread + data).split(b"\n")
        for each in lines:
            self.heard(run, json.loads(each))
        if not data:
            self.selector.unregister(run.events)
            os.close(run.events)
            _, status, usage = os.wait4(run.process.pid, 0)
            run.process.returncode = os.waitstatus_to_exitcode(status)
            run.processor_seconds = usage.ru_utime + usage.ru_stime
            self.ended(run, run.process.returncode)

    def heard(self, run: Run, event: dict[str, Any]) -> None:
        run.collected = event.get("collected", run.collected)
        run.running = event.get("began", run.running)
        if "outcome" not in event:
            return
        run.outcomes[event["outcome"]] += 1
        self.slow.append((event["seconds"], event["test"]))
        if event["outcome"] == "skipped":
            self.skips[event["text"]] += 1
        elif event["outcome"] == "failed":
            self.failures.append(event["test"])
            self.line.say(f"\nFAILED {event['test']}\n{event['text']}\n")

    def ended(self, run: Run, code: int) -> None:
        run.seconds = time.monotonic() - run.began
        _kill(run.process)  # what it has left running
        if code not in (0, 1, NO_TESTS) or (code == 1 and not run.outcomes["failed"]):
            said = run.log.read_text(errors="replace")[-6000:]
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
            where = f" in {run.running}" if run.running else ""
            self.failures.append(f"{run.part.name} ended with {how}{where}")
            self.line.say(f"\nENDED {self.failures[-1]}; the end of {run.log}:\n{said}\n")

    def stop(self) -> None:
        for key in list(self.selector.get_map().values()):
            _kill(key.data.process)
            key.data.process.wait()
        if self.failures:
            places = " and ".join(map(str, dict.fromkeys((self.scratch, self.memory))))
            self.line.say(f"what the tests left in folders is in {places}")
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)
            shutil.rmtree(self.memory, ignore_errors=True)

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
        if not self.arguments:
            times = {run.part.name: round(run.seconds or 0, 1) for run in self.runs}
            TIMES.write_text(json.dumps(self.weights | times, indent=1))


def _has_room(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and shutil.disk_usage(folder).free >= MEMORY_MIN_BYTES


def _kill(process: subprocess.Popen[bytes]) -> None:
    """A part, and the processes it has left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def chosen(paths: list[str]) -> list[Part]:
    """The parts with tests below the paths, each with those alone."""
    found = []
    for part in PARTS:
        mine: list[str] = []
        for path in paths:
            given = os.path.relpath(path.partition("::")[0], ROOT)
            for each in part.paths:
                if each == given or each.startswith(f"{given}/") or given == ".":
                    mine.append(each)
                elif given.startswith(f"{each}/") and not _is_of_another(given, each):
                    mine.append(path)
        if mine:
            found.append(Part(part.name, tuple(dict.fromkeys(mine)), part.seconds))
    return found


def _is_of_another(given: str, path: str) -> bool:
    return any(f"{given}/".startswith(f"{each}/") for each in _named_below(path))


def _named_below(path: str) -> list[str]:
    """What other parts name of a folder of this one."""
    return [each for part in PARTS for each in part.paths if each.startswith(f"{path}/")]


def main(given: list[str]) -> int:
    paths = [each for each in given if (ROOT / each.partition("::")[0]).exists()]
    arguments = [each for each in given if each not in paths]
    os.chdir(ROOT)
    parts = chosen(paths or ["tests"])
    if len(parts) <= 1:
        command = [sys.executable, "-m", "pytest", *arguments, *(paths or ["tests"])]
        os.execv(sys.executable, command)
    try:
        return Suite(parts, arguments).run()
    except KeyboardInterrupt:
        print("\ntests: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
