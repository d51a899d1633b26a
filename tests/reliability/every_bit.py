"""The sweep over every bit of a tiny folder: flips one, looks at the folder in each way there is,
and says what is wrong with what it got.

What must hold whichever bit flipped: each message that is delivered is one that was published, at
its place and in its order, once; what is missing is told; the folder still opens; `check` tells the
flip, unless `meaningless` has it, where nothing is missing; and `salvage` misses the messages of
one entry at most.

    .venv/bin/python tests/reliability/every_bit.py 0 499    # these slices; all of them: every bit
"""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

import tiny_folder
from golden_contents import message_row
from tiny_folder import SUBSCRIPTIONS, TOPICS

import pulsarx
from pulsarx import errors
from pulsarx.backups import check, salvage
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import folder_id_of
from pulsarx.testing import inspect
from pulsarx.topic_name import TopicName

BLOCK, FRAME, FOOTER, SLOT = 4096, 64, 128, 16
INDEX_RECORD, ENDS_SLOT = 32, 64
SLICES = 499  # a prime: each slice has bits of every byte of a word and every part of a file
NEAR = 512  # bytes at each end of what has no meaning; of `ends` all slots in use
TRIES_MAX = 100  # of one reader
# Of what is told by it more may seem to be missing than there was.
EVIDENCE = "evidence of what readers saw: what it tells may never have been, and hides nothing"


def work_folder() -> str | None:
    """Memory, where there is some that is a folder: a sweep writes little but often."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def entries_end(data: bytes, begin: int = 0) -> int:
    """Where the entries of a ledger end, that begins there; from its own beginning."""
    at = BLOCK
    while size := u32(data, begin + at):
        if data[begin + at + FRAME : begin + at + FRAME + 2] != b"\x0e\x01":
            break
        at += FRAME + -(-size // 8) * 8
    return at


def ledger_end(data: bytes, begin: int = 0) -> int:
    """Behind the footer of a sealed one; where the entries of an open one end."""
    end = entries_end(data, begin)
    if data[begin + 512 : begin + 520] != b"PULSARXS":
        return end
    return u64(data, begin + 512 + 24) + FOOTER


def merged_parts(data: bytes) -> list[tuple[int, int]]:
    """Where the ledgers of a file begin and end."""
    found, at = [], 0
    while at < len(data) and data[at : at + 8] == b"PULSARXL":
        end = at + ledger_end(data, at)
        found.append((at, end))
        at = -(-end // BLOCK) * BLOCK
    return found


def meaningless(name: str, data: bytes) -> list[tuple[int, int, str]]:
    """The bytes of a file that say nothing, or nothing that is relied upon: first, behind the last,
    and why. Derived from FORMAT.md and the README of the broker."""
    return [each for each in _meaningless(name, data) if each[0] < each[1]]


def _meaningless(name: str, data: bytes) -> list[tuple[int, int, str]]:
    kind = name.partition("/")[0]
    if kind == "LOCK":
        return [(0, len(data), "the lock says whether there is an owner, the text who it was")]
    if kind == "reserve":
        return [(0, len(data), "room, and no data")]
    if kind == "ends":
        return [(0, len(data), EVIDENCE)]
    if kind == "staging":
        return [(0, len(data), "read when it is attached, and part of no topic before")]
    if kind == "cursors" and "." in name.rpartition("/")[2]:
        tail = u64(data, 56)
        slots = range(tail, tail + u64(data, 64), SLOT)
        empty = [at for at in slots if not u64(data, at + 8)]
        snapshot_end = BLOCK + u64(data, 48)
        return [
            (snapshot_end, tail, "zeros between snapshot and tail"),
            *((at, at + 8, "word 0 of an empty slot") for at in empty),
        ]
    if kind in ("ledgers", "store"):
        if data[512:520] != b"PULSARXS" and entries_end(data) == BLOCK:
            return [(0, len(data), "a prepared ledger without an entry, which the owner removes")]
        parts = merged_parts(data)
        behind = [(at, next_at) for (_, at), (next_at, _) in pairwise(parts)]
        return [
            *((at, next_at, "between merged ledgers") for at, next_at in behind),
            (parts[-1][1], len(data), "prepared space behind a ledger"),
        ]
    return []


class Told(logging.Handler):
    """What the log says, warnings and worse."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())

    def __enter__(self) -> Told:
        log = logging.getLogger("pulsarx")
        self._before = log.propagate, log.level
        log.addHandler(self)
        log.propagate = False
        return self

    def __exit__(self, *_: object) -> None:
        log = logging.getLogger("pulsarx")
        log.removeHandler(self)
        log.propagate = self._before[0]


