"""Facts about chunks as a server may have stored them: interwoven, incomplete, repeated, lying."""

from __future__ import annotations

import zlib
from random import Random
from typing import Any

import pytest
from chunk_entries import ChunkWriter
from seeds import scaled, seed_of
from support.consumer_types import ALL_TYPES
from topic_reading import OpenClient, drain, payloads, read_all, whole_topic

import pulsarx
from pulsarx import ConsumerType, InitialPosition, MessageId, errors
from pulsarx.testing import inspect

all_types = pytest.mark.parametrize("kind", ALL_TYPES, ids=lambda kind: kind.name)
MINUTE_MS = 60_000


class Topic:
    """A topic, a consumer of it and a clock that stands still."""

    def __init__(self, client: pulsarx.Client, clock: pulsarx.ManualClock) -> None:
        self.client = client
        self.clock = clock
        client.create_producer("t").close()
        self.writes_to(client)

    def writes_to(self, client: pulsarx.Client) -> None:
        self._writer = ChunkWriter(client, "t")

    def chunk(self, *args: Any, **more: Any) -> MessageId:
        more.setdefault("publish_ms", self.clock.now_ms())
        return self._writer.chunk(*args, **more)

    def subscribe(self, kind: ConsumerType = ConsumerType.Exclusive, **options: Any) -> Any:
        options.setdefault("initial_position", InitialPosition.Earliest)
        return self.client.subscribe("t", "s", kind, **options)

    def backlog(self) -> tuple[int, int]:
        found = self.client.admin.topics.stats("t")["subscriptions"]["s"]
        return found["msg_backlog"], found["backlog_entries"]


@pytest.fixture
def topic(open_client: OpenClient, manual_clock: pulsarx.ManualClock) -> Topic:
    return Topic(open_client(clock=manual_clock), manual_clock)


# Several at once ----------------------------------------------------------------------------------


@all_types
def test_interwoven_messages_come_in_the_order_of_their_last_chunks(
    topic: Topic, kind: ConsumerType
) -> None:
    consumer = topic.subscribe(kind)
    topic.chunk("a", 0, 3, b"a0")
    topic.chunk("b", 0, 2, b"b0")
    topic.chunk("a", 1, 3, b"a1")
    topic.client.create_producer("t").send(b"plain")
    topic.chunk("b", 1, 2, b"b1")
    topic.chunk("a", 2, 3, b"a2")
    messages = consumer.receive_many(10, 0)
    assert [each.data() for each in messages] == [b"plain", b"b0b1", b"a0a1a2"]
    assert topic.backlog() == (3, 6)
    consumer.acknowledge(messages[1])
    assert topic.backlog() == (2, 4)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [b"plain", b"a0a1a2"]


@pytest.mark.parametrize("kind", ALL_TYPES[:2], ids=lambda kind: kind.name)
@pytest.mark.parametrize("when", ["read", "before it is read", "after a restart"])
def test_a_cumulative_acknowledgement_spares_chunks_of_a_message_that_ends_behind_it(
    open_client: OpenClient, topic: Topic, kind: ConsumerType, when: str
) -> None:
    """Pulsar acknowledges them too, and loses the message."""
    consumer = topic.subscribe(kind)
    topic.chunk("a", 0, 3, b"a0")
    topic.chunk("b", 0, 2, b"b0")
    topic.chunk("a", 1, 3, b"a1")
    last = topic.chunk("b", 1, 2, b"b1")
    topic.chunk("a", 2, 3, b"a2")
    client = topic.client
    if when == "read":
        assert consumer.receive(0).data() == b"b0b1"
    if when == "after a restart":
        client.close()
        client = open_client()
        consumer = client.subscribe("t", "s", kind)
    consumer.acknowledge_cumulative(last)
    assert payloads(consumer) == [b"a0a1a2"]
    client.close()
    consumer = open_client().subscribe("t", "s", kind)
    (message,) = consumer.receive_many(10, 0)
    assert message.data() == b"a0a1a2"
    consumer.acknowledge_cumulative(message)
    assert consumer.receive_many(10, 0) == []


def test_has_message_available_is_false_when_only_an_incomplete_message_is_left(
    topic: Topic,
) -> None:
    reader = topic.client.create_reader("t", MessageId.earliest)
    topic.chunk("a", 0, 2, b"a0")
    assert reader.has_message_available() is False
    topic.chunk("a", 1, 2, b"a1")
    assert reader.has_message_available() is True
    assert reader.read_next().data() == b"a0a1"


