"""Copies the files of a folder in an order that makes the copy consistent.

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
more.
"""

from __future__ import annotations

import os
import uuid

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx.backups.contents import Contents, Damage
from pulsarx.backups.folder_view import FolderView, LedgerCopy, Snapshot
from pulsarx.backups.proof import check
from pulsarx.backups.workplace import copy_file, refusals, workplace
from pulsarx.broker.folder.data_directory import SUBDIRECTORIES
from pulsarx.clock import monotonic_ms
from pulsarx.tables.progress import progress_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TRIES = 20  # to read the folder while its owner changes it
_LEASE_MS = 600_000  # renewed when a third of it has passed
_RENEW_MS = _LEASE_MS // 3


def backup(folder: Any, target: Any, progress: Any) -> Contents:
    """See pulsarx.backups.backup."""
    show = progress_of(progress, "bytes")
    source = os.path.realpath(os.fspath(folder))
    files = FileSystem()
    with workplace(os.path.realpath(os.fspath(target)), source, files) as work:
        view = control_plane.perform(FolderView, (source,), FolderView.close)
        try:
            return _Copying(view, work, files, show).run()
        finally:
            control_plane.perform(view.close)


def restore(backup: Any, target: Any, progress: Any, allow_damage: bool) -> Contents:
    """See pulsarx.backups.restore."""
    show = progress_of(progress, "bytes")
    source = os.path.realpath(os.fspath(backup))
    files = FileSystem()
    with workplace(os.path.realpath(os.fspath(target)), source, files) as work:
        view = control_plane.perform(FolderView, (source,), FolderView.close)
        try:
            control_plane.perform(view.require_unowned)
            copying = _Copying(view, work, files, show)
            copying.leases = False  # nobody trims it, and it stays as it is
            copying.run()
            control_plane.perform(view.require_unowned)
        finally:
            control_plane.perform(view.close)
        contents = check(work, False)
        damage = [str(each) for each in contents.damage]
        if damage and not allow_damage:
            more = f"; and {len(damage) - 5} more" if len(damage) > 5 else ""
            raise errors.CorruptDataError(
                f"restore {source}: {'; '.join(damage[:5])}{more}. Nothing was restored; "
                "allow_damage restores what is whole"
            )
        return contents


