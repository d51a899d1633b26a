"""send_arrow and receive_arrow: columns in, columns out, nothing lost between them."""

from __future__ import annotations

import gc
import resource
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pulsarx
from pulsarx import BrokerOptions, CompressionType, errors

from arrow_capsules import HandMadeArray, HandMadeStream

COLUMNS = ["message_id", "key", "value", "publish_time", "event_time", "properties"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Topic:
    """A producer and a consumer on a topic of its own."""

    made = 0

    def __init__(self, client: pulsarx.Client, **options: Any) -> None:
        Topic.made += 1
        self.name = f"arrow-{Topic.made}"
        self.producer = client.create_producer(self.name, **options)
        self.consumer = client.subscribe(self.name, "s")

    def rows(self, count: int) -> list[dict[str, Any]]:
        """Exactly count messages as rows, checked by Arrow and acknowledged."""
        found: list[dict[str, Any]] = []
        while len(found) < count:
            messages = self.consumer.receive_arrow(count - len(found), 5000)
            assert len(messages), f"{len(found)} of {count} arrived"
            batch = pa.record_batch(messages)
            batch.validate(full=True)
            assert len(messages) == batch.num_rows
            found += batch.to_pylist()
            self.consumer.acknowledge_many(messages)
        assert len(self.consumer.receive_arrow(1, 0)) == 0
        return found

    def values(self, count: int) -> list[bytes | None]:
        return [row["value"] for row in self.rows(count)]


@pytest.fixture
def topic(memory_client: pulsarx.Client) -> Iterator[Topic]:
    yield Topic(memory_client)


def test_all_columns_come_back_as_they_were_sent(topic: Topic):
    table = pa.table(
        {
            "data": [b"a", None, b"", b"d" * 1000],
            "name": ["k", None, "", "ключ"],
            "at": pa.array([1, None, 0, 1_700_000_000_123], pa.timestamp("ms", "UTC")),
            "more": pa.array(
                [[("a", "1"), ("b", "")], None, [], [("ü", "x" * 300)]],
                pa.map_(pa.string(), pa.string()),
            ),
        }
    )
    last = topic.producer.send_arrow(table, "data", key="name", event_time="at", properties="more")
    rows = topic.rows(4)
    assert [list(row) for row in rows] == [COLUMNS] * 4
    assert [row["value"] for row in rows] == [b"a", None, b"", b"d" * 1000]
    assert [row["key"] for row in rows] == ["k", None, None, "ключ"]
    assert [row["event_time"] for row in rows] == [
        EPOCH + timedelta(milliseconds=1),
        None,
        None,
        EPOCH + timedelta(milliseconds=1_700_000_000_123),
    ]
    assert [row["properties"] for row in rows] == [
        [("a", "1"), ("b", "")],
        [],
        [],
        [("ü", "x" * 300)],
    ]
    place = rows[-1]["message_id"]
    assert (place["ledger_id"], place["entry_id"], place["partition"], place["batch_index"]) == (
        last.ledger_id(),
        last.entry_id(),
        last.partition(),
        last.batch_index(),
    )


def test_messages_and_columns_say_the_same(memory_client: pulsarx.Client, topic: Topic):
    topic.producer.send(b"single", {"p": "q"}, "key", event_timestamp=5)
    topic.producer.send(None)
    topic.producer.send_many([b"x", b"y"], keys=["a", None])
    topic.producer.send_arrow(pa.table({"value": [b"r", b"s"]}))
    reader = memory_client.create_reader(topic.name, pulsarx.MessageId.earliest)
    expected = [reader.read_next(5000) for _ in range(6)]
    for message, row in zip(expected, topic.rows(6)):
        identity = message.message_id()
        assert row["message_id"] == {
            "ledger_id": identity.ledger_id(),
            "entry_id": identity.entry_id(),
            "partition": identity.partition(),
            "batch_index": identity.batch_index(),
        }
        assert (row["value"] or b"") == message.data()
        assert (row["value"] is None) == message.has_null_value()
        assert (row["key"] or "") == message.partition_key()
        assert row["publish_time"] == EPOCH + timedelta(milliseconds=message.publish_timestamp())
        event = row["event_time"]
        assert (0 if event is None else (event - EPOCH) // timedelta(milliseconds=1)) == (
            message.event_timestamp()
        )
        assert dict(row["properties"]) == message.properties()


VALUE_TYPES = [
    pa.binary(), pa.large_binary(), pa.string(), pa.large_string(), pa.binary_view(),
    pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.uint8(), pa.binary()),
    pa.dictionary(pa.int64(), pa.large_string()),
]  # fmt: skip


