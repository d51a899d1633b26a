"""Facts about Failover subscriptions."""

from __future__ import annotations

from typing import Any

import pytest
from type_steps import join as join_any
from type_steps import (
    publish,
    publish_batch,
    statistics,
    take,
    take_messages,
)

import pulsarx
from pulsarx import ConsumerType, errors
from pulsarx.testing import inspect


def join(client: pulsarx.Client, name: str, **options: Any) -> Any:
    return join_any(client, ConsumerType.Failover, name, **options)


def active(client: pulsarx.Client, topic: str = "t") -> str:
    return str(statistics(client, topic)["active_consumer_name"])


def test_one_consumer_is_active_the_others_stand_by(memory_client: pulsarx.Client) -> None:
    b, a = join(memory_client, "b"), join(memory_client, "a")
    publish(memory_client, "1", "2")
    assert take(a) == []
    assert take(b) == ["1", "2"]
    assert active(memory_client) == "b"


def test_when_the_active_one_leaves_everything_unacknowledged_and_later_goes_to_the_next(
    memory_client: pulsarx.Client,
) -> None:
    """Seed: "When the master consumer disconnects, all (non-acknowledged and subsequent) messages
    are delivered to the next consumer in line."
    """
    first, second = join(memory_client, "first"), join(memory_client, "second")
    publish(memory_client, "0", "1", "2")
    publish_batch(memory_client, "3", "4", "5", "6")
    got = take_messages(first, 5)
    for number in (1, 3):
        first.acknowledge(got[number])
    first.close()
    publish(memory_client, "7")
    again = take_messages(second)
    assert [each.data() for each in again] == [b"0", b"2", b"4", b"5", b"6", b"7"]
    assert {each.redelivery_count() for each in again} == {0}  # nobody refused them


def test_in_line_is_who_subscribed_first_on_a_topic_alone(memory_client: pulsarx.Client) -> None:
    """Seed: "For non-partitioned topics, the broker will pick consumers in the order they subscribe
    to the non-partitioned topics."
    """
    line = {name: join(memory_client, name) for name in ("d", "b", "c", "a")}
    order = []
    while line:
        order.append(active(memory_client))
        line.pop(order[-1]).close()
    assert order == ["d", "b", "c", "a"]


def test_a_stand_by_that_leaves_changes_nothing(memory_client: pulsarx.Client) -> None:
    first, second = join(memory_client, "first"), join(memory_client, "second")
    publish(memory_client, "1", "2")
    assert take(first, 1) == ["1"]
    second.close()
    assert take(first) == ["2"]


def test_the_lowest_priority_level_reads_and_takes_over_when_it_comes(
    memory_client: pulsarx.Client,
) -> None:
    low = join(memory_client, "low", priority_level=2)
    publish(memory_client, "1", "2")
    assert take(low) == ["1", "2"]
    high = join(memory_client, "high", priority_level=1)
    assert active(memory_client) == "high"
    assert take(low) == []
    assert take(high) == ["1", "2"]
    high.close()
    assert take(low) == ["1", "2"]


@pytest.mark.guest(left_out="queues keep what was acknowledged")
@pytest.mark.border(left_out="sent before acknowledged")
def test_what_the_former_active_one_still_does_counts_but_refuses_nothing(
    memory_client: pulsarx.Client,
) -> None:
    """Its late refusal used to make the new active consumer begin again."""
    low = join(memory_client, "low", priority_level=1)
    publish(memory_client, "1", "2", "3")
    got = take_messages(low)
    high = join(memory_client, "high", negative_ack_redelivery_delay_ms=0)
    low.acknowledge(got[0])
    assert take(high) == ["2", "3"]
    low.negative_acknowledge(got[1])
    low.redeliver_unacknowledged_messages()
    assert take(high) == []


@pytest.mark.border(left_out="several topics")
def test_partitions_are_spread_over_the_names(memory_client: pulsarx.Client) -> None:
    """Seed: "the broker will sort consumers by priority level and lexicographical order of consumer
    name [and] try to evenly assign partitions to consumers with the highest priority level."
    """
    memory_client.admin.topics.create_partitioned_topic("p", 3)
    names = [f"c{number:02}" for number in range(15)]
    consumers = {name: join(memory_client, name, topic="p") for name in reversed(names)}
    topics = [f"p-partition-{number}" for number in range(3)]
    assert [active(memory_client, topic) for topic in topics] == ["c00", "c01", "c02"]
    for topic in topics:
        publish(memory_client, f"of {topic}", topic=topic)
    for number, name in enumerate(names):
        assert take(consumers[name]) == ([f"of {topics[number]}"] if number < 3 else [])
    consumers.pop("c01").close()
    assert [active(memory_client, topic) for topic in topics] == ["c00", "c02", "c03"]
    assert take(consumers["c02"]) == ["of p-partition-1"]
    assert take(consumers["c03"]) == ["of p-partition-2"]


def test_each_of_three_partitions_with_five_consumers_has_one_active_and_four_stand_by(
    memory_client: pulsarx.Client,
) -> None:
    """Seed: "a partitioned topic has 3 partitions, and 15 consumers. Each partition will have 1
    active consumer and 4 stand-by consumers."
    """
    memory_client.admin.topics.create_partitioned_topic("x", 3)
    for partition in range(3):
        topic = f"x-partition-{partition}"
        consumers = [join(memory_client, f"c{each}", topic=topic) for each in range(5)]
        publish(memory_client, "1", topic=topic)
        got = [len(take(each)) for each in consumers]
        assert got == [1 if each == partition else 0 for each in range(5)]


def test_priority_levels_on_a_partition(memory_client: pulsarx.Client) -> None:
    topic = "x-partition-1"
    memory_client.admin.topics.create_partitioned_topic("x", 2)
    join_levels = [("a", 1), ("d", 0), ("b", 1), ("c", 0)]
    line = {
        name: join(memory_client, name, topic=topic, priority_level=level)
        for name, level in join_levels
    }
    order = []
    while line:
        order.append(active(memory_client, topic))
        line.pop(order[-1]).close()
    # of c and d, sorted, partition 1 is d's; of c alone c's; then of a and b b's
    assert order == ["d", "c", "b", "a"]


@pytest.mark.guest(left_out="forgotten consumers")
@pytest.mark.border(left_out="forgotten consumers")
def test_a_forgotten_active_consumer_is_followed_by_the_next(
    memory_client: pulsarx.Client,
) -> None:
    first, second = join(pulsarx.Client("memory:"), "first"), join(memory_client, "second")
    publish(memory_client, "1")
    assert take(first) == ["1"]
    del first  # and its client
    inspect(memory_client).settle()
    assert take(second) == ["1"]


def test_an_active_consumer_that_is_refused_nothing_else_may_change_to_exclusive(
    memory_client: pulsarx.Client,
) -> None:
    consumer = join(memory_client, "a")
    with pytest.raises(errors.ConsumerBusy):
        join_any(memory_client, ConsumerType.Exclusive, "b")
    assert active(memory_client) == "a"
    consumer.close()
    join_any(memory_client, ConsumerType.Exclusive, "b")
