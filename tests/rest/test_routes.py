"""The routes: what they do, and what they answer. Statuses and shapes are those of Pulsar 4.2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from administered import Administered

import pulsarx
from pulsarx.admin import Admin
from pulsarx.testing import inspect

NAMESPACE = "/namespaces/public/default"
TOPICS = "/persistent/public/default"


def test_a_topic_is_made_listed_and_deleted(administered: Administered):
    administered.do("PUT", f"{TOPICS}/t")
    reply = administered.ask("PUT", f"{TOPICS}/t")
    assert (reply.status, list(reply.body)) == (409, ["reason"])
    assert administered.get(TOPICS) == ["persistent://public/default/t"]
    administered.do("DELETE", f"{TOPICS}/t")
    assert administered.ask("DELETE", f"{TOPICS}/t").status == 404
    assert administered.get(TOPICS) == []


def test_a_namespace_is_made_as_the_clients_in_java_and_go_ask_for_it(administered: Administered):
    defaults = {
        "auth_policies": {"namespace_auth": {}, "destination_auth": {}},
        "bundles": {"numBundles": 4},
        "replication_clusters": ["standalone"],
        "backlog_quota_map": {},
        "message_ttl_in_seconds": 0,
        "schema_compatibility_strategy": "Full",
        "is_allow_auto_update_schema": True,
        "offload_threshold": -1,
        "subscription_auth_mode": "None",
    }
    administered.do("PUT", "/namespaces/public/n", defaults)
    reply = administered.ask(
        "PUT", "/namespaces/public/m", {**defaults, "replicatorDispatchRate": {"a": {"b": 5}}}
    )
    assert reply.status == 405
    assert administered.get("/namespaces/public") == ["public/default", "public/n"]


RATE = {
    "dispatchThrottlingRateInMsg": 7,
    "dispatchThrottlingRateInByte": -1,
    "relativeToPublishRate": False,
    "ratePeriodInSecond": 1,
}
QUOTA = {"limit": 1000, "limitSize": 1000, "limitTime": -1, "policy": "producer_exception"}


def test_a_namespace_is_made_with_its_policies(administered: Administered):
    policies = {
        "auth_policies": {
            "namespace_auth": {"anonymous": ["consume", "produce"]},
            "destination_auth": {},
            "subscription_auth_roles": {"s": ["anonymous"], "open to all": []},
        },
        "subscription_auth_mode": "Prefix",
        "replication_clusters": ["standalone"],
        "retention_policies": {"retentionTimeInMinutes": 10, "retentionSizeInMB": 5},
        "message_ttl_in_seconds": 60,
        "backlog_quota_map": {"destination_storage": QUOTA},
        "topicDispatchRate": {"standalone": RATE},
        "deduplicationEnabled": True,
        "schema_compatibility_strategy": "BACKWARD",
        "max_producers_per_topic": 5,
    }
    administered.do("PUT", "/namespaces/public/n", policies)
    found = administered.get("/namespaces/public/n")
    for name, value in policies.items():
        if name != "auth_policies":
            assert found[name] == value, name
    assert found["auth_policies"]["namespace_auth"] == {"anonymous": ["consume", "produce"]}
    assert found["auth_policies"]["subscription_auth_roles"] == {"s": ["anonymous"]}
    assert administered.get("/namespaces/public/n/messageTTL") == 60


def test_numbers_may_be_texts(administered: Administered):
    path = f"{NAMESPACE}/backlogQuota"
    administered.do("POST", path, {"limit": "1000", "policy": "producer_exception"})
    assert administered.get(f"{NAMESPACE}/backlogQuotaMap") == {"destination_storage": QUOTA}
    administered.do("POST", f"{NAMESPACE}/messageTTL", "60")
    assert administered.get(f"{NAMESPACE}/messageTTL") == 60


@pytest.mark.parametrize(
    "status, body",
    [
        (400, {"message_ttl_in_seconds": "x"}),
        (400, {"retention_policies": {"retentionTimeInMinutes": 10}}),
        (400, {"retention_policies": 3}),
        (412, {"retention_policies": {"retentionTimeInMinutes": -5, "retentionSizeInMB": 1}}),
        (412, {"max_producers_per_topic": -1}),
        (412, {"auth_policies": {"namespace_auth": {"r": ["bogus"]}}}),
        (412, {"auth_policies": {"namespace_auth": {"r": "produce"}}}),
        (403, {"topicDispatchRate": {"elsewhere": RATE}}),
        (405, {"offload_threshold": 5}),
    ],
)
def test_a_namespace_is_not_made_with_policies_that_are_none(
    administered: Administered, status: int, body: dict[str, Any]
):
    reply = administered.ask("PUT", "/namespaces/public/n", {"message_ttl_in_seconds": 6, **body})
    assert (reply.status, list(reply.body)) == (status, ["reason"])
    assert administered.get("/namespaces/public") == ["public/default"]


LIMITS = {
    "maxProducersPerTopic": "maxProducers",
    "maxConsumersPerTopic": "maxConsumers",
    "maxConsumersPerSubscription": "maxConsumersPerSubscription",
    "maxSubscriptionsPerTopic": "maxSubscriptionsPerTopic",
    "maxUnackedMessagesPerConsumer": "maxUnackedMessagesOnConsumer",
    "maxUnackedMessagesPerSubscription": "maxUnackedMessagesOnSubscription",
    "maxTopicsPerNamespace": "",
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("level", ["namespace", "topic"])
def test_limits_are_set_as_pulsar_writes_them(administered: Administered, level: str, name: str):
    if level == "topic" and not LIMITS[name]:
        assert administered.ask("GET", f"{TOPICS}/t/maxTopics").status == 405
        return
    administered.do("PUT", f"{TOPICS}/t")
    path = f"{TOPICS}/t/{LIMITS[name]}" if level == "topic" else f"{NAMESPACE}/{name}"
    unset = 0 if name == "maxTopicsPerNamespace" else ""
    assert administered.get(path) == unset
    for count in (7, 0):
        administered.do("POST", path, count)
        assert administered.get(path) == count
    assert administered.ask("POST", path, -1).status == 412
    assert administered.ask("POST", path, "x").status == 400
    administered.do("DELETE", path)
    assert administered.get(path) == unset


@pytest.mark.parametrize(
    "name,option,value",
    [
        ("compactionThreshold", "broker_service_compaction_threshold_in_bytes", 1000),
        ("messageTTL", "ttl_duration_default_in_seconds", 7),
        ("maxSubscriptionsPerTopic", "max_subscriptions_per_topic", 3),
    ],
)
def test_where_no_level_sets_a_policy_the_options_are_in_force(
    open_administered: Callable[..., Administered], name: str, option: str, value: int
):
    options = pulsarx.BrokerOptions(**{option: value})
    administered = open_administered(broker_options=options)
    administered.do("PUT", f"{TOPICS}/t")
    for path in (f"{NAMESPACE}/{name}", f"{TOPICS}/t/{name}"):
        assert administered.get(path) == ""
        assert administered.get(f"{path}?applied=true") == value


def test_a_partitioned_topic_that_is_not_there_is_not_found(administered: Administered):
    administered.do("PUT", f"{TOPICS}/plain")
    assert administered.ask("DELETE", f"{TOPICS}/plain/partitions").status == 409
    assert administered.ask("DELETE", f"{TOPICS}/nothing/partitions").status == 404
    assert administered.get(TOPICS) == ["persistent://public/default/plain"]


def test_a_backlog_is_one_of_entries_as_in_pulsar(administered: Administered):
    client = administered.client
    client.subscribe("t", "s").close()
    client.create_producer("t").send_many([b"x"] * 10)
    subscription = administered.get(f"{TOPICS}/t/stats")["subscriptions"]["s"]
    assert (subscription["msgBacklog"], subscription["backlogMessages"]) == (1, 10)


def test_readers_have_a_subscription_in_statistics_as_in_pulsar(administered: Administered):
    """Dashboards did not see them."""
    client = administered.client
    client.create_producer("t").send_many([b"x"] * 10)
    with client.create_producer("t") as producer:
        for _ in range(3):
            producer.send(b"y")
    reader = client.create_reader("t", pulsarx.MessageId.earliest)

    def told() -> tuple[Any, ...]:
        ((name, found),) = administered.get(f"{TOPICS}/t/stats")["subscriptions"].items()
        assert name.startswith("reader-") and not found["isDurable"]
        assert len(found["consumers"]) == 1
        return name, found["msgBacklog"], found["backlogMessages"]

    name = told()[0]
    assert told() == (name, 4, 13)
    for backlog in ((4, 12), (4, 11)):
        reader.read_next(60_000)
        assert told() == (name, *backlog)
    while reader.has_message_available():
        reader.read_next(60_000)
    assert told() == (name, 0, 0)
    assert client.admin.topics.stats("t")["subscriptions"] == {}
    reader.close()
    assert administered.get(f"{TOPICS}/t/stats")["subscriptions"] == {}


def test_statistics_count_what_was_published_and_given_to_consumers(administered: Administered):
    client = administered.client
    consumer = client.subscribe("t", "s", consumer_name="c")
    producer = client.create_producer("t", producer_name="p")
    for _ in range(3):
        producer.send(b"x")
    consumer.acknowledge(consumer.receive(60_000))
    found = administered.get(f"{TOPICS}/t/stats")
    assert found["msgInCounter"] == 3
    assert found["bytesInCounter"] == found["storageSize"] - 4096  # the header of the ledger
    assert [each["producerName"] for each in found["publishers"]] == ["p"]
    subscription = found["subscriptions"]["s"]
    assert subscription["msgBacklog"] == 2
    assert subscription["msgOutCounter"] >= 1
    assert [each["consumerName"] for each in subscription["consumers"]] == ["c"]
    assert found["bytesOutCounter"] == subscription["consumers"][0]["bytesOutCounter"] > 0


def test_the_cursor_of_deduplication_has_the_sequence_ids_of_producers(
    administered: Administered,
):
    client = administered.client
    client.create_producer("t", producer_name="before").send(b"x")
    assert "pulsar.dedup" not in administered.get(f"{TOPICS}/t/internalStats")["cursors"]
    client.admin.topics.set_deduplication("t", True)
    client.create_producer("t", producer_name="p").send(b"y", sequence_id=70)
    client.create_producer("t", producer_name="silent")
    found = administered.get(f"{TOPICS}/t/internalStats")
    cursor = found["cursors"]["pulsar.dedup"]
    assert cursor["properties"] == {"before": 0, "p": 70}
    assert cursor["markDeletePosition"] == found["lastConfirmedEntry"]


def test_a_topic_and_its_namespace_are_offloaded(
    open_administered: Callable[..., Administered], tmp_path: Path
) -> None:
    """The threshold is -1, as in Pulsar, where none is set."""
    options = pulsarx.BrokerOptions(
        offload_url=(tmp_path / "store").as_uri(), managed_ledger_max_entries_per_ledger=5
    )
    administered = open_administered(folder=tmp_path / "data", broker_options=options)
    with administered.client as client:
        assert administered.get(f"{NAMESPACE}/offloadThreshold") == -1
        for name in ("offloadThreshold", "offloadDeletionLagMs"):
            path = f"{NAMESPACE}/{name}"
            administered.do("PUT", path, 1000)
            assert administered.get(path) == 1000
            assert administered.get(NAMESPACE)[_WHOLE[name]] == 1000
            administered.do("DELETE", path)
        producer = client.create_producer("t")
        ids = [producer.send(b"x") for _ in range(18)]
        before = {"ledgerId": ids[12].ledger_id(), "entryId": 0, "partitionIndex": -1}
        assert administered.get(f"{TOPICS}/t/offload")["status"] == "NOT_RUN"
        administered.do("PUT", f"{TOPICS}/t/offload", before)
        inspect(client).settle()
        assert administered.get(f"{TOPICS}/t/offload") == {"status": "SUCCESS", "lastError": ""}
        ledgers = administered.get(f"{TOPICS}/t/internalStats")["ledgers"]
        assert [each["offloaded"] for each in ledgers] == [True, True, False, False]
        stats = administered.get(f"{TOPICS}/t/stats")
        assert stats["lastOffloadLedgerId"] == ids[9].ledger_id()
        assert 0 < stats["offloadedStorageSize"] < stats["storageSize"]
        admin = Admin.at(administered.url)
        admin.topics.offload("t", 0)
        inspect(client).settle()
        assert admin.topics.offload_status("t") == {"status": "SUCCESS", "last_error": ""}
        assert len(list((tmp_path / "store").rglob("*.ledger"))) == 3


_WHOLE = {
    "offloadThreshold": "offload_threshold",
    "offloadDeletionLagMs": "offload_deletion_lag_ms",
}
