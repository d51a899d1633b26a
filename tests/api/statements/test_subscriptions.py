"""Statements about consumers, subscriptions and readers; each test quotes the words it holds."""

from __future__ import annotations

from typing import Any

import pytest
from topic_reading import OpenClient, numbers, payloads, whole_topic
from type_steps import KEY_SHARED, join, publish, statistics, take, take_messages

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, errors

EARLIEST = InitialPosition.Earliest
SHARING = [ConsumerType.Shared, KEY_SHARED]


def test_a_queue_of_a_thousand_messages_is_pushed_and_each_receive_takes_one(
    memory_client: pulsarx.Client,
) -> None:
    """'There is a queue at the consumer side to receive messages pushed from the broker. [...] The
    default size is 1000. Each time consumer.receive() is called, a message is dequeued from the
    buffer.'"""
    consumer = join(memory_client, ConsumerType.Shared)
    memory_client.create_producer("t").send_many(numbers(1500))

    def queued() -> int:
        return int(statistics(memory_client)["consumers"][0]["receiver_queue_messages"])

    assert queued() == 1000
    for left in (999, 998):
        consumer.receive(0)
        assert queued() == left


def test_fan_out_and_queueing_are_combined_on_one_topic(memory_client: pulsarx.Client) -> None:
    """'If you want to achieve both effects simultaneously, combine exclusive subscription types
    with other subscription types for consumers.'"""
    alone = [memory_client.subscribe("t", name) for name in ("first", "second")]
    kinds = (ConsumerType.Shared, ConsumerType.Failover, KEY_SHARED)
    together = {
        kind: [memory_client.subscribe("t", str(kind), kind) for _ in range(2)] for kind in kinds
    }
    publish(memory_client, *(f"k{number}:{number}" for number in range(30)))
    everything = [f"k{number}:{number}" for number in range(30)]
    for each in alone:
        assert take(each) == everything
    for pair in together.values():
        assert sorted(take(pair[0]) + take(pair[1])) == sorted(everything)


def test_a_failover_pair_shares_three_partitions(memory_client: pulsarx.Client) -> None:
    """'A master consumer is picked for [...] each partition of a partitioned topic and receives
    messages', also 'If the number of partitions in a partitioned topic is greater than the number
    of consumers'."""
    memory_client.admin.topics.create_partitioned_topic("p", 3)
    consumers = [join(memory_client, ConsumerType.Failover, name, topic="p") for name in ("a", "b")]
    for number in range(3):
        publish(memory_client, str(number), topic=f"p-partition-{number}")
    assert take(consumers[0]) in (["0", "2"], ["2", "0"])
    assert take(consumers[1]) == ["1"]
    consumers[0].close()
    assert sorted(take(consumers[1])) == ["0", "2"]


def test_one_exclusive_consumer_has_all_partitions(memory_client: pulsarx.Client) -> None:
    """'Note that if the topic is partitioned, all partitions will be consumed by the single
    consumer allowed to be connected to the subscription.'"""
    memory_client.admin.topics.create_partitioned_topic("p", 3)
    consumer = memory_client.subscribe("p", "s")
    with pytest.raises(errors.ConsumerBusy):
        memory_client.subscribe("p", "s")
    for number in range(3):
        with pytest.raises(errors.ConsumerBusy):
            memory_client.subscribe(f"p-partition-{number}", "s")
        publish(memory_client, str(number), topic=f"p-partition-{number}")
    assert sorted(take(consumer)) == ["0", "1", "2"]


def test_every_subscription_gets_all_of_a_partitioned_topic(memory_client: pulsarx.Client) -> None:
    """'Messages for this topic are broadcast to two consumers.'"""
    memory_client.admin.topics.create_partitioned_topic("p", 5)
    consumers = [memory_client.subscribe("p", name) for name in ("one", "two")]
    with memory_client.create_producer("p") as producer:
        ids = [producer.send(payload) for payload in numbers(20)]
    assert {each.partition() for each in ids} == set(range(5))
    for consumer in consumers:
        assert sorted(payloads(consumer)) == sorted(numbers(20))