class _Copying:
    """One copy. Calls of one thread, which a signal may end between any two lines: what it leaves
    is a lease that ends by itself, and the folder that `workplace` removes."""

    leases = True

    def __init__(self, view: FolderView, work: str, files: FileSystem, show: Any) -> None:
        self._view = view
        self._work = work
        self._files = files
        self._show = show
        self._job = f"backup-{uuid.uuid4().hex}"
        self._renewed = monotonic_ms()
        self._is_leased = False
        self._done = 0
        self._total = 0
        self._finished: set[str] = set()  # files that were copied and never change
        # What was copied besides ledgers, by cursor and topic.
        self._cursor_files: dict[int, list[str]] = {}
        self._sequences: dict[int, str] = {}

    def run(self) -> Contents:
        with refusals(f"make the folders of {self._work}"):
            for name in SUBDIRECTORIES:
                os.mkdir(f"{self._work}/{name}")
        try:
            for _ in range(_TRIES):
                snapshot = self._snapshot()
                if self._copy(snapshot):
                    self._remove_others(snapshot)
                    self._show(self._done, self._done)
                    return self._contents(snapshot)
        finally:
            if self._is_leased:
                control_plane.perform(self._view.release, (self._job,))
        raise errors.StorageError(
            f"copy {self._view.path}: ledgers went {_TRIES} times while they were copied. Nothing "
            "was kept; try again when less is compacted or trimmed"
        )

    def _snapshot(self) -> Snapshot:
        """What there is to copy, under a lease, and behind its cursors and sequences, which are
        copied."""
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
                self._copy_cursors(fresh)
            for topic_id in topics_now - topics:
                sequences = control_plane.perform(self._view.sequences, (topic_id,))
                if sequences is not None:
                    self._write(*sequences)
                    self._sequences[topic_id] = sequences[0]
            copied, topics = found, topics | topics_now

    def _lease(self, snapshot: Snapshot) -> None:
        """What has gone since is noticed where it is copied."""
        wanted = snapshot.leased() if self.leases else {}
        if wanted or self._is_leased:
            control_plane.perform(self._view.lease, (self._job, wanted, _LEASE_MS))
            self._is_leased = True
            self._renewed = monotonic_ms()

    def _copy_cursors(self, cursor_ids: list[int]) -> None:
        listed = control_plane.perform(self._view.cursor_files)
        for cursor_id in cursor_ids:
            for _ in range(_TRIES):
                self._remove(self._cursor_files.get(cursor_id, []))  # of an earlier generation
                names = self._cursor_files[cursor_id] = listed.get(cursor_id, [])
                if all(self._copy_file(name) for name in names):
                    break
                # The owner has replaced one generation by the next.
                listed = control_plane.perform(self._view.cursor_files)
            else:
                raise errors.StorageError(
                    f"copy cursor {cursor_id} of {self._view.path}: it was replaced {_TRIES} times"
                )

    def _copy(self, snapshot: Snapshot) -> bool:
        """Everything but cursors and sequences. False: some of it has gone."""
        self._total = self._done + snapshot.size()
        for ledger in snapshot.ledgers:
            if ledger.path in self._finished or not snapshot.holds(ledger):
                continue
            size, is_final = control_plane.perform(self._view.published, (ledger,))
            path = f"{self._work}/{ledger.path}"
            is_there = self._copy_file(ledger.path, size) or self._fetch(ledger)
            if is_there and not is_final:
                is_final = not control_plane.perform(self._view.is_open, (ledger, path))
                is_there = not is_final or self._copy_file(ledger.path)
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
            self._write(name, data)
        return True

    def _remove_others(self, snapshot: Snapshot) -> None:
        """Take out of the copy what is no part of it: files of topics that are deleted by now."""
        topics, cursors = {each.topic_id for each in snapshot.topics()}, snapshot.cursors()
        ledgers = {each.path for each in snapshot.ledgers}
        for folder, _, names in os.walk(f"{self._work}/ledgers"):
            paths = [os.path.relpath(f"{folder}/{name}", self._work) for name in names]
            self._remove([each for each in paths if each not in ledgers])
        for cursor_id, names in self._cursor_files.items():
            self._remove(names if cursor_id not in cursors else [])
        for topic_id, name in self._sequences.items():
            self._remove([name] if topic_id not in topics else [])

    def _remove(self, names: list[str]) -> None:
        for name in names:
            path = f"{self._work}/{name}"
            with refusals(f"remove {path}"):
                if os.path.exists(path):
                    os.unlink(path)

    def _copy_file(self, name: str, size: int | None = None) -> bool:
        """False: it is not there."""
        try:
            copy_file(f"{self._view.path}/{name}", f"{self._work}/{name}", size, self._told)
        except FileNotFoundError:
            return False
        return True

    def _fetch(self, ledger: LedgerCopy) -> bool:
        """Copy the file of a ledger from the object store. False: it is not there."""
        offload = control_plane.perform(self._view.offload, (ledger,))
        if offload is None:
            return False
        from pulsarx.broker.offload.offloaded_ledger import copy_object

        return copy_object(offload, f"{self._work}/{ledger.path}", self._told)

    def _write(self, name: str, data: bytes) -> None:
        path = f"{self._work}/{name}"
        with refusals(f"write {path}"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._files.create(path, data, exclusive=False)

    def _told(self, size: int) -> None:
        """A block was copied."""
        self._done += size
        self._show(self._done, max(self._total, self._done + 1))
        if self._is_leased and monotonic_ms() - self._renewed > _RENEW_MS:
            control_plane.perform(self._view.renew, (self._job, _LEASE_MS))
            self._renewed = monotonic_ms()

    def _contents(self, snapshot: Snapshot) -> Contents:
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
        with refusals(f"measure {self._work}"):
            for folder, _, names in os.walk(self._work):
                found.bytes += sum(os.path.getsize(f"{folder}/{name}") for name in names)
        return found
