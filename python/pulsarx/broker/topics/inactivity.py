"""Deletes topics and subscriptions that nobody uses, where policies ask for it. Source: Pulsar's
PersistentTopic.checkGC and checkInactiveSubscriptions.

Activity is remembered in memory: of a topic that nobody named since the folder was opened it counts
from then on.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial

from pulsarx import errors
from pulsarx.broker import life_log
from pulsarx.broker.policies.message_policies import (
    INACTIVE_TOPICS,
    NO_SUBSCRIPTIONS,
    SUBSCRIPTION_EXPIRATION,
    is_exempt_subscription,
)
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.policies.message_policies import InactiveTopics
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.broker_topic import BrokerTopic

    class Directory(Protocol):
        """The topics by name."""

        def open_topic(self, full_name: str) -> AnyTopic | None: ...

        def existing(self, name: TopicName) -> AnyTopic: ...

        def delete(self, select: Callable[[CatalogueState], list[str]], force: bool) -> None: ...


class Inactivity:
    """Deletes the inactive topics of one broker. `note` and `active_ms` by any thread; the rest are
    jobs of the background."""

    def __init__(self, runtime: BrokerRuntime, directory: Directory) -> None:
        self._runtime = runtime
        self._directory = directory
        self._opened_ms = runtime.clock.now_ms()
        self._active_ms: dict[str, int] = {}  # of topics that are not open

    # Activity -------------------------------------------------------------------------------------

    def note(self, full_name: str, active_ms: int | None = None) -> None:
        """A topic was created, or is not open any more. None: now."""
        now_ms = self._runtime.clock.now_ms()
        self._active_ms[full_name] = now_ms if active_ms is None else active_ms

    def forget(self, full_name: str) -> None:
        """A topic was opened, or is deleted."""
        self._active_ms.pop(full_name, None)

    def active_ms(self, name: TopicName) -> int:
        """When a topic that is not open was used last."""
        found = self._active_ms.get
        of_parent = found(name.partitioned_name, self._opened_ms)
        return max(found(name.full, self._opened_ms), of_parent)

    # What is asked for ----------------------------------------------------------------------------

    def topics_may_go(self) -> bool:
        """Whether a policy anywhere has inactive topics deleted."""
        if self._runtime.options.broker_delete_inactive_topics_enabled:
            return True
        return any(each["enabled"] for each in self._values_of(INACTIVE_TOPICS))

    def subscriptions_may_go(self) -> bool:
        """Whether a policy anywhere has inactive subscriptions deleted."""
        if self._runtime.options.subscription_expiration_time_minutes:
            return True
        return any(self._values_of(SUBSCRIPTION_EXPIRATION))

    def _values_of(self, policy: str) -> list[Any]:
        state = self._runtime.catalogue.state
        levels = [*state.namespaces.values()]
        levels += [each.policies for each in list(state.topics.values()) if each.policies]
        return [each[policy] for each in levels if policy in each]

    # Topics ---------------------------------------------------------------------------------------

    def delete_topics(self) -> bool:
        """Delete the topics that nobody used for as long as their policies say; whether any may go
        later."""
        for record in list(self._runtime.catalogue.state.topics.values()):
            self._look_at(record.name, partial(self._names, record))
        for name in list(self._runtime.volatile):
            self._look_at(name, partial(list, (name,)))
        return self.topics_may_go()

    def _look_at(self, full_name: str, find_names: Callable[[], list[str]]) -> None:
        with _told(full_name):
            policy = self._runtime.policies.of_topic(
                TopicName.of(full_name)
            ).messages.inactive_topics
            names = find_names() if policy.enabled else []
            if names and self._may_go(names, policy):
                self._delete(full_name, names, policy)

    def _names(self, record: TopicRecord) -> list[str]:
        """The names that hold a topic's messages, its own or its partitions'; none: it does not go
        by itself."""
        name = TopicName.of(record.name)
        if record.partition_count:
            options = self._runtime.options
            if not options.broker_delete_inactive_partitioned_topic_metadata_enabled:
                return []
            return partition_names(name, record.partition_count)
        state = self._runtime.catalogue.state
        count = partition_count_of(state, name.whole)
        return [] if 0 <= name.partition_index < count else [record.name]

    def _may_go(self, names: list[str], policy: InactiveTopics) -> bool:
        return all(self._is_inactive(each, policy) for each in names)

    def _is_inactive(self, full_name: str, policy: InactiveTopics) -> bool:
        topic = self._directory.open_topic(full_name)
        if topic is None:
            name = TopicName.of(full_name)
            now_ms = self._runtime.clock.now_ms()
            if now_ms - self.active_ms(name) < policy.seconds * 1000:
                return False
            record = self._runtime.catalogue.state.topics.get(full_name)
            names = () if record is None else record.subscriptions
            if policy.mode == NO_SUBSCRIPTIONS and not all(map(is_exempt_subscription, names)):
                return False  # it need not be opened to see that
            topic = self._directory.existing(name)
        return is_inactive(topic, policy)

    def _delete(self, full_name: str, names: list[str], policy: InactiveTopics) -> None:
        def select(state: CatalogueState) -> list[str]:
            volatile = self._runtime.volatile
            if any(
                each not in state.topics and each not in volatile for each in (full_name, *names)
            ):
                raise errors.missing_topic(full_name)
            if not self._may_go(names, policy):
                raise errors.NotAllowedError(detail=f"{full_name} is used again")
            return [full_name] if names == [full_name] else [full_name, *names]

        with suppress(errors.NotAllowedError):  # or a job reads it
            self._directory.delete(select, False)
            life_log.info("%s: deleted, as it was not used for %d s", full_name, policy.seconds)

    # Subscriptions --------------------------------------------------------------------------------

    def delete_subscriptions(self) -> bool:
        """Delete the durable subscriptions that nobody used for as long as their policies say;
        whether any may go later."""
        for record in list(self._runtime.catalogue.state.topics.values()):
            if record.subscriptions:
                with _told(record.name):
                    policies = self._runtime.policies.of_topic(TopicName.of(record.name)).messages
                    minutes = policies.subscription_expiration_minutes
                    if minutes:
                        self._delete_subscriptions_of(record.name, minutes * 60_000)
        return self.subscriptions_may_go()

    def _delete_subscriptions_of(self, full_name: str, idle_ms: int) -> None:
        topic = self._directory.open_topic(full_name)
        now_ms = self._runtime.clock.now_ms()
        if topic is None:
            name = TopicName.of(full_name)
            if now_ms - self.active_ms(name) < idle_ms:
                return
            topic = self._directory.existing(name)
        from pulsarx.broker.subscriptions.subscription_changes import delete_subscriptions

        topic = topic.require_kept("delete subscriptions")
        for each in list(topic.subscriptions.values()):
            with topic.lock, suppress(errors.NotAllowedError, errors.SubscriptionNotFound):
                if not is_exempt_subscription(each.name) and each.is_idle_for(idle_ms):
                    delete_subscriptions([topic], each.name, False)
                    life_log.info(
                        "%s: subscription %s deleted, as it was not used", full_name, each.name
                    )


# Of one topic -------------------------------------------------------------------------------------


def watched(topic: BrokerTopic, watch: object) -> None:
    """Another process reads the topic, until watched_no_more."""
    with topic.lock:
        topic.watches |= {watch}


def watched_no_more(topic: BrokerTopic, watch: object) -> None:
    with topic.lock:
        topic.watches -= {watch}


def is_inactive(topic: AnyTopic, policy: InactiveTopics) -> bool:
    """Whether nobody has used the topic for as long as the policy says, and retention keeps nothing
    of it."""
    if _is_used(topic, policy.mode):
        topic.touch()
        return False
    idle_ms = topic.runtime.clock.now_ms() - topic.last_active_ms
    if idle_ms < policy.seconds * 1000:
        return False
    if not topic.keeps_messages or not topic.ledger.entry_count():
        return True
    policies = topic.runtime.policies.of_topic(topic.topic_name)
    kept_minutes = policies.retention.time_minutes
    return 0 <= kept_minutes * 60_000 <= idle_ms


def _is_used(topic: AnyTopic, mode: str) -> bool:
    """The mode makes no difference to a non-persistent topic: its subscriptions go with their
    consumers."""
    for each in topic.all_subscriptions():
        each.detach_forgotten()
    found = [each for each in topic.all_subscriptions() if not is_exempt_subscription(each.name)]
    if topic.producers.is_used() or topic.readers() or topic.watches:
        return True
    if not topic.keeps_messages:
        return bool(topic.all_subscriptions())
    if mode == NO_SUBSCRIPTIONS:
        return bool(found)
    return any(each.consumers() or each.backlog()[1] for each in found)


@contextmanager
def _told(full_name: str) -> Iterator[None]:
    """A failure of the block is told in the log: the next look tries again."""
    try:
        yield
    except (errors.TopicNotFound, errors.AlreadyClosed):
        pass  # it went meanwhile, or a subscription of it
    except errors.PulsarException as error:
        import logging

        logging.getLogger("pulsarx").error(
            "%s: looking for what is not used: %s", full_name, errors.detail_of(error)
        )
