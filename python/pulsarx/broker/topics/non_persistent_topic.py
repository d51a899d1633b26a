"""A non-persistent topic of a broker: its producers and its subscriptions. Nothing of it is on
disk; one without partitions is not in the catalogue either."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.message.entry_target import EntryFanOut
from pulsarx._pycore.publish.non_persistent_publisher import NonPersistentPublisher
from pulsarx.broker.ledgers.no_ledgers import NoLedgers
from pulsarx.broker.topics.broker_topic import BrokerTopic
from pulsarx.broker.topics.policy_effects import PolicyEffects
from pulsarx.broker.topics.subscription_limits import check_subscription_limit
from pulsarx.compression import decompress
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx._pycore.publish.entry_publisher import EntryPublisher
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.non_persistent_subscription import NonPersistentSubscription
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.subscriptions.subscription import MakeConsumer, Subscription
    from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader
    from pulsarx.topic_name import TopicName


class NonPersistentTopic(BrokerTopic):
    """Attaches producers and consumers; its lock orders that. Calls of the control plane; hot calls
    do not come here."""

    keeps_messages = False
    is_partitioned = False
    deduplication = None
    deduplication_status = "Disabled"
    compaction_failed_ms = offload_failed_ms = 0
    held_by_leases: tuple[int, int] = (0, 0)

    def __init__(
        self,
        runtime: BrokerRuntime,
        name: TopicName,
        topic_id: int = 0,
        last_active_ms: int | None = None,
    ) -> None:
        """topic_id: of the catalogue, which knows partitions; 0: it does not know the topic.
        last_active_ms: when it was used last; None: now."""
        policies = runtime.policies.of_topic(name)
        super().__init__(runtime, name, topic_id, last_active_ms, policies)
        self.ledger: Any = NoLedgers(self.name, topic_id, name.partition_index)
        self.subscriptions: dict[str, Subscription] = {}  # durable ones: none
        self._attached: dict[str, NonPersistentSubscription] = {}
        self._fan_out = EntryFanOut(self.ledger.tail)
        self._readers = WeakList()
        self.effects: PolicyEffects = PolicyEffects(self, policies.messages)

    @property
    def is_in_catalogue(self) -> bool:
        """Whether it is there after a restart."""
        return self.topic_id != 0

    def require_kept(self, action: str) -> NoReturn:
        """OperationNotSupported: it keeps nothing."""
        self.ledger.refuse(action)
        raise AssertionError

    # Publishing -----------------------------------------------------------------------------------

    def check_may_publish(self) -> None:
        """It is never terminated, and has no backlog."""
        self.touch()

    def publisher(self, send_timeout_ms: int = 0, name: str = "") -> EntryPublisher:
        """The publisher of a producer. No send waits, so none times out."""
        return self.publisher_for(self.runtime.completions)

    def publisher_for(self, completions: CompletionQueue) -> EntryPublisher:
        """See Topic."""
        return NonPersistentPublisher(
            self._fan_out, completions, decompress, self.decompressed_size_max
        )

    def hold_chunks(self) -> NoReturn:
        """OperationNotSupported: messages in chunks are put together from what is kept."""
        self.ledger.refuse("publish messages in chunks")
        raise AssertionError

    # Subscriptions --------------------------------------------------------------------------------

    def subscribe(self, request: SubscribeRequest, make: MakeConsumer) -> ConsumerCore:
        """Attach a consumer to a subscription, which is made when it does not exist and goes with
        its last consumer, durable or not."""
        self._check_not_compacted(request.read_compacted)
        with self.lock:
            self.check_consumer(request)
            if request.subscription_name not in self._attached:
                count = len(self._attached) - len(self.readers())
                name = request.subscription_name
                check_subscription_limit(self.limits, self.name, name, count)
            return self.attach(request, make)

    def attach(self, request: SubscribeRequest, make: MakeConsumer) -> ConsumerCore:
        """Subscribe whatever the limits are."""
        with self.lock:
            self.runtime.state.require_open()  # else this consumer would never be closed
            self.check_not_gone()
            self.touch()
            for each in list(self._attached.values()):
                each.detach_forgotten()
            subscription = self._attached.get(request.subscription_name)
            if subscription is None:
                subscription = self._create(request.subscription_name)
            try:
                consumer = subscription.attach(request, make)
            except BaseException:
                subscription.dispatcher.settled()
                if not subscription.consumers():
                    self.drop_non_durable(subscription)
                raise
        subscription.dispatcher.settled()
        return consumer

    def attach_reader(self, request: SubscribeRequest, make: MakeConsumer) -> Any:
        """Like `attach`, for a reader in another process; its consumer says whether it
        is_attached."""
        with self.lock:
            made = self.attach(request, make)
            self._readers.add(made)
        return made

    def _check_not_compacted(self, read_compacted: bool) -> None:
        if read_compacted:
            from pulsarx.broker.topics.non_persistent_reader import refuse_compacted

            refuse_compacted(self.name)

    def _create(self, name: str) -> NonPersistentSubscription:
        from pulsarx.broker.subscriptions.non_persistent_subscription import (
            NonPersistentSubscription,
        )

        made = self._attached[name] = NonPersistentSubscription(self, name)
        self._fan_out.add(made.target)
        return made

    def drop_non_durable(self, subscription: NonPersistentSubscription) -> None:
        """Its last consumer has left."""
        with self.lock:
            if self._attached.get(subscription.name) is subscription:
                self._fan_out.remove(subscription.target)
                del self._attached[subscription.name]
                subscription.remove()

    def take_back(self, subscription: Subscription) -> None:
        """It went with its consumer."""

    def unsubscribe(self, name: str) -> NoReturn:
        """It has no durable subscriptions."""
        raise errors.missing_subscription(name, self.name)

    def all_subscriptions(self) -> list[NonPersistentSubscription]:
        return list(self._attached.values())

    def reader_cursor(
        self,
        schema: object,
        read_compacted: bool = False,
        decryption: object = None,
        selector: str = "",
    ) -> NonPersistentReader:
        """NotAllowedError: it is to read what compaction left."""
        from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader

        self._check_not_compacted(read_compacted)
        made = NonPersistentReader(self, schema, decryption, selector)
        with self.lock:
            self.check_not_gone()
            self._readers.add(made)
        return made

    # What there is no such thing as here ----------------------------------------------------------

    def trim(self) -> list[int]:
        return []

    def trim_soon(self) -> None:
        """Nothing is kept."""

    def truncate(self) -> None:
        self.ledger.refuse("truncate")

    def offload_status(self) -> NoReturn:
        self.ledger.refuse("compact")
        raise AssertionError

    def compaction_status(self) -> NoReturn:
        self.ledger.refuse("compact")
        raise AssertionError

    # Statistics -----------------------------------------------------------------------------------

    def published_since_opened(self) -> tuple[int, int]:
        """Messages, and bytes of their entries."""
        return self._fan_out.message_count, self._fan_out.size

    def publisher_statistics(self) -> list[dict[str, Any]]:
        """msg_drop_count: how often a message of the producer was dropped by a subscription;
        msg_drop_rate: a second, in the last minute."""
        now_ms = self.runtime.clock.now_ms()
        found: dict[str, Any] = {
            name: each.publisher.drops for name, each in self.producers.by_name().items()
        }
        return [
            {
                **each,
                "msg_drop_count": found[each["producer_name"]].total,
                "msg_drop_rate": found[each["producer_name"]].per_second(now_ms),
            }
            for each in self.producers.statistics()
            if each["producer_name"] in found
        ]

    def reader_statistics(self) -> dict[str, dict[str, Any]]:
        """They have subscriptions."""
        return {}

    def subscription_statistics(self) -> dict[str, dict[str, Any]]:
        with self.lock:
            for each in self.all_subscriptions():
                each.detach_forgotten()
            return {each.name: each.statistics() for each in self.all_subscriptions()}

    # Readers --------------------------------------------------------------------------------------

    def readers(self) -> list[Any]:
        """The readers that are attached."""
        return [each for each in self._readers.members() if each.is_attached]

    def consumer_count(self) -> int:
        """Readers have subscriptions here."""
        return super().consumer_count() - len(self.readers())

    # Life -----------------------------------------------------------------------------------------

    def end(self) -> bool:
        """It is deleted: close what is attached."""
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers.end():
            attempt(producer.shut)
        with self.lock:
            for each in self.all_subscriptions():
                self.drop_non_durable(each)
        return True

    def rest(self) -> None:
        """Nothing is to be written down."""

    def close(self) -> None:
        """Send open batches, close what is attached."""
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers.open_producers():
            producer.shut()
        with self.lock:
            for subscription in self.all_subscriptions():
                subscription.close()