@pytest.mark.parametrize("kind", VALUE_TYPES, ids=str)
def test_every_type_of_value_and_key_with_slices_and_nulls(topic: Topic, kind: pa.DataType):
    texts = ["a", None, "", "longer than twelve bytes", "ü" * 40, None, "z"] * 9
    column = pa.array(texts).cast(pa.binary() if "binary" in str(kind) else pa.string())
    column = (
        column.dictionary_encode().cast(kind) if "dictionary" in str(kind) else (column.cast(kind))
    )
    table = pa.table({"value": column, "key": column})
    for batch in (table, table.slice(3, 40), table.slice(3, 40).slice(8, 11), table.slice(63)):
        topic.producer.send_arrow(batch, key="key")
        wanted = batch.column("key").cast(pa.binary()).to_pylist()
        if not wanted:
            assert not topic.consumer.has_message()
            continue
        rows = topic.rows(len(wanted))
        assert [row["value"] for row in rows] == wanted
        assert [row["key"] for row in rows] == [t.decode() if t else None for t in wanted]


def test_a_sliced_struct_array_and_fixed_size_binary_and_nothing_but_nulls(topic: Topic):
    fixed = pa.array([b"abc", None, b"def", b"ghi"], pa.binary(3))
    whole = pa.StructArray.from_arrays([fixed, pa.nulls(4)], ["value", "key"])
    topic.producer.send_arrow(whole.slice(1, 2), key="key")
    assert topic.values(2) == [None, b"def"]
    topic.producer.send_arrow(pa.table({"value": pa.nulls(3)}))
    assert topic.values(3) == [None] * 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_event_times_of_every_unit(topic: Topic, unit: str):
    seconds = [1, None, 1_700_000_000]
    column = pa.array(seconds, pa.timestamp("s")).cast(pa.timestamp(unit))
    topic.producer.send_arrow(pa.table({"value": ["x"] * 3, "at": column}), event_time="at")
    found = [row["event_time"] for row in topic.rows(3)]
    assert found == [None if s is None else EPOCH + timedelta(seconds=s) for s in seconds]


def test_event_times_as_milliseconds(topic: Topic):
    table = pa.table({"value": ["x"], "at": [1234]})
    topic.producer.send_arrow(table, event_time="at")
    assert topic.rows(1)[0]["event_time"] == EPOCH + timedelta(milliseconds=1234)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
