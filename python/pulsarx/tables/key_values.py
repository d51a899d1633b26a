"""The keys and values of a table view as an Arrow table: `TableView.to_arrow`."""

from __future__ import annotations

import pyarrow as pa

from pulsarx import errors
from pulsarx.enumerations import SchemaType
from pulsarx.schema.definition import plain_values
from pulsarx.tables.value_types import PRIMITIVES, Unfit, checker, record_checker, record_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.schema.schema import Schema

KEY = "__key__"


def table_of(topic: str, items: list[tuple[str, Any]], schema: Schema[Any]) -> pa.Table:
    """A row for each key. OperationNotSupported: values of such a schema have no columns.
    ValueError names the key whose value a column cannot hold."""
    info = schema.schema_info()
    kind = info.schema_type()
    if kind in (SchemaType.JSON, SchemaType.AVRO):
        columns = record_schema(info)
        check = record_checker(columns, "")
    elif kind in PRIMITIVES:
        columns = pa.schema([pa.field("value", PRIMITIVES[kind])])
        check_value = checker(columns.field("value").type, "value")
        check = lambda value: {"value": check_value(value)}  # noqa: E731
    else:
        raise errors.OperationNotSupported(
            detail=f"a table of {topic}: values of schema type {kind.name} have no columns; make "
            "the view with the schema of the topic"
        )
    if KEY in columns.names:
        raise ValueError(f"{topic} has a field {KEY}, which is the name of the column of keys")
    rows = []
    for key, value in items:
        try:
            rows.append({KEY: key, **check(plain_values(value))})
        except (Unfit, UnicodeError) as error:
            raise ValueError(f"the value of key {key!r:.80} in {topic}: {error}") from error
    nullable = [each.with_nullable(True) for each in columns]
    fields = pa.schema([pa.field(KEY, pa.string()), *nullable])
    return pa.Table.from_pylist(rows, schema=fields)
