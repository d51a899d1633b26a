"""Records a workload, and checks the images that a crash at any of its calls may leave."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash_history import History
from crash_session import Recovery, recover
from crash_workloads import WORKLOADS, Program

from pulsarx._pycore.ground import file_system
from pulsarx.testing.device import Device, Image

FLUSHES = ("flush", "flush_map", "flush_directory")
SECOND_IMAGES = 12  # of crashes in one recovery, about
MEMORY = Path("/dev/shm")

Calls = list[Any]
Change = Callable[[Calls], Calls]


class CrashFault(AssertionError):
    """A crash may leave this image, and what was promised does not hold in it."""


@dataclass
class Counts:
    images: int = 0  # that a crash may leave
    opened: int = 0  # of them with contents of their own, each of which an owner opened
    second: int = 0  # images of crashes while an owner opened such a one and used it
    seconds_opened: int = 0

    def __str__(self) -> str:
        return (
            f"{self.images} images, {self.opened} different; of crashes in their recovery "
            f"{self.second}, {self.seconds_opened} different"
        )


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory where there is one, else of the usual place for temporary files."""
    above = tempfile.mkdtemp(prefix="crash-images-", dir=MEMORY if MEMORY.is_dir() else None)
    try:
        yield Path(above)
    finally:
        shutil.rmtree(above, ignore_errors=True)


def recorded(act: Callable[[], object]) -> Calls:
    file_system.record_install()
    try:
        act()
    finally:
        file_system.record_remove()
    calls: Calls = file_system.record_calls()
    file_system.record_free()
    return calls


def workload_calls(name: str, durability: str, folder: Path) -> Calls:
    def act() -> None:
        program = Program(folder, durability)
        try:
            WORKLOADS[name](program)
        finally:
            program.client.close()

    calls = recorded(act)
    same_as_folder(calls, folder)
    return calls


def same_as_folder(calls: Calls, folder: Path) -> None:
    """The recording has all that was done: what it gives is what is there."""
    device = Device(folder)
    for call in calls:
        device.apply(call)
    given, there = device.written(), Device(folder, holds=folder).written()
    names = given.files.keys() ^ there.files.keys()
    names -= {each for each in names if given.files.get(each, 0) is None}  # removed, or empty
    assert not names, f"the recording lacks {names}"
    different = [path for path in there.files if there.files[path] != given.files[path]]
    assert not different, f"the recording lacks what was done to {different}"


class CrashImages:
    """Checks images of recordings, drawn by a seed."""

    def __init__(self, scratch: Path, seed: int, *, images: int, most: int, second: int) -> None:
        """images: of a recording, about; most: of one moment of it. second: one in so many of the
        different images has crashes in its recovery, too; 0: none."""
        self.counts = Counts()
        self._scratch = scratch
        self._chance = random.Random(seed)
        self._images = images
        self._most = most
        self._second = second
        self._known: dict[bytes, Recovery] = {}

    def check(self, what: str, calls: Calls, folder: Path, durability: str) -> None:
        """Raises CrashFault."""
        self._known.clear()
        device, history = Device(folder), History(durability)
        for number, image in self._moments(calls, device, history, self._images, self._most):
            self.counts.images += 1
            recovery = self._known.get(image.digest)
            is_new = recovery is None
            if recovery is None:
                self.counts.opened += 1
                recovery = self._known[image.digest] = self._recovery(image, history)
            where = f"{what}, {durability}, call {number} {calls[number - 1]}, image {image}"
            self._judge(where, history, image, recovery)
            if is_new and self._second and self.counts.opened % self._second == 0:
                self._crash_again(where, image, recovery, history)

    def _moments(
        self, calls: Calls, device: Device, history: History, images: int, most: int
    ) -> Iterator[tuple[int, Image]]:
        """Images in front of flushes, where most may be lost, and behind marks, where most must be
        there; and behind other calls what a kill leaves."""
        moments = sum(call.op in FLUSHES or call.op == "mark" for call in calls)
        share = images / (moments * most + len(calls))
        for number, call in enumerate(calls):
            if call.op in FLUSHES and self._chance.random() < share:
                for image in device.images(self._chance, most):
                    yield number, image
            device.apply(call)
            if call.op == "mark":
                history.apply(call.data)
            if self._chance.random() >= share:
                continue
            if call.op == "mark":
                for image in device.images(self._chance, most):
                    yield number + 1, image
            else:
                yield number + 1, device.written()

    def _recovery(self, image: Image, history: History) -> Recovery:
        folder = self._scratch / "image"
        image.write(folder)
        try:
            return recovered(folder, history)
        finally:
            shutil.rmtree(folder)

    def _judge(self, where: str, history: History, image: Image, recovery: Recovery) -> None:
        faults = [recovery.error] if recovery.error else []
        faults += [*history.faults(recovery.found, image.all_written), *recovery.faults]
        faults += [
            f"check: {each}"
            for each in recovery.checked
            if not history.may_be_damaged(image.all_written, each)
        ]
        if faults:
            raise CrashFault("\n".join([where, *faults, str(self.counts)]))

    def _crash_again(self, where: str, image: Image, recovery: Recovery, history: History) -> None:
        """A crash while an owner opens the image and uses it. What it found stays found."""
        folder, again = self._scratch / "image", self._scratch / "again"
        image.write(folder)
        try:
            device = Device(folder, holds=folder)
            calls = recorded(lambda: recovered(folder, history))
            known: dict[bytes, Recovery] = {}
            then = history.seen(recovery.found)
            for number, second in self._moments(calls, device, then, SECOND_IMAGES, 2):
                self.counts.second += 1
                if second.digest not in known:
                    self.counts.seconds_opened += 1
                    second.write(again)
                    try:
                        known[second.digest] = recovered(again, history)
                    finally:
                        shutil.rmtree(again)
                behind = f"{where}\nand then call {number} {calls[number - 1]}, image {second}"
                self._judge(behind, then, second, known[second.digest])
        finally:
            shutil.rmtree(folder)


def recovered(folder: Path, history: History) -> Recovery:
    names = {name for name, topic in history.topics.items() if topic.deduplicated}
    return recover(folder, history.durability, names, transacts=history.transacts)
