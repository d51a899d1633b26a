"""The compaction of one topic: keeps the last message of each key, in a ledger of its own.

A run, and what a kill behind each step leaves:

1  flush the topic's ledgers up to the last message       the old result
2  commit `begin_compaction`, then create the file        the old result; the next owner removes the
3  read all for the last message of each key              new file
4  read it again, and copy what survives                  as before
5  seal and flush the file and its folder                 as before
6  commit `set_compaction`                                the new result; the next owner removes the
7  remove the old file, and commit that it is gone        old file

Both passes read the last result first, and then the topic from its horizon on. While a run goes on
no ledger is trimmed; behind it none that is not compacted yet: the horizon in the catalogue is the
position of the topic's subscription `__compaction`.
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock, RLock
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.broker import life_log
from pulsarx.broker.catalogue import changes
from pulsarx.broker.catalogue.records import CompactionRecord
from pulsarx.broker.folder.directory_flush import flush_directories
from pulsarx.broker.ledgers.written_name import written_name
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ledger.compacted_reader import CompactedReader
    from pulsarx._pycore.ledger.key_compaction import KeyCompaction
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.runtime import BrokerRuntime

NOT_RUN, RUNNING, SUCCESS, ERROR = "NOT_RUN", "RUNNING", "SUCCESS", "ERROR"
HELD_FROM_NOWHERE = 1 << 63  # greater than every ledger id
_STEP_ENTRIES = 64  # between two looks whether it is to stop
_SIZE_MAX = 1 << 36
_LOCK_SECONDS = 0.05
MARKS_LEAST = 1 << 23  # messages whose survivors are marked together: 1 MiB


class CompactionStopped(Exception):
    """The topic is closed, deleted or truncated. Never leaves this module."""


class TopicCompaction:
    """Compacts one open topic. Any thread may call; runs are jobs of the broker's compaction
    queue."""

    __slots__ = (
        "_failed_ms",
        "_last_error",
        "_ledger",
        "_lock",
        "_reader",
        "_run_lock",
        "_runtime",
        "_status",
        "_stopped",
        "_tell",
        "_topic",
        "_topic_lock",
        "_trim",
        "marks_least",
    )

    def __init__(
        self,
        runtime: BrokerRuntime,
        ledger: ManagedLedger,
        topic_lock: RLock,
        tell: Callable[[], None],
        trim: Callable[[], None],
    ) -> None:
        """topic_lock: held while the result is exchanged. tell: called after that, with it. trim:
        called after a run, during which nothing was trimmed."""
        self._runtime = runtime
        self._ledger = ledger
        self._topic = ledger.name
        self._topic_lock = topic_lock
        self._tell = tell
        self._trim = trim
        self._lock = Lock()  # of what follows
        self._status = NOT_RUN
        self._last_error = ""
        self._failed_ms = 0
        self._stopped = False
        self._run_lock = Lock()  # held by a run
        self.marks_least: int = MARKS_LEAST

    # Asking ---------------------------------------------------------------------------------------

    def status(self) -> dict[str, str]:
        """NOT_RUN: there was none since the topic was opened, and it has no result."""
        with self._lock:
            status = self._status
            if status == NOT_RUN and self._ledger.compaction() is not None:
                status = SUCCESS
            return {"status": status, "last_error": self._last_error}

    @property
    def failed_ms(self) -> int:
        """When the last run failed that failed since the topic was opened; 0: none did."""
        return self._failed_ms

    def held_from(self) -> int:
        """Ledgers from this one on are not to be trimmed."""
        with self._lock:
            if self._status == RUNNING:
                return 0
        record = self._ledger.compaction()
        if record is None:
            return HELD_FROM_NOWHERE
        for ledger in self._ledger.ledgers():
            if ledger.ledger_id == record.horizon_ledger_id:
                whole = ledger.state == "sealed" and ledger.message_count <= record.horizon_message
                return ledger.ledger_id + whole
        return record.horizon_ledger_id + 1

    def check_idle(self) -> None:
        """NotAllowedError: a run goes on."""
        with self._lock:
            if self._status == RUNNING:
                raise errors.NotAllowedError(
                    detail=f"compact {self._topic}: a compaction of it runs"
                )

    def trigger(self) -> None:
        """Begin a run. NotAllowedError: one goes on."""
        with self._lock:
            if self._stopped:
                raise errors.TopicNotFound(
                    detail=f"compact {self._topic}: it was closed or deleted"
                )
            if self._status == RUNNING:
                raise errors.NotAllowedError(
                    detail=f"compact {self._topic}: a compaction of it runs"
                )
            self._status = RUNNING
        try:
            self._runtime.compactions.post(self._run)
        except BaseException:
            with self._lock:
                self._status = NOT_RUN
            raise

    def trigger_above(self, threshold: int) -> None:
        """Begin a run if more bytes than the threshold were published since the last one."""
        if not 0 < threshold < uncompacted_size(self._ledger):
            return
        try:
            self.trigger()
        except (errors.NotAllowedError, errors.TopicNotFound):
            pass  # it runs, or the topic goes

    def stop(self) -> None:
        """End the run that goes on, without a result, and begin none any more."""
        with self._lock:
            self._stopped = True
        with self._run_lock:
            pass

    def forget(self) -> None:
        """The topic is emptied: remove its result with the messages. With the topic's lock."""
        with self._lock:
            before, self._stopped = self._stopped, True
        try:
            with self._run_lock:
                record = self._ledger.compaction()
                if record is not None:
                    self._runtime.catalogue.commit([changes.remove_compaction(self._topic)])
                    self._remove_old(record)
                    self._tell()
        finally:
            with self._lock:
                self._stopped = before

    # Running --------------------------------------------------------------------------------------

    def _run(self) -> None:
        error = ""
        with self._run_lock:
            try:
                self._compact()
            except Exception as failure:
                # A topic is deleted beside it, and the messages it reads go: nothing has failed.
                if isinstance(failure, CompactionStopped) or self._ledger.record() is None:
                    error = "it was stopped: the topic was closed, emptied or deleted"
                else:
                    error = errors.detail_of(failure)
                    logger().error("%s: a compaction failed: %s", self._topic, error)
        with self._lock:
            self._status = ERROR if error else SUCCESS
            self._last_error = error
            if error:
                self._failed_ms = self._runtime.clock.now_ms()
        if not self._stopped:
            self._trim()

    def _compact(self) -> None:
        self._check_goes_on()
        # Trimming and truncating hold it from when they look whether a run goes on. So what they
        # found none for is removed by now.
        self._lock_topic()
        self._topic_lock.release()
        end = self._ledger.end_position()
        before = self._ledger.compaction()
        if not end[0] or (before is not None and end <= before.horizon):
            return
        began_ms = self._runtime.clock.now_ms()
        # Nothing that a power cut may take is to be in front of the horizon.
        self._ledger.flush()
        last_entry = self._last_entry(end)
        keys = self._passes(end)
        while keys.scan(self._reader, _STEP_ENTRIES):
            self._check_goes_on()
        self._check_goes_on()
        record, writer = self._write(keys, end, last_entry, began_ms)
        try:
            self._lock_topic()
            try:
                self._commit(record, before)
                self._tell()
            finally:
                self._topic_lock.release()
        except BaseException:
            self._discard(record, writer)
            raise
        life_log.info(
            "%s: compacted up to message %d of ledger %d: %d of %d messages survived",
            self._topic, end[1], end[0], record.message_count, keys.scanned_count,
        )  # fmt: skip
        if before is not None:
            self._remove_old(before)

    def _last_entry(self, end: Position) -> int:
        """The id of the last entry in front of a position, which is the end of a ledger."""
        for ledger in self._ledger.ledgers():
            if ledger.ledger_id == end[0]:
                span = self._ledger.span(ledger)
                offset = span.file.find_message(end[1], span.end)
                frame = span.file.frame(offset, span.end)
                if frame is not None:
                    return max(int(frame["entry_id"]) - 1, 0)
                return max(self._ledger.published_counts(ledger)[0] - 1, 0)
        return 0

    def _passes(self, end: Position) -> KeyCompaction:
        from pulsarx._pycore.ledger.key_compaction import KeyCompaction
        from pulsarx.compression import compress, decompress

        self._reader = self._new_reader()
        return KeyCompaction(
            end=end,
            retain_null_key=self._runtime.options.topic_compaction_retain_null_key,
            seed=int.from_bytes(os.urandom(8), "little"),
            decompress=decompress,
            compress=compress,
            decompressed_size_max=self._runtime.decompressed_size_max,
            marks_least=self.marks_least,
        )

    def _new_reader(self) -> CompactedReader:
        from pulsarx._pycore.ledger.compacted_reader import CompactedReader

        return CompactedReader(self._ledger.tail, self._topic, self._ledger)

    def _check_goes_on(self) -> None:
        if self._stopped or not self._runtime.state.is_open:
            raise CompactionStopped

    def _write(
        self, keys: KeyCompaction, end: Position, last_entry: int, began_ms: int
    ) -> tuple[CompactionRecord, LedgerWriter | None]:
        """The second pass: the new ledger, durable, and what is to be said of it."""
        runtime = self._runtime
        ledger_id = runtime.catalogue.allocate_id()
        identity = runtime.randomness.uuid_bytes()
        begun = changes.begin_compaction(self._topic, ledger_id, identity.hex())
        runtime.catalogue.commit(self._if_it_is_there([begun]))
        writer: LedgerWriter | None = None
        try:
            writer = self._create(ledger_id, identity, (end[0], last_entry, end[1]))
            self._reader = self._new_reader()
            while keys.copy(self._reader, writer, _STEP_ENTRIES):
                self._check_goes_on()
            self._check_goes_on()
            summary = writer.seal()
            if writer.path is None:
                self._ledger.keep_compacted(writer)
            else:
                writer.close()
                flush_directories(runtime.files, [os.path.dirname(str(writer.path))])
        except BaseException:
            self._remove_file(ledger_id, writer)
            raise
        kept = keys.kept_count
        record = CompactionRecord(
            ledger_id if kept else 0,
            identity.hex() if kept else "",
            summary.entry_count,
            kept,
            summary.size,
            end[0],
            last_entry,
            end[1],
            list(keys.last or ()),
            keys.ledgers,
            runtime.clock.now_ms(),
            max(runtime.clock.now_ms() - began_ms, 0),
            max(keys.scanned_count - kept, 0),
            self._ledger.indexes.of_all([each[0] for each in keys.ledgers]),
        )
        if not kept:
            self._remove_file(ledger_id, writer)
            writer = None
        return record, writer

    def _create(
        self, ledger_id: int, identity: bytes, horizon: tuple[int, int, int]
    ) -> LedgerWriter:
        runtime = self._runtime
        path = runtime.directory.prepare_ledger_path(ledger_id)
        if path is not None and os.path.exists(path):
            # Its owner died before the catalogue knew it, so the id is given out again. Unless
            # there is another owner by now, on a file system whose locks do not hold.
            runtime.catalogue.refresh()
            runtime.directory.set_aside(path)
        slots = PublishedEnds.memory()  # its end concerns no reader
        return LedgerWriter.create(
            path,
            ledger_id=ledger_id,
            uuid=identity,
            folder_id=bytes.fromhex(runtime.directory.folder_id),
            created_ms=runtime.clock.now_ms(),
            entry_count_max=1 << 40,
            size_max=_SIZE_MAX if path is None else 1 << 40,
            publish_on_flush=False,
            zero_space=False,
            slots=slots,
            slot=slots.allocate(),
            name_record=written_name(
                runtime.catalogue.state,
                runtime.directory.folder_id,
                self._topic,
                ledger_id,
                identity,
                horizon,
            ),
        )

    def _if_it_is_there(
        self, operations: list[dict[str, Any]]
    ) -> Callable[[CatalogueState], list[dict[str, Any]]]:
        """The operations, of this very topic."""

        def checked(state: CatalogueState) -> list[dict[str, Any]]:
            found = state.topics.get(self._topic)
            if found is None or found.topic_id != self._ledger.topic_id:
                raise CompactionStopped
            return operations

        return checked

    def _lock_topic(self) -> None:
        """Take the topic's lock unless the run is stopped: whoever stops it may hold the lock and
        wait for its end."""
        while not self._topic_lock.acquire(timeout=_LOCK_SECONDS):
            self._check_goes_on()

    def _commit(self, record: CompactionRecord, before: CompactionRecord | None) -> None:
        self._check_goes_on()
        if self._ledger.compaction() is not before:
            raise CompactionStopped
        operation = changes.set_compaction(self._topic, record)
        self._runtime.catalogue.commit(self._if_it_is_there([operation]))

    def _discard(self, record: CompactionRecord, writer: LedgerWriter | None) -> None:
        """The catalogue may have refused it; where that is not known, the next owner finds out."""
        there = self._ledger.compaction()
        if there is not None and there.ledger_id == record.ledger_id:
            return
        if record.ledger_id and not self._runtime.catalogue.outcome_unknown:
            self._remove_file(record.ledger_id, writer)

    def _remove_old(self, record: CompactionRecord) -> None:
        if record.ledger_id:
            self._remove_file(record.ledger_id, None)

    def _remove_file(self, ledger_id: int, writer: LedgerWriter | None) -> None:
        """Remove a file that is no result, or no longer; those who have it mapped read on. Where
        the disk refuses, the next owner tries again."""
        self._ledger.forget_compacted(ledger_id)
        if writer is not None:
            writer.close()
        path = self._runtime.directory.ledger_path(ledger_id)
        try:
            if path is not None:
                try:
                    self._runtime.files.unlink(path)
                except FileNotFoundError:
                    pass
                flush_directories(self._runtime.files, [os.path.dirname(path)])
        except OSError as error:
            logger().warning(
                "%s: a compacted ledger stays until the next start: %s", self._topic, error
            )
            return
        attempt(lambda: self._runtime.catalogue.commit([changes.forget_deletions([ledger_id])]))


