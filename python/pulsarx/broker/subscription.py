"""A durable subscription: its cursor, its read position, its consumer.

state         holds                                   left by
IDLE          no consumer; the cursor holds ledgers   attach, remove
ATTACHED      one consumer reads and acknowledges     detach, remove
REMOVED       the cursor is deleted                   -
"""

from __future__ import annotations

import weakref

from pulsarx import errors
from pulsarx._pycore.ack_tracker import AckTracker
from pulsarx._pycore.consumer_core import ConsumerCore
from pulsarx._pycore.dispatcher import Dispatcher
from pulsarx._pycore.entry_view import EntryContext
from pulsarx._pycore.message_id import MessageId
from pulsarx.clock import Deadline
from pulsarx.compression import decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue_state import SubscriptionRecord
    from pulsarx.broker.ledger_list import Position
    from pulsarx.broker.topic import Topic

    MakeConsumer = Callable[[Dispatcher, "Subscription"], Any]


class Subscription:
    """One Exclusive, durable subscription of a topic. Any thread may call."""

    def __init__(self, topic: Topic, record: SubscriptionRecord, tracker: AckTracker) -> None:
        self.topic = topic
        self.record = record
        self.name: str = record.name
        self.tracker = tracker
        self._consumer: weakref.ref[ConsumerCore] | None = None
        self.dispatcher = Dispatcher(topic.ledger.tail, tracker, topic.decompressed_size_max)
        self.removed = False

    @property
    def consumer(self) -> ConsumerCore | None:
        """Who reads now; None when nobody does."""
        found = self._consumer() if self._consumer is not None else None
        return found if found is not None and found.is_open else None

    def attach(self, schema: object, make: MakeConsumer) -> ConsumerCore:
        """Make the one consumer; it starts at the first message that is not acknowledged."""
        if self.consumer is not None:
            raise errors.ConsumerBusy(
                f"subscription {self.name} of {self.topic.name} is Exclusive and has a "
                f"consumer; close that one first"
            )
        self.dispatcher.use(
            EntryContext(self.topic.name, schema, self.topic.ledger.tail, decompress)
        )
        self.dispatcher.rewind()
        consumer: ConsumerCore = make(self.dispatcher, self)
        self._consumer = weakref.ref(consumer)
        return consumer

    def detach(self, consumer: ConsumerCore) -> None:
        """The consumer is gone: what it did not acknowledge goes to the next one."""
        if self._consumer is not None and self._consumer() in (consumer, None):
            self._consumer = None
        self.topic.trim()

    def locate(self, message_id: object) -> tuple[int, int, int]:
        """For an acknowledgement by id; see LedgerList.locate."""
        if not isinstance(message_id, MessageId):
            raise TypeError(
                f"a Message or a MessageId is acknowledged, not a {type(message_id).__name__}"
            )
        return self.topic.ledger.locate(message_id)

    def seek(self, position: Position) -> None:
        """Everything before the position counts as acknowledged, everything from it on as not.
        Durable on return."""
        if self.topic.ledger.ledgers():
            self.dispatcher.reset(*position)
        else:
            self.dispatcher.move(
                *position
            )  # nothing was published that could count as acknowledged
        self.topic.ledger.tail.wake()

    def redeliver(self) -> None:
        """Deliver what is not acknowledged again."""
        self.dispatcher.rewind()
        self.topic.ledger.tail.wake()

    def ledger_changed(self, ledger_id: int) -> None:
        """A ledger was added, sealed or removed."""

        def change() -> None:
            if not self.tracker.closed:  # unsubscribed meanwhile
                sync_tracker(self.tracker, self.topic)

        self.dispatcher.locked(change)

    def ledger_acknowledged(self) -> None:
        """The last message of a ledger was acknowledged: it may be trimmed."""
        self.topic.broker.background.put(self.topic.trim)

    def arm_flush(self, consumer: ConsumerCore) -> bool:
        """Make acknowledgements durable before the flush interval is over; True when that is
        arranged."""
        reference = weakref.ref(consumer)

        def flush() -> None:
            found = reference()
            if found is not None:
                found.flushed()
            if not self.removed:
                self.tracker.flush()

        self.topic.broker.after_flush_interval(flush)
        return True

    def deadline(self, timeout_millis: int | None) -> Deadline:
        """How long a caller waits is real time, whatever clock the broker has."""
        return Deadline(timeout_millis)

    def log_damage(self) -> None:
        import logging

        logging.getLogger("pulsarx").error(
            "%s: a damaged entry was passed over by receive_many on subscription %s",
            self.topic.name,
            self.name,
            exc_info=True,
        )

    def mark_delete(self) -> Position:
        """The first message that is not acknowledged."""
        position: Position = self.dispatcher.locked(self.tracker.mark_delete)
        return position

    def backlog(self) -> int:
        """Messages that are not acknowledged."""

        def count() -> int:
            total = 0
            known = set(self.tracker.ledger_ids)  # all but one that is being added right now
            for ledger in self.topic.ledger.ledgers():
                messages = self.topic.ledger.published_counts(ledger)[1]
                if ledger.ledger_id in known:
                    messages -= self.tracker.acknowledged_count(ledger.ledger_id)
                total += max(messages, 0)
            return total

        return int(self.dispatcher.locked(count))

    def remove(self) -> None:
        """Unsubscribe: the position is gone, messages are no longer held for it."""
        self.removed = True
        consumer = self.consumer
        if consumer is not None:
            consumer.shut()
        self.dispatcher.locked(self.tracker.delete)

    def close(self) -> None:
        consumer = self.consumer
        if consumer is not None:
            consumer.shut()
        if not self.removed:
            self.tracker.flush()
            self.dispatcher.locked(self.tracker.close)

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self.removed = True
        self.tracker.abandon()


def sync_tracker(tracker: AckTracker, topic: Topic) -> None:
    """Tell the tracker which ledgers the topic has; what it knows already changes nothing."""
    ledgers = topic.ledger.ledgers()
    if ledgers:
        tracker.forget_ledgers(ledgers[0].ledger_id)
    for ledger in ledgers:
        tracker.add_ledger(ledger.ledger_id)
        if ledger.state == "sealed":
            tracker.seal_ledger(ledger.ledger_id, ledger.message_count)
