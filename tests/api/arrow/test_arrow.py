"""send_arrow and receive_arrow: columns in, columns out, nothing lost between them."""

from __future__ import annotations

import gc
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from arrow_topic import ArrowTopic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from seeds import scaled

import pulsarx
from pulsarx import BrokerOptions, CompressionType, errors

COLUMNS = ["message_id", "key", "value", "publish_time", "event_time", "properties"]
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_all_columns_come_back_as_they_were_sent(topic: ArrowTopic):
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


def test_messages_and_columns_say_the_same(memory_client: pulsarx.Client, topic: ArrowTopic):
    topic.producer.send(b"single", {"p": "q"}, "key", event_timestamp=5)
    topic.producer.send(None)
    topic.producer.send_many([b"x", b"y"], keys=["a", None])
    topic.producer.send_arrow(pa.table({"value": [b"r", b"s"]}))
    reader = memory_client.create_reader(topic.name, pulsarx.MessageId.earliest)
    expected = [reader.read_next(60_000) for _ in range(6)]
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
    pa.string_view(), pa.dictionary(pa.int32(), pa.string()),
    pa.dictionary(pa.uint8(), pa.binary()), pa.dictionary(pa.int64(), pa.large_string()),
]  # fmt: skip


@pytest.mark.parametrize("kind", VALUE_TYPES, ids=str)
def test_every_type_of_value_and_key_with_slices_and_nulls(topic: ArrowTopic, kind: pa.DataType):
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


def test_a_sliced_struct_array_and_fixed_size_binary_and_nothing_but_nulls(topic: ArrowTopic):
    fixed = pa.array([b"abc", None, b"def", b"ghi"], pa.binary(3))
    whole = pa.StructArray.from_arrays([fixed, pa.nulls(4)], ["value", "key"])
    topic.producer.send_arrow(whole.slice(1, 2), key="key")
    assert topic.values(2) == [None, b"def"]
    topic.producer.send_arrow(pa.table({"value": pa.nulls(3)}))
    assert topic.values(3) == [None] * 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_event_times_of_every_unit(topic: ArrowTopic, unit: str):
    seconds = [1, None, 1_700_000_000]
    column = pa.array(seconds, pa.timestamp("s")).cast(pa.timestamp(unit))
    topic.producer.send_arrow(pa.table({"value": ["x"] * 3, "at": column}), event_time="at")
    found = [row["event_time"] for row in topic.rows(3)]
    assert found == [None if s is None else EPOCH + timedelta(seconds=s) for s in seconds]


def test_event_times_as_milliseconds(topic: ArrowTopic):
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


