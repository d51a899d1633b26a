"""How far is read for a consumer that looks for messages when others get most of what is there."""

from __future__ import annotations

from typing import Any

import pytest
from flow_steps import join, statistics, waiting_receive
from topic_reading import OpenClient, payloads
from type_steps import check, keys_between

import pulsarx
from pulsarx import BrokerOptions, ConsumerKeySharedPolicy, ConsumerType, KeySharedMode


def keys_by_owner(producer: Any, consumers: list[Any]) -> list[str]:
    """One key of each consumer."""
    found: dict[int, str] = {}
    for number in range(1000):
        producer.send(b"", partition_key=f"key-{number}")
        for at, consumer in enumerate(consumers):
            if consumer.has_message():
                consumer.acknowledge(consumer.receive(0))
                found.setdefault(at, f"key-{number}")
        if len(found) == len(consumers):
            return [found[at] for at in range(len(consumers))]
    raise AssertionError("somebody got no key")


@pytest.mark.guest(left_out="queues keep what was acknowledged")
@pytest.mark.parametrize("others", [1, 100, 900])
def test_what_was_acknowledged_in_the_queue_does_not_hide_what_lies_far_behind(
    clocked_client: pulsarx.Client, others: int
) -> None:
    """A consumer with nothing but acknowledged messages in its queue was taken for one that has
    something to do: 64 entries were looked at, and what lay behind them was not found."""
    pair = [join(clocked_client, ConsumerType.KeyShared) for _ in range(2)]
    with clocked_client.create_producer("t") as producer:
        mine, theirs = keys_by_owner(producer, pair)
        queued = producer.send(b"queued", partition_key=mine)
        assert pair[0].has_message()
        pair[0].acknowledge(queued)
        for _ in range(others):
            producer.send(b"theirs", partition_key=theirs)
        producer.send(b"mine", partition_key=mine)
        assert pair[0].has_message()
        assert pair[0].receive(0).data() == b"mine"


def test_a_batch_is_not_read_for_others_while_there_is_something_to_do(
    clocked_client: pulsarx.Client,
) -> None:
    """Sixty-four batches were read at once, and what nobody had room for waited."""
    pair = [join(clocked_client, ConsumerType.KeyShared, receiver_queue_size=300) for _ in "ab"]
    with clocked_client.create_producer("t", batching_enabled=True) as producer:
        for _ in range(20):
            producer.send_many([b"x"] * 200, keys=[f"key-{number}" for number in range(200)])
    for _ in range(40):
        pair[0].acknowledge(pair[0].receive(0))
    assert pair[0].receiver.statistics(0)["receiver_queue_messages"] < 200
    assert statistics(clocked_client)["msg_backlog"] == 20 * 200 - 40


# How many may wait -------------------------------------------------------------------------------

LOW, HIGH = keys_between(0, 32767, 1)[0], keys_between(32768, 65535, 1)[0]


def limited(open_client: OpenClient, per_consumer: int, per_subscription: int) -> pulsarx.Client:
    options = BrokerOptions(
        key_shared_look_ahead_msg_in_replay_threshold_per_consumer=per_consumer,
        key_shared_look_ahead_msg_in_replay_threshold_per_subscription=per_subscription,
        max_unacked_messages_per_consumer=40,
        max_unacked_messages_per_subscription=70,
    )
    return open_client("memory:", broker_options=options)


def stalled_and_free(client: pulsarx.Client) -> tuple[Any, Any]:
    """A consumer of the key HIGH with room for one message, and one of the key LOW."""
    stalled = join(client, ConsumerType.KeyShared, consumer_name="a", receiver_queue_size=1)
    return stalled, join(client, ConsumerType.KeyShared, consumer_name="b")


def publish_keys(client: pulsarx.Client, key: str, count: int) -> None:
    with client.create_producer("t") as producer:
        for number in range(count):
            producer.send(b"%d" % number, partition_key=key)


def look_ahead(client: pulsarx.Client) -> tuple[int, int, bool]:
    """(messages that wait, how many may, whether reading stopped at that)."""
    found = statistics(client)
    return (
        found["msg_in_replay"],
        found["look_ahead_limit"],
        found["blocked_subscription_on_look_ahead"],
    )


