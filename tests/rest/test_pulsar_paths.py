"""Paths of Pulsar's REST API: each has an answer, or a reason why it has none here."""

from __future__ import annotations

import pytest
from administered import Administered

T, N = "/persistent/public/default/t", "/namespaces/public/default"


def test_tools_find_the_name_of_the_cluster(administered: Administered) -> None:
    """`pulsar-admin clusters list` asks for it first."""
    found = administered.get("/brokers/configuration/runtime")
    assert found["clusterName"] == administered.get("/clusters")[0]
    assert found["maxMessageSize"] == str(5 << 20)
    assert all(isinstance(each, str) for each in found.values())
    assert administered.get("/brokers/configuration") == []
    assert administered.get("/brokers/configuration/values") == {}


@pytest.mark.parametrize(
    "place",
    [
        "GET /brokers/internal-configuration",
        "GET /brokers/backlog-quota-check",
        "POST /brokers/configuration/maxMessageSize/1",
        "DELETE /brokers/configuration/maxMessageSize",
        "GET /brokers/standalone/localhost:8080/ownedNamespaces",
        "GET /broker-stats/metrics",
        "GET /broker-stats/topics",
        "GET /clusters/standalone/peers",
        "GET /clusters/standalone/failureDomains",
        "GET /clusters/standalone/namespaceIsolationPolicies",
        "PUT /clusters/another",
        "GET /resourcegroups",
        "GET /resource-quotas",
        "GET /bookies/all",
        "GET /worker/cluster",
        "GET //admin/v3/functions/public/default",
        "GET //admin/v3/sinks/public/default",
        "GET //admin/v3/sources/public/default",
        "GET //admin/v3/sink/public/default",
        "GET //admin/v3/source/builtinsources",
        "GET //proxy-stats/topics",
        "GET //admin/v3/packages/function/public/default",
        "GET //admin/v3/transactions/coordinatorInternalStats/0",
        f"GET {N}/anything/of/4.3",
        f"PUT {T}/anything",
        "GET //admin/worker/v2/cluster",
    ],
)
def test_what_is_not_supported_says_so(administered: Administered, place: str) -> None:
    method, _, path = place.partition(" ")
    reply = administered.ask(method, path)
    assert reply.status == 405
    assert "not supported by PulsarX" in reply.body["reason"]


@pytest.mark.parametrize(
    "place",
    [
        f"PUT {N}/0x00000000_0x80000000/unload",
        f"PUT {N}/0x00000000_0xffffffff/split",
        f"GET {N}/0x00000000_0xffffffff/topicHashPositions",
        f"POST {N}/0x00000000_0xffffffff/clearBacklog/s",
        "GET /resource-quotas/public/default/0x00000000_0xffffffff",
    ],
)
def test_what_is_about_bundles_says_why(administered: Administered, place: str) -> None:
    reply = administered.ask(*place.split())
    assert reply.status == 405
    assert "not supported by PulsarX: a namespace is one bundle" in reply.body["reason"]


@pytest.mark.parametrize(
    ("name", "value", "other"),
    [
        ("encryptionRequired", False, True),
        ("replication", ["standalone"], ["another"]),
        ("deduplicationSnapshotInterval", None, 10),
    ],
)
def test_what_is_in_force_can_be_set_and_nothing_else(
    administered: Administered, name: str, value: object, other: object
) -> None:
    """What pulsar-admin sends to remove an interval, or to switch off what is off."""
    administered.do("POST", f"{N}/{name}", value)
    reply = administered.ask("POST", f"{N}/{name}", other)
    assert (reply.status, "not supported by PulsarX" in reply.body["reason"]) == (405, True)
    assert administered.ask("GET", f"{N}/{name}").body in (value, "")
    assert administered.ask("POST", f"/namespaces/none/none/{name}", value).status == 404


@pytest.mark.parametrize(
    "name", ["resourcegroup", "removeOffloadPolicies", "persistence/bookieAffinity", "persistence"]
)
def test_what_is_not_set_can_be_removed(administered: Administered, name: str) -> None:
    administered.do("DELETE", f"{N}/{name}")
    assert administered.ask("DELETE", f"/namespaces/none/none/{name}").status == 404


@pytest.mark.parametrize("path", ["//nothing", "/nothing", "//admin/v9/topics", "//admin"])
def test_a_path_that_pulsar_has_not_is_not_found_with_a_reason(
    administered: Administered, path: str
) -> None:
    reply = administered.ask("GET", path)
    assert (reply.status, "there is nothing at" in reply.body["reason"]) == (404, True)


def test_a_cluster_that_is_not_there_is_not_found(administered: Administered) -> None:
    for place in ("/brokers/another", "/clusters/another"):
        assert administered.ask("GET", place).body["reason"] == "Cluster does not exist"
