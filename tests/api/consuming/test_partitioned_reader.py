"""Facts about readers on partitioned topics."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
from compaction_steps import compacted
from sleeping_thread import until_asleep
from topic_reading import OpenClient, numbers, read

import pulsarx
from pulsarx import MessageId, errors

WAIT = 60
PARTITIONS = 3


@pytest.fixture
def client(clocked_client: pulsarx.Client) -> pulsarx.Client:
    clocked_client.admin.topics.create_partitioned_topic("t", PARTITIONS)
    return clocked_client


def publish(client: pulsarx.Client, count: int, start: int = 0) -> dict[bytes, MessageId]:
    """Messages 0, 1, 2 ... go to the partitions in turn."""
    with client.create_producer("t", message_router=lambda m, n: int(m.data()) % n) as producer:
        return {payload: producer.send(payload) for payload in numbers(count, start)}


def by_partition(payloads: list[bytes]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for payload in payloads:
        found[int(payload) % PARTITIONS].append(int(payload))
    return found


def expected(numbers_read: range) -> list[list[int]]:
    return by_partition([b"%d" % number for number in numbers_read])


def test_it_reads_all_partitions_each_in_order(client: pulsarx.Client) -> None:
    ids = publish(client, 30)
    reader = client.create_reader("t", MessageId.earliest)
    assert reader.topic() == "persistent://public/default/t"
    messages = [reader.read_next(0) for _ in range(30)]
    assert by_partition([each.data() for each in messages]) == expected(range(30))
    for each in messages:
        assert each.message_id() == ids[each.data()]
        assert each.message_id().partition() == int(each.data()) % PARTITIONS
        assert each.topic_name().endswith(f"-partition-{each.message_id().partition()}")
    assert not reader.has_message_available()
    with pytest.raises(errors.Timeout):
        reader.read_next(0)
    publish(client, 1, 30)
    assert read(reader) == [b"30"]


def test_no_partition_is_read_out_before_the_others(client: pulsarx.Client) -> None:
    publish(client, 30)
    reader = client.create_reader("t", MessageId.earliest)
    for _ in range(10):
        taken = [int(reader.read_next(0).data()) % PARTITIONS for _ in range(PARTITIONS)]
        assert sorted(taken) == [0, 1, 2]


def test_latest_is_behind_what_each_partition_holds(client: pulsarx.Client) -> None:
    publish(client, 9)
    reader = client.create_reader("t", MessageId.latest)
    inclusive = client.create_reader("t", MessageId.latest, start_message_id_inclusive=True)
    assert read(reader) == []
    assert sorted(read(inclusive)) == [b"6", b"7", b"8"]
    publish(client, 3, 9)
    assert sorted(read(reader)) == sorted(read(inclusive)) == [b"10", b"11", b"9"]


def test_a_waiting_read_is_woken_by_any_partition(client: pulsarx.Client) -> None:
    reader = client.create_reader("t", MessageId.latest)
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(reader.read_next().data()))
    thread.start()
    until_asleep(thread)
    publish(client, 1, 2)
    thread.join(WAIT)
    assert found == [b"2"]


@pytest.mark.parametrize("inclusive", [False, True])
def test_an_id_moves_its_partition_alone(client: pulsarx.Client, inclusive: bool) -> None:
    ids = publish(client, 30)
    reader = client.create_reader("t", MessageId.earliest, start_message_id_inclusive=inclusive)
    assert len(read(reader)) == 30
    reader.seek(ids[b"10"])
    first = 10 if inclusive else 13
    assert read(reader) == [b"%d" % number for number in range(first, 30, PARTITIONS)]


def test_a_time_and_the_ends_move_all_partitions(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    publish(client, 9)
    manual_clock.advance(10)
    time_ms = manual_clock.now_ms()
    publish(client, 9, 9)
    reader = client.create_reader("t", MessageId.latest)
    reader.seek(time_ms)
    assert by_partition(read(reader)) == expected(range(9, 18))
    reader.seek(MessageId.earliest)
    assert by_partition(read(reader)) == expected(range(18))
    reader.seek(MessageId.earliest)
    reader.seek(MessageId.latest)
    assert read(reader) == []


def test_a_seek_wakes_a_read_that_waits(client: pulsarx.Client) -> None:
    publish(client, 3)
    reader = client.create_reader("t", MessageId.latest)
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(reader.read_next().data()))
    thread.start()
    until_asleep(thread)
    reader.seek(MessageId.earliest)
    thread.join(WAIT)
    assert len(found) == 1
    assert sorted(found + read(reader)) == [b"0", b"1", b"2"]


def test_partitions_that_come_are_read_from_their_beginning(client: pulsarx.Client) -> None:
    reader = client.create_reader("t", MessageId.latest)
    client.admin.topics.update_partitioned_topic("t", 5)
    publish(client, 10)
    assert sorted(map(int, read(reader))) == list(range(10))


def test_a_listener_gets_the_messages_of_all_partitions(client: pulsarx.Client) -> None:
    publish(client, 9)
    found: list[bytes] = []
    came = threading.Semaphore(0)

    def listener(_: Any, message: Any) -> None:
        found.append(message.data())
        came.release()

    reader = client.create_reader("t", MessageId.earliest, reader_listener=listener)
    publish(client, 9, 9)
    for _ in range(18):
        assert came.acquire(timeout=WAIT)
    assert by_partition(found) == expected(range(18))
    with pytest.raises(errors.InvalidConfiguration):
        reader.read_next(0)


def test_messages_come_as_lists_and_columns(client: pulsarx.Client) -> None:
    publish(client, 9)
    reader = client.create_reader("t", MessageId.earliest)
    listed = reader.read_many(9, 0)
    assert by_partition([each.data() for each in listed]) == expected(range(9))
    reader.seek(MessageId.earliest)
    sizes = [len(reader.read_arrow(100, 0)) for _ in range(PARTITIONS)]
    assert sizes == [3, 3, 3]
    assert len(reader.read_arrow(100, 0)) == 0


def place(message_id: MessageId) -> tuple[int, int, int]:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()


@pytest.mark.parametrize("inclusive", [False, True])
def test_an_id_to_start_at_is_compared_with_the_ledgers_of_each_partition(
    open_client: OpenClient, inclusive: bool
) -> None:
    """As by a real broker, whose ledgers have one order over all partitions, too."""
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    client = open_client(broker_options=options)
    client.admin.topics.create_partitioned_topic("t", PARTITIONS)
    ids = publish(client, 24)
    assert len({each.ledger_id() for each in ids.values()}) == 12
    for start in ids.values():
        reader = client.create_reader("t", start, start_message_id_inclusive=inclusive)
        behind = [
            payload
            for payload, each in ids.items()
            if place(each) > place(start) or (inclusive and each == start)
        ]
        assert reader.has_message_available() == bool(behind)
        assert by_partition(read(reader)) == by_partition(behind)
        reader.close()


def test_an_id_of_no_partition_to_start_at_is_in_front_of_or_behind_what_there_is(
    client: pulsarx.Client,
) -> None:
    publish(client, 9)
    assert len(read(client.create_reader("t", MessageId(-1, 0, 0, -1)))) == 9
    reader = client.create_reader("t", MessageId(1, 1 << 40, 0, -1))
    assert not reader.has_message_available()
    publish(client, 3, 9)
    assert sorted(read(reader)) == [b"10", b"11", b"9"]


def test_within_a_batch_a_reader_starts_behind_one_message(client: pulsarx.Client) -> None:
    with client.create_producer("t-partition-1", batching_enabled=True) as producer:
        ids = producer.send_many(numbers(5))
    reader = client.create_reader("t", ids[2])
    assert read(reader) == [b"3", b"4"]
    reader = client.create_reader("t", ids[2], start_message_id_inclusive=True)
    assert read(reader) == [b"2", b"3", b"4"]


def test_partitions_that_come_to_a_reader_with_a_start_id_are_read_whole(
    client: pulsarx.Client,
) -> None:
    ids = publish(client, 9)
    reader = client.create_reader("t", max(ids.values(), key=place))
    client.admin.topics.update_partitioned_topic("t", 4)
    client.create_producer("t-partition-3").send(b"new")
    assert read(reader) == [b"new"]


def compacted_partitions(client: pulsarx.Client) -> dict[bytes, MessageId]:
    """Each partition has two keys, of which one has a later value; it is compacted. Then one has a
    later value still."""
    ids: dict[bytes, MessageId] = {}

    def send(partition: int, key: str, payload: bytes) -> None:
        with client.create_producer(f"t-partition-{partition}") as producer:
            ids[payload] = producer.send(payload, partition_key=key)

    for index in range(PARTITIONS):
        send(index, "a", b"old %d" % index)
        send(index, "b", b"kept %d" % index)
        send(index, "a", b"new %d" % index)
        compacted(client, f"t-partition-{index}")
    for index in range(PARTITIONS):
        send(index, "b", b"behind %d" % index)
    return ids


def of_each(*kinds: str) -> list[bytes]:
    return sorted(f"{kind} {index}".encode() for kind in kinds for index in range(PARTITIONS))


def test_compacted_partitions_are_read_as_compacted(client: pulsarx.Client) -> None:
    compacted_partitions(client)
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    assert sorted(read(reader)) == of_each("kept", "new", "behind")
    plain = client.create_reader("t", MessageId.earliest)
    assert sorted(read(plain)) == of_each("old", "kept", "new", "behind")
    assert not reader.has_message_available()


def test_a_seek_among_compacted_partitions_goes_to_what_survived(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    ids = compacted_partitions(client)
    reader = client.create_reader("t", MessageId.latest, is_read_compacted=True)
    reader.seek(ids[b"old 1"])
    assert read(reader) == [b"kept 1", b"new 1", b"behind 1"]
    reader.seek(manual_clock.now_ms())
    assert sorted(read(reader)) == of_each("kept", "new", "behind")
    manual_clock.advance(10)
    reader.seek(manual_clock.now_ms())
    assert read(reader) == []


def test_a_start_id_among_compacted_partitions_is_compared_as_in_others(
    client: pulsarx.Client,
) -> None:
    ids = compacted_partitions(client)
    survivors = [each for each in ids if not each.startswith(b"old")]
    for start in ids.values():
        reader = client.create_reader("t", start, is_read_compacted=True)
        behind = [each for each in survivors if place(ids[each]) > place(start)]
        assert sorted(read(reader)) == sorted(behind)


def test_partitions_that_come_to_a_reader_of_compacted_ones_are_read_so_too(
    client: pulsarx.Client,
) -> None:
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    client.admin.topics.update_partitioned_topic("t", 4)
    with client.create_producer("t-partition-3") as producer:
        producer.send(b"old", partition_key="a")
        producer.send(b"new", partition_key="a")
    compacted(client, "t-partition-3")
    assert read(reader) == [b"new"]


def test_ids_of_no_partition_are_sought_nowhere(client: pulsarx.Client) -> None:
    reader = client.create_reader("t", MessageId.earliest)
    with pytest.raises(errors.OperationNotSupported):
        reader.get_last_message_id()
    with pytest.raises(errors.OperationNotSupported, match="no partition"):
        reader.seek(MessageId(0, 999, 0, -1))


def after_close() -> list[Callable[[Any], object]]:
    return [
        lambda reader: reader.read_next(0),
        lambda reader: reader.read_many(1, 0),
        lambda reader: reader.has_message_available(),
        lambda reader: reader.seek(0),
        lambda reader: reader.get_last_message_id(),
        lambda reader: reader.close(),
    ]


@pytest.mark.parametrize("call", after_close(), ids=range(6))
def test_closed_it_refuses_all_calls(client: pulsarx.Client, call: Callable[[Any], object]) -> None:
    publish(client, 3)
    reader = client.create_reader("t", MessageId.earliest)
    assert reader.is_connected()
    reader.close()
    assert not reader.is_connected()
    with pytest.raises(errors.AlreadyClosed):
        call(reader)


def test_closing_leaves_the_topic_free_to_be_deleted(client: pulsarx.Client) -> None:
    reader = client.create_reader("t", MessageId.earliest)
    with pytest.raises(errors.PulsarException):
        client.admin.topics.delete_partitioned_topic("t")
    reader.close()
    client.admin.topics.delete_partitioned_topic("t")


def test_a_forgotten_one_is_gone_at_once(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    gc.disable()  # it is in no circle of references
    try:
        other = pulsarx.Client("memory:clocked", clock=manual_clock, durability="os")
        reader = other.create_reader("t", MessageId.earliest)
        del reader, other
        client.admin.topics.delete_partitioned_topic("t")
    finally:
        gc.enable()


def test_a_deleted_topic_ends_it(client: pulsarx.Client) -> None:
    reader = client.create_reader("t", MessageId.earliest)
    client.admin.topics.delete_partitioned_topic("t", force=True)
    assert not reader.is_connected()
    with pytest.raises(errors.PulsarException):
        reader.read_next(0)


def test_the_client_closes_it(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("t", PARTITIONS)
    reader = client.create_reader("t", MessageId.earliest)
    client.close()
    assert not reader.is_connected()
    with pytest.raises(errors.AlreadyClosed):
        reader.read_next(0)


def test_what_is_made_of_itself_may_have_partitions() -> None:
    options = pulsarx.BrokerOptions(
        allow_auto_topic_creation_type="partitioned", default_num_partitions=2
    )
    with pulsarx.Client("memory:auto", broker_options=options) as client:
        reader = client.create_reader("new", MessageId.earliest)
        client.create_producer("new").send(b"x")
        assert reader.read_next(0).message_id().partition() in (0, 1)


def test_an_id_whose_ledger_was_trimmed_moves_its_partition_to_what_is_left(
    open_client: OpenClient,
) -> None:
    options = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    client = open_client(broker_options=options)
    client.admin.topics.create_partitioned_topic("t", PARTITIONS)
    ids = publish(client, 30)
    reader = client.create_reader("t", MessageId.latest)
    client.admin.topics.truncate("persistent://public/default/t-partition-1")
    publish(client, 3, 30)
    assert sorted(read(reader)) == [b"30", b"31", b"32"]
    reader.seek(ids[b"1"])
    assert read(reader)[-1] == b"31"
