"""Facts about messages in chunks beside what else a topic can do: letters, deduplication,
partitions, trimming, administration, other readers, kills."""

from __future__ import annotations

import errno
import threading
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from child_process import ChildProcess
from chunk_entries import ChunkWriter
from support.consumer_types import ALL_TYPES
from topic_reading import OpenClient, Told, payloads, read_all, whole_topic

import pulsarx
from pulsarx import (
    BrokerOptions,
    ConsumerDeadLetterPolicy,
    ConsumerType,
    InitialPosition,
    MessageId,
    PartitionsRoutingMode,
    Result,
    errors,
)
from pulsarx.testing import inspect
from pulsarx.testing.faults import fault_plan

LIMIT = 1000
SMALL = BrokerOptions(max_message_size=LIMIT)
FOUR_A_LEDGER = BrokerOptions(max_message_size=LIMIT, managed_ledger_max_entries_per_ledger=4)
LARGE = bytes(range(256)) * 20
CHUNKS = 6  # of LARGE
all_types = pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
    ids=lambda kind: kind.name,
)


@pytest.fixture
def client(open_client: OpenClient, manual_clock: pulsarx.ManualClock) -> pulsarx.Client:
    return open_client(broker_options=SMALL, clock=manual_clock)


def chunking(client: pulsarx.Client, topic: str = "t", **options: Any) -> Any:
    return client.create_producer(topic, chunking_enabled=True, **options)


def subscribe(client: pulsarx.Client, name: str = "s", **options: Any) -> Any:
    options.setdefault("initial_position", InitialPosition.Earliest)
    return client.subscribe("t", name, **options)


def backlog(client: pulsarx.Client, name: str = "s") -> tuple[int, int]:
    found = client.admin.topics.stats("t")["subscriptions"][name]
    return found["msg_backlog"], found["backlog_entries"]


# Letters ------------------------------------------------------------------------------------------


