"""Cuts the power of a file system on a loop device while a process writes to a folder on it, again
and again, and looks at what is left. As root:

    unshare -m --propagation private .venv/bin/python tests/reliability/power_cuts.py \\
        ext4 sync 100 SEED [no_flushes]

FS_IOC_SHUTDOWN without a flush of the journal drops all that the device has not got; the file
system is mounted again, as after a power cut. What was confirmed counts as of before the call: a
flush on its way may answer 0 behind it. The mounts are in a namespace of their own, as another one
that has them too would keep a dead file system alive.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cut_writer
import planted_code

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.backups import check

SHUTDOWN, WITHOUT_FLUSH = 0x8004587D, struct.pack("I", 2)  # FS_IOC_SHUTDOWN
SIZES_MB = {"ext4": 64, "xfs": 320}
LINES_MAX = 80  # that a writer says before the power is cut
CUTS_A_FOLDER = 8
DURABILITIES = ("sync", "interval", "os")
BUGS = {
    # All that makes files durable does nothing, and says that it did.
    "no_flushes": ("file_flush", "file_flush_map", "file_flush_directory"),
    "no_flushes_of_files": ("file_flush", "file_flush_map"),
    "no_flushes_of_acknowledgements": ("file_flush_map",),
    "no_flushes_of_directories": ("file_flush_directory",),
}


class NoFileSystem(Exception):
    """A file system cannot be made or mounted here."""


def run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise NoFileSystem(f"{command[0]} is missing") from error
    if done.returncode:
        raise NoFileSystem(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")


class Disk:
    """A file system in a file. As a context manager: mounted, and unmounted in the end."""

    def __init__(self, kind: str, work: Path) -> None:
        self._kind = kind
        self._image = work / "image"
        self.place = work / "mounted"

    def __enter__(self) -> Disk:
        self.place.mkdir()
        with open(self._image, "wb") as file:
            file.truncate(SIZES_MB[self._kind] << 20)
        run(f"mkfs.{self._kind}", "-q", str(self._image))
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        run("umount", str(self.place))

    def _mount(self) -> None:
        run("mount", "-t", self._kind, "-o", "loop", str(self._image), str(self.place))

    def cut(self) -> None:
        """From here on nothing reaches the device."""
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, WITHOUT_FLUSH)
        finally:
            os.close(descriptor)

    def back(self) -> None:
        """The power is back. Nobody has a file of it open."""
        run("umount", str(self.place))
        self._mount()


class Confirmed:
    """What writers of one folder have said."""

    def __init__(self) -> None:
        self.messages: set[int] = set()
        self.keyed: set[int] = set()
        self.topics: set[int] = set()  # of the administration
        self.deleted: set[int] = set()
        self.made: set[int] = set()  # by producers
        self.touched: set[int] = set()  # perhaps acknowledged
        self.acknowledged: set[int] = set()  # before a close
        self.closed_at = 0
        self.next = 0

    def hear(self, lines: list[bytes]) -> None:
        """The lines of one writer. What one before it acknowledged last may have been lost."""
        now: set[int] = set()
        for line in lines:
            kind, what = line.split()
            number = int(what)
            if kind == b"P":
                self.messages.update(range(self.next, number + 1))
                self.next = number + 1
            elif kind == b"V":
                self.keyed.add(number)
            elif kind == b"K":
                now.add(number)
            elif kind == b"T":
                self.topics.add(number)
            elif kind == b"d":
                self.topics.discard(number)
            elif kind == b"D":
                self.deleted.add(number)
            elif kind == b"M":
                self.made.add(number)
            elif kind == b"C":
                self.closed_at = number
                self.acknowledged |= now
        self.touched |= now

    def promised(self, confirmed: set[int], durability: str) -> set[int]:
        """The messages that a power cut leaves: what the last interval had not written may be lost,
        unless the folder was closed behind it; with durability os anything that is told."""
        if durability == "os":
            return set()
        if durability == "sync":
            return confirmed
        return {each for each in confirmed if each < self.closed_at}


def in_child(function: Any, *arguments: Any) -> tuple[int, int]:
    """Run a function in a child, which never returns; its pid, and the end that it writes to."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            logging.disable()  # of a device that is gone
            function(*arguments, writing)
            status = 0
        except BaseException as error:  # its power is gone, or what it looks at is damaged
            os.write(writing, f"! {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(status)
    os.close(writing)
    return pid, reading


def look(folder: Path, durability: str, telling: int) -> None:
    """Say what is in a folder, as JSON."""
    found: dict[str, Any] = {"damage": [(each.what, each.text) for each in check(folder).damage]}
    with cut_writer.opened(folder, durability) as client:
        with client.create_reader("t", MessageId.earliest) as reader:
            found["messages"] = read(reader.read_next, found["damage"])
        for name, compacted in (("keyed", False), ("compacted", True)):
            with client.create_reader(
                "keyed", MessageId.earliest, is_read_compacted=compacted
            ) as reader:
                found[name] = read(reader.read_next, found["damage"])
        with client.create_producer("t", "p") as producer:
            found["sequence"] = producer.last_sequence_id()
        found["topics"] = client.admin.topics.get_list("public/default")
        found["made"] = []
        for topic in found["topics"]:
            if "made-" in topic:
                with client.create_reader(topic, MessageId.earliest) as reader:
                    found["made"] += read(reader.read_next, found["damage"])
        with client.subscribe(
            "t", "s", pulsarx.ConsumerType.Shared,
            initial_position=pulsarx.InitialPosition.Earliest,
        ) as consumer:  # fmt: skip
            found["left"] = read(consumer.receive, found["damage"])
    data = json.dumps(found).encode()
    while data:
        data = data[os.write(telling, data) :]


def read(receive: Any, damage: list[tuple[str, str]]) -> list[int]:
    found = []
    while True:
        try:
            found.append(int(receive(0).data()))
        except errors.CorruptDataError as error:
            damage.append(("entries", errors.detail_of(error)))
        except errors.Timeout:
            return found


def warm_up() -> None:
    """Load what children would load each for itself."""
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "f"
        with cut_writer.opened(folder, "os") as client:
            client.create_producer("t").send(b"0")
        reading, writing = os.pipe()
        look(folder, "os", writing)
        os.close(reading)
        os.close(writing)


def read_whole(descriptor: int) -> bytes:
    parts = []
    while part := os.read(descriptor, 1 << 16):
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts)


