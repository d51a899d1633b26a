"""The rates in force on one open topic: the limits that its producers and its subscriptions share,
and those of each. What is over a limit waits where it is asked for; nothing here runs by itself."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.dispatch.dispatch_throttle import DispatchThrottle
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.rate_limit import PublishMeter, RateLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx.broker.policies.rates import Rate, TopicRates
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest


class RateLimits:
    """Calls of the control plane; the limits themselves any thread may ask."""

    def __init__(self, topic: str, runtime: BrokerRuntime, tail: LedgerTail) -> None:
        self._topic = topic
        self._runtime = runtime
        self._tail = tail
        self._publish: RateLimit | None = None
        self._dispatch: RateLimit | None = None
        self._meter: PublishMeter | None = None
        self._rates: TopicRates | None = None
        self._publish_waits = 0  # of limits that are gone
        self._lock = Lock()  # of what follows
        self._subscribed: dict[str, int] = {}  # how often, by the name of the consumer
        self._period_ends_ms = 0

    def use(self, rates: TopicRates | None) -> None:
        """Have these rates be in force. `limit_producer` and `limit_dispatch` tell those that are
        there already."""
        self._rates = rates
        is_relative = rates is not None and rates.is_relative
        self._meter = (self._meter or PublishMeter(self._runtime.clock)) if is_relative else None
        if self._publish is not None and (rates is None or rates.publish is None):
            self._publish_waits += self._publish.limited_times
        self._publish = self._limit(self._publish, None if rates is None else rates.publish)
        self._dispatch = self._limit(self._dispatch, None if rates is None else rates.dispatch)

    def _limit(self, limit: RateLimit | None, rate: Rate | None) -> RateLimit | None:
        """The limit there is, or a new one, of this rate."""
        if rate is None:
            return None
        if limit is None:
            limit = RateLimit(self._runtime.clock)
        limit.limit(
            rate.messages, rate.size, rate.period_ms, self._meter if rate.is_relative else None
        )
        return limit

    def limit_producer(self, producer: Any) -> None:
        producer.limit_rate(self._publish, self._meter)

    def limit_dispatch(self, core: SubscriptionCore) -> None:
        """How fast a subscription or reader is given messages. Its waiting consumers look again
        when the topic's tail is woken."""
        own = None if self._rates is None else self._rates.subscription_dispatch
        core.limit_dispatch(
            self._dispatch,
            self._limit(core.dispatch_limit(), own),
            partial(self._throttle, self._runtime.options),
        )

    def _throttle(self, options: Any) -> DispatchThrottle:
        return DispatchThrottle(
            self._runtime.clock,
            self._tail,
            options.dispatch_throttling_on_batch_message_enabled,
            not options.dispatch_throttling_on_non_backlog_consumer_enabled,
        )

    def admit_consumer(self, request: SubscribeRequest) -> None:
        """NotAllowedError: the consumer subscribed as often in this period as it may."""
        rate = None if self._rates is None else self._rates.subscribe
        if rate is None:
            return
        name = request.consumer_name
        with self._lock:
            now_ms = self._runtime.clock.now_ms()
            left_ms = self._period_ends_ms - now_ms
            if not 0 < left_ms <= rate.period_ms:
                self._subscribed.clear()
                self._period_ends_ms = now_ms + rate.period_ms
            count = self._subscribed.get(name, 0)
            if count >= rate.per_consumer:
                raise errors.NotAllowedError(
                    detail=f"subscribe to {self._topic}: consumer {name} did so {count} times in "
                    f"{rate.period_ms // 1000} s, which is the subscribe rate; it may again in "
                    f"{self._period_ends_ms - now_ms} ms"
                )
            self._subscribed[name] = count + 1

    @property
    def publish_limited_times(self) -> int:
        """How often a send waited."""
        now = 0 if self._publish is None else self._publish.limited_times
        return self._publish_waits + now
