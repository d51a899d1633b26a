"""The positions of a topic as those see them that read it compacted: as LedgerList, except that the
survivors of ledgers that were trimmed are there, and that others are not."""

from __future__ import annotations

from pulsarx._pycore.message.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.ledger.compacted_ledger import CompactedLedger
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position


class CompactedView:
    """Finds positions. Any thread may call."""

    __slots__ = ("_ledgers",)

    def __init__(self, ledgers: LedgerList) -> None:
        self._ledgers = ledgers

    def compacted_ledger(self) -> CompactedLedger | None:
        """See LedgerList."""
        return self._ledgers.compacted_ledger()

    def first_position(self) -> Position:
        """The position of the first survivor, or in front of what was not compacted yet."""
        compacted = self._ledgers.compacted_ledger()
        if compacted is None:
            return self._ledgers.first_position()
        record = self._ledgers.compaction()
        if record is not None and record.ledgers:
            # Of one that cannot be read, too: its reader is told.
            return min((record.ledgers[0][0], 0), record.horizon)
        return compacted.horizon_ledger_id, compacted.horizon_message

    def end_position(self) -> Position:
        return self._ledgers.end_position()

    def last_message_id(self) -> MessageId:
        """The id of the last message that is not compacted away; (-1,-1,-1,-1) when there is
        none."""
        last: MessageId = self._ledgers.last_message_id()  # it refreshes what others own
        record = self._ledgers.compaction()
        if record is None:
            return last
        # Not by the end of the topic: a ledger that holds nothing yet may be behind the horizon.
        if last.ledger_id() == record.horizon_ledger_id and record.horizon_message:
            is_behind = last.entry_id() > record.horizon_entry
        else:
            is_behind = last.ledger_id() >= record.horizon_ledger_id
        return last if is_behind else self.last_survivor()

    def last_survivor(self) -> MessageId:
        """Id of the last message that the last compaction left; (-1,-1,-1,-1): there is none."""
        record = self._ledgers.compaction()
        return (
            MessageId(self._ledgers.partition, *record.last)
            if record and record.last
            else (MessageId())
        )

    def _trimmed(self, message_id: MessageId) -> CompactedLedger | None:
        """The compacted ledger, if it may hold the id and the topic's ledgers do not."""
        compacted = self._ledgers.compacted_ledger()
        ledger_id = message_id.ledger_id()
        if compacted is None or not 0 <= ledger_id <= compacted.horizon_ledger_id:
            return None
        return None if self._ledgers.has_ledger(ledger_id) else compacted

    def position_of(self, message_id: MessageId, inclusive: bool) -> Position:
        """Like LedgerList.position_of; what was compacted away begins with the next survivor."""
        if message_id.ledger_id() < 0:
            return self.first_position()
        if inclusive:
            first_chunk = message_id.first_chunk_message_id() or self._first_chunk_of(message_id)
            if first_chunk is not None:
                return self.position_of(first_chunk, True)
        compacted = self._trimmed(message_id)
        if compacted is None:
            return self._ledgers.position_of(message_id, inclusive)
        entry_id, batch_index = message_id.entry_id(), message_id.batch_index()
        place = compacted.place_of_entry(message_id.ledger_id(), max(entry_id, 0))
        if place is None:
            return compacted.horizon_ledger_id, compacted.horizon_message
        ledger_id, found_id, first, count = place
        if (ledger_id, found_id) != (message_id.ledger_id(), entry_id):
            return ledger_id, first
        if batch_index < 0:
            ordinal = first if inclusive else first + count
        else:
            ordinal = first + min(batch_index + (not inclusive), count)
        if ordinal < self._ledgers.trimmed_survivors().get(ledger_id, 0):
            return ledger_id, ordinal
        # Behind the last one that survived of the ledger, of which nothing more is known.
        place = compacted.place_of_entry(ledger_id, entry_id + 1)
        if place is None:
            return compacted.horizon_ledger_id, compacted.horizon_message
        return place[0], place[2]

    def _first_chunk_of(self, message_id: MessageId) -> MessageId | None:
        """Like LedgerList.first_chunk_of, for survivors of compaction, too."""
        found = self._ledgers.first_chunk_of(message_id)
        compacted = self._ledgers.compacted_ledger()
        ledger_id, entry_id = message_id.ledger_id(), message_id.entry_id()
        if found is not None or compacted is None or entry_id < 0:
            return found
        if not 0 <= ledger_id <= compacted.horizon_ledger_id or not self._ledgers.holds_chunks():
            return None
        place = compacted.first_chunk(ledger_id, entry_id)
        return None if place is None else MessageId(self._ledgers.partition, *place)

    def position_at_time(self, publish_time_ms: int) -> Position:
        """Like LedgerList.position_at_time, for survivors of compaction, too."""
        found = self._ledgers.position_at_time(publish_time_ms)
        compacted = self._ledgers.compacted_ledger()
        first, _ = self._ledgers.first_position()
        if compacted is not None:
            place = compacted.place_at_time(publish_time_ms)
            if place is not None and (not first or place[0] < first):
                return place[0], place[2]
        return found

    def position_at_index(self, index: int) -> Position:
        """Like LedgerList.position_at_index, for survivors of compaction, too."""
        record, trimmed = self._ledgers.compaction(), self._ledgers.trimmed_survivors()
        if record is not None and trimmed:
            ids = list(trimmed)
            for ledger_id, first in zip(ids, self._ledgers.indexes.of_all(ids)):
                if first >= 0 and index < first + trimmed[ledger_id]:
                    return (ledger_id, max(index - first, 0))
        return self._ledgers.position_at_index(index)

    def locate_for_acknowledgement(self, message_id: object) -> tuple[int, int, int]:
        """Like LedgerList.locate_for_acknowledgement, for survivors of compaction, too."""
        if isinstance(message_id, MessageId):
            compacted = self._trimmed(message_id)
            entry_id, batch_index = message_id.entry_id(), message_id.batch_index()
            if compacted is not None and entry_id >= 0:
                place = compacted.place_of_entry(message_id.ledger_id(), entry_id)
                if place is not None and place[:2] == (message_id.ledger_id(), entry_id):
                    if batch_index < 0:
                        return place[0], place[2], place[3]
                    if batch_index < place[3]:
                        return place[0], place[2] + batch_index, 1
        return self._ledgers.locate_for_acknowledgement(message_id)


def positions_to_read(topic: Any, compacted: bool) -> LedgerList | CompactedView | None:
    """The positions of what a reader of a topic reads. None: the topic keeps nothing."""
    if not topic.topic_name.persistent:
        return None
    return CompactedView(topic.ledger) if compacted else topic.ledger
