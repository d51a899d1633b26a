"""How much of its topic a subscription has not acknowledged yet."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.catalogue_state import LedgerRecord
    from pulsarx.broker.subscription import Subscription


class Backlog:
    """Counted when it is made, with the mutex held for moments only: a look, not a snapshot.

    Entries take a walk over those between the first message and the last one that is not in order;
    everything else is arithmetic.
    """

    __slots__ = ("_subscription", "entries", "messages")

    def __init__(self, subscription: Subscription) -> None:
        self._subscription = subscription
        self.entries = 0
        self.messages = 0
        for ledger in subscription.topic.ledger.ledgers():
            self._add(ledger)

    def _add(self, ledger: LedgerRecord) -> None:
        entries, messages = self._subscription.topic.ledger.published_counts(ledger)
        left = messages - self._acknowledged(ledger.ledger_id)
        if left <= 0:
            return
        self.messages += left
        if left == messages:
            self.entries += entries
        elif entries == messages:  # nothing is in a batch
            self.entries += left
        else:
            self.entries += self._walk(ledger, entries, messages, left)

    def _acknowledged(self, ledger_id: int) -> int:
        tracker = self._subscription.tracker

        def count() -> int:
            # One that is being added right now is not known yet.
            known = ledger_id in tracker.ledger_ids
            return tracker.acknowledged_count(ledger_id) if known else 0

        return int(self._subscription.core.locked(count))

    def _walk(self, ledger: LedgerRecord, entries: int, messages: int, left: int) -> int:
        """The entries of a ledger with a message left."""
        found = 0
        at: int = 0
        span = self._subscription.topic.ledger.span_of(ledger.ledger_id)
        while span is not None and left < messages - at:
            at, _ = self._next_left(ledger.ledger_id, at, messages, 1)
            if at >= messages:
                return found
            frame = span.file.frame(span.file.find_message(at, span.end), span.end)
            if frame is None:  # damaged: what is behind it is taken for unbatched
                return found + left
            end = frame["first_message"] + frame["message_count"]
            _, count = self._next_left(ledger.ledger_id, at, end, end - at)
            at = end
            if count:
                found += 1
                left -= count
            if left == messages - at:
                return found + entries - int(frame["entry_id"]) - 1
        return found

    def _next_left(self, ledger_id: int, at: int, end: int, most: int) -> tuple[int, int]:
        """The first message of [at, end) that is not acknowledged, and how many are, up to most."""
        tracker = self._subscription.tracker

        def look() -> tuple[int, int]:
            first = each = tracker.next_unacknowledged_message(ledger_id, at, end)
            count = 0
            while each < end and count < most:
                count += 1
                each = tracker.next_unacknowledged_message(ledger_id, each + 1, end)
            return first, count

        found: tuple[int, int] = self._subscription.core.locked(look)
        return found
