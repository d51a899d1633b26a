"""Copies a folder in an order that makes the copy consistent.

step                                        so that
the catalogue's ledgers are leased          nothing is trimmed meanwhile
cursors are copied, and the snapshots of    they speak of nothing that is not published by now
deduplication
the catalogue is read                       it names every ledger that they speak of
its ledgers are copied, each to where it    all is in them that was confirmed before
is published by then
the catalogue is written, as it was read,   the next owner recovers ledgers that were open, as
and the marker last                         behind a killed one

A topic that is deleted meanwhile is left out, as if that had been just before. Where else something
goes (a topic is compacted once more) all of it begins again, but for copies that cannot change any
more. Where the copy is made is a `CopyTarget`'s business: a folder, or a stream to another process.
"""

from __future__ import annotations

import os
import uuid

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.backups.contents import Contents, Damage
from pulsarx.backups.folder_target import FolderTarget
from pulsarx.backups.folder_view import FolderView, LedgerCopy, Snapshot
from pulsarx.backups.proof import Proof, check
from pulsarx.backups.workplace import workplace
from pulsarx.clock import monotonic_ms
from pulsarx.tables.progress import progress_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any, Protocol

    from pulsarx.broker.catalogue.records import OffloadRecord

    Steps = Generator[Any, None, None]

    class CopyTarget(Protocol):
        """Writes the files of a copy. One copy; names are paths in the folder. Its generators yield
        when a block is copied, whatever the one who drives them wants of it."""

        copied: int  # bytes of files, but for the catalogue

        def begin(self) -> Steps: ...
        def expect(self, size: int) -> Steps:
            """Take note of how many bytes will have been copied at the end, as far as is known."""

        def copy(self, name: str, size: int | None) -> Generator[Any, None, bool]:
            """The file of that name, in the place of what was copied of it before. size: how many
            bytes at most; None: all. False: it is not there."""

        def fetch(self, name: str, offload: OffloadRecord) -> Generator[Any, None, bool]:
            """Like copy, for the object that has the bytes of the file."""

        def write(self, name: str, data: bytes) -> Steps: ...
        def remove(self, names: list[str]) -> Steps:
            """Take out of the copy what was copied before."""


LEASE_MS = 600_000  # renewed when a third of it has passed
RENEW_MS = LEASE_MS // 3
_TRIES = 20  # to read the folder while its owner changes it


def backup(folder: Any, target: Any, progress: Any) -> Contents:
    """See pulsarx.backups.backup."""
    show = progress_of(progress, "bytes")
    source = os.path.realpath(os.fspath(folder))
    files = FileSystem()
    with workplace(os.path.realpath(os.fspath(target)), source, files) as work:
        view = control_plane.perform(FolderView, (source,), FolderView.close)
        try:
            return _copy(view, work, files, show)
        finally:
            control_plane.perform(view.close)


def restore(backup: Any, target: Any, progress: Any, allow_damage: bool) -> Contents:
    """See pulsarx.backups.restore."""
    show = progress_of(progress, "bytes")
    source = os.path.realpath(os.fspath(backup))
    files = FileSystem()
    with workplace(os.path.realpath(os.fspath(target)), source, files) as work:
        try:
            view = control_plane.perform(FolderView, (source,), FolderView.close)
        except (errors.CatalogueError, errors.CorruptDataError, errors.FolderError):
            if not allow_damage or not os.path.isdir(source):
                raise
            control_plane.load("pulsarx.backups.salvaging")
            from pulsarx.backups.salvaging import salvage_to

            return salvage_to(source, work, files, show)
        try:
            control_plane.perform(view.require_unowned)
            # Nobody trims it, and it stays as it is.
            _copy(view, work, files, show, leases=False)
            control_plane.perform(view.require_unowned)
        finally:
            control_plane.perform(view.close)
        contents = check(work, False)
        # The copy lacks the files by which a lost commit is told from one that a power cut took.
        told = {each.file for each in contents.damage}
        commits = control_plane.perform(Proof(source).damaged_commits)
        contents.damage += [each for each in commits if each.file not in told]
        damage = [str(each) for each in contents.damage]
        if damage and not allow_damage:
            more = f"; and {len(damage) - 5} more" if len(damage) > 5 else ""
            raise errors.CorruptDataError(
                detail=f"restore {source}: {'; '.join(damage[:5])}{more}. Nothing was restored; "
                "allow_damage restores what is whole"
            )
        return contents


