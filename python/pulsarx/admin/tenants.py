"""`client.admin.tenants`: tenants, the first part of topic names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsarx.admin.channel import Channel


class Tenants:
    """Any thread may call. TopicNotFound: there is no such tenant. Changes are durable on
    return."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def create_tenant(
        self, tenant: str, admin_roles: Iterable[str] = (), allowed_clusters: Iterable[str] = ()
    ) -> None:
        """Create a tenant, of letters, digits and - = : . _

        admin_roles: may use and administer everything in the tenant, where a service authenticates
        its clients. allowed_clusters: kept for `get_tenant_info`; without effect.
        NotAllowedError: it exists, or is `pulsar`, which is reserved.
        """
        self._channel.perform("tenants.create_tenant", _info(tenant, admin_roles, allowed_clusters))

    def update_tenant(
        self, tenant: str, admin_roles: Iterable[str] = (), allowed_clusters: Iterable[str] = ()
    ) -> None:
        """Replace what `get_tenant_info` returns. Producers and consumers of a role that is no
        longer an administrator are closed."""
        self._channel.perform("tenants.update_tenant", _info(tenant, admin_roles, allowed_clusters))

    def delete_tenant(self, tenant: str, force: bool = False) -> None:
        """Delete a tenant. NotAllowedError: it has namespaces. force: they are deleted too, with
        their topics, whose producers, consumers and readers are closed."""
        self._channel.perform("tenants.delete_tenant", {"tenant": tenant, "force": bool(force)})

    def get_tenants(self) -> list[str]:
        """Their names."""
        found: list[str] = self._channel.perform("tenants.get_tenants", {})
        return found

    def get_tenant_info(self, tenant: str) -> dict[str, list[str]]:
        """{"admin_roles": names, "allowed_clusters": names}."""
        found: dict[str, list[str]] = self._channel.perform(
            "tenants.get_tenant_info", {"tenant": tenant}
        )
        return found


def _info(
    tenant: str, admin_roles: Iterable[str], allowed_clusters: Iterable[str]
) -> dict[str, object]:
    for name, values in (("admin_roles", admin_roles), ("allowed_clusters", allowed_clusters)):
        if isinstance(values, str):
            raise ValueError(f"{name} is a str; give a list of names")
    return {
        "tenant": tenant,
        "admin_roles": list(admin_roles),
        "allowed_clusters": list(allowed_clusters),
    }
