"""Facts about the index of a message, its number among all that its topic ever had, and about when
the broker stored it: both stay what they are."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from compaction_steps import compacted, publish, read, read_compacted
from offload_steps import COUNT, LOOK_SECONDS, Store
from staged_ledgers import stage
from support.clients import OpenClient
from support.topics import filled

import pulsarx
from pulsarx import BrokerOptions, ManualClock, MessageId, MessageIndex, errors
from pulsarx.backups import salvage
from pulsarx.broker.requests.attach import Transaction, attach
from pulsarx.testing import inspect, other_process

STAMPS = {
    "managed_ledger_max_entries_per_ledger": 3,
    "broker_entry_metadata_interceptors": ("AppendBrokerTimestampMetadataInterceptor",),
}
SMALL = BrokerOptions(managed_ledger_max_entries_per_ledger=3)
STAMPED = BrokerOptions(**STAMPS)
PATIENCE_MS = 60_000  # what comes from another process
BATCHED = {"batching_enabled": True, "batching_max_messages": 4}


def indexes(client: pulsarx.Client, topic: str = "t", start: Any = MessageId.earliest) -> list[int]:
    with client.create_reader(topic, start) as reader:
        return [each.index() for each in read(reader)]


def named(client: pulsarx.Client, topic: str = "t") -> dict[MessageId, tuple[int, bytes]]:
    """Index and payload, by id."""
    with client.create_reader(topic, MessageId.earliest) as reader:
        return {each.message_id(): (each.index(), each.data()) for each in read(reader)}


def keep_all(client: pulsarx.Client) -> None:
    client.admin.namespaces.set_retention("public/default", -1, -1)


def acknowledge(client: pulsarx.Client, count: int) -> None:
    """The first messages, so that their ledgers are trimmed."""
    with client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest) as consumer:
        for _ in range(count):
            consumer.acknowledge(consumer.receive(60_000))
    inspect(client).settle()


# Counting -----------------------------------------------------------------------------------------


def test_messages_of_batches_are_counted_one_by_one(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    keep_all(client)
    publish(client, [(None, b"%d" % each) for each in range(37)], **BATCHED)
    filled(client, 5, begin=37)
    assert indexes(client) == list(range(42))
    with client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest) as consumer:
        assert [consumer.receive(PATIENCE_MS).index() for _ in range(42)] == list(range(42))
    client.shutdown()
    client = open_client(broker_options=SMALL)
    filled(client, 3, begin=42)
    assert [(index, data) for index, data in named(client).values()] == [
        (each, b"%d" % each) for each in range(45)
    ]


def test_each_partition_counts_its_own(open_client: OpenClient) -> None:
    client = open_client()
    keep_all(client)
    client.admin.topics.create_partitioned_topic("t", 3)
    filled(client, 9)
    with client.create_reader("t", MessageId.earliest) as reader:
        found: dict[str, list[int]] = {}
        for each in read(reader):
            found.setdefault(each.topic_name(), []).append(each.index())
    assert list(found.values()) == [[0, 1, 2]] * 3


def test_a_message_in_chunks_has_the_index_of_its_last_chunk(open_client: OpenClient) -> None:
    client = open_client(broker_options=BrokerOptions(max_message_size=1000))
    with client.create_producer("t", chunking_enabled=True) as producer:
        for payload in (b"one", bytes(2500), b"two"):
            producer.send(payload)
    assert indexes(client) == [0, 3, 4]


def test_a_message_of_a_non_persistent_topic_has_none(client: pulsarx.Client) -> None:
    with client.subscribe("non-persistent://public/default/t", "s") as consumer:
        with client.create_producer("non-persistent://public/default/t") as producer:
            producer.send(b"one")
        message = consumer.receive(60_000)
        assert (message.index(), message.broker_publish_timestamp()) == (-1, 0)
        with pytest.raises(errors.OperationNotSupported, match="keeps no messages"):
            consumer.seek(MessageIndex(0))


# Staying what it is -------------------------------------------------------------------------------


def test_trimmed_messages_count_on(open_client: OpenClient, manual_clock: ManualClock) -> None:
    """Some of them, then all, and after a restart."""
    client = open_client(broker_options=SMALL, clock=manual_clock)
    filled(client, 10)
    acknowledge(client, 7)
    assert indexes(client)[0] == 6
    client.shutdown()
    client = open_client(broker_options=SMALL, clock=manual_clock)
    assert indexes(client) == [6, 7, 8, 9]
    client.admin.topics.skip_all_messages("t", "s")
    client.admin.topics.truncate("t")
    inspect(client).settle()
    assert indexes(client) == []
    client.shutdown()
    for reopened in range(2):
        client = open_client(broker_options=SMALL, clock=manual_clock)
        filled(client, 2)
        assert indexes(client)[-2:] == [10 + 2 * reopened, 11 + 2 * reopened]
        client.shutdown()


def test_a_message_that_is_held_keeps_its_index_when_its_ledger_goes(
    open_client: OpenClient,
) -> None:
    client = open_client(broker_options=SMALL)
    filled(client, 4)
    with client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest) as consumer:
        held = [consumer.receive(60_000) for _ in range(4)]
        consumer.acknowledge_cumulative(held[-1])
    inspect(client).settle()
    assert indexes(client)[:1] != [0]
    assert [each.index() for each in held] == [0, 1, 2, 3]


def test_survivors_of_a_compaction_keep_theirs(open_client: OpenClient) -> None:
    """With what was read in a batch, after another compaction, and when their ledgers are gone."""
    client = open_client(broker_options=STAMPED)
    pairs = [(str(each % 4), b"%d" % each) for each in range(20)]
    publish(client, pairs, **BATCHED)
    keep_all(client)
    before = {each.message_id(): each for each in read_all(client)}
    compacted(client)
    check_survivors(client, before, 4)
    publish(client, [("0", b"20"), ("9", b"21")])
    before |= {each.message_id(): each for each in read_all(client)[-2:]}
    compacted(client)
    acknowledge(client, 22)
    client.admin.namespaces.set_retention("public/default", 0, 0)
    inspect(client).settle()
    client.shutdown()
    client = open_client(broker_options=STAMPED)
    filled(client, 1)
    inspect(client).settle()
    assert len(inspect(client).ledger("t").ledgers()) < 3
    check_survivors(client, before, 5)
    assert read_compacted(client)[-1].index() == 22
    with client.create_reader("t", MessageId.earliest, is_read_compacted=True) as reader:
        reader.seek(MessageIndex(18))
        assert [each.index() for each in read(reader)] == [18, 19, 20, 21, 22]


def read_all(client: pulsarx.Client) -> list[Any]:
    with client.create_reader("t", MessageId.earliest) as reader:
        return read(reader)


def check_survivors(client: pulsarx.Client, before: dict[Any, Any], count: int) -> None:
    found = [each for each in read_compacted(client) if each.message_id() in before]
    assert len(found) == count
    for each in found:
        then = before[each.message_id()]
        assert each.index() == then.index()
        assert each.broker_publish_timestamp() == then.broker_publish_timestamp() > 0


def test_merged_ledgers_keep_theirs(open_client: OpenClient) -> None:
    client = open_client(broker_options=STAMPED)
    keep_all(client)
    filled(client, 20)
    before = named(client)
    client.shutdown()
    client = open_client(broker_options=STAMPED)
    assert client.admin.topics.merge_ledgers("t")["files"] == 1
    assert named(client) == before


def test_offloaded_ledgers_keep_theirs(folder: Path, tmp_path: Path) -> None:
    store, clock = Store(folder, tmp_path / "store"), ManualClock()
    with store.open(clock) as client:
        keep_all(client)
        filled(client, COUNT)
        client.admin.topics.offload("t")
        inspect(client).settle()
        clock.advance(LOOK_SECONDS)
        inspect(client).settle()
    assert store.objects()
    with store.open(clock) as client:
        assert indexes(client) == list(range(COUNT))


def test_ledgers_that_jobs_attach_are_counted(folder: Path, open_client: OpenClient) -> None:
    client = open_client()
    keep_all(client)
    filled(client, 2)
    files = [stage(folder, "t", [b"a", b"b"]), stage(folder, "t", [b"c"])]
    attach(folder, Transaction("job", 0), files)
    filled(client, 2)
    assert indexes(client) == list(range(7))
    client.shutdown()
    client = open_client()
    filled(client, 1)
    assert indexes(client) == list(range(8))
    assert read_all(client)[3].broker_publish_timestamp() == 0


def test_a_cut_that_takes_the_end_of_a_ledger_moves_no_message_behind_it(
    folder: Path, tmp_path: Path, open_client: OpenClient
) -> None:
    """The catalogue does not know yet how many there were: the first entry behind says it."""
    client, free = open_client(broker_options=SMALL), threading.Event()
    keep_all(client)
    filled(client, 2)  # the next ledger is prepared at the first entry
    inspect(client).settle()
    inspect(client).runtime.background.post(lambda: free.wait(60))
    try:
        filled(client, 3, begin=2)
        first = inspect(client).ledger("t").ledgers()[0]
        assert first.state == "open"
        copied = tmp_path / "copied"
        inspect(client).runtime.roll_overs.wait()
        shutil.copytree(folder, copied, ignore=shutil.ignore_patterns("*.sock"))
    finally:
        free.set()
    lost = 10  # bytes in front of the payload of the third message
    path = next((copied / "ledgers").rglob(f"{first.ledger_id}.ledger"))
    data = path.read_bytes()
    at = data.rindex(b"2", 0, len(data.rstrip(b"\0")))
    path.write_bytes(data[: at - lost])
    (copied / "ends").write_bytes(bytes((copied / "ends").stat().st_size))
    for _ in range(2):
        with pulsarx.Client(copied, durability="os") as after:
            assert list(named(after).values()) == [(0, b"0"), (1, b"1"), (3, b"3"), (4, b"4")]


def test_a_reader_beside_a_dead_owner_knows_them(
    folder: Path, tmp_path: Path, open_client: OpenClient
) -> None:
    """Ledgers that nobody has sealed, in front of others and at the end."""
    client = open_client(broker_options=SMALL)
    filled(client, 7)
    acknowledge(client, 4)
    free = threading.Event()
    inspect(client).runtime.background.post(lambda: free.wait(60))
    try:
        filled(client, 4, begin=7)
        copied = tmp_path / "copied"
        inspect(client).runtime.roll_overs.wait()
        shutil.copytree(folder, copied, ignore=shutil.ignore_patterns("*.sock"))
    finally:
        free.set()
    with pulsarx.Client(copied, read_only=True) as beside:
        found = list(named(beside).values())
        assert found == [(each, b"%d" % each) for each in range(found[0][0], 11)]
        assert found[0][0] in (3, 4)


def test_a_topic_in_memory_counts_as_well(memory_client: pulsarx.Client) -> None:
    filled(memory_client, 3)
    memory_client.admin.topics.unload("t")
    filled(memory_client, 3)
    assert indexes(memory_client) == list(range(6))


def test_a_topic_that_is_made_anew_counts_anew(open_client: OpenClient) -> None:
    client = open_client()
    filled(client, 3)
    client.admin.topics.delete("t")
    filled(client, 3)
    assert indexes(client) == [0, 1, 2]


def test_a_salvaged_topic_keeps_them(folder: Path, tmp_path: Path, open_client: OpenClient) -> None:
    """The first entry of each ledger says it, where the catalogue is gone."""
    client = open_client(broker_options=SMALL)
    filled(client, 10)
    acknowledge(client, 7)
    client.shutdown()
    for each in (folder / "catalogue").iterdir():
        each.unlink()
    salvage(folder, tmp_path / "saved")
    with pulsarx.Client(tmp_path / "saved", durability="os") as saved:
        assert list(named(saved).values()) == [(each, b"%d" % each) for each in range(6, 10)]


# Guests -------------------------------------------------------------------------------------------


@pytest.mark.standard
def test_a_guest_knows_them_in_the_open_ledger_and_in_sealed_ones(folder: Path) -> None:
    with other_process(folder, broker_options=STAMPED), pulsarx.Client(folder) as guest:
        keep_all(guest)
        filled(guest, 10)
        with guest.create_reader("t", MessageId.earliest) as reader:
            found = [reader.read_next(PATIENCE_MS) for _ in range(10)]
            assert [each.index() for each in found] == list(range(10))
            assert all(each.broker_publish_timestamp() for each in found)
            reader.seek(MessageIndex(8))
            assert reader.read_next(PATIENCE_MS).data() == b"8"
        with guest.subscribe("t", "s") as consumer:
            consumer.seek(MessageIndex(5))
            assert consumer.receive(PATIENCE_MS).index() == 5
        assert guest.admin.topics.get_message_id_by_index("t", 4) == found[4].message_id()


# When the broker stored it ------------------------------------------------------------------------


def test_the_broker_says_when_it_stored_a_message(
    open_client: OpenClient, manual_clock: ManualClock
) -> None:
    client = open_client(broker_options=STAMPED, clock=manual_clock)
    keep_all(client)
    began = manual_clock.now_ms()
    with client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=3_600_000
    ) as producer:
        producer.send_async(b"one", None)
        manual_clock.advance(5)
        producer.flush()
        manual_clock.advance(30 * 86400)  # as long as the ledger is open, unless it is rolled over
        producer.send(b"two")
    (one, two) = read_all(client)
    assert one.publish_timestamp() == began
    assert one.broker_publish_timestamp() == began + 5000
    assert two.broker_publish_timestamp() == began + 5000 + 30 * 86_400_000
    client.shutdown()
    client = open_client(broker_options=STAMPED, clock=manual_clock)
    assert [each.broker_publish_timestamp() for each in read_all(client)] == [
        one.broker_publish_timestamp(),
        two.broker_publish_timestamp(),
    ]


def test_without_the_interceptor_the_broker_does_not_say_it(client: pulsarx.Client) -> None:
    filled(client, 1)
    assert [each.broker_publish_timestamp() for each in read_all(client)] == [0]


# Seeking ------------------------------------------------------------------------------------------


def test_a_seek_to_an_index_is_at_its_message(open_client: OpenClient) -> None:
    """In the middle of a batch, too; and in front of what is left, and behind the end."""
    client = open_client(broker_options=SMALL)
    keep_all(client)
    publish(client, [(None, b"%d" % each) for each in range(30)], **BATCHED)
    with client.subscribe("t", "s", initial_position=pulsarx.InitialPosition.Earliest) as consumer:
        for index in (17, 0, 29, 3):
            consumer.seek(MessageIndex(index))
            assert consumer.receive(60_000).data() == b"%d" % index
        consumer.seek(MessageIndex(1000))
        filled(client, 1, begin=30)
        assert consumer.receive(60_000).data() == b"30"
    client.admin.namespaces.set_retention("public/default", 0, 0)
    inspect(client).settle()
    with client.create_reader("t", MessageId.earliest) as reader:
        reader.seek(MessageIndex(9))
        first = reader.read_next(PATIENCE_MS).index()
        assert first > 9
        reader.seek(MessageIndex(30))
        assert reader.read_next(PATIENCE_MS).index() == 30


def test_an_index_is_of_one_topic(open_client: OpenClient) -> None:
    client = open_client()
    client.admin.topics.create_partitioned_topic("p", 2)
    with client.subscribe("p", "s") as consumer, client.create_reader("p", MessageId.earliest) as r:
        for each in (consumer, r):
            with pytest.raises(errors.OperationNotSupported, match="counts its own messages"):
                each.seek(MessageIndex(0))


@pytest.mark.parametrize("index", [-1, 1 << 63])
def test_an_index_that_cannot_be_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match="from 0 to"):
        MessageIndex(index)


@pytest.mark.parametrize("index", [True, "1", 1.0])
def test_an_index_is_a_whole_number(index: Any) -> None:
    with pytest.raises(TypeError, match="is an int"):
        MessageIndex(index)


def test_an_index_is_a_value() -> None:
    assert MessageIndex(3) == MessageIndex(3) != MessageIndex(4)
    assert len({MessageIndex(3), MessageIndex(3), 3}) == 2
    assert repr(MessageIndex(3)) == "MessageIndex(3)"


def test_the_id_of_an_index_can_be_asked_for(open_client: OpenClient) -> None:
    client = open_client(broker_options=SMALL)
    ids = filled(client, 10)
    acknowledge(client, 7)
    for index in range(6, 10):
        assert client.admin.topics.get_message_id_by_index("t", index) == ids[index]
    for index in (5, 10):
        with pytest.raises(errors.NotAllowedError, match="indexes from 6 to 9"):
            client.admin.topics.get_message_id_by_index("t", index)
