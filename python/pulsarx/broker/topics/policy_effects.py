"""The effects of the policies in force on an open topic: on its producers, subscriptions and
readers."""

from __future__ import annotations

from contextlib import suppress

from pulsarx import errors
from pulsarx.broker.topics.deduplication import Deduplication, forget_snapshot, snapshot_path
from pulsarx.broker.topics.rate_limits import RateLimits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
    from pulsarx._pycore.ground.locks import RLock
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.policies.message_policies import MessagePolicies
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.backlog_limits import BacklogLimits
    from pulsarx.broker.topics.producer_registry import ProducerRegistry
    from pulsarx.topic_name import TopicName

    class PolicyHost(Protocol):
        """The topic on which policies take effect."""

        name: str
        topic_name: TopicName
        lock: RLock
        runtime: BrokerRuntime
        producers: ProducerRegistry

        @property
        def is_gone(self) -> bool: ...
        @property
        def tail(self) -> LedgerTail: ...

    class KeptPolicyHost(PolicyHost, Protocol):
        """The same, of a topic that keeps messages."""

        topic_id: int
        ledger: ManagedLedger
        deduplication: Any
        parts: dict[str, Any]  # by name, those that were asked for

        @property
        def backlog_limits(self) -> BacklogLimits: ...
        def all_subscriptions(self) -> list[Any]: ...
        def readers(self) -> list[Any]: ...
        def trim(self) -> object:
            """Remove ledgers that are not needed any more."""

        def trim_soon(self) -> None:
            """The same in the background."""


class PolicyEffects:
    """The effects on any topic: its publish rate. Dispatch of non-persistent messages is never
    limited: there is nothing that could wait. As in Pulsar. Calls of the control plane."""

    __slots__ = ("_rate_limits", "_topic", "policies")
    _topic: PolicyHost

    def __init__(self, topic: PolicyHost, policies: MessagePolicies) -> None:
        self._topic = topic
        self.policies: MessagePolicies = policies  # as they are in force
        self._rate_limits: RateLimits | None = None  # made with the first rate
        if policies.rates is not None:
            self._use_rates()

    def _use_rates(self) -> None:
        """Have the rates of the policies be in force, but for those that are there already."""
        rates = self.policies.rates
        if self._rate_limits is None and rates is not None:
            topic = self._topic
            self._rate_limits = RateLimits(topic.name, topic.runtime, topic.tail)
        if self._rate_limits is not None:
            self._rate_limits.use(rates)

    @property
    def publish_limited_times(self) -> int:
        """How often a send waited for the publish rate."""
        return 0 if self._rate_limits is None else self._rate_limits.publish_limited_times

    def instruct(self, producer: Any) -> None:
        """Tell a producer what the policies want of it."""
        if self._rate_limits is not None:
            self._rate_limits.limit_producer(producer)

    def apply(self) -> None:
        """Have what was set be in force, for the producers and consumers that are there too."""
        topic = self._topic
        with topic.lock:
            if topic.is_gone:
                return
            self.policies = topic.runtime.policies.of_topic(topic.topic_name).messages
            self._use_rates()
            self._tell_consumers()
        with topic.producers.unchanged() as producers:
            for producer in producers.values():
                self.instruct(producer)

    def _tell_consumers(self) -> None:
        """The consumers of a non-persistent topic are told nothing. The topic's lock is held."""


