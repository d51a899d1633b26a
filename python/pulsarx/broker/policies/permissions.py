"""The permissions of roles on the topics of a namespace: a policy of the namespace, as Pulsar has
it.

{"namespace": {role: actions}, "topics": {full name: {role: actions}}, "subscriptions": {name:
roles}, "subscription_auth_mode": "Prefix"}, without empty parts. Roles of a subscription alone may
use one of that name, on whatever topic of the namespace they may consume; all may use those that
are not named.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.state import CatalogueState

PERMISSIONS = "permissions"
PRODUCE, CONSUME = "produce", "consume"
PREFIX = "Prefix"  # a role uses subscriptions whose names begin with its own
_MODE = "subscription_auth_mode"
_MODES = ("None", PREFIX)
_OTHER_ACTIONS = ("functions", "sources", "sinks", "packages")  # of Pulsar
_ROLE_SIZE_MAX = 1024  # characters


def actions_of(policies: dict[str, Any], role: str, topic: str | None) -> set[str]:
    """The actions that a role was granted on a topic by its full name, or on all of the namespace.
    policies: of the namespace."""
    found = policies.get(PERMISSIONS, {})
    level = found.get("namespace", {}) if topic is None else found.get("topics", {}).get(topic, {})
    return set(level.get(role, ()))


def roles_of(policies: dict[str, Any], topic: str | None) -> dict[str, list[str]]:
    """Roles and what they were granted; on a topic with what they have on its namespace."""
    found = policies.get(PERMISSIONS, {})
    made = {role: set(actions) for role, actions in found.get("namespace", {}).items()}
    if topic is not None:
        for name in dict.fromkeys((topic, TopicName.of(topic).partitioned_name)):
            for role, actions in found.get("topics", {}).get(name, {}).items():
                made.setdefault(role, set()).update(actions)
    return {role: sorted(actions) for role, actions in sorted(made.items())}


def may_use_subscription(policies: dict[str, Any], role: str, subscription: str) -> bool:
    """Whether a role that may consume may do it by the subscription of this name.

    Source: Pulsar's PulsarAuthorizationProvider.canConsumeAsync.
    """
    found = policies.get(PERMISSIONS, {})
    roles = found.get("subscriptions", {}).get(subscription)
    if roles and role not in roles:
        return False
    return found.get(_MODE) != PREFIX or subscription.startswith(role)


def roles_of_subscriptions(policies: dict[str, Any]) -> dict[str, list[str]]:
    """Names of subscriptions, and the roles that alone may use them."""
    found: dict[str, list[str]] = policies.get(PERMISSIONS, {}).get("subscriptions", {})
    return dict(sorted(found.items()))


def subscription_auth_mode(policies: dict[str, Any]) -> str:
    """`None` or `Prefix`."""
    found: str = policies.get(PERMISSIONS, {}).get(_MODE, "None")
    return found


def with_roles(
    policies: dict[str, Any], subscription: str, roles: list[str]
) -> dict[str, Any] | None:
    """The policy after roles alone may use a subscription; after no roles, whoever may consume."""
    found = policies.get(PERMISSIONS, {})
    named = {**found.get("subscriptions", {}), subscription: roles}
    return _made({**found, "subscriptions": {name: each for name, each in named.items() if each}})


def with_mode(policies: dict[str, Any], mode: str) -> dict[str, Any] | None:
    """The policy after the mode was set. ValueError: there is no such mode."""
    if mode not in _MODES:
        raise ValueError(f"a subscription auth mode is None or Prefix, not {mode!r:.100}")
    return _made({**policies.get(PERMISSIONS, {}), _MODE: mode if mode == PREFIX else None})


def changed(
    policies: dict[str, Any], role: str, topic: str | None, actions: list[str] | None
) -> dict[str, Any] | None:
    """The policy after a grant, which replaces an earlier one; None: after it was taken back."""
    found = policies.get(PERMISSIONS, {})
    namespace, topics = dict(found.get("namespace", {})), dict(found.get("topics", {}))
    level = namespace if topic is None else dict(topics.get(topic, {}))
    if actions is None:
        level.pop(role, None)
    else:
        level[role] = actions
    if topic is not None:
        topics[topic] = level
    return _made({**found, "namespace": namespace, "topics": topics})


def _made(parts: dict[str, Any]) -> dict[str, Any] | None:
    topics = {name: roles for name, roles in parts.get("topics", {}).items() if roles}
    return {name: part for name, part in {**parts, "topics": topics}.items() if part} or None


def checked_role(role: str) -> str:
    """ValueError: it cannot be one."""
    if not role.strip() or len(role) > _ROLE_SIZE_MAX or not role.isprintable():
        raise ValueError(f"a role is a text of 1 to {_ROLE_SIZE_MAX} characters, not {role!r:.100}")
    return role


def checked_actions(actions: list[Any]) -> list[str]:
    """ValueError: no actions, or none that there are. OperationNotSupported: actions that nothing
    here asks for."""
    for each in actions:
        if each in _OTHER_ACTIONS:
            raise errors.OperationNotSupported(
                detail=f"permission for {each}: only {PRODUCE} and {CONSUME} are asked for here"
            )
        if each not in (PRODUCE, CONSUME):
            raise ValueError(f"an action is {PRODUCE} or {CONSUME}, not {each!r:.100}")
    if not actions:
        raise ValueError("no actions are given; to take all back, revoke them")
    return sorted(set(actions))


def checked_roles(roles: list[Any]) -> list[str]:
    """The roles that alone may use a subscription. ValueError: there are none, or some cannot be
    one."""
    if not roles:
        raise ValueError("no roles are given; to let everybody use it, revoke those it has")
    for each in roles:
        if not isinstance(each, str):
            raise ValueError(f"a role is a text, not {each!r:.100}")
    return sorted({checked_role(each) for each in roles})


def checked_permissions(value: object) -> dict[str, Any]:
    """Check the permissions that a namespace is made with: those of roles on it as a whole, the
    roles of subscriptions and the mode. ValueError, OperationNotSupported: see checked_role and
    checked_actions."""
    if not isinstance(value, dict) or not set(value) <= {"namespace", "subscriptions", _MODE}:
        raise ValueError(f"{PERMISSIONS}: {value!r:.200} is no such policy")
    granted, named = value.get("namespace", {}), value.get("subscriptions", {})
    if not _has_lists(granted):
        raise ValueError(f"{PERMISSIONS}: {granted!r:.200} has no list of actions for each role")
    if not _has_lists(named):
        raise ValueError(f"{PERMISSIONS}: {named!r:.200} has no list of roles for each name")
    made: dict[str, Any] = {
        "namespace": {
            checked_role(role): checked_actions(actions) for role, actions in granted.items()
        },
        # Pulsar has a name without roles, too, which says nothing.
        "subscriptions": {name: checked_roles(roles) for name, roles in named.items() if roles},
    }
    return _made({**made, **(with_mode({}, value.get(_MODE, "None")) or {})}) or {}


def _has_lists(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, list) for each in value.values())


def forgetting(state: CatalogueState, topics: Iterable[str]) -> list[Operation]:
    """The operations that a commit which deletes topics has besides: whoever makes a topic of that
    name again gets it without the permissions of the old one."""
    gone: dict[str, set[str]] = {}
    for each in topics:
        gone.setdefault(TopicName.of(each).namespace_name, set()).add(each)
    found = []
    for namespace, names in gone.items():
        old = (state.namespaces.get(namespace) or {}).get(PERMISSIONS, {})
        kept = {name: roles for name, roles in old.get("topics", {}).items() if name not in names}
        if len(kept) != len(old.get("topics", {})):
            value = _made({**old, "topics": kept})
            found.append(changes.set_namespace_policy(namespace, PERMISSIONS, value))
    return found