@pytest.mark.parametrize("kind", ALL_TYPES, ids=lambda kind: kind.name)
def test_more_messages_than_may_wait_are_acknowledged_when_that_is_asked_for(
    topic: Topic, kind: ConsumerType
) -> None:
    consumer = topic.subscribe(
        kind, max_pending_chunked_message=1, auto_ack_oldest_chunked_message_on_queue_full=True
    )
    interweave(topic, 3)
    assert payloads(consumer) == [b"c0c1"]
    consumer.redeliver_unacknowledged_messages()
    messages = consumer.receive_many(10, 0)
    assert [each.data() for each in messages] == [b"c0c1"]


@pytest.mark.parametrize("kind", ALL_TYPES, ids=lambda kind: kind.name)
def test_more_messages_than_may_wait_come_later_by_themselves(
    topic: Topic, kind: ConsumerType
) -> None:
    consumer = topic.subscribe(kind, max_pending_chunked_message=1)
    interweave(topic, 3)
    messages = consumer.receive_many(10, 0)
    # Key_Shared: without keys they all have the same one, and keep its order.
    later = [b"a0a1", b"b0b1"]
    expected = [*later, b"c0c1"] if kind == ConsumerType.KeyShared else [b"c0c1", *later]
    assert [each.data() for each in messages] == expected
    consumer.acknowledge_many(messages)
    assert topic.backlog() == (0, 0)


def test_what_came_later_and_is_refused_comes_again_in_its_place_and_once(topic: Topic) -> None:
    consumer = topic.subscribe(max_pending_chunked_message=1)
    interweave(topic, 3)
    first = consumer.receive(0)
    assert first.data() == b"c0c1"
    for _ in range(2):
        consumer.redeliver_unacknowledged_messages()
        assert payloads(consumer) == [b"a0a1", b"b0b1", b"c0c1"]


@pytest.mark.parametrize("limit", [1, 10])
def test_a_cumulative_acknowledgement_ahead_delivers_nothing_twice(
    topic: Topic, limit: int
) -> None:
    consumer = topic.subscribe(max_pending_chunked_message=limit)
    interweave(topic, 3)
    last = topic.chunk("d", 0, 2, b"d0")
    topic.chunk("d", 1, 2, b"d1")
    consumer.acknowledge_cumulative(MessageId(-1, last.ledger_id(), 0))
    assert sorted(payloads(consumer)) == [b"a0a1", b"b0b1", b"c0c1", b"d0d1"]


def test_there_is_no_limit_where_none_is_asked_for(topic: Topic) -> None:
    consumer = topic.subscribe(max_pending_chunked_message=0)
    interweave(topic, 26)
    assert len(payloads(consumer)) == 26


def interweave(topic: Topic, count: int) -> None:
    names = [chr(ord("a") + number) for number in range(count)]
    for number in range(2):
        for name in names:
            topic.chunk(name, number, 2, f"{name}{number}".encode())


# Chunks that do not fit ---------------------------------------------------------------------------


@all_types
def test_a_repeated_chunk_is_acknowledged_and_ignored(topic: Topic, kind: ConsumerType) -> None:
    consumer = topic.subscribe(kind)
    for number, data in ((0, b"a0"), (1, b"a1"), (1, b"XX"), (2, b"a2")):
        topic.chunk("a", number, 3, data)
    (message,) = consumer.receive_many(10, 0)
    assert message.data() == b"a0a1a2"
    assert topic.backlog() == (1, 3)


@all_types
def test_a_first_chunk_from_another_place_begins_the_message_anew(
    topic: Topic, kind: ConsumerType
) -> None:
    consumer = topic.subscribe(kind)
    for number, data in ((0, b"x0"), (1, b"x1"), (0, b"a0"), (1, b"a1"), (2, b"a2")):
        topic.chunk("a", number, 3, data)
    (message,) = consumer.receive_many(10, 0)
    assert message.data() == b"a0a1a2"
    assert topic.backlog() == (1, 3)


@all_types
@pytest.mark.parametrize("numbers", [(0, 2), (1, 2), (2, 1, 0), (0, 2, 1)])
def test_chunks_behind_a_gap_are_no_message_and_go_when_they_are_older_than_the_expiry(
    topic: Topic, kind: ConsumerType, numbers: tuple[int, ...]
) -> None:
    consumer = topic.subscribe(kind)
    for number in numbers:
        topic.chunk("a", number, 3, b"a%d" % number)
    topic.client.create_producer("t").send(b"plain")
    assert payloads(consumer) == [b"plain"]
    assert topic.backlog()[1] == 1 + len(numbers)
    topic.clock.advance(61)
    assert topic.backlog() == (1, 1)
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [b"plain"]


