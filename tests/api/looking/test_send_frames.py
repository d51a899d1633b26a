"""Frames with times, dates, decimals and bytes go to a topic and back, without a schema by hand."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest

import pulsarx
from pulsarx import errors
from pulsarx.schema import SchemaType

_FINE = pa.time64("ns")
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678901)
COLUMNS = {
    "utc": pa.array([MOMENT.replace(tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "local": pa.array([MOMENT, None], pa.timestamp("us")),
    "coarse": pa.array([datetime(2026, 1, 2), None], pa.timestamp("s")),
    "fine": pa.array([1_000, None], pa.timestamp("ns")),
    "day": pa.array([date(2026, 1, 2), None]),
    "clock": pa.array([time(3, 4, 5, 6), None]),
    "fine_clock": pa.array([1_000, None], _FINE),
    "fine_clocks": pa.array([[("a", [1_000])], None], pa.map_(pa.string(), pa.list_(_FINE))),
    "price": pa.array([Decimal("12.50"), None], pa.decimal128(10, 2)),
    "data": pa.array([b"\xff\x00", None]),
    "pair": pa.array([b"ab", None], pa.binary(2)),
    "small": pa.array([-1, None], pa.int8()),
    "unsigned": pa.array([1 << 32, None], pa.uint64()),
    "share": pa.array([0.5, None], pa.float32()),
    "kind": pa.array(["a", None]).dictionary_encode(),
    "long_text": pa.array(["é", None], pa.large_string()),
    "days": pa.array([[date(2026, 1, 2), None], None]),
    "inner": pa.array([{"day": date(2026, 1, 2), "inner": {"x": 1}}, None]),
    "prices": pa.array([[("a", Decimal("1.5"))], None], pa.map_(pa.string(), pa.decimal128(3, 1))),
    "nothing": pa.nulls(2),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_goes_there_and_back(memory_client: pulsarx.Client, name: str):
    table = pa.table({"n": [1, 2], name: COLUMNS[name]})
    memory_client.send_rows("orders", table, schema="infer")
    assert memory_client.read_table("orders").to_pylist() == table.to_pylist()
    info = memory_client.admin.schemas.get_schema_info("orders")
    assert info.schema_type() == SchemaType.AVRO


def test_a_frame_with_times_needs_no_word_about_its_schema(memory_client: pulsarx.Client):
    """It was refused: JSON has no times."""
    table = pa.table({name: COLUMNS[name] for name in ("utc", "day", "price")})
    memory_client.send_rows("orders", table)
    found = memory_client.read_table("orders")
    assert found.to_pylist() == table.to_pylist()
    assert found.schema.field("price").type == pa.decimal128(10, 2)
    memory_client.send_rows("orders", table)  # by the schema that the topic has by now
    assert memory_client.read_table("orders").num_rows == 4


def test_a_frame_that_json_has_all_types_for_stays_json(memory_client: pulsarx.Client):
    memory_client.send_rows("orders", pa.table({"n": [1]}))
    assert memory_client.admin.schemas.get_all_schemas("orders") == []
    memory_client.send_rows("others", pa.table({"n": [1]}), schema="infer")
    assert memory_client.admin.schemas.get_schema_info("others").schema_type() == SchemaType.AVRO


def test_frames_of_polars_and_pandas_come_back_as_they_were(memory_client: pulsarx.Client):
    frame = polars.DataFrame(
        {
            "at": [MOMENT, None],
            "day": [date(2026, 1, 2), None],
            "price": polars.Series([Decimal("1.50"), None], dtype=polars.Decimal(10, 2)),
        }
    )
    memory_client.send_rows("orders", frame)
    assert polars.from_arrow(memory_client.read_table("orders")).equals(frame)
    other = pandas.DataFrame({"at": pandas.to_datetime(["2026-01-02", None]), "n": [1.5, None]})
    memory_client.send_rows("others", other)
    found = memory_client.read_table("others").to_pandas().astype(other.dtypes)
    pandas.testing.assert_frame_equal(found, other)


def test_dicts_are_looked_at_all_before_their_schema_is_made(memory_client: pulsarx.Client):
    rows = [{"n": 1, "k": "a"}, {"n": None, "at": MOMENT}, {"price": Decimal("1.5")}]
    memory_client.send_rows("orders", iter(rows), schema="infer", columns=["n", "at", "price"])
    assert memory_client.read_table("orders").to_pylist() == [
        {"n": 1, "at": None, "price": None},
        {"n": None, "at": MOMENT, "price": None},
        {"n": None, "at": None, "price": Decimal("1.5")},
    ]
    assert memory_client.send_rows("none", [], schema="infer") is None
    assert memory_client.admin.schemas.get_all_schemas("none") == []
    with pytest.raises(ValueError, match="row 2: no type of Avro is found"):
        memory_client.send_rows("mixed", [{"n": 1}, {"n": 2}, {"n": "x"}], schema="infer")
    with pytest.raises(TypeError, match=r"row 1: .* schema='infer' has times"):
        memory_client.send_rows("plain", [{"n": 1}, {"n": MOMENT}])


@pytest.mark.parametrize(
    ("column", "name", "text"),
    [
        (pa.array([timedelta(1)]), "c", r"column c is duration\[us\], which Avro does not have"),
        (pa.array([[timedelta(1)]]), "c", r"column c\[\] is duration"),
        (pa.array([1]), "order date", "'order date' is no name of Avro"),
        (pa.array([{"é": 1}]), "c", r"column c.é: 'é' is no name of Avro"),
        (pa.array([Decimal(1)], pa.decimal256(50, 0)), "c", "column c is decimal256"),
        (pa.array([Decimal(100)], pa.decimal128(5, -2)), "c", "column c is decimal128"),
    ],
)
def test_a_column_that_avro_does_not_have_is_named_before_anything_is_sent(
    memory_client: pulsarx.Client, column: Any, name: str, text: str
):
    with pytest.raises(ValueError, match=text):
        memory_client.send_rows("orders", pa.table({name: column}), schema="infer")
    assert memory_client.admin.topics.get_list() == []


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (pa.array([0, 1], pa.timestamp("ns")), "row 1: c is .* finer than"),
        (pa.array([0, 1_000_000_001], _FINE), "row 1: column c .* finer than a microsecond"),
        (pa.array([[], [1]], pa.list_(_FINE)), "row 1: column c .* finer than a microsecond"),
        (pa.array([{"t": 0}, {"t": 1}], pa.struct([("t", _FINE)])), "row 1: column c .* finer"),
        (pa.array([[], [("t", 1)]], pa.map_(pa.string(), _FINE)), "row 1: column c .* finer"),
        (pa.array([0, 1], _FINE).dictionary_encode(), "row 1: column c .* finer"),
        (pa.array([0, 1 << 63], pa.uint64()), "row 1: c is 9223372036854775808 and should be"),
    ],
)
def test_a_value_that_would_be_rounded_is_refused(
    memory_client: pulsarx.Client, column: Any, text: str
):
    with pytest.raises(ValueError, match=text):
        memory_client.send_rows("orders", pa.table({"c": column}), schema="infer")
    assert memory_client.read_table("orders").num_rows == 0


def test_a_column_that_is_left_out_may_hold_what_it_likes(memory_client: pulsarx.Client):
    table = pa.table({"n": [1], "key": ["a"], "fine": pa.array([1], _FINE)})
    memory_client.send_rows("orders", table, columns=["n"], key="key", schema="infer")
    found = memory_client.read_table("orders", metadata=["key"])
    assert found.to_pylist() == [{"n": 1, "__key__": "a"}]


def test_a_schema_that_is_made_up_is_compared_with_that_of_the_topic(
    memory_client: pulsarx.Client,
):
    memory_client.send_rows("orders", pa.table({"n": [1]}), schema="infer")
    memory_client.send_rows(
        "orders", pa.table({"n": [2], "day": COLUMNS["day"][:1]}), schema="infer"
    )
    assert memory_client.read_table("orders").to_pylist() == [
        {"n": 1, "day": None},
        {"n": 2, "day": date(2026, 1, 2)},
    ]
    with pytest.raises(errors.IncompatibleSchema):
        memory_client.send_rows("orders", pa.table({"n": ["x"]}), schema="infer")


def test_records_bring_their_own_schema_where_one_is_to_be_made_up(memory_client: pulsarx.Client):
    class Item(pulsarx.schema.Record):
        name = pulsarx.schema.String()

    memory_client.send_rows("orders", [Item(name="ada")], schema="infer")
    definition = json.loads(memory_client.admin.schemas.get_schema_info("orders").schema())
    assert definition["name"] == "Item"
