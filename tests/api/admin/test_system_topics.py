"""Facts about the topics that the broker writes itself: changes of topic policies, the health
check."""

from __future__ import annotations

import errno
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from child_process import run_program
from topic_reading import OpenClient, read_all

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.admin import Admin
from pulsarx.broker.catalogue import changes
from pulsarx.testing.faults import fault_plan
from pulsarx.testing.inspection import inspect

T = "persistent://public/default/t"
EVENTS = "persistent://public/default/__change_events"
PARTS = [f"{EVENTS}-partition-{index}" for index in range(4)]


def events(client: pulsarx.Client) -> list[tuple[str, Any]]:
    """(topic, its policies or None) of each event, oldest first for each topic."""
    found = []
    for part in PARTS:
        for message in read_all(client, part):
            content = None if message.has_null_value() else json.loads(message.data())
            found.append((message.partition_key(), content))
    return found


def test_each_change_of_a_topic_policy_is_one_event(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    assert topics.get_list(include_system_topic=True) == [T]  # made with the first
    topics.set_deduplication(T, True)
    topics.set_deduplication(T, True)  # changes nothing
    topics.set_subscription_types_enabled(T, ["Shared"])
    topics.remove_deduplication(T)
    topics.remove_subscription_types_enabled(T)
    client.admin.namespaces.set_deduplication("public/default", True)  # no topic's
    assert events(client) == [
        (T, {"deduplication": True}),
        (T, {"deduplication": True, "subscription_types_enabled": ["Shared"]}),
        (T, {"subscription_types_enabled": ["Shared"]}),
        (T, None),
    ]
    assert topics.get_list(include_system_topic=True) == [*PARTS, T]
    assert topics.get_list() == [T]
    assert topics.get_partitioned_topic_list() == []


def test_policies_about_kept_messages_are_told_too(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    topics.create_partitioned_topic("t", 2)
    topics.set_retention("t", 10, 1)
    topics.set_compaction_threshold("t", 5)
    with pytest.raises(errors.NotAllowedError):  # more than retention keeps
        topics.set_backlog_quota("t", limit_size=1 << 30)
    topics.remove_retention("t")
    topics.remove_compaction_threshold("t")
    retention = {"retention": {"size_mb": 1, "time_minutes": 10}}
    assert events(client) == [
        (T, retention),
        (T, {**retention, "compaction_threshold": 5}),
        (T, {"compaction_threshold": 5}),
        (T, None),
    ]
    reader = client.create_reader(EVENTS, MessageId.earliest)  # of all partitions
    assert [reader.read_next(0).partition_key() for _ in range(4)] == [T] * 4


def test_a_topic_that_is_deleted_because_nobody_uses_it_takes_its_policies_along(
    manual_clock: pulsarx.ManualClock,
) -> None:
    options = pulsarx.BrokerOptions(broker_delete_inactive_topics_enabled=True)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.admin.topics.create_non_partitioned_topic("t")
        client.admin.topics.set_message_ttl("t", 10)
        manual_clock.advance(300)
        inspect(client).settle()
        assert client.admin.topics.get_list() == []
        assert events(client) == [(T, {"message_ttl": 10}), (T, None)]


def test_a_topic_that_is_deleted_takes_its_policies_along(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    for name in ("t", "without"):
        topics.create_non_partitioned_topic(name)
    topics.set_deduplication("t", False)
    topics.delete("without")
    topics.delete("t")
    assert events(client) == [(T, {"deduplication": False}), (T, None)]


def test_changes_of_many_topics_lie_in_four_partitions(open_client: OpenClient) -> None:
    client = open_client()
    names = [f"{T}{number}" for number in range(20)]
    for name in names:
        client.admin.topics.create_non_partitioned_topic(name)
        client.admin.topics.set_deduplication(name, True)
    used = {part: {key.partition_key() for key in read_all(client, part)} for part in PARTS}
    assert sum(map(len, used.values())) == 20
    assert all(used.values())


def test_users_read_it_and_do_not_write_it(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_non_partitioned_topic("t")
    client.admin.topics.set_deduplication("t", True)
    for call in (
        lambda: client.create_producer(EVENTS),
        lambda: client.subscribe(EVENTS, "s"),
        lambda: client.subscribe(PARTS[0], "s"),
    ):
        with pytest.raises(errors.NotAllowedError, match="system topic"):
            call()
    reader = client.create_reader(PARTS[0], MessageId.earliest)
    reader.close()
    client.admin.topics.delete("t")
    client.admin.namespaces.delete_namespace("public/default")  # it does not count


def test_what_a_killed_owner_did_not_tell_is_told_by_the_next_one(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_non_partitioned_topic("t")
    # As a kill right behind the commit leaves it.
    inspect(client).catalogue.commit(
        [changes.set_topic_policy(T, "deduplication", True), changes.expect_change_event(T)]
    )
    client.close()
    again = open_client()
    inspect(again).broker.runtime.background.wait()
    assert events(again) == [(T, {"deduplication": True})]
    assert inspect(again).catalogue.state.change_events == {}
    again.close()
    last = open_client()
    inspect(last).broker.runtime.background.wait()
    assert len(events(last)) == 1


def test_what_is_expected_is_kept_in_checkpoints(open_client: OpenClient, folder: Path) -> None:
    client = open_client(read_only=False)
    client.admin.topics.create_non_partitioned_topic("t")
    catalogue = inspect(client).catalogue
    catalogue.commit([changes.expect_change_event(T), changes.expect_change_event(T)])
    for number in range(150):
        client.admin.topics.create_non_partitioned_topic(f"p{number}")
    client.close()
    assert list((folder / "catalogue").glob("*.checkpoint"))
    again = open_client()
    inspect(again).broker.runtime.background.wait()
    assert events(again) == [(T, None)]


def test_a_policy_is_in_force_though_it_cannot_be_told(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client()
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    topics.set_deduplication("t", True)
    with fault_plan() as plan, caplog.at_level(logging.WARNING, "pulsarx"):
        plan.fail("write", 2, error=errno.ENOSPC)  # behind that of the commit
        topics.set_deduplication("t", False)
    assert "told in __change_events when the folder is opened next" in caplog.text
    assert topics.get_deduplication("t") is False
    client.close()
    again = open_client()
    inspect(again).broker.runtime.background.wait()
    assert events(again) == [(T, {"deduplication": True}), (T, {"deduplication": False})]


def test_events_outlive_the_retention_of_their_namespace(open_client: OpenClient) -> None:
    client = open_client(
        broker_options=pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=1)
    )
    client.admin.namespaces.set_retention("public/default", time_minutes=0, size_mb=0)
    client.admin.topics.create_non_partitioned_topic("t")
    for enabled in (True, False, True):
        client.admin.topics.set_deduplication("t", enabled)
    for each in inspect(client).broker.topics.open_topics():
        each.trim()
    assert len(events(client)) == 3


@pytest.mark.parametrize("option", ["topic_level_policies_enabled", "system_topic_enabled"])
def test_off_no_policy_is_set_on_a_topic(open_client: OpenClient, option: str) -> None:
    client = open_client(broker_options=pulsarx.BrokerOptions(**{option: False}))
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    for refused in (
        lambda: topics.set_deduplication("t", True),
        lambda: topics.remove_deduplication("t"),
        lambda: topics.set_subscription_types_enabled("t", ["Shared"]),
        lambda: topics.set_schema_validation_enforced("t", True),
    ):
        with pytest.raises(errors.NotAllowedError, match=option):
            refused()
    client.admin.namespaces.set_subscription_types_enabled("public/default", ["Shared"])
    with pytest.raises(errors.NotAllowedError, match="subscription_types_enabled"):
        client.subscribe("t", "s")  # the namespace's is in force
    assert topics.get_list(include_system_topic=True) == [T]


def test_what_was_set_before_it_was_turned_off_stays_in_force(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_non_partitioned_topic("t")
    client.admin.topics.set_subscription_types_enabled("t", ["Shared"])
    client.close()
    off = pulsarx.BrokerOptions(topic_level_policies_enabled=False)
    again = open_client(broker_options=off)
    with pytest.raises(errors.NotAllowedError, match="subscription_types_enabled"):
        again.subscribe("t", "s")


def test_a_sound_broker_is_healthy(open_client: OpenClient) -> None:
    client = open_client(durability="sync")
    for _ in range(2):
        client.admin.brokers.healthcheck()
    assert client.admin.topics.get_list("pulsar/standalone") == []
    name = "persistent://pulsar/standalone/healthcheck"
    assert client.admin.topics.get_list("pulsar/standalone", True) == [name]
    assert len(read_all(client, name)) == 2
    for refused in (
        lambda: client.create_producer(name),
        lambda: client.admin.namespaces.create_namespace("pulsar/mine"),
        lambda: client.admin.tenants.delete_tenant("pulsar", force=True),
    ):
        with pytest.raises(errors.NotAllowedError):
            refused()


def test_a_full_disk_makes_it_fail(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.brokers.healthcheck()
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC)
        with pytest.raises(errors.StorageFullError):
            client.admin.brokers.healthcheck()
    client.admin.brokers.healthcheck()


def test_a_client_opened_read_only_does_not_check(open_client: OpenClient) -> None:
    open_client()
    with pytest.raises(errors.OperationNotSupported):
        open_client(read_only=True).admin.brokers.healthcheck()


CHECK = """
import sys
from pulsarx.admin import Admin
Admin.at(sys.argv[1]).brokers.healthcheck()
print("healthy")
"""


def test_another_process_checks_the_owner(folder: Path, open_client: OpenClient) -> None:
    open_client()
    assert run_program(CHECK, folder) == ["healthy"]


def test_what_the_broker_writes_itself_is_changed_by_nobody_else(open_client: OpenClient) -> None:
    """A terminated topic of events told no change of policies any more, for good."""
    client = open_client()
    topics = client.admin.topics
    topics.create_non_partitioned_topic("t")
    topics.set_deduplication(T, True)
    schema = pulsarx.schema.StringSchema().schema_info()
    refused = [
        lambda: topics.terminate(PARTS[3]),
        lambda: topics.create_subscription(EVENTS, "mine"),
        lambda: topics.update_partitioned_topic(EVENTS, 6),
        lambda: client.admin.schemas.create_schema(EVENTS, schema),
        lambda: topics.set_message_ttl(EVENTS, 5),
        lambda: topics.set_deduplication(PARTS[0], False),
        lambda: topics.set_schema_validation_enforced(EVENTS, True),
    ]
    for each in refused:
        with pytest.raises(errors.NotAllowedError, match="is a system topic"):
            each()
    assert topics.get_subscriptions(EVENTS) == []
    topics.remove_deduplication(T)
    assert events(client) == [(T, {"deduplication": True}), (T, None)]


def test_the_tenant_of_the_system_is_there(open_client: OpenClient, folder: Path) -> None:
    """It came with the first health check."""
    for _ in range(2):
        admin = open_client().admin
        assert admin.tenants.get_tenants() == ["public", "pulsar"]
        info: dict[str, list[str]] = {"admin_roles": [], "allowed_clusters": []}
        assert admin.tenants.get_tenant_info("pulsar") == info
        assert admin.namespaces.get_namespaces("pulsar") == ["pulsar/system"]
        assert admin.namespaces.get_policies("pulsar/system") == {}
        assert admin.namespaces.get_topics("pulsar/system") == []
        assert admin.topics.get_list("pulsar/system", include_system_topic=True) == []
        read_only = open_client(read_only=True).admin
        assert read_only.tenants.get_tenants() == ["public", "pulsar"]
        assert read_only.namespaces.get_namespaces("pulsar") == ["pulsar/system"]
    before = len(list((folder / "catalogue").iterdir()))
    assert before == 1  # made by the commit that begins the first epoch
    admin.brokers.healthcheck()
    assert admin.namespaces.get_namespaces("pulsar") == ["pulsar/standalone", "pulsar/system"]


def test_the_tenant_of_the_system_comes_to_a_folder_that_was_made_without_it(
    open_client: OpenClient, folder: Path
) -> None:
    off = pulsarx.BrokerOptions(system_topic_enabled=False)
    with open_client(broker_options=off) as client:
        client.create_producer("t").send(b"kept")
        assert client.admin.tenants.get_tenants() == ["public"]
        with pytest.raises(errors.TopicNotFound):
            client.admin.namespaces.get_namespaces("pulsar")
    assert Admin.at(folder).tenants.get_tenants() == ["public"]
    with open_client(broker_options=off) as client:
        client.admin.brokers.healthcheck()  # makes the tenant and its own namespace
        assert client.admin.namespaces.get_namespaces("pulsar") == ["pulsar/standalone"]
    client = open_client()
    assert client.admin.tenants.get_tenants() == ["public", "pulsar"]
    assert client.admin.namespaces.get_namespaces("pulsar") == [
        "pulsar/standalone", "pulsar/system",
    ]  # fmt: skip
    assert [each.data() for each in read_all(client)] == [b"kept"]


@pytest.mark.parametrize("force", [False, True])
def test_the_tenant_of_the_system_is_not_deleted(open_client: OpenClient, force: bool) -> None:
    admin = open_client().admin
    admin.brokers.healthcheck()
    for namespace in ("pulsar/system", "pulsar/standalone"):
        with pytest.raises(errors.NotAllowedError, match="it is the system's"):
            admin.namespaces.delete_namespace(namespace, force)
    with pytest.raises(errors.NotAllowedError, match="it is the system's"):
        admin.tenants.delete_tenant("pulsar", force)
    assert admin.namespaces.get_namespaces("pulsar") == ["pulsar/standalone", "pulsar/system"]


@pytest.mark.parametrize("domain", ["persistent", "non-persistent"])
def test_topics_of_users_are_not_made_where_the_health_is_checked(
    open_client: OpenClient, domain: str
) -> None:
    """They were, once there had been a health check."""
    client = open_client()
    client.admin.brokers.healthcheck()
    name = f"{domain}://pulsar/standalone/mine"
    for refused in (
        lambda: client.create_producer(name),
        lambda: client.subscribe(name, "s"),
        lambda: client.create_reader(name, MessageId.earliest),
        lambda: client.admin.topics.create_non_partitioned_topic(name),
        lambda: client.admin.topics.create_partitioned_topic(name, 2),
    ):
        with pytest.raises(errors.NotAllowedError, match="reserved for the health check"):
            refused()
    assert client.admin.topics.get_list("pulsar/standalone") == []
    client.create_producer("persistent://pulsar/system/mine").send(b"1")  # not reserved
