"""Verbs about what roles may do, on the topics of a namespace or on one."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.broker.policies.permissions import (
    PERMISSIONS,
    changed,
    checked_actions,
    checked_role,
    checked_roles,
    roles_of,
    roles_of_subscriptions,
    subscription_auth_mode,
    with_mode,
    with_roles,
)
from pulsarx.broker.verbs.http import Http
from pulsarx.broker.verbs.verb import TENANT_ADMIN, verb
from pulsarx.topic_name import check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.faces import OpenFolder
    from pulsarx.topic_name import TopicName


@verb("namespaces.grant_permission", needs=TENANT_ADMIN,
    http=Http("POST", "/namespaces/{namespace}/permissions/{role}",
        "Grant a role permissions on a namespace.", body="a list of actions",
        argument="actions"))  # fmt: skip
def grant_on_namespace(broker: Broker, namespace: str, role: str, actions: list[Any]) -> None:
    """Replaces what the role had there."""
    _change(broker, namespace, None, checked_role(role), checked_actions(actions))


@verb("namespaces.revoke_permissions", needs=TENANT_ADMIN,
    http=Http("DELETE", "/namespaces/{namespace}/permissions/{role}",
        "Revoke all permissions of a role on a namespace."))  # fmt: skip
def revoke_on_namespace(broker: Broker, namespace: str, role: str) -> None:
    _change(broker, namespace, None, role, None)


@verb("namespaces.get_permissions", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "/namespaces/{namespace}/permissions", "Get the permissions of roles.",
        answer="actions of roles"))  # fmt: skip
def get_on_namespace(folder: OpenFolder, namespace: str) -> dict[str, list[str]]:
    folder.refresh()
    return roles_of(_policies(folder.catalogue.state, namespace), None)


@verb("topics.grant_permission", needs=TENANT_ADMIN,
    http=Http("POST", "{topic}/permissions/{role}", "Grant a role permissions on a topic.",
        body="a list of actions", argument="actions"))  # fmt: skip
def grant_on_topic(broker: Broker, topic: TopicName, role: str, actions: list[Any]) -> None:
    """The topic need not be there yet."""
    role, checked = checked_role(role), checked_actions(actions)
    _change(broker, topic.namespace_name, topic.full, role, checked)


@verb("topics.revoke_permissions", needs=TENANT_ADMIN,
    http=Http("DELETE", "{topic}/permissions/{role}",
        "Revoke all permissions of a role on a topic.", refused=412))  # fmt: skip
def revoke_on_topic(broker: Broker, topic: TopicName, role: str) -> None:
    """NotAllowedError: it was granted nothing on the topic itself."""
    _change(broker, topic.namespace_name, topic.full, role, None)


@verb("topics.get_permissions", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "{topic}/permissions", "Get the permissions of roles on a topic.",
        answer="actions of roles"))  # fmt: skip
def get_on_topic(folder: OpenFolder, topic: TopicName) -> dict[str, list[str]]:
    """With what was granted on its namespace."""
    folder.refresh()
    return roles_of(_policies(folder.catalogue.state, topic.namespace_name), topic.full)


@verb("namespaces.grant_permission_on_subscription", needs=TENANT_ADMIN,
    http=Http("POST", "/namespaces/{namespace}/permissions/subscription/{subscription}",
        "Let roles alone use a subscription.", body="a list of roles",
        argument="roles"))  # fmt: skip
def grant_on_subscription(
    broker: Broker, namespace: str, subscription: str, roles: list[Any]
) -> None:
    """Replaces the roles it had. No subscription of that name need be there."""
    checked = checked_roles(roles)
    check_subscription_name(subscription)
    _commit(broker, namespace, lambda policies: with_roles(policies, subscription, checked))


@verb("namespaces.revoke_permission_on_subscription", needs=TENANT_ADMIN,
    http=Http("DELETE", "/namespaces/{namespace}/permissions/{subscription}/{role}",
        "Revoke the permission of a role on a subscription."))  # fmt: skip
def revoke_on_subscription(broker: Broker, namespace: str, subscription: str, role: str) -> None:
    """SubscriptionNotFound: the role is none of its roles."""

    def without_role(policies: dict[str, Any]) -> dict[str, Any] | None:
        roles = roles_of_subscriptions(policies).get(subscription, [])
        if role not in roles:
            raise errors.SubscriptionNotFound(
                detail=f"revoke permission of role {role} on subscription {subscription} in "
                f"{namespace}: it was not granted"
            )
        return with_roles(policies, subscription, [each for each in roles if each != role])

    _commit(broker, namespace, without_role)


@verb("namespaces.get_permission_on_subscription", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "/namespaces/{namespace}/permissions/subscription",
        "Get the roles that alone may use subscriptions, by their names.",
        answer="roles of subscriptions"))  # fmt: skip
def get_on_subscriptions(folder: OpenFolder, namespace: str) -> dict[str, list[str]]:
    folder.refresh()
    return roles_of_subscriptions(_policies(folder.catalogue.state, namespace))


@verb("namespaces.set_subscription_auth_mode", needs=TENANT_ADMIN,
    http=Http("POST", "/namespaces/{namespace}/subscriptionAuthMode",
        "Set whether roles use subscriptions of their own prefix alone.", body='"None" or "Prefix"',
        argument="mode"))  # fmt: skip
def set_subscription_auth_mode(broker: Broker, namespace: str, mode: str) -> None:
    """ValueError: there is no such mode."""
    _commit(broker, namespace, lambda policies: with_mode(policies, mode))


@verb("namespaces.get_subscription_auth_mode", needs=TENANT_ADMIN, reads=True,
    http=Http("GET", "/namespaces/{namespace}/subscriptionAuthMode",
        "Get whether roles use subscriptions of their own prefix alone.",
        answer="mode"))  # fmt: skip
def get_subscription_auth_mode(folder: OpenFolder, namespace: str) -> str:
    folder.refresh()
    return subscription_auth_mode(_policies(folder.catalogue.state, namespace))


def _policies(state: CatalogueState, namespace: str) -> dict[str, Any]:
    found = state.namespaces.get(namespace)
    if found is None:
        raise errors.TopicNotFound(detail=f"there is no namespace {namespace}")
    return found


def _change(
    broker: Broker, namespace: str, topic: str | None, role: str, actions: list[str] | None
) -> None:
    def change(policies: dict[str, Any]) -> dict[str, Any] | None:
        if topic is not None and actions is None:
            granted = policies.get(PERMISSIONS, {}).get("topics", {}).get(topic, {})
            if role not in granted:
                raise errors.NotAllowedError(
                    detail=f"revoke permissions of role {role} on {topic}: it has none on the "
                    "topic itself"
                )
        return changed(policies, role, topic, actions)

    _commit(broker, namespace, change)


def _commit(
    broker: Broker, namespace: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> None:
    """change: answers what becomes of the policy, of all of the namespace."""

    def operations(state: CatalogueState) -> list[Operation]:
        value = change(_policies(state, namespace))
        return [changes.set_namespace_policy(namespace, PERMISSIONS, value)]

    broker.catalogue.commit(operations)
    broker.permissions_have_changed()