Row = str
Rows = list[Row]


def rows(receive: Any) -> tuple[Rows, list[str]]:
    """What a reader or consumer gets without waiting, and what it is told."""
    found: Rows = []
    told: list[str] = []
    for _ in range(TRIES_MAX):
        try:
            row = message_row(receive(0))
        except errors.Timeout:
            return found, told
        except errors.PulsarException as error:
            told.append(errors.detail_of(error))
            continue
        row.pop("redelivered", None)
        found.append(json.dumps(row))
    raise AssertionError(f"it goes on for ever: {found[-3:]}, {told[-3:]}")


class Looks:
    """What one look at a folder gave: the messages by topic or subscription, and what was told."""

    def __init__(self) -> None:
        self.messages: dict[str, Rows] = {}
        self.told: list[str] = []

    def read(self, name: str, receive: Any) -> None:
        found, told = rows(receive)
        self.messages[name] = found
        self.told += told

    def read_topics(self, client: pulsarx.Client) -> None:
        first = pulsarx.MessageId.earliest
        for topic in TOPICS:
            with client.create_reader(topic, first) as reader:
                self.read(topic, reader.read_next)
        with client.create_reader("keyed", first, is_read_compacted=True) as reader:
            self.read("compacted", reader.read_next)


def look_beside(folder: Path) -> Looks:
    found = Looks()
    with pulsarx.Client(folder, read_only=True) as client:
        found.read_topics(client)
    return found


def look_as_owner(folder: Path) -> Looks:
    found = Looks()
    with tiny_folder.opened(folder) as client:
        found.read_topics(client)
        for name in SUBSCRIPTIONS:
            with tiny_folder.subscribed(client, name) as consumer:
                found.read(name, consumer.receive)
        inspect(client).settle()
    return found


