"""batching_type=BatchingType.KeyBased: a batch holds messages of one key."""

from __future__ import annotations

import errno
from typing import Any

import pytest
from topic_reading import OpenClient, Told, batched, read_all

import pulsarx
from pulsarx.testing.faults import fault_plan

KEY_BASED = pulsarx.BatchingType.KeyBased


def by_key(client: pulsarx.Client, **options: Any) -> Any:
    return batched(client, batching_type=KEY_BASED, **options)


def entries(client: pulsarx.Client) -> list[list[bytes]]:
    """The payloads of each entry of the topic, in its order."""
    found: dict[tuple[int, int], list[bytes]] = {}
    for message in read_all(client):
        place = message.message_id()
        found.setdefault((place.ledger_id(), place.entry_id()), []).append(message.data())
    return list(found.values())


def test_each_key_has_its_batch(client: pulsarx.Client) -> None:
    producer = by_key(client)
    for number, key in enumerate("abcabcabc"):
        producer.send_async(b"%d" % number, None, partition_key=key)
    assert entries(client) == []
    producer.flush()
    assert entries(client) == [[b"0", b"3", b"6"], [b"1", b"4", b"7"], [b"2", b"5", b"8"]]


def test_the_order_is_that_of_the_last_messages(client: pulsarx.Client) -> None:
    producer = by_key(client)
    for number, key in enumerate("abbaa"):
        producer.send_async(b"%d" % number, None, partition_key=key)
    producer.flush()
    assert entries(client) == [[b"1", b"2"], [b"0", b"3", b"4"]]
    assert [m.sequence_id() for m in read_all(client)] == [1, 2, 0, 3, 4]
    assert producer.last_sequence_id() == 4


def test_the_ordering_key_comes_first(client: pulsarx.Client) -> None:
    producer = by_key(client)
    producer.send_async(b"0", None, partition_key="a", ordering_key="o")
    producer.send_async(b"1", None, partition_key="b", ordering_key="o")
    producer.send_async(b"2", None, partition_key="a")
    producer.send_async(b"3", None)
    producer.send_async(b"4", None, partition_key="o")
    producer.send_async(b"5", None, partition_key="")
    producer.flush()
    assert sorted(entries(client)) == [[b"0", b"1"], [b"2"], [b"3", b"5"], [b"4"]]


@pytest.mark.parametrize("compression", ["NONE", "ZLib"])
def test_messages_are_what_was_sent(client: pulsarx.Client, compression: str) -> None:
    kind = pulsarx.CompressionType.__members__[compression]
    producer = by_key(client, compression_type=kind)
    told = Told()
    for number in range(20):
        producer.send_async(
            b"%d" % number, told, {"at": str(number)}, f"key {number % 3}",
            event_timestamp=number + 1,
        )  # fmt: skip
    producer.flush()
    found = {message.message_id(): message for message in read_all(client)}
    assert len(found) == len(told.results) == 20
    assert {message_id for _, message_id in told.results} == set(found)
    for message in found.values():
        number = int(message.data())
        assert message.properties() == {"at": str(number)}
        assert message.partition_key() == f"key {number % 3}"
        assert message.event_timestamp() == number + 1
        assert message.sequence_id() == number


def test_callbacks_are_told_their_own_id(client: pulsarx.Client) -> None:
    producer = by_key(client)
    told = [Told() for _ in range(6)]
    for number, each in enumerate(told):
        producer.send_async(b"%d" % number, each, partition_key="ab"[number % 2])
    producer.flush()
    found = {message.message_id(): message.data() for message in read_all(client)}
    for number, each in enumerate(told):
        ((result, message_id),) = each.results
        assert result == pulsarx.Result.Ok
        assert message_id is not None
        assert found[message_id] == b"%d" % number


def test_the_limit_of_messages_counts_all_keys(client: pulsarx.Client) -> None:
    producer = by_key(client, batching_max_messages=10)
    for number in range(9):
        producer.send_async(b"", None, partition_key=str(number % 4))
    assert entries(client) == []
    producer.send_async(b"", None, partition_key="new")
    assert sorted(map(len, entries(client))) == [1, 2, 2, 2, 3]


def test_the_limit_of_bytes_counts_all_keys(client: pulsarx.Client) -> None:
    producer = by_key(client, batching_max_allowed_size_in_bytes=900)
    for number in range(7):
        producer.send_async(bytes(100), None, partition_key=str(number))
    assert entries(client) == []
    producer.send_async(b"one more", None, partition_key="0")
    producer.send_async(bytes(100), None, partition_key="0")
    assert len(entries(client)) == 7
    producer.flush()
    assert [len(each) for each in entries(client)][-1] == 1


