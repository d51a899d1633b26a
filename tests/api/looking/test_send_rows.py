"""Rows of all kinds become messages, and tables again."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import pulsarx
from pulsarx import MessageId, errors
from pulsarx.schema import (
    Array,
    AvroSchema,
    Boolean,
    Bytes,
    CustomEnum,
    Double,
    Float,
    Integer,
    JsonSchema,
    Long,
    Map,
    Record,
    SchemaType,
    String,
    StringSchema,
)

ROWS = [
    {"name": "ada", "number": (1 << 53) + 1, "share": 0.5, "tags": ["a", "é"], "in": {"x": 1}},
    {"name": None, "number": 2, "share": None, "tags": [], "in": None},
]


class Item(Record):
    name = String(required=True)
    number = Long()
    share = Double()
    paid = Boolean()
    data = Bytes()
    tags = Array(String())
    marks = Map(Integer())


def payloads(client: pulsarx.Client, topic: str = "orders") -> list[bytes]:
    return [message.data() for message in client.create_reader(topic, MessageId.earliest)]


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows,
        iter,
        pa.Table.from_pylist,
        lambda rows: pa.RecordBatch.from_pylist(rows),
        lambda rows: pa.Table.from_pylist(rows).to_reader(),
        polars.DataFrame,
    ],
    ids=["list", "iterator", "table", "batch", "stream", "polars"],
)
def test_rows_of_any_form_become_json_and_a_table_again(memory_client: pulsarx.Client, form: Any):
    last = memory_client.send_rows("orders", form(ROWS))
    reader = memory_client.create_reader("orders", MessageId.earliest)
    messages = list(reader)
    assert [json.loads(message.data()) for message in messages] == ROWS
    assert last == messages[-1].message_id()
    assert memory_client.read_table("orders").to_pylist() == ROWS


def test_a_frame_of_pandas_becomes_messages(memory_client: pulsarx.Client):
    frame = pandas.DataFrame({"name": ["ada", None], "number": [1, 2]})
    memory_client.send_rows("orders", frame)
    table = memory_client.read_table("orders")
    assert table.to_pydict() == {"name": ["ada", None], "number": [1, 2]}
    pandas.testing.assert_frame_equal(table.to_pandas(), frame)


@pytest.mark.parametrize(
    "frame",
    [
        pandas.DataFrame({"n": [1]}, index=["a"]),
        pandas.DataFrame({"n": [1, 2]})[1:],
        pandas.DataFrame({"n": [1]}).rename_axis("id"),
    ],
)
def test_an_index_is_not_left_out_in_silence(memory_client: pulsarx.Client, frame: Any):
    with pytest.raises(ValueError, match="reset_index"):
        memory_client.send_rows("orders", frame)
    memory_client.send_rows("orders", frame.reset_index())
    assert "n" in memory_client.read_table("orders").column_names


def test_key_event_time_and_properties_come_from_columns(memory_client: pulsarx.Client):
    moment = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
    table = pa.table(
        {
            "n": [1, 2],
            "customer": ["ada", None],
            "at": pa.array([moment, None], pa.timestamp("us", "UTC")),
            "props": pa.array([[("a", "b")], None], pa.map_(pa.string(), pa.string())),
        }
    )
    memory_client.send_rows(
        "orders", table, columns=["n"], key="customer", event_time="at", properties="props"
    )
    found = memory_client.read_table("orders", metadata=["key", "event_time", "properties"])
    assert found.to_pylist() == [
        {"n": 1, "__key__": "ada", "__event_time__": moment, "__properties__": [("a", "b")]},
        {"n": 2, "__key__": None, "__event_time__": None, "__properties__": []},
    ]
    rows = [{"n": 3, "at": 1_700_000_000_000, "customer": "bob"}]
    memory_client.send_rows("dicts", rows, key="customer", event_time="at")
    message = memory_client.create_reader("dicts", MessageId.earliest).read_next()
    assert message.event_timestamp() == 1_700_000_000_000 and message.partition_key() == "bob"
    assert json.loads(message.data()) == rows[0]


ITEMS: list[dict[str, Any]] = [
    {
        "name": "ada", "number": 1 << 62, "share": 0.1, "paid": None, "data": "é".encode(),
        "tags": ["a"], "marks": {"x": 1},
    },
    {
        "name": "bob", "number": None, "share": None, "paid": True, "data": None, "tags": None,
        "marks": {},
    },
]  # fmt: skip


@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_dicts_are_encoded_by_a_schema_and_their_nulls_stay_null(
    memory_client: pulsarx.Client, schema: Any
):
    memory_client.send_rows("orders", ITEMS, schema=schema(Item))
    table = memory_client.read_table("orders")
    expected = [each | {"marks": list(each["marks"].items())} for each in ITEMS]
    assert table.to_pylist() == expected
    memory_client.send_rows("copies", table, schema=schema(Item))
    assert memory_client.read_table("copies").equals(table)
    assert payloads(memory_client, "copies") == payloads(memory_client)
    reader = memory_client.create_reader("copies", MessageId.earliest, schema=schema(Item))
    assert reader.read_next().value().number == 1 << 62


@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_the_schema_of_the_topic_is_used_where_none_is_given(
    memory_client: pulsarx.Client, schema: Any
):
    memory_client.create_producer("orders", schema=schema(Item)).close()
    memory_client.send_rows("orders", [{"name": "ada"}])
    reader = memory_client.create_reader("orders", MessageId.earliest, schema=schema(Item))
    assert reader.read_next().value().name == "ada"
    with pytest.raises(ValueError, match="row 0: name is missing or null, and is required"):
        memory_client.send_rows("orders", [{"number": 1}])
    memory_client.create_producer("texts", schema=StringSchema()).close()
    with pytest.raises(errors.OperationNotSupported, match="STRING"):
        memory_client.send_rows("texts", [{"value": "a"}])


def test_records_bring_their_schema(memory_client: pulsarx.Client):
    memory_client.send_rows("orders", [Item(name="ada", number=1)], key="name")
    memory_client.send_rows("avro", [Item(name="ada", number=1)], schema=AvroSchema(Item))
    for topic, kind in (("orders", SchemaType.JSON), ("avro", SchemaType.AVRO)):
        info = memory_client.admin.schemas.get_schema_info(topic)
        assert info.schema_type() == kind
        table = memory_client.read_table(topic, ["name", "number"], metadata=["key"])
        assert table.to_pylist()[0]["number"] == 1
    assert memory_client.read_table("orders", metadata=["key"])["__key__"][0].as_py() == "ada"


def test_types_that_only_avro_has_go_there_and_back(memory_client: pulsarx.Client):
    definition = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "d", "type": {"type": "int", "logicalType": "date"}},
            {
                "name": "m",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            },
        ],
    }
    table = pa.table(
        {
            "t": pa.array([datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)]),
            "d": pa.array([date(2026, 1, 2)]),
            "m": pa.array([Decimal("123.45")], pa.decimal128(5, 2)),
        }
    )
    schema = AvroSchema(None, definition)
    memory_client.send_rows("orders", table, schema=schema)
    assert memory_client.read_table("orders").to_pylist() == table.to_pylist()
    good = table.to_pylist()[0]
    for name, wrong, text in [
        ("t", datetime(2026, 1, 2), "without a time zone"),
        ("d", good["t"], "should be date32"),
        ("m", Decimal("1.234"), "should be decimal128"),
        ("m", Decimal("1234.5"), "should be decimal128"),
        ("m", 1.5, "should be decimal128"),
    ]:
        with pytest.raises(ValueError, match=f"row 0: {name} is .*{text}"):
            memory_client.send_rows("orders", [good | {name: wrong}], schema=schema)
    assert memory_client.read_table("orders").num_rows == 1


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime(2026, 1, 1, tzinfo=UTC)]),
        pa.array([Decimal("1.5")]),
        pa.array([[date(2026, 1, 1)]]),
        pa.array([{"d": date(2026, 1, 1)}]),
    ],
    ids=lambda column: str(column.type),
)
def test_a_column_that_json_does_not_have_is_named_where_messages_have_no_schema(
    memory_client: pulsarx.Client, column: Any
):
    memory_client.send_rows("orders", [{"n": 0}])
    table = pa.table({"n": [1], "c": column})
    with pytest.raises(ValueError, match=r"column c.* which JSON does not have") as caught:
        memory_client.send_rows("orders", table)
    assert "has messages without a schema" in caught.value.__notes__[0]
    memory_client.send_rows("orders", table, columns=["n"])
    assert payloads(memory_client) == [b'{"n":0}', b'{"n":1}']


@pytest.mark.parametrize(
    ("row", "kind", "text"),
    [
        ({"n": float("nan")}, ValueError, "row 1: column n is nan, which is no number"),
        ({"n": object()}, TypeError, "row 1: .*not JSON serializable"),
        ({1: 2}, TypeError, "row 1: a name of JSON must be a str, not 1"),
        ({"n": (1, 2)}, TypeError, r"row 1: a tuple has no place in JSON: \(1, 2\)"),
        (None, TypeError, "row 1 is of NoneType, those before of dict"),
        ([1], TypeError, "row 1 is of list, those before of dict"),
        ({"n": 1, "key": 2}, TypeError, "row 1: the key key must be a str, not 2"),
        ({"n": 1}, ValueError, "row 1: there is no 'key'"),
    ],
)
def test_a_row_that_has_no_json_is_named_and_its_chunk_is_not_sent(
    memory_client: pulsarx.Client, row: Any, kind: Any, text: str
):
    with pytest.raises(kind, match=text):
        key = "key" if "key" in text else None
        memory_client.send_rows("orders", [{"n": 1, "key": "a"}, row], key=key)
    assert payloads(memory_client) == []


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"name": "a", "other": 1}, "other is in no version of the schema"),
        ({"name": 1}, "name is 1 and should be string"),
        ({"name": "a", "number": 1 << 63}, "number is .* and should be int64"),
        ({"name": "a", "number": 1.0}, "number is 1.0 and should be int64"),
        ({"name": "a", "number": True}, "number is True and should be int64"),
        ({"name": "a", "share": (1 << 53) + 1}, "share is .* cannot hold exactly"),
        ({"name": "a", "tags": "ab"}, "tags is 'ab' and should be list"),
        ({"name": "a", "marks": {"x": 1 << 31}}, "marks{} is 2147483648 and should be int32"),
    ],
)
@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_a_row_that_is_not_of_the_schema_is_named(
    memory_client: pulsarx.Client, schema: Any, row: Any, text: str
):
    with pytest.raises(ValueError, match=f"row 0: {text}"):
        memory_client.send_rows("orders", [row], schema=schema(Item))
    assert payloads(memory_client) == []


class Colour(Enum):
    RED = "red"
    GREEN = "green"


class Paint(Record):
    colour = CustomEnum(Colour)
    others = Array(CustomEnum(Colour))
    weight = Float()


@pytest.mark.parametrize("schema", [JsonSchema, AvroSchema])
def test_a_text_that_is_no_symbol_of_its_enumeration_is_refused(
    memory_client: pulsarx.Client, schema: Any
):
    """JSON with it was published, which JsonSchema does not read."""
    rows = [{"colour": "RED"}, {"colour": Colour.GREEN, "others": ["RED"]}]
    memory_client.send_rows("orders", rows, schema=schema(Paint))
    for flaw, field in (
        ({"colour": "BLUE"}, "colour"),
        ({"others": ["RED", "BLUE"]}, r"others\[\]"),
    ):
        with pytest.raises(ValueError, match=f"row 1: {field} is 'BLUE', .* symbols RED, GREEN"):
            memory_client.send_rows("orders", [rows[0], flaw], schema=schema(Paint))
        with pytest.raises(ValueError, match=f"row 1: {field} is 'BLUE'"):
            memory_client.send_rows("orders", [rows[0], flaw])  # by the topic's schema
    reader = memory_client.create_reader("orders", MessageId.earliest, schema=schema(Paint))
    assert [message.value().colour for message in reader] == [Colour.RED, Colour.GREEN]


def test_values_of_members_are_rows_again(memory_client: pulsarx.Client):
    """JsonSchema writes the values of members, where the definition has their names."""
    paints = [Paint(colour=Colour.RED, others=[Colour.GREEN])]
    memory_client.send_rows("orders", paints)
    table = memory_client.read_table("orders")
    assert table["colour"].to_pylist() == ["red"]
    memory_client.send_rows("copies", table, schema=JsonSchema(Paint))
    reader = memory_client.create_reader("copies", MessageId.earliest, schema=JsonSchema(Paint))
    assert [message.value() for message in reader] == paints


def test_a_number_that_is_too_large_for_its_float_is_refused(memory_client: pulsarx.Client):
    """Avro had infinity in its place. A fraction is rounded to the nearest float."""
    schema = AvroSchema(Paint)
    for weight, text in (
        (1e300, "is 1e.300, which is too large for a float"),
        (-(1 << 200), "is -16.* which is too large for a float"),
        ((1 << 24) + 1, "is 16777217, which a float of 32 bits cannot hold exactly"),
    ):
        with pytest.raises(ValueError, match=f"row 1: weight {text}"):
            rows = [{"weight": 0.1}, {"weight": weight}]
            memory_client.send_rows("orders", rows, schema=schema)
    with pytest.raises(ValueError, match=r"row 1: weight is 1e\+300, which is too large"):
        records = [Paint(weight=0.1), Paint(weight=1e300)]
        memory_client.send_rows("orders", records, schema=schema)
    weights = [0.1, 1 << 24, 3.4e38, float("-inf"), None]
    memory_client.send_rows("orders", [{"weight": each} for each in weights], schema=schema)
    found = memory_client.read_table("orders")["weight"]
    assert found.to_pylist() == pa.array(map(_as_float, weights), pa.float32()).to_pylist()
    memory_client.send_rows("json", [{"weight": 1e300}], schema=JsonSchema(Paint))
    assert memory_client.read_table("json")["weight"].to_pylist() == [1e300]


def _as_float(number: float | None) -> float | None:
    return None if number is None else float(number)


def test_a_time_that_python_does_not_have_is_refused_by_row_and_column(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
):
    """It raised OverflowError: date value out of range, without either."""
    from pulsarx.tables import sending

    monkeypatch.setattr(sending, "ROWS", 2)
    days = pa.array([0, 1, 2, 5_000_000], pa.int32()).cast(pa.date32())
    definition = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "day", "type": {"type": "int", "logicalType": "date"}}],
    }
    schema = AvroSchema(None, definition)
    with pytest.raises(ValueError, match=r"row 3: column day has a date32.* the years 1 to 9999"):
        memory_client.send_rows("orders", pa.table({"day": days}), schema=schema)
    assert memory_client.read_table("orders").num_rows == 2


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (datetime(2026, 1, 1), "has no time zone"),
        (datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC), "finer than a millisecond"),
        (datetime(1969, 1, 1, tzinfo=UTC), "must be after 1970"),
        (0, "must be after 1970"),
        ("2026", "must be a datetime or an int"),
        (1.5, "must be a datetime or an int"),
    ],
)
def test_an_event_time_is_not_rounded_or_guessed(
    memory_client: pulsarx.Client, time: Any, text: str
):
    with pytest.raises((ValueError, TypeError), match=f"row 0: the event time t .*{text}"):
        memory_client.send_rows("orders", [{"t": time}], columns=[], event_time="t")


def test_chunks_are_sent_one_after_the_other_and_an_error_says_how_far(
    memory_client: pulsarx.Client, monkeypatch: pytest.MonkeyPatch
):
    from pulsarx.tables import sending

    monkeypatch.setattr(sending, "ROWS", 3)
    calls = []
    rows: list[Any] = [{"n": number} for number in range(7)]
    memory_client.send_rows("orders", rows, progress=lambda *done: calls.append(done))
    assert calls == [(3, 7), (6, 7), (7, 7)]
    assert memory_client.read_table("orders")["n"].to_pylist() == list(range(7))
    rows[5] = {"n": {2}}
    with pytest.raises(TypeError, match="row 5: ") as caught:
        memory_client.send_rows("others", rows)
    assert caught.value.__notes__ == ["3 rows were published before these 3"]
    assert memory_client.read_table("others")["n"].to_pylist() == [0, 1, 2]


def test_rows_go_to_partitions_by_their_keys(memory_client: pulsarx.Client):
    memory_client.admin.topics.create_partitioned_topic("orders", 3)
    rows = [{"k": f"key {number % 5}", "n": number} for number in range(50)]
    memory_client.send_rows("orders", rows, key="k")
    table = memory_client.read_table("orders", metadata=["message_id"])
    partitions: dict[str, set[int]] = {}
    for row in table.to_pylist():
        partitions.setdefault(row["k"], set()).add(row["__message_id__"]["partition"])
    assert all(len(found) == 1 for found in partitions.values()) and len(partitions) == 5
    assert sorted(table["n"].to_pylist()) == list(range(50))


def test_no_rows_are_no_messages(memory_client: pulsarx.Client):
    for rows in ([], pa.table({"n": pa.array([], pa.int64())})):
        assert memory_client.send_rows("orders", rows) is None
    assert payloads(memory_client) == []


def test_wrong_arguments_are_named(memory_client: pulsarx.Client, open_client: Any):
    table = pa.table({"n": [1]})
    for rows, options, text in [
        ({"n": 1}, {}, "rows must be a list of rows or a table, not dict"),
        ("text", {}, "not str"),
        (table, {"key": "k"}, "no column 'k'; they have n"),
        (table, {"columns": ["m"]}, "no column 'm'"),
        (table, {"columns": "n"}, "columns is a str"),
        (table, {"key": 1}, "key must be the name of a column"),
        (table, {"schema": "json"}, "schema must be"),
        (pa.table([[1], [2]], names=["n", "n"]), {}, "a column twice"),
    ]:
        with pytest.raises(ValueError, match=text):
            memory_client.send_rows("orders", rows, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="row 0 is neither a dict nor a Record: 1"):
        memory_client.send_rows("orders", [1])
    open_client().close()
    with pytest.raises(errors.OperationNotSupported, match="read_only"):
        open_client(read_only=True).send_rows("orders", [])


def test_a_text_that_is_not_unicode_is_refused_by_the_number_of_its_row(
    memory_client: pulsarx.Client,
) -> None:
    """It raised TypeError: function takes exactly 5 arguments."""
    with pytest.raises(ValueError, match="row 1: 'utf-8' codec can't encode"):
        memory_client.send_rows("t", [{"a": "x"}, {"a": "\ud800"}])


@pytest.mark.parametrize(
    "row",
    [
        {"key": "\ud800", "more": None},
        {"key": "k", "more": {"\ud800": "v"}},
        {"key": "k", "more": {"n": "\ud800"}},
    ],
)
def test_a_key_that_is_not_unicode_is_refused_by_the_number_of_its_row(
    memory_client: pulsarx.Client, row: dict[str, Any]
) -> None:
    """Keys and properties were refused without one."""
    rows = [{"a": 1, "key": "é", "more": {"é": "é"}}, {"a": 2, **row}]
    with pytest.raises(ValueError, match="row 1: 'utf-8' codec can't encode"):
        memory_client.send_rows("t", rows, columns=["a"], key="key", properties="more")
    assert memory_client.send_rows("t", rows[:1], columns=["a"], key="key", properties="more")