ROW = st.tuples(
    st.none() | st.binary(max_size=200),
    st.none() | TEXT,
    st.none() | st.integers(1, 2**47),
    st.none() | st.dictionaries(TEXT, TEXT, max_size=3),
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chunks=st.lists(st.lists(ROW, max_size=40), min_size=1, max_size=4),
    cut=st.integers(0, 30),
    step=st.integers(1, 50),
)
def test_any_chunked_and_sliced_table_comes_back(
    topic: Topic, chunks: list[list[Any]], cut: int, step: int
):
    types = [pa.binary(), pa.string(), pa.timestamp("ms"), pa.map_(pa.string(), pa.string())]
    names = ["value", "key", "at", "more"]
    batches = []
    for chunk in chunks:
        columns = [list(column) for column in zip(*chunk)] or [[], [], [], []]
        columns[3] = [None if p is None else list(p.items()) for p in columns[3]]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types)]
        batches.append(pa.record_batch(arrays, names))
    table = pa.Table.from_batches(batches).slice(cut)
    topic.producer.send_arrow(table, key="key", event_time="at", properties="more")
    rows = [row for chunk in chunks for row in chunk][cut:]
    found: list[dict[str, Any]] = []
    while len(found) < len(rows):
        messages = topic.consumer.receive_arrow(step, 5000)
        assert 0 < len(messages) <= step
        found += pa.record_batch(messages).to_pylist()
        topic.consumer.acknowledge_many(messages)
    assert [row["value"] for row in found] == [row[0] for row in rows]
    assert [row["key"] for row in found] == [row[1] or None for row in rows]
    assert [row["event_time"] for row in found] == [
        None if row[2] is None else EPOCH + timedelta(milliseconds=row[2]) for row in rows
    ]
    assert [dict(row["properties"]) for row in found] == [row[3] or {} for row in rows]


KINDS = [getattr(CompressionType, name) for name in ("NONE", "LZ4", "ZLib", "ZSTD", "SNAPPY")]


@pytest.mark.parametrize("kind", KINDS)
def test_compressed_and_unbatched(memory_client: pulsarx.Client, kind: CompressionType):
    topic = Topic(memory_client, compression_type=kind, batching_enabled=False)
    topic.producer.send_arrow(pa.table({"value": [b"v" * 500] * 100}))
    topic.producer.send(b"alone" * 100, partition_key="k")
    assert topic.values(101) == [b"v" * 500] * 100 + [b"alone" * 100]


def test_a_big_table_crosses_ledgers_and_what_was_acknowledged_stays_so(open_client: Any):
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=3)
    client = open_client(broker_options=options)
    topic = Topic(client)
    values = [b"%d" % n for n in range(20_000)]
    topic.producer.send_arrow(pa.table({"value": values}))
    first = topic.consumer.receive_arrow(7777)
    topic.consumer.acknowledge_many(first)
    assert len({row["ledger_id"] for row in pa.table(first)["message_id"].to_pylist()}) > 1
    client.close()
    client = open_client(broker_options=options)
    consumer = client.subscribe(topic.name, "s")
    found = pa.table(first)["value"].to_pylist()
    while len(found) < len(values):
        found += pa.table(consumer.receive_arrow(5000, 5000))["value"].to_pylist()
    assert found == values
    assert not consumer.has_message()


def test_a_batch_in_which_some_are_acknowledged_comes_without_them(topic: Topic):
    topic.producer.send_arrow(pa.table({"value": [b"%d" % n for n in range(10)]}))
    messages = topic.consumer.receive_many(10)
    topic.consumer.acknowledge_many(messages[2:5] + [messages[9]])
    topic.consumer.redeliver_unacknowledged_messages()
    half = topic.consumer.receive_arrow(3)
    assert pa.table(half)["value"].to_pylist() == [b"0", b"1", b"5"]
    topic.consumer.acknowledge_many(half)
    topic.consumer.redeliver_unacknowledged_messages()
    assert topic.values(3) == [b"6", b"7", b"8"]


def test_receiving_by_message_and_by_column_takes_turns_in_one_batch(topic: Topic):
    topic.producer.send_arrow(pa.table({"value": [b"%d" % n for n in range(6)]}))
    assert topic.consumer.receive().data() == b"0"
    assert pa.table(topic.consumer.receive_arrow(2))["value"].to_pylist() == [b"1", b"2"]
    assert topic.consumer.receive().data() == b"3"
    assert pa.table(topic.consumer.receive_arrow(9))["value"].to_pylist() == [b"4", b"5"]


