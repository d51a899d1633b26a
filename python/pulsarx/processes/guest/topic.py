"""A topic of a folder that another process owns: it is read here, and the rest done there."""

from __future__ import annotations

from functools import partial

from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ledger.ledger_tail import LedgerTail
from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
from pulsarx.ground.attempt import attempt
from pulsarx.processes.guest.producers import GuestProducers
from pulsarx.processes.guest.subscription import subscribe_there
from pulsarx.processes.guest.topic_news import TopicNews

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.ground.weak_list import WeakList
    from pulsarx._pycore.publish.entry_publisher import EntryPublisher
    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.topics.reader_cursor import ReaderCursor
    from pulsarx.processes.guest.host import GuestHost
    from pulsarx.processes.guest.owner_connection import GuestConnection
    from pulsarx.processes.guest.subscription import GuestSubscription


_LOOK_MS = 5000  # whether readers are still there


class GuestTopic(ReadOnlyTopic):
    """A topic as far as producers, consumers and readers need it. Any thread may call."""

    keeps_messages = True
    deduplication = None  # the owner's

    def __init__(self, broker: GuestHost, record: TopicRecord) -> None:
        super().__init__(broker, record)
        self.host = broker
        self.runtime: Any = broker  # what topics share
        self.clock: Any = broker.clock
        self.topic_id: int = record.topic_id
        self.consumer_tail: Any = LedgerTail(self.ledger, self.ledger.partition)
        self.lock: RLock = RLock()
        self.members: WeakList = broker.members
        self.producers: GuestProducers = GuestProducers(self)
        self._news: TopicNews | None = None  # while there are readers

    @property
    def connection(self) -> GuestConnection:
        """To the owner. See GuestBroker."""
        return self.host.connection

    def is_idle(self) -> bool:
        """Whether the owner's topic is idle: producers and consumers of all processes count."""
        return bool(self.host.ask_verb("guest.is_idle", topic=self.name))

    def require_kept(self, _: str) -> GuestTopic:
        """This topic, since it keeps what is published."""
        return self

    def reader_cursor(
        self,
        schema: object,
        read_compacted: bool = False,
        decryption: object = None,
        selector: str = "",
    ) -> ReaderCursor:
        with self.lock:
            if self._news is None:
                self._news = TopicNews(self.host, self.name, self.tail)
                self._look_later()
            return super().reader_cursor(schema, read_compacted, decryption, selector)

    def _look_later(self) -> None:
        self.host.clock.call_after(_LOOK_MS, partial(self.host.post, self._look))

    def _look(self) -> None:
        """Have the owner know that nobody here reads it any more. A job."""
        if not self.host.state.is_open:
            return
        with self.lock:
            if any(each.is_attached for each in self._reader_cursors.members()):
                self._look_later()
                return
            news, self._news = self._news, None
        if news is not None:
            attempt(news.leave)  # the next owner does not know of it

    # Producers ------------------------------------------------------------------------------------

    def check_may_publish(self) -> None:
        """The owner says it when a producer comes."""

    def publisher(self, send_timeout_ms: int, name: str) -> EntryPublisher:
        """The publisher of the producer that the owner has just taken by this name."""
        return self.producers.coming(name).publish_with(send_timeout_ms)

    def instruct(self, producer: Any) -> None:
        """A producer is made. What policies want of it the owner sees to."""
        self.producers.coming(producer.producer_name()).made(producer)

    def hold_chunks(self) -> None:
        """The owner notes it with the first chunk."""

    def producer_left(self, name: str, producer: Any) -> None:
        self.producers.remove(name, producer)

    def touch(self) -> None:
        """The owner notes when it is used."""

    # Consumers ------------------------------------------------------------------------------------

    def subscribe(self, request: Any, make: Any) -> Any:
        """Attach a consumer to a subscription, which the owner makes when it does not exist."""
        return subscribe_there(self, request, make)

    def bring(self, subscription: GuestSubscription) -> None:
        """Have it resume at the owner there is now."""
        self.host.bring(subscription)

    def unserved(self) -> str:
        """See GuestHost."""
        return self.host.unserved()

    def take_back(self, subscription: GuestSubscription) -> None:
        """Delete a subscription whose first consumer was refused, unless another uses it."""
        subscription.take_back()
