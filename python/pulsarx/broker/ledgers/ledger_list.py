"""The ledgers of a topic as readers and cursors see them: positions, ids, spans. Base of the owned
and the read-only kind.

A position is (ledger id, ordinal): the message with that ordinal among all messages of the ledger.
"""

from __future__ import annotations

import weakref
from errno import ENOENT

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ledger.compacted_ledger import CompactedLedger
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.ledger_tail import LedgerWanted
from pulsarx._pycore.message.message_id import MessageId, message_id_with_first_chunk
from pulsarx.broker.ledgers.ledger_gone import LedgerAway, LedgerTrimmed
from pulsarx.options.argument_check import INT64_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ledger.ledger_file import LedgerFile
    from pulsarx._pycore.ledger.ledger_tail import LedgerSpan
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.records import CompactionRecord, LedgerRecord, TopicRecord
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.ledgers.aborted_messages import AbortedByCatalogue, AbortedMessages
    from pulsarx.broker.ledgers.ledger_indexes import LedgerIndexes
    from pulsarx.topic_name import TopicName

Position = tuple[int, int]
LATEST = INT64_MAX  # ledger of the id that stands for the end
ENTRY_BATCH = 1  # flags of a frame: its entry is a batch,
ENTRY_CHUNK = 8  # or a chunk of a message
ENTRY_TRANSACTION = 64  # it is of a transaction
NO_IDS: frozenset[int] = frozenset()


def ends_of(ledger: LedgerRecord) -> tuple[int, int, int]:
    """The end of a sealed ledger: in bytes, entries and messages."""
    return ledger.size, ledger.entry_count, ledger.message_count


def open_ledger(
    path: str, ledger: LedgerRecord, folder_id: str, *, growing: bool = False
) -> LedgerFile:
    """The file of a ledger, which is refused as damage if it is another's."""
    return LedgerFile.open(
        path,
        ledger.ledger_id,
        growing,
        uuid=ledger.uuid,
        folder_id=folder_id,
        at=ledger.merged_at,
        size=ledger.merged_size,
    )


def missing_file(
    topic: str, path: str, ledger: LedgerRecord, published: int = 0
) -> errors.CorruptDataError:
    """published: messages that are known to be in a ledger that is not sealed."""
    count = f"the catalogue has {ledger.message_count} messages in it"
    if ledger.state != "sealed":
        count = f"{published} messages of it are known" if published else ""
    return errors.CorruptDataError(
        detail=f"read ledger {ledger.ledger_id} of {topic}: its file {path} is missing"
        f"{count and '; ' + count}. Put the file back"
    )


def published_messages(count: int) -> str:
    """How a log names the messages of a lost ledger. count: 0 where it is not known."""
    if count:
        return f"its {count} published messages"
    return "its published messages (number unknown, possibly none)"


def known_counts(
    record: TopicRecord | None, ledger_id: int, published: tuple[int, int, int]
) -> tuple[int, int, int]:
    """The end, entries and messages of an open ledger that are known without its file; zeros:
    nothing is. published: as the published ends have them."""
    end, entries, messages = published
    for each in () if record is None else record.subscriptions.values():
        if each.initial_ledger_id == ledger_id and each.initial_message > messages:
            entries, messages = max(entries, 1), each.initial_message
    return end, entries, messages


def open_compacted_file(
    topic: str, path: str | None, record: CompactionRecord, folder_id: str
) -> LedgerFile:
    """CorruptDataError: it is not there, or another."""
    if path is not None:
        try:
            return LedgerFile.open(path, record.ledger_id, uuid=record.uuid, folder_id=folder_id)
        except errors.CorruptDataError:
            raise
        except errors.StorageError:
            if may_exist(path):
                raise
    raise errors.CorruptDataError(
        detail=f"read the compacted ledger {record.ledger_id} of {topic}: its file {path} is "
        f"missing; {record.message_count} messages survived in it. Put the file back"
    )