@pytest.mark.guest(left_out="statistics of what was sent")
@pytest.mark.parametrize(
    ("per_consumer", "per_subscription", "limit"),
    [
        pytest.param(5, 100, 10, id="of each consumer"),
        pytest.param(5, 7, 7, id="of the subscription"),
        pytest.param(0, 20, 20, id="of the subscription alone"),
        pytest.param(8, 0, 16, id="of each consumer alone"),
        pytest.param(0, 0, 70, id="none: what may be unacknowledged"),
    ],
)
def test_reading_stops_when_so_many_messages_wait(
    open_client: OpenClient, per_consumer: int, per_subscription: int, limit: int
) -> None:
    """A consumer whose keys do not come had everything read for it, and all of that was kept for
    the one whose keys did."""
    client = limited(open_client, per_consumer, per_subscription)
    stalled, free = stalled_and_free(client)
    publish_keys(client, HIGH, 200)
    publish_keys(client, LOW, 1)
    assert not free.has_message()
    assert look_ahead(client) == (limit, limit, True)
    found = 0
    while not free.has_message():
        stalled.acknowledge(stalled.receive(0))
        found += 1
    assert found in range(200 - limit - 1, 200 - limit + 2)
    assert free.receive(0).data() == b"0"
    assert not look_ahead(client)[2]
    while stalled.has_message():
        stalled.acknowledge(stalled.receive(0))
        found += 1
    assert found == 200
    check(free)


def test_reading_that_stopped_goes_on_when_some_of_it_was_taken(open_client: OpenClient) -> None:
    """And whoever slept for want of it is woken by the one that takes."""
    client = limited(open_client, 5, 0)
    stalled, free = stalled_and_free(client)
    publish_keys(client, HIGH, 20)
    publish_keys(client, LOW, 1)
    waiting = waiting_receive(free)
    taken = 0
    while waiting.is_waiting and taken < 20:
        stalled.acknowledge(stalled.receive(0))
        taken += 1
        waiting.until_asleep()
    assert taken in range(8, 12)  # ten may wait, one is in the queue
    assert waiting.result().data() == b"0"


def test_a_batch_is_read_to_its_end_whatever_the_limit(open_client: OpenClient) -> None:
    client = limited(open_client, 5, 0)
    stalled, free = stalled_and_free(client)
    with client.create_producer("t", batching_enabled=True) as producer:
        producer.send_many([b"h"] * 30 + [b"l"], keys=[HIGH] * 30 + [LOW])
        producer.send_many([b"next"], keys=[LOW])
    assert payloads(free) == [b"l"]
    assert look_ahead(client) == (29, 10, True)
    stalled.close()
    assert payloads(free) == [b"h"] * 30 + [b"next"]


def test_keys_of_nobody_count(open_client: OpenClient) -> None:
    """They wait until somebody has their range, and hold the others up from the limit on."""
    client = limited(open_client, 10, 0)

    def having(first: int, last: int) -> Any:
        policy = ConsumerKeySharedPolicy(KeySharedMode.Sticky, sticky_ranges=[(first, last)])
        return join(client, ConsumerType.KeyShared, key_shared_policy=policy)

    free = having(0, 32767)
    publish_keys(client, HIGH, 12)
    publish_keys(client, LOW, 1)
    assert not free.has_message()
    assert look_ahead(client) == (10, 10, True)
    waiting = waiting_receive(free)
    owner = having(32768, 65535)
    assert waiting.result().data() == b"0"
    assert len(payloads(owner)) == 12


def test_what_waits_for_its_time_does_not_count(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    """Negatively acknowledged and delayed messages are kept without a limit, as before."""
    options = BrokerOptions(key_shared_look_ahead_msg_in_replay_threshold_per_consumer=2)
    with pulsarx.Client("memory:look", clock=manual_clock, broker_options=options) as client:
        consumer = join(client, ConsumerType.KeyShared)
        for number in range(10):
            with client.create_producer("t") as producer:
                producer.send(b"%d" % number, partition_key=f"key-{number}")
            consumer.negative_acknowledge(consumer.receive(0))
        assert look_ahead(client) == (0, 2, False)
        manual_clock.advance(60)
        assert len(payloads(consumer)) == 10
