"""Reads the state of a folder from outside its owner, so that it can be copied. Calls of the
control plane.
"""

from __future__ import annotations

import errno
import os
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.draft import CatalogueDraft
from pulsarx.broker.catalogue.file import (
    CHECKPOINT,
    catalogue_file_encode,
    catalogue_file_name,
)
from pulsarx.broker.catalogue.operations import apply_operations
from pulsarx.broker.catalogue.records import LEDGER_PREPARED
from pulsarx.broker.catalogue.state import CatalogueState
from pulsarx.broker.folder.folder_marker import FORMAT_VERSION, MARKER_NAME, marker_bytes
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.broker.topics.deduplication import snapshot_name
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.records import LedgerRecord, OffloadRecord, TopicRecord

    Ask = Callable[[str, dict[str, Any]], Any]

HEADER_SIZE = 4096  # of a ledger file: what one without entries holds


class LedgerCopy:
    """A ledger that is to be copied. A value."""

    __slots__ = ("ledger_id", "messages", "path", "sealed", "size", "topic", "topic_id")

    def __init__(self, topic: TopicRecord, path: str, ledger_id: int, sealed: bool) -> None:
        self.topic: str = topic.name
        self.topic_id: int = topic.topic_id
        self.path: str = path  # in the folder
        self.ledger_id: int = ledger_id
        self.sealed: bool = sealed
        self.size: int = 0  # of its file, about
        self.messages: int = 0


class Snapshot:
    """The catalogue at one moment, without leases, and the ledgers it names. A value."""

    def __init__(self, state: CatalogueState, ledgers: list[LedgerCopy]) -> None:
        self.state = state
        self.ledgers = ledgers
        self.lost: list[LedgerCopy] = []  # what the folder has not any more

    def topics(self) -> list[TopicRecord]:
        """The topics that hold messages: all but partitioned ones, whose partitions do."""
        return [each for each in self.state.topics.values() if not each.partition_count]

    def cursors(self) -> dict[int, bool]:
        """Say for each cursor id whether the topic has ledgers, so that the cursor should have a
        file."""
        return {
            each.cursor_id: bool(topic.ledgers)
            for topic in self.topics()
            for each in topic.subscriptions.values()
        }

    def leased(self) -> dict[str, list[int]]:
        return {
            each.name: [ledger.ledger_id for ledger in each.ledgers]
            for each in self.topics()
            if each.ledgers
        }

    def size(self) -> int:
        return sum(each.size for each in self.ledgers)

    def leave_out(self, name: str) -> None:
        """Leave a topic out, as if it had been deleted just before."""
        draft = CatalogueDraft(self.state)
        apply_operations(draft, [changes.delete_topic(name)])
        draft.publish(self.state.number, self.state.checksum)
        self.state.deletions.clear()

    def holds(self, ledger: LedgerCopy) -> bool:
        """Whether the topic of a ledger was not left out since."""
        return ledger.topic in self.state.topics


