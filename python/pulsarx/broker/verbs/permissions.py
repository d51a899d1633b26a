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
from pulsarx.broker.verbs.verb import Verb
from pulsarx.topic_name import TopicName, check_subscription_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.faces import OpenFolder


def grant_on_namespace(broker: Broker, namespace: str, role: str, actions: list[Any]) -> None:
    """Replaces what the role had there."""
    _change(broker, namespace, None, checked_role(role), checked_actions(actions))


def revoke_on_namespace(broker: Broker, namespace: str, role: str) -> None:
    _change(broker, namespace, None, role, None)


def get_on_namespace(folder: OpenFolder, namespace: str) -> dict[str, list[str]]:
    folder.refresh()
    return roles_of(_policies(folder.catalogue.state, namespace), None)


def grant_on_topic(broker: Broker, topic: str, role: str, actions: list[Any]) -> None:
    """The topic need not be there yet."""
    name = TopicName.of(topic)
    role, checked = checked_role(role), checked_actions(actions)
    _change(broker, name.namespace_name, name.full, role, checked)


def revoke_on_topic(broker: Broker, topic: str, role: str) -> None:
    """NotAllowedError: it was granted nothing on the topic itself."""
    name = TopicName.of(topic)
    _change(broker, name.namespace_name, name.full, role, None)


def get_on_topic(folder: OpenFolder, topic: str) -> dict[str, list[str]]:
    """With what was granted on its namespace."""
    folder.refresh()
    name = TopicName.of(topic)
    return roles_of(_policies(folder.catalogue.state, name.namespace_name), name.full)


def grant_on_subscription(
    broker: Broker, namespace: str, subscription: str, roles: list[Any]
) -> None:
    """Replaces the roles it had. No subscription of that name need be there."""
    checked = checked_roles(roles)
    check_subscription_name(subscription)
    _commit(broker, namespace, lambda policies: with_roles(policies, subscription, checked))


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


def get_on_subscriptions(folder: OpenFolder, namespace: str) -> dict[str, list[str]]:
    folder.refresh()
    return roles_of_subscriptions(_policies(folder.catalogue.state, namespace))


def set_subscription_auth_mode(broker: Broker, namespace: str, mode: str) -> None:
    """ValueError: there is no such mode."""
    _commit(broker, namespace, lambda policies: with_mode(policies, mode))


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


_ON_NAMESPACE = {"namespace": str, "role": str}
_ON_SUBSCRIPTION = {"namespace": str, "subscription": str}
_ON_TOPIC = {"topic": str, "role": str}
VERBS = {
    "namespaces.grant_permission": Verb(grant_on_namespace, {**_ON_NAMESPACE, "actions": list}),
    "namespaces.revoke_permissions": Verb(revoke_on_namespace, _ON_NAMESPACE),
    "namespaces.get_permissions": Verb(get_on_namespace, {"namespace": str}, reads=True),
    "namespaces.grant_permission_on_subscription": Verb(
        grant_on_subscription, {**_ON_SUBSCRIPTION, "roles": list}
    ),
    "namespaces.revoke_permission_on_subscription": Verb(
        revoke_on_subscription, {**_ON_SUBSCRIPTION, "role": str}
    ),
    "namespaces.get_permission_on_subscription": Verb(
        get_on_subscriptions, {"namespace": str}, reads=True
    ),
    "namespaces.set_subscription_auth_mode": Verb(
        set_subscription_auth_mode, {"namespace": str, "mode": str}
    ),
    "namespaces.get_subscription_auth_mode": Verb(
        get_subscription_auth_mode, {"namespace": str}, reads=True
    ),
    "topics.grant_permission": Verb(grant_on_topic, {**_ON_TOPIC, "actions": list}),
    "topics.revoke_permissions": Verb(revoke_on_topic, _ON_TOPIC),
    "topics.get_permissions": Verb(get_on_topic, {"topic": str}, reads=True),
}
