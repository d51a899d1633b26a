"""Table views as Arrow tables."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

import pulsarx
from pulsarx import errors
from pulsarx.schema import (
    AvroSchema,
    Int32Schema,
    Integer,
    JsonSchema,
    KeyValueSchema,
    Record,
    String,
    StringSchema,
)


class Item(Record):
    name = String(required=True)
    number = Integer()


@pytest.mark.parametrize("schema", [JsonSchema(Item), AvroSchema(Item)])
def test_records_are_rows_with_their_keys(memory_client: pulsarx.Client, schema: Any):
    with memory_client.create_producer("items", schema=schema) as producer:
        producer.send(Item(name="old", number=1), partition_key="a")
        producer.send(Item(name="new", number=2), partition_key="a")
        producer.send(Item(name="gone"), partition_key="b")
        producer.send(None, partition_key="b")
        producer.send(Item(name="other"), partition_key="c")
    table = memory_client.create_table_view("items", schema=schema).to_arrow()
    assert table.schema.types == [pa.string(), pa.string(), pa.int32()]
    assert sorted(table.to_pylist(), key=str) == [
        {"__key__": "a", "name": "new", "number": 2},
        {"__key__": "c", "name": "other", "number": None},
    ]


@pytest.mark.parametrize(
    ("schema", "value", "kind"),
    [
        (None, b"\xff", pa.binary()),
        (StringSchema(), "é", pa.string()),
        (Int32Schema(), -7, pa.int32()),
    ],
)
def test_plain_values_are_a_column(
    memory_client: pulsarx.Client, schema: Any, value: Any, kind: Any
):
    options = {} if schema is None else {"schema": schema}
    view = memory_client.create_table_view("items", **options)
    empty = view.to_arrow()
    assert empty.num_rows == 0 and empty.schema.field("value").type == kind
    memory_client.create_producer("items", **options).send(value, partition_key="a")
    found = memory_client.create_table_view("items", **options).to_arrow()
    assert found.to_pylist() == [{"__key__": "a", "value": value}]
    assert found.schema == empty.schema


def test_times_of_a_frame_are_times_of_its_view(memory_client: pulsarx.Client):
    frame = pa.table({"k": ["a", "a"], "day": [date(2026, 1, 1), date(2026, 1, 2)]})
    memory_client.send_rows("days", frame, key="k")
    definition = memory_client.admin.schemas.get_schema_info("days").schema()
    schema = AvroSchema(None, json.loads(definition))
    table = memory_client.create_table_view("days", schema=schema).to_arrow()
    assert table.to_pylist() == [{"__key__": "a", "k": "a", "day": date(2026, 1, 2)}]


def test_what_has_no_column_is_named(memory_client: pulsarx.Client):
    pairs = KeyValueSchema(StringSchema(), StringSchema())
    view = memory_client.create_table_view("pairs", schema=pairs)
    with pytest.raises(errors.OperationNotSupported) as caught:
        view.to_arrow()
    assert "KEY_VALUE" in caught.value.detail
    view = memory_client.create_table_view("items", schema=JsonSchema(Item))
    memory_client.create_producer("items").send(b'{"number": 1}', partition_key="a")
    view = memory_client.create_table_view("items", schema=JsonSchema(Item))
    with pytest.raises(ValueError, match=r"the value of key 'a' in .*items: "):
        view.to_arrow()
