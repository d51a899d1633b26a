"""Routes of policies that PulsarX does not have: nothing is set, and setting is refused, but to
what is in force."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx.admin.http_forms import CLUSTER
from pulsarx.rest.policies import PREFIXES, target_of
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call

# What GET tells, as Pulsar where nothing was set; and the method that sets.
_NAMESPACE: dict[str, tuple[Any, str]] = {
    "properties": ({}, "PUT"),
    "replication": ([CLUSTER], "POST"),
    "allowedClusters": ([], "POST"),
    "persistence": (None, "POST"),
    "deduplicationSnapshotInterval": (None, "POST"),
    "encryptionRequired": (False, "POST"),
    "antiAffinity": (None, "POST"),
    "resourcegroup": (None, ""),
    "entryFilters": (None, "POST"),
    "replicatorDispatchRate": (None, "POST"),
    "offloadPolicies": (None, "POST"),
    "offloadThresholdInSeconds": (-1, "PUT"),
}
_TOPIC: dict[str, tuple[Any, str]] = {
    "replication": (None, "POST"),
    "persistence": (None, "POST"),
    "maxMessageSize": (None, "POST"),
    "deduplicationSnapshotInterval": (None, "POST"),
    "entryFilters": (None, "POST"),
    "replicatorDispatchRate": (None, "POST"),
    "offloadPolicies": (None, "POST"),
}
# Of a namespace, by paths of their own.
_REMOVED = ("removeOffloadPolicies", "persistence/bookieAffinity")


def _get(level: str, value: object, call: Call) -> Any:
    _require(level, call)
    return value


def _set(name: str, level: str, value: object, call: Call) -> None:
    _require(level, call)
    if call.json() in (None, value):
        return
    raise errors.OperationNotSupported(
        detail=f"{name} of a {level} is not supported by PulsarX yet"
    )


def _remove(level: str, call: Call) -> None:
    """Nothing is set."""
    _require(level, call)


def _require(level: str, call: Call) -> None:
    """TopicNotFound: there is no such topic, or namespace."""
    verb = "namespaces.get_policies" if level == "namespace" else "topics.get_policy"
    more = {} if level == "namespace" else {"name": "message_ttl"}
    call.perform(verb, **{level: target_of(level, call)}, **more)


def _routes() -> list[Route]:
    found = []
    for level, names in (("namespace", _NAMESPACE), ("topic", _TOPIC)):
        for name, (value, setting) in names.items():
            path = f"{PREFIXES[level]}/{name}"
            said = f"{name} of a {level}"
            remove = partial(_remove, level)
            found += [
                Route("GET", path, partial(_get, level, value), f"Get {said}: not set."),
                Route("DELETE", path, remove, f"Remove {said}: not set."),
            ]
            if setting:
                refuse = partial(_set, name, level, value)
                found.append(Route(setting, path, refuse, f"Set {said}: not supported."))
    for name in _REMOVED:
        path, remove = f"{PREFIXES['namespace']}/{name}", partial(_remove, "namespace")
        found.append(Route("DELETE", path, remove, "Remove a policy: not set."))
    return found


ROUTES = _routes()
