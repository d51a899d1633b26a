"""Facts about messages that are too large for one entry, and are published in chunks."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from sleeping_thread import until_asleep
from support.consumer_types import ALL_TYPES
from topic_reading import OpenClient, Told, payloads, read_all, whole_topic

import pulsarx
from pulsarx import (
    BrokerOptions,
    CompressionType,
    ConsumerType,
    InitialPosition,
    MessageId,
    Result,
    errors,
)
from pulsarx.schema import JsonSchema, Record, String
from pulsarx.testing.faults import fault_plan

LIMIT = 1000
SMALL = BrokerOptions(max_message_size=LIMIT)
LARGE = bytes(range(256)) * 20
all_types = pytest.mark.parametrize("kind", ALL_TYPES, ids=lambda kind: kind.name)


@pytest.fixture
def limited(open_client: OpenClient) -> pulsarx.Client:
    return open_client(broker_options=SMALL)


def chunking(limited: pulsarx.Client, topic: str = "t", **options: Any) -> Any:
    return limited.create_producer(topic, chunking_enabled=True, **options)


def subscribe(limited: pulsarx.Client, name: str = "s", **options: Any) -> Any:
    options.setdefault("initial_position", InitialPosition.Earliest)
    return limited.subscribe("t", name, **options)


def backlog(limited: pulsarx.Client, name: str = "s") -> tuple[int, int]:
    found = limited.admin.topics.stats("t")["subscriptions"][name]
    return found["msg_backlog"], found["backlog_entries"]


# Publishing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "compression",
    [CompressionType.NONE, CompressionType.LZ4, CompressionType.ZSTD, CompressionType.ZLib],
)
def test_a_message_of_any_size_comes_as_it_was_sent(
    limited: pulsarx.Client, compression: CompressionType
) -> None:
    producer = chunking(limited, compression_type=compression)
    bodies = [os.urandom(size) for size in (0, 1, LIMIT - 200, LIMIT, LIMIT + 1, 50_000)]
    for body in bodies:
        producer.send(body, {"name": "värde"}, "key", "order", event_timestamp=7)
    messages = read_all(limited)
    assert [each.data() for each in messages] == bodies
    assert [each.size() for each in messages] == [len(body) for body in bodies]
    for number, each in enumerate(messages):
        assert each.properties() == {"name": "värde"}
        assert (each.partition_key(), each.ordering_key()) == ("key", "order")
        assert (each.event_timestamp(), each.sequence_id()) == (7, number)
        assert each.producer_name() == producer.producer_name()


def test_no_entry_is_larger_than_a_message_may_be(limited: pulsarx.Client) -> None:
    chunking(limited).send(LARGE, {"p": "x" * 700})
    ledger = limited.admin.topics.stats("t")["ledgers"][0]
    # Key and properties go with each chunk, and count.
    assert ledger["entries"] > len(LARGE) // 300
    assert whole_topic(limited) == [LARGE]


def test_what_compresses_into_one_entry_is_an_ordinary_message(limited: pulsarx.Client) -> None:
    sent = chunking(limited, compression_type=CompressionType.ZLib).send(bytes(20_000))
    assert sent.first_chunk_message_id() is None
    assert limited.admin.topics.stats("t")["entries"] == 1
    assert whole_topic(limited) == [bytes(20_000)]


def test_without_chunking_a_large_message_is_refused_as_before(limited: pulsarx.Client) -> None:
    with pytest.raises(errors.MessageTooBig, match="max_message_size"):
        limited.create_producer("t").send(LARGE)


def test_chunking_and_batching_exclude_each_other(limited: pulsarx.Client) -> None:
    with pytest.raises(ValueError, match=r"can.t be enabled together"):
        chunking(limited, batching_enabled=True)


def test_properties_that_leave_no_room_for_a_chunk_are_refused(limited: pulsarx.Client) -> None:
    with pytest.raises(errors.MessageTooBig, match="key, properties"):
        chunking(limited).send(LARGE, {"p": "x" * LIMIT})
    assert whole_topic(limited) == []


def test_send_async_tells_the_ids_of_the_first_and_the_last_chunk(limited: pulsarx.Client) -> None:
    producer, told = chunking(limited), Told()
    producer.send_async(LARGE, told)
    producer.send_async(b"small", told)
    producer.flush()
    (ok, chunked), (_, plain) = told.results
    assert ok == Result.Ok
    assert chunked is not None
    assert plain is not None
    first = chunked.first_chunk_message_id()
    assert first is not None
    assert (first.entry_id(), chunked.entry_id(), plain.entry_id()) == (0, 5, 6)
    assert plain.first_chunk_message_id() is None


def test_send_many_takes_large_messages(limited: pulsarx.Client) -> None:
    contents = [b"a", LARGE, b"b", LARGE + b"!"]
    ids = chunking(limited).send_many(contents, keys=["1", "2", "3", "4"])
    messages = read_all(limited)
    assert [each.data() for each in messages] == contents
    assert [each.message_id() for each in messages] == ids
    assert [each.partition_key() for each in messages] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("durability", ["sync", "interval", "os"])
def test_a_message_takes_as_many_pending_slots_as_it_has_chunks(
    open_client: OpenClient, durability: str
) -> None:
    """A message that needs more than there are must be refused: it would wait for ever."""
    limited = open_client(broker_options=SMALL, durability=durability)
    producer = chunking(limited, max_pending_messages=5, block_if_queue_full=True)
    told = Told()
    with pytest.raises(errors.ProducerQueueIsFull, match="6 chunks"):
        producer.send(LARGE)
    producer.send_async(LARGE, told)
    producer.send_async(LARGE[:3000], told)
    producer.send_async(LARGE[:3000], told)
    producer.flush()
    assert [result for result, _ in told.results] == [
        Result.ProducerQueueIsFull,
        Result.Ok,
        Result.Ok,
    ]
    assert whole_topic(limited) == [LARGE[:3000]] * 2


class WaitingForRoom:
    """A message in chunks for which there is no room while the disk stands still; in the block it
    waits."""

    def __init__(self, open_client: OpenClient) -> None:
        self.client = open_client(broker_options=SMALL, durability="sync")
        self.producer = chunking(
            self.client, max_pending_messages=10, block_if_queue_full=True, send_timeout_millis=0
        )
        self.producer.send(LARGE)  # what a disk is needed for besides is done
        self.failures: list[Exception] = []
        self._thread = threading.Thread(target=self._send)
        self._stack = ExitStack()

    def _send(self) -> None:
        try:
            self.producer.send(LARGE, {"size": "large"})
        except errors.PulsarException as error:
            self.failures.append(error)

    def __enter__(self) -> WaitingForRoom:
        self._plan = self._stack.enter_context(fault_plan())
        self._plan.stall("flush", sticky=True)
        for _ in range(5):
            self.producer.send_async(b"before", None)
        while not self._plan.stalled():
            pass
        self._thread.start()
        until_asleep(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._plan.release()
        self._thread.join(60)
        self._stack.close()
        assert not self._thread.is_alive()


def test_a_message_that_waits_for_room_keeps_its_properties(open_client: OpenClient) -> None:
    """It got those that another thread sent meanwhile, or what had become of their memory."""
    waiting = WaitingForRoom(open_client)
    with waiting:
        waiting.producer.send_async(b"small", None, {"size": "small", "other": "x" * 100})
    waiting.producer.flush()
    found = [(each.data(), each.properties()) for each in read_all(waiting.client)]
    assert found[6:] == [
        (b"small", {"size": "small", "other": "x" * 100}),
        (LARGE, {"size": "large"}),
    ]


def test_a_message_that_waits_for_room_is_refused_when_its_producer_closes(
    open_client: OpenClient,
) -> None:
    """It was stored behind the end of its producer, whose name another one may have had."""
    waiting = WaitingForRoom(open_client)
    with waiting:
        closing = threading.Thread(target=waiting.producer.close)
        closing.start()
        until_asleep(closing)
    closing.join(60)
    assert [type(each) for each in waiting.failures] == [errors.AlreadyClosed]
    assert whole_topic(waiting.client) == [LARGE, *[b"before"] * 5]


def test_a_schema_decodes_after_the_chunks_were_put_together(limited: pulsarx.Client) -> None:
    class Page(Record):  # type: ignore[misc, unused-ignore]
        text = String()

    schema = JsonSchema(Page)
    producer = chunking(limited, schema=schema)
    producer.send(Page(text="x" * 5000))
    found = subscribe(limited, schema=schema).receive(0)
    assert found.value().text == "x" * 5000


def test_a_table_has_no_row_that_needs_chunks(limited: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    producer = chunking(limited)
    with pytest.raises(errors.MessageTooBig):
        producer.send_arrow(pyarrow.table({"value": [b"a", LARGE, b"b"]}))
    producer.send(LARGE)
    assert whole_topic(limited) == [b"a", LARGE]


def test_chunks_of_one_sequence_id_are_no_duplicates_of_each_other(
    open_client: OpenClient,
) -> None:
    options = BrokerOptions(max_message_size=LIMIT, broker_deduplication_enabled=True)
    client = open_client(broker_options=options)
    producer = chunking(client, producer_name="p")
    for sequence_id in (5, 6, 5):
        producer.send(LARGE + b"%d" % sequence_id, sequence_id=sequence_id)
    assert whole_topic(client) == [LARGE + b"5", LARGE + b"6"]


# Ids ----------------------------------------------------------------------------------------------


def test_the_id_is_that_of_the_last_chunk_and_holds_that_of_the_first(
    limited: pulsarx.Client,
) -> None:
    producer = chunking(limited)
    producer.send(b"before")
    sent = producer.send(LARGE)
    first = sent.first_chunk_message_id()
    assert first is not None
    assert (first.entry_id(), sent.entry_id()) == (1, 6)
    (_, message) = read_all(limited)
    for each in (
        message.message_id(),
        MessageId.deserialize(sent.serialize()),
        MessageId.from_text(sent.to_text()),
    ):
        assert each == sent
        assert each.first_chunk_message_id() == first
    assert sent == MessageId(sent.partition(), sent.ledger_id(), sent.entry_id())
    assert sent.to_text() == f"{first.to_text()};{sent.ledger_id()}:6:-1"


def test_serialized_ids_are_those_of_the_official_client() -> None:
    java = bytes.fromhex("0805100330003a06080510013000")
    found = MessageId.deserialize(java)
    first = found.first_chunk_message_id()
    assert first is not None
    assert (found.entry_id(), first.ledger_id(), first.entry_id()) == (3, 5, 1)
    assert found.serialize().hex() == "080510033a0408051001"


@pytest.mark.parametrize(
    "data", ["080510033a020805", "080510033a0a0805", "080510033a03080510"], ids=str
)
def test_a_damaged_first_chunk_in_an_id_is_refused(data: str) -> None:
    with pytest.raises(ValueError, match="not a serialized message id"):
        MessageId.deserialize(bytes.fromhex(data))


@pytest.mark.parametrize("text", ["1:2:-1;", ";1:2:-1", "1:2:-1;1:3:-1;1:4:-1", "1:2:0;1:3:1",
                                  "(1,2,-1,-1);1:3:-1", "1:2:-1:0;1:3:-1"])  # fmt: skip
def test_a_malformed_text_of_two_chunks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a message id"):
        MessageId.from_text(text)


# Consuming ----------------------------------------------------------------------------------------


@all_types
def test_a_message_in_chunks_is_one_message(limited: pulsarx.Client, kind: ConsumerType) -> None:
    """One permit, one redelivery count, one unacknowledged message."""
    consumer = subscribe(limited, consumer_type=kind, receiver_queue_size=3)
    producer = chunking(limited)
    bodies = [b"a", LARGE, LARGE + b"2", b"b"]
    for body in bodies:
        producer.send(body)
    assert backlog(limited) == (4, 2 + 2 * 6)
    messages = [consumer.receive(0) for _ in bodies]
    assert [each.data() for each in messages] == bodies
    assert consumer.receive_many(10, 0) == []
    found = limited.admin.topics.stats("t")["subscriptions"]["s"]
    assert (found["unacked_messages"], found["msg_backlog"]) == (4, 4)
    consumer.acknowledge(messages[1])
    assert backlog(limited) == (3, 2 + 6)
    consumer.redeliver_unacknowledged_messages()
    again = [consumer.receive(0) for _ in range(3)]
    assert [each.data() for each in again] == [b"a", LARGE + b"2", b"b"]
    assert [each.redelivery_count() for each in again] == [1, 1, 1]
    for each in again:
        consumer.acknowledge(each.message_id())
    assert backlog(limited) == (0, 0)


@all_types
def test_what_is_not_acknowledged_comes_whole_after_a_restart(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    limited = open_client(broker_options=SMALL)
    consumer = subscribe(limited, consumer_type=kind)
    producer = chunking(limited)
    sent = [producer.send(body) for body in (LARGE, b"a", LARGE + b"2", b"b")]
    for _ in sent:
        consumer.receive(0)
    consumer.acknowledge(MessageId.deserialize(sent[0].serialize()))
    consumer.acknowledge(sent[3])
    limited.close()
    limited = open_client(broker_options=SMALL)
    consumer = subscribe(limited, consumer_type=kind)
    assert payloads(consumer) == [b"a", LARGE + b"2"]
    # By ids of the life before, of which nothing was read by then.
    consumer.acknowledge(sent[1])
    consumer.acknowledge(sent[2])
    assert backlog(limited) == (0, 0)


@all_types
def test_an_id_of_a_message_that_was_not_read_yet_acknowledges_all_of_it(
    open_client: OpenClient, kind: ConsumerType
) -> None:
    limited = open_client(broker_options=SMALL)
    consumer = subscribe(limited, consumer_type=kind, receiver_queue_size=1)
    producer = chunking(limited)
    producer.send(b"a")
    large = producer.send(LARGE)
    producer.send(b"b")
    consumer.acknowledge(large)
    messages = [consumer.receive(0), consumer.receive(0)]
    assert [each.data() for each in messages] == [b"a", b"b"]
    consumer.acknowledge_many(messages)
    assert backlog(limited) == (0, 0)


@pytest.mark.parametrize("kind", ALL_TYPES[:2], ids=lambda kind: kind.name)
@pytest.mark.parametrize("read", [False, True])
def test_a_cumulative_acknowledgement_takes_all_chunks(
    limited: pulsarx.Client, kind: ConsumerType, read: bool
) -> None:
    consumer = subscribe(limited, consumer_type=kind)
    producer = chunking(limited)
    ids = [producer.send(body) for body in (LARGE, b"a", LARGE, b"b")]
    if read:
        payloads(consumer)
    consumer.acknowledge_cumulative(ids[2])
    assert backlog(limited) == (1, 1)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [b"b"]


@pytest.mark.parametrize("kind", ALL_TYPES[2:], ids=lambda kind: kind.name)
def test_all_chunks_go_to_one_consumer_and_from_it_to_the_next(
    limited: pulsarx.Client, kind: ConsumerType
) -> None:
    first = subscribe(limited, consumer_type=kind)
    second = subscribe(limited, consumer_type=kind)
    producer = chunking(limited)
    bodies = {LARGE + b"%d" % number for number in range(20)}
    for number, body in enumerate(sorted(bodies)):
        producer.send(body, partition_key=str(number))
    here, there = payloads(first), payloads(second)
    assert here and there
    assert {*here, *there} == bodies
    assert len(here) + len(there) == 20
    first.close()
    assert set(payloads(second)) == set(here)


@all_types
def test_a_negative_acknowledgement_brings_all_of_it_again(
    clocked_limited: tuple[pulsarx.Client, pulsarx.ManualClock], kind: ConsumerType
) -> None:
    limited, clock = clocked_limited
    consumer = subscribe(limited, consumer_type=kind, negative_ack_redelivery_delay_ms=1000)
    chunking(limited).send(LARGE)
    consumer.negative_acknowledge(consumer.receive(0))
    assert consumer.receive_many(1, 0) == []
    clock.advance(1)
    again = consumer.receive(0)
    assert (again.data(), again.redelivery_count()) == (LARGE, 1)


@pytest.mark.border(left_out="overdue acknowledgements, columns")
@all_types
def test_an_overdue_acknowledgement_brings_all_of_it_again(
    clocked_limited: tuple[pulsarx.Client, pulsarx.ManualClock], kind: ConsumerType
) -> None:
    limited, clock = clocked_limited
    consumer = subscribe(limited, consumer_type=kind, unacked_messages_timeout_ms=10_000)
    chunking(limited).send(LARGE)
    consumer.receive(0)
    clock.advance(20)
    again = consumer.receive(0)
    assert (again.data(), again.redelivery_count()) == (LARGE, 1)


@pytest.fixture
def clocked_limited(
    open_client: OpenClient, manual_clock: pulsarx.ManualClock
) -> tuple[pulsarx.Client, pulsarx.ManualClock]:
    return open_client(broker_options=SMALL, clock=manual_clock), manual_clock


@pytest.mark.parametrize("kind", ALL_TYPES[2:], ids=lambda kind: kind.name)
def test_a_delayed_message_in_chunks_comes_when_it_is_due(
    clocked_limited: tuple[pulsarx.Client, pulsarx.ManualClock], kind: ConsumerType
) -> None:
    limited, clock = clocked_limited
    consumer = subscribe(limited, consumer_type=kind)
    producer = chunking(limited)
    producer.send(LARGE, deliver_at=clock.now_ms() + 60_000)
    producer.send(b"now")
    assert payloads(consumer) == [b"now"]
    clock.advance(60)
    assert payloads(consumer) == [LARGE]


@pytest.mark.guest(left_out="messages come later")
@pytest.mark.border(left_out="overdue acknowledgements, columns")
def test_columns_hold_messages_in_chunks(limited: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    consumer = subscribe(limited, consumer_type=ConsumerType.Shared)
    producer = chunking(limited)
    for body in (b"a", LARGE, b"b"):
        producer.send(body)
    received = consumer.receive_arrow(10, 0)
    assert pyarrow.table(received)["value"].to_pylist() == [b"a", LARGE, b"b"]
    consumer.acknowledge_many(received)
    assert backlog(limited) == (0, 0)


# Where reading begins -----------------------------------------------------------------------------


def test_seek_goes_behind_the_last_chunk_or_to_the_first(limited: pulsarx.Client) -> None:
    producer = chunking(limited)
    producer.send(b"a")
    large = producer.send(LARGE)
    producer.send(b"b")
    large = MessageId.deserialize(large.serialize())
    behind = subscribe(limited, "behind")
    assert payloads(behind) == [b"a", LARGE, b"b"]
    behind.seek(large)
    assert payloads(behind) == [b"b"]
    at = subscribe(limited, "at", start_message_id_inclusive=True)
    at.seek(large)
    assert payloads(at) == [LARGE, b"b"]
    assert backlog(limited, "at") == (2, 7)


@pytest.mark.parametrize("inclusive", [False, True])
def test_an_id_that_does_not_say_where_the_message_begins_is_enough(
    limited: pulsarx.Client, inclusive: bool
) -> None:
    producer = chunking(limited)
    producer.send(b"a")
    sent = producer.send(LARGE)
    producer.send(b"b")
    plain = MessageId(sent.partition(), sent.ledger_id(), sent.entry_id())
    reader = limited.create_reader("t", plain, start_message_id_inclusive=inclusive)
    assert payloads_of(reader) == ([LARGE, b"b"] if inclusive else [b"b"])


@pytest.mark.parametrize("inclusive", [False, True])
def test_a_reader_starts_behind_the_last_chunk_or_at_the_first(
    limited: pulsarx.Client, inclusive: bool
) -> None:
    producer = chunking(limited)
    large = producer.send(LARGE)
    producer.send(b"b")
    reader = limited.create_reader("t", large, start_message_id_inclusive=inclusive)
    assert payloads_of(reader) == ([LARGE, b"b"] if inclusive else [b"b"])
    assert reader.has_message_available() is False
    producer.send(LARGE)
    assert reader.has_message_available() is True
    assert payloads_of(reader) == [LARGE]


@pytest.mark.border(left_out="last id in a batch")
def test_the_latest_message_inclusive_is_all_of_it(limited: pulsarx.Client) -> None:
    producer = chunking(limited)
    producer.send(b"a")
    sent = producer.send(LARGE)
    reader = limited.create_reader("t", MessageId.latest, start_message_id_inclusive=True)
    assert payloads_of(reader) == [LARGE]
    assert reader.get_last_message_id() == sent


def payloads_of(reader: Any) -> list[bytes]:
    return [each.data() for each in reader.read_many(100, 0)]


# Statistics ---------------------------------------------------------------------------------------


@pytest.mark.border(left_out="counts of chunks")
def test_statistics_say_how_many_chunks_come(
    clocked_limited: tuple[pulsarx.Client, pulsarx.ManualClock],
) -> None:
    limited, clock = clocked_limited
    producer = chunking(limited)
    for body in [LARGE] * 6 + [b"small"]:
        producer.send(body)
    found = limited.admin.topics.stats("t")
    rate = (found["entries"] - 1) / 60  # chunks, as in Pulsar
    assert rate > 6 / 60
    assert found["chunked_message_rate"] == pytest.approx(rate)
    assert found["publishers"][0]["chunked_message_rate"] == pytest.approx(rate)
    clock.advance(61)
    assert limited.admin.topics.stats("t")["chunked_message_rate"] == 0


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Shared])
def test_statistics_count_chunks_as_messages_where_they_come_in_and_where_they_go_out(
    limited: pulsarx.Client, kind: ConsumerType
) -> None:
    """As in Pulsar. Of what goes out, the bytes of the last chunk alone were counted."""
    consumer = limited.subscribe("t", "s", kind)
    producer = chunking(limited)
    for body in (LARGE, b"small"):
        producer.send(body)
    found = limited.admin.topics.stats("t")
    chunks = found["entries"] - 1
    assert chunks > 1
    assert (found["messages"], found["msg_in_counter"]) == (chunks + 1, chunks + 1)
    assert found["subscriptions"]["s"]["msg_backlog"] == 2
    assert len(consumer.receive_many(10, 0)) == 2
    found = limited.admin.topics.stats("t")
    subscription = found["subscriptions"]["s"]
    (figures,) = subscription["consumers"]
    for each in (subscription, figures):
        assert each["msg_out_counter"] == chunks + 1
        assert len(LARGE) < each["bytes_out_counter"] <= found["bytes_in_counter"]
