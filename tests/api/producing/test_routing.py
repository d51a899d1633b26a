"""Which partition a message goes to, and the producer of a partitioned topic."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from topic_reading import ONE_DAY_MS, OpenClient, Told, read_all

import pulsarx
from pulsarx import errors
from pulsarx._pycore.publish.partition_hash import partition_hash
from pulsarx.hashing import partition_of
from pulsarx.randomness import Randomness

JAVA, MURMUR = pulsarx.HashingScheme.JavaStringHash, pulsarx.HashingScheme.Murmur3_32Hash
MODES = pulsarx.PartitionsRoutingMode
# key: partition of 4 by JavaStringHash, by Murmur3_32Hash
VECTORS = {
    "a": (1, 2), "ab": (1, 3), "abc": (2, 2), "hello": (2, 3), "hello world": (0, 3),
    "key1": (2, 1), "key2": (3, 0), "key-0": (2, 3), "key-1": (3, 0), "key-2": (0, 0),
    "my-key": (2, 1), "Order-3459134": (2, 3), "NON_KEY": (1, 0), "polygenelubricants": (0, 0),
    "Aa": (0, 1), "BB": (0, 2), "persistent://public/default/my-topic": (3, 0),
    "\u00e9": (1, 3), "\u4f60\u597d": (1, 0), "\U0001f600": (3, 2),
    "The quick brown fox jumps over the lazy dog": (3, 3),
}  # fmt: skip

# key: partition of 97, to which the official client sends it
OFFICIAL = {
    "a": 6, "ab": 86, "abc": 39, "abcd": 49, "order-1": 2, "abcdefgh": 11, "abcdefghi": 21,
    "key-0123456789": 64, "x" * 30: 56, "\u00e9\u20ac\U0001f600": 71, "\u00fc": 81,
}  # fmt: skip


@pytest.fixture
def client() -> Iterator[pulsarx.Client]:
    """In memory, with the partitioned topic x of 4 partitions."""
    made = pulsarx.Client("memory:routing", randomness=Randomness(1), durability="os")
    made.admin.topics.create_partitioned_topic("x", 4)
    yield made
    made.shutdown()


def in_partitions(client: pulsarx.Client, topic: str = "x") -> list[list[Any]]:
    return [read_all(client, each) for each in client.get_topic_partitions(topic)]


def payloads_in_partitions(client: pulsarx.Client) -> list[list[bytes]]:
    return [[message.data() for message in each] for each in in_partitions(client)]


@pytest.mark.parametrize("mode", [MODES.RoundRobinDistribution, MODES.UseSinglePartition])
@pytest.mark.parametrize("scheme", [JAVA, MURMUR])
def test_a_key_chooses_its_partition(
    client: pulsarx.Client, scheme: Any, mode: pulsarx.PartitionsRoutingMode
) -> None:
    producer = client.create_producer("x", hashing_scheme=scheme, message_routing_mode=mode)
    for key, expected in VECTORS.items():
        assert producer.send(b"", partition_key=key).partition() == expected[int(scheme)], key
    ids = producer.send_many([b""] * len(VECTORS), keys=list(VECTORS))
    assert [each.partition() for each in ids] == [each[int(scheme)] for each in VECTORS.values()]


def test_boost_hash_sends_a_key_where_the_official_client_does(client: pulsarx.Client) -> None:
    boost = pulsarx.HashingScheme.BoostHash
    client.admin.topics.create_partitioned_topic("many", 97)
    producer = client.create_producer("many", hashing_scheme=boost)
    for key, expected in OFFICIAL.items():
        assert producer.send(b"", partition_key=key).partition() == expected, key
        assert partition_of(key, 97, boost) == expected
        assert partition_hash(int(boost), key.encode()) % 97 == expected


def test_java_string_hash_is_the_default(client: pulsarx.Client) -> None:
    assert client.create_producer("x").send(b"", partition_key="Order-3459134").partition() == 2


def test_without_batching_messages_go_round_one_by_one(client: pulsarx.Client) -> None:
    producer = client.create_producer("x")
    sent = [producer.send(b"").partition() for _ in range(9)]
    assert all(after == (before + 1) % 4 for before, after in pairwise(sent))
    for _ in range(8):
        producer.send_async(b"async", None)
    producer.flush()
    assert [each.count(b"async") for each in payloads_in_partitions(client)] == [2, 2, 2, 2]


def test_the_first_partition_is_a_matter_of_chance() -> None:
    firsts = set()
    for seed in range(20):
        with pulsarx.Client("memory:seeded", randomness=Randomness(seed)) as client:
            client.admin.topics.create_partitioned_topic("x", 4)
            firsts.add(client.create_producer("x").send(b"").partition())
    assert firsts == {0, 1, 2, 3}


def test_a_partition_is_kept_until_its_batch_is_closed(client: pulsarx.Client) -> None:
    producer = client.create_producer(
        "x", batching_enabled=True, batching_max_messages=10,
        batching_max_publish_delay_ms=ONE_DAY_MS,
    )  # fmt: skip
    for number in range(40):
        producer.send_async(b"%d" % number, None)
    found = payloads_in_partitions(client)
    assert sorted(found, key=lambda each: int(each[0])) == [
        [b"%d" % number for number in range(at, at + 10)] for at in range(0, 40, 10)
    ]
    producer.send_async(b"half", None)
    producer.flush()  # closes a batch too
    producer.send_async(b"other half", None)
    producer.flush()
    places = [at for at, each in enumerate(payloads_in_partitions(client)) if len(each) > 10]
    assert len(places) == 2


def test_a_batch_closed_by_its_delay_is_the_end_of_a_turn(
    manual_clock: pulsarx.ManualClock,
) -> None:
    with pulsarx.Client("memory:delay", clock=manual_clock) as client:
        client.admin.topics.create_partitioned_topic("x", 2)
        producer = client.create_producer("x", batching_enabled=True)
        for number in range(4):
            producer.send_async(b"%d" % number, None)
            producer.send_async(b"%d" % number, None)
            manual_clock.advance(seconds=0.010)
        producer.flush()
        first, second = payloads_in_partitions(client)
        assert sorted([first, second]) == [[b"0", b"0", b"2", b"2"], [b"1", b"1", b"3", b"3"]]


def test_a_batch_closed_by_its_bytes_is_the_end_of_a_turn(client: pulsarx.Client) -> None:
    producer = client.create_producer(
        "x", batching_enabled=True, batching_max_allowed_size_in_bytes=2000,
        batching_max_publish_delay_ms=ONE_DAY_MS,
    )  # fmt: skip
    for _ in range(400):
        producer.send_async(bytes(100), None)
    producer.flush()
    assert max(map(len, in_partitions(client))) - min(map(len, in_partitions(client))) <= 32


def test_one_partition_takes_all_without_a_key(client: pulsarx.Client) -> None:
    def one() -> pulsarx.PartitionedProducer:
        return client.create_producer("x", message_routing_mode=MODES.UseSinglePartition)

    first = one()
    assert len({first.send(b"").partition() for _ in range(8)}) == 1
    assert len({each.partition() for each in first.send_many([b""] * 8)}) == 1
    assert {one().send(b"").partition() for _ in range(40)} == {0, 1, 2, 3}


def test_an_empty_key_is_no_key(client: pulsarx.Client) -> None:
    producer = client.create_producer("x")
    assert {producer.send(b"", partition_key="").partition() for _ in range(4)} == {0, 1, 2, 3}


def test_a_router_is_asked_for_every_message(client: pulsarx.Client) -> None:
    seen = []

    def router(message: Any, partitions: int) -> int:
        assert partitions == 4
        seen.append((message.data(), message.properties(), message.partition_key(),
                     message.ordering_key(), message.event_timestamp(), message.value(),
                     str(message.message_id()), message.topic_name()))  # fmt: skip
        return int(message.properties().get("to", 0))

    producer = client.create_producer(
        "x", message_router=router, schema=pulsarx.schema.StringSchema()
    )
    sent = producer.send("one", {"to": "3"}, "k", "o", event_timestamp=5)
    assert sent.partition() == 3
    assert seen == [(b"one", {"to": "3"}, "k", "o", 5, "one", "(-1,-1,-1,-1)", "")]
    told = Told()
    producer.send_async("two", told, {"to": "1"})
    ids = producer.send_many(["3", "4"], keys=["a", None], properties=[{"to": "2"}, None])
    producer.flush()
    assert [each.partition() for each in ids] == [2, 0]
    assert told.results[0][1].partition() == 1  # type: ignore[union-attr]
    assert len(seen) == 4


def test_what_a_router_does_wrong_is_told_to_the_sender(client: pulsarx.Client) -> None:
    def broken(message: Any, partitions: int) -> int:
        return int(message.data())

    producer = client.create_producer("x", message_router=broken)
    for answer in (b"4", b"-1"):
        with pytest.raises(errors.InvalidConfiguration, match=r"answered .*; it has 4 partitions"):
            producer.send(answer)
        with pytest.raises(errors.InvalidConfiguration):
            producer.send_many([b"1", answer])
    with pytest.raises(ValueError, match="invalid literal"):
        producer.send_async(b"x", None)
    assert producer.send(b"3").partition() == 3
    with pytest.raises(errors.InvalidConfiguration, match="needs a message_router"):
        client.create_producer("x", message_routing_mode=MODES.CustomPartition)
    with pytest.raises(ValueError, match="message_router must be a function"):
        client.create_producer("x", message_router=3)


def test_send_many_answers_in_the_order_of_the_payloads(client: pulsarx.Client) -> None:
    producer = client.create_producer("x", batching_max_messages=10)
    keys = [None if number % 3 else f"key-{number % 7}" for number in range(100)]
    contents = [b"%d" % number for number in range(100)]
    ids = producer.send_many(
        contents, keys=keys, properties=[{"at": str(number)} for number in range(100)],
        event_timestamps=list(range(1, 101)),
    )  # fmt: skip
    found = {message.message_id(): message for each in in_partitions(client) for message in each}
    assert [found[each].data() for each in ids] == contents
    assert [found[each].properties()["at"] for each in ids] == [str(n) for n in range(100)]
    assert [found[each].event_timestamp() for each in ids] == list(range(1, 101))
    assert [found[each].partition_key() or None for each in ids] == keys
    for each in in_partitions(client):
        assert [int(message.data()) for message in each] == sorted(int(m.data()) for m in each)
    assert len(found) == 100
    assert producer.send_many([]) == []


def test_send_many_without_keys_goes_round_by_batches(client: pulsarx.Client) -> None:
    producer = client.create_producer("x", batching_max_messages=10)
    ids = producer.send_many([b""] * 80)
    runs = [{each.partition() for each in ids[at : at + 10]} for at in range(0, 80, 10)]
    assert all(len(run) == 1 for run in runs)
    assert set(Counter(each.partition() for each in ids).values()) == {20}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"keys": "ab"}, "keys is a str"),
        ({"keys": ["a"]}, "keys has 1 elements and payloads 2"),
        ({"properties": [{}] * 3}, "properties has 3 elements"),
    ],
)
def test_columns_of_send_many_must_fit(
    client: pulsarx.Client, arguments: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        client.create_producer("x").send_many([b"", b""], **arguments)


def test_a_bad_message_of_send_many_says_what_was_published(client: pulsarx.Client) -> None:
    producer = client.create_producer("x")
    with pytest.raises(TypeError, match="expected type is <class 'bytes'>") as caught:
        producer.send_many([b"1", "two"], keys=["Order-3459134", "key2"])
    assert "of partition 3; other partitions took 1" in caught.value.__notes__


def test_rows_of_a_table_go_to_the_partitions_of_their_keys(client: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    producer = client.create_producer("x")
    keys = list(VECTORS) * 2
    values = [b"%d" % number for number in range(len(keys))]
    batch = pyarrow.table({"value": values, "key": keys})
    table = pyarrow.concat_tables([batch.slice(0, 9), batch.slice(9)])
    last = producer.send_arrow(table, key="key")
    assert last.partition() == VECTORS[keys[-1]][0]
    for index, messages in enumerate(in_partitions(client)):
        expected = [value for key, value in zip(keys, values, strict=True)
                    if VECTORS[key][0] == index]  # fmt: skip
        assert [message.data() for message in messages] == expected
        assert all(message.message_id().partition() == index for message in messages)
    assert read_all(client, f"x-partition-{last.partition()}")[-1].message_id() == last


def test_rows_without_keys_go_round_by_batches(client: pulsarx.Client) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    producer = client.create_producer("x", batching_max_messages=10)
    table = pyarrow.table({"value": [b"%d" % n for n in range(80)], "key": [None, ""] * 40})
    producer.send_arrow(table)
    producer.send_arrow(table, key="key")
    assert [len(each) for each in in_partitions(client)] == [40] * 4
    assert producer.send_arrow(table.slice(0, 0)) is None
    bad = pyarrow.table({"value": [b"a"], "time": pyarrow.array([-5], pyarrow.timestamp("ms"))})
    with pytest.raises(ValueError, match="row 0: event_time") as caught:
        producer.send_arrow(bad, event_time="time")
    assert caught.value.__notes__ == ["0 rows were published"]
    routed = client.create_producer("x", message_router=lambda message, partitions: 0)
    with pytest.raises(errors.OperationNotSupported, match="message_router"):
        routed.send_arrow(table)


# The producer as a whole -------------------------------------------------------------------------


def test_it_has_what_a_producer_has(client: pulsarx.Client) -> None:
    producer = client.create_producer("x", producer_name="p")
    public = {name for name in dir(pulsarx.Producer) if not name.startswith("_")}
    inner = {"abandon", "batch_due", "chunked_message_rate", "close_forgotten", "deduplicate",
             "drain", "encrypt_by", "entry_count", "fence", "flush_pending", "hold",
             "is_forgotten", "is_forked", "is_open", "limit_delay", "limit_pending", "limit_rate",
             "publisher", "release", "resume_after", "say_before_chunks", "send_async_described",
             "shut", "topic_name",
             "wake_held"}  # fmt: skip
    assert public - inner <= set(dir(producer))
    assert producer.topic() == "persistent://public/default/x"
    assert producer.producer_name() == "p"
    assert producer.last_sequence_id() == -1
    assert "partitions=4" in repr(producer)
    assert client.create_producer("x").producer_name().startswith("standalone-")


def test_all_producers_of_one_have_its_name(client: pulsarx.Client) -> None:
    producer = client.create_producer("x", producer_name="p")
    for _ in range(4):
        producer.send(b"")
    assert {m.producer_name() for each in in_partitions(client) for m in each} == {"p"}
    with pytest.raises(errors.ProducerBusy):
        client.create_producer("x", producer_name="p")
    with pytest.raises(errors.ProducerBusy):
        client.create_producer("x-partition-3", producer_name="p")
    other = client.create_producer("x-partition-3", producer_name="q")
    with pytest.raises(errors.ProducerBusy):
        client.create_producer("x", producer_name="q")
    again = client.create_producer("x-partition-0", producer_name="q")  # what was made is undone
    assert producer.is_connected()
    assert other.is_connected()
    assert again.is_connected()


def test_a_lazy_one_makes_producers_on_first_use(client: pulsarx.Client) -> None:
    def publishers() -> int:
        figures = client.admin.topics.partitioned_stats("x")["partitions"].values()
        return sum(len(each["publishers"]) for each in figures)

    producer = client.create_producer("x", lazy_start_partitioned_producers=True)
    assert publishers() == 1
    producer.send(b"")
    assert publishers() == 1
    producer.send(b"")
    assert publishers() == 2
    producer.close()
    assert publishers() == 0
    eager = client.create_producer("x")
    assert (eager.is_connected(), publishers()) == (True, 4)


def test_sequence_ids_count_for_each_partition(client: pulsarx.Client) -> None:
    producer = client.create_producer("x", initial_sequence_id=10)
    assert producer.last_sequence_id() == 10
    for _ in range(6):
        producer.send(b"")
    assert producer.last_sequence_id() == 12
    ids = [[m.sequence_id() for m in each] for each in in_partitions(client)]
    assert sorted(ids) == [[11], [11], [11, 12], [11, 12]]
    producer.send(b"", partition_key="a", sequence_id=99)
    assert producer.last_sequence_id() == 99


def test_pending_messages_are_limited_across_partitions(open_client: OpenClient) -> None:
    client = open_client(durability="sync")
    client.admin.topics.create_partitioned_topic("x", 4)
    producer = client.create_producer(
        "x", max_pending_messages=1000, max_pending_messages_across_partitions=20,
        batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS, block_if_queue_full=True,
    )  # fmt: skip
    for number in range(100):
        producer.send_async(b"%d" % number, None, partition_key="a")
    producer.flush()
    batches = {message.message_id().batch_size() for message in read_all(client, "x-partition-1")}
    assert batches == {5}


def test_the_share_of_a_partition_shrinks_with_growth(open_client: OpenClient) -> None:
    client = open_client(durability="sync")
    client.admin.topics.create_partitioned_topic("x", 1)
    producer = client.create_producer(
        "x", max_pending_messages_across_partitions=20, message_router=lambda message, _: (
            int(message.partition_key())
        ),
        batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS, block_if_queue_full=True,
    )  # fmt: skip
    client.admin.topics.update_partitioned_topic("x", 4)
    producer.send(b"", partition_key="3")
    for _ in range(40):
        producer.send_async(b"", None, partition_key="0")
    producer.flush()
    batches = {message.message_id().batch_size() for message in read_all(client, "x-partition-0")}
    assert batches == {5}


def test_closing_sends_what_is_open(client: pulsarx.Client) -> None:
    producer = client.create_producer(
        "x", batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS
    )
    for key in VECTORS:
        producer.send_async(b"", None, partition_key=key)
    assert producer.is_connected()
    producer.close()
    assert not producer.is_connected()
    assert sum(map(len, in_partitions(client))) == len(VECTORS)


CALLS: dict[str, Callable[[Any], object]] = {
    "send": lambda each: each.send(b""),
    "send with a key": lambda each: each.send(b"", partition_key="k"),
    "send_async": lambda each: each.send_async(b"", None),
    "send_many": lambda each: each.send_many([b""]),
    "flush": lambda each: each.flush(),
    "close": lambda each: each.close(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("lazy", [True, False])
def test_a_closed_one_refuses(client: pulsarx.Client, call: str, lazy: bool) -> None:
    producer = client.create_producer("x", lazy_start_partitioned_producers=lazy)
    producer.close()
    with pytest.raises(errors.AlreadyClosed):
        CALLS[call](producer)
    assert producer.last_sequence_id() == -1


@pytest.mark.parametrize("call", CALLS)
def test_closing_the_client_closes_it(call: str) -> None:
    with pulsarx.Client("memory:closing") as client:
        client.admin.topics.create_partitioned_topic("x", 4)
        producer = client.create_producer("x")
        with producer:
            producer.send(b"")
        other = client.create_producer("x")
    assert not other.is_connected()
    if call == "close":  # passes, as with the official client: it is what the caller wants
        other.close()
        return
    with pytest.raises(errors.AlreadyClosed):
        CALLS[call](other)


def test_a_forgotten_one_sends_what_it_holds(client: pulsarx.Client) -> None:
    producer = client.create_producer(
        "x", producer_name="p", batching_enabled=True, batching_max_publish_delay_ms=ONE_DAY_MS
    )
    producer.send_async(b"held", None, partition_key="a")
    del producer
    gc.collect()
    client.create_producer("x", producer_name="p")  # its name is free again
    assert payloads_in_partitions(client)[1] == [b"held"]


def test_wrong_arguments_are_refused_as_by_any_producer(client: pulsarx.Client) -> None:
    producer = client.create_producer("x")
    for key in (b"k", 3):
        with pytest.raises(ValueError, match="partition_key"):
            producer.send(b"", partition_key=key)
    with pytest.raises(ValueError):  # UnicodeEncodeError
        producer.send(b"", partition_key="\ud800")
    with pytest.raises(ValueError, match="hashing_scheme"):
        client.create_producer("x", hashing_scheme=0)
