"""What roles may do on the topics of a namespace: a policy of the namespace, as Pulsar has it.

{"namespace": {role: actions}, "topics": {full name: {role: actions}}}, without empty parts.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.catalogue import changes
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.catalogue.operations import Operation
    from pulsarx.broker.catalogue.state import CatalogueState

PERMISSIONS = "permissions"
PRODUCE, CONSUME = "produce", "consume"
_OTHER_ACTIONS = ("functions", "sources", "sinks", "packages")  # of Pulsar
_ROLE_SIZE_MAX = 1024  # characters


def actions_of(policies: dict[str, Any], role: str, topic: str | None) -> set[str]:
    """What a role was granted on a topic by its full name, or on all of the namespace. policies: of
    the namespace."""
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
    return _made(namespace, topics)


def _made(namespace: dict[str, Any], topics: dict[str, Any]) -> dict[str, Any] | None:
    topics = {name: roles for name, roles in topics.items() if roles}
    parts = {"namespace": namespace, "topics": topics}
    return {name: part for name, part in parts.items() if part} or None


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
                f"permission for {each}: only {PRODUCE} and {CONSUME} are asked for here"
            )
        if each not in (PRODUCE, CONSUME):
            raise ValueError(f"an action is {PRODUCE} or {CONSUME}, not {each!r:.100}")
    if not actions:
        raise ValueError("no actions are given; to take all back, revoke them")
    return sorted(set(actions))


def checked_permissions(value: object) -> dict[str, Any]:
    """What roles are granted on a namespace as a whole. ValueError, OperationNotSupported: see
    checked_role and checked_actions."""
    if not isinstance(value, dict) or set(value) != {"namespace"}:
        raise ValueError(f"{PERMISSIONS}: {value!r:.200} is no such policy")
    granted = value["namespace"]
    if not isinstance(granted, dict) or not all(
        isinstance(each, list) for each in granted.values()
    ):
        raise ValueError(f"{PERMISSIONS}: {granted!r:.200} has no list of actions for each role")
    return {
        "namespace": {
            checked_role(role): checked_actions(actions) for role, actions in granted.items()
        }
    }


def forgetting(state: CatalogueState, topics: Iterable[str]) -> list[Operation]:
    """What a commit that deletes topics says besides: who makes a topic of that name again gets it
    without the permissions of the old one."""
    gone: dict[str, set[str]] = {}
    for each in topics:
        gone.setdefault(TopicName.of(each).namespace_name, set()).add(each)
    found = []
    for namespace, names in gone.items():
        old = (state.namespaces.get(namespace) or {}).get(PERMISSIONS, {})
        kept = {name: roles for name, roles in old.get("topics", {}).items() if name not in names}
        if len(kept) != len(old.get("topics", {})):
            value = _made(old.get("namespace", {}), kept)
            found.append(changes.set_namespace_policy(namespace, PERMISSIONS, value))
    return found