def test_nothing_there_is_an_empty_batch_of_the_same_types(topic: Topic):
    messages = topic.consumer.receive_arrow(10, 0)
    assert len(messages) == 0
    assert list(messages.column_names) == COLUMNS
    batch = pa.record_batch(messages)
    batch.validate(full=True)
    assert batch.num_rows == 0
    assert batch.schema == pa.schema(messages)
    topic.consumer.acknowledge_many(messages)
    assert pa.table(messages).num_rows == 0
    assert topic.producer.send_arrow(pa.table({"value": pa.array([], pa.string())})) is None


def test_the_columns_have_the_types_that_are_promised(topic: Topic):
    kind = pa.schema(topic.consumer.receive_arrow(1, 0))
    time = pa.timestamp("ms", "UTC")
    assert [field.type for field in kind][1:5] == [pa.string(), pa.binary(), time, time]
    assert kind.field("properties").type == pa.map_(
        pa.string(), pa.field("value", pa.string(), nullable=False)
    )
    assert [field.name for field in kind.field("message_id").type] == [
        "ledger_id",
        "entry_id",
        "partition",
        "batch_index",
    ]


def test_keys_that_are_not_text_become_text(topic: Topic):
    keys = [
        b"\xff",
        b"ab\xc3",
        b"\xed\xa0\x80x",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82\xac ok",
        b"a" * 50,
    ]
    topic.producer.send_arrow(pa.table({"value": keys, "key": keys}), key="key")
    assert [row["key"] for row in topic.rows(len(keys))] == [
        key.decode("utf-8", "replace") for key in keys
    ]


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.binary(min_size=1, max_size=12), min_size=1, max_size=20))
def test_any_bytes_are_replaced_as_python_does(topic: Topic, keys: list[bytes]):
    topic.producer.send_arrow(pa.table({"value": keys, "key": keys}), key="key")
    assert [row["key"] for row in topic.rows(len(keys))] == [
        key.decode("utf-8", "replace") for key in keys
    ]


def test_columns_outlive_the_client_and_each_other(memory_client: pulsarx.Client):
    topic = Topic(memory_client)
    topic.producer.send_arrow(pa.table({"value": [b"a", b"b"], "key": ["k", "l"]}), key="key")
    messages = topic.consumer.receive_arrow(2)
    value = pa.record_batch(messages).column("value")
    ids = pa.record_batch(messages).column("message_id").field("ledger_id")
    del messages
    memory_client.close()
    gc.collect()
    assert value.to_pylist() == [b"a", b"b"]
    assert len(set(ids.to_pylist())) == 1


def test_a_reader_reads_columns(memory_client: pulsarx.Client, topic: Topic):
    last = topic.producer.send_arrow(pa.table({"value": [b"a", b"b", b"c"]}))
    start = pulsarx.MessageId(-1, last.ledger_id(), last.entry_id(), 0)
    reader = memory_client.create_reader(topic.name, start)
    messages = reader.read_arrow(10, 5000)
    assert pa.table(messages)["value"].to_pylist() == [b"b", b"c"]
    assert len(reader.read_arrow(10, 0)) == 0
    topic.consumer.acknowledge_many(messages)
    assert topic.values(1) == [b"a"]


def test_columns_of_another_topic_are_not_acknowledged(memory_client: pulsarx.Client):
    one, other = Topic(memory_client), Topic(memory_client)
    one.producer.send_arrow(pa.table({"value": [b"a"]}))
    with pytest.raises(errors.NotAllowedError, match="not of the same topic"):
        other.consumer.acknowledge_many(one.consumer.receive_arrow(1))


WRONG_COLUMNS = [
    ({"value": [1, 2]}, {}, "column 'value' is int64; value must be"),
    ({"value": ["a"], "k": [1.0]}, {"key": "k"}, "column 'k' is double|column 'k' is float64"),
    ({"value": ["a"], "t": ["x"]}, {"event_time": "t"}, "column 't' is string; event_time must"),
    ({"value": ["a"], "p": ["x"]}, {"properties": "p"}, "column 'p' is string; properties must"),
    ({"value": [["a"]]}, {}, "column 'value' is list<string>"),
    ({"value": ["a"], "p": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64()))},
     {"properties": "p"}, "the value of a property must be string"),
    ({"value": pa.array([1, 2]).dictionary_encode()}, {}, "dictionary<int64, int32>"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "names", "text"), WRONG_COLUMNS)