@all_types
def test_a_dead_letter_is_chunked_again_and_all_of_the_message_is_acknowledged(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    consumer = subscribe(client, consumer_type=kind, dead_letter_policy=ConsumerDeadLetterPolicy(1))
    chunking(client).send(LARGE, {"mine": "kept"}, "key")
    for _ in range(2):
        consumer.negative_acknowledge(consumer.receive(0))
        manual_clock.advance(60)
    assert consumer.receive_many(1, 0) == []
    (letter,) = read_all(client, "t-s-DLQ")
    assert (letter.data(), letter.partition_key()) == (LARGE, "key")
    assert letter.properties()["mine"] == "kept"
    assert letter.message_id().first_chunk_message_id() is not None
    assert backlog(client) == (0, 0)


def test_chunks_of_a_message_that_is_too_large_are_not_acknowledged_as_a_dead_letter(
    client: pulsarx.Client,
) -> None:
    """It stays unacknowledged, its consumer is told. When it had come too often it was counted as
    acknowledged instead, though another version may read it."""
    writer = ChunkWriter(client, "t")
    client.create_producer("t").close()
    packed = zlib.compress(b"x" * 1000)
    parts = [packed[:8], packed[8:]]
    for number, part in enumerate(parts):
        writer.chunk("u", number, 2, part, len(packed), compression=2, uncompressed_size=1 << 31)
    consumer = subscribe(
        client,
        consumer_type=ConsumerType.Shared,
        dead_letter_policy=ConsumerDeadLetterPolicy(1, "dead", "kept"),
    )
    for _ in range(4):
        with suppress(errors.UnreadableEntryError):
            assert payloads(consumer) == []
        assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 1
        consumer.redeliver_unacknowledged_messages()


@all_types
def test_a_retry_letter_is_chunked_again(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock, kind: ConsumerType
) -> None:
    consumer = subscribe(client, consumer_type=kind, retry_enable=True)
    chunking(client).send(LARGE)
    consumer.reconsume_later(consumer.receive(0), 3000)
    assert backlog(client) == (0, 0)
    manual_clock.advance(5)
    assert consumer.receive(0).data() == LARGE


# Deduplication ------------------------------------------------------------------------------------

DEDUPLICATING = BrokerOptions(max_message_size=LIMIT, broker_deduplication_enabled=True)


def test_a_message_in_chunks_that_is_sent_again_is_not_stored_again(
    open_client: OpenClient,
) -> None:
    client = open_client(broker_options=DEDUPLICATING)
    producer = chunking(client, producer_name="p")
    producer.send(LARGE, sequence_id=5)
    again = producer.send(LARGE, sequence_id=5)
    assert (again.ledger_id(), again.first_chunk_message_id()) == (-1, None)
    producer.send(LARGE, sequence_id=6)
    assert whole_topic(client) == [LARGE] * 2
    client.close()
    client = open_client(broker_options=DEDUPLICATING)
    producer = chunking(client, producer_name="p")
    assert producer.last_sequence_id() == 6
    producer.send(LARGE, sequence_id=6)
    assert whole_topic(client) == [LARGE] * 2


def test_a_message_whose_last_chunk_was_not_stored_is_not_taken_for_a_duplicate(
    open_client: OpenClient,
) -> None:
    """The sequence id counts with the last chunk: what is sent again must be stored."""
    client = open_client(broker_options=SMALL)
    client.create_producer("t").close()
    consumer = subscribe(client)
    writer = ChunkWriter(client, "t")
    for number in range(2):
        writer.chunk("p", number, 3, b"x")
    client.close()
    client = open_client(broker_options=DEDUPLICATING)
    consumer = subscribe(client)
    producer = chunking(client, producer_name="p")
    assert producer.last_sequence_id() == -1
    producer.send(LARGE)
    assert payloads(consumer) == [LARGE]


# Failures -----------------------------------------------------------------------------------------


def test_a_full_disk_fails_the_message_and_its_chunks_are_given_up(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    consumer = subscribe(client)
    producer, told = chunking(client), Told()
    producer.send(b"a")
    with fault_plan() as plan:
        plan.fail("write", 3, error=errno.ENOSPC)
        with pytest.raises(errors.PulsarException):
            producer.send(LARGE)
    producer.send_async(LARGE + b"2", told)
    producer.flush()
    assert told.results[0][0] == Result.Ok
    messages = consumer.receive_many(10, 0)
    assert [each.data() for each in messages] == [b"a", LARGE + b"2"]
    consumer.acknowledge_many(messages)
    assert backlog(client)[0] == 0
    manual_clock.advance(61)
    assert backlog(client) == (0, 0)


def test_no_chunk_is_stored_before_the_catalogue_says_that_there_may_be_some(
    client: pulsarx.Client,
) -> None:
    """Statistics of other processes look for chunks where it does."""
    producer = chunking(client)
    producer.send(b"a")
    with fault_plan() as plan:
        plan.fail("write", error=errno.ENOSPC)  # of the commit
        with pytest.raises(errors.PulsarException):
            producer.send(LARGE)
    assert client.admin.topics.stats("t")["entries"] == 1
    producer.send(LARGE)
    assert whole_topic(client) == [b"a", LARGE]


PROGRAM = """
import os, sys
import pulsarx
from pulsarx import BrokerOptions
from pulsarx._pycore.ground import file_system
client = pulsarx.Client(sys.argv[1], durability="os",
                        broker_options=BrokerOptions(max_message_size=1000))
producer = client.create_producer("t", chunking_enabled=True, producer_name="p")
producer.send(b"before")
number = 0
print("ready")
sys.stdin.readline()
while True:
    producer.send(bytes(range(256)) * 20)
"""


@pytest.mark.standard
@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared], ids=str)
def test_after_a_kill_messages_are_whole_or_not_there(
    open_client: OpenClient, folder: Path, kind: ConsumerType
) -> None:
    client = open_client(broker_options=SMALL)
    subscribe(client, consumer_type=kind).close()
    client.close()
    with ChildProcess(PROGRAM, folder) as child:
        assert child.line() == "ready"
        child.tell("go")
        while True:
            with pulsarx.Client(folder, read_only=True) as reading:
                if reading.admin.topics.stats("t")["entries"] > 50:
                    break
        child.kill()
    client = open_client(broker_options=SMALL)
    consumer = subscribe(client, consumer_type=kind)
    chunking(client, producer_name="p").send(b"behind")
    found = payloads(consumer)
    assert (found[0], found[-1]) == (b"before", b"behind")
    assert set(found[1:-1]) == {LARGE}