@settings(max_examples=scaled(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chunks=st.lists(st.lists(ROW, max_size=40), min_size=1, max_size=4),
    cut=st.integers(0, 30),
    step=st.integers(1, 50),
)
def test_any_chunked_and_sliced_table_comes_back(
    topic: ArrowTopic, chunks: list[list[Any]], cut: int, step: int
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
    topic = ArrowTopic(memory_client, compression_type=kind, batching_enabled=False)
    topic.producer.send_arrow(pa.table({"value": [b"v" * 500] * 100}))
    topic.producer.send(b"alone" * 100, partition_key="k")
    assert topic.values(101) == [b"v" * 500] * 100 + [b"alone" * 100]


def test_a_big_table_crosses_ledgers_and_what_was_acknowledged_stays_so(open_client: Any):
    options = BrokerOptions(managed_ledger_max_entries_per_ledger=3)
    client = open_client(broker_options=options)
    topic = ArrowTopic(client)
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


def test_a_batch_in_which_some_are_acknowledged_comes_without_them(topic: ArrowTopic):
    topic.producer.send_arrow(pa.table({"value": [b"%d" % n for n in range(10)]}))
    messages = topic.consumer.receive_many(10)
    topic.consumer.acknowledge_many([*messages[2:5], messages[9]])
    topic.consumer.redeliver_unacknowledged_messages()
    half = topic.consumer.receive_arrow(3)
    assert pa.table(half)["value"].to_pylist() == [b"0", b"1", b"5"]
    topic.consumer.acknowledge_many(half)
    topic.consumer.redeliver_unacknowledged_messages()
    assert topic.values(3) == [b"6", b"7", b"8"]


def test_receiving_by_message_and_by_column_takes_turns_in_one_batch(topic: ArrowTopic):
    topic.producer.send_arrow(pa.table({"value": [b"%d" % n for n in range(6)]}))
    assert topic.consumer.receive().data() == b"0"
    assert pa.table(topic.consumer.receive_arrow(2))["value"].to_pylist() == [b"1", b"2"]
    assert topic.consumer.receive().data() == b"3"
    assert pa.table(topic.consumer.receive_arrow(9))["value"].to_pylist() == [b"4", b"5"]


def test_nothing_there_is_an_empty_batch_of_the_same_types(topic: ArrowTopic):
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


def test_the_columns_have_the_types_that_are_promised(topic: ArrowTopic):
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


def test_keys_that_are_not_text_become_text(topic: ArrowTopic):
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


@settings(max_examples=scaled(200), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.binary(min_size=1, max_size=12), min_size=1, max_size=20))
def test_any_bytes_are_replaced_as_python_does(topic: ArrowTopic, keys: list[bytes]):
    topic.producer.send_arrow(pa.table({"value": keys, "key": keys}), key="key")
    assert [row["key"] for row in topic.rows(len(keys))] == [
        key.decode("utf-8", "replace") for key in keys
    ]


def test_columns_outlive_the_client_and_each_other(memory_client: pulsarx.Client):
    topic = ArrowTopic(memory_client)
    topic.producer.send_arrow(pa.table({"value": [b"a", b"b"], "key": ["k", "l"]}), key="key")
    messages = topic.consumer.receive_arrow(2)
    value = pa.record_batch(messages).column("value")
    ids = pa.record_batch(messages).column("message_id").field("ledger_id")
    del messages
    memory_client.close()
    gc.collect()
    assert value.to_pylist() == [b"a", b"b"]
    assert len(set(ids.to_pylist())) == 1


def test_a_reader_reads_columns(memory_client: pulsarx.Client, topic: ArrowTopic):
    last = topic.producer.send_arrow(pa.table({"value": [b"a", b"b", b"c"]}))
    start = pulsarx.MessageId(-1, last.ledger_id(), last.entry_id(), 0)
    reader = memory_client.create_reader(topic.name, start)
    messages = reader.read_arrow(10, 5000)
    assert pa.table(messages)["value"].to_pylist() == [b"b", b"c"]
    assert len(reader.read_arrow(10, 0)) == 0
    topic.consumer.acknowledge_many(messages)
    assert topic.values(1) == [b"a"]


def test_columns_of_another_topic_are_not_acknowledged(memory_client: pulsarx.Client):
    one, other = ArrowTopic(memory_client), ArrowTopic(memory_client)
    one.producer.send_arrow(pa.table({"value": [b"a"]}))
    with pytest.raises(errors.NotAllowedError, match="not of the same topic"):
        other.consumer.acknowledge_many(one.consumer.receive_arrow(1))


def test_a_table_that_was_sent_is_durable_and_there_after_a_restart(open_client: Any):
    client = open_client(durability="sync")
    producer = client.create_producer("t")
    last = producer.send_arrow(pa.table({"value": [b"%d" % n for n in range(3000)]}))
    assert producer.last_sequence_id() == 2999
    client.close()
    client = open_client(durability="sync")
    reader = client.create_reader("t", pulsarx.MessageId.earliest)
    assert reader.get_last_message_id() == last
    messages = reader.read_arrow(10_000)
    assert pa.table(messages)["value"].to_pylist() == [b"%d" % n for n in range(3000)]


def test_what_was_received_can_be_sent_on(memory_client: pulsarx.Client, topic: ArrowTopic):
    table = pa.table({"value": ["a", None], "key": ["k", None], "at": [5, None]})
    topic.producer.send_arrow(table, key="key", event_time="at")
    other = ArrowTopic(memory_client)
    messages = topic.consumer.receive_arrow(2)
    assert isinstance(messages, pulsarx.ArrowMessages)
    other.producer.send_arrow(messages, key="key", event_time="event_time", properties="properties")
    rows = other.rows(2)
    assert [(row["value"], row["key"]) for row in rows] == [(b"a", "k"), (None, None)]


def test_threads_send_and_receive_columns_at_once(topic: ArrowTopic):
    def send(number: int) -> None:
        for turn in range(20):
            values = [b"%d %d %d" % (number, turn, row) for row in range(500)]
            topic.producer.send_arrow(pa.table({"value": values}))

    def receive() -> None:
        while messages := topic.consumer.receive_arrow(700, 1000):
            with lock:
                found.extend(pa.table(messages)["value"].to_pylist())
            topic.consumer.acknowledge_many(messages)

    found: list[bytes] = []
    lock = threading.Lock()
    threads = [threading.Thread(target=send, args=(number,)) for number in range(3)]
    threads += [threading.Thread(target=receive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == len(set(found)) == 30_000