def cut_once(
    disk: Disk, folder: Path, durability: str, seed: int, known: Confirmed, bug: str
) -> list[str]:
    """Cut the power while a writer is at work; what is wrong then."""
    chance = random.Random(seed)

    def plant() -> None:
        if bug:
            planted_code.let_return_0("pulsarx._core.file_ops", *BUGS[bug])

    def write(telling: int) -> None:
        cut_writer.write(folder, durability, known.next, seed, telling, plant)

    pid, telling = in_child(write)
    # Each fourth one while it opens what the cut before has left.
    wanted, data = 1 if chance.random() < 0.25 else chance.randrange(LINES_MAX), b""
    while data.count(b"\n") < wanted:
        part = os.read(telling, 1 << 16)
        if not part:
            os.waitpid(pid, 0)
            return [f"the writer ended by itself: {data[-300:]!r}"]
        data += part
    os.set_blocking(telling, False)
    try:
        while part := os.read(telling, 1 << 16):
            data += part
    except BlockingIOError:
        pass
    disk.cut()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.set_blocking(telling, True)
    late = read_whole(telling)
    known.hear(data[: data.rfind(b"\n") + 1].splitlines())
    # What it did behind the cut may be there or not.
    touched = [int(line.split()[1]) for line in late.splitlines() if line.startswith(b"K ")]
    known.touched.update(touched)
    disk.back()
    if not known.next and not (folder / "PULSARX").exists():
        return []  # it was not made yet; the next writer makes it of whatever lies there
    pid, telling = in_child(look, folder, durability)
    data = read_whole(telling)
    os.waitpid(pid, 0)
    if data.startswith(b"!"):
        return [data.decode()]
    return wrong(json.loads(data), known, durability)


