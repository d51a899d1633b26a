"""Routes of permissions: what roles may do."""

from __future__ import annotations

from pulsarx.rest.call import Refusal
from pulsarx.rest.policies import NAMESPACE, TOPIC
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call


def _of_namespace(call: Call) -> Any:
    return call.perform("namespaces.get_permissions", namespace=call.namespace)


def _of_topic(call: Call) -> Any:
    return call.perform("topics.get_permissions", topic=call.topic)


def _actions(call: Call) -> list[Any]:
    found = call.json()
    if not isinstance(found, list):
        raise Refusal(400, "the body must be a list of actions")
    return found


def _grant_on_namespace(call: Call) -> None:
    call.perform(
        "namespaces.grant_permission",
        namespace=call.namespace,
        role=call.part("role"),
        actions=_actions(call),
    )


def _grant_on_topic(call: Call) -> None:
    call.perform(
        "topics.grant_permission",
        topic=call.topic,
        role=call.part("role"),
        actions=_actions(call),
    )


def _revoke_on_namespace(call: Call) -> None:
    call.perform("namespaces.revoke_permissions", namespace=call.namespace, role=call.part("role"))


def _revoke_on_topic(call: Call) -> None:
    call.perform("topics.revoke_permissions", topic=call.topic, role=call.part("role"))


def _of_subscriptions(call: Call) -> Any:
    return call.perform("namespaces.get_permission_on_subscription", namespace=call.namespace)


def _grant_on_subscription(call: Call) -> None:
    roles = call.json()
    if not isinstance(roles, list):
        raise Refusal(400, "the body must be a list of roles")
    call.perform(
        "namespaces.grant_permission_on_subscription",
        namespace=call.namespace,
        subscription=call.part("subscription"),
        roles=roles,
    )


def _revoke_on_subscription(call: Call) -> None:
    call.perform(
        "namespaces.revoke_permission_on_subscription",
        namespace=call.namespace,
        subscription=call.part("subscription"),
        role=call.part("role"),
    )


def _get_mode(call: Call) -> Any:
    return call.perform("namespaces.get_subscription_auth_mode", namespace=call.namespace)


def _set_mode(call: Call) -> None:
    mode = call.json()
    if not isinstance(mode, str):
        raise Refusal(400, "the body must be the name of a mode")
    call.perform("namespaces.set_subscription_auth_mode", namespace=call.namespace, mode=mode)


_SUBSCRIPTIONS = f"{NAMESPACE}/permissions/subscription"
ROUTES = [
    # In front of the paths of roles: the first that fits is taken, as by Pulsar.
    Route(
        "GET",
        _SUBSCRIPTIONS,
        _of_subscriptions,
        "Get the roles that alone may use subscriptions, by their names.",
    ),
    Route(
        "POST",
        f"{_SUBSCRIPTIONS}/{{subscription}}",
        _grant_on_subscription,
        "Let roles alone use a subscription.",
        body="a list of roles",
    ),
    Route(
        "DELETE",
        f"{NAMESPACE}/permissions/{{subscription}}/{{role}}",
        _revoke_on_subscription,
        "Revoke the permission of a role on a subscription.",
    ),
    Route(
        "GET",
        f"{NAMESPACE}/subscriptionAuthMode",
        _get_mode,
        "Get whether roles use subscriptions of their own prefix alone.",
    ),
    Route(
        "POST",
        f"{NAMESPACE}/subscriptionAuthMode",
        _set_mode,
        "Set whether roles use subscriptions of their own prefix alone.",
        body='"None" or "Prefix"',
    ),
    Route("GET", f"{NAMESPACE}/permissions", _of_namespace, "Get the permissions of roles."),
    Route(
        "POST",
        f"{NAMESPACE}/permissions/{{role}}",
        _grant_on_namespace,
        "Grant a role permissions on a namespace.",
        body="a list of actions",
    ),
    Route(
        "DELETE",
        f"{NAMESPACE}/permissions/{{role}}",
        _revoke_on_namespace,
        "Revoke all permissions of a role on a namespace.",
    ),
    Route("GET", f"{TOPIC}/permissions", _of_topic, "Get the permissions of roles on a topic."),
    Route(
        "POST",
        f"{TOPIC}/permissions/{{role}}",
        _grant_on_topic,
        "Grant a role permissions on a topic.",
        body="a list of actions",
    ),
    Route(
        "DELETE",
        f"{TOPIC}/permissions/{{role}}",
        _revoke_on_topic,
        "Revoke all permissions of a role on a topic.",
        refused=412,
    ),
]