def _copy(
    view: FolderView, work: str, files: FileSystem, show: Any, leases: bool = True
) -> Contents:
    """Copy to a folder. In the caller's thread, which a signal may end between any two lines: what
    it leaves is a lease that ends by itself, and the folder that `workplace` removes."""

    def go_on() -> None:
        """A block was copied, or is on its way."""
        show(target.copied, max(copying.total, target.copied + 1))
        copying.keep_lease()

    target = FolderTarget(view.path, work, files, go_on)
    copying = Copying(view, target, leases)
    steps = copying.steps()
    try:
        for _ in steps:
            go_on()
    finally:
        steps.close()
    show(target.copied, target.copied)
    copying.contents.bytes = target.size()
    return copying.contents


class Copying:
    """One copy. Calls of one thread at a time; any may call renew_lease."""

    def __init__(self, view: FolderView, target: CopyTarget, leases: bool = True) -> None:
        self.total: int = 0  # bytes, as far as is known
        self.contents: Contents = Contents()  # without their bytes
        self._view = view
        self._target = target
        self._leases = leases
        self._job = f"backup-{uuid.uuid4().hex}"
        self._renewed = monotonic_ms()
        self._is_leased = False
        self._finished: set[str] = set()  # files that were copied and never change
        # What was copied: of ledgers, and besides by cursor and topic.
        self._ledger_files: set[str] = set()
        self._cursor_files: dict[int, list[str]] = {}
        self._sequences: dict[int, str] = {}

    def steps(self) -> Steps:
        """The copy is whole when they end. Closing them, or an error, gives the lease back."""
        yield from self._target.begin()
        try:
            for _ in range(_TRIES):
                snapshot = yield from self._snapshot()
                if (yield from self._copy(snapshot)):
                    yield from self._remove_others(snapshot)
                    self._count(snapshot)
                    return
        finally:
            if self._is_leased:
                self._is_leased = False
                control_plane.perform(self._view.release, (self._job,))
        raise errors.StorageError(
            detail=f"copy {self._view.path}: ledgers went {_TRIES} times while they were copied. "
            "Nothing was kept; try again when less is compacted or trimmed"
        )

    # The lease ------------------------------------------------------------------------------------

    def _lease(self, snapshot: Snapshot) -> None:
        """Lease the ledgers of the snapshot; a ledger that is gone by now is noticed where it is
        copied."""
        wanted = snapshot.leased() if self._leases else {}
        if wanted or self._is_leased:
            control_plane.perform(self._view.lease, (self._job, wanted, LEASE_MS))
            self._is_leased = True
            self._renewed = monotonic_ms()

    def keep_lease(self) -> None:
        """Renew it when that is due."""
        if self._is_leased and monotonic_ms() - self._renewed > RENEW_MS:
            control_plane.perform(self.renew_lease)

    def renew_lease(self) -> None:
        """A call of the control plane. NotAllowedError: it was over, or is given back."""
        if self._is_leased:
            self._view.renew(self._job, LEASE_MS)
            self._renewed = monotonic_ms()

    # Steps ----------------------------------------------------------------------------------------

    def _snapshot(self) -> Generator[Any, None, Snapshot]:
        """Take a snapshot of what there is to copy, under a lease, after copying its cursors and
        sequences."""
        copied: dict[int, bool] = {}  # by cursor: whether its topic had ledgers then
        topics: set[int] = set()
        while True:
            snapshot: Snapshot = control_plane.perform(self._view.snapshot)
            self._lease(snapshot)
            # One of a topic without ledgers may have got its file since.
            found = snapshot.cursors()
            fresh = [each for each in found if copied.get(each) is not found[each]]
            topics_now = {each.topic_id for each in snapshot.topics()}
            if not fresh and topics_now <= topics:
                return snapshot
            if fresh:
                yield from self._copy_cursors(fresh)
            for topic_id in topics_now - topics:
                sequences = control_plane.perform(self._view.sequences, (topic_id,))
                if sequences is not None:
                    yield from self._target.write(*sequences)
                    self._sequences[topic_id] = sequences[0]
            copied, topics = found, topics | topics_now

    def _copy_cursors(self, cursor_ids: list[int]) -> Steps:
        listed = control_plane.perform(self._view.cursor_files)
        for cursor_id in cursor_ids:
            for _ in range(_TRIES):
                # Of an earlier generation.
                yield from self._target.remove(self._cursor_files.get(cursor_id, []))
                names = self._cursor_files[cursor_id] = listed.get(cursor_id, [])
                for name in names:
                    if not (yield from self._target.copy(name, None)):
                        break
                else:
                    break
                # The owner has replaced one generation by the next.
                listed = control_plane.perform(self._view.cursor_files)
            else:
                raise errors.StorageError(
                    detail=f"copy cursor {cursor_id} of {self._view.path}: it was replaced "
                    f"{_TRIES} times"
                )

    def _copy(self, snapshot: Snapshot) -> Generator[Any, None, bool]:
        """Copy everything but cursors and sequences. False: some of it has gone."""
        self.total = self._target.copied + snapshot.size()
        yield from self._target.expect(self.total)
        for ledger in snapshot.ledgers:
            if ledger.path in self._finished or not snapshot.holds(ledger):
                continue
            is_there, is_final = yield from self._copy_ledger(ledger)
            if not is_there:
                if control_plane.perform(self._view.is_lost, (ledger,)):
                    snapshot.lost.append(ledger)
                    continue
                deleted = control_plane.perform(self._view.deleted_with, (ledger, snapshot))
                if not deleted:
                    return False
                for topic in deleted:
                    snapshot.leave_out(topic)
            elif is_final:
                self._finished.add(ledger.path)
        snapshot.ledgers = [each for each in snapshot.ledgers if snapshot.holds(each)]
        snapshot.lost = [each for each in snapshot.lost if snapshot.holds(each)]
        for name, data in control_plane.perform(self._view.catalogue_files, (snapshot,)):
            yield from self._target.write(name, data)
        return True

    def _copy_ledger(self, ledger: LedgerCopy) -> Generator[Any, None, tuple[bool, bool]]:
        """Whether it was there, and whether it never changes any more."""
        self._ledger_files.add(ledger.path)
        size, is_final = control_plane.perform(self._view.published, (ledger,))
        is_there = yield from self._target.copy(ledger.path, size)
        if not is_there:
            # The file may be in the object store alone.
            offload = control_plane.perform(self._view.offload, (ledger,))
            if offload is not None:
                is_there = yield from self._target.fetch(ledger.path, offload)
        if is_there and not is_final:
            is_final = not control_plane.perform(self._view.is_open, (ledger, size))
            if is_final:  # its end is missing
                is_there = yield from self._target.copy(ledger.path, None)
        return is_there, is_final

    def _remove_others(self, snapshot: Snapshot) -> Steps:
        """Take out of the copy what is no part of it: files of topics that are deleted by now."""
        topics, cursors = {each.topic_id for each in snapshot.topics()}, snapshot.cursors()
        ledgers = {each.path for each in snapshot.ledgers}
        gone = sorted(self._ledger_files - ledgers)
        for cursor_id, names in self._cursor_files.items():
            gone += names if cursor_id not in cursors else []
        for topic_id, name in self._sequences.items():
            gone += [name] if topic_id not in topics else []
        yield from self._target.remove(gone)

    def _count(self, snapshot: Snapshot) -> None:
        found = Contents(len(snapshot.topics()), len(snapshot.cursors()), len(snapshot.ledgers))
        found.messages = sum(each.messages for each in snapshot.ledgers)
        for each in snapshot.lost:
            found.missing_messages += each.messages
            found.damage.append(
                Damage(
                    "ledger",
                    each.path,
                    f"{each.path}, ledger {each.ledger_id} of {each.topic}, is missing",
                    topic=each.topic,
                    ledger_id=each.ledger_id,
                    messages=each.messages,
                )
            )
        self.contents = found
