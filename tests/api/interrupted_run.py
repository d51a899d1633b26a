"""Interrupts public calls, and looks after every interrupt at what must hold. A process of its own:

    python tests/api/interrupted_run.py --kind alarm [--kind ctrl_c] [--interrupts 1000] [--seed 1]
                                        [--call NAME] [--sample 10]

kind: see interrupt_kinds; several one after the other. With `line` and `opcode` every event of
every call is interrupted once, unless so many interrupts are reached before; sample: so many events
of each call, and the last.
Prints what was interrupted how often; ends with 1 at the first thing that does not hold, naming the
call, and with a traceback of all threads after 20 seconds without progress.
"""

from __future__ import annotations

import argparse
import faulthandler
import itertools
import logging
import random
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from interrupt_kinds import KINDS, LineInterrupts, OpcodeInterrupts, is_interrupt
from interrupted_calls import CALLS, Outcome, Steps, Waiting, World

HANG_SECONDS = 20
WORLD_INTERRUPTS = 150  # before it is closed and everything is looked for
DELAY_SECONDS_MAX = 0.003
MANY = 1 << 40  # more events than there are


class Run:
    """One kind of interrupt, over all calls or one."""

    def __init__(
        self, kind: str, seed: int, wanted: int, calls: list[str], sample: int = 0
    ) -> None:
        self.draw = random.Random(seed)
        self.interrupts = KINDS[kind](self.draw)
        if isinstance(self.interrupts, OpcodeInterrupts):
            self.interrupts.caller = World.__init__.__code__.co_filename
        self.wanted = wanted
        self.calls = calls
        self.sample = sample
        self.counts: Counter[str] = Counter()
        self.total = 0
        self.swallowed: Counter[str] = Counter()
        self.durations: dict[tuple[str, int], float] = {}
        self.folder = Path(tempfile.mkdtemp(prefix="pulsarx-interrupts-"))
        self.worlds = 0
        self.doing = ""
        self.lost_in = ""  # where Python lost what a handler raised

    def run(self) -> None:
        self.interrupts.start()
        self.world = self.new_world()
        if isinstance(self.interrupts, LineInterrupts):
            self.run_all_events(self.interrupts)
        else:
            while self.total < self.wanted:
                self.perform(self.draw.choice(self.calls))
        self.end_world()
        shutil.rmtree(self.folder)

    def run_all_events(self, interrupts: LineInterrupts) -> None:
        for name in self.calls:
            numbers: Iterable[int] = itertools.count(1)
            if self.sample:
                interrupts.left = MANY
                self.perform(name)
                events = MANY - interrupts.left
                drawn = self.draw.sample(range(1, events + 1), min(self.sample, events))
                numbers = sorted({*drawn, *range(max(events - 2, 1), events + 1)})
            for number in numbers:
                interrupts.left = number
                if self.total >= self.wanted or not self.perform(name):
                    break

    def note_lost(self, lost: sys.UnraisableHookArgs) -> None:
        """Python calls this with an exception that it cannot raise."""
        frames = traceback.extract_tb(lost.exc_traceback)
        steps = " > ".join(f"{each.filename}:{each.lineno} {each.name}" for each in frames)
        self.lost_in = f"in {lost.object!r}: {lost.exc_value!r} {steps}"

    def new_world(self) -> World:
        self.worlds += 1
        self.world_end = self.total + WORLD_INTERRUPTS
        return World(self.folder / str(self.worlds))

    def end_world(self) -> None:
        if isinstance(self.interrupts, LineInterrupts):
            self.interrupts.left = self.draw.randrange(1, 60)
        self.take_steps("end", self.world.end())

    def perform(self, name: str) -> bool:
        """Whether it had an event of the number that is asked for."""
        interrupted = self.take_steps(name, CALLS[name](self.world))
        self.world.count += 1
        if interrupted:
            self.world.check()
            if self.total % 10 == 0:
                self.world.check_locks()
        left = self.interrupts.left
        if self.total >= self.world_end:
            self.end_world()
            self.world = self.new_world()
            self.interrupts.left = left
        return left <= 0

    def take_steps(self, name: str, steps: Steps) -> bool:
        before = self.total
        place = 0
        self.doing = name
        try:
            step: Any = next(steps)
            while True:
                faulthandler.dump_traceback_later(HANG_SECONDS, exit=True)
                outcome = self.interrupted((name, place), step)
                place += 1
                step = None
                step = steps.send(outcome)
        except StopIteration:
            pass
        return self.total > before

    def interrupted(self, key: tuple[str, int], step: Any) -> Outcome:
        waits = isinstance(step, Waiting)
        call = step.call if isinstance(step, Waiting) else step
        by_line = isinstance(self.interrupts, LineInterrupts)
        if not waits and (
            (by_line and self.interrupts.left <= 0) or (not by_line and self.draw.random() < 0.3)
        ):
            return Outcome(False, call())
        longest = min(self.durations.get(key, DELAY_SECONDS_MAX) * 1.3, DELAY_SECONDS_MAX)
        delay = self.draw.uniform(0, longest)
        outcome = Outcome(True)
        self.lost_in = ""
        began = time.monotonic()
        self.doing = f"{key[0]}, step {key[1]}"
        try:
            try:
                self.interrupts.arm(delay, waits)
                outcome.value = call()
                self.interrupts.disarm()
                outcome.interrupted = False
            finally:
                self.interrupts.disarm()
        except BaseException as error:
            self.interrupts.disarm()
            if not is_interrupt(error):
                raise
            outcome.interrupted = True  # a value it has by now stays: the caller closes it
        if outcome.interrupted:
            self.total += 1
            self.counts[key[0]] += 1
        else:
            known = self.durations.get(key, 0.001)
            self.durations[key] = 0.8 * known + 0.2 * (time.monotonic() - began)
            if self.interrupts.fired:
                place = f"{key[0]}, step {key[1]} {self.interrupts.where} {self.lost_in}"
                self.swallowed[place] += 1
        return outcome


