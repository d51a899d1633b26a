"""Facts about what clients may create: by policies, limits, types and reserved names."""

from __future__ import annotations

import errno
import logging
import re
from typing import Any

import pytest
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, SubscriptionMode, errors
from pulsarx.broker.topics.topic_directory import TopicDirectory
from pulsarx.testing.faults import fault_plan

NS = "public/default"


def options(**given: Any) -> pulsarx.BrokerOptions:
    return pulsarx.BrokerOptions(**given)


# Creating topics ----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["producer", "consumer", "reader"])
def test_a_namespace_says_whether_topics_come_by_themselves(
    open_client: OpenClient, kind: str
) -> None:
    client = open_client()
    namespaces = client.admin.namespaces
    calls: dict[str, Any] = {
        "producer": client.create_producer,
        "consumer": lambda topic: client.subscribe(topic, "s"),
        "reader": lambda topic: client.create_reader(topic, MessageId.earliest),
    }
    assert namespaces.get_auto_topic_creation(NS) is None
    namespaces.set_auto_topic_creation(NS, False)
    expected = {"allowed": False, "type": "non-partitioned", "partitions": 1}
    assert namespaces.get_auto_topic_creation(NS) == expected
    with pytest.raises(errors.TopicNotFound):
        calls[kind]("t")
    assert client.admin.topics.get_list() == []
    namespaces.remove_auto_topic_creation(NS)
    assert namespaces.get_auto_topic_creation(NS) is None
    calls[kind]("t").close()


def test_a_namespace_wins_over_the_options(open_client: OpenClient) -> None:
    with open_client(broker_options=options(allow_auto_topic_creation=False)) as client:
        client.admin.namespaces.set_auto_topic_creation(NS, True, "partitioned", 3)
    client = open_client(broker_options=options(allow_auto_topic_creation=False))
    client.create_producer("t").close()
    assert client.admin.topics.get_partitioned_topic_metadata("t") == {"partitions": 3}
    client.admin.namespaces.create_namespace("public/other")
    with pytest.raises(errors.TopicNotFound):
        client.create_producer("public/other/t")


