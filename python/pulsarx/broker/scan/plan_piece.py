"""Finds pieces of ledgers in their files and cuts them to size. Used by Planner alone."""

from __future__ import annotations

from pulsarx._pycore.ledger.ledger_file import LedgerFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.ledgers.ledger_list import LedgerList

DATA_OFFSET = 4096  # where the entries of a ledger file begin
_FRAME_SIZE = 64


class Piece:
    """Messages first..until - 1 of a ledger; its bytes are offset..end of the file."""

    __slots__ = ("ledgers", "ledger", "first", "until", "offset", "end", "_file")

    def __init__(
        self,
        ledgers: LedgerList,
        ledger: LedgerRecord,
        first: int,
        until: int,
        offset: int,
        end: int,
        file: LedgerFile | None = None,
    ) -> None:
        self.ledgers: LedgerList = ledgers
        self.ledger: LedgerRecord = ledger
        self.first: int = first
        self.until: int = until
        self.offset: int = offset
        self.end: int = end
        self._file = file

    @property
    def size(self) -> int:
        return self.end - self.offset

    @property
    def file(self) -> LedgerFile:
        """Mapped when it is asked for: a plan of whole ledgers opens no file."""
        if self._file is None:
            self._file = self.ledgers.span(self.ledger).file
        return self._file

    def first_publish_ms(self) -> int:
        """When its first entry was published."""
        if self.ledger.state == "sealed" and self.first == 0:
            return self.ledger.first_publish_ms
        frame = self.file.frame(self.offset, self.end)
        return self.ledger.last_publish_ms if frame is None else int(frame["publish_time_ms"])

    def _place(self, ordinal: int) -> tuple[int, int, int]:
        """(offset, first ordinal, span) of the entry with a message; behind all: the end."""
        offset = self.file.find_message(ordinal, self.end)
        frame = self.file.frame(offset, self.end)
        if frame is None:
            return self.end, self.until, 0
        return offset, frame["first_message"], (_FRAME_SIZE + frame["entry_size"] + 7) & ~7

    def start_at(self, ordinal: int) -> None:
        """Leave out the messages before this one."""
        if ordinal > self.first:
            self.first = ordinal
            self.offset = self._place(ordinal)[0]

    def stop_at(self, ordinal: int) -> None:
        """Leave out this message and those behind it."""
        if ordinal < self.until:
            self.until = ordinal
            offset, first, span = self._place(ordinal)
            self.end = offset if first >= ordinal else offset + span

    def start_at_time(self, publish_time_ms: int) -> None:
        """Leave out what lies before the first entry of this time or a later one."""
        sealed = self.ledger.state == "sealed"
        if sealed and self.ledger.first_publish_ms >= publish_time_ms:
            return
        if sealed and self.ledger.last_publish_ms < publish_time_ms:
            self.first = self.until
            return
        self.start_at(self._ordinal_at_time(publish_time_ms))

    def stop_at_time(self, publish_time_ms: int) -> None:
        """Leave out what lies behind the last entry of an earlier time."""
        sealed = self.ledger.state == "sealed"
        if sealed and self.ledger.last_publish_ms < publish_time_ms:
            return
        if sealed and self.ledger.first_publish_ms >= publish_time_ms:
            self.until = self.first
            return
        found = self.file.end_of_times(publish_time_ms, self.end)
        if found is not None and found[1] < self.until:
            self.end, self.until = found

    def _ordinal_at_time(self, publish_time_ms: int) -> int:
        offset = self.file.find_publish_time(publish_time_ms, self.end)
        frame = self.file.frame(offset, self.end)
        return self.until if frame is None else int(frame["first_message"])

    def boundary(self, ordinal: int) -> int:
        """The first message of the entry with this one, unless that is before the piece."""
        if ordinal >= self.until:
            return self.until
        first = self._place(ordinal)[1]
        return first if first > self.first else ordinal

    def first_entry_end(self) -> int:
        """The ordinal behind the messages of its first entry."""
        frame = self.file.frame(self.file.find_message(self.first, self.end), self.end)
        if frame is None:
            return self.until
        return min(int(frame["first_message"] + frame["message_count"]), self.until)

    def part(self, first: int, until: int, offset: int, end: int) -> Piece:
        return Piece(self.ledgers, self.ledger, first, until, offset, end, self._file)

    def without(self, runs: list[tuple[int, int]]) -> list[Piece]:
        """The parts that are left without runs of messages, which are whole entries, ascending."""
        parts = []
        rest = self
        for first, until in runs:
            if until <= rest.first or first >= rest.until:
                continue
            if first > rest.first:
                before = rest.part(rest.first, rest.until, rest.offset, rest.end)
                before.stop_at(first)
                parts.append(before)
            if until >= rest.until:
                return parts
            rest = rest.part(rest.first, rest.until, rest.offset, rest.end)
            rest.start_at(until)
        return [*parts, rest]

    # Cutting --------------------------------------------------------------------------------------

    def cut_by_bytes(self, bytes_max: int) -> list[Piece]:
        """About equal parts of at most about bytes_max, cut between entries."""
        if self.size <= bytes_max:
            return [self]
        count = -(-self.size // bytes_max)
        step = -(-self.size // count)
        file = self._file or self.ledgers.index_file(self.ledger)
        return self._cut(file.cuts(self.offset, self.end, step))

    def _cut(self, places: list[tuple[int, int]]) -> list[Piece]:
        """Cut in front of the entries at (offset, first ordinal)."""
        parts = []
        first, start = self.first, self.offset
        for offset, ordinal in places:
            if first < ordinal < self.until:
                parts.append(self.part(first, ordinal, start, offset))
                first, start = ordinal, offset
        return [*parts, self.part(first, self.until, start, self.end)]

    def cut_by_messages(self, messages_max: int) -> list[Piece]:
        """Parts of at most messages_max, cut between entries where there is a choice."""
        parts = []
        rest = self
        while rest.until - rest.first > messages_max:
            part, rest = rest._split(rest.first + messages_max)
            parts.append(part)
        return [*parts, rest]

    def cut_evenly(self, count: int) -> list[Piece]:
        """So many parts with about as many messages each; fewer when there are not so many."""
        parts = []
        rest = self
        for left in range(min(count, self.until - self.first), 1, -1):
            part, rest = rest._split(rest.first + -(-(rest.until - rest.first) // left))
            parts.append(part)
        return [*parts, rest]

    def _split(self, ordinal: int) -> tuple[Piece, Piece]:
        """Cut it in two at the beginning of the entry with this message, unless that leaves
        nothing in front of the cut."""
        offset, first, span = self._place(ordinal)
        if first > self.first:
            ordinal = first
            span = 0
        before = self.part(self.first, ordinal, self.offset, offset + span)
        return before, self.part(ordinal, self.until, offset, self.end)


def cut_pieces(
    pieces: list[Piece], bytes_max: int, messages_max: int | None, count_min: int
) -> list[Piece]:
    """Cut what is too large; then what is there until there are count_min, if there are so many
    messages."""
    total = sum(each.size for each in pieces)
    found = [part for each in pieces for part in each.cut_by_bytes(bytes_max)]
    if messages_max is not None:
        found = [part for each in found for part in each.cut_by_messages(messages_max)]
    if count_min < 2:
        return found
    wanted = max(total // count_min, 1)
    # Nor is one much larger than its share: all others would wait for it.
    bytes_max = wanted if len(found) < count_min else 2 * wanted
    found = [part for each in found for part in each.cut_by_bytes(bytes_max)]
    # The sparse index is too coarse for small ledgers: those are cut at any message.
    return _cut_largest(found, count_min) if len(found) < count_min else found


def _cut_largest(pieces: list[Piece], count_min: int) -> list[Piece]:
    """Halve the one with the most messages until there are count_min, or each has one message."""
    import heapq

    # The second is the place in the order: halves of (3,) are (3, 0) and (3, 1).
    heap: list[tuple[int, tuple[int, ...], Piece]] = [
        (each.first - each.until, (at,), each) for at, each in enumerate(pieces)
    ]
    heapq.heapify(heap)
    while heap and len(heap) < count_min and heap[0][0] < -1:
        _, place, largest = heapq.heappop(heap)
        for at, half in enumerate(largest.cut_evenly(2)):
            heapq.heappush(heap, (half.first - half.until, (*place, at), half))
    return [each for _, _, each in sorted(heap, key=lambda found: found[1])]
