"""The position of a Reader: not durable, holds no ledger, acknowledges nothing."""

from __future__ import annotations

import weakref

from pulsarx._pycore.consume.consumer_arrow import ConsumerArrow
from pulsarx._pycore.dispatch.receiver import Receiver
from pulsarx._pycore.dispatch.single_active_dispatcher import SingleActiveDispatcher
from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
from pulsarx._pycore.message.entry_view import EntryContext
from pulsarx.clock import Deadline
from pulsarx.compression import decompress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
    from pulsarx.broker.topics.topic import Topic


class ReaderCursor:
    """One reader's position on a topic. Any thread may call."""

    def __init__(self, topic: Topic | ReadOnlyTopic, schema: object) -> None:
        self.topic = topic
        self._reader: weakref.ref[ConsumerArrow] | None = None
        self._context = EntryContext(topic.name, schema, topic.ledger.tail, decompress)
        self.dispatcher = SingleActiveDispatcher(
            SubscriptionCore(None, None),
            topic.ledger.tail,
            topic.name,
            topic.decompressed_size_max,
            True,
        )

    def attach(self, position: Position) -> ConsumerArrow:
        """Begin to read at a position."""
        receiver = Receiver(self.dispatcher, self._context, "", None)
        self.dispatcher.join(receiver)
        self.dispatcher.move(*position)
        reader = ConsumerArrow(receiver, self)
        self._reader = weakref.ref(reader)
        return reader

    def abandon(self) -> None:
        """In a forked child: refuse further calls."""
        reader = self._reader() if self._reader is not None else None
        if reader is not None:
            reader.abandon()

    def seek(self, position: Position) -> None:
        self.dispatcher.move(*position)
        self.topic.ledger.tail.wake()

    def deadline(self, timeout_millis: int | None) -> Deadline:
        """How long a caller waits is real time, whatever clock the broker has."""
        return Deadline(timeout_millis)

    def log_damage(self, damage: Exception) -> None:
        import logging

        logging.getLogger("pulsarx").error(
            "%s: damage was passed over by a reader: %s", self.topic.name, damage
        )
