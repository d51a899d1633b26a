"""Topics that are read lazily: what is in memory at once, what is decoded, and by whom."""

from __future__ import annotations

import json
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pytest

import pulsarx
from pulsarx import BrokerOptions, ManualClock, MessageId, errors
from pulsarx.schema import AvroSchema, Integer, JsonSchema, Record, String, StringSchema
from pulsarx.tables import block_values, reading
from pulsarx.tables.selection import Block
from pulsarx.testing import inspect

KEY = polars.col("__key__")
TIME = polars.col("__publish_time__")


class Item(Record):
    name = String()
    number = Integer()


def publish(client: pulsarx.Client, topic: str, *values: Any, key: str | None = None) -> None:
    keys = None if key is None else [value[key] for value in values]
    with client.create_producer(topic) as producer:
        producer.send_many([json.dumps(value).encode() for value in values], keys=keys)


@pytest.fixture
def orders(clocked_client: pulsarx.Client, manual_clock: ManualClock) -> pulsarx.Client:
    """Six orders of three customers, a minute apart."""
    for number in range(6):
        publish(clocked_client, "orders", {"who": "abc"[number % 3], "n": number}, key="who")
        manual_clock.advance(seconds=60)
    return clocked_client


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages were decoded, by block."""
    found: list[int] = []
    lines = block_values._lines

    def counted(values: Any) -> Any:
        found.append(len(values))
        return lines(values)

    monkeypatch.setattr(block_values, "_lines", counted)
    return found


# Memory -------------------------------------------------------------------------------------------


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many messages are in memory, in blocks that are alive."""
    alive: weakref.WeakSet[Block] = weakref.WeakSet()
    make = Block.__init__

    def counted(self: Block, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        alive.add(self)

    monkeypatch.setattr(Block, "__init__", counted)
    return lambda: sum([len(block) for block in alive])


@pytest.mark.parametrize("schema", [None, JsonSchema(Item), AvroSchema(Item), StringSchema()])
def test_a_topic_much_larger_than_a_batch_is_never_in_memory(
    memory_client: pulsarx.Client, schema: Any, blocks: Callable[[], int]
):
    """Measured by what pyarrow has allocated while it is read, and by the messages it is read
    from, whose columns are native."""
    text = "x" * 1000
    with memory_client.create_producer("orders", schema=schema or StringSchema()) as producer:
        values: list[Any] = [Item(name=text, number=number) for number in range(20_000)]
        if schema is None:
            values = [json.dumps({"name": text, "number": n}) for n in range(20_000)]
        elif isinstance(schema, StringSchema):
            values = [text] * 20_000
        producer.send_many(values)
    if schema is None:
        memory_client.admin.schemas.delete_schema("orders")
    scan = memory_client.scan("orders", batch_size=500)
    before = pa.total_allocated_bytes()
    largest = most = count = 0
    for batch in scan.to_reader():
        count += batch.num_rows
        largest = max(largest, pa.total_allocated_bytes() - before)
        most = max(most, blocks())
    assert count == 20_000
    assert 500 <= most <= 5_000 and largest < 6_000_000  # of 20 MB
    assert memory_client.read_table("orders").nbytes > 20_000_000


@pytest.mark.parametrize("engine", ["duckdb", "polars"])
def test_queries_over_more_than_fits_take_batch_by_batch(
    memory_client: pulsarx.Client, engine: str, monkeypatch: pytest.MonkeyPatch
):
    """Measured by what pyarrow has allocated whenever the next batch is decoded."""
    text = "x" * 1000
    with memory_client.create_producer("orders", schema=JsonSchema(Item)) as producer:
        producer.send_many([Item(name=text, number=number) for number in range(20_000)])
    scan = memory_client.scan("orders", batch_size=500)
    lines, before = block_values._lines, pa.total_allocated_bytes()
    allocated = []

    def measured(values: Any) -> Any:
        allocated.append(pa.total_allocated_bytes() - before)
        return lines(values)

    monkeypatch.setattr(block_values, "_lines", measured)
    if engine == "polars":
        query = scan.to_polars().select(polars.col("name").str.len_bytes().sum())
        (total,) = query.collect(engine="streaming").row(0)
    else:
        relation = scan.to_duckdb(duckdb.connect())
        ((total,),) = relation.aggregate("sum(strlen(name))").fetchall()
    assert total == 20_000_000
    assert len(allocated) == 40 and max(allocated) < 8_000_000


def test_finding_types_needs_no_more_than_a_batch(memory_client: pulsarx.Client):
    text = "x" * 1000
    publish(
        memory_client, "orders", *[{"name": text} for _ in range(9_000)], {"name": None, "n": 1}
    )
    before = pa.total_allocated_bytes()
    scan = memory_client.scan("orders", batch_size=100)
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert scan.schema.names[:2] == ["name", "n"]


def test_large_messages_make_small_batches(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 100_000)
    publish(memory_client, "orders", *[{"text": "x" * 10_000} for _ in range(30)])
    sizes = [batch.num_rows for batch in memory_client.scan("orders").to_reader()]
    assert sizes == [10, 10, 10]


@pytest.mark.parametrize("schema", [None, JsonSchema(Item), AvroSchema(Item), StringSchema()])
def test_a_few_large_messages_among_many_small_ones_make_no_large_batch(
    memory_client: pulsarx.Client, schema: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(reading, "BLOCK_BYTES", 50_000)
    names = ["x"] * 2_000 + ["x" * 10_000] * 30
    with memory_client.create_producer("orders", schema=schema or StringSchema()) as producer:
        values: list[Any] = [Item(name=name, number=1) for name in names]
        if schema is None:
            values = [json.dumps({"name": name}) for name in names]
        elif isinstance(schema, StringSchema):
            values = names
        producer.send_many(values)
    if schema is None:
        memory_client.admin.schemas.delete_schema("orders")
    scan = memory_client.scan("orders", metadata=[])
    sizes = [batch.nbytes for batch in scan.to_reader()]
    assert sum(sizes) > 300_000
    # Beyond it goes an entry at most, or the messages that are looked at together.
    assert max(sizes) < 50_000 + 10_000 * block_values.AT_ONCE


def test_a_reader_that_is_dropped_half_way_gives_back_what_it_has(
    memory_client: pulsarx.Client,
):
    publish(memory_client, "orders", *[{"n": number} for number in range(100)])
    reader = memory_client.scan("orders", batch_size=10).to_reader()
    assert reader.read_next_batch().num_rows == 10
    reader.close()
    del reader
    memory_client.admin.topics.delete("orders")  # nobody reads it any more


# What it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 2, None])
def test_a_scan_is_the_table_in_batches(memory_client: pulsarx.Client, batch_size: int | None):
    values = [{"a": 1}, {"a": 2.5, "t": "2026-01-01"}, {"b": [1]}, {"b": [0.5]}, {"c": {"d": None}}]
    publish(memory_client, "orders", *values, {"c": {"d": "x", "e": 1}})
    table = memory_client.read_table("orders")
    scan = memory_client.scan("orders", metadata=(), batch_size=batch_size)
    assert scan.schema == table.schema and scan.to_arrow().equals(table)
    assert scan.to_reader().read_all().equals(table)
    assert pa.table(scan).equals(table) and polars.DataFrame(scan).height == 6


def test_types_that_do_not_go_together_are_named_over_batches(memory_client: pulsarx.Client):
    publish(memory_client, "orders", *[{"n": number} for number in range(50)], {"n": "x"})
    with pytest.raises(ValueError, match=r"message \(.*,50\) .* does not go with those before"):
        memory_client.scan("orders", batch_size=7)


def test_a_scan_holds_what_was_there_when_it_was_made(orders: pulsarx.Client):
    scan = orders.scan("orders")
    lazy = scan.to_polars()
    publish(orders, "orders", {"who": 1, "n": "of other types"})
    for _ in range(2):
        assert scan.to_arrow().num_rows == 6 and lazy.collect().height == 6
    assert "who" in repr(scan)


def test_a_scan_needs_its_client(memory_client: pulsarx.Client):
    publish(memory_client, "orders", {"n": 1})
    scan = memory_client.scan("orders")
    memory_client.close()
    with pytest.raises(errors.AlreadyClosed):
        scan.to_arrow()


def test_a_scan_of_a_topic_that_was_deleted_does_not_make_it_again(memory_client: pulsarx.Client):
    publish(memory_client, "orders", {"n": 1})
    scan = memory_client.scan("orders")
    memory_client.admin.topics.delete("orders")
    for read in (scan.to_arrow, scan.to_reader().read_all, scan.to_polars().collect):
        with pytest.raises(errors.TopicNotFound, match="orders"):
            read()
    assert memory_client.admin.topics.get_list() == []
    publish(memory_client, "orders", {"n": 2})  # of the same name, and not what the scan holds
    with pytest.raises(errors.DataLossError, match="orders"):
        scan.to_arrow()


@pytest.fixture
def shelf(manual_clock: ManualClock) -> Iterator[pulsarx.Client]:
    """Nine orders, a minute apart, two a ledger."""
    options = BrokerOptions(
        managed_ledger_max_entries_per_ledger=2,
        default_retention_time_in_minutes=-1,
        default_retention_size_in_mb=-1,
    )
    with pulsarx.Client("memory:shelf", clock=manual_clock, broker_options=options) as client:
        for number in range(9):
            publish(client, "orders", {"n": number})
            manual_clock.advance(seconds=60)
        yield client


def remove_all_but_the_last(client: pulsarx.Client) -> None:
    client.subscribe("orders", "s").close()  # behind all
    client.admin.topics.set_retention("orders", 0, 0)
    inspect(client).settle()
    assert numbers_in(client.read_table("orders")) == [8]


def numbers_in(table: pa.Table) -> list[Any]:
    found: list[Any] = table["n"].to_pylist()
    return found


def test_what_was_removed_since_a_scan_was_made_is_an_error(shelf: pulsarx.Client):
    last = shelf.admin.topics.get_last_message_id("orders")
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    lost: list[dict[str, Any]] = [
        {},
        {"last": 2},
        {"last": 1, "keys": "a"},
        {"start": begin + timedelta(minutes=2)},
        {"end": last},
    ]
    whole: list[dict[str, Any]] = [
        {"last": 1},
        {"start": last},
        {"start": begin + timedelta(minutes=8, seconds=1)},
    ]
    scans = [shelf.scan("orders", **options) for options in [*lost, *whole]]
    remove_all_but_the_last(shelf)
    for scan in scans[: len(lost)]:
        with pytest.raises(errors.DataLossError, match=r"orders: ledgers \d+, .*, which it had"):
            scan.to_arrow()
    found = [scan.to_arrow() for scan in scans[len(lost) :]]
    assert [numbers_in(each) for each in found[:2]] == [[8], [8]] and not found[2].num_rows


def test_what_is_removed_while_a_scan_is_read_is_an_error(shelf: pulsarx.Client):
    reader = shelf.scan("orders", schema=pa.schema([("n", pa.int64())]), batch_size=1).to_reader()
    assert numbers_in(reader.read_next_batch()) == [0]
    remove_all_but_the_last(shelf)
    with pytest.raises(errors.DataLossError):
        reader.read_all()


def test_what_was_read_before_it_was_removed_is_no_loss(shelf: pulsarx.Client):
    """Two batches are read ahead of the one that is given."""
    reader = shelf.scan("orders", schema=pa.schema([("n", pa.int64())]), batch_size=2).to_reader()
    assert [numbers_in(reader.read_next_batch()) for _ in range(2)] == [[0, 1], [2, 3]]
    remove_all_but_the_last(shelf)
    assert numbers_in(reader.read_all()) == [4, 5, 6, 7, 8]


# Avro that only Python can read -------------------------------------------------------------------

_LONG = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}
_UNION = {"type": "record", "name": "R", "fields": [{"name": "n", "type": ["int"]}]}


@pytest.fixture
def odd(memory_client: pulsarx.Client) -> pulsarx.Client:
    """Ten numbers; the second version of the schema has no native reader, when half is read."""
    memory_client.admin.topics.create_non_partitioned_topic("odd")
    memory_client.admin.namespaces.set_schema_compatibility_strategy(
        "public/default", "ALWAYS_COMPATIBLE"
    )
    for definition in (_LONG, _UNION):
        with memory_client.create_producer("odd", schema=AvroSchema(None, definition)) as producer:
            producer.send_many([{"n": number} for number in range(5)])
    return memory_client


def test_avro_that_only_python_can_read_goes_on_behind_what_was_read(odd: pulsarx.Client):
    scan = odd.scan("odd", schema=AvroSchema(None, _LONG), batch_size=2)
    assert numbers_in(scan.to_arrow()) == [0, 1, 2, 3, 4] * 2


@pytest.mark.parametrize("last", [None, 8])
def test_one_reading_does_not_change_how_another_goes_on(odd: pulsarx.Client, last: int | None):
    with odd.create_producer("even", schema=AvroSchema(None, _LONG)) as producer:
        producer.send_many([{"n": 100}, {"n": 101}])
    options: Any = {"schema": AvroSchema(None, _LONG), "batch_size": 2, "last": last}
    for topics in ("odd", ["even", "odd"]):
        expected = numbers_in(odd.scan(topics, **options).to_arrow())
        scan = odd.scan(topics, **options)
        reader = scan.to_reader()
        first = numbers_in(reader.read_next_batch())
        assert numbers_in(scan.to_arrow()) == expected  # finds out that it takes Python
        assert first + numbers_in(reader.read_all()) == expected
        assert len(expected) == (last or 10 + 2 * (topics != "odd"))


@pytest.mark.parametrize("last", [None, 4])
def test_readings_at_a_time_find_out_together(
    odd: pulsarx.Client, last: int | None, monkeypatch: pytest.MonkeyPatch
):
    barrier = threading.Barrier(2, timeout=60)
    decode = block_values.AvroValues._decoder_of

    def together(self: Any, version: bytes, columns: pa.Schema) -> Any:
        try:
            return decode(self, version, columns)
        except block_values.Refused:
            barrier.wait()
            raise

    monkeypatch.setattr(block_values.AvroValues, "_decoder_of", together)
    scan = odd.scan("odd", schema=AvroSchema(None, _LONG), batch_size=2, last=last)
    with ThreadPoolExecutor(2) as threads:
        found = [threads.submit(scan.to_arrow) for _ in range(2)]
        expected = ([0, 1, 2, 3, 4] * 2)[-(last or 10) :]
        assert [numbers_in(each.result()) for each in found] == [expected] * 2


# Polars -------------------------------------------------------------------------------------------


def test_conditions_on_keys_and_times_are_applied_before_values_are_decoded(
    orders: pulsarx.Client, decoded: list[int]
):
    lazy = orders.scan("orders").to_polars()
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    decoded.clear()
    found = lazy.filter((KEY == "a") & (polars.col("n") > 0)).select("n").collect()
    assert found["n"].to_list() == [3] and sum(decoded) == 2
    decoded.clear()
    found = lazy.filter(begin + timedelta(minutes=4) <= TIME, KEY.is_in(["a", "b"])).collect()
    assert found["n"].to_list() == [4] and sum(decoded) == 1
    decoded.clear()
    assert lazy.filter(KEY == "nobody").collect().height == 0 and sum(decoded) == 0
    decoded.clear()
    assert lazy.select(KEY.unique().sort()).collect()["__key__"].to_list() == ["a", "b", "c"]
    assert sum(decoded) == 0


def test_reading_ends_when_there_is_enough(memory_client: pulsarx.Client, decoded: list[int]):
    publish(memory_client, "orders", *[{"n": number} for number in range(500)])
    scan = memory_client.scan("orders", batch_size=1)
    decoded.clear()
    assert scan.to_polars().select("n").head(3).collect()["n"].to_list() == [0, 1, 2]
    assert sum(decoded) < 20
    decoded.clear()
    limited = scan.to_duckdb(duckdb.connect()).project("n").limit(3)
    assert limited.fetchall() == [(0,), (1,), (2,)]
    assert sum(decoded) < 400


def test_queries_of_polars_are_those_of_a_frame(orders: pulsarx.Client):
    scan = orders.scan("orders", batch_size=2)
    frame = polars.DataFrame(scan.to_arrow())
    number, who = polars.col("n"), polars.col("who")
    for query in (
        lambda source: source.filter((KEY == "a") | (number > 3)),
        lambda source: source.head(2).filter(KEY == "b"),
        lambda source: source.filter(KEY == "b").head(1),
        lambda source: source.head(3),
        lambda source: source.tail(3).select("n"),
        lambda source: source.select(polars.len()),
        lambda source: source.filter(KEY.max() == KEY),
        lambda source: source.filter(polars.lit(True)).select("__key__", "n"),
        lambda source: source.group_by(who).agg(number.sum()).sort("who"),
        lambda source: source.filter(KEY.is_null()),
        lambda source: source.filter(who != KEY),
        lambda source: source.filter((number > 0) & (number < 4) & (KEY > "a") & (who < "c")),
        lambda source: source.join(source, on="who").sort("n", "n_right").select("n", "n_right"),
    ):
        assert query(scan.to_polars()).collect().equals(query(frame.lazy()).collect())


def test_only_the_columns_of_a_query_are_decoded(memory_client: pulsarx.Client):
    """A column that is not asked for is not looked at, so what does not fit in it is no error."""
    columns = pa.schema([("n", pa.int64()), ("m", pa.int64())])
    publish(memory_client, "orders", {"n": 1, "m": 2}, {"n": 3, "m": "x"})
    scan = memory_client.scan("orders", schema=columns)
    assert scan.to_polars().select("n").collect()["n"].to_list() == [1, 3]
    assert scan.to_duckdb(duckdb.connect()).project("n").fetchall() == [(1,), (3,)]
    table = memory_client.read_table("orders", ["n"], schema=columns)
    assert table["n"].to_pylist() == [1, 3]
    with pytest.raises(ValueError, match="m is 'x' and should be int64"):
        scan.to_arrow()


def test_columns_of_avro_are_decoded_by_the_query(memory_client: pulsarx.Client):
    with memory_client.create_producer("orders", schema=AvroSchema(Item)) as producer:
        producer.send_many([Item(name="ada", number=1), Item(name=None, number=2)])
    lazy = memory_client.scan("orders").to_polars()
    assert lazy.select("number").collect()["number"].to_list() == [1, 2]
    assert lazy.filter(polars.col("name") == "ada").select("number").collect().rows() == [(1,)]


# DuckDB -------------------------------------------------------------------------------------------


def test_a_relation_hands_its_conditions_on(orders: pulsarx.Client, decoded: list[int]):
    relation = orders.scan("orders").to_duckdb(duckdb.connect())
    decoded.clear()
    assert relation.filter("__key__ = 'a' AND n > 0").project("n").fetchall() == [(3,)]
    assert sum(decoded) == 2
    decoded.clear()
    time = "TIMESTAMPTZ '2024-01-01 00:04:00Z'"
    found = relation.filter(f"__publish_time__ >= {time} AND n <> 4").project("n").fetchall()
    assert found == [(5,)] and sum(decoded) == 2
    decoded.clear()
    assert relation.aggregate("count(DISTINCT __key__)").fetchall() == [(3,)]
    assert sum(decoded) == 0


def test_queries_of_duckdb_are_those_of_a_table(orders: pulsarx.Client):
    publish(orders, "orders", {"who": "a\"\\' and (x)", "n": 7}, key="who")
    scan = orders.scan("orders", batch_size=2)
    connection = duckdb.connect()
    connection.register("plain", scan.to_arrow())
    scan.to_duckdb(connection).create_view("lazy")
    for condition in (
        "true",
        "__key__ = 'a'",
        "__key__ = 'a' AND n = 3",
        "__key__ = 'a\"\\'' and (x)' AND n = 7",
        "who = __key__ AND n BETWEEN 1 AND 3",
        "__key__ IN ('a', 'b') AND n IN (0, 1)",
        "__key__ IS NOT NULL AND n IS NOT NULL AND who LIKE 'a%'",
        "__key__ > 'a' OR n = 0",
        "__publish_time__ > TIMESTAMPTZ '2024-01-01 00:01:30.5Z' AND n < 4 AND __key__ <> 'c'",
        "__publish_time__ = TIMESTAMPTZ '2024-01-01 00:01:00Z' AND n >= 0",
        "__event_time__ IS NULL AND n = 2",
    ):
        text = "SELECT n, who FROM {} WHERE " + condition + " ORDER BY n"
        expected = connection.sql(text.format("plain")).fetchall()
        assert connection.sql(text.format("lazy")).fetchall() == expected, condition


def test_a_field_with_a_name_of_metadata_is_a_field(clocked_client: pulsarx.Client):
    """As in a topic that a table with such columns was sent to."""
    rows = [{"n": number, "who": f"k{number % 2}"} for number in range(6)]
    clocked_client.send_rows("source", rows, key="who")
    metadata = ["key", "publish_time", "topic"]
    clocked_client.send_rows("copy", clocked_client.read_table("source", metadata=metadata))
    scan = clocked_client.scan("copy", metadata=["message_id"])
    connection = duckdb.connect()
    scan.to_duckdb(connection).create_view("lazy")
    connection.register("plain", scan.to_arrow())
    for name, text in (
        ("__key__", "__key__ = 'k1'"),
        ("__topic__", "__topic__ = 'persistent://public/default/source' AND n > 0"),
        ("__publish_time__", "__publish_time__ >= TIMESTAMPTZ '2024-01-01 00:00:00Z' AND n > 0"),
    ):
        query = f"SELECT n FROM {{}} WHERE {text}"
        found = connection.sql(query.format("lazy")).fetchall()
        assert found and found == connection.sql(query.format("plain")).fetchall(), text
        frame = polars.DataFrame(scan.to_arrow())
        condition = polars.col(name) == frame[name][1]
        assert scan.to_polars().filter(condition).collect().equals(frame.filter(condition))
    asked = clocked_client.sql("SELECT n FROM copy WHERE __key__ = 'k1'", metadata=[])
    assert asked.fetchall() == [(1,), (3,), (5,)]


# Topics and places --------------------------------------------------------------------------------


def test_several_topics_are_one_table(memory_client: pulsarx.Client):
    publish(memory_client, "orders-eu", {"n": 1}, {"n": 2})
    publish(memory_client, "orders-us", {"n": 0.5, "state": "NY"})
    publish(memory_client, "bills", {"n": "x"})
    with memory_client.create_producer("orders-avro", schema=AvroSchema(Item)) as producer:
        producer.send(Item(name="ada", number=3))
    memory_client.admin.topics.create_partitioned_topic("orders-parts", 2)
    publish(memory_client, "orders-parts", {"n": 4})
    expected = [
        {"n": 1.0, "state": None},
        {"n": 2.0, "state": None},
        {"n": 0.5, "state": "NY"},
    ]
    topics = ["orders-eu", "persistent://public/default/orders-us"]
    assert memory_client.read_table(topics).to_pylist() == expected
    assert memory_client.scan(topics, metadata=()).to_arrow().to_pylist() == expected
    table = memory_client.read_table(re.compile("orders-.*"), metadata=["topic"])
    assert table.num_rows == 5 and table.column_names == [
        "name", "number", "n", "state", "__topic__",
    ]  # fmt: skip
    named = {row["__topic__"].rpartition("/")[2]: row for row in table.to_pylist()}
    assert set(named) == {"orders-avro", "orders-eu", "orders-parts", "orders-us"}
    assert named["orders-avro"]["name"] == "ada" and named["orders-parts"]["n"] == 4
    scan = memory_client.scan(re.compile("public/default/orders-.*"), metadata=["topic"])
    assert scan.to_arrow().equals(table)
    lazy = scan.to_polars().filter(polars.col("__topic__").str.ends_with("-avro"))
    assert lazy.select("number").collect().rows() == [(3,)]


def test_topics_that_make_no_table_are_named(memory_client: pulsarx.Client):
    publish(memory_client, "orders", {"number": "x"})
    memory_client.create_producer("avro", schema=AvroSchema(Item)).close()
    with pytest.raises(
        errors.OperationNotSupported, match="number is int32 and string as of topic"
    ):
        memory_client.read_table(["avro", "orders"])
    for topic, kind, text in (
        ([], ValueError, "empty list"),
        (["orders", "public/default/orders"], ValueError, "a name twice"),
        (re.compile("bills.*"), errors.TopicNotFound, "no topic of public/default matches"),
        (["orders", "bills"], errors.TopicNotFound, "bills"),
        ("non-persistent://public/default/orders", errors.NotAllowedError, "keeps no messages"),
    ):
        for call in (memory_client.read_table, memory_client.scan):
            with pytest.raises(kind) as caught:
                call(topic)
            assert re.search(text, getattr(caught.value, "detail", "") or str(caught.value))
    assert sorted(memory_client.admin.topics.get_list()) == [
        f"persistent://public/default/{name}" for name in ("avro", "orders")
    ]


def test_last_are_the_newest_of_all_topics(
    clocked_client: pulsarx.Client, manual_clock: ManualClock
):
    with clocked_client.create_producer("avro", schema=AvroSchema(Item)) as producer:
        for number in range(4):
            publish(clocked_client, "plain", {"number": number * 2})
            manual_clock.advance(seconds=1)
            producer.send(Item(number=number * 2 + 1))
            manual_clock.advance(seconds=1)
    table = clocked_client.read_table(["plain", "avro"], ["number"], last=3)
    assert table["number"].to_pylist() == [6, 5, 7]
    scan = clocked_client.scan(["avro", "plain"], ["number"], last=5, batch_size=1)
    assert scan.to_arrow()["number"].to_pylist() == [3, 5, 7, 4, 6]


def test_a_start_may_be_a_place_a_text_or_a_span(orders: pulsarx.Client):
    def read(**options: Any) -> list[int]:
        return [row["n"] for row in orders.read_table("orders", **options).to_pylist()]

    rows = orders.read_table("orders", metadata=["message_id"]).to_pylist()
    ids = [MessageId.from_row(row) for row in rows]
    assert read(start=ids[2]) == [2, 3, 4, 5] and read(end=ids[2]) == [0, 1]
    assert read(start=ids[1], end=ids[4], keys=["a", "c"]) == [2, 3]
    assert read(start=MessageId.earliest) == list(range(6)) == read(end=MessageId.latest)
    assert read(start=MessageId.latest) == [] == read(end=MessageId.earliest)
    assert read(start="2024-01-01T00:04Z") == [4, 5]
    assert read(start="2024-01-01T02:04+02:00", end="2024-01-01 00:05:00Z") == [4]
    assert read(start=timedelta(minutes=2)) == [4, 5]  # the clock is at six minutes
    assert read(start=timedelta(minutes=5), end=timedelta(minutes=2)) == [1, 2, 3]
    assert read(keys="b") == [1, 4] and read(keys=[]) == []
    assert orders.scan("orders", start=ids[5]).to_polars().collect()["n"].to_list() == [5]
    for options, text in (
        ({"start": "2024-01-01"}, "no time zone"),
        ({"start": "yesterday"}, "start must be a MessageId"),
        ({"end": timedelta(-1)}, "not negative"),
        ({"keys": [b"a"]}, "keys must be"),
    ):
        with pytest.raises(ValueError, match=text):
            read(**options)


def test_a_place_inside_a_batch_is_where_it_begins(memory_client: pulsarx.Client):
    publish(memory_client, "orders", *[{"n": number} for number in range(10)])
    rows = memory_client.read_table("orders", metadata=["message_id"]).to_pylist()
    middle = MessageId.from_row(rows[4])
    assert memory_client.read_table("orders", start=middle)["n"].to_pylist() == list(range(4, 10))
    assert memory_client.read_table("orders", end=middle)["n"].to_pylist() == list(range(4))


def test_a_place_is_in_one_partition(memory_client: pulsarx.Client):
    memory_client.admin.topics.create_partitioned_topic("orders", 2)
    publish(memory_client, "orders-partition-1", {"n": 1}, {"n": 2})
    rows = memory_client.read_table("orders", metadata=["message_id"]).to_pylist()
    place = MessageId.from_row(rows[1])
    with pytest.raises(ValueError, match=r"a place in one partition.* has 2: name a partition"):
        memory_client.read_table("orders", start=place)
    found = memory_client.read_table("orders-partition-1", start=place)
    assert found["n"].to_pylist() == [2]
    assert memory_client.read_table("orders", start=MessageId.earliest).num_rows == 2


def test_keys_are_chosen_before_values_are_decoded(orders: pulsarx.Client):
    publish(orders, "orders", {"who": "b", "n": "of another type"}, key="who")
    columns = pa.schema([("n", pa.int64()), ("who", pa.string())])
    assert orders.read_table("orders", keys="a", schema=columns)["n"].to_pylist() == [0, 3]


def test_wrong_options_of_a_scan_are_named(memory_client: pulsarx.Client):
    publish(memory_client, "orders", {"n": 1, "__key__": 2})
    for options, text in (
        ({"batch_size": 0, "metadata": ()}, "batch_size is 0"),
        ({"batch_size": True, "metadata": ()}, "batch_size is True"),
        ({}, "has a field __key__: leave key out of metadata"),
        ({"columns": ["m"], "metadata": ()}, "has no field 'm'; it has n, __key__"),
    ):
        with pytest.raises(ValueError, match=text):
            memory_client.scan("orders", **options).to_arrow()  # type: ignore[arg-type]