@all_types
def test_a_message_whose_chunks_stop_coming_expires(topic: Topic, kind: ConsumerType) -> None:
    consumer = topic.subscribe(kind, expire_time_of_incomplete_chunked_message_ms=5 * MINUTE_MS)
    topic.chunk("a", 0, 3, b"a0")
    assert payloads(consumer) == []
    topic.clock.advance(200)
    topic.chunk("a", 1, 3, b"a1")
    assert payloads(consumer) == []
    topic.clock.advance(200)
    assert topic.backlog() == (0, 2)
    topic.clock.advance(101)
    assert topic.backlog() == (0, 0)
    topic.chunk("a", 2, 3, b"a2")
    assert payloads(consumer) == []


@pytest.mark.parametrize("kind", [ConsumerType.Exclusive, ConsumerType.Failover])
def test_chunks_that_never_expire_are_no_messages(topic: Topic, kind: ConsumerType) -> None:
    """Without an expiry, one that belongs to no message counted as unacknowledged, and became a
    dead letter by itself."""
    consumer = topic.subscribe(
        kind,
        expire_time_of_incomplete_chunked_message_ms=0,
        dead_letter_policy=pulsarx.ConsumerDeadLetterPolicy(1, "dead"),
    )
    letters = topic.client.subscribe("dead", "s")
    topic.chunk("a", 1, 2, b"a1")
    with topic.client.create_producer("t") as producer:
        producer.send(b"plain")
    for _ in range(2):
        assert payloads(consumer) == [b"plain"]
        stats = topic.client.admin.topics.stats("t")["subscriptions"]["s"]
        assert stats["unacked_messages"] == 1
        consumer.redeliver_unacknowledged_messages()
    inspect(topic.client).settle()
    assert payloads(consumer) == []
    assert payloads(letters) == [b"plain"]


@all_types
def test_chunks_that_were_published_and_not_read_yet_did_not_stop_coming(
    topic: Topic, kind: ConsumerType
) -> None:
    """A consumer that took longer than the expiry over a message between them lost the message: the
    chunks it had read were acknowledged although the others were there."""
    consumer = topic.subscribe(kind, receiver_queue_size=1)
    topic.chunk("a", 0, 2, b"a0", key="k")
    with topic.client.create_producer("t") as producer:
        producer.send(b"1", partition_key="k")
        producer.send(b"2", partition_key="k")
    topic.chunk("a", 1, 2, b"a1", key="k")
    topic.chunk("b", 0, 2, b"b0", key="k")
    taken = consumer.receive(60_000)
    assert taken.data() == b"1"
    for _ in range(3):
        topic.clock.advance(MINUTE_MS / 1000)
    consumer.acknowledge(taken)
    found = drain(consumer)
    assert [each.data() for each in found] == [b"2", b"a0a1"]
    consumer.acknowledge_many(found)
    assert topic.backlog()[1] == 1
    topic.clock.advance(MINUTE_MS / 1000)
    assert topic.backlog() == (0, 0)


def test_an_expiry_of_0_is_never(topic: Topic) -> None:
    consumer = topic.subscribe(expire_time_of_incomplete_chunked_message_ms=0)
    topic.chunk("a", 0, 2, b"a0")
    assert payloads(consumer) == []
    topic.clock.advance(1_000_000)
    topic.chunk("a", 1, 2, b"a1")
    assert payloads(consumer) == [b"a0a1"]


def test_expiry_goes_on_behind_a_message_that_became_whole(topic: Topic) -> None:
    """Pulsar's stops there."""
    consumer = topic.subscribe()
    topic.chunk("a", 0, 2, b"a0")
    topic.chunk("b", 0, 2, b"b0")
    topic.chunk("a", 1, 2, b"a1")
    consumer.acknowledge(consumer.receive(0))
    topic.clock.advance(61)
    assert topic.backlog() == (0, 0)


def test_what_was_given_up_counts_no_more_as_waiting(topic: Topic) -> None:
    """Pulsar forgets to count down, so the limit shrinks."""
    consumer = topic.subscribe(
        max_pending_chunked_message=2, auto_ack_oldest_chunked_message_on_queue_full=True
    )
    for name in "abcdef":
        topic.chunk(name, 0, 3, b"0")
        topic.chunk(name, 2, 3, b"2")
    interweave(topic, 2)
    assert sorted(payloads(consumer)) == [b"a0a1", b"b0b1"]


