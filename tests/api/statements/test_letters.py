"""Statements about retry and dead letter topics; each test quotes the words it holds."""

from __future__ import annotations

from typing import Any

from letter_steps import publish
from topic_reading import OpenClient, numbers, payloads, read_all, whole_topic

import pulsarx
from pulsarx import ConsumerDeadLetterPolicy, ConsumerType, InitialPosition

NACK_DELAY_SECONDS = 60


def subscribe(client: pulsarx.Client, topic: str = "t", **options: Any) -> Any:
    options.setdefault("dead_letter_policy", ConsumerDeadLetterPolicy(1))
    return client.subscribe(
        topic, "s", ConsumerType.Shared, initial_position=InitialPosition.Earliest, **options
    )


def refuse(consumer: Any, clock: pulsarx.ManualClock) -> int:
    """Refuse all that comes; how often something came."""
    count = 0
    for _ in range(5):
        for message in consumer.receive_many(100, 0):
            count += 1
            consumer.negative_acknowledge(message)
        clock.advance(NACK_DELAY_SECONDS)
    return count


def test_what_others_publish_to_the_retry_topic_is_consumed_too(
    clocked_client: pulsarx.Client,
) -> None:
    """'you can configure the producer to send messages to both the business topic and the retry
    letter topic and you can enable automatic retry on the consumer.'"""
    consumer = subscribe(clocked_client, retry_enable=True)
    for topic in ("t", "t-s-RETRY"):
        clocked_client.create_producer(topic).send(topic.encode())
    assert sorted(payloads(consumer)) == [b"t", b"t-s-RETRY"]


def test_retries_of_two_topics_with_one_subscription_name_do_not_mix(
    clocked_client: pulsarx.Client,
) -> None:
    """'if multiple topics under the same namespace have the same subscription, then retry message
    topic names for multiple topics might be the same, which will result in mutual consumptions':
    not with the default names."""
    consumers = {topic: subscribe(clocked_client, topic, retry_enable=True) for topic in "tu"}
    for topic, consumer in consumers.items():
        clocked_client.create_producer(topic).send(topic.encode())
        consumer.reconsume_later(consumer.receive(0), 0)
    for topic, consumer in consumers.items():
        messages = consumer.receive_many(10, 0)
        assert [message.data() for message in messages] == [topic.encode()]
        assert messages[0].topic_name() == f"persistent://public/default/{topic}-s-RETRY"


def test_a_dead_letter_topic_begins_without_a_subscription(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """'By default, there is no subscription during DLQ topic creation.'"""
    consumer = subscribe(clocked_client)
    publish(clocked_client, b"one")
    assert refuse(consumer, manual_clock) == 2
    assert len(read_all(clocked_client, "t-s-DLQ")) == 1
    assert clocked_client.admin.topics.get_subscriptions("t-s-DLQ") == []


def test_messages_behind_a_dead_one_are_consumed(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """'Dead letter topic allows you to continue message consumption even when some messages are not
    consumed successfully.'"""
    consumer = subscribe(clocked_client)
    publish(clocked_client, *numbers(6))
    consumed = []
    for _ in range(5):
        for message in consumer.receive_many(100, 0):
            if message.data() in (b"1", b"4"):
                consumer.negative_acknowledge(message)
            else:
                consumer.acknowledge(message)
                consumed.append(message.data())
        manual_clock.advance(NACK_DELAY_SECONDS)
    assert consumed == [b"0", b"2", b"3", b"5"]
    assert sorted(whole_topic(clocked_client, "t-s-DLQ")) == [b"1", b"4"]
    statistics = clocked_client.admin.topics.stats("t")["subscriptions"]["s"]
    assert statistics["msg_backlog"] == 0


def test_no_dead_letter_is_sent_where_its_subscription_may_not_be_created(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    """'If this parameter is set but the broker's allowAutoSubscriptionCreation is disabled, the DLQ
    producer will fail to be created.' The message stays with its subscription."""
    options = pulsarx.BrokerOptions(allow_auto_subscription_creation=False)
    client = open_client(clock=manual_clock, broker_options=options)
    publish(client, b"one")
    client.admin.topics.create_subscription("t", "s", pulsarx.MessageId.earliest)
    policy = ConsumerDeadLetterPolicy(1, "graves", "init-sub")
    consumer = subscribe(client, dead_letter_policy=policy)
    for _ in range(4):
        for message in consumer.receive_many(10, 0):
            consumer.negative_acknowledge(message)
        manual_clock.advance(NACK_DELAY_SECONDS)
    consumer.close()
    topics = client.admin.topics
    if "persistent://public/default/graves" in topics.get_list():
        assert whole_topic(client, "graves") == []
        assert topics.get_subscriptions("graves") == []
    assert payloads(subscribe(client, dead_letter_policy=None)) == [b"one"]