def test_all_go_out_after_the_delay_of_the_first(
    clocked_client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    producer = by_key(clocked_client, batching_max_publish_delay_ms=10)
    sent_ms = manual_clock.now_ms()
    producer.send_async(b"0", None, partition_key="a")
    manual_clock.advance(seconds=0.009)
    producer.send_async(b"1", None, partition_key="b")
    assert entries(clocked_client) == []
    manual_clock.advance(seconds=0.001)
    assert entries(clocked_client) == [[b"0"], [b"1"]]
    times = [message.publish_timestamp() for message in read_all(clocked_client)]
    assert times == [sent_ms, sent_ms + 9]
    producer.send_async(b"2", None, partition_key="a")
    manual_clock.advance(seconds=0.010)
    assert entries(clocked_client)[2:] == [[b"2"]]


def test_send_returns_its_own_id(client: pulsarx.Client) -> None:
    producer = by_key(client)
    producer.send_async(b"0", None, partition_key="a")
    producer.send_async(b"1", None, partition_key="b")
    sent = producer.send(b"2", partition_key="a", sequence_id=1)
    alone = producer.send(b"3", partition_key="c")
    found = {message.message_id(): message.data() for message in read_all(client)}
    assert (found[sent], found[alone]) == (b"2", b"3")
    assert (sent.batch_index(), sent.batch_size(), alone.batch_index()) == (1, 2, -1)
    assert len(found) == 4


def test_a_sequence_id_that_is_not_higher_begins_another_batch(
    client: pulsarx.Client,
) -> None:
    producer = by_key(client)
    producer.send_async(b"0", None, partition_key="a", sequence_id=5)
    producer.send_async(b"1", None, partition_key="a", sequence_id=5)
    producer.flush()
    assert entries(client) == [[b"0"], [b"1"]]


def test_a_delayed_message_goes_alone_behind_what_waits(client: pulsarx.Client) -> None:
    producer = by_key(client)
    producer.send_async(b"0", None, partition_key="a")
    producer.send_async(b"1", None, partition_key="a", deliver_at=1)
    assert entries(client) == [[b"0"], [b"1"]]


def test_send_many_makes_batches_by_key(client: pulsarx.Client) -> None:
    producer = by_key(client, batching_max_messages=50)
    contents = [b"%d" % number for number in range(120)]
    keys = [None if number % 5 == 4 else f"k{number % 5}" for number in range(120)]
    ids = producer.send_many(contents, keys=keys)
    found = {message.message_id(): message for message in read_all(client)}
    assert [found[each].data() for each in ids] == contents
    assert [found[each].partition_key() or None for each in ids] == keys
    assert [len(each) for each in entries(client)] == [10] * 10 + [4] * 5
    with pytest.raises(TypeError, match="expected type is <class 'bytes'>") as caught:
        producer.send_many([b"1", "two", b"3"], keys=["a", "b", "c"])
    assert caught.value.__notes__ == ["1 of 3 messages were published"]


@pytest.mark.border(left_out="several topics")
def test_each_partition_has_its_batches(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 2)
    producer = by_key(client)
    for number in range(12):
        producer.send_async(b"%d" % number, None, partition_key="abc"[number % 3])
    producer.flush()
    found = [read_all(client, f"t-partition-{index}") for index in range(2)]
    assert [m.partition_key() for m in found[0]] == ["b"] * 4
    assert [m.partition_key() for m in found[1]] == ["a"] * 4 + ["c"] * 4


def test_without_batching_it_changes_nothing(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", batching_type=KEY_BASED)
    assert producer.send(b"0", partition_key="a").batch_index() == -1
    assert entries(client) == [[b"0"]]


def test_the_queue_counts_what_waits_in_batches(open_client: OpenClient) -> None:
    client = open_client(durability="sync")
    producer = by_key(client, max_pending_messages=8, block_if_queue_full=True)
    for number in range(20):
        producer.send_async(b"%d" % number, None, partition_key=str(number % 3))
    producer.flush()
    stored = entries(client)
    # Eight wait and then go; how much room the next find depends on how many of those are through.
    assert [len(each) for each in stored[:3]] == [2, 3, 3]
    for key in range(3):
        of_key = [value for each in stored for value in each if int(value) % 3 == key]
        assert of_key == [b"%d" % number for number in range(key, 20, 3)]


@pytest.mark.border(left_out="codes of errors")
@pytest.mark.parametrize("failing", [1, 2])
def test_a_full_disk_is_told_to_everybody(open_client: OpenClient, failing: int) -> None:
    """The other batches go out; callbacks hear of theirs, and the flush fails."""
    client = open_client()
    producer = by_key(client)
    producer.send(b"first")
    told = [Told(), Told()]
    producer.send_async(b"a", told[0], partition_key="a")
    producer.send_async(b"b", told[1], partition_key="b")
    with fault_plan() as plan:
        plan.fail("write", failing, error=errno.ENOSPC)
        with pytest.raises(pulsarx.StorageFullError):
            producer.flush()
    producer.flush()
    results = [each.results[0][0] for each in told]
    assert (results[failing - 1] == pulsarx.Result.Ok, results[2 - failing]) == (
        False,
        pulsarx.Result.Ok,
    )
    assert entries(client) == [[b"first"], [b"b"] if failing == 1 else [b"a"]]


@pytest.mark.border(left_out="codes of errors")
def test_a_send_hears_of_its_own_batch_only(open_client: OpenClient) -> None:
    """The next flush hears of a batch nobody else was told about."""
    client = open_client()
    producer = by_key(client)
    producer.send(b"first")
    producer.send_async(b"a", None, partition_key="a")
    with fault_plan() as plan:
        plan.fail("write", 1, error=errno.ENOSPC)
        sent = producer.send(b"b", partition_key="b")
    with pytest.raises(pulsarx.StorageFullError):
        producer.flush()
    assert [message.message_id() for message in read_all(client)][1:] == [sent]