class KeptPolicyEffects(PolicyEffects):
    """The effects on a topic that keeps messages: dispatch rates, expiry, backlog quotas and
    deduplication, too. Calls of the control plane, and jobs of the background."""

    __slots__ = ()
    _topic: KeptPolicyHost

    def limit_dispatch(self, core: SubscriptionCore) -> None:
        """Have the dispatch rates hold for a subscription or reader."""
        if self._rate_limits is not None:
            self._rate_limits.limit_dispatch(core)

    def admit_consumer(self, request: SubscribeRequest) -> None:
        """NotAllowedError: the consumer subscribed as often in this period as it may."""
        if self._rate_limits is not None:
            self._rate_limits.admit_consumer(request)

    def admit_subscription(self, made: Subscription) -> None:
        """Have them hold for a subscription that nobody knows yet."""
        if self.policies.ttl_seconds:
            made.use_policies(self.policies)
        self.limit_dispatch(made.core)

    def instruct(self, producer: Any) -> None:
        producer.limit_delay(self.policies.delayed_delivery.delay_max_ms)
        limits = self._topic.parts.get("backlog_limits")
        if limits is not None:
            limits.admit(producer)
        super().instruct(producer)

    def apply(self) -> None:
        super().apply()
        if not self._topic.is_gone:
            self.expire()
            self.check_backlog()
            self._topic.trim()

    def _tell_consumers(self) -> None:
        for subscription in self._topic.all_subscriptions():
            subscription.use_policies(self.policies)
            self.limit_dispatch(subscription.core)
        for reader in self._topic.readers():
            self.limit_dispatch(reader.dispatcher.core)
        self._topic.tail.wake()  # who waits for a dispatch rate

    # Expiry and backlog ---------------------------------------------------------------------------

    def expire(self) -> None:
        """Acknowledge what is older than the messages of the topic may become, up to the first one
        that is not."""
        seconds = self.policies.ttl_seconds
        if not seconds:
            return
        before_ms = self._topic.runtime.clock.now_ms() - seconds * 1000
        moved = False
        for subscription in self._topic.all_subscriptions():
            with suppress(errors.SubscriptionNotFound, errors.AlreadyClosed):  # deleted meanwhile
                moved = subscription.expire(before_ms) or moved
        if moved:
            self._topic.trim_soon()

    @property
    def held_by(self) -> str | None:
        """Why a backlog quota holds the producers; None: none does."""
        limits = self._topic.parts.get("backlog_limits")
        found: str | None = None if limits is None else limits.held_by
        return found

    def check_room(self) -> None:
        """ProducerBlockedQuotaExceededError and ...Exception: the backlog is larger than its
        quota."""
        if self.policies.quotas:
            self._topic.backlog_limits.check_may_publish(self.policies.quotas)
            if self.held_by is not None:  # there is room by now
                self.check_backlog()

    def check_backlog(self) -> None:
        """Do what the backlog quotas say."""
        quotas = self.policies.quotas
        if not quotas and self.held_by is None:
            return
        with suppress(errors.SubscriptionNotFound, errors.AlreadyClosed):  # deleted meanwhile
            if self._topic.backlog_limits.check(quotas, self._topic.producers):
                self._topic.trim_soon()

    # Deduplication --------------------------------------------------------------------------------

    def begin_deduplication(self, wanted: bool) -> None:
        """The topic is just being opened."""
        topic = self._topic
        if wanted:
            topic.deduplication = self._deduplication()
        elif topic.runtime.keeps_sequences is not False:
            path = snapshot_path(topic.runtime, topic.topic_id)
            if path is not None:
                forget_snapshot(path, topic.runtime)

    def apply_deduplication(self) -> None:
        """Apply the policy of deduplication."""
        topic = self._topic
        with topic.producers.unchanged() as producers:
            if topic.is_gone:
                return
            wanted = topic.runtime.policies.of_topic(topic.topic_name).deduplication
            if wanted == (topic.deduplication is not None):
                return
            if not wanted:
                assert topic.deduplication is not None
                for producer in producers.values():
                    producer.deduplicate(None)
                topic.deduplication.forget()
                topic.deduplication = None
                return
            made = self._deduplication()
            for name, producer in producers.items():
                producer.deduplicate(made.of(name), made.catch_up)
            topic.deduplication = made

    def _deduplication(self) -> Deduplication:
        topic = self._topic
        return Deduplication(
            topic.runtime, topic.name, topic.topic_id, topic.ledger, topic.producers
        )