def test_an_unfit_column_is_named_and_nothing_is_sent(
    topic: Topic, columns: dict[str, Any], names: dict[str, str], text: str
):
    with pytest.raises(TypeError, match=text):
        topic.producer.send_arrow(pa.table(columns), **names)
    assert not topic.consumer.has_message()


def test_a_missing_column_is_told_with_those_there_are(topic: Topic):
    with pytest.raises(ValueError, match=r"no column 'value'; there are 'a', 'b'"):
        topic.producer.send_arrow(pa.table({"a": ["x"], "b": ["y"]}))
    with pytest.raises(TypeError, match="a column is named by a str"):
        topic.producer.send_arrow(pa.table({"value": ["x"]}), key=1)


@pytest.mark.parametrize("data", [[b"a"], None, {"value": [b"a"]}, b"abc"])
def test_what_is_no_arrow_is_refused(topic: Topic, data: object):
    with pytest.raises(TypeError, match="neither __arrow_c_stream__ nor __arrow_c_array__"):
        topic.producer.send_arrow(data)


def test_an_array_alone_is_no_table(topic: Topic):
    with pytest.raises(TypeError, match="a table or record batch is needed, not string"):
        topic.producer.send_arrow(pa.array(["a"]))


def test_a_bad_row_leaves_what_came_before(memory_client: pulsarx.Client):
    topic = Topic(memory_client)
    values = [b"%d" % n for n in range(1500)] + [b"x" * (6 << 20), b"after"]
    with pytest.raises(errors.MessageTooBig, match="row 1500 has 6291456 bytes") as caught:
        topic.producer.send_arrow(pa.table({"value": values}))
    assert caught.value.__notes__ == ["1500 rows were published"]
    assert topic.values(1500) == values[:1500]
    assert topic.producer.send(b"goes on") is not None
    assert topic.values(1) == [b"goes on"]


def test_a_time_before_1970_and_a_null_property_are_refused(topic: Topic):
    table = pa.table({"value": ["a", "b"], "at": [5, -5]})
    with pytest.raises(ValueError, match="row 1: event_time is before 1970"):
        topic.producer.send_arrow(table, event_time="at")
    column = pa.array([[("a", None)]], pa.map_(pa.string(), pa.string()))
    with pytest.raises(ValueError, match="row 0: a property has no name or no value"):
        topic.producer.send_arrow(pa.table({"value": ["a"], "p": column}), properties="p")
    assert topic.values(1) == [b"a"]


def test_after_close(memory_client: pulsarx.Client):
    topic = Topic(memory_client)
    topic.producer.close()
    topic.consumer.close()
    with pytest.raises(errors.AlreadyClosed):
        topic.producer.send_arrow(pa.table({"value": ["a"]}))
    with pytest.raises(errors.AlreadyClosed):
        topic.consumer.receive_arrow(1)


@pytest.mark.parametrize("most", [0, -1])
def test_at_least_one_message_must_be_asked_for(topic: Topic, most: int):
    with pytest.raises(ValueError, match="max_messages"):
        topic.consumer.receive_arrow(most)


def test_everything_a_producer_gave_is_released_once(topic: Topic):
    array = HandMadeArray([0, 1, 3], b"abc")
    topic.producer.send_arrow(array)
    assert array.released == array.given == {"schema": 1, "array": 1}
    stream = HandMadeStream([0, 1, 3], b"abc", batches=4)
    topic.producer.send_arrow(stream)
    assert stream.released == stream.given == {"stream": 1, "schema": 1, "array": 4}
    assert topic.values(10) == [b"a", b"bc"] * 5


