"""Facts about consumers and readers with is_read_compacted: the compacted ledger up to its horizon,
then the topic, with nothing missing or twice where they meet."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from compaction_steps import compacted, pairs_of, publish, read, read_compacted
from topic_reading import OpenClient, drain

import pulsarx
from pulsarx import BrokerOptions, ConsumerType, InitialPosition, MessageId, errors
from pulsarx.testing import inspect

BATCHED = {"batching_enabled": True}
SMALL = BrokerOptions(managed_ledger_max_entries_per_ledger=2)
EARLIEST = {"is_read_compacted": True, "initial_position": InitialPosition.Earliest}


def data_of(messages: list[Any]) -> list[bytes]:
    return [message.data() for message in messages]


def received(consumer: Any) -> list[bytes]:
    return data_of(drain(consumer))


@pytest.mark.parametrize("kind", [ConsumerType.Shared, ConsumerType.KeyShared])
def test_shared_subscriptions_do_not_read_compacted(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    with pytest.raises(errors.InvalidConfiguration, match="Exclusive and Failover"):
        memory_client.subscribe("t", "s", kind, is_read_compacted=True)
    assert memory_client.admin.topics.get_list() == []


@pytest.mark.parametrize(
    "topic", ["non-persistent://public/default/t", ["t", "non-persistent://a/b/c"]]
)
def test_topics_that_are_not_persistent_are_not_read_compacted(
    memory_client: pulsarx.Client, topic: Any
) -> None:
    with pytest.raises(errors.InvalidConfiguration, match="persistent topics"):
        memory_client.subscribe(topic, "s", is_read_compacted=True)


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Failover])
def test_a_consumer_reads_survivors_and_then_the_topic(
    memory_client: pulsarx.Client, kind: ConsumerType
) -> None:
    publish(memory_client, [("a", b"1"), ("b", b"1"), ("a", b"2")], **BATCHED)
    compacted(memory_client)
    publish(memory_client, [("a", b"3"), ("a", b"4")], **BATCHED)
    consumer = memory_client.subscribe("t", "s", kind, **EARLIEST)
    assert received(consumer) == [b"1", b"2", b"3", b"4"]
    publish(memory_client, [("b", b"2")])
    assert received(consumer) == [b"2"]


def test_what_was_acknowledged_is_skipped(open_client: OpenClient) -> None:
    client = open_client()
    publish(client, [(f"k{n}", b"%d" % n) for n in range(6)], **BATCHED)
    publish(client, [("k3", b"6")])
    compacted(client)
    consumer = client.subscribe("t", "s", **EARLIEST)
    first = consumer.receive_many(10, 0)
    assert data_of(first) == [b"0", b"1", b"2", b"4", b"5", b"6"]
    for number in (1, 3):
        consumer.acknowledge(first[number])
    client.close()
    client = open_client()
    consumer = client.subscribe("t", "s", **EARLIEST)
    assert received(consumer) == [b"0", b"2", b"5", b"6"]
    consumer.acknowledge_cumulative(first[4].message_id())
    consumer.close()
    assert received(client.subscribe("t", "s", is_read_compacted=True)) == [b"6"]


@pytest.mark.guest(left_out="messages come later")
def test_what_compaction_removed_is_no_backlog_once_it_was_passed(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    publish(client, [(f"k{n % 3}", b"%d" % n) for n in range(20)])
    publish(client, [("gone", b"")])
    compacted(client)
    consumer = client.subscribe("t", "s", **EARLIEST)

    def stats() -> dict[str, Any]:
        found: dict[str, Any] = client.admin.topics.stats("t")["subscriptions"]["s"]
        return found

    assert stats()["msg_backlog"] > 3
    messages = drain(consumer)
    assert data_of(messages) == [b"17", b"18", b"19"]
    assert (stats()["msg_backlog"], stats()["unacked_messages"]) == (3, 3)
    consumer.acknowledge_many(messages)
    assert stats()["msg_backlog"] == 0
    inspect(client).settle()
    assert len(inspect(client).ledger("t").ledgers()) <= 1


def test_survivors_come_again_and_nothing_else(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    publish(clocked_client, [(f"k{n % 3}", b"%d" % n) for n in range(12)], **BATCHED)
    compacted(clocked_client)
    consumer = clocked_client.subscribe(
        "t", "s", ConsumerType.Failover, unacked_messages_timeout_ms=10_000, **EARLIEST
    )
    assert received(consumer) == [b"9", b"10", b"11"]
    manual_clock.advance(11)
    again = drain(consumer)
    assert data_of(again) == [b"9", b"10", b"11"]
    assert [message.redelivery_count() for message in again] == [1, 1, 1]
    consumer.acknowledge_many(again)
    manual_clock.advance(60)
    assert received(consumer) == []


def test_dead_letters_of_survivors_are_published(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1"), ("b", b"2"), ("a", b"3")], **BATCHED)
    compacted(memory_client)
    policy = pulsarx.ConsumerDeadLetterPolicy(max_redeliver_count=1, dead_letter_topic="dead")
    consumer = memory_client.subscribe(
        "t", "s", ConsumerType.Failover, dead_letter_policy=policy, **EARLIEST
    )
    for _ in range(3):
        drain(consumer)
        consumer.redeliver_unacknowledged_messages()
    drain(consumer)
    inspect(memory_client).settle()
    reader = memory_client.create_reader("dead", MessageId.earliest)
    assert data_of(read(reader)) == [b"2", b"3"]


def test_what_was_taken_out_of_its_batch_meanwhile_is_no_dead_letter(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> None:
    """An empty message was published in its place."""
    client = open_client(clock=manual_clock)
    publish(client, [("a", b"1"), ("b", b"1")], **BATCHED)
    compacted(client)
    consumer = client.subscribe(
        "t", "s", negative_ack_redelivery_delay_ms=1000,
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(1, "dead"), **EARLIEST,
    )  # fmt: skip
    letters = client.subscribe("dead", "s", initial_position=InitialPosition.Earliest)
    for compacts in (False, True):
        found = drain(consumer)
        assert data_of(found) == [b"1", b"1"]
        if compacts:
            publish(client, [("a", b"2")])
            compacted(client)
        for message in found:
            consumer.negative_acknowledge(message)
        manual_clock.advance(2)
        inspect(client).settle()
    # Both were handed out again as often as they may be.
    assert [(each.partition_key(), each.data()) for each in drain(letters)] == [("b", b"1")]
    assert received(consumer) == [b"2"]


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_start_inside_goes_on_with_the_next_survivor(
    open_client: OpenClient, trimmed: bool
) -> None:
    client = open_client(broker_options=SMALL)
    consumer = client.subscribe("t", "s")
    ids = publish(
        client, [("a", b"0"), ("b", b"1"), ("a", b"2"), ("c", b"3"), ("b", b"4"), ("d", b"5")]
    )
    ids += publish(client, [("a", b"6"), ("e", b"7"), ("c", b"8")], **BATCHED)
    compacted(client)  # 4 5 6 7 8 survive
    if trimmed:
        consumer.acknowledge_many(consumer.receive_many(100, 0))
        inspect(client).settle()
        assert len(inspect(client).ledger("t").ledgers()) == 1
    publish(client, [("a", b"9")])
    kept = [4, 5, 6, 7, 8, 9]
    for number, start in enumerate(ids):
        for inclusive in (False, True):
            found = read_compacted(client, start, start_message_id_inclusive=inclusive)
            wanted = [n for n in kept if n > number or (inclusive and n == number)]
            assert data_of(found) == [b"%d" % n for n in wanted]
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    subscriber = client.subscribe("t", "compacted", **EARLIEST)
    for number in (5, 0, 7, 3, 8):
        wanted = [b"%d" % n for n in kept if n > number]
        reader.seek(ids[number])
        assert data_of(read(reader)) == wanted
        subscriber.seek(ids[number])
        assert received(subscriber) == wanted
    reader.seek(MessageId.earliest)
    assert data_of(read(reader)) == [b"%d" % n for n in kept]
    subscriber.seek(MessageId.latest)
    assert received(subscriber) == []


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_time_inside_goes_on_with_the_next_survivor(
    open_client: OpenClient, trimmed: bool
) -> None:
    clock = pulsarx.ManualClock(start_ms=1_000_000)
    client = open_client(broker_options=SMALL, clock=clock)
    holder = client.subscribe("t", "s")
    for number in range(8):
        publish(client, [(f"k{number % 5}", b"%d" % number)])
        clock.advance(1)
    compacted(client)  # 3 4 5 6 7 survive
    if trimmed:
        holder.acknowledge_many(holder.receive_many(100, 0))
        inspect(client).settle()
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    for number in range(9):
        reader.seek(1_000_000 + 1000 * number)
        assert data_of(read(reader)) == [b"%d" % n for n in range(max(number, 3), 8)]


def test_trimmed_survivors_are_held_for_a_subscription_that_reads_them(
    open_client: OpenClient,
) -> None:
    client = open_client(broker_options=SMALL)
    holder = client.subscribe("t", "s")
    publish(client, [(f"k{n}", b"%d" % n) for n in range(10)])
    compacted(client)
    holder.acknowledge_many(holder.receive_many(100, 0))
    inspect(client).settle()
    consumer = client.subscribe("t", "late", **EARLIEST)
    first = consumer.receive_many(4, 0)
    consumer.acknowledge(first[0])
    consumer.acknowledge(first[2].message_id())
    client.close()
    client = open_client(broker_options=SMALL)
    publish(client, [("k1", b"new")])
    compacted(client)  # 1 is superseded
    consumer = client.subscribe("t", "late", is_read_compacted=True)
    messages = drain(consumer)
    assert data_of(messages) == [b"3", b"4", b"5", b"6", b"7", b"8", b"9", b"new"]
    consumer.acknowledge_many(messages)
    assert client.admin.topics.stats("t")["subscriptions"]["late"]["msg_backlog"] == 0
    client.close()
    client = open_client(broker_options=SMALL)
    assert received(client.subscribe("t", "late", is_read_compacted=True)) == []


@pytest.mark.parametrize("entries", [2, 3, 4, 100])
@pytest.mark.parametrize("says_first", [True, False])
def test_a_start_at_a_trimmed_message_in_chunks_is_at_its_first_one(
    open_client: OpenClient, entries: int, says_first: bool
) -> None:
    """It was at the last chunk, without the others: the message did not come."""
    options = BrokerOptions(max_message_size=600, managed_ledger_max_entries_per_ledger=entries)
    client = open_client(broker_options=options)
    other = client.subscribe("t", "s")
    values = [b"%d" % number * 1500 for number in range(4)]
    with client.create_producer("t", chunking_enabled=True) as producer:
        ids = [producer.send(value, partition_key=str(n)) for n, value in enumerate(values)]
    compacted(client)
    other.acknowledge_many(other.receive_many(10, 0))
    inspect(client).settle()
    consumer = client.subscribe("t", "c", start_message_id_inclusive=True, **EARLIEST)
    for number, message_id in enumerate(ids):
        place = message_id
        if not says_first:
            place = MessageId(-1, message_id.ledger_id(), message_id.entry_id(), -1)
        found = read_compacted(client, place, start_message_id_inclusive=True)
        assert data_of(found) == values[number:]
        assert data_of(read_compacted(client, place)) == values[number + 1 :]
        consumer.seek(place)
        assert received(consumer) == values[number:]


def test_a_start_behind_the_last_survivor_of_a_trimmed_batch_is_at_the_next(
    open_client: OpenClient,
) -> None:
    """It was refused as a position that the ledger has not."""
    client = open_client(broker_options=SMALL)
    other = client.subscribe("t", "s")
    ids = publish(client, [(key, b"1") for key in "abcd"], **BATCHED)
    publish(client, [("c", b"2"), ("d", b"2"), ("e", b"2")])
    compacted(client)
    other.acknowledge_many(other.receive_many(10, 0))
    inspect(client).settle()
    consumer = client.subscribe("t", "c", **EARLIEST)
    behind = ids[1].ledger_id(), ids[1].entry_id()
    for place, expected in [
        (ids[0], [b"1", b"2", b"2", b"2"]),
        *[(place, [b"2", b"2", b"2"]) for place in (*ids[1:], MessageId(-1, *behind, -1))],
    ]:
        consumer.seek(place)
        assert received(consumer) == expected
        assert data_of(read_compacted(client, place)) == expected
    # What compaction took out is acknowledged with an id of it, and that changes nothing.
    consumer.seek(MessageId.earliest)
    consumer.acknowledge(ids[3])
    consumer.acknowledge(ids[0])
    assert received(consumer) == [b"1", b"2", b"2", b"2"]
    consumer.acknowledge_cumulative(MessageId(-1, *behind, -1))
    consumer.redeliver_unacknowledged_messages()
    assert received(consumer) == [b"2", b"2", b"2"]


@pytest.mark.guest(left_out="messages come later")
def test_what_was_compacted_away_at_the_begin_of_the_topic_is_no_backlog(
    open_client: OpenClient,
) -> None:
    """Of a subscription older than the first message it stayed in the backlog, and kept its ledgers
    from being trimmed."""
    client = open_client(broker_options=SMALL)
    consumer = client.subscribe("t", "s", **EARLIEST)
    publish(client, [("a", b"%d" % number) for number in range(5)])
    compacted(client)
    found = consumer.receive_many(10, 0)
    assert data_of(found) == [b"4"]
    consumer.acknowledge_many(found)
    inspect(client).settle()
    assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 0
    assert len(inspect(client).ledger("t").ledgers()) == 1


def test_what_a_consumer_holds_is_acknowledged_although_it_was_compacted_away_meanwhile(
    open_client: OpenClient,
) -> None:
    """Where its ledger was trimmed, that raised NotAllowedError: out of range."""
    client = open_client(broker_options=SMALL)
    other = client.subscribe("t", "s")

    def trim() -> None:
        compacted(client)
        other.acknowledge_many(other.receive_many(10, 0))
        inspect(client).settle()

    publish(client, [(key, b"1") for key in "abcdef"])
    trim()
    consumer = client.subscribe("t", "c", **EARLIEST)
    found = consumer.receive_many(10, 0)
    assert data_of(found) == [b"1"] * 6
    publish(client, [(key, b"2") for key in "bcdef"])
    trim()
    consumer.acknowledge(found[1])
    consumer.acknowledge(MessageId.deserialize(found[2].message_id().serialize()))
    consumer.acknowledge_many(found[3:])
    consumer.redeliver_unacknowledged_messages()
    assert received(consumer) == [b"1", b"2", b"2", b"2", b"2", b"2"]
    consumer.acknowledge_cumulative(found[5])
    consumer.redeliver_unacknowledged_messages()
    assert received(consumer) == [b"2"] * 5


def test_a_topic_without_any_ledger_left_is_read(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    holder = client.subscribe("t", "s")
    publish(client, [("a", b"1"), ("b", b"2")])
    compacted(client)
    holder.acknowledge_many(holder.receive_many(100, 0))
    client.admin.topics.unload("t")
    client.close()
    client = open_client(broker_options=SMALL)
    inspect(client).topic("t").trim()
    consumer = client.subscribe("t", "late", **EARLIEST)
    messages = drain(consumer)
    assert data_of(messages) == [b"1", b"2"]
    consumer.acknowledge_many(messages)
    consumer.close()
    assert received(client.subscribe("t", "late", is_read_compacted=True)) == []


def test_the_end_of_what_survived_is_the_end_that_is_told(memory_client: pulsarx.Client) -> None:
    """Where all behind a position was compacted away, nothing is available there."""
    ids = publish(memory_client, [("a", b"1"), ("b", b"2"), (None, b"3"), ("c", b"")], **BATCHED)
    reader = memory_client.create_reader("t", ids[1], is_read_compacted=True)
    assert reader.has_message_available()
    assert reader.get_last_message_id() == ids[3]
    compacted(memory_client)
    reader.seek(ids[1])
    assert not reader.has_message_available()
    assert reader.get_last_message_id() == ids[1]
    consumer = memory_client.subscribe("t", "s", is_read_compacted=True)
    assert consumer.get_last_message_id() == ids[1]
    assert memory_client.create_reader("t", MessageId.earliest).get_last_message_id() == ids[3]
    latest = memory_client.create_reader(
        "t", MessageId.latest, is_read_compacted=True, start_message_id_inclusive=True
    )
    assert data_of(read(latest)) == [b"2"]


def test_a_reader_goes_on_in_the_result_that_took_over_what_it_had_before_it(
    open_client: OpenClient,
) -> None:
    client = open_client(broker_options=SMALL)
    holder = client.subscribe("t", "s")
    publish(client, [(f"k{n}", b"%d" % n) for n in range(8)])
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    first = [reader.read_next(60_000)]
    compacted(client)
    holder.acknowledge_many(holder.receive_many(100, 0))
    inspect(client).settle()
    assert len(inspect(client).ledger("t").ledgers()) == 1  # the reader's next ones are gone
    assert data_of(first + read(reader)) == [b"%d" % n for n in range(8)]


@pytest.mark.parametrize("compacts_first", [False, True])
def test_removals_of_what_was_read_come_although_they_are_compacted_away_meanwhile(
    open_client: OpenClient, compacts_first: bool
) -> None:
    """A reader went on in the new result, where neither the key nor its removal is left: a table
    view showed the removed key for ever."""
    client = open_client(broker_options=SMALL)
    publish(client, [("a", b"1"), ("b", b"1"), ("c", b"1")])
    if compacts_first:
        compacted(client)
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    first = [reader.read_next(60_000) for _ in range(2)]
    assert data_of(first) == [b"1", b"1"]
    publish(client, [("a", b""), ("b", b"2"), ("b", b"3")])
    compacted(client)
    assert data_of(read(reader)) == [b"1", b"", b"2", b"3"]


def test_an_empty_ledger_behind_the_horizon_is_no_message(open_client: OpenClient) -> None:
    """With all others trimmed there was no last message: a table view began empty."""
    client = open_client(broker_options=SMALL)
    other = client.subscribe("t", "s")
    publish(client, [("a", b"1"), ("b", b"1")])
    compacted(client)
    other.acknowledge_many(other.receive_many(10, 0))
    ledger = inspect(client).ledger("t")
    ledger.cut()
    inspect(client).settle()
    ledger.open_writer()
    inspect(client).topic("t").trim()
    assert [each.message_count for each in ledger.ledgers()] == [0]
    found = read_compacted(client)  # which asks for the last id
    assert data_of(found) == [b"1", b"1"]
    assert dict(client.create_table_view("t").items()) == {"a": b"1", "b": b"1"}


def test_an_old_result_is_read_to_its_end(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    publish(client, [(f"k{n}", b"%d" % n) for n in range(5)])
    compacted(client)
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    first = [reader.read_next(60_000)]
    publish(client, [(f"k{n}", b"") for n in range(4)] + [("k9", b"9")])
    compacted(client)
    client.admin.topics.truncate("t")
    assert data_of(first + read(reader))[:5] == [b"%d" % n for n in range(5)]


def test_consumers_of_a_subscription_agree_on_it(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1"), ("a", b"2")])
    compacted(memory_client)
    failover = ConsumerType.Failover
    first = memory_client.subscribe("t", "s", failover, is_read_compacted=True)
    with pytest.raises(errors.ConsumerBusy, match="Failover with is_read_compacted"):
        memory_client.subscribe("t", "s", failover)
    memory_client.subscribe("t", "s", failover, is_read_compacted=True)
    first.seek(MessageId.earliest)
    assert received(first) == [b"2"]


def test_another_subscription_sees_all(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1"), ("a", b"2")], **BATCHED)
    compacted(memory_client)
    received(memory_client.subscribe("t", "s", **EARLIEST))
    other = memory_client.subscribe("t", "o", initial_position=InitialPosition.Earliest)
    assert received(other) == [b"1", b"2"]


def test_a_non_durable_subscription_reads_compacted(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1"), ("a", b"2")], **BATCHED)
    compacted(memory_client)
    consumer = memory_client.subscribe(
        "t", "s", subscription_mode=pulsarx.SubscriptionMode.NonDurable, **EARLIEST
    )
    assert received(consumer) == [b"2"]


def test_partitions_lists_and_patterns_read_compacted(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 2)
    pairs = [(f"k{n % 6}", b"%d" % n) for n in range(60)]
    publish(memory_client, pairs, topic="p")
    publish(memory_client, [("a", b"x"), ("a", b"y")], topic="q")
    compacted(memory_client, "p")
    compacted(memory_client, "q")
    wanted = sorted([b"%d" % n for n in range(54, 60)] + [b"y"])
    for number, topic in enumerate((["p", "q"], re.compile("persistent://public/default/.*"))):
        consumer = memory_client.subscribe(topic, f"s{number}", **EARLIEST)
        assert sorted(received(consumer)) == wanted


def test_a_listener_is_given_survivors(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    publish(clocked_client, [("a", b"1"), ("a", b"2")], **BATCHED)
    compacted(clocked_client)
    found: list[bytes] = []
    clocked_client.subscribe(
        "t", "s", message_listener=lambda _, message: found.append(message.data()), **EARLIEST
    )
    manual_clock.advance(0)
    assert found == [b"2"]


def test_columns_hold_survivors(memory_client: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    publish(memory_client, [(f"k{n % 4}", b"%d" % n) for n in range(10)], **BATCHED)
    compacted(memory_client)
    reader = memory_client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    table = pyarrow.table(reader.read_arrow(100, 0))
    assert table.column("value").to_pylist() == [b"6", b"7", b"8", b"9"]
    assert not reader.has_message_available()


def test_a_table_view_reads_compacted(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    holder = client.subscribe("t", "s")
    publish(client, [(f"k{n}", b"%d" % n) for n in range(6)] + [("k0", b"")])
    compacted(client)
    holder.acknowledge_many(holder.receive_many(100, 0))
    inspect(client).settle()
    view = client.create_table_view("t")
    assert dict(view.items()) == {f"k{n}": b"%d" % n for n in range(1, 6)}


def test_a_client_beside_the_owner_reads_compacted(open_client: OpenClient) -> None:
    owner = open_client(broker_options=SMALL)
    holder = owner.subscribe("t", "s")
    publish(owner, [("a", b"1"), ("b", b"2"), ("a", b"3")], **BATCHED)
    beside = open_client(read_only=True)
    assert beside.admin.topics.compaction_status("t")["status"] == "NOT_RUN"
    reader = beside.create_reader("t", MessageId.earliest, is_read_compacted=True)
    first = [reader.read_next(60_000)]
    compacted(owner)
    assert beside.admin.topics.compaction_status("t")["status"] == "SUCCESS"
    with pytest.raises(errors.OperationNotSupported):
        beside.admin.topics.trigger_compaction("t")
    assert pairs_of(read_compacted(beside)) == [("b", b"2"), ("a", b"3")]
    for number in range(6):
        publish(owner, [("c", b"%d" % number)])
    compacted(owner)
    holder.acknowledge_many(holder.receive_many(100, 0))
    inspect(owner).settle()
    wanted = [("b", b"2"), ("a", b"3"), ("c", b"5")]
    assert pairs_of(read_compacted(beside)) == wanted
    assert pairs_of(first + read(reader))[-1] == ("c", b"5")
    assert beside.admin.topics.stats("t")["compaction"]["compacted_messages"] == 3
    owner.close()
    assert pairs_of(read_compacted(beside)) == wanted


COMPACTS_TWICE = """
import sys
import pulsarx
from pulsarx.testing import inspect
client = pulsarx.Client(sys.argv[1])
producer = client.create_producer("t")
for value in (b"1", b"2"):
    producer.send(value, partition_key="a")
    producer.send(value, partition_key="b" + str(value))
    client.admin.topics.trigger_compaction("t")
    inspect(client).settle()
    print("compacted")
    sys.stdin.readline()
