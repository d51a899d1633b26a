"""Reads everything in a folder, and says what is damaged: every file of the catalogue, every entry
of every ledger, every cursor, what deduplication knows. Changes nothing.

Runs in the caller's thread, so that a signal ends it, in steps that are calls of the control plane.
Beside an owner it sees what is published when it comes to it, and passes over what goes meanwhile.
"""

from __future__ import annotations

import errno
import os
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem, open_descriptor
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx.backups.contents import Contents, Damage
from pulsarx.backups.folder_view import HEADER_SIZE
from pulsarx.backups.workplace import refusals
from pulsarx.broker.catalogue.end_log import ENDED, ENDS, end_log_fault
from pulsarx.broker.catalogue.file import (
    CHECKPOINT,
    COMMIT,
    SEQUENCES,
    catalogue_file_decode,
    catalogue_file_number,
    commit_fault,
)
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.folder.folder_marker import MARKER_NAME, marker_fault
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.broker.ledgers.ledger_gone import LedgerTrimmed
from pulsarx.broker.ledgers.ledger_list import open_compacted_file
from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.subscriptions.cursor_view import opened_cursor
from pulsarx.broker.topics.deduplication import snapshot_name
from pulsarx.ground.attempt import attempt
from pulsarx.tables.progress import progress_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from pulsarx.broker.catalogue.records import (
        CompactionRecord,
        LedgerRecord,
        SubscriptionRecord,
        TopicRecord,
    )

    Steps = Generator[int, None, None]  # bytes that were read

BLOCK = 16 << 20  # bytes between two steps
_TRIES = 20  # to open a ledger that its owner is just sealing
# Says nothing about what is on the disk.
_NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM)


def check(folder: Any, progress: Any) -> Contents:
    """See pulsarx.backups.check."""
    show = progress_of(progress, "bytes")
    proof = Proof(os.path.realpath(os.fspath(folder)))
    steps = proof.steps()
    done = 0
    try:
        while True:
            with refusals(f"check {folder}"):
                read = control_plane.perform(next, (steps, None))
            if read is None:
                break
            done += read
            show(done, max(proof.size, done + 1))
    finally:
        # One that is still at work was interrupted: it ends with what it has in hand.
        attempt(partial(control_plane.perform, steps.close))
    show(done, done)
    return proof.found


