"""Facts about compacting a topic: which messages survive, and what else it leaves alone."""

from __future__ import annotations

import random
import threading
import zlib
from pathlib import Path
from typing import Any

import pytest
from chunk_entries import ChunkWriter
from compaction_steps import (
    Pairs,
    compact,
    compacted,
    horizon,
    pairs_of,
    publish,
    read,
    read_compacted,
    survivors,
)
from seeds import seeds
from support.protobuf_fields import block, whole
from topic_reading import OpenClient, whole_topic

import pulsarx
from pulsarx import BrokerOptions, CompressionType, InitialPosition, MessageId, errors
from pulsarx._pycore.ranges.entry_codec import crc32c
from pulsarx.broker.topics.compaction import TopicCompaction
from pulsarx.broker.topics.trimming import Trimming
from pulsarx.testing import inspect

BATCHED = {"batching_enabled": True}
CODECS = ["NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY"]


@pytest.mark.parametrize("options", [{}, BATCHED], ids=["single", "batched"])
def test_the_last_message_of_each_key_survives(
    memory_client: pulsarx.Client, options: dict[str, object]
) -> None:
    publish(
        memory_client, [("a", b"1"), ("b", b"1"), ("a", b"2"), ("c", b"1"), ("a", b"3")], **options
    )
    compacted(memory_client)
    assert survivors(memory_client) == [("b", b"1"), ("c", b"1"), ("a", b"3")]


@pytest.mark.parametrize("options", [{}, BATCHED], ids=["single", "batched"])
def test_a_message_without_a_value_removes_its_key(
    memory_client: pulsarx.Client, options: dict[str, object]
) -> None:
    publish(memory_client, [("a", b"1"), ("b", b"1"), ("a", b""), ("c", b"1")], **options)
    compacted(memory_client)
    assert survivors(memory_client) == [("b", b"1"), ("c", b"1")]
    publish(memory_client, [("a", b"again"), ("b", b"")], **options)
    compacted(memory_client)
    assert survivors(memory_client) == [("c", b"1"), ("a", b"again")]


def test_a_null_value_removes_its_key(memory_client: pulsarx.Client) -> None:
    with memory_client.create_producer("t") as producer:
        producer.send(b"1", partition_key="a")
        producer.send(b"1", partition_key="b")
        producer.send(None, partition_key="a")
    compacted(memory_client)
    assert survivors(memory_client) == [("b", b"1")]


@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.parametrize("options", [{}, BATCHED], ids=["single", "batched"])
def test_messages_without_a_key_survive_where_the_option_says_so(
    open_client: OpenClient, retained: bool, options: dict[str, object]
) -> None:
    client = open_client(broker_options=BrokerOptions(topic_compaction_retain_null_key=retained))
    publish(client, [("a", b"1"), (None, b"x"), ("a", b"2"), (None, b"y")], **options)
    compacted(client)
    without = [("a", b"2")]
    assert survivors(client) == ([(None, b"x"), ("a", b"2"), (None, b"y")] if retained else without)


@pytest.mark.parametrize("codec", CODECS)
def test_survivors_of_a_batch_keep_everything_they_have(
    memory_client: pulsarx.Client, codec: str
) -> None:
    kind = getattr(CompressionType, codec)
    with memory_client.create_producer(
        "t", batching_enabled=True, batching_max_publish_delay_ms=60_000, compression_type=kind
    ) as producer:
        for number in range(12):
            producer.send_async(
                b"%d" % number * 50,
                lambda *_: None,
                partition_key=f"k{number % 5}",
                ordering_key=f"o{number}",
                properties={"number": str(number)},
                event_timestamp=1000 + number,
            )
        producer.flush()

    def everything(messages: list[object]) -> list[object]:
        return [
            (
                m.message_id(), m.partition_key(), m.ordering_key(), m.properties(), m.data(),
                m.event_timestamp(), m.publish_timestamp(), m.message_id().batch_size(),
            )
            for m in messages
        ]  # fmt: skip

    all_of_them = read(memory_client.create_reader("t", MessageId.earliest))
    compacted(memory_client)
    assert everything(read_compacted(memory_client)) == everything(all_of_them[7:])
    compacted(memory_client)  # nothing came since
    publish(memory_client, [("k0", b"")])
    compacted(memory_client)  # of a batch that was written anew
    left = [each for each in all_of_them[7:] if each.partition_key() != "k0"]
    assert everything(read_compacted(memory_client)) == everything(left)