@pytest.mark.parametrize("kind", SHARING, ids=str)
def test_partitions_are_shared_as_a_topic_is(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    """'There is no difference between partitioned topics and normal topics in terms of how
    subscription types work.'"""
    memory_client.admin.topics.create_partitioned_topic("p", 3)
    consumers = [join(memory_client, kind, name, topic="p") for name in ("a", "b")]
    sent = [f"k{number % 40}:{number}" for number in range(120)]
    publish(memory_client, *sent, topic="p")
    found = [take_messages(consumer) for consumer in consumers]
    assert all(found)
    assert sorted(each.data().decode() for one in found for each in one) == sorted(sent)
    if kind == KEY_SHARED:
        keys = [{message.partition_key() for message in one} for one in found]
        assert not keys[0] & keys[1]
    with pytest.raises(errors.CumulativeAcknowledgementNotAllowedError):
        consumers[0].acknowledge_cumulative(found[0][-1])


def test_subscriptions_see_one_order(memory_client: pulsarx.Client) -> None:
    """'When a producer sends messages to a single topic, all messages are guaranteed to be read
    from that topic in the same order.'"""
    producers = [
        memory_client.create_producer("t", batching_enabled=batching, batching_max_messages=4)
        for batching in (False, True)
    ]
    for number in range(60):
        producers[number % 2].send_async(b"%d" % number, None)
    for producer in producers:
        producer.flush()
    order = whole_topic(memory_client)
    assert sorted(order) == sorted(numbers(60))
    for parity in (0, 1):
        mine = [int(each) for each in order if int(each) % 2 == parity]
        assert mine == list(range(parity, 60, 2))
    for kind in (ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.Shared):
        consumer = memory_client.subscribe("t", str(kind), kind, initial_position=EARLIEST)
        assert payloads(consumer) == order


def test_a_consumer_has_the_topic_it_names_alone(memory_client: pulsarx.Client) -> None:
    """'When a consumer subscribes to a Pulsar topic, by default it subscribes to one specific
    topic'."""
    consumer = memory_client.subscribe("persistent://public/default/my-topic", "s")
    for topic in ("my-topic", "my-topic-2", "my", "other"):
        publish(memory_client, topic, topic=topic)
    assert take(consumer) == ["my-topic"]


def test_a_subscription_without_a_name_is_refused(memory_client: pulsarx.Client) -> None:
    """'When a consumer subscribes to a topic, it must specify the subscription name.'"""
    with pytest.raises(TypeError, match="subscription_name"):
        memory_client.subscribe("t")  # type: ignore[call-arg]
    with pytest.raises(errors.InvalidConfiguration):
        memory_client.subscribe("t", "")


def test_a_consumer_creates_the_subscription_it_names(open_client: OpenClient) -> None:
    """'If a consumer specifies a subscription that does not exist before, the subscription is
    automatically created.' 'the default subscription mode of the consumer is Durable'."""
    client = open_client()
    client.create_producer("t").close()
    assert client.admin.topics.get_subscriptions("t") == []
    client.subscribe("t", "s").close()
    client.close()
    client = open_client()
    assert client.admin.topics.get_subscriptions("t") == ["s"]
    assert statistics(client)["is_durable"] is True


def test_a_reader_leaves_no_subscription_and_is_never_durable(open_client: OpenClient) -> None:
    """'Reader's subscription mode is NonDurable in nature' and 'Reader's subscription mode can not
    be changed.'"""
    client = open_client()
    publish(client, "1", "2")
    reader = client.create_reader("t", MessageId.earliest)
    assert reader.read_next(0).data() == b"1"
    assert all(not each["is_durable"] for each in statistics_of_all(client).values())
    client.close()
    client = open_client()
    assert statistics_of_all(client) == {}
    assert client.create_reader("t", MessageId.earliest).read_next(0).data() == b"1"
    with pytest.raises(TypeError, match="subscription_mode"):
        client.create_reader(
            "t",
            MessageId.earliest,
            subscription_mode=pulsarx.SubscriptionMode.Durable,  # type: ignore[call-arg]
        )


def statistics_of_all(client: pulsarx.Client) -> dict[str, Any]:
    found: dict[str, Any] = client.admin.topics.stats("t")["subscriptions"]
    return found


def test_messages_without_a_key_in_a_batch_by_key_go_to_one_consumer(
    clocked_client: pulsarx.Client,
) -> None:
    """'When the broker dispatches messages from this batch, it uses NON_KEY as the key.'"""
    consumers = {
        name: join(clocked_client, KEY_SHARED, name, key_shared_policy=policy)
        for name, policy in (
            ("non key", sticky((17380, 17380))),
            ("rest", sticky((0, 17379), (17381, 65535))),
        )
    }
    producer = clocked_client.create_producer(
        "t", batching_enabled=True, batching_type=pulsarx.BatchingType.KeyBased
    )
    for number, key in enumerate([None, "a", None, "b", None]):
        producer.send_async(b"%d" % number, None, partition_key=key)
    producer.flush()
    assert take(consumers["non key"]) == ["0", "2", "4"]
    assert take(consumers["rest"]) == ["1", "3"]


def sticky(*ranges: tuple[int, int]) -> pulsarx.ConsumerKeySharedPolicy:
    return pulsarx.ConsumerKeySharedPolicy(pulsarx.KeySharedMode.Sticky, sticky_ranges=list(ranges))


def test_the_order_goes_to_the_consumer_that_claimed_its_range(
    memory_client: pulsarx.Client,
) -> None:
    """'That index is contained within [0, 16384) thus consumer C1 will map to this message
    key.'"""
    claims = {
        "C1": sticky((0, 16383), (32768, 49151)),
        "C2": sticky((16384, 32767), (49152, 65535)),
    }
    consumers = {
        name: join(memory_client, KEY_SHARED, name, key_shared_policy=policy)
        for name, policy in claims.items()
    }
    publish(memory_client, "Order-3459134:x")
    assert take(consumers["C2"]) == []
    assert take(consumers["C1"]) == ["Order-3459134:x"]


def test_key_shared_can_be_disabled() -> None:
    """'You can disable Key_Shared subscription in the broker.config file.'"""
    options = pulsarx.BrokerOptions(subscription_types_enabled=["Exclusive", "Failover", "Shared"])
    with pulsarx.Client("memory:no-keys", broker_options=options) as client:
        with pytest.raises(errors.NotAllowedError, match="Key_Shared"):
            join(client, KEY_SHARED)
        assert client.admin.topics.get_list() == []
        for kind in (ConsumerType.Exclusive, ConsumerType.Failover, ConsumerType.Shared):
            join(client, kind).close()


@pytest.mark.parametrize("kind", SHARING, ids=str)
def test_not_strict_is_early_by_a_second_by_default(
    manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    """'delayedDeliveryTickTimeMillis=1000', 'messages may be sent to consumers before the deliverAt
    time by as much as the tickTimeMillis'."""
    options = pulsarx.BrokerOptions(is_delayed_delivery_deliver_at_time_strict=False)
    with pulsarx.Client("memory:tick", clock=manual_clock, broker_options=options) as client:
        consumer = join(client, kind)
        client.create_producer("t").send(b"x", deliver_at=manual_clock.now_ms() + 10_000)
        manual_clock.advance(8.999)
        assert take(consumer) == []
        manual_clock.advance(0.001)
        assert take(consumer) == ["x"]
