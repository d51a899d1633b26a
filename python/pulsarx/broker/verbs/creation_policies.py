"""Verbs about the policies of `policies/creation` and `policies/message_policies`, of a namespace
or a topic."""

from __future__ import annotations

from functools import partial

from pulsarx.broker.offload.offload_monitor import DELETION_LAG as OFFLOAD_DELETION_LAG
from pulsarx.broker.offload.offload_monitor import THRESHOLD as OFFLOAD_THRESHOLD
from pulsarx.broker.offload.topic_offload import require_store
from pulsarx.broker.policies.creation import NAMESPACE_POLICIES, TOPIC_POLICIES
from pulsarx.broker.policies.limits import ATTACHED, MAX_TOPICS_CHECK
from pulsarx.broker.policies.message_policies import CHECKS, INACTIVE_TOPICS, check_no_conflict
from pulsarx.broker.policies.rates import PUBLISH_RATE
from pulsarx.broker.topics.compaction_monitor import POLICY as COMPACTION_THRESHOLD
from pulsarx.broker.verbs.verb import Verb
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import OpenFolder

OF_NAMESPACES: dict[str, Callable[[object], object]] = {
    **NAMESPACE_POLICIES,
    **CHECKS,
    **MAX_TOPICS_CHECK,
}
_OF_OFFLOADS = {OFFLOAD_THRESHOLD, OFFLOAD_DELETION_LAG}
_OF_KEPT_MESSAGES = {*CHECKS, COMPACTION_THRESHOLD, *_OF_OFFLOADS} - {
    INACTIVE_TOPICS,
    PUBLISH_RATE,
    *ATTACHED,
}


def set_namespace_policy(broker: Broker, namespace: str, policy: dict[str, Any]) -> None:
    """policy: its name and its value; None takes it away."""
    name, value = _checked(OF_NAMESPACES, policy)
    require_effect(broker, name, value)
    check = _check(broker, f"set {name} of namespace {namespace}")
    broker.policies.set_namespace_policy(namespace, name, value, check)
    if name in CHECKS:
        broker.topics.apply_message_policies(namespace)
    broker.topics.policy_was_set()


def set_topic_policy(broker: Broker, topic: str, policy: dict[str, Any]) -> None:
    """As set_namespace_policy, of a topic, or the partitioned one it is a partition of.
    OperationNotSupported: it is about kept messages, and the topic is non-persistent."""
    name, value = _checked({**TOPIC_POLICIES, **CHECKS}, policy)
    require_effect(broker, name, value)
    full = TopicName.of(topic).partitioned_name
    if name in _OF_KEPT_MESSAGES:
        check_keeps_messages(TopicName.of(topic))
    broker.policies.set_topic_policy(full, name, value, _check(broker, f"set {name} of {full}"))
    if name in CHECKS:
        broker.topics.apply_message_policies(full)
    broker.topics.policy_was_set()


def require_effect(broker: Broker, name: str, value: Any) -> None:
    """OperationNotSupported: as the folder is opened, it would be a policy about nothing."""
    if name in _OF_OFFLOADS and value is not None:
        require_store(broker.runtime, f"set {name}")


def _check(broker: Broker, what: str) -> Callable[[dict[str, Any]], None]:
    return partial(check_no_conflict, what, broker.settings.options)


def _checked(
    known: dict[str, Callable[[object], object]], policy: dict[str, Any]
) -> tuple[str, object]:
    if len(policy) != 1 or not known.keys() >= policy.keys():
        raise ValueError(f"unknown policy {policy!r:.200}; it must be one of {', '.join(known)}")
    [(name, value)] = policy.items()
    return name, None if value is None else known[name](value)


def get_namespace_policy(folder: OpenFolder, namespace: str, name: str) -> object:
    """None: the namespace does not set it."""
    folder.refresh()
    return folder.policies.namespace_policy(namespace, name)


def get_topic_policy(folder: OpenFolder, topic: str, name: str) -> object:
    """None: the topic does not set it."""
    folder.refresh()
    return folder.policies.topic_policy(TopicName.of(topic).partitioned_name, name)


VERBS = {
    "namespaces.set_policy": Verb(set_namespace_policy, {"namespace": str, "policy": dict}),
    "namespaces.get_policy": Verb(
        get_namespace_policy, {"namespace": str, "name": str}, reads=True
    ),
    "topics.set_policy": Verb(set_topic_policy, {"topic": str, "policy": dict}),
    "topics.get_policy": Verb(get_topic_policy, {"topic": str, "name": str}, reads=True),
}