class Proof:
    """One look at a folder. Its steps are calls of the control plane."""

    def __init__(self, folder: str) -> None:
        self._path = folder
        self._broker: Any = None
        self.found: Contents = Contents()
        self.size: int = 0  # of the ledgers, about

    def steps(self) -> Steps:
        """FolderError: no data directory."""
        self._open()
        if self._broker is None:
            return
        try:
            yield 0
            yield from self._topics()
        finally:
            self._broker.close()

    def damaged_commits(self) -> list[Damage]:
        """List what is damaged of the commits, and look at nothing else. FolderError."""
        self._open()
        if self._broker is not None:
            self._broker.close()
        return [each for each in self.found.damage if each.what == COMMIT]

    def _open(self) -> None:
        directory = DataDirectory.open(self._path, files=FileSystem(), read_only=True)
        try:
            directory.owner()  # where that cannot be told, it is no damage
            self._prove_marker(directory)
            self._prove_catalogue(directory)
        finally:
            directory.close()
        try:
            self._broker = ReadOnlyBroker(self._path)
        except (errors.CatalogueError, errors.StorageError) as error:
            _require_permission(error)
            self._tell("catalogue", "catalogue", errors.detail_of(error))
            return
        try:
            self._forget_lost_commits()
        except BaseException:
            self._broker.close()
            raise

    def _topics(self) -> Steps:
        broker, found = self._broker, self.found
        topics = [
            each
            for each in self._broker.catalogue.state.topics.values()
            if not each.partition_count
        ]
        self.size = sum(self._size_of(each) for one in topics for each in one.ledgers)
        for topic in topics:
            found.topics += 1
            yield from self._topic(topic)
        for folder, _, names in os.walk(broker.directory.path):
            for name in names:
                try:
                    found.bytes += os.path.getsize(f"{folder}/{name}")
                except FileNotFoundError:
                    pass
                except OSError as error:
                    raise storage_error(f"look at {folder}/{name}", error) from error

    def _topic(self, topic: TopicRecord) -> Steps:
        ledgers = ReadOnlyLedger(self._broker, topic, logs=False)
        for each in ledgers.ledgers():
            self.found.ledgers += 1
            yield from self._ledger(ledgers, each)
        if topic.compaction is not None and topic.compaction.ledger_id:
            self.found.ledgers += 1
            yield from self._compacted(ledgers, topic.compaction)
        for subscription in topic.subscriptions.values():
            self.found.subscriptions += 1
            self._prove_cursor(ledgers, subscription)
        self._prove_sequences(topic)
        yield 0

    # Ledgers --------------------------------------------------------------------------------------

    def _ledger(self, ledgers: ReadOnlyLedger, ledger: LedgerRecord) -> Steps:
        found = self._opened(ledgers, ledger)
        if found is None:
            return
        file, end, entries, messages = found
        self.found.messages += messages
        self._tell_header(ledgers, ledger, file)
        if ledger.state == "sealed":
            self._compare(ledgers, ledger, file)
        yield from self._entries(ledgers, ledger, file, end, entries, messages)

    def _opened(
        self, ledgers: ReadOnlyLedger, ledger: LedgerRecord
    ) -> tuple[LedgerFile, int, int, int] | None:
        """File, end, entries and messages; None: it cannot be read, or has gone."""
        messages = ledger.message_count
        for _ in range(_TRIES):
            try:
                # First: what is counted lies below the end that is asked for behind it.
                entries, messages = ledgers.published_counts(ledger)
                span = ledgers.span(ledger)
                end = span.end
            except LedgerTrimmed:
                return None
            except errors.StorageError as error:
                _require_permission(error)
                self._require_store(ledger, error)
                if self._is_named(ledgers, ledger.ledger_id):
                    self.found.messages += messages
                    self._tell_ledger(ledgers, ledger, errors.detail_of(error), messages)
                return None
            if end or not span.is_growing:
                return span.file, end, entries, messages
            # Its owner has sealed it, and its slot is another ledger's.
            self._broker.refresh()
            known = [each for each in ledgers.ledgers() if each.ledger_id == ledger.ledger_id]
            if not known:
                return None
            ledger = known[0]
        raise errors.StorageError(
            detail=f"check ledger {ledger.ledger_id} of {ledgers.name}: it changed {_TRIES} times; "
            "try again"
        )

    def _require_store(self, ledger: LedgerRecord, error: errors.StorageError) -> None:
        """An object store that cannot be read now says nothing about what is in it."""
        offload = self._broker.catalogue.state.offload_of(ledger)
        if offload is not None and not isinstance(error, errors.CorruptDataError):
            raise error

    def _compare(self, ledgers: ReadOnlyLedger, ledger: LedgerRecord, file: LedgerFile) -> None:
        try:
            summary = file.summary()
        except errors.CorruptDataError as error:
            self._tell_ledger(ledgers, ledger, errors.detail_of(error))
            return
        counts = (summary.size, summary.entry_count, summary.message_count)
        known = (ledger.size, ledger.entry_count, ledger.message_count)
        if counts != known:
            self._tell_ledger(
                ledgers,
                ledger,
                f"it says that it holds {counts[1]} entries and {counts[2]} messages in "
                f"{counts[0]} bytes; the catalogue has {known[1]}, {known[2]} and {known[0]}",
            )

    def _compacted(self, ledgers: ReadOnlyLedger, record: CompactionRecord) -> Steps:
        path = self._broker.directory.ledger_path(record.ledger_id)
        try:
            file = open_compacted_file(ledgers.name, path, record, self._broker.directory.folder_id)
            end = file.summary().size
        except errors.StorageError as error:
            _require_permission(error)
            if self._is_named(ledgers, record.ledger_id):
                self._tell_ledger(
                    ledgers,
                    record,
                    errors.detail_of(error),
                    record.message_count,
                    "compacted ledger",
                )
            return
        self._tell_header(ledgers, record, file, "compacted ledger")
        yield from self._entries(
            ledgers, record, file, end, record.entry_count, record.message_count, True
        )

    def _entries(
        self,
        ledgers: ReadOnlyLedger,
        ledger: LedgerRecord | CompactionRecord,
        file: LedgerFile,
        end: int,
        entries: int,
        messages: int,
        compacted: bool = False,
    ) -> Steps:
        """Read the entries up to the end, of which there should be so many."""
        tell = partial(self._tell_entries, ledgers, ledger, compacted)
        at, entry, message = HEADER_SIZE, 0, 0
        room = bytearray(min(BLOCK, max(end - at, 0)))
        descriptor, size = _open(file.path)
        try:
            # Of a file of merged ledgers no more than the ledger has.
            if descriptor is None or file.at:
                size = file.mapped_size
            there = min(end, size & ~7)
            while at < there:
                begin = at
                try:
                    if descriptor is not None:
                        # A device that fails would end the process where it is read as memory.
                        os.preadv(descriptor, [room], file.at + at)
                except OSError as error:
                    if errors.raised_by_handler(error):
                        raise
                    tell(at, end, entry, entries, message, messages, str(error.strerror))
                    return
                at, entry, message, behind = file.scan(
                    at, there, BLOCK, entry, message, compacted=compacted
                )
                if behind is not None:
                    next_at, next_entry, next_message = behind
                    if next_entry < 0:
                        next_at, next_entry, next_message = end, entries, messages
                    tell(at, next_at, entry, next_entry, message, next_message)
                    at, entry, message = next_at, next_entry, next_message
                yield at - begin
        finally:
            if descriptor is not None:
                os.close(descriptor)
        if entry < entries or message < messages:
            tell(max(at, HEADER_SIZE), end, entry, entries, message, messages)

    def _tell_entries(
        self,
        ledgers: ReadOnlyLedger,
        ledger: LedgerRecord | CompactionRecord,
        compacted: bool,
        at: int,
        next_at: int,
        entry: int,
        next_entry: int,
        message: int,
        next_message: int,
        why: str = "not what was written",
    ) -> None:
        entries, messages = max(next_entry - entry, 0), max(next_message - message, 0)
        file = self._ledger_file(ledger)
        kind = "compacted ledger" if compacted else "ledger"
        places = f"entry {entry}" if entries == 1 else f"{entries} entries from entry {entry} on"
        if not entries:
            places = f"entry {next_entry} stands where entry {entry} should"
        self._tell(
            "compacted entries" if compacted else "entries",
            file,
            f"{places} of {kind} {ledger.ledger_id} of {ledgers.name}, {messages} messages: "
            f"{max(next_at - at, 0)} bytes at offset {at} of {file}: {why}",
            topic=ledgers.name,
            ledger_id=ledger.ledger_id,
            entry_id=entry,
            entries=entries,
            offset=at,
            size=max(next_at - at, 0),
            messages=messages,
        )

    def _tell_header(
        self,
        ledgers: ReadOnlyLedger,
        ledger: LedgerRecord | CompactionRecord,
        file: LedgerFile,
        what: str = "ledger",
    ) -> None:
        if file.headless or file.header_damaged:
            text = "its header is damaged; its entries are read"
            self._tell_ledger(ledgers, ledger, text, what=what)

    def _tell_ledger(
        self,
        ledgers: ReadOnlyLedger,
        ledger: LedgerRecord | CompactionRecord,
        text: str,
        messages: int = 0,
        what: str = "ledger",
    ) -> None:
        where = f"{what} {ledger.ledger_id} of {ledgers.name}"
        text = text.removeprefix("read ").removeprefix("the ").removeprefix(f"{where}: ")
        self._tell(
            what,
            self._ledger_file(ledger),
            f"{where}: {text}",
            topic=ledgers.name,
            ledger_id=ledger.ledger_id,
            messages=messages,
        )

    def _is_named(self, ledgers: ReadOnlyLedger, ledger_id: int) -> bool:
        """Whether the catalogue still has a ledger."""
        self._broker.refresh()
        compaction = ledgers.compaction()
        return ledgers.has_ledger(ledger_id) or (
            compaction is not None and compaction.ledger_id == ledger_id
        )

    def _ledger_file(self, ledger: LedgerRecord | CompactionRecord) -> str:
        return os.path.relpath(self._broker.directory.ledger_path(ledger.file_id), self._path)

    def _size_of(self, ledger: LedgerRecord) -> int:
        if ledger.merged_id:
            return ledger.merged_size
        offload = self._broker.catalogue.state.offload_of(ledger)
        if offload is not None:
            return int(offload.size)
        try:
            return os.stat(self._broker.directory.ledger_path(ledger.ledger_id)).st_size
        except OSError as error:
            if errors.raised_by_handler(error):
                raise
            return 0  # told when it is read

    # The rest -------------------------------------------------------------------------------------

    def _prove_cursor(self, ledgers: ReadOnlyLedger, subscription: SubscriptionRecord) -> None:
        # Twice: its owner may replace one generation of its file by the next at any time.
        if not self._cursor_damage(ledgers, subscription):
            return
        self._broker.refresh()
        record = ledgers.record()
        now = None if record is None else record.subscriptions.get(subscription.name)
        if now is None or now.cursor_id != subscription.cursor_id:
            return
        for text in self._cursor_damage(ledgers, subscription):
            self._tell(
                "cursor",
                f"cursors/{subscription.cursor_id}",
                f"subscription {subscription.name} of {ledgers.name}: {text}",
                topic=ledgers.name,
                subscription=subscription.name,
            )

    def _cursor_damage(
        self, ledgers: ReadOnlyLedger, subscription: SubscriptionRecord
    ) -> list[str]:
        try:
            with opened_cursor(self._broker, ledgers, subscription) as tracker:
                found = list(tracker.damage)
                if not found and ledgers.ledgers() and not tracker.is_kept:
                    found.append("its cursor is missing")
                return found
        except (OSError, errors.StorageError) as error:
            _require_permission(error)
            return [errors.detail_of(error)]

    def _prove_sequences(self, topic: TopicRecord) -> None:
        file = snapshot_name(topic.topic_id)
        path = f"{self._path}/{file}"
        try:
            data = self._broker.files.read(path)
            catalogue_file_decode(SEQUENCES, self._broker.directory.folder_id, path, data)
        except FileNotFoundError:
            pass
        except (OSError, errors.CatalogueError) as error:
            _require_permission(error)
            self._tell("sequences", file, errors.detail_of(error), topic=topic.name)

    def _prove_marker(self, directory: DataDirectory) -> None:
        try:
            fault = marker_fault(directory.files, directory.path, directory.folder_id)
        except OSError as error:
            _require_permission(error)
            fault = f"read {directory.path}/{MARKER_NAME}: {error.strerror or error}"
        if fault:
            self._tell("marker", MARKER_NAME, fault)

    def _prove_catalogue(self, directory: DataDirectory) -> None:
        before: tuple[int, int] | None = None
        try:
            names = directory.files.list(directory.catalogue_path)
        except OSError as error:
            _require_permission(error)
            return  # told when it is opened
        for name in sorted(names):
            kind = name.rpartition(".")[2]
            number = catalogue_file_number(kind, name)
            if number < 0 or kind not in (COMMIT, CHECKPOINT, ENDS, ENDED):
                continue
            path = f"{directory.catalogue_path}/{name}"
            try:
                data = directory.files.read(path)
                if kind in (ENDS, ENDED):
                    if fault := end_log_fault(directory.folder_id, path, data):
                        self._tell(kind, f"catalogue/{name}", fault)
                    continue
                found, checksum = catalogue_file_decode(kind, directory.folder_id, path, data)
                if found.get("number") != number:
                    raise errors.CatalogueError(
                        detail=f"{path} is {kind} {found.get('number')} under another name"
                    )
                if kind == COMMIT:
                    if fault := commit_fault(directory.folder_id, path, data):
                        self._tell(kind, f"catalogue/{name}", fault)
                    known, before = before, (number, checksum)
                    if (
                        known is not None
                        and known[0] == number - 1
                        and (found.get("previous") != known[1])
                    ):
                        raise errors.CatalogueError(
                            detail=f"{path} does not follow the commit before it, of checksum "
                            f"{known[1]:08x}"
                        )
            except FileNotFoundError:
                pass  # its owner has folded it
            except (OSError, errors.CatalogueError) as error:
                _require_permission(error)
                self._tell(kind, f"catalogue/{name}", errors.detail_of(error))

    def _forget_lost_commits(self) -> None:
        """Commits that were not flushed and that a power cut took are no damage: the catalogue was
        read without them, which the log says. Nor is one of which it left one copy: the next owner
        writes it anew."""
        catalogue = self._broker.catalogue
        unflushed = catalogue.unflushed_numbers

        def is_lost(damage: Damage) -> bool:
            if damage.what != COMMIT:
                return False
            number = catalogue_file_number(COMMIT, os.path.basename(damage.file))
            return number > catalogue.state.number or number in unflushed

        lost = [each for each in self.found.damage if is_lost(each)]
        # Where something came behind them that was flushed, no power cut took them.
        if lost and not self._holds_later_entries(catalogue.state.next_id):
            self.found.damage = [each for each in self.found.damage if not is_lost(each)]

    def _holds_later_entries(self, next_id: int) -> bool:
        """Whether a ledger that the catalogue does not know yet holds an entry. Its commit was
        flushed before that."""
        for ledger_id, path in self._broker.directory.ledger_files():
            if ledger_id < next_id:
                continue
            try:
                if LedgerFile.open(path, ledger_id).recover((0, 0, 0)).entry_count:
                    return True
            except errors.PulsarException:
                continue
        return False

    def _tell(self, what: str, file: str, text: str, **more: Any) -> None:
        made = Damage(what, file, text, **more)
        self.found.damage.append(made)
        if what in ("entries", "ledger"):  # else they are there, or come again
            self.found.missing_messages += made.messages


def _require_permission(error: Exception) -> None:
    """Raise StorageError for what this user, or this process with so many open files, may not read:
    that is no damage. Nor is what a signal handler raised."""
    if getattr(error, "errno", None) not in _NOT_ALLOWED:
        if isinstance(error, OSError) and errors.raised_by_handler(error):
            raise error
        return
    if isinstance(error, OSError):
        raise storage_error(f"read {error.filename}", error) from error
    raise error


def _open(path: str) -> tuple[int | None, int]:
    """A file and its size; None: its owner has just removed it, and its map can be read still."""
    found = -1
    try:
        found = open_descriptor(path, os.O_RDONLY)
        return found, os.fstat(found).st_size
    except FileNotFoundError:
        return None, 0
    except OSError as error:
        if found >= 0:
            os.close(found)
        raise storage_error(f"read {path}", error) from error
