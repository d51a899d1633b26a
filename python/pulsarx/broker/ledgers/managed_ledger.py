"""A topic's messages: an ordered list of ledgers of which the last may be open.

state      holds                                        left by
IDLE       no ledger is open                            open_writer (first publish)
OPEN       tail.writer takes entries                    roll_over, close
CLOSED     every ledger is sealed                       -
"""

from __future__ import annotations

import os
import threading
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_recovery import LedgerRecovery, seal_recovered
from pulsarx._pycore.ledger.ledger_tail import LedgerSpan, LedgerTail, fence, published_counts
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx.broker.ledgers.ledger_list import LedgerList, LedgerTrimmed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ledger.ledger_summary import LedgerSummary
    from pulsarx.broker.catalogue.state import CatalogueState, LedgerRecord
    from pulsarx.broker.runtime import BrokerRuntime


class ManagedLedger(LedgerList):
    """The ledgers of one topic of an owned data directory. Any thread; its lock orders changes of
    the list."""

    def __init__(self, runtime: BrokerRuntime, name: str, on_change: Callable[[int], None]) -> None:
        """on_change: told the id of each ledger that came or was sealed; of a new one before its
        first entry."""
        super().__init__(name, runtime.catalogue)
        self.runtime = runtime
        self.lock = threading.RLock()
        self.tail = LedgerTail(self, self.partition)
        if runtime.durability == "interval":
            self.tail.flush = runtime.after_flush_interval(self._flush)
        self._on_change = on_change
        self._writers: dict[int, LedgerWriter] = {}
        self._in_memory: dict[int, LedgerWriter] = {}  # sealed ones that no file holds
        self._summaries: dict[int, LedgerSummary] = {}  # sealed, but the catalogue was not told
        self._unsealed: list[LedgerWriter] = []  # their seal failed
        self._switching = False
        self._cut: LedgerWriter | None = None  # closed by an attach that is going on
        self._closed = False
        for ledger in self.ledgers():
            if ledger.state == "open":
                self._recover(ledger)

    def open_writer(self) -> None:
        """Open a ledger for the next entry, if none is open."""
        with self.lock:
            self._check_open()
            if self.tail.writer is None:
                self._switch()

    def roll_over(self, writer: LedgerWriter) -> None:
        """Let the next entry go to a new ledger; the full one is sealed in the background."""
        with self.lock:
            if self.tail.writer is not writer:
                return
            self._check_open()
            # Fenced first: once readers go on to the next ledger, nothing may be added to this one.
            fence(writer)
            if self.runtime.durability != "os":
                writer.flush()
            self._switch()
        self.runtime.background.post(lambda: self._seal_later(writer))

    def begin_attach(self) -> None:
        """Append to no ledger any more, until `end_attach`. The lock is held all the while."""
        self._check_open()
        self._check_not_switching()
        writer = self.tail.writer
        if writer is not None:
            fence(writer)
            if self.runtime.durability != "os":
                writer.flush()
            self.tail.switch(None)
        self._cut = writer
        self._switching = True

    def end_attach(self) -> None:
        """Whether or not something was attached, or begun: the next publish opens a ledger."""
        writer, self._cut = self._cut, None
        self._switching = False
        if writer is not None:
            self.runtime.background.post(partial(self._seal_later, writer))

    def _check_not_switching(self) -> None:
        if self._switching:
            # The lock does not stop its own thread: a signal handler or a finalizer that publishes.
            raise errors.NotAllowedError(
                f"publish to {self.name}: a ledger of it is being opened by this very thread"
            )

    def _switch(self) -> None:
        """Let the next entry go to a new ledger."""
        self._check_not_switching()
        self._switching = True
        try:
            self.tail.switch(self._create_writer())
        finally:
            self._switching = False
        minutes = self.runtime.options.managed_ledger_max_ledger_rollover_time_minutes
        self.tail.roll_over_at_ms = self.runtime.clock.now_ms() + minutes * 60_000

    def _check_open(self) -> None:
        if self._closed:
            raise errors.AlreadyClosed(f"topic {self.name}")

    def _create_writer(self) -> LedgerWriter:
        runtime = self.runtime
        ledger_id = runtime.catalogue.allocate_id()
        slot = runtime.ends.allocate()
        identity = runtime.randomness.uuid_bytes()
        path = runtime.directory.prepare_ledger_path(ledger_id)
        if path is not None and os.path.exists(path):
            # Its owner died before the catalogue knew it, so the id is given out again. Unless
            # there is another owner by now, on a file system whose locks do not hold.
            runtime.catalogue.refresh()
            runtime.directory.set_aside(path)
        try:
            writer = LedgerWriter.create(
                path,
                ledger_id=ledger_id,
                uuid=identity,
                folder_id=bytes.fromhex(runtime.directory.folder_id),
                created_ms=runtime.clock.now_ms(),
                entry_count_max=runtime.options.managed_ledger_max_entries_per_ledger,
                size_max=runtime.options.managed_ledger_max_size_per_ledger_mbytes << 20,
                publish_on_flush=runtime.durability == "sync",
                zero_space=runtime.durability == "sync",
                slots=runtime.ends,
                slot=slot,
            )
        except BaseException:
            runtime.ends.release(slot)
            raise
        addition = {"op": "add_ledger", "topic": self.name, "ledger_id": ledger_id}
        addition |= {"uuid": identity.hex(), "slot": slot}
        try:
            writer.map()  # now, so that no reader asks for it while it is being closed
            # Before the catalogue tells readers of the ledger: each of them must find its writer.
            self._writers[ledger_id] = writer
            runtime.catalogue.commit([addition])
        except BaseException:
            self._writers.pop(ledger_id, None)
            writer.close()
            runtime.ends.release(slot)
            self._unlink(ledger_id)
            raise
        try:
            self._on_change(ledger_id)
        except BaseException:
            del self._writers[ledger_id]
            writer.close()
            removal = {"op": "remove_ledgers", "topic": self.name, "ledger_ids": [ledger_id]}
            runtime.catalogue.commit([removal])
            runtime.ends.release(slot)
            self._unlink(ledger_id)
            raise
        return writer

    # Sealing --------------------------------------------------------------------------------------

    def _seal_later(self, writer: LedgerWriter) -> None:
        if writer.ledger_id not in self._writers:
            return  # done by an earlier try
        try:
            # Not under the lock: sealing flushes, and publishers must be able to roll over.
            operations = self._seal(writer)
            with self.lock:
                self.runtime.catalogue.commit(operations)
                self._release(writer)
        except BaseException:
            self._unsealed.append(writer)
            raise
        self._on_change(writer.ledger_id)

    def seal_again(self) -> None:
        """Try those whose seal failed, on a full disk for one; until then nothing behind them can
        be trimmed."""
        unsealed, self._unsealed = self._unsealed, []
        for writer in unsealed:
            if writer.state not in ("fenced", "sealed"):
                continue  # a failed flush has closed it for good
            self.runtime.background.post(partial(self._seal_later, writer))

    def _seal(self, writer: LedgerWriter) -> list[dict[str, Any]]:
        """Write index and footer, and say so to the catalogue; a ledger without an entry goes away
        instead."""
        if writer.entry_count == 0:
            return [{"op": "remove_ledgers", "topic": self.name, "ledger_ids": [writer.ledger_id]}]
        summary = self._summaries.get(writer.ledger_id)
        if summary is None:
            flush = self.runtime.durability != "os"
            summary = self._summaries[writer.ledger_id] = writer.seal(flush=flush)
        return [self._sealing(writer.ledger_id, summary, damaged=False)]

    def _sealing(self, ledger_id: int, summary: Any, *, damaged: bool) -> dict[str, Any]:
        return {
            "op": "seal_ledger",
            "topic": self.name,
            "ledger_id": ledger_id,
            "entry_count": summary.entry_count,
            "message_count": summary.message_count,
            "size": summary.size,
            "first_publish_ms": summary.first_publish_ms,
            "last_publish_ms": summary.last_publish_ms,
            "sealed_ms": self.runtime.clock.now_ms(),
            "damaged": damaged,
        }

    def _release(self, writer: LedgerWriter) -> None:
        """The catalogue knows the ledger as sealed or gone: nobody needs the writer or its slot."""
        empty = writer.entry_count == 0
        self._summaries.pop(writer.ledger_id, None)
        del self._writers[writer.ledger_id]
        self.tail.detach(writer)
        if not empty and writer.path is None:
            self._in_memory[writer.ledger_id] = writer
        else:
            writer.close()
        if empty:
            self._unlink(writer.ledger_id)
        self.runtime.ends.release(writer.slot)

    def _recover(self, ledger: LedgerRecord) -> None:
        """Seal a ledger that was open when its owner died. It is never appended to again."""
        path = self.runtime.directory.ledger_path(ledger.ledger_id)
        if path is None:
            return  # memory does not outlive its owner
        recovery = recover(self.name, path, ledger.ledger_id)
        if recovery is None:
            self.runtime.catalogue.commit(
                [{"op": "remove_ledgers", "topic": self.name, "ledger_ids": [ledger.ledger_id]}]
            )
            self._unlink(ledger.ledger_id)
            return
        report_recovery(self.name, ledger.ledger_id, recovery)
        if recovery.entry_count == 0:
            # What was torn may have been the first entry, damaged: no bytes of it are deleted.
            self.runtime.catalogue.commit(
                [{"op": "remove_ledgers", "topic": self.name, "ledger_ids": [ledger.ledger_id]}]
            )
            self.runtime.directory.set_aside(path)
            return
        summary = seal_recovered(path, recovery)
        self.runtime.catalogue.commit(
            [self._sealing(ledger.ledger_id, summary, damaged=recovery.damaged_entries > 0)]
        )

    # Reading --------------------------------------------------------------------------------------

    def make_span(self, ledger: LedgerRecord) -> LedgerSpan:
        writer = self._writers.get(ledger.ledger_id)
        if writer is not None:
            return LedgerSpan.growing(writer, writer.map())
        # Sealed since the caller took its list: the record it has does not know where it ends.
        known = [each for each in self.ledgers() if each.ledger_id == ledger.ledger_id]
        if not known:
            raise LedgerTrimmed
        ledger = known[0]
        if ledger.state != "sealed":
            # A span of it would never grow, and would be given to every later reader.
            raise RuntimeError(
                f"read ledger {ledger.ledger_id} of {self.name}: the catalogue has it as open, "
                "but no writer of it is known"
            )
        kept = self._in_memory.get(ledger.ledger_id)
        if kept is not None:
            return LedgerSpan.sealed(ledger.ledger_id, kept.map(), ledger.size)
        path = self.runtime.directory.ledger_path(ledger.ledger_id)
        if path is None:
            raise LedgerTrimmed
        try:
            file = LedgerFile.open(path, ledger.ledger_id)
        except errors.StorageError:
            if os.path.exists(path):
                raise
            if all(each.ledger_id != ledger.ledger_id for each in self.ledgers()):
                raise LedgerTrimmed from None
            raise errors.CorruptDataError(
                f"read ledger {ledger.ledger_id} of {self.name}: its file {path} is missing; "
                f"the catalogue has "
                f"{ledger.message_count} messages in it. Put the file back if you have it"
            ) from None
        return LedgerSpan.sealed(ledger.ledger_id, file, ledger.size)

    def _as_it_is_now(self, ledger: LedgerRecord) -> LedgerRecord:
        """Sealed since the caller took its list, its record does not know where it ends."""
        if ledger.state == "sealed":
            return ledger
        return next((each for each in self.ledgers() if each.ledger_id == ledger.ledger_id), ledger)

    def published_counts(self, ledger: LedgerRecord) -> tuple[int, int]:
        writer = self._writers.get(ledger.ledger_id)
        if writer is not None:
            entries, messages = published_counts(writer)
            return int(entries), int(messages)
        ledger = self._as_it_is_now(ledger)
        return ledger.entry_count, ledger.message_count

    # Flushing, trimming, closing
    # --------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Durability interval: flush what was stored. A job."""
        failure: Exception | None = None
        for writer in list(self._writers.values()):
            try:
                writer.flush()
            except errors.AlreadyClosed:
                pass  # sealed meanwhile, and so flushed
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure

    def remove(self, ledger_ids: list[int]) -> list[int]:
        """Forget sealed ledgers and unlink their files; who has one mapped keeps reading it. Those
        that were leased meanwhile stay; returns the others."""
        removed: list[int] = []

        def removal(state: CatalogueState) -> list[dict[str, Any]]:
            lowest, _ = state.leased_from(self.name, self.runtime.clock.now_ms())
            removed[:] = [each for each in ledger_ids if each < lowest]
            return [{"op": "remove_ledgers", "topic": self.name, "ledger_ids": list(removed)}]

        with self.lock:
            self.runtime.catalogue.commit(removal)
            for ledger_id in removed:
                self._in_memory.pop(ledger_id, None)
        # Not under the lock: there may be thousands, and publishers must be able to roll over.
        self._unlink(*removed)
        return removed

    def _unlink(self, *ledger_ids: int) -> None:
        """The catalogue does not know the ledgers (any more): their files go."""
        from pulsarx.broker.folder.directory_flush import flush_directories

        folders = []
        for ledger_id in ledger_ids:
            path = self.runtime.directory.ledger_path(ledger_id)
            if path is None:
                return
            try:
                self.runtime.files.unlink(path)
            except FileNotFoundError:
                continue  # somebody else did, or a power cut took its name
            folders.append(os.path.dirname(path))
        flush_directories(self.runtime.files, folders)

    def close(self) -> None:
        """Seal what is open. Idempotent."""
        with self.lock:
            if self._closed:
                return
            self._closed = True
            self.tail.switch(None)
            if self.tail.flush is not None:
                self.tail.flush.close()
            failure: Exception | None = None
            for writer in list(self._writers.values()):
                fence(writer)
                try:
                    self.runtime.catalogue.commit(self._seal(writer))
                    self._release(writer)
                except Exception as error:
                    # It stays open in the catalogue and is recovered by who opens the folder next.
                    failure = error
            if failure is not None:
                raise failure

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self._closed = True


