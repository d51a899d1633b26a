"""Facts about topics and subscriptions that nobody uses: a policy may have them deleted."""

from __future__ import annotations

from typing import Any

import pytest
from topic_reading import OpenClient, drain, payloads

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, errors
from pulsarx.admin import Admin
from pulsarx.testing import inspect

NAMESPACE = "public/default"
NO_SUBSCRIPTIONS = "delete_when_no_subscriptions"
CAUGHT_UP = "delete_when_subscriptions_caught_up"
DELETING = BrokerOptions(broker_delete_inactive_topics_enabled=True)
DELETING_CAUGHT_UP = DELETING.replace(broker_delete_inactive_topics_mode=CAUGHT_UP)


def topics(client: pulsarx.Client) -> list[str]:
    return [each.rpartition("/")[2] for each in client.admin.topics.get_list()]


def pass_by(clock: pulsarx.ManualClock, client: pulsarx.Client, seconds: float) -> None:
    clock.advance(seconds)
    inspect(client).settle()


def test_a_topic_that_nobody_uses_stays_by_default(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        client.create_producer("t").close()
        pass_by(manual_clock, client, 10**9)
        assert topics(client) == ["t"]


def test_an_unused_topic_goes(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=DELETING) as client:
        producer = client.create_producer("t")
        client.create_producer("other").close()
        producer.send(b"m")
        pass_by(manual_clock, client, 300)
        assert topics(client) == ["t"]
        producer.close()
        pass_by(manual_clock, client, 59)
        assert topics(client) == ["t"]
        pass_by(manual_clock, client, 61)
        assert topics(client) == []
        client.create_producer("t").send(b"of another topic")
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        assert reader.read_next(60_000).data() == b"of another topic"


def test_readers_and_subscriptions_keep_a_topic(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=DELETING) as client:
        reader = client.create_reader("read", pulsarx.MessageId.earliest)
        client.subscribe("subscribed", "s").close()
        client.admin.topics.create_non_partitioned_topic("unopened")
        client.admin.topics.create_subscription("unopened", "s")
        pass_by(manual_clock, client, 600)
        assert topics(client) == ["read", "subscribed", "unopened"]
        reader.close()
        client.admin.topics.delete_subscription("subscribed", "s")
        pass_by(manual_clock, client, 119)
        assert topics(client) == ["unopened"]


def test_use_between_two_looks_counts(manual_clock: pulsarx.ManualClock) -> None:
    options = DELETING.replace(broker_delete_inactive_topics_max_inactive_duration_seconds=100)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.create_producer("t").close()
        for _ in range(5):
            pass_by(manual_clock, client, 70)
            client.create_producer("t").close()
        assert topics(client) == ["t"]
        pass_by(manual_clock, client, 160)
        assert topics(client) == []


def test_a_topic_with_subscriptions_goes_when_they_are_caught_up(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client(
        "memory:x", clock=manual_clock, broker_options=DELETING_CAUGHT_UP
    ) as client:
        for topic in ("caught-up", "behind", "consumed"):
            consumer = client.subscribe(topic, "s", ConsumerType.Shared)
            producer = client.create_producer(topic)
            producer.send(b"m")
            producer.close()
            if topic != "behind":
                consumer.acknowledge(consumer.receive(60_000))
            if topic != "consumed":
                consumer.close()
        pass_by(manual_clock, client, 120)
        assert topics(client) == ["behind", "consumed"]
        assert payloads(client.subscribe("behind", "s", ConsumerType.Shared)) == [b"m"]


def test_messages_keep_their_topic_for_the_time_of_retention(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=DELETING) as client:
        for topic, minutes in (("ten", 10), ("ever", -1), ("none", 0), ("empty", -1)):
            producer = client.create_producer(topic)
            client.admin.topics.set_retention(topic, minutes, -1 if minutes else 0)
            if topic != "empty":
                producer.send(b"m")
            producer.close()
        pass_by(manual_clock, client, 180)
        assert topics(client) == ["ever", "ten"]
        pass_by(manual_clock, client, 600)
        assert topics(client) == ["ever"]
        pass_by(manual_clock, client, 10**6)
        assert topics(client) == ["ever"]


def test_partitioned_topics_go_as_a_whole_where_the_option_says_so(
    manual_clock: pulsarx.ManualClock,
) -> None:
    for deleting in (False, True):
        options = DELETING.replace(
            broker_delete_inactive_partitioned_topic_metadata_enabled=deleting
        )
        with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
            admin = client.admin.topics
            admin.create_partitioned_topic("unused", 3)
            admin.create_partitioned_topic("used", 3)
            producer = client.create_producer("used-partition-1")
            pass_by(manual_clock, client, 180)
            there = [each.rpartition("/")[2] for each in admin.get_partitioned_topic_list()]
            assert there == (["used"] if deleting else ["unused", "used"])
            assert len(admin.get_list()) == (3 if deleting else 6)
            producer.send(b"m")
            if not deleting:
                client.create_producer("unused").send(b"m")


def test_the_topic_wins_over_its_namespace_and_that_over_the_options(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        admin, namespaces = client.admin.topics, client.admin.namespaces
        for topic in ("a", "b", "c"):
            client.create_producer(topic).close()
        admin.set_inactive_topic_policies("a", NO_SUBSCRIPTIONS, 100, True)
        pass_by(manual_clock, client, 200)
        assert topics(client) == ["b", "c"]
        admin.set_inactive_topic_policies("b", NO_SUBSCRIPTIONS, 100, False)
        namespaces.set_inactive_topic_policies(NAMESPACE, NO_SUBSCRIPTIONS, 100, True)
        pass_by(manual_clock, client, 200)
        assert topics(client) == ["b"]
        assert admin.get_inactive_topic_policies("b") == {
            "mode": NO_SUBSCRIPTIONS, "seconds": 100, "enabled": False,
        }  # fmt: skip
        namespaces.remove_inactive_topic_policies(NAMESPACE)
        admin.remove_inactive_topic_policies("b")
        assert namespaces.get_inactive_topic_policies(NAMESPACE) is None
        pass_by(manual_clock, client, 1000)
        assert topics(client) == ["b"]


def test_topics_that_nobody_opened_go_too(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=manual_clock)
    client.create_producer("left").close()
    client.subscribe("caught-up", "s").close()
    client.create_producer("behind").close()
    client.subscribe("behind", "s").close()
    client.create_producer("behind").send(b"m")
    client.admin.namespaces.set_inactive_topic_policies(NAMESPACE, CAUGHT_UP, 100, True)
    client.close()
    client = open_client(clock=manual_clock)
    producer = client.create_producer("mine")
    client.admin.topics.create_non_partitioned_topic("new")
    pass_by(manual_clock, client, 99)
    assert topics(client) == ["behind", "caught-up", "left", "mine", "new"]
    client.admin.topics.create_non_partitioned_topic("newer")
    pass_by(manual_clock, client, 30)
    assert topics(client) == ["behind", "mine", "newer"]
    assert payloads(client.subscribe("behind", "s")) == [b"m"]
    producer.close()
    client.close()
    assert topics(open_client(clock=manual_clock)) == ["behind", "mine", "newer"]


def test_a_topic_that_a_job_reads_stays(
    open_client: OpenClient, folder: Any, manual_clock: pulsarx.ManualClock
) -> None:
    from pulsarx.broker.requests.owner_request import ask_owner

    client = open_client(clock=manual_clock, broker_options=DELETING)
    producer = client.create_producer("t")
    producer.send(b"m")
    producer.close()
    client.admin.topics.unload("t")
    ledgers = client.admin.topics.stats("t")["ledgers"]
    leased = {"persistent://public/default/t": [ledgers[0]["ledger_id"]]}
    ask_owner(folder, "leases.set", {"job": "j", "ledgers": leased, "ttl_ms": 200_000})
    pass_by(manual_clock, client, 180)
    assert topics(client) == ["t"]
    pass_by(manual_clock, client, 180)
    assert topics(client) == []


def test_topics_with_two_underscores_are_exempt(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=DELETING) as client:
        client.create_producer("__mine").close()
        pass_by(manual_clock, client, 1000)
        assert client.admin.topics.get_list()[0].endswith("__mine")


def test_policies_are_set_from_other_processes_and_not_by_readers(
    open_client: OpenClient, folder: Any
) -> None:
    client = open_client()
    client.create_producer("t").close()
    there = Admin.at(folder).topics
    there.set_inactive_topic_policies("t", CAUGHT_UP, 5, True)
    there.set_subscription_expiration_time("t", 7)
    beside = open_client(read_only=True).admin.topics
    assert beside.get_inactive_topic_policies("t")["mode"] == CAUGHT_UP
    assert beside.get_subscription_expiration_time("t") == 7
    with pytest.raises(errors.OperationNotSupported):
        beside.remove_inactive_topic_policies("t")
    with pytest.raises(errors.OperationNotSupported):
        beside.set_subscription_expiration_time("t", 1)


@pytest.mark.parametrize(
    "wrong",
    [("never", 5, True), (CAUGHT_UP, 0, True), (CAUGHT_UP, 1.5, True), (CAUGHT_UP, 5, 1)],
)
def test_wrong_policies_are_refused(memory_client: pulsarx.Client, wrong: Any) -> None:
    with pytest.raises(ValueError):
        memory_client.admin.namespaces.set_inactive_topic_policies(NAMESPACE, *wrong)
    assert memory_client.admin.namespaces.get_inactive_topic_policies(NAMESPACE) is None


# Subscriptions ----------------------------------------------------------------------------------


def test_a_subscription_that_nobody_uses_expires(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(subscription_expiration_time_minutes=30)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        kept = client.subscribe("t", "kept")
        client.subscribe("t", "left").close()
        client.create_producer("t").send(b"m")
        pass_by(manual_clock, client, 29 * 60)
        assert client.admin.topics.get_subscriptions("t") == ["kept", "left"]
        pass_by(manual_clock, client, 6 * 60)
        assert client.admin.topics.get_subscriptions("t") == ["kept"]
        assert drain(client.subscribe("t", "left")) == []  # a new one, from here on
        assert payloads(kept) == [b"m"]
        kept.close()
        pass_by(manual_clock, client, 20 * 60)
        client.subscribe("t", "kept").close()  # used again
        pass_by(manual_clock, client, 20 * 60)
        assert "kept" in client.admin.topics.get_subscriptions("t")
        client.admin.topics.reset_cursor("t", "kept", pulsarx.MessageId.earliest)
        pass_by(manual_clock, client, 20 * 60)
        assert "kept" in client.admin.topics.get_subscriptions("t")
        pass_by(manual_clock, client, 20 * 60)
        assert "kept" not in client.admin.topics.get_subscriptions("t")


def test_the_time_of_a_topic_wins(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(subscription_expiration_time_minutes=30)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        admin, namespaces = client.admin.topics, client.admin.namespaces
        for topic in ("a", "b", "c"):
            client.subscribe(topic, "s").close()
        admin.set_subscription_expiration_time("a", 0)
        namespaces.set_subscription_expiration_time(NAMESPACE, 60)
        admin.set_subscription_expiration_time("b", 90)

        def left() -> list[str]:
            return [each for each in ("a", "b", "c") if admin.get_subscriptions(each)]

        pass_by(manual_clock, client, 55 * 60)
        assert left() == ["a", "b", "c"]
        pass_by(manual_clock, client, 15 * 60)
        assert left() == ["a", "b"]
        pass_by(manual_clock, client, 30 * 60)
        assert left() == ["a"]
        admin.remove_subscription_expiration_time("a")
        namespaces.remove_subscription_expiration_time(NAMESPACE)
        assert namespaces.get_subscription_expiration_time(NAMESPACE) is None
        pass_by(manual_clock, client, 10 * 60)
        assert left() == []


def test_what_an_expired_subscription_held_goes(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(
        subscription_expiration_time_minutes=30, managed_ledger_max_entries_per_ledger=2
    )
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        client.subscribe("t", "left").close()
        other = client.subscribe("t", "other")
        producer = client.create_producer("t")
        for _ in range(5):
            producer.send(b"m")
        other.acknowledge_cumulative(drain(other)[-1])
        pass_by(manual_clock, client, 40 * 60)
        assert client.admin.topics.stats("t")["entries"] == 1


def test_subscriptions_of_topics_that_nobody_opened_expire(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    client = open_client(clock=manual_clock)
    client.subscribe("t", "s").close()
    client.close()
    options = BrokerOptions(subscription_expiration_time_minutes=30)
    client = open_client(clock=manual_clock, broker_options=options)
    client.create_producer("other")
    pass_by(manual_clock, client, 29 * 60)
    assert client.admin.topics.get_subscriptions("t") == ["s"]
    pass_by(manual_clock, client, 10 * 60)
    assert client.admin.topics.get_subscriptions("t") == []
