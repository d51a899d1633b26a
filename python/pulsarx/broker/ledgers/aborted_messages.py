"""The messages of aborted transactions in the ledgers of one topic, which all readers pass over: as
its owner knows them, and as the catalogue tells others. Asked by readers for each entry of a
transaction alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.records import Runs, TopicRecord

    Run = tuple[int, int, int]  # of a ledger: its id, the first message, and behind the last


class AbortedMessages:
    """Knows those of a topic of this process. The coordinator of transactions changes them, one end
    at a time."""

    __slots__ = ("_ledger", "_runs", "_unpassed")

    def __init__(self, ledger: Any, aborted: Runs) -> None:
        """ledger: the ManagedLedger of the topic, whose readers look into the same table."""
        self._ledger = ledger
        self._runs: dict[int, list[tuple[int, int]]] = {}
        for each in aborted:
            self._runs[each] = [(first, end) for first, end in aborted[each]]
        ledger.tail.aborted = self._runs
        # Not passed over by subscriptions yet, as transactions in front of them are open.
        self._unpassed: dict[Run, bool] = {}

    def add(self, runs: list[list[int]]) -> None:
        """A transaction was aborted; readers do not see its messages yet."""
        for ledger_id, first, end in runs:
            self._unpassed[ledger_id, first, end] = True
        # Readers look into the list that is there. It may hold thousands.
        changed = {each[0]: list(self._runs.get(each[0], ())) for each in runs}
        for ledger_id, first, end in runs:
            known = changed[ledger_id]
            at = bisect_left(known, (first, end))
            if known[at : at + 1] != [(first, end)]:
                known.insert(at, (first, end))
        self._runs.update(changed)

    def all_passed(self) -> list[Run]:
        """The runs in front of all that open transactions hold back."""
        return [
            (ledger_id, first, end)
            for ledger_id, runs in list(self._runs.items())
            for first, end in runs
            if (ledger_id, first, end) not in self._unpassed
        ]

    def waiting_ledgers(self) -> set[int]:
        """The ledgers with runs that subscriptions have not passed over."""
        return {ledger_id for ledger_id, _, _ in list(self._unpassed)}

    def forget(self, ledger_ids: list[int]) -> None:
        """These ledgers are gone."""
        for each in ledger_ids:
            self._runs.pop(each, None)
        gone = set(ledger_ids)
        for run in [each for each in list(self._unpassed) if each[0] in gone]:
            self._unpassed.pop(run, None)

    def pass_up_to(self, counts: dict[int, int]) -> None:
        """Readers see so many messages of each ledger by now."""
        passed = [each for each in list(self._unpassed) if each[2] <= counts.get(each[0], 0)]
        for each in passed:
            self._unpassed.pop(each, None)
        if self._ledger.passed_over is not None:
            self._ledger.passed_over(passed)

    def in_ledger(self, ledger_id: int) -> list[tuple[int, int]]:
        """The runs of one ledger, ascending."""
        return self._runs.get(ledger_id, [])

    def hides(self, ledger_id: int, message: int) -> bool:
        """Whether a message of a transaction, which readers may see, is of an aborted one."""
        return in_runs(self.in_ledger(ledger_id), message)


class AbortedByCatalogue:
    """Reads those of a topic of another process, or of a dead one."""

    __slots__ = ("_record", "_refresh", "_transacted")

    def __init__(
        self,
        record: Callable[[], TopicRecord | None],
        refresh: Callable[[], object],
        transacted: Callable[[int], list[list[int]] | None],
    ) -> None:
        """record: of the topic, as the catalogue was last read. refresh: reads it anew. transacted:
        the messages of transactions in a ledger that no owner appends to and none has sealed."""
        self._record = record
        self._refresh = refresh
        self._transacted = transacted

    def in_ledger(self, ledger_id: int) -> list[tuple[int, int]]:
        record = self._record()
        if record is None:
            return []
        aborted = record.aborted.get(ledger_id, [])
        left = self._transacted(ledger_id)
        if left is not None:  # what its owner had not committed before it died
            aborted = runs_without(left, record.committed.get(ledger_id, []))
        return [(first, end) for first, end in aborted]

    def hides(self, ledger_id: int, message: int) -> bool:
        for is_new in (False, True):
            if is_new:  # it ended a moment ago; or it never will, as its owner has died
                self._refresh()
            record = self._record()
            if record is None or in_runs(record.committed.get(ledger_id, []), message):
                return False
            if in_runs(record.aborted.get(ledger_id, []), message):
                return True
            if any(
                each.ledger_id == ledger_id and each.state == "sealed" for each in record.ledgers
            ):
                return False
        return True


def kept_runs(record: TopicRecord, written: dict[int, int]) -> Runs:
    """The aborted messages of a topic that is opened, without those that a power cut took: nobody
    flushes them for an abort. written: the messages of ledgers that are not sealed."""
    counts = {each.ledger_id: each.message_count for each in record.ledgers} | written
    return {
        each: [[first, min(end, counts[each])] for first, end in runs if first < counts[each]]
        for each, runs in record.aborted.items()
    }


def in_runs(runs: list[Any], message: int) -> bool:
    """Whether a message is in one of these runs, ascending: first, and behind the last."""
    at = bisect_right(runs, message, key=lambda each: each[0])
    return at > 0 and bool(message < runs[at - 1][1])


def runs_without(runs: list[list[int]], others: list[list[int]]) -> list[list[int]]:
    """Runs of messages without those of others, both ascending."""
    found: list[list[int]] = []
    for first, end in runs:
        for other, other_end in others:
            if other_end <= first or other >= end:
                continue
            if other > first:
                found.append([first, other])
            first = max(first, other_end)
        if first < end:
            found.append([first, end])
    return found
