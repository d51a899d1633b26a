"""A non-persistent topic of a folder that another process owns: what is published goes to the
owner, and what a consumer here is to get comes from it, or is dropped there."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import RLock
from pulsarx.broker.ledgers.no_ledgers import NoLedgers
from pulsarx.processes.guest.non_persistent_subscription import GuestNonPersistentSubscription
from pulsarx.processes.guest.producers import GuestProducers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.ground.weak_list import WeakList
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx._pycore.publish.entry_publisher import EntryPublisher
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader
    from pulsarx.processes.guest.host import GuestHost
    from pulsarx.processes.guest.owner_connection import GuestConnection
    from pulsarx.topic_name import TopicName


class GuestNonPersistentTopic:
    """A topic as far as producers, consumers and readers need it. Any thread may call."""

    keeps_messages = False
    is_partitioned = False
    deduplication = None  # the owner's

    def __init__(self, host: GuestHost, name: TopicName, topic_id: int) -> None:
        """topic_id: 0, where the catalogue does not know the topic."""
        self.host = host
        self.runtime: Any = host  # what topics share
        self.topic_name = name
        self.name: str = name.full
        self.clock: Any = host.clock
        self.topic_id = topic_id
        self.ledger: Any = NoLedgers(self.name, topic_id, name.partition_index)
        self.decompressed_size_max: int = host.decompressed_size_max
        self.lock: RLock = RLock()
        self.members: WeakList = host.members
        self.producers: GuestProducers = GuestProducers(self)

    @property
    def is_gone(self) -> bool:
        """Never gone here: whoever comes to it asks the owner, which makes it again."""
        return False

    @property
    def connection(self) -> GuestConnection:
        """To the owner. See GuestBroker."""
        return self.host.connection

    @property
    def tail(self) -> LedgerTail:
        tail: LedgerTail = self.ledger.tail
        return tail

    @property
    def schemas(self) -> SchemaRegistry:
        return self.host.schemas

    def is_idle(self) -> bool:
        """Whether the owner's topic is idle: producers and consumers of all processes count."""
        return bool(self.host.ask_verb("guest.is_idle", topic=self.name))

    def require_kept(self, action: str) -> NoReturn:
        """OperationNotSupported: it keeps nothing."""
        self.ledger.refuse(action)
        raise AssertionError

    # Producers ------------------------------------------------------------------------------------

    def check_may_publish(self) -> None:
        """The owner says it when a producer comes."""

    def publisher(self, send_timeout_ms: int, name: str) -> EntryPublisher:
        """The publisher of the producer that the owner has just taken by this name."""
        return self.producers.coming(name).publish_with(send_timeout_ms)

    def instruct(self, producer: Any) -> None:
        """A producer is made. What policies want of it the owner sees to."""
        self.producers.coming(producer.producer_name()).made(producer)

    def hold_chunks(self) -> NoReturn:
        """OperationNotSupported: messages in chunks are put together from what is kept."""
        self.ledger.refuse("publish messages in chunks")
        raise AssertionError

    def producer_left(self, name: str, producer: Any) -> None:
        self.producers.remove(name, producer)

    def touch(self) -> None:
        """The owner notes when it is used."""

    # Consumers ------------------------------------------------------------------------------------

    def subscribe(
        self, request: SubscribeRequest, make: Callable[[Any, Any], ConsumerCore]
    ) -> ConsumerCore:
        """Attach a consumer to a subscription, which the owner makes when it does not exist. A call
        of the control plane."""
        if request.read_compacted:
            self._refuse_compacted()
        return GuestNonPersistentSubscription(self, request).attach(request, make)

    def attach(
        self, request: SubscribeRequest, make: Callable[[Any, Any], ConsumerCore]
    ) -> ConsumerCore:
        """Attach a reader, for which no limits are."""
        subscription = GuestNonPersistentSubscription(self, request, is_reader=True)
        return subscription.attach(request, make)

    def reader_cursor(
        self,
        schema: object,
        read_compacted: bool = False,
        decryption: object = None,
        selector: str = "",
    ) -> NonPersistentReader:
        """NotAllowedError: it is to read what compaction left."""
        from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader

        if read_compacted:
            self._refuse_compacted()
        topic: Any = self
        return NonPersistentReader(topic, schema, decryption, selector)

    def _refuse_compacted(self) -> NoReturn:
        from pulsarx.broker.topics.non_persistent_reader import refuse_compacted

        refuse_compacted(self.name)

    def bring(self, subscription: GuestNonPersistentSubscription) -> None:
        """Have it resume at the owner there is now."""
        self.host.bring(subscription)

    def take_back(self, subscription: GuestNonPersistentSubscription) -> None:
        """It went with its consumer."""
