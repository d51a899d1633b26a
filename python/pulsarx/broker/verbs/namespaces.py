"""Verbs about namespaces: creating and deleting them, the policies that hold for their topics."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.policies.message_policies import RETENTION
from pulsarx.broker.topics.topic_deletion import topics_of_namespace
from pulsarx.broker.verbs.creation_policies import set_namespace_policy
from pulsarx.broker.verbs.tenants import RESERVED_TENANT, namespaces_of, require_tenant
from pulsarx.broker.verbs.verb import Verb
from pulsarx.topic_name import TopicName, check_namespace_name, is_system_topic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.operations import Operation
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.faces import OpenFolder


def create_namespace(broker: Broker, namespace: str) -> None:
    """NotAllowedError: it exists. TopicNotFound: its tenant does not."""
    check_namespace_name(namespace)
    if namespace.partition("/")[0] == RESERVED_TENANT:
        raise errors.NotAllowedError(f"create namespace {namespace}: its tenant is the system's")

    def operations(state: CatalogueState) -> list[Operation]:
        require_tenant(state, namespace.partition("/")[0])
        if namespace in state.namespaces:
            raise errors.NotAllowedError(f"create namespace {namespace}: it exists already")
        return [changes.create_namespace(namespace)]

    broker.catalogue.commit(operations)


def delete_namespace(broker: Broker, namespace: str, force: bool) -> None:
    """NotAllowedError: it has topics that are not the system's, and it is not forced."""

    def select(state: CatalogueState) -> list[str]:
        _require_namespace(state, namespace)
        found = topics_of_namespace(state, namespace)
        found += broker.topics.volatile_topics(namespace)
        of_users = [name for name in found if not is_system_topic(TopicName.of(name))]
        if of_users and not force:
            raise errors.NotAllowedError(
                f"delete namespace {namespace}: it has {len(of_users)} topics, {of_users[0]} for "
                "one; delete them, or the namespace with force=True"
            )
        return found

    broker.topics.delete(select, force, lambda _: [changes.delete_namespace(namespace)])


def _require_namespace(state: CatalogueState, namespace: str) -> dict[str, Any]:
    found = state.namespaces.get(namespace)
    if found is None:
        raise errors.TopicNotFound(f"there is no namespace {namespace}")
    return found


def get_namespaces(folder: OpenFolder, tenant: str) -> list[str]:
    """TopicNotFound: there is no such tenant."""
    folder.refresh()
    require_tenant(folder.catalogue.state, tenant)
    return namespaces_of(folder.catalogue.state, tenant)


def get_topics(folder: OpenFolder, namespace: str) -> list[str]:
    """Topics of both domains, of a partitioned topic its partitions. Not the system's."""
    folder.refresh()
    state = folder.catalogue.state
    _require_namespace(state, namespace)
    kept = [name for name, record in list(state.topics.items()) if not record.partition_count]
    return sorted(
        name
        for name in [*kept, *list(folder.volatile)]
        if name.partition("://")[2].startswith(f"{namespace}/")
        and not is_system_topic(TopicName.of(name))
    )


def get_policies(folder: OpenFolder, namespace: str) -> dict[str, Any]:
    """What is set for the namespace, by the name of the policy."""
    folder.refresh()
    return dict(_require_namespace(folder.catalogue.state, namespace))


def set_retention(broker: Broker, namespace: str, time_minutes: int, size_mb: int) -> None:
    """-1: without limit; 0 in both: not at all. ValueError: below, or a single 0. As `set_policy`,
    for processes of earlier versions."""
    value = {"time_minutes": time_minutes, "size_mb": size_mb}
    set_namespace_policy(broker, namespace, {RETENTION: value})


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
    "namespaces.create_namespace": Verb(create_namespace, _NAMESPACE),
    "namespaces.delete_namespace": Verb(
        delete_namespace, {"namespace": str, "force": bool}, removes=True
    ),
    "namespaces.get_topics": Verb(get_topics, _NAMESPACE, reads=True),
    "namespaces.get_policies": Verb(get_policies, _NAMESPACE, reads=True),
    "namespaces.get_namespaces": Verb(get_namespaces, {"tenant": str}, reads=True),
    "namespaces.set_retention": Verb(
        set_retention, {"namespace": str, "time_minutes": int, "size_mb": int}
    ),
    "namespaces.get_retention": Verb(get_retention, {"namespace": str}, reads=True),
    "namespaces.set_deduplication": Verb(set_deduplication, {**_NAMESPACE, "enabled": bool}),
    "namespaces.get_deduplication": Verb(get_deduplication, _NAMESPACE, reads=True),
    "namespaces.remove_deduplication": Verb(remove_deduplication, _NAMESPACE),
}
