"""Looks at the open topics again and again, for the policies that time brings into force.

A check is armed, on the broker's clock, only while an open topic has a policy that needs it: a
broker without such policies has no timer.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.periodic_check import PeriodicCheck
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.inactivity import Inactivity
    from pulsarx.broker.topics.topic import Topic

_HELD_MS = 1000  # between two looks for room that producers wait for


class PolicyChecks:
    """The checks of one broker. Any thread may call."""

    def __init__(
        self,
        runtime: BrokerRuntime,
        topics: Callable[[], list[Topic]],
        inactivity: Inactivity,
    ) -> None:
        """topics: those that are open."""
        options = runtime.options
        self._topics = topics
        minutes = options.message_expiry_check_interval_in_minutes
        self._expiry = PeriodicCheck(
            runtime.clock, runtime.background, minutes * 60_000, self._expire
        )
        seconds = options.backlog_quota_check_interval_in_seconds
        self._backlog = PeriodicCheck(
            runtime.clock, runtime.background, seconds * 1000, self._check_backlogs
        )
        self._room = PeriodicCheck(runtime.clock, runtime.background, _HELD_MS, self._look_for_room)
        self._inactivity = inactivity
        seconds = options.broker_delete_inactive_topics_frequency_seconds
        self._topics_gone = PeriodicCheck(
            runtime.clock, runtime.background, seconds * 1000, inactivity.delete_topics
        )
        minutes = options.subscription_expiry_check_interval_in_minutes
        self._subscriptions_gone = PeriodicCheck(
            runtime.clock, runtime.background, minutes * 60_000, inactivity.delete_subscriptions
        )

    def look_for_inactive(self) -> None:
        """Arm what deletes topics and subscriptions, where a policy asks for it."""
        if self._inactivity.topics_may_go():
            self._topics_gone.arm()
        if self._inactivity.subscriptions_may_go():
            self._subscriptions_gone.arm()

    def needed_by(self, topic: Topic) -> None:
        """Arm what the policies of a topic need."""
        if topic.effects.policies.ttl_seconds:
            self._expiry.arm()
        if topic.effects.policies.quotas:
            self._backlog.arm()
        if topic.effects.held_by is not None:
            self._room.arm()

    def _expire(self) -> bool:
        topics = [each for each in self._topics() if each.effects.policies.ttl_seconds]
        for topic in topics:
            tell(attempt(topic.effects.expire), topic)
        return bool(topics)

    def _check_backlogs(self) -> bool:
        topics = [each for each in self._topics() if each.effects.policies.quotas]
        for topic in topics:
            tell(attempt(topic.effects.check_backlog), topic)
            self.needed_by(topic)
        return bool(topics)

    def _look_for_room(self) -> bool:
        held = [each for each in self._topics() if each.effects.held_by is not None]
        for topic in held:
            tell(attempt(topic.effects.check_backlog), topic)
        return any(each.effects.held_by is not None for each in held)

    def close(self) -> None:
        checks = (self._expiry, self._backlog, self._room)
        for each in (*checks, self._topics_gone, self._subscriptions_gone):
            each.close()


def tell(error: Exception | None, topic: AnyTopic) -> None:
    """Say in the log why a check of a topic failed. It is tried again at the next one."""
    if error is None or topic.is_gone:
        return
    import logging

    logging.getLogger("pulsarx").error("%s: its policies: %s", topic.name, errors.detail_of(error))
