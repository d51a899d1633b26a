"""Routes of policies, of namespaces and topics, as `broker/policies/table` has them.

GET gives what is set at that level, or with `applied=true` what is in force.
"""

from __future__ import annotations

from functools import partial

from pulsarx.broker.policies import policy_row
from pulsarx.broker.policies.quota_types import QUOTA_TYPES, quota_name
from pulsarx.broker.policies.table import POLICIES, TABLE
from pulsarx.rest.call import Refusal, whole
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.policies.policy_row import Policy, Rest
    from pulsarx.rest.call import Call

    Json = dict[str, Any]

NAMESPACE = "/admin/v2/namespaces/{tenant}/{namespace}"
TOPIC = "/admin/v2/{domain}/{tenant}/{namespace}/{topic}"
PREFIXES = {policy_row.NAMESPACE: NAMESPACE, policy_row.TOPIC: TOPIC}
_APPLIED = ("applied",)
QUOTA = POLICIES[quota_name(QUOTA_TYPES[0])]  # those of all types are written alike


def target_of(level: str, call: Call) -> str:
    return call.namespace if level == "namespace" else call.topic


def value_of(policy: Policy, level: str, call: Call) -> Any:
    """The value that is set, in JSON; None: none is."""
    target = {level: target_of(level, call)}
    found = call.perform(f"{level}s.get_policy", name=policy.name, **target)
    return None if found is None else policy.shown(found)


def _answer(policy: Policy, rest: Rest, level: str, call: Call) -> Any:
    found = value_of(policy, level, call)
    if found is not None or not call.flag("applied"):
        return rest.unset.get(level) if found is None else found
    if level == policy_row.TOPIC:
        found = value_of(policy, policy_row.NAMESPACE, call)
    if found is None:
        return policy.shown(policy.unset(call.host.broker.settings.options))
    return found


def _set(policy: Policy, rest: Rest, level: str, call: Call) -> None:
    named = call.query.get(rest.query or "")
    if policy.kind.body == "string":
        found: Any = call.json_text()
    else:
        found = call.json() if named is None else whole(policy.name, named)
    try:
        value = policy.read(found)
    except ValueError as error:
        raise Refusal(400, f"{policy.name}: {error}") from None
    _put(policy, level, call, value)


def _remove(policy: Policy, level: str, call: Call) -> None:
    _put(policy, level, call, None)


def _put(policy: Policy, level: str, call: Call, value: object) -> None:
    """None takes it away."""
    target = {level: target_of(level, call)}
    call.perform(f"{level}s.set_policy", policy={policy.name: value}, **target)


# Backlog quotas -----------------------------------------------------------------------------------


def quotas_of(level: str, call: Call) -> Json:
    """By type, as far as they are set."""
    found = {}
    for kind in QUOTA_TYPES:
        name = quota_name(kind)
        value = call.perform(f"{level}s.get_policy", name=name, **{level: target_of(level, call)})
        if value is not None:
            found[kind] = POLICIES[name].shown(value)
    return found


def _set_quota(level: str, call: Call) -> None:
    try:
        value = QUOTA.read(call.json())
    except ValueError as error:
        raise Refusal(400, f"backlog quota: {error}") from None
    _put_quota(level, call, value)


def _remove_quota(level: str, call: Call) -> None:
    _put_quota(level, call, None)


def _put_quota(level: str, call: Call, value: object) -> None:
    kind = call.query.get("backlogQuotaType") or QUOTA_TYPES[0]
    if kind not in QUOTA_TYPES:
        raise Refusal(412, f"there is no backlog quota of type {kind!r:.100}")
    policy = {quota_name(kind): value}
    call.perform(f"{level}s.set_policy", policy=policy, **{level: target_of(level, call)})


# The routes ---------------------------------------------------------------------------------------


def routes_of(policies: Iterable[Policy]) -> list[Route]:
    """The routes of these policies, on the levels where Pulsar has them."""
    return [
        route
        for level, prefix in PREFIXES.items()
        for each in policies
        if each.rest is not None and each.rest.paths[level] is not None
        for route in _routes_of(each, each.rest, level, f"{prefix}/{each.rest.paths[level]}")
    ]


def _routes_of(policy: Policy, rest: Rest, level: str, path: str) -> list[Route]:
    said = f"the {policy.name.replace('_', ' ')} of a {level}."
    return [
        Route(
            "GET", path, partial(_answer, policy, rest, level), f"Get {said}", query=("applied",)
        ),
        Route(
            rest.methods[level],
            path,
            partial(_set, policy, rest, level),
            f"Set {said}",
            query=() if rest.query is None else (rest.query,),
            body=rest.body or policy.kind.body,
            refused=412,
            invalid=rest.invalid,
        ),
        Route("DELETE", path, partial(_remove, policy, level), f"Remove {said}"),
    ]


def _quota_routes(level: str, prefix: str) -> list[Route]:
    kind = ("backlogQuotaType",)
    quota = f"{prefix}/backlogQuota"
    return [
        Route(
            "GET",
            f"{prefix}/backlogQuotaMap",
            partial(quotas_of, level),
            f"Get the backlog quotas of a {level}.",
        ),
        Route(
            "POST",
            quota,
            partial(_set_quota, level),
            f"Set a backlog quota of a {level}.",
            query=kind,
            body="BacklogQuota",
            refused=412,
        ),
        Route(
            "DELETE",
            quota,
            partial(_remove_quota, level),
            f"Remove a backlog quota of a {level}.",
            query=kind,
        ),
    ]


ROUTES = [
    *routes_of(TABLE),
    *(route for level, prefix in PREFIXES.items() for route in _quota_routes(level, prefix)),
]
