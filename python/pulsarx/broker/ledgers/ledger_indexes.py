"""The indexes of a topic's messages: the number of each among all that the topic ever had, from 0.

A message has the index of its ledger's first message plus its ordinal there. That of the first one
is written down when the ledger is sealed; until then it follows from the ledgers in front, and is
in the first entry of the file, for where a power cut takes the end of one in front.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from pulsarx._pycore.ledger.ledger_file import LedgerFile
    from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
    from pulsarx.broker.catalogue.records import CompactionRecord, LedgerRecord, TopicRecord

    class Ledgers(Protocol):
        """A list of ledgers, as far as it is asked here."""

        def ledgers(self) -> list[LedgerRecord]: ...
        def record(self) -> TopicRecord | None: ...
        def compaction(self) -> CompactionRecord | None: ...
        def published_counts(self, ledger: LedgerRecord) -> tuple[int, int]: ...


END = 1 << 63  # behind every ledger
_ID_OF = attrgetter("ledger_id")


class LedgerIndexes:
    """Belongs to a list of ledgers. Any thread may call."""

    __slots__ = ("_known", "_ledgers", "_writers")

    def __init__(self, ledgers: Ledgers, writers: dict[int, LedgerWriter]) -> None:
        """writers: of the ledgers that are open in this process, kept up to date by their list."""
        self._ledgers = ledgers
        self._writers: dict[int, LedgerWriter] = writers
        self._known: dict[int, int] = {}  # by ledger, where the catalogue does not say it

    def first(self, ledger_id: int) -> int:
        """The index of the first message of a ledger that is there; else of the message behind the
        ledgers in front of where it would be."""
        ledgers = self._ledgers.ledgers()
        end = bisect_left(ledgers, ledger_id, key=_ID_OF)
        if end < len(ledgers) and ledgers[end].ledger_id == ledger_id:
            known = self._said(ledgers[end])
            if known >= 0:
                return known
        found, at = -1, end
        while found < 0 and at > 0:
            at -= 1
            found = self._said(ledgers[at])
        if found < 0:
            record = self._ledgers.record()
            found = 0 if record is None else record.removed_index
        for each in ledgers[at:end]:
            # One that has another one behind it does not grow.
            writer = self._writers.get(each.ledger_id) if each is not ledgers[-1] else None
            count = self._ledgers.published_counts(each)[1] if writer is None else (
                writer.message_count  # of which transactions may hold back some
            )  # fmt: skip
            found = max(found, self._said(each)) + count
        return found

    def end(self) -> int:
        """The index behind the last message that is published."""
        return self.first(END)

    def following(self) -> int:
        """The index of the first message of a ledger that is made now, behind all that is
        stored."""
        ledgers = self._ledgers.ledgers()
        writer = self._writers.get(ledgers[-1].ledger_id) if ledgers else None
        return self.end() if writer is None else int(writer.first_index + writer.message_count)

    def _said(self, ledger: LedgerRecord) -> int:
        """The index of its first message as it is known without the others; -1: it is not."""
        writer = self._writers.get(ledger.ledger_id)
        if writer is not None:
            return int(writer.first_index)
        if ledger.first_index >= 0:
            return ledger.first_index
        return self._known.get(ledger.ledger_id, -1)

    def note(self, ledger: LedgerRecord, file: LedgerFile, end: int) -> int:
        """Tell the file of a ledger, for its messages, the index of its first one."""
        found = self._said(ledger)
        if found < 0:
            found = max(self.first(ledger.ledger_id), file.said_first_index(end))
            if len(self._known) > 2 * len(self._ledgers.ledgers()) + 16:
                self._known = {}
            self._known[ledger.ledger_id] = found
        file.first_index = found
        return found

    def all(self) -> Iterator[tuple[LedgerRecord, int]]:
        """Each ledger, with the index of its first message."""
        record = self._ledgers.record()
        following = 0 if record is None else record.removed_index
        for each in self._ledgers.ledgers():
            first = self._said(each)
            if first < 0:
                first = following
            yield each, first
            following = first + self._ledgers.published_counts(each)[1]

    def behind(self, ledgers: list[LedgerRecord]) -> int:
        """The index of the message behind the last one of these; 0: they have none."""
        for each in reversed(ledgers):
            if each.message_count:
                return self.first(each.ledger_id) + each.message_count
        return 0

    def of_survivors(self, record: CompactionRecord) -> dict[int, int]:
        """By ledger that holds some, the index of its first message; -1: not known."""
        found = {each[0]: -1 for each in record.ledgers}
        found |= {each[0]: index for each, index in zip(record.ledgers, record.first_indexes)}
        if -1 in found.values():
            there = {each.ledger_id: first for each, first in self.all()}
            found = {each: there.get(each, index) for each, index in found.items()}
        return found

    def of_all(self, ledger_ids: list[int]) -> list[int]:
        """Like `first`, of ledgers that are there, or hold survivors of a compaction; -1: not
        known."""
        record = self._ledgers.compaction()
        known = {} if record is None else self.of_survivors(record)
        known |= {each.ledger_id: first for each, first in self.all()}
        return [known.get(each, -1) for each in ledger_ids]
