"""A topic as the planner sees it, and the changes it may meet. Used by Planner alone."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue.records import LEDGER_PREPARED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue.records import LedgerRecord
    from pulsarx.broker.ledgers.ledger_list import LedgerList
    from pulsarx.broker.scan.offsets import Position


class Moved(Exception):
    """The owner changed the ledgers since they were looked at: look again."""


class PlannedTopic:
    """How one topic ends: its open ledgers, newest first, and what is before them."""

    __slots__ = ("name", "ledgers", "open_ledgers", "sealed_end", "may_grow", "_last_id")

    def __init__(
        self, name: str, ledgers: LedgerList, removed: Position, sealed_only: bool
    ) -> None:
        self.name: str = name
        self.ledgers: LedgerList = ledgers
        self.open_ledgers: list[LedgerRecord] = []
        self.sealed_end: Position = removed
        there = ledgers.ledgers()
        record = ledgers.record()
        # A prepared ledger comes when it is used; that the catalogue says so is later.
        self.may_grow: bool = (
            record is not None
            and bool(record.ledgers)
            and record.ledgers[-1].state == LEDGER_PREPARED
        )
        self._last_id = there[-1].ledger_id if there else 0
        if sealed_only:
            # Nothing behind an open one either: its turn comes when that is sealed.
            sealed = [ledger.state == "sealed" for ledger in there]
            there = there[: sealed.index(False)] if False in sealed else there
        for ledger in reversed(there):
            if ledger.state != "sealed":
                self.open_ledgers.append(ledger)
            elif ledger.message_count:
                self.sealed_end = (ledger.ledger_id, ledger.message_count)
                break

    def is_current(self) -> bool:
        """Whether no ledger came since it was made. Without a change of the catalogue one may have
        come only where it may_grow."""
        there = self.ledgers.ledgers()
        return self._last_id == (there[-1].ledger_id if there else 0)


def lost(text: str) -> errors.DataLossError:
    return errors.DataLossError(
        detail=f"{text}. Set failOnDataLoss to false to go on with what is left"
    )


def unknown(name: str, known: list[str]) -> errors.TopicNotFound:
    import difflib

    near = difflib.get_close_matches(name, known, 1, 0.8)
    return errors.TopicNotFound(detail=f"{name}; did you mean {near[0]}?" if near else name)
