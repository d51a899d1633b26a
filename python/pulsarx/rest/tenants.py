"""Routes of tenants and clusters."""

from __future__ import annotations

from pulsarx.admin.http_forms import CLUSTER
from pulsarx.rest.call import Refusal
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call


def _names(found: dict[str, Any], name: str) -> list[str]:
    names = found.get(name) or []
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise Refusal(400, f"{name} must be a list of names")
    return names


def _put(call: Call, verb: str) -> None:
    found = call.json_object()
    call.perform(
        verb,
        tenant=call.part("tenant"),
        admin_roles=_names(found, "adminRoles"),
        allowed_clusters=_names(found, "allowedClusters"),
    )


def _create(call: Call) -> None:
    _put(call, "tenants.create_tenant")


def _update(call: Call) -> None:
    _put(call, "tenants.update_tenant")


def _clusters(_: Call) -> list[str]:
    return [CLUSTER]


def _cluster(call: Call) -> dict[str, Any]:
    if call.part("cluster") != CLUSTER:
        raise Refusal(404, "Cluster does not exist")
    plain, secure = call.broker_urls()
    return {
        "serviceUrl": call.own_url,
        "brokerServiceUrl": plain,
        **({} if secure is None else {"brokerServiceUrlTls": secure}),
    }


OWN = {"tenants.create_tenant": _create, "tenants.update_tenant": _update}
ROUTES = [
    Route("GET", "/admin/v2/clusters", _clusters, "Get the list of clusters: this one."),
    Route("GET", "/admin/v2/clusters/{cluster}", _cluster, "Get how a cluster is reached."),
]