def load(calls: list[str]) -> None:
    """Perform all calls once, uninterrupted: an import runs callbacks of weak references, in which
    Python loses what a handler raises."""
    with tempfile.TemporaryDirectory(prefix="pulsarx-interrupts-") as folder:
        world = World(Path(folder))
        for name in calls:
            steps = CALLS[name](world)
            try:
                step: Any = next(steps)
                while True:
                    is_left = isinstance(step, Waiting)
                    value = None if is_left else step()
                    step = steps.send(Outcome(is_left, value))
            except StopIteration:
                world.count += 1
        world.clocked.shutdown()
        world.client.shutdown()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=sorted(KINDS), action="append", required=True)
    parser.add_argument("--interrupts", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--call", choices=sorted(CALLS), action="append")
    given = parser.parse_args()
    logging.basicConfig(level=logging.ERROR)
    sys.setswitchinterval(1e-4)
    calls = given.call or list(CALLS)
    load(calls)
    for kind in given.kind:
        interrupt_all(Run(kind, given.seed, given.interrupts, calls, given.sample), kind)
    return 0


def interrupt_all(run: Run, kind: str) -> None:
    sys.unraisablehook = run.note_lost
    began = time.monotonic()
    try:
        run.run()
    except BaseException:
        place = f"{run.doing} {run.interrupts.where}"
        print(f"{kind}: after {run.total} interrupts: {place}", flush=True)
        raise
    faulthandler.cancel_dump_traceback_later()
    seconds = time.monotonic() - began
    print(f"{kind}: {run.total} interrupts in {seconds:.1f} s, {run.worlds} folders")
    print(", ".join(f"{name} {count}" for name, count in sorted(run.counts.items())))
    if run.swallowed:
        print(f"raised and not seen by the caller: {dict(run.swallowed)}")


if __name__ == "__main__":
    sys.exit(main())