"""


def test_a_result_that_was_replaced_is_no_damage_to_a_client_beside_the_owner(
    folder: Path, open_client: OpenClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another thread of the client had read the catalogue just before, the old file counted
    as lost, and all survivors with it."""
    with ChildProcess(COMPACTS_TWICE, folder) as owner:
        assert owner.line() == "compacted"
        client = open_client(read_only=True)
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        owner.tell("go on")
        assert owner.line() == "compacted"
        broker: Any = inspect(client).broker
        refresh = broker.refresh

        def refreshed_before() -> bool:
            refresh()
            return False

        monkeypatch.setattr(broker, "refresh", refreshed_before)
        assert data_of(read(reader)) == [b"1", b"2", b"2"]


TRIMS_WHAT_IS_BEING_READ = """
import sys
import pulsarx
from pulsarx.testing import inspect
options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=4)
client = pulsarx.Client(sys.argv[1], broker_options=options)
other = client.subscribe("t", "s", pulsarx.ConsumerType.Shared)
producer = client.create_producer("t")
for keys in ("ab", "cdefgh"):
    for key in keys:
        producer.send(b"1", partition_key=key)
    if keys != "ab":
        client.admin.topics.trigger_compaction("t")
        inspect(client).settle()
        other.acknowledge_many(other.receive_many(100, 0))
        inspect(client).settle()
    print(len(inspect(client).ledger("t").ledgers()))
    sys.stdin.readline()
"""


def test_the_rest_of_a_ledger_comes_that_was_trimmed_while_another_process_read_it(
    folder: Path, open_client: OpenClient
) -> None:
    with ChildProcess(TRIMS_WHAT_IS_BEING_READ, folder) as owner:
        assert owner.line() == "1"
        client = open_client(read_only=True)
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        assert [message.partition_key() for message in read(reader)] == ["a", "b"]
        owner.tell("go on")
        assert owner.line() == "1"
        assert [message.partition_key() for message in read(reader)] == [*"cdefgh"]


def test_the_reserved_subscription_is_not_for_users(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1")])
    compacted(memory_client)
    assert memory_client.admin.topics.get_subscriptions("t") == []
    assert memory_client.admin.topics.stats("t")["subscriptions"] == {}
    with pytest.raises((errors.NotAllowedError, ValueError, errors.PulsarException)):
        memory_client.subscribe("t", "__compaction")
