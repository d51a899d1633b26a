"""Merges small sealed ledgers of a topic into files that hold several.

Each ledger is there byte for byte, from its header to its footer, at a multiple of 4096, but for
its name record, which says its id, as the file's name no more does: so ids, positions and counts
stay as they were, for readers, cursors and jobs, and whoever has one of the
old files mapped reads on. A ledger under a lease stays, as tasks of other hosts may have it mapped
over a network file system, where a file that is removed cannot be read on. A file of merged ledgers
is removed with the last of them.

step                                              after a kill here
commit `begin_compaction`, which names the file   as before; the next owner removes the file
write it, flush it and its folder; read it        as before; the next owner removes the file
commit `merge_ledgers`                            merged; the next owner removes the old files
unlink the old files, commit `forget_deletions`   -
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.name_record import with_name_record
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.records import LEDGER_SEALED
from pulsarx.broker.folder.directory_flush import flush_directories
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.broker.ledgers.ledger_list import open_ledger
from pulsarx.broker.ledgers.written_name import written_name
from pulsarx.broker.topics.topic_deletion import remove_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime

SMALL_SIZE = 1 << 20  # a ledger is merged that is smaller
_FILE_SIZE = 32 << 20  # of one file of merged ledgers, which is held in memory while it is made
_ALIGNMENT = 4096
_HEADER_SIZE = 4096


def merge_ledgers(
    runtime: BrokerRuntime, ledger: ManagedLedger, small_size: int = SMALL_SIZE
) -> dict[str, int]:
    """Merge what is smaller than small_size and has a file to itself: how many `ledgers`, into how
    many `files`. What is damaged stays as it is. Durable on return.

    Any thread, beside everything else that is done with the topic; of two at once one does less.
    """
    found = {"ledgers": 0, "files": 0}
    if runtime.directory.ledger_path(1) is None:
        return found  # in memory
    for group in _groups(runtime, ledger, small_size):
        count = _Merge(runtime, ledger, group).run()
        if count:
            found["ledgers"] += count
            found["files"] += 1
    return found


def _groups(
    runtime: BrokerRuntime, ledger: ManagedLedger, small_size: int
) -> list[list[LedgerRecord]]:
    """Neighbours that become one file each, in their order; two at least. Not those in an object
    store: their objects would go, and be written again as others."""
    groups: list[list[LedgerRecord]] = [[]]
    size = passed = 0
    ledgers = ledger.ledgers()
    state = runtime.catalogue.state
    leased = state.leased(ledger.name, ledgers, runtime.clock.now_ms())
    for each in ledgers:
        if each.state != LEDGER_SEALED or each.merged_id or each.damaged or not each.entry_count:
            continue
        if each.size >= small_size or state.offload_of(each) is not None:
            continue
        if each.ledger_id in leased:
            passed += 1
            continue
        size += each.size + _ALIGNMENT
        if size > _FILE_SIZE and groups[-1]:
            groups.append([])
            size = each.size + _ALIGNMENT
        groups[-1].append(each)
    if passed:
        life_log.info("%s: %d small ledgers are not merged, jobs lease them", ledger.name, passed)
    return [group for group in groups if len(group) > 1]


class _Merge:
    """One file. Used once, by one thread."""

    def __init__(
        self, runtime: BrokerRuntime, ledger: ManagedLedger, group: list[LedgerRecord]
    ) -> None:
        self._runtime = runtime
        self._ledger = ledger
        self._group = group
        self._folder_id = runtime.directory.folder_id
        self._merged_id = 0
        self._merged: list[LedgerRecord] = []  # as they will be

    def run(self) -> int:
        """How many ledgers have become one file."""
        runtime, topic = self._runtime, self._ledger.name
        whole = [(each, data) for each in self._group if (data := self._read(each)) is not None]
        if len(whole) < 2:
            return 0
        uuid = whole[0][0].uuid
        self._merged_id = runtime.catalogue.allocate_id()
        begun = changes.begin_compaction(topic, self._merged_id, uuid)
        runtime.catalogue.commit(lambda state: self._checked(state, [begun]))
        try:
            self._write(whole)
            places: list[list[int]] = []

            def merging(state: CatalogueState) -> list[dict[str, Any]]:
                places[:] = self._places(state)
                if len(places) < 2:  # trimmed, leased or offloaded meanwhile, or merged by another
                    return [changes.forget_deletions([])]
                return self._checked(
                    state, [changes.merge_ledgers(topic, self._merged_id, uuid, places)]
                )

            with self._ledger.lock:
                runtime.catalogue.commit(merging)
        except BaseException as error:
            if not runtime.catalogue.outcome_unknown:
                self._remove()
            if isinstance(error, OSError) and not isinstance(error, errors.PulsarException):
                raise storage_error(f"merge ledgers of {topic}", error) from error
            raise
        # Those they had, or the file of which nobody has need.
        self._remove()
        if len(places) < 2:
            return 0
        life_log.info("%s: merged %d ledgers into file %d", topic, len(places), self._merged_id)
        return len(places)

    def _read(self, ledger: LedgerRecord) -> bytes | None:
        """From its header to its footer; None: it has gone, or is not whole."""
        path = str(self._runtime.directory.ledger_path(ledger.ledger_id))
        try:
            file = open_ledger(path, ledger, self._folder_id)
            size = self._check(file, ledger)
            data: bytes = self._runtime.files.read(path)[:size]
        except (errors.CorruptDataError, FileNotFoundError):
            return None
        except errors.StorageError:
            if may_exist(path):
                raise
            return None
        return data if len(data) == size else None

    def _check(self, file: LedgerFile, ledger: LedgerRecord) -> int:
        """Read every entry; CorruptDataError. Its bytes up to the end of its footer."""
        summary = file.summary()
        count = file.check_entries(_HEADER_SIZE, summary.size)
        if (count, summary.message_count) != (ledger.entry_count, ledger.message_count):
            raise errors.CorruptDataError(
                detail=f"merge ledger {ledger.ledger_id} of {self._ledger.name}: it holds {count} "
                f"entries and {summary.message_count} messages, the catalogue has "
                f"{ledger.entry_count} and {ledger.message_count}"
            )
        return int(file.sealed_size)

    def _write(self, whole: list[tuple[LedgerRecord, bytes]]) -> None:
        """The file, durable and read again."""
        runtime = self._runtime
        path = str(runtime.directory.prepare_ledger_path(self._merged_id))
        if os.path.exists(path):
            # An owner died before the catalogue knew it, so the id is given out again. Unless there
            # is another owner by now, on a file system whose locks do not hold.
            runtime.catalogue.refresh()
            runtime.directory.set_aside(path)
        parts = bytearray()
        for ledger, data in whole:
            parts += bytes(-len(parts) % _ALIGNMENT)
            self._merged.append(ledger.merged(self._merged_id, len(parts), len(data)))
            parts += with_name_record(data, self._name_record(ledger))
        runtime.files.create(path, bytes(parts))
        del parts
        flush_directories(runtime.files, [os.path.dirname(path)])
        for each in self._merged:
            self._check(open_ledger(path, each, self._folder_id), each)

    def _name_record(self, ledger: LedgerRecord) -> bytes:
        return written_name(
            self._runtime.catalogue.state,
            self._folder_id,
            self._ledger.name,
            ledger.ledger_id,
            bytes.fromhex(ledger.uuid),
        )

    def _places(self, state: CatalogueState) -> list[list[int]]:
        """The places in the new file of those ledgers that are still there as they were, and were
        not leased or offloaded meanwhile."""
        topic = state.topics.get(self._ledger.name)
        ledgers = () if topic is None else topic.ledgers
        leased = state.leased(self._ledger.name, ledgers, self._runtime.clock.now_ms())
        there = {
            each.ledger_id
            for each in ledgers
            if not each.merged_id and state.offload_of(each) is None
        }
        there -= leased
        return [
            [each.ledger_id, each.merged_at, each.merged_size]
            for each in self._merged
            if each.ledger_id in there
        ]

    def _checked(
        self, state: CatalogueState, operations: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """The operations, of this very topic."""
        found = state.topics.get(self._ledger.name)
        if found is None or found.topic_id != self._ledger.topic_id:
            raise errors.TopicNotFound(
                detail=f"merge ledgers of {self._ledger.name}: it was deleted"
            )
        return operations

    def _remove(self) -> None:
        """Remove the files that the catalogue says are to go. If the disk refuses, the next owner
        tries again."""
        left = self._runtime.catalogue.state.deletions.get(self._merged_id)
        if left is not None:
            remove_files(self._runtime, [left], with_cursors=False)
