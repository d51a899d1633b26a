"""Facts about non-persistent topics beside other features: policies, interceptors, readers of all
partitions, limits of memory, letters."""

from __future__ import annotations

from typing import Any

import pytest
from topic_reading import OpenClient

import pulsarx
from pulsarx import BrokerOptions, ConsumerDeadLetterPolicy, ConsumerType, MessageId, errors
from pulsarx.interceptors import ConsumerInterceptor, ProducerInterceptor
from pulsarx.testing.inspection import inspect

TOPIC = "non-persistent://public/default/t"
PATIENCE_MS = 60_000
DELETING = BrokerOptions(broker_delete_inactive_topics_enabled=True)


def pass_by(clock: pulsarx.ManualClock, client: pulsarx.Client, seconds: float) -> None:
    clock.advance(seconds)
    inspect(client).settle()


# Policies -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["producer", "consumer", "reader"])
def test_an_inactive_one_goes(manual_clock: pulsarx.ManualClock, user: str) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=DELETING) as client:
        member: Any = {
            "producer": lambda: client.create_producer(TOPIC),
            "consumer": lambda: client.subscribe(TOPIC, "s"),
            "reader": lambda: client.create_reader(TOPIC, MessageId.latest),
        }[user]()
        pass_by(manual_clock, client, 300)
        assert client.admin.topics.get_list() == [TOPIC]
        member.close()
        pass_by(manual_clock, client, 59)
        assert client.admin.topics.get_list() == [TOPIC]
        pass_by(manual_clock, client, 61)
        assert client.admin.topics.get_list() == []
        consumer = client.subscribe(TOPIC, "s")
        client.create_producer(TOPIC).send(b"of another topic")
        assert consumer.receive(PATIENCE_MS).data() == b"of another topic"


def test_one_that_nobody_ever_used_goes_too(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=DELETING) as client:
        client.admin.topics.create_non_partitioned_topic(TOPIC)
        pass_by(manual_clock, client, 121)
        assert client.admin.topics.get_list() == []


def test_a_policy_has_a_partitioned_one_deleted(manual_clock: pulsarx.ManualClock) -> None:
    options = BrokerOptions(broker_delete_inactive_partitioned_topic_metadata_enabled=True)
    with pulsarx.Client("memory:x", clock=manual_clock, broker_options=options) as client:
        topics = client.admin.topics
        topics.create_partitioned_topic(TOPIC, 2)
        topics.create_partitioned_topic("kept", 2)
        topics.set_inactive_topic_policies(TOPIC, "delete_when_no_subscriptions", 60, True)
        consumer = client.subscribe(TOPIC, "s")
        pass_by(manual_clock, client, 300)
        assert len(topics.get_list()) == 4
        consumer.close()
        pass_by(manual_clock, client, 121)
        assert topics.get_partitioned_topic_list() == ["persistent://public/default/kept"]
        assert len(topics.get_list()) == 2


def test_policies_about_kept_messages_are_refused(open_client: OpenClient) -> None:
    topics = open_client().admin.topics
    topics.create_partitioned_topic(TOPIC, 2)
    for set_policy in (
        lambda: topics.set_message_ttl(TOPIC, 10),
        lambda: topics.set_retention(TOPIC, 10, 10),
        lambda: topics.set_backlog_quota(TOPIC, limit_size=1000),
        lambda: topics.set_delayed_delivery_policies(TOPIC, True, 1000),
        lambda: topics.set_subscription_expiration_time(TOPIC, 10),
        lambda: topics.set_compaction_threshold(TOPIC, 10),
    ):
        with pytest.raises(errors.OperationNotSupported, match="keeps no messages"):
            set_policy()
    assert topics.get_message_ttl(TOPIC) is None


def test_policies_of_its_namespace_leave_it_alone(manual_clock: pulsarx.ManualClock) -> None:
    with pulsarx.Client("memory:x", clock=manual_clock) as client:
        consumer = client.subscribe(TOPIC, "s", ConsumerType.Shared)
        producer = client.create_producer(TOPIC)
        namespaces = client.admin.namespaces
        namespaces.set_message_ttl("public/default", 1)
        namespaces.set_backlog_quota("public/default", limit_size=1)
        namespaces.set_delayed_delivery_policies("public/default", False, 1000)
        namespaces.set_deduplication("public/default", True)
        namespaces.set_compaction_threshold("public/default", 1)
        producer.send_many([b"a", b"b"])
        pass_by(manual_clock, client, 3600)
        assert [consumer.receive(0).data() for _ in range(2)] == [b"a", b"b"]
        producer.send(b"c")
        assert consumer.receive(PATIENCE_MS).data() == b"c"


