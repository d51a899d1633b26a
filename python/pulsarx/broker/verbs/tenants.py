"""Verbs about tenants: which there are, creating and deleting them."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.verb import SUPERUSER, TENANT_ADMIN, verb
from pulsarx.topic_name import SYSTEM_TENANT, check_entity_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.faces import OpenFolder


@verb("tenants.create_tenant", needs=SUPERUSER,
    http=Http("PUT", "/tenants/{tenant}", "Create a tenant.", body="TenantInfo"))  # fmt: skip
def create_tenant(
    broker: Broker, tenant: str, admin_roles: list[Any], allowed_clusters: list[Any]
) -> None:
    """NotAllowedError: it exists, or is the system's."""
    check_entity_name("tenant", tenant)
    properties = _properties(admin_roles, allowed_clusters)
    if tenant == SYSTEM_TENANT:
        raise errors.NotAllowedError(detail=f"create tenant {tenant}: its name is the system's")

    def operations(state: CatalogueState) -> list[Operation]:
        if tenant in state.tenants:
            raise errors.NotAllowedError(detail=f"create tenant {tenant}: it exists already")
        return [changes.create_tenant(tenant, properties)]

    broker.catalogue.commit(operations)


def _properties(admin_roles: list[Any], allowed_clusters: list[Any]) -> dict[str, Any]:
    named = {"admin_roles": admin_roles, "allowed_clusters": allowed_clusters}
    for name, values in named.items():
        if not all(isinstance(each, str) and each for each in values):
            raise ValueError(f"{name} are names (str), not {values!r:.200}")
    return {name: sorted(set(values)) for name, values in named.items() if values}


@verb("tenants.update_tenant", needs=SUPERUSER,
    http=Http("POST", "/tenants/{tenant}", "Update a tenant.", body="TenantInfo"))  # fmt: skip
def update_tenant(
    broker: Broker, tenant: str, admin_roles: list[Any], allowed_clusters: list[Any]
) -> None:
    properties = _properties(admin_roles, allowed_clusters)

    def operations(state: CatalogueState) -> list[Operation]:
        require_tenant(state, tenant)
        return [changes.update_tenant(tenant, properties)]

    broker.catalogue.commit(operations)
    broker.permissions_have_changed()


@verb("tenants.delete_tenant", needs=SUPERUSER, removes=True,
    http=Http("DELETE", "/tenants/{tenant}", "Delete a tenant.",
        query={"force": "force"}))  # fmt: skip
def delete_tenant(broker: Broker, tenant: str, force: bool) -> None:
    """NotAllowedError: it has namespaces, and it is not forced; or it is the system's."""
    from pulsarx.broker.topics.topic_deletion import topics_of_namespace

    if tenant == SYSTEM_TENANT:
        raise errors.NotAllowedError(detail=f"delete tenant {tenant}: it is the system's")

    def select(state: CatalogueState) -> list[str]:
        require_tenant(state, tenant)
        found = namespaces_of(state, tenant)
        if found and not force:
            raise errors.NotAllowedError(
                detail=f"delete tenant {tenant}: it has {len(found)} namespaces, {found[0]} for "
                "one; delete them, or the tenant with force=True"
            )
        return [
            name
            for each in found
            for name in [*topics_of_namespace(state, each), *broker.topics.volatile_topics(each)]
        ]

    def more(state: CatalogueState) -> list[Operation]:
        gone = [changes.delete_namespace(each) for each in namespaces_of(state, tenant)]
        return [*gone, changes.delete_tenant(tenant)]

    broker.topics.delete(select, force, more)


@verb("tenants.get_tenants", needs=SUPERUSER, reads=True,
    http=Http("GET", "/tenants", "Get the list of existing tenants.", answer="names"))  # fmt: skip
def get_tenants(folder: OpenFolder) -> list[str]:
    folder.refresh()
    return sorted(folder.catalogue.state.tenants.copy())


@verb("tenants.get_tenant_info", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "/tenants/{tenant}", "Get the admin configuration of a tenant.",
        answer="TenantInfo"))  # fmt: skip
def get_tenant_info(folder: OpenFolder, tenant: str) -> dict[str, list[str]]:
    folder.refresh()
    found = require_tenant(folder.catalogue.state, tenant)
    return {name: list(found.get(name, ())) for name in ("admin_roles", "allowed_clusters")}


def require_tenant(state: CatalogueState, tenant: str) -> dict[str, Any]:
    """TopicNotFound: there is none of this name."""
    found = state.tenants.get(tenant)
    if found is None:
        raise errors.TopicNotFound(detail=f"there is no tenant {tenant}")
    return found


def namespaces_of(state: CatalogueState, tenant: str) -> list[str]:
    return sorted(name for name in list(state.namespaces) if name.startswith(f"{tenant}/"))