def recover(topic: str, path: str, ledger_id: int) -> LedgerRecovery | None:
    """How far the file is whole; None: nothing was ever stored in it, so that nothing is lost with
    it."""
    import logging

    try:
        recovery = LedgerFile.open(path, ledger_id).recover()
    except errors.StorageError:
        if os.path.exists(path):
            raise
        # Without a flush (durability os or interval) a power cut may take the whole file, its name
        # included.
        logging.getLogger("pulsarx").error("%s: the file of ledger %d is gone", topic, ledger_id)
        return None
    return recovery if recovery.entry_count or recovery.torn_size else None


def report_recovery(topic: str, ledger_id: int, recovery: LedgerRecovery) -> None:
    """Say in the log what the crash left; a clean end says nothing."""
    if not recovery.torn_size and not recovery.damaged_entries:
        return
    import logging

    logger = logging.getLogger("pulsarx")
    if recovery.torn_size:
        logger.warning(
            "%s: ledger %d ended in an unfinished write: %d bytes cut behind entry %d",
            topic, ledger_id, recovery.torn_size, recovery.entry_count - 1,
        )  # fmt: skip
    for entry_id, count, offset, _ in recovery.damage:
        logger.error(
            "%s: ledger %d is damaged: %d entries from %d on, at offset %d, cannot be read; "
            "the others can",
            topic, ledger_id, count, entry_id, offset,
        )  # fmt: skip