def test_letters_need_topics_that_come_by_themselves(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").send(b"1")
    client.admin.namespaces.set_auto_topic_creation(NS, True, "partitioned", 3)
    consumer = client.subscribe(
        "t",
        "s",
        ConsumerType.Shared,
        initial_position=InitialPosition.Earliest,
        retry_enable=True,
    )
    consumer.reconsume_later(consumer.receive(1000), 1)
    assert "persistent://public/default/t-s-RETRY" in client.admin.topics.get_list()


@pytest.mark.parametrize(
    "wrong", [(1, "partitioned", 1), (True, "other", 1), (True, "partitioned", 0)]
)
def test_a_policy_out_of_range_is_refused(open_client: OpenClient, wrong: Any) -> None:
    namespaces = open_client().admin.namespaces
    with pytest.raises(ValueError, match="auto_topic_creation"):
        namespaces.set_auto_topic_creation(NS, *wrong)
    assert namespaces.get_policies(NS) == {}


# Creating subscriptions ---------------------------------------------------------------------------


def test_a_topic_says_whether_subscriptions_come_by_themselves(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").close()
    client.create_producer("u").close()
    admin = client.admin
    admin.namespaces.set_auto_subscription_creation(NS, False)
    admin.topics.set_auto_subscription_creation("t", True)
    client.subscribe("t", "s").close()
    with pytest.raises(errors.SubscriptionNotFound):
        client.subscribe("u", "s")
    # Readers and non-durable subscriptions leave nothing behind.
    client.create_reader("u", MessageId.earliest).close()
    client.subscribe("u", "s", subscription_mode=SubscriptionMode.NonDurable).close()
    admin.topics.create_subscription("u", "s")
    client.subscribe("u", "s").close()
    assert admin.topics.get_auto_subscription_creation("t") is True
    assert admin.topics.get_auto_subscription_creation("u") is None
    assert admin.namespaces.get_auto_subscription_creation(NS) is False
    admin.topics.remove_auto_subscription_creation("t")
    with pytest.raises(errors.SubscriptionNotFound):
        client.subscribe("t", "other")
    admin.namespaces.remove_auto_subscription_creation(NS)
    client.subscribe("t", "other").close()


def test_a_partition_has_the_policies_of_its_topic(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 2)
    client.admin.topics.set_auto_subscription_creation("p", False)
    for topic in ("p", "p-partition-1"):
        with pytest.raises(errors.SubscriptionNotFound):
            client.subscribe(topic, "s")
        assert client.admin.topics.get_auto_subscription_creation(topic) is False
    assert client.admin.topics.get_subscriptions("p") == []


def test_a_deleted_topic_takes_its_policies_along(open_client: OpenClient) -> None:
    client = open_client()
    client.create_producer("t").close()
    client.admin.topics.set_auto_subscription_creation("t", False)
    client.admin.topics.delete("t")
    client.subscribe("t", "s").close()
    assert client.admin.topics.get_auto_subscription_creation("t") is None


# Types --------------------------------------------------------------------------------------------


def test_types_that_are_not_enabled_are_refused(open_client: OpenClient) -> None:
    client = open_client(broker_options=options(subscription_types_enabled=["Shared", "Failover"]))
    with pytest.raises(errors.NotAllowedError, match="Failover, Shared, which Exclusive"):
        client.subscribe("t", "s")
    assert client.admin.topics.get_list() == []
    shared = client.subscribe("t", "s", ConsumerType.Shared)
    client.admin.namespaces.set_subscription_types_enabled(NS, ["Exclusive"])
    with pytest.raises(errors.NotAllowedError):
        client.subscribe("t", "s", ConsumerType.Shared)
    client.create_producer("t").send(b"1")
    assert shared.receive(1000).data() == b"1"  # who is attached stays
    shared.close()
    client.admin.topics.set_subscription_types_enabled("t", ["Key_Shared"])
    assert client.admin.topics.get_subscription_types_enabled("t") == ["Key_Shared"]
    client.subscribe("t", "s", ConsumerType.KeyShared).close()
    client.subscribe("u", "s").close()
    client.create_reader("t", MessageId.earliest).close()
    client.admin.topics.remove_subscription_types_enabled("t")
    client.subscribe("t", "s").close()


@pytest.mark.parametrize("wrong", [[], ["Other"], "Shared", 5])
def test_types_that_are_none_are_refused(open_client: OpenClient, wrong: Any) -> None:
    with pytest.raises(ValueError, match="subscription_types_enabled"):
        options(subscription_types_enabled=wrong)
    client = open_client()
    with pytest.raises((ValueError, TypeError)):
        client.admin.namespaces.set_subscription_types_enabled(NS, wrong)
    assert client.admin.namespaces.get_policies(NS) == {}


# Limits -------------------------------------------------------------------------------------------


def test_producers_are_limited(open_client: OpenClient) -> None:
    client = open_client(broker_options=options(max_producers_per_topic=2))
    first, second = client.create_producer("t"), client.create_producer("t")
    with pytest.raises(errors.ProducerBusy, match="max_producers_per_topic"):
        client.create_producer("t")
    client.create_producer("u").close()
    first.close()
    third = client.create_producer("t")
    del second
    third.send(b"1")
    client.create_producer("t").send(b"2")


def test_consumers_are_limited(open_client: OpenClient) -> None:
    limits = options(max_consumers_per_topic=3, max_consumers_per_subscription=2)
    client = open_client(broker_options=limits)
    kept = [client.subscribe("t", "a", ConsumerType.Shared) for _ in range(2)]
    with pytest.raises(errors.ConsumerBusy, match="max_consumers_per_subscription"):
        client.subscribe("t", "a", ConsumerType.Shared)
    kept.append(client.subscribe("t", "b"))
    with pytest.raises(errors.ConsumerBusy, match="max_consumers_per_topic"):
        client.subscribe("t", "c")
    assert client.admin.topics.get_subscriptions("t") == ["a", "b"]
    client.create_reader("t", MessageId.earliest).close()
    kept.pop().close()
    client.subscribe("t", "c").close()


def test_subscriptions_are_limited(open_client: OpenClient) -> None:
    client = open_client(broker_options=options(max_subscriptions_per_topic=2))
    client.subscribe("t", "a").close()
    client.admin.topics.create_subscription("t", "b")
    with pytest.raises(errors.NotAllowedError, match="max_subscriptions_per_topic"):
        client.subscribe("t", "c")
    with pytest.raises(errors.NotAllowedError):
        client.admin.topics.create_subscription("t", "c")
    with pytest.raises(errors.NotAllowedError):
        client.subscribe("t", "c", subscription_mode=SubscriptionMode.NonDurable)
    with pytest.raises(errors.NotAllowedError):
        client.subscribe(["u", "t"], "c")
    assert [each.rpartition("/")[2] for each in client.admin.topics.get_list()] == ["t"]
    client.subscribe("t", "a").close()
    client.admin.topics.delete_subscription("t", "b")
    client.subscribe("t", "c").close()


def test_topics_are_limited(open_client: OpenClient) -> None:
    client = open_client(broker_options=options(max_topics_per_namespace=3))
    topics = client.admin.topics
    client.create_producer("a").close()
    with pytest.raises(errors.NotAllowedError, match="max_topics_per_namespace"):
        topics.create_partitioned_topic("p", 3)
    topics.create_partitioned_topic("p", 2)
    for call in (
        lambda: client.create_producer("b"),
        lambda: topics.create_non_partitioned_topic("b"),
        lambda: topics.update_partitioned_topic("p", 3),
    ):
        with pytest.raises(errors.NotAllowedError, match="max_topics_per_namespace"):
            call()
    client.create_producer("a").close()
    client.admin.namespaces.create_namespace("public/other")
    client.create_producer("public/other/b").close()
    topics.delete("a")
    client.create_producer("b").close()


def test_partitions_are_limited(open_client: OpenClient) -> None:
    limits = options(
        max_num_partitions_per_partitioned_topic=2,
        allow_auto_topic_creation_type="partitioned",
        default_num_partitions=3,
    )
    client = open_client(broker_options=limits)
    topics = client.admin.topics
    with pytest.raises(errors.NotAllowedError, match="max_num_partitions"):
        topics.create_partitioned_topic("p", 3)
    with pytest.raises(errors.NotAllowedError, match="max_num_partitions"):
        client.create_producer("auto")
    topics.create_partitioned_topic("p", 2)
    with pytest.raises(errors.NotAllowedError, match="max_num_partitions"):
        topics.update_partitioned_topic("p", 3)
    assert topics.get_partitioned_topic_metadata("p") == {"partitions": 2}


# Reserved names -----------------------------------------------------------------------------------

RESERVED = [
    "__change_events",
    "__change_events-partition-0",
    "__transaction_buffer_snapshot",
    "__transaction_buffer_snapshot_segments",
    "__transaction_buffer_snapshot_indexes",
    "x-__transaction_pending_ack",
]


@pytest.mark.parametrize("name", RESERVED)
def test_nobody_creates_a_system_topic(open_client: OpenClient, name: str) -> None:
    """They used to be topics as any other."""
    client = open_client()
    topics = client.admin.topics
    for call in (
        lambda: client.create_producer(name),
        lambda: client.subscribe(name, "s"),
        lambda: client.subscribe(["t", name], "s"),
        lambda: client.create_reader(name, MessageId.earliest),
        lambda: topics.create_non_partitioned_topic(name),
        lambda: topics.create_partitioned_topic(name, 2),
    ):
        with pytest.raises(errors.NotAllowedError):
            call()
    assert topics.get_list(include_system_topic=True) == []


def test_a_system_topic_that_is_there_is_read_and_not_listed(open_client: OpenClient) -> None:
    from pulsarx.broker.catalogue import changes
    from pulsarx.testing import inspect

    client = open_client()
    name = "persistent://public/default/__change_events"
    catalogue = inspect(client).broker.catalogue
    catalogue.commit([changes.create_topic(name, catalogue.allocate_id())])
    client.create_producer("t").close()
    topics = client.admin.topics
    assert topics.get_list() == ["persistent://public/default/t"]
    assert topics.get_list(NS, include_system_topic=True) == [name, *topics.get_list()]
    assert client.admin.namespaces.get_topics(NS) == topics.get_list()
    reader = client.create_reader("__change_events", MessageId.earliest)
    assert not reader.has_message_available()
    for call in (
        lambda: client.create_producer("__change_events"),
        lambda: client.subscribe("__change_events", "s"),
    ):
        with pytest.raises(errors.NotAllowedError, match="system topic"):
            call()
    reader.close()
    consumer = client.subscribe(re.compile(".*"), "s")
    assert [each.topic() for each in consumer.members()] == topics.get_list()
    consumer.close()
    topics.delete("t")
    client.admin.namespaces.delete_namespace(NS)  # the system's do not count
    assert catalogue.topic_names() == []


def test_names_like_those_of_the_system_are_free(open_client: OpenClient) -> None:
    client = open_client()
    for name in ("change_events", "__change_events_", "transaction_coordinator_assign", "__x"):
        client.create_producer(name).close()
    assert len(client.admin.topics.get_list()) == 4


# Refused subscribers ------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["new", ["new", "other"]])
@pytest.mark.parametrize("partitions", [0, 2])
def test_a_subscriber_that_policies_refuse_leaves_no_topic(
    open_client: OpenClient, topic: Any, partitions: int
) -> None:
    """The topics it named were made first."""
    made = {"allow_auto_topic_creation_type": "partitioned", "default_num_partitions": 2}
    given = made if partitions else {}
    client = open_client(broker_options=options(allow_auto_subscription_creation=False, **given))
    with pytest.raises(errors.SubscriptionNotFound):
        client.subscribe(topic, "s")
    client.admin.namespaces.set_subscription_types_enabled(NS, ["Exclusive"])
    with pytest.raises(errors.NotAllowedError):
        client.subscribe(topic, "s", ConsumerType.Shared)
    assert client.admin.topics.get_list() == []
    assert client.admin.topics.get_partitioned_topic_list() == []


def test_a_list_with_an_unknown_namespace_leaves_no_topic(open_client: OpenClient) -> None:
    client = open_client()
    with pytest.raises(errors.TopicNotFound):
        client.subscribe(["new", "public/nowhere/other"], "s")
    assert client.admin.topics.get_list() == []


def test_deduplication_is_a_policy_of_all_partitions(open_client: OpenClient) -> None:
    client = open_client()
    topics = client.admin.topics
    topics.create_partitioned_topic("p", 2)
    topics.set_deduplication("p-partition-1", True)
    assert topics.get_deduplication("p") is topics.get_deduplication("p-partition-0") is True
    found = topics.partitioned_stats("p")["partitions"].values()
    assert [each["deduplication_status"] for each in found] == ["Enabled", "Enabled"]
    topics.remove_deduplication("p-partition-0")
    assert topics.get_deduplication("p") is topics.get_deduplication("p-partition-1") is None


@pytest.mark.parametrize("partitions", [0, 2])
@pytest.mark.parametrize("why", ["busy", "limit", "retry", "queue"])
def test_a_refused_subscriber_takes_back_the_topics_it_made(
    open_client: OpenClient, why: str, partitions: int
) -> None:
    made = {"allow_auto_topic_creation_type": "partitioned", "default_num_partitions": 2}
    client = open_client(broker_options=options(**made if partitions else {}))
    topics = client.admin.topics
    topics.create_non_partitioned_topic("there")
    kept = topics.get_list()
    given: dict[str, Any] = {}
    if why == "limit":
        client.admin.namespaces.set_max_topics_per_namespace(NS, 2 + partitions)
    elif why == "queue":
        given = {"receiver_queue_size": 0}
    elif why == "retry":
        given = {"retry_enable": True, "consumer_type": ConsumerType.Shared}
    busy = client.subscribe("there", "s")
    with pytest.raises(errors.PulsarException):
        client.subscribe(["new", "other", "there"] if why != "retry" else "there", "s", **given)
    assert topics.get_list() == kept
    assert topics.get_partitioned_topic_list() == []
    busy.close()
    client.subscribe("there", "s").close()


def test_a_topic_that_others_use_by_now_is_not_taken_back(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookup = TopicDirectory.lookup
    used: list[bool] = []

    def look_and_use(self: TopicDirectory, name: Any, **given: Any) -> Any:
        found = lookup(self, name, **given)
        if name.local_name != "there" and not used:
            used.append(True)
            with memory_client.create_producer("used") as producer:
                producer.send(b"1")
        return found

    memory_client.subscribe("there", "s")
    monkeypatch.setattr(TopicDirectory, "lookup", look_and_use)
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe(["used", "other", "there"], "s")
    assert [each.rpartition("/")[2] for each in memory_client.admin.topics.get_list()] == [
        "there",
        "used",
    ]
    assert whole_topic(memory_client, "used") == [b"1"]


def test_a_topic_that_cannot_be_taken_back_stays_and_the_log_says_so(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client = open_client()
    busy = client.subscribe("there", "s")
    with fault_plan() as plan, monkeypatch.context() as patch:
        delete = TopicDirectory.delete

        def delete_on_a_full_disk(self: TopicDirectory, *given: Any, **named: Any) -> None:
            plan.fail("write", 1, error=errno.EIO)
            delete(self, *given, **named)

        patch.setattr(TopicDirectory, "delete", delete_on_a_full_disk)
        with pytest.raises(errors.ConsumerBusy), caplog.at_level(logging.WARNING, "pulsarx"):
            client.subscribe(["new", "there"], "s")
    assert "public/default/new was made for a call that failed, and stays: " in caplog.text
    busy.close()
    client.subscribe(["new", "there"], "s").close()


@pytest.mark.parametrize("what", ["exclusive", "terminated", "policy"])
def test_a_topic_of_which_others_have_said_something_by_now_is_not_taken_back(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """What they had said of it went with it."""
    lookup = TopicDirectory.lookup
    topics = memory_client.admin.topics

    def say() -> None:
        if what == "exclusive":
            mode = pulsarx.ProducerAccessMode.Exclusive
            memory_client.create_producer("used", access_mode=mode).close()
        elif what == "terminated":
            topics.terminate("used")
        else:
            topics.set_max_consumers_per_topic("used", 5)

    def look_and_say(self: TopicDirectory, name: Any, **given: Any) -> Any:
        found = lookup(self, name, **given)
        if name.local_name == "used" and not said:
            said.append(True)
            say()
        return found

    said: list[bool] = []
    memory_client.subscribe("there", "s")
    monkeypatch.setattr(TopicDirectory, "lookup", look_and_say)
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe(["used", "there"], "s")
    assert "persistent://public/default/used" in topics.get_list()