@all_types
def test_a_consumer_that_leaves_gives_all_chunks_to_the_next(
    topic: Topic, kind: ConsumerType
) -> None:
    first = topic.subscribe(kind)
    topic.chunk("a", 0, 2, b"a0")
    assert payloads(first) == []
    first.close()
    second = topic.subscribe(kind)
    topic.chunk("a", 1, 2, b"a1")
    assert payloads(second) == [b"a0a1"]


# Lies ---------------------------------------------------------------------------------------------


@all_types
@pytest.mark.parametrize("size", [1, 5, 7, 2**31 - 1])
def test_chunks_of_another_size_than_they_claim_are_a_damaged_message(
    topic: Topic, kind: ConsumerType, size: int
) -> None:
    consumer = topic.subscribe(kind)
    for number in range(3):
        topic.chunk("a", number, 3, b"xy", size)
    topic.client.create_producer("t").send(b"plain")
    with pytest.raises(errors.CorruptDataError, match="total_chunk_msg_size"):
        consumer.receive(0)
    messages = consumer.receive_many(10, 0)
    assert [each.data() for each in messages] == [b"plain"]
    assert topic.backlog() == (1, 1)


@all_types
def test_a_compressed_message_that_claims_another_size_stays_unacknowledged(
    topic: Topic, kind: ConsumerType
) -> None:
    consumer = topic.subscribe(kind)
    bomb = zlib.compress(bytes(1 << 20))
    half = len(bomb) // 2
    for uncompressed in (2**31 - 1, 100, 0xFFFFFFFF):
        for number, part in enumerate((bomb[:half], bomb[half:])):
            topic.chunk(f"{uncompressed}", number, 2, part, len(bomb),
                        compression=2, uncompressed_size=uncompressed)  # fmt: skip
    for _ in range(3):
        with pytest.raises(errors.UnreadableEntryError):
            consumer.receive(0)
    assert consumer.receive_many(10, 0) == []
    # Another version, or another client, may read it.
    assert topic.backlog() == (3, 6)


@pytest.mark.parametrize(
    ("number", "count", "size"),
    [(5, 3, 10), (-1, 3, 10), (0, -3, 10), (0, 2**40, 10), (0, 3, -1), (2**33, 3, 10)],
)
def test_a_chunk_whose_numbers_cannot_be_is_damage(
    topic: Topic, number: int, count: int, size: int
) -> None:
    consumer = topic.subscribe()
    topic.chunk("a", number, count, b"x", size)
    topic.chunk("b", 0, 2, b"b0")
    topic.chunk("b", 1, 2, b"b1")
    with pytest.raises(errors.CorruptDataError, match="which cannot be"):
        consumer.receive(0)
    assert payloads(consumer) == [b"b0b1"]


def test_a_message_that_claims_two_thousand_million_chunks_takes_no_memory_for_them(
    topic: Topic,
) -> None:
    consumer = topic.subscribe(max_pending_chunked_message=0)
    for number in range(200):
        topic.chunk(f"{number}", 0, 2**31 - 1, b"x", 2**31 - 1)
    assert payloads(consumer) == []
    topic.clock.advance(61)
    assert topic.backlog() == (0, 0)


def test_a_message_of_one_chunk_is_an_ordinary_one(topic: Topic) -> None:
    topic.chunk("a", 0, 1, b"x")
    assert whole_topic(topic.client) == [b"x"]


def test_the_same_uuid_again_and_again_is_told_apart(topic: Topic) -> None:
    consumer = topic.subscribe()
    for round_ in range(50):
        for number in range(3):
            topic.chunk("a", number, 3, b"%d" % round_, 3 * len(b"%d" % round_))
    expected = [b"%d" % round_ * 3 for round_ in range(50)]
    assert payloads(consumer) == expected
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == expected
    assert [each.data() for each in read_all(topic.client)] == expected


# A uuid is the name of a producer and a sequence id: it comes again where a producer of that name
# begins anew, as after a kill, without deduplication.