def test_others_see_the_topic_as_it_was(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1"), ("a", b"2"), ("b", b"3"), ("b", b"")], **BATCHED)
    compacted(memory_client)
    assert whole_topic(memory_client) == [b"1", b"2", b"3", b""]
    assert memory_client.admin.topics.get_subscriptions("t") == []


def test_an_empty_topic_is_compacted_without_a_result(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_non_partitioned_topic("t")
    assert memory_client.admin.topics.compaction_status("t") == {
        "status": "NOT_RUN",
        "last_error": "",
    }
    compacted(memory_client)
    assert horizon(memory_client) == (-1, -1)
    assert survivors(memory_client) == []


def test_nothing_may_survive(open_client: OpenClient) -> None:
    client = open_client()
    publish(client, [("a", b"1"), ("a", b"")])
    compacted(client)
    assert survivors(client) == []
    reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
    assert reader.get_last_message_id() == MessageId.earliest
    publish(client, [("b", b"1")])
    assert pairs_of(read(reader)) == [("b", b"1")]
    compacted(client)
    assert survivors(client) == [("b", b"1")]


def test_partitions_are_compacted_together(memory_client: pulsarx.Client) -> None:
    memory_client.admin.topics.create_partitioned_topic("p", 3)
    publish(memory_client, [(f"k{n % 9}", b"%d" % n) for n in range(90)], topic="p")
    assert memory_client.admin.topics.compaction_status("p")["status"] == "NOT_RUN"
    compacted(memory_client, "p")
    found: Pairs = []
    for partition in range(3):
        found += survivors(memory_client, f"p-partition-{partition}")
    assert sorted(found) == sorted((f"k{n % 9}", b"%d" % n) for n in range(81, 90))


def test_a_second_compaction_is_refused_while_one_runs(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1")])
    compactions = inspect(memory_client).runtime.compactions
    entered, go_on = threading.Event(), threading.Event()
    compactions.post(lambda: (entered.set(), go_on.wait()))
    entered.wait()
    memory_client.admin.topics.trigger_compaction("t")
    assert memory_client.admin.topics.compaction_status("t")["status"] == "RUNNING"
    with pytest.raises(errors.NotAllowedError, match="a compaction of it runs"):
        memory_client.admin.topics.trigger_compaction("t")
    go_on.set()
    inspect(memory_client).settle()
    assert memory_client.admin.topics.compaction_status("t")["status"] == "SUCCESS"


def test_a_topic_that_is_not_there_is_not_compacted(memory_client: pulsarx.Client) -> None:
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.topics.trigger_compaction("missing")
    with pytest.raises(errors.TopicNotFound):
        memory_client.admin.topics.compaction_status("missing")


def test_a_terminated_topic_is_compacted(open_client: OpenClient) -> None:
    client = open_client()
    publish(client, [("a", b"1"), ("a", b"2")])
    client.admin.topics.terminate("t")
    compacted(client)
    assert survivors(client) == [("a", b"2")]


def test_a_result_outlives_its_owner_and_unloading(open_client: OpenClient) -> None:
    client = open_client()
    publish(client, [("a", b"1"), ("b", b"1"), ("a", b"2")], **BATCHED)
    compacted(client)
    client.admin.topics.unload("t")
    assert survivors(client) == [("b", b"1"), ("a", b"2")]
    client.close()
    again = open_client()
    assert survivors(again) == [("b", b"1"), ("a", b"2")]
    assert again.admin.topics.compaction_status("t")["status"] == "SUCCESS"
    publish(again, [("b", b"2")])
    compacted(again)
    assert survivors(again) == [("a", b"2"), ("b", b"2")]


def test_statistics_tell_of_the_last_run(open_client: OpenClient) -> None:
    clock = pulsarx.ManualClock(start_ms=5_000_000)
    client = open_client(clock=clock)
    publish(client, [("a", b"1"), ("a", b"2"), ("b", b"3")])
    before = client.admin.topics.stats("t")["compaction"]
    assert before["horizon"] == (-1, -1) and before["uncompacted_size"] > 0
    compacted(client)
    found = client.admin.topics.stats("t")["compaction"]
    last = client.admin.topics.get_last_message_id("t")
    assert found["horizon"] == (last.ledger_id(), last.entry_id())
    assert found["compacted_messages"] == 2
    assert found["last_compaction_removed_event_count"] == 1
    assert found["last_compaction_succeed_timestamp"] == 5_000_000
    assert found["uncompacted_size"] == 0


def test_truncating_removes_the_result_too(open_client: OpenClient, folder: Path) -> None:
    client = open_client()
    publish(client, [("a", b"1"), ("b", b"1")])
    compacted(client)
    client.admin.topics.truncate("t")
    inspect(client).settle()
    assert survivors(client) == []
    assert list(folder.rglob("*.ledger")) == []
    publish(client, [("b", b"2")])
    compacted(client)
    assert survivors(client) == [("b", b"2")]


@pytest.mark.parametrize("force", [False, True])
def test_deleting_the_topic_removes_the_result_too(
    open_client: OpenClient, folder: Path, force: bool
) -> None:
    client = open_client()
    publish(client, [("a", b"1"), ("b", b"1")])
    compacted(client)
    client.admin.topics.delete("t", force=force)
    inspect(client).settle()
    assert list(folder.rglob("*.ledger")) == []
    publish(client, [("c", b"1")])
    assert survivors(client) == [("c", b"1")]


def test_trimming_waits_for_compaction(open_client: OpenClient) -> None:
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    client = open_client(broker_options=options)
    consumer = client.subscribe("t", "s")

    def consume() -> None:
        consumer.acknowledge_many(consumer.receive_many(100, 0))
        inspect(client).settle()

    def ledgers() -> int:
        return len(inspect(client).ledger("t").ledgers())

    publish(client, [(f"k{n}", b"1") for n in range(9)])
    compacted(client)
    consume()
    assert ledgers() == 1  # as before: nothing is held that was compacted
    publish(client, [(f"k{n}", b"2") for n in range(9)])
    consume()
    assert ledgers() > 4  # the next run is to see them
    compacted(client)
    inspect(client).settle()
    assert ledgers() == 1
    assert survivors(client) == [(f"k{n}", b"2") for n in range(9)]


@pytest.mark.parametrize("how", ["truncated", "trimmed"])
def test_a_compaction_waits_for_what_is_just_being_removed(
    open_client: OpenClient,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
) -> None:
    """It read messages that were gone when it read them again, and an error was logged."""
    client = open_client(broker_options=BrokerOptions(managed_ledger_max_entries_per_ledger=2))
    topics = client.admin.topics
    publish(client, [(f"k{n}", b"1") for n in range(5)])
    topics.create_subscription("t", "s", MessageId.earliest)
    inspect(client).settle()
    decided, go_on, began = threading.Event(), threading.Event(), threading.Event()
    remove, passes = Trimming.remove, TopicCompaction._passes

    def remove_later(self: Trimming, ledger_ids: list[int]) -> list[int]:
        decided.set()
        go_on.wait()
        return remove(self, ledger_ids)

    def begin(self: TopicCompaction, end: Any) -> Any:
        began.set()
        return passes(self, end)

    monkeypatch.setattr(Trimming, "remove", remove_later)
    monkeypatch.setattr(TopicCompaction, "_passes", begin)
    arguments = ("t",) if how == "truncated" else ("t", "s")
    verb = topics.truncate if how == "truncated" else topics.skip_all_messages
    thread = threading.Thread(target=verb, args=arguments)
    thread.start()
    decided.wait()
    topics.trigger_compaction("t")
    too_early = began.wait(0.2)
    go_on.set()
    thread.join()
    inspect(client).settle()
    assert topics.compaction_status("t") == {"status": "SUCCESS", "last_error": ""}
    assert not too_early
    assert caplog.records == []


def test_a_topic_that_is_deleted_ends_its_compaction_without_an_error(
    open_client: OpenClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second reading came to no messages, and that was logged as an error."""
    client = open_client()
    publish(client, [("a", b"1"), ("b", b"1")])
    state, create = inspect(client).catalogue.state, TopicCompaction._create
    name = "persistent://public/default/t"
    thread = threading.Thread(target=client.admin.topics.delete, args=("t",))

    def create_later(self: TopicCompaction, *arguments: Any) -> Any:
        thread.start()
        while name in state.topics:
            pass
        return create(self, *arguments)

    monkeypatch.setattr(TopicCompaction, "_create", create_later)
    client.admin.topics.trigger_compaction("t")
    inspect(client).settle()
    thread.join()
    inspect(client).settle()
    assert caplog.records == []


def expected_of(sent: Pairs, compacted_count: int) -> Pairs:
    """What is read of a topic whose first messages were compacted."""
    last = {key: number for number, (key, _) in enumerate(sent[:compacted_count])}
    kept = [
        each
        for number, each in enumerate(sent[:compacted_count])
        if each[0] is not None and last[each[0]] == number and each[1]
    ]
    return kept + sent[compacted_count:]


@pytest.mark.parametrize("seed", seeds(6))
def test_any_topic_reads_as_the_model_says(open_client: OpenClient, seed: int) -> None:
    print("seed", seed)
    chance = random.Random(seed)
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=chance.choice([1, 3, 50]))
    client = open_client(broker_options=options)
    trims = chance.random() < 0.5
    consumer = client.subscribe("t", "s") if trims else None
    sent: Pairs = []
    done = 0
    readers = []
    for turn in range(12):
        pairs: Pairs = [
            (
                None if chance.random() < 0.1 else f"k{chance.randrange(8)}",
                b"" if chance.random() < 0.15 else b"%d" % chance.randrange(1000) * 20,
            )
            for _ in range(chance.randrange(1, 25))
        ]
        codec = getattr(CompressionType, chance.choice(CODECS))
        options_of = {"batching_enabled": True, "compression_type": codec}
        publish(client, pairs, **(options_of if chance.random() < 0.7 else {}))
        sent += pairs
        reader = client.create_reader("t", MessageId.earliest, is_read_compacted=True)
        before = expected_of(sent, done)
        taken = chance.randrange(len(before) + 1)
        readers.append((reader, before, [reader.read_next(60_000) for _ in range(taken)]))
        # Before the first time nothing holds what nobody else does.
        if turn == 0 or chance.random() < 0.4:
            compacted(client)
            done = len(sent)
        if consumer is not None:
            consumer.acknowledge_many(consumer.receive_many(1000, 0))
            inspect(client).settle()
        if chance.random() < 0.2:
            for each, _, _ in readers:
                each.close()
            readers.clear()
            client.close()
            client = open_client(broker_options=options)
            consumer = client.subscribe("t", "s") if trims else None
        assert survivors(client) == expected_of(sent, done)
    final = {key: value for key, value in sent if key is not None}
    table = client.create_table_view("t")
    assert dict(table.items()) == {key: value for key, value in final.items() if value}
    for reader, _, begun in readers:
        # Begun before, whatever was compacted and trimmed since: no survivor is missing, or twice.
        found = begun + read(reader)
        ids = [message.message_id() for message in found]
        assert ids == sorted(set(ids))
        seen = {key: value for key, value in pairs_of(found) if key is not None}
        for key, value in final.items():
            if value:
                assert seen[key] == value
        assert pairs_of(found)[len(found) - len(sent) + done :] == sent[done:]


def test_memory_is_bounded_by_the_distinct_keys(memory_client: pulsarx.Client) -> None:
    from pulsarx._pycore.ledger.compacted_reader import CompactedReader
    from pulsarx._pycore.ledger.key_compaction import KeyCompaction
    from pulsarx.compression import compress, decompress

    publish(memory_client, [(f"k{n % 10}", b"1") for n in range(50_000)], **BATCHED)
    ledger = inspect(memory_client).ledger("t")
    keys = KeyCompaction(
        end=ledger.end_position(), retain_null_key=False, seed=1, decompress=decompress,
        compress=compress, decompressed_size_max=1 << 27, marks_least=1 << 23,
    )  # fmt: skip
    while keys.scan(CompactedReader(ledger.tail, "t", ledger), 1 << 20):
        pass
    assert (keys.scanned_count, keys.key_count) == (50_000, 10)
    assert keys.memory_size < 2 << 20


@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.parametrize("seed", seeds(3))
def test_survivors_are_marked_part_by_part(
    open_client: OpenClient, seed: int, retained: bool
) -> None:
    """A bit a message would take more memory than a few keys; also a batch may be larger."""
    print("seed", seed)
    chance = random.Random(seed)
    client = open_client(broker_options=BrokerOptions(topic_compaction_retain_null_key=retained))
    sent: Pairs = []
    for size in (1, 700, 63, 64, 65, 2, 190, 300, 1, 129):
        pairs: Pairs = [
            (
                None if chance.random() < 0.1 else f"k{chance.randrange(3)}",
                b"%d" % chance.randrange(1000) if chance.random() < 0.9 else b"",
            )
            for _ in range(size)
        ]
        if size in (700, 64, 300):
            pairs.insert(size // 2, (f"kept {size}", b"kept"))
        publish(client, pairs, batching_enabled=True, batching_max_messages=1000)
        sent += pairs
    assert {key for key, _ in sent} == {None, "k0", "k1", "k2", "kept 700", "kept 64", "kept 300"}
    assert len(sent) > 3 * 64 * 6  # which is how many are marked together
    inspect(client).topic("t").compaction.marks_least = 1
    compacted(client)
    last = {key: number for number, (key, _) in enumerate(sent)}
    assert survivors(client) == [
        (key, value)
        for number, (key, value) in enumerate(sent)
        if (retained if key is None else value and last[key] == number)
    ]


def test_a_new_subscription_may_begin_anywhere(memory_client: pulsarx.Client) -> None:
    publish(memory_client, [("a", b"1"), ("a", b"2")])
    compacted(memory_client)
    latest = memory_client.subscribe("t", "l", is_read_compacted=True)
    earliest = memory_client.subscribe(
        "t", "e", is_read_compacted=True, initial_position=InitialPosition.Earliest
    )
    publish(memory_client, [("a", b"3")])
    assert [m.data() for m in latest.receive_many(10, 0)] == [b"3"]
    assert [m.data() for m in earliest.receive_many(10, 0)] == [b"2", b"3"]
    assert compact(memory_client)["status"] == "SUCCESS"


# Entries that our producers do not write ----------------------------------------------------------


def append(client: pulsarx.Client, payload: bytes, more: bytes, key: bytes, flags: int = 0) -> None:
    """Store an entry with more fields of its metadata, behind field 6."""
    metadata = block(1, b"p") + whole(2, 1) + whole(3, 1000) + block(6, key) + more
    body = len(metadata).to_bytes(4, "big") + metadata + payload
    entry = b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body
    writer = inspect(client).ledger("t").tail.writer
    assert writer is not None
    writer.append(entry, message_count=1, publish_time_ms=1000, flags=flags)


def test_a_chunked_message_is_kept_or_dropped_as_a_whole(open_client: OpenClient) -> None:
    client = open_client()
    publish(client, [("k", b"first")])
    writer = ChunkWriter(client, "t")

    def chunks(uuid: str, numbers: list[int], key: str = "k") -> None:
        for number in numbers:
            writer.chunk(uuid, number, 3, f"{uuid}{number}".encode(), key=key)

    chunks("a", [0, 1, 2])
    chunks("b", [0])
    chunks("o", [0, 1, 2], "o")
    chunks("b", [1, 2])
    chunks("c", [0, 1])  # the last one has yet to come
    compacted(client)
    with client.create_reader("t", MessageId.earliest, is_read_compacted=True) as reader:
        assert pairs_of(read(reader)) == [("o", b"o0o1o2"), ("k", b"b0b1b2")]
    chunks("c", [2])
    publish(client, [("o", b"")])
    compacted(client)
    assert survivors(client) == [("k", b"c0c1c2")]


def test_messages_in_chunks_of_one_uuid_are_told_apart(open_client: OpenClient) -> None:
    """A producer that comes back under its name counts from 0 again, so that uuids come again.
    Chunks were looked for by uuid alone: the message of the first key was compacted away."""
    client = open_client(broker_options=BrokerOptions(max_message_size=600))
    for key in "ab":
        with client.create_producer("t", producer_name="p", chunking_enabled=True) as producer:
            producer.send(key.encode() * 1500, partition_key=key)
    for key in "ab":
        with client.create_producer("t", producer_name="q", chunking_enabled=True) as producer:
            producer.send(key.upper().encode() * 1500, partition_key="c")
    compacted(client)
    assert survivors(client) == [("a", b"a" * 1500), ("b", b"b" * 1500), ("c", b"B" * 1500)]
    assert client.admin.topics.stats("t")["compaction"]["compacted_entries"] == 9  # of 12


def test_of_too_many_messages_in_chunks_all_survive(open_client: OpenClient) -> None:
    """They were followed without a bound, with uuids of any size."""
    client = open_client(durability="os")
    publish(client, [("k", b"first"), ("l", b"old"), ("l", b"new")])
    writer = ChunkWriter(client, "t")
    writer.chunk("a", 0, 2, b"a0", key="k")
    long = "u" * 1000
    writer.chunk(long, 0, 2, b"b0", key="m")
    for number in range(10_000):
        writer.chunk(f"x{number}", 0, 2, b"x", key="x")
    writer.chunk("a", 1, 2, b"a1", key="k")
    writer.chunk(long, 1, 2, b"b1", key="m")
    writer.whole(f"{long}2", [b"c0", b"c1"])
    writer.chunk(f"{long}3", 0, 2, b"d0", key="n")
    writer.chunk(f"{long}3", 1, 2, b"d1", key="n")
    compacted(client)
    consumer = client.subscribe(
        "t",
        "s",
        initial_position=pulsarx.InitialPosition.Earliest,
        is_read_compacted=True,
        max_pending_chunked_message=0,
    )
    found = [("k", b"first"), ("l", b"new"), ("k", b"a0a1"), ("m", b"b0b1"), ("n", b"d0d1")]
    assert pairs_of(consumer.receive_many(100, 0)) == found


def test_chunks_that_never_become_a_message_remove_none(open_client: OpenClient) -> None:
    """A last chunk behind a gap, or without a begin, counted as the last message of its key: the
    one before it was compacted away, and nothing came in its place."""
    client = open_client()
    publish(client, [("k", b"kept"), ("l", b"kept")])
    writer = ChunkWriter(client, "t")
    for uuid, number, key in [("a", 0, "k"), ("a", 2, "k"), ("b", 2, "l"), ("c", 0, "k")]:
        writer.chunk(uuid, number, 3, b"lost", key=key)
    writer.chunk("c", 0, 3, b"c0", key="m")  # begun anew
    writer.chunk("c", 1, 3, b"c1", key="m")
    writer.chunk("c", 1, 3, b"c1", key="m")  # repeated
    writer.chunk("a", 0, 2, b"a0", key="n")
    for _ in range(2):
        compacted(client)
        with client.create_reader("t", MessageId.earliest, is_read_compacted=True) as reader:
            assert pairs_of(read(reader)) == [("k", b"kept"), ("l", b"kept")]
        # With c0, c1 and a0, whose messages may become whole yet.
        assert client.admin.topics.stats("t")["compaction"]["compacted_entries"] == 5
        publish(client, [("o", b"")])
    writer.chunk("c", 2, 3, b"c2", key="m")
    writer.chunk("a", 1, 2, b"a1", key="n")
    compacted(client)
    found = [("k", b"kept"), ("l", b"kept"), ("m", b"c0c1c2"), ("n", b"a0a1")]
    assert survivors(client) == found


def test_markers_are_dropped_and_encrypted_batches_copied_whole(open_client: OpenClient) -> None:
    client = open_client()
    publish(client, [("k", b"first")])
    append(client, b"marker", whole(20, 1), b"m")
    # Encrypted, a batch is not looked into: nothing says which keys it holds.
    keys = block(13, block(1, b"name") + block(2, b"value"))
    append(client, b"\0" * 20, whole(11, 1) + keys, b"k", flags=1)
    publish(client, [("k", b"last")])
    compacted(client)
    found = client.admin.topics.stats("t")["compaction"]
    assert (found["compacted_entries"], found["compacted_messages"]) == (2, 2)


def batch_of(pairs: list[tuple[bytes, bytes]]) -> bytes:
    found = b""
    for key, value in pairs:
        metadata = block(2, key) + whole(3, len(value))
        found += len(metadata).to_bytes(4, "big") + metadata + value
    return found


def test_metadata_that_repeat_a_size_are_written_anew(open_client: OpenClient) -> None:
    """As protobuf has it, the last one counts. Each took more bytes in the metadata that were
    written anew, of a batch of which a part survives, than before: the process was aborted."""
    client = open_client()
    client.create_producer("t").close()
    plain = batch_of([(b"a", b"old"), (b"b", b"kept" * 100)])
    metadata = block(1, b"p") + whole(2, 0) + whole(3, 1000) + whole(8, 2)
    metadata += whole(9, 0) * 100 + whole(9, len(plain)) + whole(11, 2) + block(99, b"unknown")
    body = len(metadata).to_bytes(4, "big") + metadata + zlib.compress(plain)
    inspect(client).append_entry("t", b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body)
    publish(client, [("a", b"new")])
    compacted(client)
    assert survivors(client) == [("b", b"kept" * 100), ("a", b"new")]


def test_the_last_survivor_may_be_an_encrypted_batch_of_one(open_client: OpenClient) -> None:
    """It had the id of a message that is in no batch: who reads up to the last id did not stop."""
    client = open_client()
    publish(client, [("k", b"first")])
    keys = block(13, block(1, b"name") + block(2, b"value"))
    metadata = block(1, b"p") + whole(2, 0) + whole(3, 1000) + whole(11, 1) + keys
    body = len(metadata).to_bytes(4, "big") + metadata + b"\0" * 40
    stored = inspect(client).append_entry("t", b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body)
    with client.create_reader("t", MessageId.earliest, is_read_compacted=True) as reader:
        last = reader.get_last_message_id()
        assert (last.entry_id(), last.batch_index()) == (stored.entry_id(), 0)
        compacted(client)
        assert reader.get_last_message_id() == last
