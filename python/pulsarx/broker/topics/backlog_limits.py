"""Keeps the backlog of one topic within its quotas: holds its producers, shuts them, or
acknowledges the oldest messages. Source: Pulsar's BacklogQuotaManager.

state      holds                                                  left by
WITHIN     producers publish                                      check, above a limit
HELD       who sends waits, and no producer can be created        check, within the limits again

It is checked at the interval of the options, after a change of policies, and each second while
producers are held. Evicting leaves it WITHIN, as does shutting: who publishes next is refused.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.policies.message_policies import (
    EVICTION,
    EXCEPTION,
    HOLD,
    is_exempt_subscription,
)
from pulsarx.broker.policies.quota_types import DESTINATION_STORAGE, MESSAGE_AGE
from pulsarx.broker.subscriptions.backlog import backlog_extent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
    from pulsarx.broker.policies.message_policies import BacklogQuota
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.producer_registry import ProducerRegistry

# Above a limit the backlog is brought down to this share of it. Source: BacklogQuotaManager.
_KEPT = 0.9
_NOWHERE = (1 << 63, 0)


class BacklogLimits:
    """Calls of the control plane, and jobs of the background."""

    __slots__ = (
        "_durable",
        "_held",
        "_ledger",
        "_lock",
        "_runtime",
        "_topic",
        "held_by",
    )

    def __init__(
        self,
        topic: str,
        runtime: BrokerRuntime,
        ledger: ManagedLedger,
        durable: Callable[[], list[Subscription]],
    ) -> None:
        self._topic = topic
        self._runtime = runtime
        self._ledger = ledger
        self._durable = durable
        self._lock = RLock()  # of what follows
        self.held_by: str | None = None  # why, of HELD
        self._held: WeakList | None = None  # producers; made with the first

    def stop(self) -> None:
        """Nothing of it runs by itself."""

    # Looking --------------------------------------------------------------------------------------

    def exceeded(self, quotas: dict[str, BacklogQuota]) -> list[tuple[str, BacklogQuota, str]]:
        """The quotas that are used up, by type, each with a text that says how."""
        found = []
        for kind, quota in quotas.items():
            text = self._size_text(quota) if kind == DESTINATION_STORAGE else self._age_text(quota)
            if text:
                found.append((kind, quota, f"{self._topic}: {text}"))
        return found

    def _size_text(self, quota: BacklogQuota) -> str:
        size = self._size()
        if size < quota.limit:
            return ""
        return f"the backlog has {size} bytes and its quota is {quota.limit}"

    def _age_text(self, quota: BacklogQuota) -> str:
        if self._runtime.options.precise_time_based_backlog_quota_check:
            ages = [each["oldest_backlog_message_age_seconds"] for each in self._extents()]
            age = max(ages, default=-1)
            if age < quota.limit:
                return ""
            return f"the oldest message is {age} s old and the backlog quota is {quota.limit} s"
        last = self._last_old_ledger(quota.limit)
        end = (last, self._ledger.messages_in(last))
        if not last or not any(_position(each) < end for each in self._holders()):
            return ""
        return f"ledger {last} has a backlog and was closed more than {quota.limit} s ago"

    def _holders(self) -> list[Subscription]:
        return [each for each in self._durable() if not is_exempt_subscription(each.name)]

    def _extents(self) -> list[dict[str, int]]:
        now_ms = self._runtime.clock.now_ms()
        return [backlog_extent(_position(each), self._ledger, now_ms) for each in self._holders()]

    def _size(self) -> int:
        return max((each["backlog_size"] for each in self._extents()), default=0)

    def _last_old_ledger(self, seconds: int) -> int:
        """The last of the ledgers that were closed longer ago, from the oldest on; 0: none."""
        before_ms = self._runtime.clock.now_ms() - seconds * 1000
        last = 0
        for ledger in self._ledger.ledgers():
            if ledger.state != "sealed" or ledger.sealed_ms >= before_ms:
                break
            last = ledger.ledger_id
        return last

    def check_may_publish(self, quotas: dict[str, BacklogQuota]) -> None:
        """ProducerBlockedQuotaExceededError, ProducerBlockedQuotaExceededException: no producer
        comes now, as the policy says."""
        for _, quota, text in self.exceeded(quotas):
            if quota.policy == HOLD:
                raise errors.ProducerBlockedQuotaExceededError(detail=text)
            if quota.policy == EXCEPTION:
                raise errors.ProducerBlockedQuotaExceededException(detail=text)

    # Acting ---------------------------------------------------------------------------------------

    def admit(self, producer: Any) -> None:
        """A producer comes, which nobody else knows yet."""
        with self._lock:
            if self.held_by is not None and producer not in self._members():
                self._hold(producer)

    def _hold(self, producer: Any) -> None:
        assert self.held_by is not None
        producer.hold(self.held_by)
        if self._held is None:
            self._held = WeakList()
        self._held.add(producer)

    def _members(self) -> list[Any]:
        """The producers that are held."""
        return self._held.members() if self._held is not None else []

    def check(self, quotas: dict[str, BacklogQuota], producers: ProducerRegistry) -> bool:
        """Do what the policies say; whether messages were acknowledged. The topic's lock is not
        held."""
        with self._lock:
            return self._check(quotas, producers)

    def _check(self, quotas: dict[str, BacklogQuota], producers: ProducerRegistry) -> bool:
        evicted = False
        for kind, quota, _ in self.exceeded(quotas):
            if quota.policy == EVICTION:
                evicted = self._evict(kind, quota) or evicted
        held = None
        for _, quota, text in self.exceeded(quotas):
            if quota.policy == EXCEPTION:
                producers.shut_all(text, errors.ProducerBlockedQuotaExceededException)
            elif quota.policy == HOLD:
                held = held or text
        self.held_by = held
        if held is None:
            for producer in self._members():
                producer.release()
            self._held = None
            return evicted
        known = self._members()
        for producer in producers.open_producers():
            if producer not in known:
                self._hold(producer)
        return evicted

    def _evict(self, kind: str, quota: BacklogQuota) -> bool:
        if kind == MESSAGE_AGE:
            return self._evict_old(quota.limit)
        return self._evict_size(quota.limit)

    def _evict_size(self, limit: int) -> bool:
        target = _KEPT * limit
        evicted = False
        before: Subscription | None = None
        while (size := self._size()) > target:
            slowest = min(self._holders(), key=_position)
            count = int((size - target) / size * slowest.backlog()[0])
            if slowest is before or count == 0:
                break
            if not slowest.acknowledge_before(slowest.position_behind_entries(count)):
                break
            evicted = True
            before = slowest
        return evicted

    def _evict_old(self, seconds: int) -> bool:
        holders = self._holders()
        if self._runtime.options.precise_time_based_backlog_quota_check:
            before_ms = self._runtime.clock.now_ms() - int(_KEPT * seconds * 1000)
            moved = [each.expire(before_ms) for each in holders]
        else:
            last = self._last_old_ledger(seconds)
            end = (last, self._ledger.messages_in(last))
            moved = [each.acknowledge_before(end) for each in holders]
        return any(moved)


def _position(subscription: Subscription) -> Position:
    """The first message of its backlog; behind all messages where it was deleted meanwhile."""
    try:
        return subscription.mark_delete()
    except errors.AlreadyClosed:
        return _NOWHERE
