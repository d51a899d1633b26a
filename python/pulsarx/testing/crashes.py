"""Crashes at any moment of a test, without ending its process: what a kill or a power cut would
leave of a folder is made anew, as a folder of its own. For tests; one plan at a time in a process.

with crash_plan("shop") as plan:
    ...                                     # the program works in the folder "shop"
    plan.note(order)                        # the program was told that the order is stored
    plan.power_cut().folder                 # what a device may hold if the power is cut now
    for crash in plan.crashes(50): ...      # crashes at 50 moments up to now
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path

from pulsarx._pycore.ground import file_system
from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker import registry
from pulsarx.testing.device import NOT_RECORDED, Device
from pulsarx.testing.faults import taking_operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random
    from typing import Any

_STATES = 6  # that a power cut is drawn from: all is there, the least, one lacks, some at random
_KILL, _POWER_CUT = "kill", "power cut"
_LEAST = "power cut, all is lost that was not flushed"
_FLUSHES = ("flush", "flush_map", "flush_directory")
_NO_CALLS = ("mark", "store")  # of a recording


class Crash:
    """A crash: what it leaves of the folder, and what was noted before it."""

    def __init__(self, folder: Path, kind: str, place: str, notes: list[Any]) -> None:
        """Use a crash_plan.

        Args:
            folder: Where that lies.
            kind: `"kill"` or `"power cut"`.
            place: At which operation on files, in words.
            notes: The objects that were noted before.
        """
        self.folder = folder
        self.kind = kind
        self.place = place
        self.notes = notes

    def __repr__(self) -> str:
        """Return what crashed where."""
        return f"{self.kind} {self.place}, {len(self.notes)} notes before it: {self.folder}"


class CrashPlan:
    """Records what is done in a folder, and makes crashes of it. Any thread may call, one at a
    time."""

    def __init__(self, folder: Path, images: Path, seed: int | str) -> None:
        """Use `crash_plan`.

        Args:
            folder: The folder that the program uses.
            images: Where folders are made, of which each is what a crash leaves.
            seed: What power cuts leave follows from it.
        """
        self.folder = folder
        self._images = images
        self._seed = seed
        self._notes: list[Any] = []
        self._noting = Lock()
        self._recorded: list[Any] | None = None  # all calls, once no more are recorded
        self._single_count = 0
        self._count = 0
        self._before = _copied(folder, images / "before")

    def note(self, fact: Any) -> None:
        """Say what is true from now on, such as that a message was confirmed. Each crash at a later
        moment has it in its notes.

        Args:
            fact: Any object.
        """
        with self._noting:
            self._notes.append(fact)
            file_system.record_mark(b"%d" % len(self._notes))

    def kill(self, op: str | None = None, call: int = 1) -> Crash:
        """Make what is left if the process is killed: all that was written, and nothing of what
        only the process has.

        Args:
            op: Such as write, flush, rename, link: in front of this operation on files, see
                FaultPlan.fail; None: now.
            call: Which one since the plan began, from 1.

        Returns:
            The crash. Its folder is there until the plan ends.

        Raises:
            ValueError: There was no such operation.
            RuntimeError: The plan has ended.
        """
        return self._single(_KILL, op, call)

    def power_cut(self, op: str | None = None, call: int = 1) -> Crash:
        """Make what a device may hold if the power is cut. What was flushed is there; of what was
        not, any part: pages, halves of pages, names and sizes, as the seed says.

        Args:
            op: As kill; None: now.
            call: Which one since the plan began, from 1.

        Returns:
            The crash. Its folder is there until the plan ends.

        Raises:
            ValueError: There was no such operation.
            RuntimeError: The plan has ended.
        """
        return self._single(_POWER_CUT, op, call)

    def crashes(self, count: int = 20) -> Iterator[Crash]:
        """Make crashes at moments that the seed chooses, half of them power cuts and half kills, in
        the order of the moments. Half of the power cuts come right behind what was noted, and take
        all that was not flushed by then. Nothing more is recorded from here on.

        Args:
            count: How many crashes.

        Yields:
            A crash, whose folder is there until the next one. Each is printed, so that the output
            of a test that fails ends with its crash.

        Raises:
            RuntimeError: The plan has ended.
        """
        self._require_images()
        self.stop()
        calls = self._calls()
        chance = self._chance("crashes")
        places = [at for at, call in enumerate(calls) if call.op not in _NO_CALLS]
        marks = [at + 1 for at, call in enumerate(calls) if call.op == "mark"]
        cuts = [at for at in places if calls[at].op in _FLUSHES]  # there most is not flushed
        behind = -(-count // 4) if marks else 0
        moments = [(at, _LEAST) for at in _some(marks, behind, chance)]
        wanted = -(-count // 2) - behind
        moments += [(at, _POWER_CUT) for at in _some(cuts or [len(calls)], wanted, chance)]
        moments += [(at, _KILL) for at in _some(places or [len(calls)], count // 2, chance)]
        device, done = self._device(), 0
        for number, (end, kind) in enumerate(sorted(moments)):
            for call in calls[done:end]:
                device.apply(call)
            done = end
            crash = self._crash(kind, calls, end, device, self._chance(f"crash {number}"))
            print(crash)
            try:
                yield crash
            finally:
                _remove(crash.folder)

    def stop(self) -> None:
        """Record nothing more: what is done from now on happens after all crashes."""
        if self._recorded is None:
            file_system.record_remove()
            self._recorded = file_system.record_calls()
            file_system.record_free()

    def _single(self, kind: str, op: str | None, call: int) -> Crash:
        self._require_images()
        calls = self._calls()
        end = len(calls)
        if op is not None:
            found = [at for at, each in enumerate(calls) if _is_named(each.op, op)]
            if not 1 <= call <= len(found):
                raise ValueError(f"{op} {call}: there were {len(found)} such operations")
            end = found[call - 1]
        device = self._device()
        for each in calls[:end]:
            device.apply(each)
        self._single_count += 1
        chance = self._chance(f"{kind} {self._single_count}")
        return self._crash(kind, calls, end, device, chance)

    def _crash(
        self, kind: str, calls: list[Any], end: int, device: Device, chance: Random
    ) -> Crash:
        self._count += 1
        if kind == _KILL:
            image = device.written()
        elif kind == _LEAST:
            image, kind = device.flushed(), _POWER_CUT
        else:
            image = chance.choice(list(device.images(chance, _STATES)))
        folder = self._images / f"{self._count}-{kind.replace(' ', '-')}"
        image.write(folder)
        noted = max((int(call.data) for call in calls[:end] if call.op == "mark"), default=0)
        place = f"behind all {end} operations"
        if end < len(calls):
            named = os.path.basename(calls[end].other or calls[end].path)
            place = f"in front of operation {end}, {calls[end].op} {named}".rstrip()
        return Crash(folder, kind, f"{place}, seed {self._seed!r}", self._notes[:noted])

    def _require_images(self) -> None:
        if not self._images.exists():
            raise RuntimeError("a crash is asked for behind the block of its plan")

    def _calls(self) -> list[Any]:
        return file_system.record_calls() if self._recorded is None else self._recorded

    def _device(self) -> Device:
        return Device(self.folder, holds=self._before)

    def _chance(self, what: str) -> Random:
        """Randomness of its own for each crash, so that one does not depend on how much those
        before it have drawn."""
        from random import Random

        return Random(f"{self._seed} {what}")


@contextmanager
def crash_plan(folder: str | os.PathLike[str], *, seed: int | str = 0) -> Iterator[CrashPlan]:
    """Record what this process does in a folder within the block, so that a test can have crashes
    at any moment of it. What the folder holds before is taken as flushed.

    The program under test opens the folder within the block, not before, and no other process uses
    it. It goes on undisturbed: a crash is a folder of its own.

    Args:
        folder: A folder that this process has not open, or the place of a new one.
        seed: What is left by chance follows from it: where the same operations are done, each run
            has the same crashes.

    Yields:
        The plan.

    Raises:
        RuntimeError: The folder is open, or another plan of crashes or faults is in force.

    Example:
        from pulsarx.testing import crash_plan, published

        with crash_plan("shop") as plan:
            with pulsarx.Client("shop") as client:
                producer = client.create_producer("orders")
                producer.send(b"one")
                plan.note(b"one")
                producer.send_async(b"two", None)
                crash = plan.power_cut()
            with pulsarx.Client(crash.folder) as client:
                published(client, "orders", *crash.notes)
    """
    from tempfile import TemporaryDirectory

    place = Path(folder).absolute()
    if registry.find(os.path.realpath(place)) is not None:
        raise RuntimeError(f"crash_plan: {place} is open; what was done to it was not recorded")
    with TemporaryDirectory(prefix="pulsarx-crashes-") as images, taking_operations("crash_plan"):
        plan = CrashPlan(place, Path(images), seed)
        file_system.record_install()
        try:
            yield plan
        finally:
            plan.stop()


def _some(among: list[int], count: int, chance: Random) -> list[int]:
    """So many of them by chance, each about as often as the others. There is one, or count is
    0."""
    found: list[int] = []
    while len(found) < count:
        found += chance.sample(among, min(len(among), count - len(found)))
    return found


def _copied(folder: Path, target: Path) -> Path | None:
    """A copy of a folder as it is; None: it is not there."""
    from shutil import copytree, ignore_patterns

    if not folder.exists():
        return None
    copytree(folder, target, ignore=ignore_patterns(*NOT_RECORDED))
    return target


def _remove(folder: Path) -> None:
    from shutil import rmtree

    rmtree(folder, ignore_errors=True)


def _is_named(op: str, name: str) -> bool:
    """Whether a plan of faults means this operation by the name."""
    return op == name or (op == "flush_map" and name == "flush")
