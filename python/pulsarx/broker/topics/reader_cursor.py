"""The position of a Reader: not durable, holds no ledger, acknowledges nothing."""

from __future__ import annotations

import weakref

from pulsarx._pycore.consume.consumer_core import ConsumerCore
from pulsarx._pycore.consume.consumer_host import ConsumerHost
from pulsarx._pycore.dispatch.compacted_dispatcher import CompactedDispatcher
from pulsarx._pycore.dispatch.receiver import Receiver
from pulsarx._pycore.dispatch.single_active_dispatcher import SingleActiveDispatcher
from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
from pulsarx._pycore.message.entry_view import EntryContext
from pulsarx._pycore.message.message_filter import MessageFilter
from pulsarx.broker.ledgers.compacted_view import CompactedView
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.compression import decompress
from pulsarx.schema.writer_schemas import WriterSchemas

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.faces import TopicView
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position


class ReaderCursor:
    """The position of a reader on a topic. Any thread may call."""

    def __init__(
        self,
        topic: TopicView,
        schema: object,
        read_compacted: bool = False,
        decryption: object = None,
        selector: str = "",
    ) -> None:
        """decryption: see SubscribeRequest. selector: which messages it reads; empty: all."""
        self.topic = topic
        # Where ids and times are, for the reader.
        self.positions: LedgerList | CompactedView = topic.ledger
        self.shown_name = ""  # in statistics; made with the first
        self._reader: weakref.ref[ConsumerCore] | None = None
        self._ended = False
        self._context = EntryContext(
            topic.name, schema, topic.tail, decompress, WriterSchemas(topic), decryption
        )
        core, limit = SubscriptionCore(None, None), topic.decompressed_size_max
        if selector:
            core.set_filter(MessageFilter(selector))
        self.dispatcher: SingleActiveDispatcher
        if read_compacted:
            self.positions = CompactedView(topic.ledger)
            self.dispatcher = CompactedDispatcher(
                core, topic.tail, topic.name, limit, True, -1, topic.ledger
            )
        else:
            self.dispatcher = SingleActiveDispatcher(core, topic.tail, topic.name, limit, True)

    def attach(self, position: Position, queue_size: int = 1000) -> ConsumerCore:
        """Begin to read at a position. TopicGone: the topic was deleted meanwhile. queue_size: of
        the reader, which reads the ledgers and needs no queue."""
        try:
            receiver = Receiver(self.dispatcher, self._context, "", None)
            self.dispatcher.join(receiver)
            self.dispatcher.move(*position)
            reader = ConsumerCore(receiver, ConsumerHost(self.topic.ledger))
        except BaseException:
            self._ended = True  # an error that is kept keeps this, too
            raise
        self._reader = weakref.ref(reader)
        if self._ended:
            raise TopicGone(detail=f"{self.topic.name}: it was deleted")
        return reader

    @property
    def is_attached(self) -> bool:
        """Whether a reader is there and open, or is just being made."""
        if self._reader is None:
            return not self._ended
        reader = self._reader()
        return reader is not None and reader.is_open

    def end(self) -> None:
        """Close the reader, or that its topic is deleted or closed; let go of what is mapped."""
        self._ended = True
        reader = self._reader() if self._reader is not None else None
        if reader is not None:
            reader.shut()
        self.dispatcher.release()

    def abandon(self) -> None:
        """In a forked child: refuse further calls."""
        reader = self._reader() if self._reader is not None else None
        if reader is not None:
            reader.abandon()

    def statistics(self, ledger: LedgerList, now_ms: int) -> dict[str, Any]:
        """Statistics like those of a subscription, which a reader has in Pulsar."""
        from pulsarx.broker.subscriptions.backlog import (
            backlog_extent,
            counts_behind,
            mark_delete_position,
        )

        position, consumers = self.dispatcher.reader_statistics()
        core = self.dispatcher.core
        entries, messages = counts_behind(position, ledger)
        accepted, rejected = core.filter_statistics()
        return {
            "type": "Exclusive",
            "is_durable": False,
            "msg_backlog": messages,
            "backlog_entries": entries,
            "mark_delete_position": mark_delete_position(position, ledger),
            **backlog_extent(position, ledger, now_ms),
            "consumers": consumers,
            "unacked_messages": 0,
            "msg_out_counter": core.given_messages,
            "bytes_out_counter": core.given_size,
            "subscription_properties": {},
            "filter_accepted_msg_count": accepted,
            "filter_rejected_msg_count": rejected,
        }

    def seek(self, position: Position) -> None:
        self.dispatcher.move(*position)
        self.topic.tail.wake()
