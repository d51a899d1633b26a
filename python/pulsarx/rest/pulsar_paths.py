"""The paths of Pulsar's REST API that have no route: what is there in Pulsar is not supported here,
and nothing that is named in it is missing."""

from __future__ import annotations

from pulsarx.rest.call import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.rest.call import Call

_BELOW = (
    *("/admin/v2/", "/admin/v3/", "/admin/worker/", "/lookup/v2/", "/topics/", "/ws/"),
    "/proxy-stats/",  # of Pulsar's proxy
)
# The first part of what is below /admin/v2 and v3.
_GROUPS = frozenset(
    (
        *("bookies", "broker-stats", "brokers", "clusters", "functions", "jobs", "loadbalance"),
        *("namespaces", "non-persistent", "packages", "persistent", "properties"),
        *("resource-quotas", "resourcegroups", "scalable", "schemas", "segments", "sink"),
        *("sinks", "source", "sources", "tenants", "transactions", "worker", "worker-stats"),
    )
)


def is_of_pulsar(path: str) -> bool:
    """Whether Pulsar has paths like that one."""
    if not path.startswith(_BELOW):
        return False
    parts = path.split("/")
    return parts[1] != "admin" or parts[2] == "worker" or parts[3] in _GROUPS


def unsupported_reason(method: str, path: str) -> str:
    why = ": a namespace is one bundle, of one broker" if _is_of_bundle(path.split("/")) else ""
    return f"{method} {path:.200} is not supported by PulsarX{why}; /openapi.json lists what is"


def _is_of_bundle(parts: list[str]) -> bool:
    """Whether it is about some of the bundles of a namespace."""
    if parts[3:4] == ["resource-quotas"]:
        return True
    bundles = parts[6:] if parts[3:4] == ["namespaces"] else []
    return any(each == "bundle" or each.startswith("0x") for each in bundles)


def unsupported(_: Call) -> None:
    """A route of a path that another route would take for something else."""
    raise Refusal(405, "this is not supported by PulsarX; /openapi.json lists what is")
