"""A non-persistent topic of a broker: its producers and its subscriptions. Nothing of it is on
disk; one without partitions is not in the catalogue either."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.message.entry_target import EntryFanOut
from pulsarx._pycore.publish.non_persistent_publisher import NonPersistentPublisher
from pulsarx.broker.ledgers.no_ledgers import NoLedgers
from pulsarx.broker.policies.creation import check_subscription_type
from pulsarx.broker.topics.counted_rates import TopicRates
from pulsarx.broker.topics.producer_registry import ProducerRegistry
from pulsarx.broker.topics.rate_limits import RateLimits
from pulsarx.broker.topics.subscription_limits import (
    check_consumer_limit,
    check_subscription_limit,
)
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.compression import decompress
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx._pycore.publish.entry_publisher import EntryPublisher
    from pulsarx.broker.policies.limits import TopicLimits
    from pulsarx.broker.policies.message_policies import InactiveTopics
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.subscriptions.non_persistent_subscription import NonPersistentSubscription
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.subscriptions.subscription import MakeConsumer, Subscription
    from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader
    from pulsarx.topic_name import TopicName


class NonPersistentTopic:
    """Attaches producers and consumers; its lock orders that. Calls of the control plane; hot calls
    do not come here."""

    keeps_messages = False
    is_partitioned = False
    deduplication = None
    deduplication_status = "Disabled"
    compaction_failed_ms = offload_failed_ms = 0
    held_by_leases = (0, 0)

    def __init__(
        self,
        runtime: BrokerRuntime,
        name: TopicName,
        topic_id: int = 0,
        last_active_ms: int | None = None,
    ) -> None:
        """topic_id: of the catalogue, which knows partitions; 0: it does not know the topic.
        last_active_ms: when it was used last; None: now."""
        self.runtime = runtime
        now_ms = runtime.clock.now_ms()
        self.last_active_ms = now_ms if last_active_ms is None else last_active_ms
        self.topic_name = name
        self.name = name.full
        self.topic_id = topic_id
        self.lock = RLock()
        self.decompressed_size_max = runtime.decompressed_size_max
        self.ledger: Any = NoLedgers(self.name, topic_id, name.partition_index)
        policies = runtime.policies.of_topic(self.name)
        self.producers = ProducerRegistry(self.name, runtime, policies, keeps_epoch=False)
        self.subscriptions: dict[str, Subscription] = {}  # durable ones: none
        self._attached: dict[str, NonPersistentSubscription] = {}
        self._fan_out = EntryFanOut(self.ledger.tail)
        self._readers = WeakList()
        self._is_gone = False
        self.rates = TopicRates(runtime.clock, self.lock)
        self._rate_limits: RateLimits | None = None  # made with the first rate
        self._use_rates()

    @property
    def is_gone(self) -> bool:
        """See Topic."""
        return self._is_gone

    @property
    def is_in_catalogue(self) -> bool:
        """Whether it is there after a restart."""
        return self.topic_id != 0

    def require_kept(self, action: str) -> NoReturn:
        """OperationNotSupported: it keeps nothing."""
        self.ledger.refuse(action)
        raise AssertionError

    def check_not_gone(self) -> None:
        """TopicGone: it went since its caller found it."""
        if self._is_gone:
            raise TopicGone(detail=f"{self.name}: it was deleted")

    @property
    def tail(self) -> LedgerTail:
        tail: LedgerTail = self.ledger.tail
        return tail

    @property
    def schemas(self) -> SchemaRegistry:
        return self.runtime.schemas

    def is_idle(self) -> bool:
        """Whether it has no producer, and no consumer but for those that read any schema."""
        with self.lock:
            self.check_not_gone()
            return not (
                self.producers.open_producers()
                or any(each.has_typed_consumer() for each in self.all_subscriptions())
            )

    # Publishing -----------------------------------------------------------------------------------

    def check_may_publish(self) -> None:
        """It is never terminated, and has no backlog."""
        self.touch()

    def publisher(self, send_timeout_ms: int = 0, name: str = "") -> EntryPublisher:
        """What a producer publishes with. No send waits, so none times out."""
        return self.publisher_for(self.runtime.completions)

    def publisher_for(self, completions: CompletionQueue) -> EntryPublisher:
        """See Topic."""
        return NonPersistentPublisher(
            self._fan_out, completions, decompress, self.decompressed_size_max
        )

    def producer_left(self, name: str, producer: Any) -> None:
        """Its name is free again."""
        self.producers.remove(name, producer)
        self.touch()

    def _use_rates(self) -> None:
        """Have the publish rate be in force, for producers that come. Dispatch is never limited:
        there is nothing that could wait. As in Pulsar."""
        rates = self.runtime.policies.of_topic(self.name).messages.rates
        if self._rate_limits is None and rates is not None:
            self._rate_limits = RateLimits(self.name, self.runtime, self.ledger.tail)
        if self._rate_limits is not None:
            self._rate_limits.use(rates)

    def apply_policies(self) -> None:
        """Have what was set be in force, for the producers that are there too."""
        with self.lock:
            if self._is_gone:
                return
            self._use_rates()
        with self.producers.unchanged() as producers:
            for producer in producers.values():
                self.instruct(producer)

    def instruct(self, producer: Any) -> None:
        """Tell a producer what the policies want of it."""
        if self._rate_limits is not None:
            self._rate_limits.limit_producer(producer)

    @property
    def publish_rate_limited_times(self) -> int:
        """How often a send waited for the publish rate."""
        return 0 if self._rate_limits is None else self._rate_limits.publish_limited_times

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
            check_subscription_type(self.runtime, self.name, request.type_name)
            check_consumer_limit(self.limits, self.name, self.consumer_count)
            if request.subscription_name not in self._attached:
                count = len(self._attached) - len(self.readers())
                name = request.subscription_name
                check_subscription_limit(self.limits, self.name, name, count)
            return self.attach(request, make)

    @property
    def limits(self) -> TopicLimits:
        """How many may attach, as policies say now."""
        return self.runtime.policies.of_topic(self.name).messages.limits

    def attach(self, request: SubscribeRequest, make: MakeConsumer) -> ConsumerCore:
        """As subscribe, whatever the limits are."""
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
        """As attach, of a reader in another process; its consumer says whether it is_attached."""
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
        self, schema: object, read_compacted: bool = False, decryption: object = None
    ) -> NonPersistentReader:
        """NotAllowedError: it is to read what compaction left."""
        from pulsarx.broker.topics.non_persistent_reader import NonPersistentReader

        self._check_not_compacted(read_compacted)
        made = NonPersistentReader(self, schema, decryption)
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

    # Inactivity -----------------------------------------------------------------------------------

    def touch(self) -> None:
        """It is used now."""
        self.last_active_ms = self.runtime.clock.now_ms()

    def is_inactive(self, policy: InactiveTopics) -> bool:
        """Whether nobody has used it for as long as the policy says. The mode makes no difference:
        its subscriptions go with their consumers."""
        for each in self.all_subscriptions():
            each.detach_forgotten()
        if self.producers.is_used() or self._attached:
            self.touch()
            return False
        return self.runtime.clock.now_ms() - self.last_active_ms >= policy.seconds * 1000

    # Statistics -----------------------------------------------------------------------------------

    def published_since_opened(self) -> tuple[int, int]:
        """Messages, and bytes of their entries."""
        return self._fan_out.message_count, self._fan_out.size

    @property
    def epoch(self) -> int | None:
        return self.producers.epoch

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

    # Deleting -------------------------------------------------------------------------------------

    def readers(self) -> list[Any]:
        """Those that are attached."""
        return [each for each in self._readers.members() if each.is_attached]

    def consumer_count(self) -> int:
        """Consumers that are attached to any subscription, without readers."""
        for each in self.all_subscriptions():
            each.detach_forgotten()
        there = sum(len(each.consumers()) for each in self.all_subscriptions())
        return there - len(self.readers())

    def close_to_newcomers(self, force: bool) -> None:
        """See Topic."""
        self.producers.close_to_newcomers(force, self.consumer_count(), len(self.readers()))
        self._is_gone = True

    def open_to_newcomers(self) -> None:
        """See Topic."""
        self._is_gone = False
        self.producers.open_to_newcomers()

    def end(self) -> bool:
        """It is deleted: close what is attached."""
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers.end():
            attempt(producer.shut)
        with self.lock:
            for each in self.all_subscriptions():
                self.drop_non_durable(each)
        return True

    # Life -----------------------------------------------------------------------------------------

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

    def abandon(self) -> None:
        """In a forked child: refuse further calls, touch nothing."""
        self.producers.abandon()
        for subscription in self.all_subscriptions():
            subscription.abandon()