def test_compacting_one_is_refused(memory_client: pulsarx.Client) -> None:
    memory_client.create_producer(TOPIC)
    topics = memory_client.admin.topics
    for call in (topics.trigger_compaction, topics.compaction_status):
        with pytest.raises(errors.OperationNotSupported, match="keeps no messages"):
            call(TOPIC)
    assert topics.stats(TOPIC)["compaction"]["horizon"] == (-1, -1)
    with pytest.raises(errors.NotAllowedError, match="is_read_compacted"):
        memory_client.create_reader(TOPIC, MessageId.latest, is_read_compacted=True)
    both = pulsarx.RegexSubscriptionMode.AllTopics
    import re

    with pytest.raises(errors.NotAllowedError, match="is_read_compacted"):
        memory_client.subscribe(
            re.compile("public/default/t"), "s", is_read_compacted=True,
            regex_subscription_mode=both,
        )  # fmt: skip


# Producers, consumers, readers --------------------------------------------------------------------


class Seen(ProducerInterceptor, ConsumerInterceptor):
    def __init__(self) -> None:
        self.sent: list[MessageId] = []
        self.received: list[bytes] = []

    def before_send(self, producer: Any, message: Any) -> Any:
        return message

    def on_send_acknowledgement(
        self, producer: Any, message: Any, message_id: Any, exception: Any
    ) -> None:
        self.sent.append(message_id)

    def before_consume(self, consumer: Any, message: Any) -> Any:
        self.received.append(message.data())
        return message


@pytest.mark.parametrize("partitions", [0, 2])
def test_interceptors_see_its_messages(memory_client: pulsarx.Client, partitions: int) -> None:
    if partitions:
        memory_client.admin.topics.create_partitioned_topic(TOPIC, partitions)
    seen = Seen()
    consumer = memory_client.subscribe(TOPIC, "s", interceptors=[seen])
    producer = memory_client.create_producer(TOPIC, interceptors=[seen])
    producer.send(b"x")
    assert consumer.receive(PATIENCE_MS).data() == b"x"
    assert seen.received == [b"x"]
    producer.flush()
    assert [(each.ledger_id(), each.entry_id()) for each in seen.sent] == [(0, 0)]


def test_a_reader_has_all_partitions_and_those_that_come(memory_client: pulsarx.Client) -> None:
    topics = memory_client.admin.topics
    topics.create_partitioned_topic(TOPIC, 2)
    reader = memory_client.create_reader(TOPIC, MessageId.earliest, receiver_queue_size=10)
    topics.update_partitioned_topic(TOPIC, 3)
    for index in range(3):
        with memory_client.create_producer(f"{TOPIC}-partition-{index}") as producer:
            producer.send_many([b"%d" % index] * 20)
            producer.send(b"%d, which finds no room" % index)
    found = [reader.read_next(PATIENCE_MS).data() for _ in range(60)]
    assert sorted(set(found)) == [b"0", b"1", b"2"]
    assert not reader.has_message_available()
    with pytest.raises(errors.OperationNotSupported, match="keeps no messages"):
        reader.seek(MessageId.earliest)
    reader.close()
    assert topics.partitioned_stats(TOPIC)["subscriptions"] == {}


@pytest.mark.parametrize("batching_enabled", [False, True])
def test_what_it_takes_of_the_memory_limit_is_free_again(
    open_client: OpenClient, batching_enabled: bool
) -> None:
    client = open_client(memory_limit_bytes=1000)
    consumer = client.subscribe(TOPIC, "s", receiver_queue_size=100)
    producer = client.create_producer(
        TOPIC, batching_enabled=batching_enabled, block_if_queue_full=False
    )
    for _ in range(50):
        producer.send(bytes(900))
    assert len(consumer.receive_many(100, 0)) == 50


def test_a_dead_letter_topic_may_be_one(memory_client: pulsarx.Client) -> None:
    letters = memory_client.subscribe(TOPIC, "s")
    consumer = memory_client.subscribe(
        "p", "s", ConsumerType.Shared, negative_ack_redelivery_delay_ms=0,
        dead_letter_policy=ConsumerDeadLetterPolicy(1, TOPIC),
    )  # fmt: skip
    memory_client.create_producer("p").send(b"bad")
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(PATIENCE_MS))
    with pytest.raises(errors.Timeout):
        consumer.receive(0)
    assert letters.receive(PATIENCE_MS).data() == b"bad"
