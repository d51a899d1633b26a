"""Bugs that a library of files may have, each of which the images of crashes must show. Those of
order are made in the recording: it then is what a library with that bug would have done."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from crash_images import FLUSHES, Calls

from pulsarx._pycore.ranges.entry_codec import crc32c
from pulsarx.broker.catalogue.topic_operations import TOPIC_OPERATIONS
from pulsarx.broker.ledgers import managed_ledger
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.broker.topics.deduplication import Deduplication
from pulsarx.broker.transactions.coordinator import TransactionCoordinator

CURSOR_HEADER = 4096
FRAME_SIZE = 64


def confirmed_before_the_flush(calls: Calls) -> Calls:
    """A message is confirmed when it is written."""
    changed: Calls = []
    flush = -1  # where the last one is
    for call in calls:
        if call.op == "mark" and call.data.startswith(b'["sent"'):
            changed.insert(flush, call)
            continue
        if call.op == "flush":
            flush = len(changed)
        changed.append(call)
    return changed


def renamed_before_the_flush(calls: Calls) -> Calls:
    """A commit gets its name first, and is flushed when the folder was."""
    changed: Calls = []
    late: Calls = []
    for at, call in enumerate(calls):
        following = [each.op for each in calls[at : at + 3]]
        named = following == ["flush", "close", "link"] and calls[at + 2].other.endswith(".commit")
        if named or (late and call.op == "close"):
            late.append(call)
            continue
        changed.append(call)
        if late and call.op == "flush_directory":
            changed += late
            late = []
    return changed + late


def no_flush_of_a_folder(calls: Calls) -> Calls:
    """That of the catalogue."""
    return [
        call
        for call in calls
        if call.op != "flush_directory" or not call.path.endswith("/catalogue")
    ]


def sealed_before_the_footer(calls: Calls) -> Calls:
    """The record that says where the footer is comes in front of the footer."""
    changed: Calls = []
    sealed = {at for at, call in enumerate(calls) if call.data.startswith(b"PULSARXS")}
    footers = {at for at, call in enumerate(calls) if b"PULSARXF" in call.data}
    early: list[int] = []
    for at, call in enumerate(calls):
        if at in footers:
            seal = min(each for each in sealed if each > at and calls[each].fd == call.fd)
            flush = next(each for each in range(seal, len(calls)) if calls[each].op == "flush")
            early += [seal, flush]
            changed += [calls[seal], calls[flush]]
        if at not in early:
            changed.append(call)
    return changed


def no_flush(calls: Calls) -> Calls:
    return [call for call in calls if call.op not in FLUSHES]


def lost_acknowledgement_in_a_snapshot(calls: Calls) -> Calls:
    """Of the ledger in the snapshot of a cursor the last acknowledged message is not said."""
    for call in calls:
        if call.op == "write" and call.data.startswith(b"PXCURSOR"):
            call.data = without_one(call.data)
    return calls


def without_one(data: bytes) -> bytes:
    """The file of a cursor (FORMAT.md) with one acknowledged message less, and right checksums."""
    header, snapshot = bytearray(data[:CURSOR_HEADER]), bytearray(data[CURSOR_HEADER:])
    (size,) = struct.unpack_from("<Q", header, 48)
    numbers = snapshot[16:size]
    # acknowledged_below, how many ledgers, and of the first one its distance and `contiguous`: each
    # of one byte in short histories.
    if len(numbers) < 4 or max(numbers[:4]) > 127 or not numbers[1] or not numbers[3]:
        return data
    snapshot[16 + 3] -= 1
    struct.pack_into("<I", header, 72, crc32c(bytes(snapshot[:size])))
    struct.pack_into("<I", header, 12, crc32c(bytes(header[:12] + header[16:])))
    return bytes(header + snapshot)


@contextlib.contextmanager
def snapshot_of_sequences_ahead() -> Iterator[None]:
    """The snapshot of what producers have stored is written before their messages are flushed."""
    whole = Deduplication.snapshot

    def hasty(self: Any) -> None:
        with mock.patch.object(ManagedLedger, "flush", lambda self: None):
            whole(self)

    with mock.patch.object(Deduplication, "snapshot", hasty):
        yield


# Of transactions -------------------------------------------------------------------------------


@contextlib.contextmanager
def told_before_the_flush() -> Iterator[None]:
    """The record that a transaction is committed comes first, and then its messages are flushed."""
    whole, flush = TransactionCoordinator._tell_catalogue, ManagedLedger.flush

    def later(self: Any, *, sealed: bool = True) -> None:
        if sealed:
            flush(self, sealed=sealed)

    def hasty(self: Any, transaction: Any, committed: bool, messages: Any) -> None:
        whole(self, transaction, committed, messages)
        for ledger in messages:
            flush(ledger, sealed=False)

    with (
        mock.patch.object(TransactionCoordinator, "_tell_catalogue", hasty),
        mock.patch.object(ManagedLedger, "flush", later),
    ):
        yield


@contextlib.contextmanager
def told_topic_by_topic() -> Iterator[None]:
    """An end has a record for each topic."""
    whole = TransactionCoordinator._tell_catalogue

    def split(self: Any, transaction: Any, committed: bool, messages: Any) -> None:
        number = transaction.number
        for ledger, runs in messages.items():
            whole(self, transaction, committed, {ledger: runs})
            transaction.number = self._take_number()
        transaction.number = number

    with mock.patch.object(TransactionCoordinator, "_tell_catalogue", split):
        yield


@contextlib.contextmanager
def aborted_forgotten_at_recovery() -> Iterator[None]:
    """What was open when its owner was killed is sealed as if it had been committed."""
    with mock.patch.object(managed_ledger, "runs_without", lambda runs, others: []):
        yield


@contextlib.contextmanager
def committed_forgotten_at_recovery() -> Iterator[None]:
    """What was committed in a ledger that was not sealed is aborted."""
    with mock.patch.object(managed_ledger, "runs_without", lambda runs, others: runs):
        yield


@contextlib.contextmanager
def aborted_forgotten_at_the_seal() -> Iterator[None]:
    seal, *fields = TOPIC_OPERATIONS["seal_ledger"]

    def forgetful(draft: Any, operation: Any) -> None:
        topic, ledger_id = draft.topic(operation["topic"]), operation["ledger_id"]
        seal(draft, operation)
        topic.aborted.pop(ledger_id, None)

    with mock.patch.dict(TOPIC_OPERATIONS, seal_ledger=(forgetful, *fields)):
        yield


# Each with the workload and durability that show it; planted while that is recorded, and while the
# next owner looks.
TRANSACTION_BUGS: dict[str, tuple[Any, str, str]] = {
    each.__name__: (each, workload, durability)
    for each, workload, durability in (
        (told_before_the_flush, "transact", "interval"),
        (told_topic_by_topic, "transact", "sync"),
        (aborted_forgotten_at_recovery, "transact", "sync"),
        (committed_forgotten_at_recovery, "transact", "os"),
        (aborted_forgotten_at_the_seal, "transact_at_once", "sync"),
    )
}


def appended_behind_a_hole(folder: Path, calls: Calls) -> str:
    """What an owner does that goes on in the ledger of a dead one instead of sealing it: behind the
    last entry that is whole, where the second one of the workload was lost, it stores a message of
    the same size, durably. Its text; "": the ledger does not end there."""
    second = next(each for each in calls if each.op == "write" and b"m1 m1" in each.data)
    frame = second.data[:FRAME_SIZE]
    size = int.from_bytes(frame[:4], "little")
    entry = second.data[FRAME_SIZE : FRAME_SIZE + size].replace(b"m1", b"n1")
    entry = entry[:2] + crc32c(entry[6:]).to_bytes(4, "big") + entry[6:]
    for path in folder.glob("ledgers/*/*.ledger"):
        with path.open("r+b") as file:
            file.seek(second.offset)
            if b"m0 m0" in path.read_bytes() and file.read(FRAME_SIZE) == bytes(FRAME_SIZE):
                file.seek(second.offset)
                file.write(frame + entry)
                return "n1"
    return ""


Bug = Callable[[Calls], Calls]
# What each bug is in: the workload and durability that show it.
BUGS: dict[str, tuple[Bug, str, str]] = {
    each.__name__: (each, workload, durability)
    for each, workload, durability in (
        (confirmed_before_the_flush, "publish_one_by_one", "sync"),
        (renamed_before_the_flush, "administer", "sync"),
        (no_flush_of_a_folder, "administer", "sync"),
        (sealed_before_the_footer, "roll_over", "sync"),
        (no_flush, "publish_batches", "sync"),
        (lost_acknowledgement_in_a_snapshot, "seek", "sync"),
    )
}
