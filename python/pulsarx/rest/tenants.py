"""Routes of tenants and clusters."""

from __future__ import annotations

from pulsarx.rest.call import Refusal
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call

CLUSTER = "standalone"
_TENANTS = "/admin/v2/tenants"
_TENANT = f"{_TENANTS}/{{tenant}}"


def _list(call: Call) -> list[str]:
    found: list[str] = call.perform("tenants.get_tenants")
    return found


def _get(call: Call) -> dict[str, Any]:
    found = call.perform("tenants.get_tenant_info", tenant=call.part("tenant"))
    clusters = found["allowed_clusters"] or [CLUSTER]  # nothing is: there is one
    return {"adminRoles": found["admin_roles"], "allowedClusters": clusters}


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


def _delete(call: Call) -> None:
    call.perform("tenants.delete_tenant", tenant=call.part("tenant"), force=call.flag("force"))


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


ROUTES = [
    Route("GET", _TENANTS, _list, "Get the list of existing tenants."),
    Route("GET", _TENANT, _get, "Get the admin configuration of a tenant."),
    Route("PUT", _TENANT, _create, "Create a tenant.", body="TenantInfo"),
    Route("POST", _TENANT, _update, "Update a tenant.", body="TenantInfo"),
    Route("DELETE", _TENANT, _delete, "Delete a tenant.", query=("force",)),
    Route("GET", "/admin/v2/clusters", _clusters, "Get the list of clusters: this one."),
    Route("GET", "/admin/v2/clusters/{cluster}", _cluster, "Get how a cluster is reached."),
]
