"""Verbs about namespaces: which there are, and the policies that hold for their topics."""

from __future__ import annotations

from pulsarx.broker.policies.retention import RetentionPolicy
from pulsarx.broker.verbs.verb import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import OpenFolder


def get_namespaces(folder: OpenFolder, tenant: str) -> list[str]:
    folder.refresh()
    namespaces = folder.catalogue.state.namespaces
    return sorted(name for name in list(namespaces) if name.startswith(f"{tenant}/"))


def set_retention(broker: Broker, namespace: str, time_minutes: int, size_mb: int) -> None:
    """-1: without limit; 0 in either: not at all. ValueError: below that."""
    for name, value in (("time_minutes", time_minutes), ("size_mb", size_mb)):
        if value < -1:
            raise ValueError(f"{name} is {value}; it must be -1 (without limit), 0 or more")
    policy = RetentionPolicy(time_minutes, size_mb)
    broker.policies.set_namespace_retention(namespace, policy)
    for topic in broker.topics.open_topics():
        if topic.name.split("://", 1)[1].startswith(namespace + "/"):
            topic.trim()


def get_retention(folder: OpenFolder, namespace: str) -> list[int]:
    """[time_minutes, size_mb] in force."""
    folder.refresh()
    policy = folder.policies.of_namespace(namespace).retention
    return [policy.time_minutes, policy.size_mb]


def set_deduplication(broker: Broker, namespace: str, enabled: bool) -> None:
    broker.policies.set_namespace_policy(namespace, "deduplication", enabled)
    broker.topics.apply_policies()


def get_deduplication(folder: OpenFolder, namespace: str) -> bool | None:
    """None: it is not set there."""
    folder.refresh()
    found: bool | None = folder.policies.namespace_policy(namespace, "deduplication")
    return found


def remove_deduplication(broker: Broker, namespace: str) -> None:
    broker.policies.set_namespace_policy(namespace, "deduplication", None)
    broker.topics.apply_policies()


_NAMESPACE = {"namespace": str}
VERBS = {
    "namespaces.get_namespaces": Verb(get_namespaces, {"tenant": str}, reads=True),
    "namespaces.set_retention": Verb(
        set_retention, {"namespace": str, "time_minutes": int, "size_mb": int}
    ),
    "namespaces.get_retention": Verb(get_retention, {"namespace": str}, reads=True),
    "namespaces.set_deduplication": Verb(set_deduplication, {**_NAMESPACE, "enabled": bool}),
    "namespaces.get_deduplication": Verb(get_deduplication, _NAMESPACE, reads=True),
    "namespaces.remove_deduplication": Verb(remove_deduplication, _NAMESPACE),
}