def wrong(found: dict[str, Any], known: Confirmed, durability: str) -> list[str]:
    damage = found["damage"]
    if durability == "os":  # ledgers lose what was not written, and that is told
        damage = [each for each in damage if each[0].split()[-1] not in ("entries", "ledger")]
    told = [f"damage of {what}: {text}" for what, text in damage]
    messages, left = found["messages"], found["left"]
    if messages != sorted(set(messages)):
        told.append(f"out of order, or twice: {messages[-40:]}")
    for confirmed, there in ((known.messages, messages), (known.keyed, found["keyed"])):
        if lost := known.promised(confirmed, durability) - set(there):
            told.append(f"{len(lost)} confirmed messages are lost, from {min(lost)} on")
    if found["keyed"] != sorted(set(found["keyed"])) or not set(found["compacted"]) <= set(
        found["keyed"]
    ):
        told.append(f"with keys: {found['keyed'][-40:]}, compacted: {found['compacted'][-40:]}")
    if not found["damage"]:
        if last_of_keys(found["keyed"]) != last_of_keys(found["compacted"]):
            told.append(f"compacted: {found['compacted']} of {found['keyed']}")
        if found["sequence"] != max(messages, default=-1):
            told.append(f"the last sequence id is {found['sequence']}: {messages[-10:]} are there")
    names = {each.rpartition("/")[2] for each in found["topics"]}
    if gone := {each for each in known.topics if f"more-{each}" not in names}:
        told.append(f"topics are lost: {sorted(gone)}")
    if still := {each for each in known.deleted if f"more-{each}" in names}:
        told.append(f"deleted topics are there: {sorted(still)}")
    if lost := known.promised(known.made, durability) - set(found["made"]):
        told.append(f"lost of topics that producers made: {sorted(lost)}")
    if skipped := set(messages) - known.touched - set(left):
        told.append(f"never acknowledged, and skipped: {sorted(skipped)}")
    if again := known.acknowledged & set(left):
        told.append(f"acknowledged before a close, and delivered again: {sorted(again)}")
    if unknown := set(left) - set(messages):
        told.append(f"delivered, and not in the topic: {sorted(unknown)}")
    # What was not confirmed may be there or not: what is there now stays.
    known.messages, known.keyed = set(messages), set(found["keyed"])
    known.made = set(found["made"])
    known.next = max(known.next, *messages, *found["keyed"], 0) + 1
    known.closed_at = known.next
    return told


def last_of_keys(numbers: list[int]) -> dict[str, int]:
    return {cut_writer.key_of(each): each for each in numbers}


def cuts(kind: str, durability: str, count: int, seed: int, bug: str = "") -> list[str]:
    """So many power cuts; what was wrong, each with the number of its cut."""
    found = []
    warm_up()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # what counts is the loop
    with (
        tempfile.TemporaryDirectory(prefix="pulsarx-power-cuts-", dir=memory) as work,
        Disk(kind, Path(work)) as disk,
    ):
        for number in range(count):
            if number % CUTS_A_FOLDER == 0:
                folder, known = disk.place / f"f{number}", Confirmed()
            told = cut_once(disk, folder, durability, seed + number, known, bug)
            found += [f"cut {number} (seed {seed + number}): {each}" for each in told]
            if told:  # what a folder lost is missing in the next cut too
                folder, known = disk.place / f"f{number}-next", Confirmed()
            if bug and found:
                break
    return found


def main(kind: str, durability: str, count: str, seed: str, bug: str = "") -> None:
    """Write what was found as the last line, JSON."""
    begun = time.monotonic()
    try:
        found = cuts(kind, durability, int(count), int(seed), bug)
        answer = {"wrong": found, "cuts_a_second": int(count) / (time.monotonic() - begun)}
    except NoFileSystem as error:
        answer = {"skip": str(error)}
    print(json.dumps(answer))


if __name__ == "__main__":
    main(*sys.argv[1:])
