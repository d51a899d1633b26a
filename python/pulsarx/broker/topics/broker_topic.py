"""The common part of the topics of an owned folder, whether they keep messages or not."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import RLock
from pulsarx.broker.policies.creation import check_subscription_type
from pulsarx.broker.topics.counted_rates import TopicRates
from pulsarx.broker.topics.producer_registry import ProducerRegistry
from pulsarx.broker.topics.subscription_limits import check_consumer_limit
from pulsarx.broker.topics.topic_gone import TopicGone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx.broker.policies.limits import TopicLimits
    from pulsarx.broker.policies.policy_store import TopicPolicies
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.policy_effects import PolicyEffects
    from pulsarx.topic_name import TopicName

_NOBODY: frozenset[object] = frozenset()


class BrokerTopic:
    """Names a topic, and knows its producers, the policies in force and whether it has gone. Its
    lock orders who attaches. Calls of the control plane; hot calls do not come here."""

    __slots__ = (
        "_is_gone",
        "decompressed_size_max",
        "effects",
        "last_active_ms",
        "ledger",
        "lock",
        "name",
        "producers",
        "rates",
        "runtime",
        "topic_id",
        "topic_name",
        "watches",
    )
    effects: PolicyEffects
    ledger: Any

    def __init__(
        self,
        runtime: BrokerRuntime,
        name: TopicName,
        topic_id: int,
        last_active_ms: int | None,
        policies: TopicPolicies,
    ) -> None:
        """last_active_ms: when it was used last; None: now."""
        self.runtime: BrokerRuntime = runtime
        now_ms = runtime.clock.now_ms()
        self.last_active_ms: int = now_ms if last_active_ms is None else last_active_ms
        self.topic_name: TopicName = name
        self.name: str = name.full
        self.topic_id: int = topic_id
        self.lock: RLock = RLock()
        self.decompressed_size_max: int = runtime.decompressed_size_max
        self._is_gone = False
        self.watches: frozenset[object] = _NOBODY  # of other processes that read it
        self.rates: TopicRates = TopicRates(runtime.clock, self.lock)
        self.producers: ProducerRegistry = ProducerRegistry(
            name, runtime, policies, keeps_epoch=name.persistent
        )

    @property
    def is_gone(self) -> bool:
        """Whether it was deleted, or unloaded: what has its name by now is another object."""
        return self._is_gone

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
        """See SchemaRegistry."""
        return self.runtime.schemas

    def touch(self) -> None:
        """It is used now."""
        self.last_active_ms = self.runtime.clock.now_ms()

    def is_idle(self) -> bool:
        """Whether it has no producer, and no consumer but for those that read any schema."""
        with self.lock:
            self.check_not_gone()
            return not (
                self.producers.open_producers()
                or any(each.has_typed_consumer() for each in self.all_subscriptions())
            )

    # Who is attached ------------------------------------------------------------------------------

    def all_subscriptions(self) -> Sequence[Subscription]:
        """The subscriptions that are there, durable or not."""
        raise NotImplementedError

    def readers(self) -> list[Any]:
        """The readers that are attached."""
        raise NotImplementedError

    def consumer_count(self) -> int:
        """Consumers that are attached to any subscription, without readers."""
        for each in self.all_subscriptions():
            each.detach_forgotten()
        return sum(len(each.consumers()) for each in self.all_subscriptions())

    def check_consumer(self, request: SubscribeRequest) -> None:
        """NotAllowedError: policies forbid its type, or it is one too many. ConsumerBusy."""
        check_subscription_type(self.runtime, self.topic_name, request.type_name)
        check_consumer_limit(self.limits, self.name, self.consumer_count)

    @property
    def limits(self) -> TopicLimits:
        """How many may attach, as policies say now."""
        return self.runtime.policies.of_topic(self.topic_name).messages.limits

    def instruct(self, producer: Any) -> None:
        """Tell a producer what the policies want of it."""
        self.effects.instruct(producer)

    def producer_left(self, name: str, producer: Any) -> None:
        """Its name is free again."""
        self.producers.remove(name, producer)
        self.touch()

    # Statistics -----------------------------------------------------------------------------------

    @property
    def epoch(self) -> int | None:
        return self.producers.epoch

    @property
    def publish_rate_limited_times(self) -> int:
        """How often a send waited for the publish rate."""
        return self.effects.publish_limited_times

    # Life -----------------------------------------------------------------------------------------

    def close_to_newcomers(self, force: bool) -> None:
        """Nobody attaches any more: it is about to be deleted. The lock is held.

        NotAllowedError: producers, consumers or readers are attached, and it is not forced.
        """
        self.producers.close_to_newcomers(force, self.consumer_count(), len(self.readers()))
        self._is_gone = True

    def open_to_newcomers(self) -> None:
        """It was not deleted after all. The lock is held."""
        self._is_gone = False
        self.producers.open_to_newcomers()

    def abandon(self) -> None:
        """In a forked child: refuse further calls, touch nothing."""
        self.producers.abandon()
        for subscription in self.all_subscriptions():
            subscription.abandon()
