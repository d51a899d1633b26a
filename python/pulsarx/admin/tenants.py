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
        """Use `Admin.tenants`.

        Args:
            channel: By which the calls are done.
        """
        self._channel = channel

    def create_tenant(
        self, tenant: str, admin_roles: Iterable[str] = (), allowed_clusters: Iterable[str] = ()
    ) -> None:
        """Create a tenant.

        Args:
            tenant: A name of letters, digits and - = : . _
            admin_roles: Roles that may use and administer everything in the tenant, where a service
                authenticates its clients.
            allowed_clusters: Kept for `get_tenant_info`; without effect.

        Raises:
            NotAllowedError: It exists, or is `pulsar`, which is reserved.
            ValueError: A list of names is a str.
            InvalidTopicName: It is no name of one.

        Durability:
            It is on the device when this returns.
        """
        self._channel.perform("tenants.create_tenant", _info(tenant, admin_roles, allowed_clusters))

    def update_tenant(
        self, tenant: str, admin_roles: Iterable[str] = (), allowed_clusters: Iterable[str] = ()
    ) -> None:
        """Replace what `get_tenant_info` returns. Producers and consumers of a role that is no
        longer an administrator are closed.

        Args:
            tenant: A name.
            admin_roles: As create_tenant.
            allowed_clusters: As create_tenant.

        Raises:
            TopicNotFound: There is no such tenant.
            ValueError: A list of names is a str.

        Durability:
            It is on the device when this returns.
        """
        self._channel.perform("tenants.update_tenant", _info(tenant, admin_roles, allowed_clusters))

    def delete_tenant(self, tenant: str, force: bool = False) -> None:
        """Delete a tenant.

        Args:
            tenant: A name.
            force: Its namespaces are deleted too, with their topics, whose producers, consumers and
                readers are closed.

        Raises:
            NotAllowedError: It has namespaces.
            TopicNotFound: There is no such tenant.

        Durability:
            It is gone from the device when this returns.
        """
        self._channel.perform("tenants.delete_tenant", {"tenant": tenant, "force": bool(force)})

    def get_tenants(self) -> list[str]:
        """Return the names of all tenants."""
        found: list[str] = self._channel.perform("tenants.get_tenants", {})
        return found

    def get_tenant_info(self, tenant: str) -> dict[str, list[str]]:
        """Return {"admin_roles": names, "allowed_clusters": names}.

        Args:
            tenant: A name.

        Raises:
            TopicNotFound: There is no such tenant.
        """
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
