"""`client.admin.namespaces`: namespaces, and the policies that hold for all topics of one."""

from __future__ import annotations

from pulsarx.admin.backlog_quotas import BacklogQuotas
from pulsarx.admin.policy_methods import NamespacePolicies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.admin.channel import Channel


class Namespaces(BacklogQuotas, NamespacePolicies):
    """Any thread may call. TopicNotFound: there is no such namespace."""

    _LEVEL = "namespace"

    def __init__(self, channel: Channel) -> None:
        """Use `Admin.namespaces`.

        Args:
            channel: By which the calls are done.
        """
        self._channel = channel

    def create_namespace(self, namespace: str) -> None:
        """Create a namespace.

        Args:
            namespace: `tenant/namespace`.

        Raises:
            NotAllowedError: It exists, or its tenant is the system's.
            TopicNotFound: Its tenant does not exist.
            InvalidTopicName: It is no name of one.

        Durability:
            It is on the device when this returns.

        Example:
            client.admin.tenants.create_tenant("shop")
            client.admin.namespaces.create_namespace("shop/orders")
        """
        self._channel.perform("namespaces.create_namespace", {"namespace": namespace})

    def delete_namespace(self, namespace: str, force: bool = False) -> None:
        """Delete a namespace with its policies.

        Args:
            namespace: `tenant/namespace`.
            force: Its topics go too, in the same commit, and their producers, consumers and readers
                are closed.

        Raises:
            NotAllowedError: It has topics.
            TopicNotFound: There is no such namespace.

        Durability:
            It is gone from the device when this returns.
        """
        arguments = {"namespace": namespace, "force": bool(force)}
        self._channel.perform("namespaces.delete_namespace", arguments)

    def get_namespaces(self, tenant: str = "public") -> list[str]:
        """Return the names of the namespaces of a tenant, as `tenant/namespace`.

        Args:
            tenant: A name.

        Raises:
            TopicNotFound: There is no such tenant.
        """
        found: list[str] = self._channel.perform("namespaces.get_namespaces", {"tenant": tenant})
        return found

    def get_topics(self, namespace: str) -> list[str]:
        """Return the full names of the topics of a namespace that hold messages: for a partitioned
        topic, its partitions. System topics are left out.

        Args:
            namespace: `tenant/namespace`.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        arguments = {"namespace": namespace}
        found: list[str] = self._channel.perform("namespaces.get_topics", arguments)
        return found

    def get_policies(self, namespace: str) -> dict[str, Any]:
        """Return the policies that are set for the namespace, by name.

        Args:
            namespace: `tenant/namespace`.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        arguments = {"namespace": namespace}
        found: dict[str, Any] = self._channel.perform("namespaces.get_policies", arguments)
        return found

    def grant_permission_on_namespace(
        self, namespace: str, role: str, actions: Iterable[str]
    ) -> None:
        """Let a role use all topics of a namespace through a service that authenticates its
        clients.

        Args:
            namespace: `tenant/namespace`.
            role: As the service names it.
            actions: `produce` and `consume`; they replace those granted before.

        Raises:
            TopicNotFound: There is no such namespace.
            ValueError: There is no such action, or no role.

        Durability:
            It is on the device when this returns.
        """
        arguments = {"namespace": namespace, "role": role, "actions": list(actions)}
        self._channel.perform("namespaces.grant_permission", arguments)

    def revoke_permissions_on_namespace(self, namespace: str, role: str) -> None:
        """Take back what a role was granted on a namespace; what it was granted on single topics
        stays. Its producers and consumers are closed.

        Args:
            namespace: `tenant/namespace`.
            role: As the service names it.

        Raises:
            TopicNotFound: There is no such namespace.

        Durability:
            It is on the device when this returns.
        """
        arguments = {"namespace": namespace, "role": role}
        self._channel.perform("namespaces.revoke_permissions", arguments)

    def get_permissions(self, namespace: str) -> dict[str, list[str]]:
        """Return roles, and what they were granted on the namespace.

        Args:
            namespace: `tenant/namespace`.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        arguments = {"namespace": namespace}
        found: dict[str, list[str]] = self._channel.perform("namespaces.get_permissions", arguments)
        return found

    def grant_permission_on_subscription(
        self, namespace: str, subscription: str, roles: Iterable[str]
    ) -> None:
        """Let these roles alone use subscriptions of this name, on those topics of the namespace
        that they may consume. The consumers of others are closed.

        Args:
            namespace: `tenant/namespace`.
            subscription: Its name. It need not exist.
            roles: As the service names them; they replace those granted before.

        Raises:
            TopicNotFound: There is no such namespace.
            ValueError: No roles, or no name of a subscription.

        Durability:
            It is on the device when this returns.
        """
        arguments = {"namespace": namespace, "subscription": subscription, "roles": list(roles)}
        self._channel.perform("namespaces.grant_permission_on_subscription", arguments)

    def revoke_permission_on_subscription(
        self, namespace: str, subscription: str, role: str
    ) -> None:
        """Take back what a role was granted on subscriptions of this name. When none is left,
        whoever may consume uses them again, as in Pulsar.

        Args:
            namespace: `tenant/namespace`.
            subscription: Its name.
            role: As the service names it.

        Raises:
            SubscriptionNotFound: It was not granted.
            TopicNotFound: There is no such namespace.

        Durability:
            It is on the device when this returns.
        """
        arguments = {"namespace": namespace, "subscription": subscription, "role": role}
        self._channel.perform("namespaces.revoke_permission_on_subscription", arguments)

    def get_permission_on_subscription(self, namespace: str) -> dict[str, list[str]]:
        """Return names of subscriptions, and the roles that alone may use them.

        Args:
            namespace: `tenant/namespace`.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        found: dict[str, list[str]] = self._channel.perform(
            "namespaces.get_permission_on_subscription", {"namespace": namespace}
        )
        return found

    def set_subscription_auth_mode(self, namespace: str, mode: str) -> None:
        """Set which subscriptions a role may use. The consumers of others are closed.

        Args:
            namespace: `tenant/namespace`.
            mode: `Prefix`: those whose names begin with its own, and readers by
                subscription_role_prefix; `None`: any.

        Raises:
            ValueError: There is no such mode.
            TopicNotFound: There is no such namespace.

        Durability:
            It is on the device when this returns.
        """
        arguments = {"namespace": namespace, "mode": mode}
        self._channel.perform("namespaces.set_subscription_auth_mode", arguments)

    def get_subscription_auth_mode(self, namespace: str) -> str:
        """Return the mode: `None` or `Prefix`.

        Args:
            namespace: `tenant/namespace`.

        Raises:
            TopicNotFound: There is no such namespace.
        """
        found: str = self._channel.perform(
            "namespaces.get_subscription_auth_mode", {"namespace": namespace}
        )
        return found
