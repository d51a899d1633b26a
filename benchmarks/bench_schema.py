"""Encoding and decoding a record, beside the official client's own schemas of the same record.

Skipped where the official client is not installed: `pip install 'pulsar-client[avro]'`. Nothing is
sent; what is compared is `encode` and `decode` alone. Their JSON is indented, ours is not, so each
decodes what the other wrote.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from measurement import Measurement


class Color(Enum):
    red = 1
    green = 2


def records(schema: Any) -> tuple[type[Any], Any]:
    """A class of records with a bit of everything, and one of them."""

    class Item(schema.Record):  # type: ignore[misc]
        sku = schema.String(required=True)
        amount = schema.Integer(required=True)
        price = schema.Double()

    class Order(schema.Record):  # type: ignore[misc]
        customer = schema.String(required=True)
        number = schema.Long(required=True)
        total = schema.Double()
        paid = schema.Boolean()
        note = schema.String()
        color = schema.CustomEnum(Color)
        first = Item()
        items = schema.Array(Item())
        tags = schema.Array(schema.String())
        counts = schema.Array(schema.Long())
        marks = schema.Map(schema.Integer())

    order = Order(
        customer="Ada",
        number=17,
        total=1.5,
        paid=True,
        note="to be left with the neighbours",
        color=Color.red,
        first=Item(sku="a", amount=1, price=2.0),
        items=[Item(sku=f"s{number}", amount=number, price=1.0) for number in range(5)],
        tags=["new", "urgent"],
        counts=list(range(100)),
        marks={f"mark {number}": number for number in range(20)},
    )
    return Order, order


ROWS = {
    "schema_json_encode": ("JsonSchema", "encode"),
    "schema_json_decode": ("JsonSchema", "decode"),
    "schema_avro_encode": ("AvroSchema", "encode"),
    "schema_avro_decode": ("AvroSchema", "decode"),
}


@pytest.mark.parametrize("row", ROWS)
def bench_schema(measurement: Measurement, row: str) -> None:
    theirs: Any = pytest.importorskip(
        "pulsar.schema", reason="the official client is not installed: pulsar-client[avro]"
    )
    from pulsarx import schema as ours

    name, direction = ROWS[row]
    count = measurement.sizes.schema_records
    sides = []
    for module in (theirs, ours):
        record_cls, record = records(module)
        sides.append((getattr(module, name)(record_cls), record))
    (their_schema, their_record), (our_schema, our_record) = sides
    turns: list[Any] = []
    for (schema, record), (other, other_record) in (sides, sides[::-1]):
        call = getattr(schema, direction)
        argument = record if direction == "encode" else other.encode(other_record)

        def turn(call: Any = call, argument: Any = argument) -> None:
            for _ in range(count):
                call(argument)

        turns.append(turn)
    assert our_schema.decode(their_schema.encode(their_record)) == our_record
    measurement.pairs(
        row,
        *turns,
        floor_count=count,
        path_count=count,
        names=("the official client", "a record"),
    )
