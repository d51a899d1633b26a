"""Proves that a folder is whole: reads every entry and opens every cursor. Changes nothing. Calls
of the control plane.
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.backups.contents import Contents
from pulsarx.backups.folder_view import HEADER_SIZE
from pulsarx.broker.catalogue.file import SEQUENCES, catalogue_file_decode
from pulsarx.broker.ledgers.ledger_list import open_compacted_file, open_ledger
from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.subscriptions.cursor_view import opened_cursor
from pulsarx.broker.topics.deduplication import snapshot_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx._pycore.ledger.ledger_file import LedgerFile
    from pulsarx.broker.catalogue.state import CompactionRecord, LedgerRecord, TopicRecord


def prove(folder: str) -> Contents:
    """What a folder without an owner holds, with everything in it that cannot be read."""
    broker = ReadOnlyBroker(folder)
    try:
        return _Proof(broker).contents()
    finally:
        broker.close()


class _Proof:
    def __init__(self, broker: ReadOnlyBroker) -> None:
        self._broker = broker
        self._directory = broker.directory
        self._found = Contents()

    def contents(self) -> Contents:
        found = self._found
        for topic in self._broker.catalogue.state.topics.values():
            if not topic.partition_count:
                found.topics += 1
                self._prove_topic(topic)
        for folder, _, names in os.walk(self._directory.path):
            found.bytes += sum(os.path.getsize(f"{folder}/{name}") for name in names)
        return found

    def _prove_topic(self, topic: TopicRecord) -> None:
        found = self._found
        for ledger in topic.ledgers:
            found.ledgers += 1
            path = self._directory.ledger_path(ledger.ledger_id)
            try:
                found.messages += self._prove_ledger(topic.name, path, ledger)
            except errors.StorageError as error:
                found.damage.append(f"{topic.name}: {errors.detail_of(error)}")
        compaction = topic.compaction
        if compaction is not None and compaction.ledger_id:
            found.ledgers += 1
            try:
                self._prove_compacted(topic.name, compaction)
            except errors.StorageError as error:
                found.damage.append(f"{topic.name}: {errors.detail_of(error)}")
        if topic.subscriptions:
            self._prove_cursors(topic)
        self._prove_sequences(topic)

    def _prove_ledger(self, topic: str, path: str, ledger: LedgerRecord) -> int:
        """How many messages it holds. StorageError: it is not what the catalogue says."""
        file = open_ledger(path, ledger, self._directory.folder_id)
        if ledger.state != "sealed":
            recovery = file.recover()
            for _, count, offset, _ in recovery.damage:
                self._found.damage.append(f"{topic}: {path}: {count} entries at offset {offset}")
            return int(recovery.message_count)
        summary = file.summary()
        counts = (summary.size, summary.entry_count, summary.message_count)
        known = (ledger.size, ledger.entry_count, ledger.message_count)
        if counts != known:
            raise errors.CorruptDataError(
                f"{path} holds {counts[1]} entries and {counts[2]} messages in {counts[0]} bytes; "
                f"the catalogue has {known[1]}, {known[2]} and {known[0]}"
            )
        at = HEADER_SIZE
        for _, count, offset, next_offset in file.damage():
            self._found.damage.append(f"{topic}: {path}: {count} entries at offset {offset}")
            file.check_entries(at, offset)
            at = next_offset
        file.check_entries(at, summary.size)
        return int(ledger.message_count)

    def _prove_compacted(self, topic: str, record: CompactionRecord) -> None:
        path = self._directory.ledger_path(record.ledger_id)
        file: LedgerFile = open_compacted_file(topic, path, record, self._directory.folder_id)
        end = file.summary().size
        at: int | None = HEADER_SIZE
        while at is not None and at < end:
            entry = file.entry(at, end)
            at = None if entry is None else entry[2]

    def _prove_cursors(self, topic: TopicRecord) -> None:
        ledgers = ReadOnlyLedger(self._broker, topic)
        for each in topic.subscriptions.values():
            self._found.subscriptions += 1
            what = f"subscription {each.name} of {topic.name}"
            try:
                with opened_cursor(self._broker, ledgers, each) as tracker:
                    self._found.damage += [f"{what}: {text}" for text in tracker.damage]
                    if topic.ledgers and not tracker.is_kept:
                        self._found.damage.append(f"{what}: its cursor is missing")
            except errors.StorageError as error:
                self._found.damage.append(f"{what}: {errors.detail_of(error)}")

    def _prove_sequences(self, topic: TopicRecord) -> None:
        path = f"{self._directory.path}/{snapshot_name(topic.topic_id)}"
        try:
            with open(path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return
        try:
            catalogue_file_decode(SEQUENCES, self._directory.folder_id, path, data)
        except errors.CatalogueError as error:
            self._found.damage.append(f"{topic.name}: {errors.detail_of(error)}")