BAD_ARRAYS = [
    ({"offsets": [0, 2, 1], "data": b"ab"}, "row 1: its offsets are damaged"),
    ({"offsets": [-1, 2], "data": b"ab"}, "row 0: its offsets are damaged"),
    ({"offsets": [0, 1], "data": b"a", "child_rows": 0}, "has 0 rows at offset 0; 1 are needed"),
    ({"offsets": [0, 1], "data": b"a", "rows": -1}, "an Arrow batch of -1 rows"),
    ({"offsets": [0, 1], "data": b"a", "column_offset": -1}, "1 rows at offset -1"),
    ({"offsets": [0, 1], "data": b"a", "column_offset": 2**62}, "1 rows at offset"),
    ({"offsets": [0, 1], "data": b"a", "n_buffers": 2}, "has 2 buffers; a binary has 3"),
    ({"offsets": [0, 1], "data": b"a", "column_format": b"i"}, "column 'value' is int32"),
    ({"offsets": [0, 1], "data": b"a", "column_format": b"?!"}, "Arrow format '[?]!'"),
]


@pytest.mark.parametrize("kind", [HandMadeArray, HandMadeStream])
@pytest.mark.parametrize(("given", "text"), BAD_ARRAYS)
def test_a_lying_producer_is_refused_and_released_once(
    topic: Topic, kind: type[HandMadeArray], given: dict[str, Any], text: str
):
    made = kind(**given)
    with pytest.raises((ValueError, TypeError), match=text):
        topic.producer.send_arrow(made)
    gc.collect()
    assert made.released == made.given


@pytest.mark.parametrize(("number", "kind"), [(22, ValueError), (12, MemoryError), (5, OSError)])
def test_a_failing_stream_says_so_and_leaves_what_came(
    topic: Topic, number: int, kind: type[Exception]
):
    stream = HandMadeStream([0, 1], b"a", batches=2, error=number)
    with pytest.raises(kind, match="made to fail") as caught:
        topic.producer.send_arrow(stream)
    assert caught.value.__notes__ == ["2 rows were published"]
    assert stream.released == stream.given
    assert topic.values(2) == [b"a", b"a"]


def test_a_used_up_capsule_is_refused(topic: Topic):
    capsule = pa.table({"value": ["a"]}).__arrow_c_stream__()

    class Again:
        def __arrow_c_stream__(self) -> object:
            return capsule

    topic.producer.send_arrow(Again())
    with pytest.raises(ValueError, match="released already"):
        topic.producer.send_arrow(Again())
    assert topic.values(1) == [b"a"]


def test_unused_capsules_are_released(topic: Topic):
    topic.producer.send_arrow(pa.table({"value": ["a"]}))
    messages = topic.consumer.receive_arrow(1)
    for _ in range(3):
        messages.__arrow_c_schema__()
        messages.__arrow_c_array__()
        messages.__arrow_c_stream__()
    assert pa.table(messages).num_rows == 1


def test_memory_does_not_grow(topic: Topic):
    values = [b"%0100d" % n for n in range(20_000)]
    table = pa.table({"value": values, "key": [str(n) for n in range(20_000)]})

    def turn() -> None:
        topic.producer.send_arrow(table, key="key")
        messages = topic.consumer.receive_arrow(20_000)
        left = 20_000 - len(messages)
        pa.table(messages)
        topic.consumer.acknowledge_many(messages)
        while left:
            messages = topic.consumer.receive_arrow(left)
            topic.consumer.acknowledge_many(messages)
            left -= len(messages)
        with pytest.raises(ValueError):
            topic.producer.send_arrow(table, "nothing")

    for _ in range(5):
        turn()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    mapped = anonymous_kib()
    for _ in range(40):
        turn()
    # Forty turns that each lost their columns would be 120 MB more.
    assert anonymous_kib() - mapped < 40_000, before


def anonymous_kib() -> int:
    """Memory of this process that is no file, as ledgers in memory are."""
    with open("/proc/self/status") as lines:
        found = [line.split()[1] for line in lines if line.startswith("RssAnon:")]
    return int(found[0])
