"""`client.admin.namespaces`: namespaces, and the policies that hold for all topics of one."""

from __future__ import annotations

from pulsarx.admin.compaction_policies import CompactionPolicies
from pulsarx.admin.creation_policies import CreationPolicies
from pulsarx.admin.limit_policies import LimitPolicies
from pulsarx.admin.message_policies import MessagePolicies
from pulsarx.admin.offload_policies import OffloadPolicies
from pulsarx.admin.rate_policies import RatePolicies
from pulsarx.admin.schema_policies import SchemaPolicies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.admin.channel import Channel


class Namespaces(
    CreationPolicies,
    SchemaPolicies,
    MessagePolicies,
    RatePolicies,
    LimitPolicies,
    CompactionPolicies,
    OffloadPolicies,
):
    """Any thread may call. TopicNotFound: there is no such namespace."""

    _LEVEL = "namespace"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def create_namespace(self, namespace: str) -> None:
        """Create `tenant/namespace`. NotAllowedError: it exists. TopicNotFound: its tenant does
        not. Durable on return."""
        self._channel.perform("namespaces.create_namespace", {"namespace": namespace})

    def delete_namespace(self, namespace: str, force: bool = False) -> None:
        """Delete a namespace with its policies. NotAllowedError: it has topics.

        force: they go too, in the same commit, and their producers, consumers and readers are
        closed. Durable on return.
        """
        arguments = {"namespace": namespace, "force": bool(force)}
        self._channel.perform("namespaces.delete_namespace", arguments)

    def get_namespaces(self, tenant: str = "public") -> list[str]:
        """Names of the namespaces of a tenant, as `tenant/namespace`. TopicNotFound: there is no
        such tenant."""
        found: list[str] = self._channel.perform("namespaces.get_namespaces", {"tenant": tenant})
        return found

    def get_topics(self, namespace: str) -> list[str]:
        """Return the full names of the topics of a namespace that hold messages: for a partitioned
        topic, its partitions. System topics are left out."""
        arguments = {"namespace": namespace}
        found: list[str] = self._channel.perform("namespaces.get_topics", arguments)
        return found

    def get_policies(self, namespace: str) -> dict[str, Any]:
        """The policies that are set for the namespace, by name."""
        arguments = {"namespace": namespace}
        found: dict[str, Any] = self._channel.perform("namespaces.get_policies", arguments)
        return found

    def set_auto_topic_creation(
        self, namespace: str, allowed: bool, type: str = "non-partitioned", partitions: int = 1
    ) -> None:
        """Set whether a producer, consumer or reader creates the topic that it names, and of which
        kind: `non-partitioned`, or `partitioned` with that many partitions. If not, TopicNotFound
        is raised. Durable on return."""
        value = {"allowed": allowed, "type": type, "partitions": partitions}
        self._set_creation_policy(namespace, "auto_topic_creation", value)

    def get_auto_topic_creation(self, namespace: str) -> dict[str, Any] | None:
        """{"allowed", "type", "partitions"} as set for the namespace; None: nothing is."""
        found: dict[str, Any] | None = self._get_creation_policy(namespace, "auto_topic_creation")
        return found

    def remove_auto_topic_creation(self, namespace: str) -> None:
        """The broker's options hold again."""
        self._set_creation_policy(namespace, "auto_topic_creation", None)

    def grant_permission_on_namespace(
        self, namespace: str, role: str, actions: Iterable[str]
    ) -> None:
        """Let a role use all topics of a namespace through a service that authenticates its
        clients: actions are `produce` and `consume`, and replace those granted before. Durable on
        return."""
        arguments = {"namespace": namespace, "role": role, "actions": list(actions)}
        self._channel.perform("namespaces.grant_permission", arguments)

    def revoke_permissions_on_namespace(self, namespace: str, role: str) -> None:
        """Take back what a role was granted on a namespace; what it was granted on single topics
        stays. Its producers and consumers are closed. Durable on return."""
        arguments = {"namespace": namespace, "role": role}
        self._channel.perform("namespaces.revoke_permissions", arguments)

    def get_permissions(self, namespace: str) -> dict[str, list[str]]:
        """Roles, and what they were granted on the namespace."""
        arguments = {"namespace": namespace}
        found: dict[str, list[str]] = self._channel.perform("namespaces.get_permissions", arguments)
        return found

    def grant_permission_on_subscription(
        self, namespace: str, subscription: str, roles: Iterable[str]
    ) -> None:
        """Let these roles alone use subscriptions of this name, on those topics of the namespace
        that they may consume; they replace those granted before. The consumers of others are
        closed. Durable on return."""
        arguments = {"namespace": namespace, "subscription": subscription, "roles": list(roles)}
        self._channel.perform("namespaces.grant_permission_on_subscription", arguments)

    def revoke_permission_on_subscription(
        self, namespace: str, subscription: str, role: str
    ) -> None:
        """Take back what a role was granted on subscriptions of this name. When none is left,
        whoever may consume uses them again, as in Pulsar. Durable on return. SubscriptionNotFound:
        it was not granted."""
        arguments = {"namespace": namespace, "subscription": subscription, "role": role}
        self._channel.perform("namespaces.revoke_permission_on_subscription", arguments)

    def get_permission_on_subscription(self, namespace: str) -> dict[str, list[str]]:
        """Names of subscriptions, and the roles that alone may use them."""
        found: dict[str, list[str]] = self._channel.perform(
            "namespaces.get_permission_on_subscription", {"namespace": namespace}
        )
        return found

    def set_subscription_auth_mode(self, namespace: str, mode: str) -> None:
        """`Prefix`: a role uses subscriptions whose names begin with its own, and readers by
        subscription_role_prefix; `None`: any. The consumers of others are closed. Durable on
        return."""
        arguments = {"namespace": namespace, "mode": mode}
        self._channel.perform("namespaces.set_subscription_auth_mode", arguments)

    def get_subscription_auth_mode(self, namespace: str) -> str:
        """`None` or `Prefix`."""
        found: str = self._channel.perform(
            "namespaces.get_subscription_auth_mode", {"namespace": namespace}
        )
        return found

    def set_max_topics_per_namespace(self, namespace: str, count: int) -> None:
        """Set how many topics the namespace may have; each partition counts, system topics do not.
        Creating more raises NotAllowedError; existing ones stay. 0: no limit, whatever the option
        of the same name says. Durable on return."""
        self._set_limit(namespace, "max_topics_per_namespace", count)

    def get_max_topics_per_namespace(self, namespace: str) -> int | None:
        """What was set here; None: nothing was."""
        return self._get_limit(namespace, "max_topics_per_namespace")

    def remove_max_topics_per_namespace(self, namespace: str) -> None:
        """Take back what was set here. Durable on return."""
        self._set_limit(namespace, "max_topics_per_namespace", None)

    def set_deduplication(self, namespace: str, enabled: bool) -> None:
        """Set whether the topics of a namespace recognise messages that are sent again by their
        sequence ids, and do not store them again. Applies to open producers at once. Durable on
        return."""
        if not isinstance(enabled, bool):
            raise ValueError(f"enabled must be a bool, not {type(enabled).__name__}")
        self._set_creation_policy(namespace, "deduplication", enabled)

    def get_deduplication(self, namespace: str) -> bool | None:
        """What was set here; None: nothing was."""
        found: bool | None = self._get_creation_policy(namespace, "deduplication")
        return found

    def remove_deduplication(self, namespace: str) -> None:
        """Take back what was set here. Durable on return."""
        self._set_creation_policy(namespace, "deduplication", None)