def uncompacted_size(ledgers: LedgerList) -> int:
    """Bytes that were published since the last compaction."""
    from pulsarx.broker.subscriptions.backlog import backlog_extent

    record = ledgers.compaction()
    if record is not None and ledgers.end_position() <= record.horizon:
        return 0
    position = (0, 0) if record is None else record.horizon
    return backlog_extent(position, ledgers, 0)["backlog_size"]


def compaction_statistics(ledgers: LedgerList, failed_ms: int) -> dict[str, Any]:
    """The statistics of a topic: how far it was compacted (-1, -1: it was not), and by the last
    run."""
    record = ledgers.compaction()
    found: dict[str, Any] = {
        "horizon": (-1, -1),
        "compacted_entries": 0,
        "compacted_messages": 0,
        "compacted_size": 0,
        "uncompacted_size": uncompacted_size(ledgers),
        "last_compaction_removed_event_count": 0,
        "last_compaction_succeed_timestamp": 0,
        "last_compaction_failed_timestamp": failed_ms,
        "last_compaction_duration_time_in_mills": 0,
    }
    if record is not None:
        found |= {
            "horizon": (record.horizon_ledger_id, record.horizon_entry),
            "compacted_entries": record.entry_count,
            "compacted_messages": record.message_count,
            "compacted_size": record.size if record.ledger_id else 0,
            "last_compaction_removed_event_count": record.removed_count,
            "last_compaction_succeed_timestamp": record.compacted_ms,
            "last_compaction_duration_time_in_mills": record.duration_ms,
        }
    return found


def logger() -> logging.Logger:
    import logging

    return logging.getLogger("pulsarx")
