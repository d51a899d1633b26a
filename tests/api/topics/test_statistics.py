"""Facts about what `admin.topics.stats` tells of subscriptions and consumers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from flow_steps import (
    alone,
    every_kind,
    join,
    of_consumer,
    publish,
    sharing,
    statistics,
)
from topic_reading import OpenClient, drain

import pulsarx
from pulsarx import BrokerOptions, ConsumerKeySharedPolicy, ConsumerType, KeySharedMode, ManualClock
from pulsarx.testing import inspect


def backlog(client: pulsarx.Client) -> tuple[int, int]:
    """(entries, messages)"""
    found = statistics(client)
    return found["backlog_entries"], found["msg_backlog"]


@every_kind
def test_the_backlog_counts_entries_and_messages(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    assert backlog(clocked_client) == (0, 0)
    publish(clocked_client, 12, batch=4)
    publish(clocked_client, 2)
    assert backlog(clocked_client) == (5, 14)
    messages = drain(consumer)
    assert backlog(clocked_client) == (5, 14)
    expected = {5: (5, 13), 6: (5, 12), 4: (5, 11), 7: (4, 10), 13: (3, 9), 12: (2, 8), 0: (2, 7)}
    for number, left in expected.items():
        consumer.acknowledge(messages[number])
        assert backlog(clocked_client) == left
    consumer.acknowledge_many(messages)
    assert backlog(clocked_client) == (0, 0)


@every_kind
def test_the_backlog_counts_across_ledgers_and_restarts(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=5)
    client = open_client(broker_options=options)
    consumer = join(client, kind)
    for start in range(0, 60, 20):
        publish(client, 18, batch=3, start=start)
        publish(client, 2, start=start + 18)
    assert backlog(client) == (24, 60)
    messages = drain(consumer)
    entries: dict[Any, int] = {}
    for at, message in enumerate(messages):
        if at % 7 < 5:
            consumer.acknowledge(message)
        else:
            message_id = message.message_id()
            entries[(message_id.ledger_id(), message_id.entry_id())] = at
    left = (len(entries), sum(at % 7 >= 5 for at in range(60)))
    assert backlog(client) == left
    client.close()
    client = open_client(broker_options=options)
    join(client, kind)
    assert backlog(client) == left


def test_a_subscription_that_begins_at_the_end_has_no_backlog(
    clocked_client: pulsarx.Client,
) -> None:
    publish(clocked_client, 7, batch=3)
    join(clocked_client, ConsumerType.Shared, initial_position=pulsarx.InitialPosition.Latest)
    assert backlog(clocked_client) == (0, 0)
    publish(clocked_client, 7, batch=3)
    assert backlog(clocked_client) == (3, 7)


@pytest.mark.border(left_out="counts of what was sent")
@alone
def test_unacknowledged_is_what_was_handed_out(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind, consumer_name="c")
    sent = publish(clocked_client, 12, batch=4)
    assert statistics(clocked_client)["unacked_messages"] == 0
    messages = consumer.receive_many(6)
    assert statistics(clocked_client)["unacked_messages"] == 6
    consumer.acknowledge(sent[10])  # not handed out yet: it used to be taken off
    assert statistics(clocked_client)["unacked_messages"] == 6
    consumer.acknowledge(messages[3])
    assert statistics(clocked_client)["unacked_messages"] == 5
    consumer.acknowledge_cumulative(messages[2])
    assert of_consumer(clocked_client, "c")["unacked_messages"] == 2
    consumer.redeliver_unacknowledged_messages()
    assert statistics(clocked_client)["unacked_messages"] == 0
    assert len(drain(consumer)) == 7
    assert statistics(clocked_client)["unacked_messages"] == 7


@sharing
def test_unacknowledged_is_what_was_given_to_each(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    first = join(clocked_client, kind, consumer_name="a", receiver_queue_size=3)
    second = join(clocked_client, kind, consumer_name="b", receiver_queue_size=3)
    with clocked_client.create_producer("t") as producer:
        for number in range(40):
            producer.send(b"%d" % number, partition_key=str(number))
    found = statistics(clocked_client)
    assert [each["unacked_messages"] for each in found["consumers"]] == [3, 3]
    assert found["unacked_messages"] == 6
    mine, others = first.receive_many(3), second.receive_many(3)
    first.acknowledge_many(others)
    second.acknowledge_many(mine)
    assert not {message.data() for message in mine} & {message.data() for message in others}
    # two permits each went back, and the next messages came for them
    assert statistics(clocked_client)["unacked_messages"] == 4
    assert backlog(clocked_client) == (34, 34)


@sharing
def test_delayed_messages_are_backlog_and_not_unacknowledged(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    with clocked_client.create_producer("t") as producer:
        producer.send(b"x", deliver_after=timedelta(seconds=5))
    assert backlog(clocked_client) == (1, 1)
    assert statistics(clocked_client)["unacked_messages"] == 0
    assert not consumer.has_message()


@every_kind
def test_the_type_is_that_of_the_consumers_and_none_without(
    clocked_client: pulsarx.Client, kind: ConsumerType
) -> None:
    consumer = join(clocked_client, kind)
    names = {
        ConsumerType.Exclusive: "Exclusive",
        ConsumerType.Failover: "Failover",
        ConsumerType.Shared: "Shared",
        ConsumerType.KeyShared: "Key_Shared",
    }
    assert statistics(clocked_client)["type"] == names[kind]
    consumer.close()
    found = statistics(clocked_client)
    assert found["type"] == ""
    assert found["consumers"] == []
    assert found["unacked_messages"] == 0


@pytest.mark.border(left_out="counts of what was sent")
def test_failover_tells_who_is_active(clocked_client: pulsarx.Client) -> None:
    first = join(clocked_client, ConsumerType.Failover, consumer_name="a")
    second = join(clocked_client, ConsumerType.Failover, consumer_name="b")
    publish(clocked_client, 3)
    drain(first)
    found = statistics(clocked_client)
    assert found["active_consumer_name"] == "a"
    assert [each["unacked_messages"] for each in found["consumers"]] == [3, 0]
    first.close()
    assert statistics(clocked_client)["active_consumer_name"] == second.consumer_name() == "b"
    assert statistics(clocked_client)["unacked_messages"] == 0


def test_consumers_are_described(clocked_client: pulsarx.Client) -> None:
    consumer = join(
        clocked_client, ConsumerType.Shared, consumer_name="c", properties={"region": "x"}
    )
    found = of_consumer(clocked_client, "c")
    assert found["metadata"] == {"region": "x"}
    assert found["priority_level"] == 0
    assert found["blocked_consumer_on_unacked_msgs"] is False
    assert found["available_permits"] == found["receiver_queue_size"] == 1000
    assert found["reads_ledger_on_receive"] is False
    consumer.close()
    assert statistics(clocked_client)["consumers"] == []


@pytest.mark.border(left_out="counts of what was sent")
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Failover], ids=str)
def test_who_reads_the_ledger_when_it_receives_is_told(
    clocked_client: pulsarx.Client, kind: Any
) -> None:
    consumer = join(clocked_client, kind, consumer_name="c", receiver_queue_size=7)
    clocked_client.create_producer("t").send_many([b"x"] * 20)
    consumer.receive(0)
    found = of_consumer(clocked_client, "c")
    assert found["reads_ledger_on_receive"] is True
    assert found["available_permits"] == found["receiver_queue_size"] == 7
    assert found["receiver_queue_messages"] == 0


# Keys held back -----------------------------------------------------------------------------------


def slots(first: int, last: int) -> ConsumerKeySharedPolicy:
    return ConsumerKeySharedPolicy(
        key_shared_mode=KeySharedMode.Sticky, sticky_ranges=[(first, last)]
    )


def test_keys_held_back_are_told_with_whom_and_since_when(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
) -> None:
    holder = join(clocked_client, ConsumerType.KeyShared, consumer_name="a")
    keys = [str(number) for number in range(16)]
    with clocked_client.create_producer("t") as producer:
        for key in keys:
            producer.send(key.encode(), partition_key=key)
        held = drain(holder)
        newcomer = join(clocked_client, ConsumerType.KeyShared, consumer_name="b")
        assert statistics(clocked_client)["keys_held_back"] == []
        manual_clock.advance(7)
        for key in keys * 2:
            producer.send(key.encode(), partition_key=key)
    since_ms = manual_clock.now_ms()
    found = statistics(clocked_client)["keys_held_back"]
    assert 0 < len(found) < len(keys)
    assert {each["held_by"] for each in found} == {"a"}
    assert {each["since_ms"] for each in found} == {since_ms}
    assert {each["waiting_messages"] for each in found} == {2}
    manual_clock.advance(5)
    assert statistics(clocked_client)["keys_held_back"] == found
    holder.acknowledge_many(held)
    assert statistics(clocked_client)["keys_held_back"] == []
    assert len(drain(newcomer)) == 2 * len(found)


def test_a_key_that_waits_for_permits_of_its_own_consumer_is_not_held_back(
    clocked_client: pulsarx.Client,
) -> None:
    consumer = join(clocked_client, ConsumerType.KeyShared, receiver_queue_size=2)
    publish(clocked_client, 10)
    assert statistics(clocked_client)["keys_held_back"] == []
    assert len(drain(consumer)) == 10


@pytest.mark.border(left_out="tuples in JSON")
def test_hash_ranges_are_told(clocked_client: pulsarx.Client) -> None:
    consumers = []
    for name, first, last in (("a", 0, 32767), ("b", 32768, 65535)):
        consumers.append(
            join(
                clocked_client,
                ConsumerType.KeyShared,
                consumer_name=name,
                key_shared_policy=slots(first, last),
            )
        )
    found = statistics(clocked_client)["hash_ranges"]
    assert found == [(0, 32768, "a"), (32768, 65536, "b")]  # half-open


def test_asking_is_not_needed_for_delivery(clocked_client: pulsarx.Client) -> None:
    """Nor does it change what is delivered."""
    consumer = join(clocked_client, ConsumerType.Shared)
    publish(clocked_client, 3)
    before = statistics(clocked_client)
    assert statistics(clocked_client) == before
    assert len(drain(consumer)) == 3


def test_of_a_topic_that_is_not_there_it_is_refused(clocked_client: pulsarx.Client) -> None:
    with pytest.raises(pulsarx.TopicNotFound):
        clocked_client.admin.topics.stats("nowhere")


def test_a_ledger_sealed_since_the_list_was_taken_counts_as_it_is() -> None:
    """Its old record said that nothing is in it: for a moment statistics missed it, and an
    acknowledgement by an id in it did nothing."""
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client("memory:sealing", durability="os", broker_options=options) as client:
        publish(client, 1)
        ledger_list = inspect(client).ledger("t")
        taken = ledger_list.ledgers()[0]
        publish(client, 4)
        inspect(client).settle()  # it seals the first ledger
        assert (taken.state, ledger_list.ledgers()[0].state) == ("open", "sealed")
        assert ledger_list.published_counts(taken) == (2, 2)