class EveryBit:
    """A tiny folder, and what is in it. Used by one thread."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self.folder = tiny_folder.make(work / "whole")
        self._staged = StagedFile.of_file(
            str(self.folder), folder_id_of(self.folder), TopicName.of("t").full, "job", "one"
        )
        copy = self._copy(self.folder)
        self._attached = self._attach(copy, thorough=True).messages["t"]
        shutil.rmtree(copy)
        copy = self._copy(self.folder)
        self._published = look_beside(copy).messages
        self._expected = look_as_owner(copy).messages
        shutil.rmtree(copy)
        for name in (*TOPICS, "compacted"):
            assert self._expected[name] == self._published[name]
        self.targets: list[str] = self._targets()

    def _copy(self, folder: Path) -> Path:
        return Path(shutil.copytree(folder, self._work / "copy"))

    def _attach(self, copy: Path, thorough: bool) -> Looks:
        attach(copy, Transaction("app", 1), [self._staged], thorough=thorough)
        return look_beside(copy)

    def _targets(self) -> list[str]:
        """Files of every kind, and ledgers of every state: one of those that are alike."""
        state = pulsarx.Client(self.folder, read_only=True)
        try:
            topics = inspect(state).catalogue.state.topics.values()
            alike = {}
            for topic in topics:
                for each in topic.ledgers:
                    if not self._ledger(each.file_id).exists():
                        continue  # it is in the object store
                    data = self._ledger(each.file_id).read_bytes()
                    cut = data[1024:1028] == b"PULS"
                    alike[each.state, bool(each.merged_id), cut] = self._ledger(each.file_id)
                if topic.compaction is not None:
                    alike["compacted", False, False] = self._ledger(topic.compaction.ledger_id)
        finally:
            state.close()
        commits = sorted((self.folder / "catalogue").glob("*.commit"))
        checkpoints = sorted((self.folder / "catalogue").glob("*.checkpoint"))
        newest = int(checkpoints[-1].stem)
        behind = [each for each in commits if int(each.stem) > newest]
        paths = [
            *alike.values(),
            # One that a checkpoint says too, the first one that none does, and the last.
            commits[0], behind[0], commits[-1],
            *checkpoints,
            *(self.folder / "cursors").iterdir(),
            min((self.folder / "deduplication").iterdir()),
            *(self.folder / name for name in ("PULSARX", "LOCK", "ends", "reserve")),
            *(self.folder / "staging").rglob("*one"),
        ]  # fmt: skip
        objects = tiny_folder.store_of(self.folder).rglob("*.ledger")
        names = [
            *(str(each.relative_to(self.folder)) for each in paths),
            *(str(each.relative_to(self._work)) for each in objects),
        ]
        return sorted(names)

    def path_of(self, name: str) -> Path:
        return (self._work if name.startswith("store/") else self.folder) / name

    def _ledger(self, ledger_id: int) -> Path:
        return self.folder / "ledgers" / f"{ledger_id % 256:02x}" / f"{ledger_id}.ledger"

    def anything(self, seed: int) -> list[str]:
        """What is wrong where every byte without a meaning is any byte at once."""
        chance, copy = random.Random(seed), self._copy(self.folder)
        for path in (each for each in copy.rglob("*") if each.is_file()):
            data = bytearray(path.read_bytes())
            for begin, end, _ in meaningless(str(path.relative_to(copy)), bytes(data)):
                data[begin:end] = chance.randbytes(end - begin)
            path.write_bytes(data)
        with Told() as told:
            found = [each.text for each in check(copy).damage]
            looks = [("beside", look_beside(copy)), ("as owner", look_as_owner(copy))]
        shutil.rmtree(copy)
        for how, look in looks:
            found += self._wrong(how, look, False, told) + look.told
            found += [
                f"{how}, {name}: {len(got)} of {len(self._expected[name])}"
                for name, got in look.messages.items()
                if got != self._expected[name]
            ]
        return found

    # Bits -----------------------------------------------------------------------------------------

    def ranges(self) -> Iterator[tuple[str, int, int]]:
        """The bytes of a whole sweep. Long runs of bytes without a meaning are tried at their ends
        alone, as nothing tells their middle from these."""
        for name in self.targets:
            data = self.path_of(name).read_bytes()
            if name.startswith("staging/"):  # it means something once it is attached
                yield name, 0, ledger_end(data) + NEAR
                continue
            at = 0
            for begin, end, _ in meaningless(name, data):
                if end - begin > 2 * NEAR:
                    yield name, at, begin + NEAR
                    at = end - NEAR
            yield name, at, len(data)

    def bits(self) -> Iterator[tuple[str, int, int]]:
        for name, begin, end in self.ranges():
            for at in range(begin, end):
                for bit in range(8):
                    yield name, at, bit

    def sample(self, seed: int, count: int) -> list[tuple[str, int, int]]:
        """Bits of all files in turn, each second one of a byte that is not zero."""
        chance = random.Random(seed)
        drawn: list[list[tuple[str, int, int]]] = []
        for name in self.targets:
            data = self.path_of(name).read_bytes()
            tried = [at for of, a, b in self.ranges() if of == name for at in range(a, b)]
            places = tried, [at for at in tried if data[at]] or tried
            drawn.append(
                [
                    (name, chance.choice(places[number % 2]), chance.randrange(8))
                    for number in range(1, 1 + -(-count // len(self.targets)))
                ]
            )
        turns = zip_longest(*drawn)
        return [each for turn in turns for each in turn if each is not None][:count]

    def slice(self, number: int, slices: int) -> Iterator[tuple[str, int, int]]:
        for index, each in enumerate(self.bits()):
            if index % slices == number % slices:
                yield each

    # One bit --------------------------------------------------------------------------------------

    def faults(self, name: str, at: int, bit: int) -> list[str]:
        """What is wrong once this bit has flipped; it flips back."""
        path = self.path_of(name)
        data = path.read_bytes()
        why = next((why for a, b, why in meaningless(name, data) if a <= at < b), "")
        with open(path, "r+b", buffering=0) as file:
            os.pwrite(file.fileno(), bytes([data[at] ^ 1 << bit]), at)
            try:
                with Told() as told:
                    found = self._faults(name, at, data, why, told)
            finally:
                os.pwrite(file.fileno(), data[at : at + 1], at)
                for left in ("copy", "salvaged"):
                    shutil.rmtree(self._work / left, ignore_errors=True)
        return [f"bit {bit} of byte {at} of {name}: {each}" for each in found]

    def _faults(self, name: str, at: int, data: bytes, why: str, told: Told) -> list[str]:
        found: list[str] = []
        damage = check(self.folder).damage
        if why != EVIDENCE and bool(damage) == bool(why):
            seen = [each.text for each in damage]
            found.append(
                f"check tells {seen}, though it is {why}" if why else "check tells nothing"
            )
        beside = look_beside(self.folder)
        found += self._wrong("beside", beside, bool(damage), told)
        copy = self._copy(self.folder)
        owner = look_as_owner(copy)
        found += self._wrong("as owner", owner, bool(damage), told)
        if why and why != EVIDENCE and (beside.told or owner.told):
            found.append(f"it is {why}, and told: {[*beside.told, *owner.told]}")
        if name.startswith("staging/"):
            found += self._wrongly_attached(at % 2 == 0)
        made = self._work / "salvaged"
        salvage(self.folder, made)
        found += self._not_salvaged(look_beside(made), self._hurt(name, at, data))
        return found

    def _wrong(self, how: str, looks: Looks, is_damage: bool, told: Told) -> list[str]:
        found = []
        for name, got in looks.messages.items():
            published = self._published["t" if name in SUBSCRIPTIONS else name]
            if fault := order_fault(got, published):
                found.append(f"{how}, {name}: {fault}")
            missing = [each for each in self._expected[name] if each not in got]
            if missing and not (looks.told or told.texts):
                found.append(f"{how}, {name}: missing and not told: {missing}")
            again = [each for each in got if each not in self._expected[name]]
            if again and not (told.texts and is_damage):
                found.append(f"{how}, {name}: acknowledged, and delivered again untold: {again}")
        return found

    def _wrongly_attached(self, thorough: bool) -> list[str]:
        """What attaching the staged file makes of it, unless it is refused."""
        shutil.rmtree(self._work / "copy")
        try:
            looks = self._attach(self._copy(self.folder), thorough)
        except errors.PulsarException:
            return []
        got = looks.messages["t"]
        found = [fault] if (fault := order_fault(got, self._attached)) else []
        if len(got) < len(self._attached) and not looks.told:
            found.append(f"{len(got)} of {len(self._attached)} messages, which nothing told")
        return [f"attached: {each}" for each in found]

    def _hurt(self, name: str, at: int, data: bytes) -> int:
        """How many messages the entry at this place has; 0: there is none."""
        if not name.startswith(("ledgers/", "store/")):
            return 0
        for begin, _ in merged_parts(data):
            place, end = begin + BLOCK, begin + entries_end(data, begin)
            while place < end:
                behind = place + FRAME + -(-u32(data, place) // 8) * 8
                if place <= at < behind:
                    return u32(data, place + 48)
                place = behind
        return 0

    def _not_salvaged(self, looks: Looks, hurt: int) -> list[str]:
        found = []
        for topic in TOPICS:
            got, published = looks.messages[topic], self._published[topic]
            if fault := order_fault(got, published):
                found.append(f"salvaged, {topic}: {fault}")
            if len(published) - len(got) > hurt:
                found.append(f"salvaged, {topic}: {len(got)} of {len(published)} messages")
        return found


def order_fault(got: Rows, published: Rows) -> str:
    """What is wrong with messages that should be some of those, in their order, once; "": nothing.
    A subscription may get what comes again behind the others."""
    unknown = [each for each in got if each not in published]
    if unknown:
        return f"never published: {unknown}"
    places = [published.index(each) for each in got]
    if len(set(places)) < len(places):
        return f"twice: {got}"
    return "" if places == sorted(places) else f"out of order: {got}"


@contextmanager
def new_sweep() -> Iterator[EveryBit]:
    with tempfile.TemporaryDirectory(prefix="pulsarx-every-bit-", dir=work_folder()) as work:
        yield EveryBit(Path(work))


def main(first: int, behind: int) -> None:
    wrong = 0
    with new_sweep() as sweep:
        for number in range(first, behind):
            bits = list(sweep.slice(number, SLICES))
            found = [fault for each in bits for fault in sweep.faults(*each)]
            wrong += len(found)
            print(
                f"slice {number} of {SLICES}: {len(bits)} bits, {len(found)} faults",
                *found,
                flush=True,
            )
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
