"""The ledgers of a topic of a folder opened read-only: readable up to the published end, nothing
else."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ledger.ledger_tail import LedgerSpan, LedgerTail
from pulsarx.broker.catalogue.records import LEDGER_PREPARED
from pulsarx.broker.ledgers.aborted_messages import AbortedByCatalogue, in_runs
from pulsarx.broker.ledgers.ledger_gone import LedgerTrimmed
from pulsarx.broker.ledgers.ledger_indexes import LedgerIndexes
from pulsarx.broker.ledgers.ledger_list import (
    LedgerList,
    Position,
    ends_of,
    known_counts,
    missing_file,
    open_compacted_file,
    open_ledger,
    published_messages,
)
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from pulsarx._pycore.ledger.compacted_ledger import CompactedLedger
    from pulsarx._pycore.ledger.ledger_file import LedgerFile
    from pulsarx._pycore.ledger.ledger_recovery import LedgerRecovery
    from pulsarx._pycore.ledger.published_ends import PublishedEnds
    from pulsarx._pycore.message.message_id import MessageId
    from pulsarx.broker.catalogue.records import CompactionRecord, LedgerRecord, TopicRecord
    from pulsarx.broker.faces import FolderView
    from pulsarx.broker.folder.data_directory import DataDirectory

    Found = TypeVar("Found")

TRIMS_MAX = 10  # in a row, each while one look at the ledgers was going on
SLOT_SEALED, SLOT_ENDED = 2, 3  # see PublishedEnds.read
POLL_MS = 50  # while no owner lives, or it has the topic's ledgers closed


class _Recovered:
    """How far a ledger was whole. ends: of the owner that was seen to live then; None: of none."""

    __slots__ = ("ends", "entries", "is_held", "messages", "span", "transacted")

    def __init__(
        self,
        span: LedgerSpan,
        entries: int,
        messages: int,
        ends: PublishedEnds | None,
        transacted: list[list[int]],
        is_held: bool,
    ) -> None:
        self.span = span
        self.is_held = is_held  # by transactions that the next owner goes on with
        self.transacted = transacted  # messages of transactions: first, and behind the last
        self.entries, self.messages = entries, messages
        self.ends = ends


class ReadOnlyLedger(LedgerList):
    """The ledgers of a topic as the catalogue and the published ends tell them. Any thread may
    call."""

    def __init__(self, broker: FolderView, record: TopicRecord, *, logs: bool = True) -> None:
        """logs: say in the log which ledgers are lost."""
        super().__init__(TopicName.of(record.name), broker.catalogue)
        self._logs = logs
        self._told: set[int] = set()  # ledgers that the log says are lost
        self.broker = broker
        self.indexes: LedgerIndexes = LedgerIndexes(self, {})
        self.tail: Any = LedgerTail(self, self.partition)
        self.tail.aborted = None  # the next is asked
        self._aborted = AbortedByCatalogue(self.record, broker.refresh, self._left)
        self._recovered: dict[int, _Recovered] = {}
        self._unsealed_from: tuple[list[LedgerRecord], int] = ([], 0)  # of a list of the catalogue
        self._listen()

    @property
    def aborted(self) -> AbortedByCatalogue:
        return self._aborted

    def listen_again(self) -> None:
        """The folder has another owner, which publishes the ends of its own ledgers."""
        self.broker.refresh()
        for ledger_id in list(self._recovered):
            self._forget_recovery(ledger_id)
        self._listen()

    def _listen(self) -> None:
        """Let readers sleep on the slot of the ledger that is open now; without one they look again
        and again."""
        ends = self.broker.ends
        self.tail.poll_ms = POLL_MS
        # A table that may not be written cannot count its sleepers.
        if ends is None or not ends.writable:
            return
        for ledger in self.ledgers():
            if ledger.state == "open" and ends.find(ledger.ledger_id):
                self.tail.listen(ends, ledger.slot)
                self.tail.poll_ms = 0

    def ledgers(self) -> list[LedgerRecord]:
        """Without the last one while that is prepared and not in use, and without what lies behind
        transactions that the next owner goes on with."""
        listed = self._used_ledgers()
        if not self.catalogue.state.next_transaction:
            return listed
        for at in range(self._first_unsealed(), len(listed)):
            each = listed[at]
            if each.state == "sealed" or self._is_published(each):
                continue
            with suppress(LedgerTrimmed, errors.CorruptDataError):
                if self._recover(each).is_held:
                    return listed[: at + 1]
        return listed

    def _first_unsealed(self) -> int:
        """Return the place of the first that is not sealed. Thousands may be in front of it, and
        this is asked for each of them that is read."""
        listed = super().ledgers()
        of, found = self._unsealed_from
        if of is not listed:
            found = next(
                (at for at, each in enumerate(listed) if each.state != "sealed"), len(listed)
            )
            self._unsealed_from = listed, found
        return found

    def _used_ledgers(self) -> list[LedgerRecord]:
        listed = super().ledgers()
        if not listed or listed[-1].state != LEDGER_PREPARED:
            return listed
        if self._is_used(listed[-1], listed[-2] if len(listed) > 1 else None):
            return [*listed[:-1], listed[-1].used()]
        return listed[:-1]

    def _is_used(self, prepared: LedgerRecord, full: LedgerRecord | None) -> bool:
        """Whether entries go to a prepared ledger, and the one in front of it has ended."""
        ends = self.broker.ends
        if ends is not None:
            ledger_id, epoch, _, _, _, _ = ends.read(prepared.slot)
            if ledger_id == prepared.ledger_id and epoch == ends.epoch_now:
                if full is None or full.state == "sealed":
                    return True
                ledger_id, _, _, _, _, state = ends.read(full.slot)
                return bool(ledger_id == full.ledger_id and state in (SLOT_SEALED, SLOT_ENDED))
        # No owner that lives has prepared it: it counts if it was used.
        if self.broker.published(prepared)[1]:
            return True
        try:
            return self._recover(prepared).entries > 0
        except (LedgerTrimmed, errors.CorruptDataError):
            return False

    def span_after(
        self, current: LedgerSpan | None, passed_ledger_id: int, offset: int, defers: bool = False
    ) -> LedgerSpan | None:
        look = partial(super().span_after, current, passed_ledger_id, offset, defers)
        if current is not None and self._is_held(current.ledger_id):
            self.broker.refresh()  # whoever goes on with the transactions has it growing by now
        if current is not None and current.is_growing:
            # Its slot goes to another ledger only after the catalogue knows it as sealed.
            self.broker.refresh()
            if current.end == 0 and self._spans is not None:
                self._spans.pop(current.ledger_id, None)
        found = self._despite_trimming(look)
        if found is None:
            if self.broker.refresh():
                found = self._despite_trimming(look)
            if self.record() is None:
                raise errors.TopicNotFound(detail=f"{self.name}: its owner has deleted it")
            self._listen()
        # The ledger before the one found took its last entry before that one came; look once more.
        if found is not None and current is not None and current.end > offset:
            return current
        return found

    def _despite_trimming(self, look: Callable[[], Found]) -> Found:
        """The result of a look at the ledgers; one that the owner removed meanwhile is looked
        past."""
        for _ in range(TRIMS_MAX):
            try:
                return look()
            except errors.CorruptDataError:
                raise
            except errors.StorageError as error:
                if getattr(error, "of_store", False):
                    raise  # it was looked again whether the ledger is there
                self.broker.refresh()
        return look()

    def span(self, ledger: LedgerRecord) -> LedgerSpan:
        self._known_recovery(ledger)
        found = super().span(ledger)
        if not found.is_growing and ledger.state != "sealed" and self._is_published(ledger):
            # Of another thread, which found it while no owner was seen.
            self._forget_recovery(ledger.ledger_id)
            found = super().span(ledger)
        if not found.is_growing or found.end:
            return found
        # Its slot is another ledger's by now, so it was sealed since the caller took its list.
        self.broker.refresh()
        if self._spans is not None:
            self._spans.pop(ledger.ledger_id, None)
        known = [each for each in self.ledgers() if each.ledger_id == ledger.ledger_id]
        if not known:
            raise LedgerTrimmed
        return super().span(known[0])

    def file_and_end(
        self, ledger: LedgerRecord, span_of: Callable[[LedgerRecord], LedgerSpan] | None = None
    ) -> tuple[LedgerFile, int]:
        for _ in range(TRIMS_MAX):
            span = (span_of or self.span)(ledger)
            end = span.end
            if end or not span.is_growing:
                return span.file, end
            # Sealed just now, its slot is another ledger's: `span` finds out.
        raise LedgerTrimmed

    def span_of(self, ledger_id: int) -> LedgerSpan | None:
        look = super().span_of
        found = self._despite_trimming(lambda: look(ledger_id))
        if found is None and self.broker.refresh():  # its owner has just begun it
            found = self._despite_trimming(lambda: look(ledger_id))
        return found

    def locate_for_acknowledgement(self, message_id: object) -> tuple[int, int, int]:
        look = super().locate_for_acknowledgement
        try:
            return self._despite_trimming(lambda: look(message_id))
        except errors.NotAllowedError:
            if not self.broker.refresh():
                raise
        return self._despite_trimming(lambda: look(message_id))

    def position_of(self, message_id: MessageId, inclusive: bool) -> Position:
        self.broker.refresh()
        look = super().position_of
        return self._despite_trimming(lambda: look(message_id, inclusive))

    def position_at_time(self, publish_time_ms: int) -> Position:
        self.broker.refresh()
        look = super().position_at_time
        return self._despite_trimming(lambda: look(publish_time_ms))

    def position_at_index(self, index: int) -> Position:
        self.broker.refresh()
        look = super().position_at_index
        return self._despite_trimming(lambda: look(index))

    def last_message_id(self) -> MessageId:
        self.broker.refresh()
        look = super().last_message_id
        for _ in range(TRIMS_MAX):
            listed = self.ledger_ids()
            found = self._despite_trimming(look)
            # Without any it looked past ledgers that were removed, and there may be others by now.
            if found.ledger_id() >= 0 or self.ledger_ids() == listed:
                break
        return found

    def _left(self, ledger_id: int) -> list[list[int]] | None:
        """See AbortedByCatalogue."""
        found = self._recovered.get(ledger_id)
        return None if found is None else found.transacted

    def make_span(self, ledger: LedgerRecord) -> LedgerSpan:
        if ledger.state == "sealed":
            return LedgerSpan.sealed(ledger.ledger_id, self._open(ledger), *ends_of(ledger))
        ends = self.broker.ends
        if ends is not None and self._is_published(ledger):
            file = self._open(ledger, growing=True)
            return LedgerSpan.published(ledger.ledger_id, file, ends, ledger.slot)
        return self._recover(ledger).span

    def _is_published(self, ledger: LedgerRecord) -> bool:
        """Whether an owner that lives appends to it."""
        ends = self.broker.ends
        return ends is not None and bool(ends.find(ledger.ledger_id))

    def _open(self, ledger: LedgerRecord, growing: bool = False) -> LedgerFile:
        """LedgerTrimmed: the owner has removed it. CorruptDataError: it has not, and the file is
        gone, or another's."""
        path = self.broker.directory.ledger_path(ledger.file_id)
        folder_id = self.broker.directory.folder_id
        try:
            file = open_ledger(path, ledger, folder_id, growing=growing)
        except errors.CorruptDataError:
            raise
        except errors.StorageError:
            if may_exist(path):
                raise
            self.broker.refresh()
            # Of the catalogue: whether one that is prepared counts is asked by its file.
            known = {each.ledger_id: each for each in super().ledgers()}
            if ledger.ledger_id not in known:
                raise LedgerTrimmed from None
            now = known[ledger.ledger_id]
            if now.file_id != ledger.file_id:
                return self._open(now)  # merged with others since the caller took its list
            offloaded = self._offloaded(now)
            if offloaded is None:
                raise missing_file(self.name, path, now, self._known_counts(now)[2]) from None
            file = offloaded
        if file.headless:
            self.tell_headless(ledger.ledger_id, path)
        return file

    def _offloaded(self, ledger: LedgerRecord) -> LedgerFile | None:
        """Open the ledger as _open_offloaded does. LedgerTrimmed: the owner has removed it
        meanwhile."""
        try:
            return self._open_offloaded(ledger)
        except errors.StorageError as error:  # damage, too
            self.broker.refresh()
            if not self.has_ledger(ledger.ledger_id):
                raise LedgerTrimmed from None
            error.of_store = True  # type: ignore[attr-defined]
            raise

    def _directory(self) -> DataDirectory:
        return self.broker.directory

    def open_compacted(self, record: CompactionRecord) -> LedgerFile:
        path = self.broker.directory.ledger_path(record.ledger_id)
        return open_compacted_file(self.name, path, record, self.broker.directory.folder_id)

    def compacted_ledger(self) -> CompactedLedger | None:
        """The compacted ledger by the catalogue as it was last read, or as it is now if the owner
        has compacted the topic again since."""
        for _ in range(TRIMS_MAX):
            found = super().compacted_ledger()
            if found is None or found.lost_why is None:
                break
            self._compacted = None
            self.broker.refresh()
            # Whoever refreshed: another thread may have done it.
            record = self.compaction()
            if record is not None and record.ledger_id == found.ledger_id:
                break
        return found

    def _recover(self, ledger: LedgerRecord) -> _Recovered:
        """No owner lives, so no published end can be trusted: look how far the file is whole.
        Writes nothing. What was published and is not there counts, so that readers are told."""
        found = self._known_recovery(ledger)
        if found is None:
            ends = self.broker.ends
            file = self._open(ledger)
            known = self._known_counts(ledger)
            recovery = file.recover(known)
            entries = max(recovery.entry_count, known[1])
            messages = max(recovery.message_count, known[2])
            end = recovery.end
            held = self._held_end(ledger, file, recovery)
            if held is not None:
                end, entries, messages = held
            span = LedgerSpan.sealed(ledger.ledger_id, file, end, entries, messages)
            found = _Recovered(span, entries, messages, ends, recovery.transacted, held is not None)
            self._recovered[ledger.ledger_id] = found
        return found

    def _held_end(
        self, ledger: LedgerRecord, file: LedgerFile, recovery: LedgerRecovery
    ) -> tuple[int, int, int] | None:
        """The end, entries and messages in front of transactions that the next owner goes on with;
        None: there are none."""
        left = self.broker.left_transactions() if recovery.named else {}
        if not left:
            return None
        record = self.record()
        ended = [] if record is None else record.committed.get(ledger.ledger_id, [])
        ended = [*ended, *([] if record is None else record.aborted.get(ledger.ledger_id, []))]
        open_ones = [each[1] for each in recovery.named if each[0] in left]
        first = next((each for each in open_ones if not in_runs(sorted(ended), each)), None)
        if first is None:
            return None
        offset = file.find_message(first, recovery.end)
        frame = file.frame(offset, recovery.end)
        return None if frame is None else (offset, frame["entry_id"], frame["first_message"])

    def _is_held(self, ledger_id: int) -> bool:
        found = self._recovered.get(ledger_id)
        return found is not None and found.is_held

    def _known_recovery(self, ledger: LedgerRecord) -> _Recovered | None:
        """The result of an earlier _recover. It is forgotten once an owner may have appended since,
        which may have sealed the ledger by now, and given its slot to another one."""
        found = self._recovered.get(ledger.ledger_id)
        if found is None:
            return None
        if (
            ledger.state != "sealed"
            and not self._is_published(ledger)
            and self.broker.published(ledger)[0] <= found.span.end
            # Behind the looks at its slot, which goes to another one when it is sealed.
            and self._is_still_open(ledger)
            and found.ends is self.broker.ends
            and not (found.is_held and not self.broker.left_transactions())
        ):
            return found
        self._forget_recovery(ledger.ledger_id)
        return None

    def _forget_recovery(self, ledger_id: int) -> None:
        self._recovered.pop(ledger_id, None)
        if self._spans is not None:
            self._spans.pop(ledger_id, None)

    def _is_still_open(self, ledger: LedgerRecord) -> bool:
        self.broker.refresh()
        known = [each for each in super().ledgers() if each.ledger_id == ledger.ledger_id]
        return bool(known) and known[0].state != "sealed"

    def published_counts(self, ledger: LedgerRecord) -> tuple[int, int]:
        if ledger.state == "sealed":
            return ledger.entry_count, ledger.message_count
        ends = self.broker.ends
        if ends is not None:
            ledger_id, epoch, _, entries, messages, _ = ends.read(ledger.slot)
            if ledger_id == ledger.ledger_id and epoch == ends.epoch_now:
                return entries, messages
        try:
            recovered = self._recover(ledger)
            entries, messages = recovered.entries, recovered.messages
        except LedgerTrimmed:
            return 0, 0  # its owner has removed it since the caller took its list
        except errors.CorruptDataError as error:
            # Its readers are told, by its span.
            _, entries, messages = self._known_counts(ledger)
            self._tell_lost(ledger, messages, error)
        return entries, messages

    def _known_counts(self, ledger: LedgerRecord) -> tuple[int, int, int]:
        """See known_counts."""
        return known_counts(self.record(), ledger.ledger_id, self.broker.published(ledger))

    def _tell_lost(self, ledger: LedgerRecord, messages: int, error: Exception) -> None:
        """Say once that nothing can be read of a ledger that was open when its owner died."""
        if not self._logs or ledger.ledger_id in self._told:
            return
        self._told.add(ledger.ledger_id)
        import logging

        logging.getLogger("pulsarx").error(
            "%s: nothing of ledger %d can be read (%s): %s are missing; each reader is told when "
            "it comes there",
            self.name, ledger.ledger_id, errors.detail_of(error), published_messages(messages),
        )  # fmt: skip


class WrittenLedger(ReadOnlyLedger):
    """The ledgers of a topic as far as they are written, in transactions or not, whatever became of
    those: to find what a producer has stored."""

    def __init__(self, broker: FolderView, record: TopicRecord, written: list[list[int]]) -> None:
        """written: as the owner says it, OpenTransactions.written."""
        super().__init__(broker, record)
        self.tail.aborted = {}
        self._written = {each[0]: each[1:] for each in written}

    def make_span(self, ledger: LedgerRecord) -> LedgerSpan:
        written = self._written.get(ledger.ledger_id)
        if written is None or ledger.state == "sealed":
            return super().make_span(ledger)
        file = self._open(ledger, growing=True)
        return LedgerSpan.sealed(ledger.ledger_id, file, *written)