class LedgerList:
    """Finds spans and positions. Any thread may call."""

    __slots__ = (
        "_compacted",
        "_headless",
        "_spans",
        "_spans_max",
        "_unfetched",
        "catalogue",
        "indexes",
        "name",
        "partition",
        "topic_id",
    )

    indexes: LedgerIndexes
    tail: Any

    @property
    def aborted(self) -> AbortedMessages | AbortedByCatalogue:
        """The messages that nobody sees."""
        raise NotImplementedError

    def __init__(self, name: TopicName, catalogue: Catalogue) -> None:
        self.name: str = name.full
        self.partition: int = name.partition_index
        self.catalogue: Catalogue = catalogue
        record = catalogue.state.topics.get(name.full)
        # Of the topic that has the name now; a later one of that name is another topic.
        self.topic_id: int = 0 if record is None else record.topic_id
        # Made with the first reader: most topics of a folder are idle.
        self._spans: dict[int, weakref.ref[LedgerSpan]] | None = None
        self._spans_max = 16  # before those without a reader are forgotten
        self._headless = NO_IDS  # what tell_headless has told
        self._unfetched = NO_IDS  # in an object store, from where they cannot be read any more
        self._compacted: weakref.ref[CompactedLedger] | None = None

    def tell_headless(self, ledger_id: int, path: str) -> None:
        """Say once that a ledger is read without its header."""
        if ledger_id in self._headless:
            return
        self._headless |= {ledger_id}
        import logging

        logging.getLogger("pulsarx").error(
            "%s: ledger %d at %s has no header any more; its entries are read by the uuid the "
            "catalogue knows", self.name, ledger_id, path,
        )  # fmt: skip

    def ledgers(self) -> list[LedgerRecord]:
        """The ledgers as the catalogue has them now, oldest first; the list never changes. None
        once the topic is deleted."""
        record = self.record()
        return [] if record is None else record.ledgers

    def ledger_ids(self) -> list[int]:
        """The ids of the ledgers, and of one that is prepared to be the next."""
        return [each.ledger_id for each in self.ledgers()]

    def record(self) -> TopicRecord | None:
        """The topic as the catalogue has it now; None: it is deleted."""
        record = self.catalogue.state.topics.get(self.name)
        return None if record is None or record.topic_id != self.topic_id else record

    def holds_chunks(self) -> bool:
        """Whether messages in chunks may be among its messages."""
        record = self.record()
        return record is not None and record.chunked

    # Compaction -----------------------------------------------------------------------------------

    def compaction(self) -> CompactionRecord | None:
        """The record of the last compaction; None: there was none."""
        record = self.record()
        return None if record is None else record.compaction

    def compacted_ledger(self) -> CompactedLedger | None:
        """The ledger that the last compaction left, to be read; mapped once while anybody reads it.
        One whose file cannot be read says why."""
        record = self.compaction()
        if record is None:
            return None
        found = None if self._compacted is None else self._compacted()
        if (
            found is None
            or found.ledger_id != record.ledger_id
            or ((found.horizon_ledger_id, found.horizon_message) != record.horizon)
        ):
            file, why = self._compacted_file(record) if record.ledger_id else (None, None)
            found = CompactedLedger(
                file,
                record.ledger_id,
                record.size,
                record.entry_count,
                record.message_count,
                *record.horizon,
                why,
            )
            if file is not None:
                file.first_indexes = self.indexes.of_survivors(record)
            self._compacted = weakref.ref(found)
        return found

    def _compacted_file(self, record: CompactionRecord) -> tuple[LedgerFile | None, str | None]:
        try:
            return self.open_compacted(record), None
        except errors.CorruptDataError as error:
            return None, errors.detail_of(error)

    def open_compacted(self, record: CompactionRecord) -> LedgerFile:
        """CorruptDataError: it is not there, or another."""
        raise NotImplementedError

    def trimmed_survivors(self) -> dict[int, int]:
        """Ledgers that were trimmed and hold messages that survived the last compaction: by id, the
        ordinal behind the last of them."""
        ledgers, record = self.ledgers(), self.compaction()
        if record is None:
            return {}
        first = ledgers[0].ledger_id if ledgers else LATEST
        return {ledger_id: end for ledger_id, end in record.ledgers if ledger_id < first}

    def is_trimmed_from(self, ledger_id: int) -> bool:
        """Whether this ledger was trimmed, or one with messages behind it."""
        record = self.record()
        return record is not None and record.removed_ledger_id >= ledger_id

    def make_span(self, ledger: LedgerRecord) -> LedgerSpan:
        """LedgerTrimmed: the topic has it no more."""
        raise NotImplementedError

    def published_counts(self, ledger: LedgerRecord) -> tuple[int, int]:
        """(entries, messages) of a ledger that may be read."""
        raise NotImplementedError

    def offloaded_ms(self, ledger: LedgerRecord) -> int | None:
        """Since when it is in an object store, whether or not its file is there too."""
        record = self.catalogue.state.offload_of(ledger)
        return None if record is None else record.offloaded_ms

    def index_file(self, ledger: LedgerRecord) -> LedgerFile:
        """A ledger's file, of which the index alone may be read: of one in an object store no more
        is fetched."""
        record = self.catalogue.state.offload_of(ledger)
        directory = self._directory()
        if record is None or may_exist(directory.ledger_path(ledger.file_id)):
            return self.span(ledger).file
        from pulsarx.broker.offload.offloaded_ledger import open_index

        return open_index(record, ledger, directory)

    def _directory(self) -> DataDirectory:
        """The folder that the topic is in. Not called in memory, where there is none."""
        raise NotImplementedError

    def _open_offloaded(self, ledger: LedgerRecord) -> LedgerFile | None:
        """A ledger whose file is gone, from the object store; None: it was not offloaded.

        CorruptDataError: the object is gone as well, or another's. StorageError: the store cannot
        be read now, or the disk has no room for what is fetched.
        """
        record = self.catalogue.state.offload_of(ledger)
        if record is None:
            return None
        from pulsarx.broker.offload.offloaded_ledger import open_offloaded
        from pulsarx.broker.offload.stored_object import StoredObject

        try:
            return open_offloaded(record, ledger, self._directory())
        except errors.CorruptDataError:
            raise
        except errors.StorageError as error:
            failure = error
        if failure.errno == ENOENT:
            try:
                StoredObject(record.location).require_place()
            except errors.StorageError as error:
                failure = error
            else:
                raise missing_file(self.name, record.location, ledger) from failure
        raise type(failure)(
            detail=f"read ledger {ledger.ledger_id} of {self.name}, which is in the object store "
            f"alone: {errors.detail_of(failure)}. No message was skipped; the next call tries "
            "again",
            errno=failure.errno,
        ) from failure

    def has_ledger(self, ledger_id: int) -> bool:
        """Whether the topic has it now."""
        return any(each.ledger_id == ledger_id for each in self.ledgers())

    def messages_in(self, ledger_id: int) -> int:
        """Published messages of one ledger; 0 when it is gone."""
        for ledger in self.ledgers():
            if ledger.ledger_id == ledger_id:
                try:
                    return self.published_counts(ledger)[1]
                except errors.CorruptDataError:
                    break  # not sealed, and its file cannot be read
        return 0

    def span(self, ledger: LedgerRecord) -> LedgerSpan:
        """The ledger as a reader sees it; mapped once while anybody reads it."""
        spans = self._spans
        if spans is None:
            spans = self._spans = {}
        reference = spans.get(ledger.ledger_id)
        found = None if reference is None else reference()
        if found is None or (ledger.state == "sealed" and found.is_growing):
            try:
                found = self.make_span(ledger)
            except errors.CorruptDataError as error:
                error.ledger_id = ledger.ledger_id  # type: ignore[attr-defined]
                raise
            self.indexes.note(ledger, found.file, found.end)
            # Without a callback: readers let go of it in the middle of their calls.
            spans[ledger.ledger_id] = weakref.ref(found)
            if len(spans) > self._spans_max:
                for ledger_id, each in list(spans.items()):
                    if each() is None:
                        spans.pop(ledger_id, None)
                self._spans_max = 2 * len(spans) + 16
        return found

    def file_and_end(
        self, ledger: LedgerRecord, span_of: Callable[[LedgerRecord], LedgerSpan] | None = None
    ) -> tuple[LedgerFile, int]:
        """The file of a ledger, and how far it is published now. span_of: instead of `span`; raises
        as that.

        The end of a span is not to be asked twice: that of a ledger which grows moves.
        """
        span = (span_of or self.span)(ledger)
        return span.file, span.end

    def span_at_hand(self, ledger: LedgerRecord) -> LedgerSpan:
        """Like `span`, for a ledger at hand. LedgerAway: it would have to be fetched first."""
        offload = self.catalogue.state.offload_of(ledger)
        reference = None if self._spans is None else self._spans.get(ledger.ledger_id)
        if offload is not None and (reference is None or reference() is None):
            from pulsarx.broker.offload.offloaded_ledger import is_at_hand

            directory = self._directory()
            is_here = may_exist(directory.ledger_path(ledger.file_id))
            if not is_here and not is_at_hand(ledger, directory):
                raise LedgerAway
        return self.span(ledger)

    def _span_or_wanted(self, ledger: LedgerRecord) -> LedgerSpan:
        """Like `span`, also for a ledger that was found damaged when it was fetched. LedgerWanted:
        it would have to be fetched."""
        if ledger.ledger_id in self._unfetched:
            self._unfetched -= {ledger.ledger_id}
            return self.span(ledger)
        try:
            return self.span_at_hand(ledger)
        except LedgerAway:
            pass

        def fetch() -> None:
            try:
                self.span(ledger)  # which is kept for a while, as any that was fetched
            except LedgerTrimmed:
                pass
            except errors.CorruptDataError:
                # The reader is to come to it, and says what that costs.
                self._unfetched |= {ledger.ledger_id}

        raise LedgerWanted(lambda: control_plane.perform(fetch))

    def span_of(self, ledger_id: int) -> LedgerSpan | None:
        for ledger in self.ledgers():
            if ledger.ledger_id == ledger_id:
                try:
                    return self.span(ledger)
                except LedgerTrimmed:
                    break
        return None

    def span_after(
        self, current: LedgerSpan | None, passed_ledger_id: int, offset: int, defers: bool = False
    ) -> LedgerSpan | None:
        """The ledger at which a reader goes on that has read current up to offset and seen nothing
        more there; None: it waits. defers: LedgerWanted where that would have to be fetched."""
        while True:
            try:
                return self._span_after(current, passed_ledger_id, offset, defers)
            except LedgerTrimmed:
                pass  # the list is another now

    def _span_after(
        self, current: LedgerSpan | None, passed_ledger_id: int, offset: int, defers: bool
    ) -> LedgerSpan | None:
        there = self.ledgers()
        look = self._span_or_wanted if defers and self.catalogue.state.offloads else self.span
        for index, ledger in enumerate(there):
            if current is not None and ledger.ledger_id == current.ledger_id:
                span = self.span(ledger)
                if span is not current and span.end > offset:
                    return span
            elif ledger.ledger_id > passed_ledger_id:
                span = look(ledger)
                # Who went from one to the next will go on; who reads one message will not.
                if current is not None and self.catalogue.state.offloads and index + 1 < len(there):
                    self._fetch_ahead(there[index + 1])
                return span
        return None

    def _fetch_ahead(self, ledger: LedgerRecord) -> None:
        """Have a ledger at hand, if it is in an object store alone."""
        record = self.catalogue.state.offload_of(ledger)
        if record is None:
            return
        directory = self._directory()
        if not may_exist(directory.ledger_path(ledger.file_id)):
            from pulsarx.broker.offload.offloaded_ledger import fetch_ahead

            fetch_ahead(record, ledger, directory)

    def ledger_id_after(self, ledger_id: int) -> int:
        """The id of the next ledger; the same when there is none."""
        return next(
            (each.ledger_id for each in self.ledgers() if each.ledger_id > ledger_id), ledger_id
        )

    def entries_between(self, ledger_id: int, end_id: int) -> int:
        """Entries that are published in the ledgers between two."""
        found = [each for each in self.ledgers() if ledger_id < each.ledger_id < end_id]
        return sum(self.published_counts(each)[0] for each in found)

    def position_at_index(self, index: int) -> Position:
        """The message of an index; the first that is left where it is gone, the end where there is
        none yet."""
        for ledger, first in self.indexes.all():
            if index < first + self.published_counts(ledger)[1]:
                return (ledger.ledger_id, max(index - first, 0))
        return self.end_position()

    def first_position(self) -> Position:
        ledgers = self.ledgers()
        return (ledgers[0].ledger_id, 0) if ledgers else (0, 0)

    def end_position(self) -> Position:
        """The position behind the last message that readers may see."""
        ledgers = self.ledgers()
        if not ledgers:
            return (0, 0)
        held = self.tail.held_ledger_id()  # what is behind is not seen either
        last = next((each for each in ledgers if each.ledger_id == held), ledgers[-1])
        return (last.ledger_id, self.published_counts(last)[1])

    def position_before(self, position: Position, count: int) -> Position:
        """The position so many messages in front of one; the first one, where there are fewer."""
        ledger_id, ordinal = position
        for ledger in reversed(self.ledgers()):
            if ledger.ledger_id > ledger_id:
                continue
            if ledger.ledger_id < ledger_id:
                ordinal = self.published_counts(ledger)[1]
            if ordinal >= count:
                return (ledger.ledger_id, ordinal - count)
            count -= ordinal
        return self.first_position()

    def still_there(self, position: Position) -> Position:
        """A position that was found here before; where its ledger is gone since, or there was none,
        that of the next message that is left."""
        ledgers = self.ledgers()
        if any(each.ledger_id == position[0] for each in ledgers):
            return position
        later = next((each for each in ledgers if each.ledger_id > position[0]), None)
        return self.end_position() if later is None else (later.ledger_id, 0)

    def locate(self, message_id: MessageId) -> tuple[int, int, int]:
        """(ledger id, first ordinal, messages) that an id names; no messages when its ledger is
        gone or never was, or when the entry lies in a damaged place, which begins with that
        ordinal.

        The id of a batch (batch index -1) names all its messages.
        """
        ledger_id = message_id.ledger_id()
        if ledger_id < 0 or ledger_id == LATEST:
            return (0, 0, 0)
        for ledger in self.ledgers():
            if ledger.ledger_id == ledger_id:
                return self._locate_entry(ledger, message_id.entry_id(), message_id.batch_index())
        return (ledger_id, 0, 0)

    def locate_for_acknowledgement(self, message_id: object) -> tuple[int, int, int]:
        """Locate a message as `locate` does. What was trimmed is acknowledged.

        NotAllowedError: the topic never had such a message. CorruptDataError: its entry cannot be
        read.
        """
        if not isinstance(message_id, MessageId):
            raise TypeError(
                f"a Message or a MessageId is acknowledged, not a {type(message_id).__name__}"
            )
        found = self.locate(message_id)
        if not found[2] and not self.may_have_had(message_id.ledger_id()):
            if self.is_damaged(message_id):
                raise errors.CorruptDataError(
                    detail=f"acknowledge {message_id} of {self.name}: the entry cannot be read, so "
                    "which messages it holds is not known; a consumer that comes to it is told"
                )
            raise errors.NotAllowedError(
                detail=f"acknowledge {message_id}: {self.name} has no such message; an id is "
                "acknowledged on the topic it was published to or received from"
            )
        return found

    def may_have_had(self, ledger_id: int) -> bool:
        """Whether a ledger of this id may have been of this topic and is trimmed."""
        ledgers = self.ledgers()
        state = self.catalogue.state
        below = ledgers[0].ledger_id if ledgers else state.next_id
        return 0 < ledger_id < below and not any(
            each.ledger_id == ledger_id for topic in state.topics.values() for each in topic.ledgers
        )

    def _locate_entry(
        self, ledger: LedgerRecord, entry_id: int, batch_index: int
    ) -> tuple[int, int, int]:
        entries, messages = self.published_counts(ledger)
        if entry_id < 0:
            return (ledger.ledger_id, 0, 0)
        if entry_id >= entries:
            return (ledger.ledger_id, messages, 0)
        try:
            file, end = self.file_and_end(ledger)
        except (LedgerTrimmed, errors.CorruptDataError):
            return (ledger.ledger_id, 0, 0)
        offset, gap = file.find_entry_or_gap(entry_id, end)
        frame = file.frame(offset, end)
        if gap is not None:
            first, count = gap[1], 0
            following = (entries, messages)
            if frame is not None:
                following = frame["entry_id"], frame["first_message"]
            if gap[0] == entry_id == following[0] - 1:
                count = following[1] - first  # the only entry that is missing there
        elif frame is None:
            return (ledger.ledger_id, messages, 0)
        else:
            first, count = frame["first_message"], frame["message_count"]
        if batch_index < 0:
            return (ledger.ledger_id, first, count)
        if batch_index >= count:
            return (ledger.ledger_id, first + count, 0)
        return (ledger.ledger_id, first + batch_index, 1)

    def is_damaged(self, message_id: MessageId) -> bool:
        """Whether an id names an entry that was published and cannot be found."""
        entry_id = message_id.entry_id()
        for ledger in self.ledgers():
            if ledger.ledger_id == message_id.ledger_id():
                if not 0 <= entry_id < self.published_counts(ledger)[0]:
                    return False
                try:
                    file, end = self.file_and_end(ledger)
                except errors.CorruptDataError:
                    return True
                except LedgerTrimmed:
                    return False
                return file.find_entry_or_gap(entry_id, end)[1] is not None
        return False

    def position_of(self, message_id: MessageId, inclusive: bool) -> Position:
        """The position at which reading starts for an id: at it, or behind it; earliest and latest
        are themselves.

        An id before the first ledger is the first message, one beyond the end is the end, one in a
        damaged place begins with that place, so that its reader is told of the damage.
        """
        if message_id.ledger_id() == LATEST:
            return self.end_position()
        if message_id.ledger_id() < 0:
            return self.first_position()
        if inclusive:
            first_chunk = message_id.first_chunk_message_id() or self.first_chunk_of(message_id)
            if first_chunk is not None:
                return self.position_of(first_chunk, True)
        ledger_id, first, count = self.locate(message_id)
        for ledger in self.ledgers():
            if ledger.ledger_id == ledger_id:
                if ledger.state == "sealed" and message_id.entry_id() >= ledger.entry_count:
                    self._tell_clamped(message_id, ledger)
                return (ledger_id, first if inclusive else first + count)
            if ledger.ledger_id > ledger_id:
                return (ledger.ledger_id, 0)
        return self.end_position()

    def _tell_clamped(self, message_id: MessageId, ledger: LedgerRecord) -> None:
        import logging

        logging.getLogger("pulsarx").warning(
            "%s: message id %s is behind the end of its ledger, which has %d entries: what was "
            "there did not survive; reading begins at the end of the ledger",
            self.name, message_id, ledger.entry_count,
        )  # fmt: skip

    def position_at_time(self, publish_time_ms: int) -> Position:
        """The first message published at or after a time (milliseconds since 1970), or the damaged
        place in front of it; the end when there is none."""
        for ledger in self.ledgers():
            entries, _ = self.published_counts(ledger)
            if entries == 0 or (
                ledger.state == "sealed" and ledger.last_publish_ms < publish_time_ms
            ):
                continue
            try:
                file, end = self.file_and_end(ledger)
            except LedgerTrimmed:
                continue
            except errors.CorruptDataError:
                return (ledger.ledger_id, 0)  # its messages may be of that time
            offset, gap = file.find_publish_time_or_gap(publish_time_ms, end)
            if gap is not None:
                return (ledger.ledger_id, gap[1])
            frame = file.frame(offset, end)
            if frame is not None:
                return (ledger.ledger_id, frame["first_message"])
        return self.end_position()

    def last_message_id(self) -> MessageId:
        """Id of the last published message; (-1,-1,-1,-1) when there is none."""
        for ledger in reversed(self.ledgers()):
            entries, _ = self.published_counts(ledger)
            if entries == 0:
                continue
            frame = None
            try:
                file, end = self.file_and_end(ledger)
                frame = file.frame(file.find_entry(entries - 1, end), end)
                while frame is not None and self.is_aborted(ledger.ledger_id, frame):
                    entries = frame["entry_id"]
                    frame = file.frame(file.find_entry(entries - 1, end), end) if entries else None
            except LedgerTrimmed:
                continue
            except errors.CorruptDataError:
                pass  # its readers are told
            if entries == 0:
                continue
            batch_index = -1
            if frame is not None and frame["flags"] & ENTRY_BATCH:
                batch_index = frame["message_count"] - 1
            last = MessageId(self.partition, ledger.ledger_id, entries - 1, batch_index)
            first = None
            if frame is not None and frame["flags"] & ENTRY_CHUNK:
                first = self._first_chunk(ledger, entries - 1)
            return last if first is None else message_id_with_first_chunk(last, first)
        return MessageId()

    def is_aborted(self, ledger_id: int, frame: dict[str, int]) -> bool:
        """Whether an entry is of a transaction that was aborted: nobody sees it."""
        return bool(frame["flags"] & ENTRY_TRANSACTION) and self.aborted.hides(
            ledger_id, frame["first_message"]
        )

    def first_chunk_of(self, message_id: MessageId) -> MessageId | None:
        """The first chunk of an id that does not say it; see _first_chunk."""
        if not self.holds_chunks():
            return None
        for ledger in self.ledgers():
            if ledger.ledger_id == message_id.ledger_id():
                there = 0 <= message_id.entry_id() < self.published_counts(ledger)[0]
                return self._first_chunk(ledger, message_id.entry_id()) if there else None
        return None

    def _first_chunk(self, ledger: LedgerRecord, entry_id: int) -> MessageId | None:
        """The first chunk of the message whose last chunk an entry is. None: it is not the last
        one, or other entries lie between its chunks."""
        try:
            last = self._chunk_at(ledger, entry_id)
            if last is None or last[1] + 1 != last[2]:
                return None
            before = [each for each in self.ledgers() if each.ledger_id < ledger.ledger_id]
            steps = last[1]
            while steps > entry_id and before:
                ledger, steps = before.pop(), steps - entry_id - 1
                entry_id = self.published_counts(ledger)[0] - 1
            entry_id -= steps
            if entry_id < 0 or self._chunk_at(ledger, entry_id) != (last[0], 0, last[2]):
                return None
        except (LedgerTrimmed, errors.CorruptDataError):
            return None
        return MessageId(self.partition, ledger.ledger_id, entry_id)

    def _chunk_at(self, ledger: LedgerRecord, entry_id: int) -> tuple[bytes, int, int] | None:
        """(uuid, chunk id, number of chunks) of an entry; None: it is no chunk."""
        file, end = self.file_and_end(ledger)
        found: tuple[bytes, int, int] | None = file.chunk(file.find_entry(entry_id, end), end)
        return found

    def size_of(self, ledger: LedgerRecord) -> int:
        """Bytes of its file up to the published end."""
        if ledger.state == "sealed":
            return ledger.size
        try:
            return self.file_and_end(ledger)[1]
        except (LedgerTrimmed, errors.CorruptDataError):
            return 0

    def message_count(self) -> int:
        return sum(self.published_counts(ledger)[1] for ledger in self.ledgers())

    def message_count_from(self, position: Position) -> int:
        """How many messages there are from a position on."""
        there = [each for each in self.ledgers() if each.ledger_id >= position[0]]
        total = sum(self.published_counts(ledger)[1] for ledger in there)
        return total - (position[1] if there and there[0].ledger_id == position[0] else 0)

    def entry_count(self) -> int:
        return sum(self.published_counts(ledger)[0] for ledger in self.ledgers())