@all_types
@pytest.mark.parametrize("read_between", [True, False])
def test_what_a_killed_producer_left_is_not_taken_for_the_end_of_its_next_message(
    topic: Topic, kind: ConsumerType, read_between: bool
) -> None:
    """The acknowledged chunk 1 of the message that never became whole was read again, and taken for
    the last one of the next message: its first chunk was acknowledged, so it never came."""
    consumer = topic.subscribe(kind)
    with topic.client.create_producer("t") as producer:
        producer.send(b"plain")
        topic.chunk("a", 0, 3, b"a0")
        topic.chunk("a", 1, 3, b"a1")
        found = payloads(consumer) if read_between else []
        topic.chunk("a", 0, 2, b"b0")
        producer.send(b"behind")
    assert sorted(found + payloads(consumer)) == [b"behind", b"plain"]
    topic.chunk("a", 1, 2, b"b1")
    consumer.redeliver_unacknowledged_messages()
    assert sorted(payloads(consumer)) == [b"b0b1", b"behind", b"plain"]


def test_chunks_that_were_given_up_do_not_end_the_next_message_when_read_again(
    topic: Topic,
) -> None:
    """Chunk 0 of the message with a gap was read again and taken for a new begin: what had come of
    the next message with that uuid was acknowledged."""
    consumer = topic.subscribe()
    with topic.client.create_producer("t") as producer:
        producer.send(b"plain")
        topic.chunk("a", 0, 3, b"a0")
        topic.chunk("a", 2, 3, b"a2")
        topic.chunk("a", 0, 2, b"b0")
        producer.send(b"behind")
    assert payloads(consumer) == [b"plain", b"behind"]
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [b"plain", b"behind"]
    topic.chunk("a", 1, 2, b"b1")
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [b"plain", b"behind", b"b0b1"]


@all_types
def test_a_whole_message_that_waits_for_room_outlives_another_one_of_its_uuid(
    topic: Topic, kind: ConsumerType
) -> None:
    """It was acknowledged as if it had been begun anew, and never delivered."""
    consumer = topic.subscribe(kind, max_pending_chunked_message=1)
    topic.chunk("a", 0, 2, b"a0")
    topic.chunk("b", 0, 2, b"b0")
    topic.chunk("a", 1, 2, b"a1")
    assert payloads(consumer) == []
    topic.chunk("a", 0, 2, b"c0")
    assert payloads(consumer) == [b"a0a1"]
    topic.chunk("b", 1, 2, b"b1")
    topic.chunk("a", 1, 2, b"c1")
    assert sorted(payloads(consumer)) == [b"b0b1", b"c0c1"]


def late_message(topic: Topic) -> None:
    """One that becomes whole in front of others, and comes behind them."""
    topic.chunk("a", 0, 2, b"a0")
    topic.chunk("b", 0, 2, b"b0")
    topic.chunk("a", 1, 2, b"a1")
    with topic.client.create_producer("t") as producer:
        producer.send(b"1")
        producer.send(b"2")
    topic.chunk("b", 1, 2, b"b1")


@pytest.mark.parametrize("looks", [True, False])
def test_a_message_that_comes_late_comes_although_reading_goes_back(
    topic: Topic, looks: bool
) -> None:
    """A refusal took it out of the hand, and it came no more until the consumer was closed."""
    consumer = topic.subscribe(max_pending_chunked_message=1, negative_ack_redelivery_delay_ms=1000)
    late_message(topic)
    taken = [consumer.receive(60_000) for _ in range(3)]
    assert [each.data() for each in taken] == [b"1", b"2", b"b0b1"]
    if looks:
        assert consumer.has_message()
    consumer.negative_acknowledge(taken[1])
    topic.clock.advance(2)
    assert payloads(consumer) == [b"a0a1", b"2", b"b0b1"]


def test_what_was_received_before_a_late_message_is_redelivered_when_refused(
    topic: Topic,
) -> None:
    """With the late one in hand, those behind it counted as not handed out: nothing came again."""
    consumer = topic.subscribe(max_pending_chunked_message=1, negative_ack_redelivery_delay_ms=1000)
    late_message(topic)
    taken = [consumer.receive(60_000) for _ in range(4)]
    assert [each.data() for each in taken] == [b"1", b"2", b"b0b1", b"a0a1"]
    assert topic.client.admin.topics.stats("t")["subscriptions"]["s"]["unacked_messages"] == 4
    consumer.negative_acknowledge(taken[1])
    topic.clock.advance(2)
    assert payloads(consumer) == [b"2", b"b0b1"]


