"""Verbs about the policies of a namespace or a topic, those of `policies/table`."""

from __future__ import annotations

from functools import partial

from pulsarx.broker.policies.message_policies import RELATED, check_no_conflict
from pulsarx.broker.policies.policy_row import (
    COMPACTION,
    DEDUPLICATION,
    MESSAGES,
    NAMESPACE,
    TOPIC,
)
from pulsarx.broker.policies.table import POLICIES
from pulsarx.broker.verbs.verb import TENANT_ADMIN, verb
from pulsarx.topic_name import check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import OpenFolder
    from pulsarx.broker.policies.policy_row import Policy
    from pulsarx.topic_name import TopicName


@verb("namespaces.set_policy", needs=TENANT_ADMIN)
def set_namespace_policy(broker: Broker, namespace: str, policy: dict[str, Any]) -> None:
    """policy: its name and its value; None takes it away."""
    row, value = _checked(NAMESPACE, policy)
    require_effect(broker, row, value)
    check = _check(broker, row, f"set {row.name} of namespace {namespace}")
    broker.policies.set_namespace_policy(namespace, row.name, value, check)
    _take_effect(broker, row, namespace)


@verb("topics.set_policy", needs=TENANT_ADMIN)
def set_topic_policy(broker: Broker, topic: TopicName, policy: dict[str, Any]) -> None:
    """Like set_namespace_policy, for a topic, or the partitioned one it is a partition of.
    OperationNotSupported: it is about kept messages, and the topic is non-persistent."""
    row, value = _checked(TOPIC, policy)
    require_effect(broker, row, value)
    whole = topic.whole
    # Deduplication can be taken away where it cannot be set: it is not there.
    if row.for_kept and (value is not None or row.effect != DEDUPLICATION):
        check_keeps_messages(topic)
    check = _check(broker, row, f"set {row.name} of {whole}")
    broker.policies.set_topic_policy(whole, row.name, value, check)
    _take_effect(broker, row, whole.full)


def require_effect(broker: Broker, row: Policy, value: object) -> None:
    """OperationNotSupported: as the folder is opened, it would be a policy about nothing."""
    if row.needs_store and value is not None:
        from pulsarx.broker.offload.topic_offload import require_store

        require_store(broker.runtime, f"set {row.name}")


def _check(broker: Broker, row: Policy, what: str) -> Callable[[dict[str, Any]], None] | None:
    """The check that refuses the policy beside others that conflict with it; None: none can."""
    if row.name not in RELATED:
        return None
    return partial(check_no_conflict, what, broker.settings.options)


def _checked(level: str, policy: dict[str, Any]) -> tuple[Policy, Any]:
    name = next(iter(policy), None)
    row = POLICIES.get(name) if isinstance(name, str) and len(policy) == 1 else None
    if row is None or level not in row.levels:
        known = ", ".join(each.name for each in POLICIES.values() if level in each.levels)
        raise ValueError(f"unknown policy {policy!r:.200}; it must be one of {known}")
    value = policy[row.name]
    return row, None if value is None else row.check(value)


def _take_effect(broker: Broker, row: Policy, target: str) -> None:
    """target: a namespace, or the full name of a topic."""
    if row.effect == MESSAGES:
        broker.topics.apply_message_policies(target)
    elif row.effect == DEDUPLICATION:
        broker.topics.apply_policies()
    elif row.effect == COMPACTION:
        broker.topics.arm_compaction()


@verb("namespaces.get_policy", needs=TENANT_ADMIN, reads=True)
def get_namespace_policy(folder: OpenFolder, namespace: str, name: str) -> object:
    """None: the namespace does not set it."""
    folder.refresh()
    return folder.policies.namespace_policy(namespace, name)


@verb("topics.get_policy", needs=TENANT_ADMIN, reads=True)
def get_topic_policy(folder: OpenFolder, topic: TopicName, name: str) -> object:
    """None: the topic does not set it."""
    folder.refresh()
    return folder.policies.topic_policy(topic.whole, name)
