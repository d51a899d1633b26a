"""Verbs about namespaces: creating and deleting them, the policies that hold for their topics."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.policies.message_policies import check_no_conflict
from pulsarx.broker.policies.permissions import PERMISSIONS, checked_permissions
from pulsarx.broker.policies.policy_row import NAMESPACE
from pulsarx.broker.policies.table import POLICIES
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.policies import require_effect
from pulsarx.broker.verbs.tenants import namespaces_of, require_tenant
from pulsarx.broker.verbs.verb import IN_NAMESPACE, TENANT_ADMIN, verb
from pulsarx.topic_name import SYSTEM_TENANT, TopicName, check_namespace_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.faces import OpenFolder


@verb("namespaces.create_namespace", needs=TENANT_ADMIN,
    http=Http("PUT", "/namespaces/{namespace}", "Create a namespace.",
        body="Policies"))  # fmt: skip
def create_namespace(
    broker: Broker, namespace: str, policies: dict[str, Any] | None = None
) -> None:
    """policies: what is set for it in the same commit, by name. NotAllowedError: it exists.
    TopicNotFound: its tenant does not. ValueError: there is no such policy, or it has not such a
    value."""
    check_namespace_name(namespace)
    checked = {name: _checked(name, value) for name, value in (policies or {}).items()}
    for name, value in checked.items():
        if name != PERMISSIONS:
            require_effect(broker, POLICIES[name], value)
    check_no_conflict(f"create namespace {namespace}", broker.settings.options, checked)
    if namespace.partition("/")[0] == SYSTEM_TENANT:
        raise errors.NotAllowedError(
            detail=f"create namespace {namespace}: its tenant is the system's"
        )

    def operations(state: CatalogueState) -> list[Operation]:
        require_tenant(state, namespace.partition("/")[0])
        if namespace in state.namespaces:
            raise errors.NotAllowedError(detail=f"create namespace {namespace}: it exists already")
        return [
            changes.create_namespace(namespace),
            *(
                changes.set_namespace_policy(namespace, name, value)
                for name, value in checked.items()
            ),
        ]

    broker.catalogue.commit(operations)
    if PERMISSIONS in checked:
        broker.permissions_have_changed()
    broker.topics.arm_compaction()


def _checked(name: str, value: object) -> Any:
    if name == PERMISSIONS:
        return checked_permissions(value)
    row = POLICIES.get(name)
    if row is None or NAMESPACE not in row.levels:
        raise ValueError(f"there is no policy {name!r:.100} of namespaces")
    return row.check(value)


@verb("namespaces.delete_namespace", needs=TENANT_ADMIN, removes=True,
    http=Http("DELETE", "/namespaces/{namespace}", "Delete a namespace.",
        query={"force": "force"}))  # fmt: skip
def delete_namespace(broker: Broker, namespace: str, force: bool) -> None:
    """NotAllowedError: it has topics that are not the system's, and it is not forced; or it is the
    system's."""
    from pulsarx.broker.topics.topic_deletion import topics_of_namespace

    if namespace.partition("/")[0] == SYSTEM_TENANT:
        raise errors.NotAllowedError(detail=f"delete namespace {namespace}: it is the system's")

    def select(state: CatalogueState) -> list[str]:
        _require_namespace(state, namespace)
        found = topics_of_namespace(state, namespace)
        found += broker.topics.volatile_topics(namespace)
        of_users = [name for name in found if not TopicName.of(name).is_system]
        if of_users and not force:
            raise errors.NotAllowedError(
                detail=f"delete namespace {namespace}: it has {len(of_users)} topics, "
                f"{of_users[0]} for one; delete them, or the namespace with force=True"
            )
        return found

    broker.topics.delete(select, force, lambda _: [changes.delete_namespace(namespace)])


def _require_namespace(state: CatalogueState, namespace: str) -> dict[str, Any]:
    found = state.namespaces.get(namespace)
    if found is None:
        raise errors.TopicNotFound(detail=f"there is no namespace {namespace}")
    return found


@verb("namespaces.get_namespaces", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "/namespaces/{tenant}", "Get the namespaces of a tenant.",
        answer="names"))  # fmt: skip
def get_namespaces(folder: OpenFolder, tenant: str) -> list[str]:
    """TopicNotFound: there is no such tenant."""
    folder.refresh()
    require_tenant(folder.catalogue.state, tenant)
    return namespaces_of(folder.catalogue.state, tenant)


@verb("namespaces.get_topics", needs=IN_NAMESPACE, reads=True)
def get_topics(folder: OpenFolder, namespace: str) -> list[str]:
    """Topics of both domains, of a partitioned topic its partitions. Not the system's."""
    folder.refresh()
    state = folder.catalogue.state
    _require_namespace(state, namespace)
    kept = [name for name, record in list(state.topics.items()) if not record.partition_count]
    return sorted(
        name
        for name in [*kept, *list(folder.volatile)]
        if name.partition("://")[2].startswith(f"{namespace}/") and not TopicName.of(name).is_system
    )


@verb("namespaces.get_policies", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "/namespaces/{namespace}", "Get all policies of a namespace.",
        answer="Policies"))  # fmt: skip
def get_policies(folder: OpenFolder, namespace: str) -> dict[str, Any]:
    """The values set for the namespace, by the name of the policy."""
    folder.refresh()
    return dict(_require_namespace(folder.catalogue.state, namespace))