class FolderView:
    """A folder beside its owner, or without one."""

    def __init__(self, folder: str, ask: Ask | None = None) -> None:
        """ask: has the owner perform a verb, where that is this process and its caller must not
        wait for whoever opens or closes folders. FolderError: no data directory."""
        self._broker = ReadOnlyBroker(folder)
        self._ask: Ask = ask or partial(ask_owner, folder)
        self._directory = self._broker.directory
        self.path: str = self._directory.path

    def close(self) -> None:
        self._broker.close()

    def require_unowned(self) -> None:
        """FolderOwnedError: somebody has opened it."""
        owner = self._directory.owner()
        if owner is not None:
            raise errors.FolderOwnedError(
                detail=f"restore {self.path}: process {owner.pid} has it open, which changes it. A "
                "backup is restored, and what it is restored to is opened",
                folder=self.path,
                pid=owner.pid or None,
            )

    def snapshot(self) -> Snapshot:
        self._broker.refresh()
        state = CatalogueState.of_document(self._broker.catalogue.state.document())
        state.leases.clear()
        # The files are not copied, so there are none to be removed.
        state.deletions.clear()
        # Nor shares a copy its objects with the folder, which removes them when it needs them no
        # more: what is in them is copied.
        state.offloads.clear()
        ledgers: list[LedgerCopy] = []
        for topic in state.topics.values():
            if topic.ledgers and topic.ledgers[-1].state == LEDGER_PREPARED:
                # As a reader sees it: it is in use, or not there.
                topic.ledgers = list(ReadOnlyLedger(self._broker, topic).ledgers())
            ledgers += [self._ledger(topic, each) for each in topic.ledgers]
            compaction = topic.compaction
            if compaction is not None and compaction.ledger_id:
                ledgers.append(self._sized(topic, compaction.ledger_id, True))
        return Snapshot(state, ledgers)

    def _ledger(self, topic: TopicRecord, record: LedgerRecord) -> LedgerCopy:
        made = self._sized(topic, record.ledger_id, record.state == "sealed", record)
        made.messages = record.message_count
        if not made.sealed:
            end, _, made.messages = self._broker.published(record)
            made.size = min(made.size, max(end, HEADER_SIZE))
        return made

    def _sized(
        self, topic: TopicRecord, ledger_id: int, sealed: bool, record: LedgerRecord | None = None
    ) -> LedgerCopy:
        path = self._directory.ledger_path(record.file_id if record is not None else ledger_id)
        made = LedgerCopy(topic, os.path.relpath(path, self.path), ledger_id, sealed)
        if record is not None and record.merged_id:
            made.size = record.merged_size  # the file is copied with the first of them
            return made
        offload = self._broker.catalogue.state.offloads.get(ledger_id)
        if offload is not None and offload.size:
            made.size = offload.size
            return made
        try:
            made.size = os.stat(path).st_size
        except OSError as error:
            if errors.raised_by_handler(error):
                raise  # else it is told when it is copied
        return made

    def offload(self, ledger: LedgerCopy) -> OffloadRecord | None:
        """The object that has the same bytes as the file of a ledger."""
        self._broker.refresh()
        record = self._record(ledger)
        if record is None or self._path_of(record) != ledger.path:
            return None
        return self._broker.catalogue.state.offload_of(record)

    def cursor_files(self) -> dict[int, list[str]]:
        """The files of each cursor that has some, in the folder."""
        found: dict[int, list[str]] = {}
        for cursor_id, _, path in self._directory.cursor_files():
            found.setdefault(cursor_id, []).append(os.path.relpath(path, self.path))
        return found

    def published(self, ledger: LedgerCopy) -> tuple[int | None, bool]:
        """Return how many bytes of a ledger's file are published, None: all of it; and whether it
        never changes any more."""
        if ledger.sealed:
            return None, True
        for is_fresh in (False, True):
            if is_fresh:
                self._broker.refresh()
            record = self._record(ledger)
            if record is None:
                break
            if record.state == "sealed":
                ledger.messages = record.message_count
                return None, True
            ends = self._broker.ends
            if ends is not None and ends.find(ledger.ledger_id):
                end, _, ledger.messages = self._broker.published(record)
                return max(end, HEADER_SIZE), False
        return None, False  # a dead owner left it

    def is_open(self, ledger: LedgerCopy, size: int | None) -> bool:
        """Whether a ledger that was open when it was copied is so still: False where its owner has
        sealed it by now, and the end of the copy may be missing. Counts what the copy holds. size:
        of that; None: all there was."""
        try:
            path = f"{self.path}/{ledger.path}"
            file = LedgerFile.open(path, ledger.ledger_id, size=size or 0)
        except errors.StorageError as error:
            if error.errno != errno.ENOENT:
                raise
            return False  # it has gone, as who copies it once more finds
        if file.sealed:
            return False
        if not ledger.messages:
            ledger.messages = file.recover().message_count
        return True

    def _record(self, ledger: LedgerCopy) -> LedgerRecord | None:
        topic = self._broker.catalogue.state.topics.get(ledger.topic)
        found = () if topic is None else topic.ledgers
        return next((each for each in found if each.ledger_id == ledger.ledger_id), None)

    def is_lost(self, ledger: LedgerCopy) -> bool:
        """Whether the catalogue still names a ledger whose file is missing."""
        self._broker.refresh()
        topic = self._broker.catalogue.state.topics.get(ledger.topic)
        compaction = None if topic is None else topic.compaction
        if compaction is not None and compaction.ledger_id == ledger.ledger_id:
            return True
        found = self._record(ledger)
        # Where it was merged with others, the file is another one now, and there.
        return found is not None and self._path_of(found) == ledger.path

    def _path_of(self, record: LedgerRecord) -> str:
        return os.path.relpath(self._directory.ledger_path(record.file_id), self.path)

    def deleted_with(self, ledger: LedgerCopy, snapshot: Snapshot) -> list[str]:
        """The topics of a snapshot that are deleted by now, if that of a ledger is: it, or the
        partitioned topic it is part of with all partitions. Behind `is_lost`."""
        if self._is_there(ledger.topic, ledger.topic_id):
            return []
        whole = TopicName.of(ledger.topic).partitioned_name
        record = snapshot.state.topics.get(whole)
        if record is None or self._is_there(whole, record.topic_id):
            return [ledger.topic]
        return [
            each for each in snapshot.state.topics if TopicName.of(each).partitioned_name == whole
        ]

    def _is_there(self, topic: str, topic_id: int) -> bool:
        found = self._broker.catalogue.state.topics.get(topic)
        return found is not None and found.topic_id == topic_id

    def sequences(self, topic_id: int) -> tuple[str, bytes] | None:
        """The snapshot of a topic's deduplication, and its name in the folder; None: it has
        none."""
        name = snapshot_name(topic_id)
        try:
            with open(f"{self.path}/{name}", "rb", opener=open_descriptor) as file:
                return name, file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(f"read {self.path}/{name}", error) from error

    def catalogue_files(self, snapshot: Snapshot) -> list[tuple[str, bytes]]:
        """The catalogue of a copy and, last, its marker."""
        state = snapshot.state
        document = state.document()
        document["recent"] = [[state.number, state.checksum]]
        folder_id = self._directory.folder_id
        data, _ = catalogue_file_encode(CHECKPOINT, folder_id, document)
        return [
            (f"catalogue/{catalogue_file_name(CHECKPOINT, state.number)}", data),
            (MARKER_NAME, marker_bytes(FORMAT_VERSION, folder_id)),
        ]

    # The owner ------------------------------------------------------------------------------------

    def lease(self, job: str, ledgers: dict[str, list[int]], ttl_ms: int) -> None:
        """Have ledgers be kept that are there."""
        self._ask("leases.set_present", {"job": job, "ledgers": ledgers, "ttl_ms": ttl_ms})

    def renew(self, job: str, ttl_ms: int) -> None:
        self._ask("leases.renew", {"job": job, "ttl_ms": ttl_ms})

    def release(self, job: str) -> None:
        self._ask("leases.release", {"job": job})