# Threads ------------------------------------------------------------------------------------------


@pytest.mark.standard
@all_types
def test_producers_of_several_threads_get_in_between_and_every_message_comes_whole(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    client = open_client(broker_options=FOUR_A_LEDGER)
    consumers = [subscribe(client, consumer_type=kind)]
    if kind != ConsumerType.Exclusive:
        consumers.append(subscribe(client, consumer_type=kind))
    sent = {b"%d-%d-" % (who, number) + LARGE for who in range(4) for number in range(25)}

    def publish(who: int) -> None:
        with chunking(client) as producer:
            for number in range(25):
                producer.send(b"%d-%d-" % (who, number) + LARGE, partition_key=str(number))

    received: list[list[bytes]] = [[] for _ in consumers]
    enough = threading.Event()

    def receive(which: int) -> None:
        while not enough.is_set():
            for message in consumers[which].receive_many(5, 50):
                received[which].append(message.data())
                consumers[which].acknowledge(message)
            if sum(map(len, received)) >= len(sent):
                enough.set()

    threads = [threading.Thread(target=publish, args=(who,)) for who in range(4)]
    threads += [threading.Thread(target=receive, args=(which,)) for which in range(len(consumers))]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(data for each in received for data in each) == sorted(sent)
    assert backlog(client) == (0, 0)


# Ledgers ------------------------------------------------------------------------------------------


@all_types
def test_the_ledger_of_the_first_chunk_stays_while_the_message_is_unacknowledged(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    client = open_client(broker_options=FOUR_A_LEDGER)
    consumer = subscribe(client, consumer_type=kind)
    producer = chunking(client)
    for body in (LARGE, b"a", b"b", b"c", b"d", b"e"):
        producer.send(body)
    messages = consumer.receive_many(10, 0)
    consumer.acknowledge_many(messages[1:])
    inspect(client).settle()
    first = messages[0].message_id().first_chunk_message_id()
    held = [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]
    assert first.ledger_id() in held
    client.close()
    client = open_client(broker_options=FOUR_A_LEDGER)
    consumer = subscribe(client, consumer_type=kind)
    (message,) = consumer.receive_many(10, 0)
    assert message.data() == LARGE
    consumer.acknowledge(message)
    inspect(client).settle()
    held = [each["ledger_id"] for each in client.admin.topics.stats("t")["ledgers"]]
    assert first.ledger_id() not in held
    assert backlog(client) == (0, 0)


def test_a_reader_starts_at_a_first_chunk_of_an_earlier_ledger(open_client: OpenClient) -> None:
    client = open_client(broker_options=FOUR_A_LEDGER)
    producer = chunking(client)
    producer.send(b"a")
    large = producer.send(LARGE * 3)
    first = large.first_chunk_message_id()
    assert first is not None
    assert first.ledger_id() < large.ledger_id()
    for start in (large, MessageId.latest):
        reader = client.create_reader("t", start, start_message_id_inclusive=True)
        assert [each.data() for each in reader.read_many(9, 0)] == [LARGE * 3]


# Administration -----------------------------------------------------------------------------------


def test_skip_peek_and_expire_count_messages_and_not_chunks(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    subscribe(client).close()
    producer = chunking(client)
    for body in (LARGE, b"a", LARGE + b"2", b"b"):
        producer.send(body)
    topics = client.admin.topics
    assert [each.data() for each in topics.peek_messages("t", "s", 2)] == [LARGE, b"a"]
    topics.skip_messages("t", "s", 2)
    consumer = subscribe(client)
    assert payloads(consumer) == [LARGE + b"2", b"b"]
    assert backlog(client) == (2, CHUNKS + 1)
    manual_clock.advance(100)
    producer.send(LARGE + b"3")
    topics.expire_messages("t", "s", 50)
    assert backlog(client) == (1, CHUNKS)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [LARGE + b"3"]
    topics.skip_all_messages("t", "s")
    assert backlog(client) == (0, 0)


@pytest.mark.parametrize("read", [False, True])
def test_what_expires_is_counted_in_messages_and_not_in_chunks(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock, read: bool
) -> None:
    """Chunks that nobody had read counted as messages."""
    consumer = subscribe(client)
    producer = chunking(client)
    for body in (LARGE, b"a", LARGE):
        producer.send(body)
    if read:
        assert len(payloads(consumer)) == 3
    manual_clock.advance(100)
    client.admin.topics.expire_messages("t", "s", 50)
    found = client.admin.topics.stats("t")["subscriptions"]["s"]
    assert (found["msg_backlog"], found["total_expired"]) == (0, 3)


def test_expiry_takes_all_of_a_message_whose_first_chunk_is_old(
    client: pulsarx.Client, manual_clock: pulsarx.ManualClock
) -> None:
    client.create_producer("t").close()
    consumer = subscribe(client)
    writer = ChunkWriter(client, "t")
    writer.chunk("a", 0, 2, b"a0", publish_ms=manual_clock.now_ms())
    manual_clock.advance(30)
    writer.chunk("b", 0, 2, b"b0", publish_ms=manual_clock.now_ms())
    writer.chunk("a", 1, 2, b"a1", publish_ms=manual_clock.now_ms())
    writer.chunk("b", 1, 2, b"b1", publish_ms=manual_clock.now_ms())
    assert payloads(consumer) == [b"a0a1", b"b0b1"]
    client.admin.topics.expire_messages("t", "s", 10)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [b"b0b1"]


# Other ways to read, and to write -----------------------------------------------------------------


def test_partitions_take_messages_in_chunks(client: pulsarx.Client) -> None:
    client.admin.topics.create_partitioned_topic("t", 3)
    consumer = subscribe(client)
    producer = chunking(client, message_routing_mode=PartitionsRoutingMode.RoundRobinDistribution)
    ids = [producer.send(LARGE + b"%d" % number) for number in range(6)]
    assert {each.partition() for each in ids} == {0, 1, 2}
    messages = consumer.receive_many(10, 0)
    assert sorted(each.data() for each in messages) == [LARGE + b"%d" % n for n in range(6)]
    for each in messages:
        first = each.message_id().first_chunk_message_id()
        assert first.partition() == each.message_id().partition()
        consumer.acknowledge(each)
    consumer.redeliver_unacknowledged_messages()
    assert consumer.receive_many(10, 0) == []
    found = client.admin.topics.partitioned_stats("t")
    assert found["chunked_message_rate"] == pytest.approx(found["entries"] / 60)


def test_a_table_view_holds_values_that_came_in_chunks(client: pulsarx.Client) -> None:
    producer = chunking(client)
    producer.send(LARGE, partition_key="k")
    producer.send(b"a", partition_key="j")
    with client.create_table_view("t") as view:
        assert (view["k"], view["j"]) == (LARGE, b"a")


def test_a_read_only_client_reads_messages_in_chunks_beside_the_owner(
    client: pulsarx.Client, folder: Path
) -> None:
    consumer = subscribe(client)
    producer = chunking(client)
    producer.send(LARGE)
    producer.send(b"a")
    consumer.acknowledge(consumer.receive(0))
    with pulsarx.Client(folder, read_only=True) as reading:
        assert whole_topic(reading) == [LARGE, b"a"]
        found = reading.admin.topics.stats("t")["subscriptions"]["s"]
        assert (found["msg_backlog"], found["backlog_entries"]) == (1, 1)


def test_a_checkpoint_keeps_that_a_topic_holds_messages_in_chunks(
    open_client: OpenClient, folder: Path
) -> None:
    client = open_client(broker_options=SMALL)
    consumer = subscribe(client)
    producer = chunking(client)
    producer.send(b"a")
    producer.send(LARGE)
    consumer.acknowledge(consumer.receive(0))
    for number in range(2):
        client.create_producer(f"other-{number}")
        inspect(client).catalogue.checkpoint()
    client.close()
    assert not [each for each in folder.rglob("*.commit") if b"hold_chunks" in each.read_bytes()]
    with pulsarx.Client(folder, read_only=True) as reading:
        found = reading.admin.topics.stats("t")["subscriptions"]["s"]
        assert found["msg_backlog"] == 1 < found["backlog_entries"]