def test_a_message_that_waits_for_room_is_none_that_was_delivered(topic: Topic) -> None:
    """It counted as unacknowledged, and each redelivery of others raised its count."""
    consumer = topic.subscribe(max_pending_chunked_message=1)
    with topic.client.create_producer("t") as producer:
        producer.send(b"plain")
    topic.chunk("a", 0, 2, b"a0")
    topic.chunk("b", 0, 2, b"b0")
    topic.chunk("a", 1, 2, b"a1")
    assert payloads(consumer) == [b"plain"]
    assert topic.client.admin.topics.stats("t")["subscriptions"]["s"]["unacked_messages"] == 1
    consumer.redeliver_unacknowledged_messages()
    assert payloads(consumer) == [b"plain"]
    topic.chunk("b", 1, 2, b"b1")
    late = [consumer.receive(60_000) for _ in range(2)]
    assert [(each.data(), each.redelivery_count()) for each in late] == [
        (b"b0b1", 0), (b"a0a1", 0),
    ]  # fmt: skip


# Chance -------------------------------------------------------------------------------------------


@pytest.mark.standard
@all_types
def test_whatever_a_server_left_messages_come_whole_and_nothing_stays(
    open_client: OpenClient, topic: Topic, kind: ConsumerType
) -> None:
    """Chunks in any order, acknowledged and refused and read anew at any time: what comes is whole,
    what was acknowledged comes no more, and in the end nothing is left."""
    for turn in range(scaled(12)):
        random = Random(seed_of(turn))
        live = Chance(open_client, topic, kind, random)
        for _ in range(60):
            random.choice(
                [live.write, live.write, live.write, live.receive, live.refuse, live.acknowledge,
                 live.pass_time, live.reopen, live.acknowledge_through]
            )()  # fmt: skip
        live.end()


class Chance:
    """One subscription, to which anything happens."""

    def __init__(
        self, open_client: OpenClient, topic: Topic, kind: ConsumerType, random: Random
    ) -> None:
        self.open_client, self.topic, self.kind, self.random = open_client, topic, kind, random
        self.limit = random.choice([0, 1, 2, 10])
        self.held: list[Any] = []
        self.gone: set[MessageId] = set()
        self.consumer = self.attach()

    def attach(self) -> Any:
        return self.topic.subscribe(
            self.kind,
            max_pending_chunked_message=self.limit,
            negative_ack_redelivery_delay_ms=1000,
            receiver_queue_size=self.random.choice([1, 2, 100]),
        )

    def write(self) -> None:
        random = self.random
        if random.random() < 0.2:
            with self.topic.client.create_producer("t") as producer:
                producer.send(b"plain")
            return
        name, count = random.choice("abc"), random.choice([2, 2, 3])
        if random.random() < 0.5:
            for number in range(count):
                self.topic.chunk(name, number, count, name.encode() + b"%d" % number)
            return
        number = random.randrange(count)
        self.topic.chunk(name, number, count, name.encode() + b"%d" % number)

    def receive(self) -> None:
        for message in self.consumer.receive_many(self.random.randint(1, 8), 0):
            data = message.data()
            if data != b"plain":
                name = data[:1]
                assert data in {name + b"0" + name + b"1", name + b"0" + name + b"1" + name + b"2"}
            assert message.message_id() not in self.gone
            self.held.append(message)

    def acknowledge(self) -> None:
        if self.held:
            message = self.held.pop(self.random.randrange(len(self.held)))
            by_id = MessageId.deserialize(message.message_id().serialize())
            self.consumer.acknowledge(self.random.choice([message, by_id]))
            self.gone.add(by_id)

    def acknowledge_through(self) -> None:
        if self.held and self.kind in (ConsumerType.Exclusive, ConsumerType.Failover):
            last = self.random.choice(self.held)
            self.consumer.acknowledge_cumulative(last)
            self.gone |= {
                each.message_id() for each in self.held if each.message_id() <= last.message_id()
            }

    def refuse(self) -> None:
        if self.held and self.random.random() < 0.5:
            self.consumer.negative_acknowledge(self.random.choice(self.held))
        else:
            self.consumer.redeliver_unacknowledged_messages()

    def pass_time(self) -> None:
        self.topic.clock.advance(self.random.choice([1, 2, 30]))

    def reopen(self) -> None:
        if self.random.random() < 0.5:
            self.topic.client.close()
            self.topic.client = self.open_client(clock=self.topic.clock)
            self.topic.writes_to(self.topic.client)
        else:
            self.consumer.close()
        self.consumer = self.attach()
        self.held = []

    def end(self) -> None:
        for _ in range(3):
            self.consumer.redeliver_unacknowledged_messages()
            while messages := self.consumer.receive_many(100, 0):
                for each in messages:
                    assert each.message_id() not in self.gone
                    self.consumer.acknowledge(each)
            self.topic.clock.advance(70)
        assert self.topic.backlog() == (0, 0)
        self.consumer.close()
