"""Topics as tables: JSON messages into typed columns, beside pyarrow's own reader of JSON, which
gets the same bytes, one message a line, and the same types."""

from __future__ import annotations

from typing import Any

from measurement import Measurement
from topic_in_folder import TopicInFolder

from pulsarx.schema import Boolean, Double, JsonSchema, Long, Record, String


class Order(Record):
    customer = String(required=True)
    number = Long(required=True)
    total = Double()
    paid = Boolean()
    note = String()


def payload(number: int) -> bytes:
    paid = b"true" if number % 3 == 0 else b"false"
    return (
        b'{"customer":"customer %d","number":%d,"total":%d.25,"paid":%s,'
        b'"note":"to be left with the neighbours"}' % (number % 1000, number, number, paid)
    )


def bench_read_table(measurement: Measurement, topic: TopicInFolder) -> None:
    import pyarrow
    from pyarrow import json as arrow_json

    count = measurement.sizes.table_messages
    values = [payload(number) for number in range(count)]
    topic.client.create_producer("measured", schema=JsonSchema(Order)).close()
    topic.publish(values)
    lines = pyarrow.py_buffer(b"\n".join(values) + b"\n")
    columns = pyarrow.schema(
        [
            pyarrow.field("customer", pyarrow.string(), False),
            pyarrow.field("number", pyarrow.int64(), False),
            ("total", pyarrow.float64()),
            ("paid", pyarrow.bool_()),
            ("note", pyarrow.string()),
        ]
    )
    options = arrow_json.ParseOptions(explicit_schema=columns, unexpected_field_behavior="error")

    def floor() -> Any:
        return arrow_json.read_json(lines, parse_options=options)

    def path() -> Any:
        return topic.client.read_table("measured")

    assert path().to_pydict() == floor().to_pydict()
    measurement.pairs(
        "read_table", floor, path, floor_count=count, path_count=count,
        names=("pyarrow", "a topic"),
    )  # fmt: skip
