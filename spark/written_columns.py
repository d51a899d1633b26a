"""Checks the columns of Arrow record batches that are to be messages, and brings them to types that
rows can be taken of. Runs in workers."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types

from pulsarx.spark.topic_columns import KEY_BYTES, ORDERING_KEY, WRITTEN, nearest

VALUE, TOPIC = "value", "__topic"
_TEXTS = ("value", "__key", TOPIC, ORDERING_KEY)


def plain_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, without views.

    ValueError: a column that no message has, which would be lost silently. TypeError: a
    value, key or topic of another type. The encoder looks at the other columns.
    """
    names = batch.schema.names
    if VALUE not in names:
        raise ValueError(f"there is no column {VALUE!r}, only {', '.join(names) or 'none'}")
    for name in names:
        if name not in WRITTEN:
            raise ValueError(
                f"column {name!r} is not a message column{nearest(name, WRITTEN)} Put it into "
                "value (valueFormat), or leave it out"
            )
    if len(set(names)) < len(names):
        raise ValueError(f"a column is there twice: {', '.join(names)}")
    columns = [_plain(name, column) for name, column in zip(names, batch.columns)]
    if all(one is other for one, other in zip(columns, batch.columns)):
        return batch
    return pa.RecordBatch.from_arrays(columns, names)


def _plain(name: str, column: pa.Array) -> pa.Array:
    kind = column.type
    if types.is_map(kind) and (_is_view(kind.key_type) or _is_view(kind.item_type)):
        return column.cast(pa.map_(pa.string(), pa.string()))
    if types.is_dictionary(kind):
        kind = kind.value_type
    if name in _TEXTS:
        text = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        if not (text or types.is_null(kind) or (name != TOPIC and _is_bytes(kind))):
            wanted = "string" if name == TOPIC else "binary or string"
            raise TypeError(f"column {name!r} is {column.type}; it must be {wanted}")
    if name == KEY_BYTES and not (types.is_null(kind) or _is_bytes(kind)):
        raise TypeError(f"column {name!r} is {column.type}; it must be binary, or be called __key")
    if _is_view(kind):
        return column.cast(pa.large_string() if types.is_string_view(kind) else pa.large_binary())
    return column


def _is_view(kind: pa.DataType) -> bool:
    return bool(types.is_string_view(kind) or types.is_binary_view(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    kinds = (types.is_binary, types.is_large_binary, types.is_binary_view)
    return types.is_fixed_size_binary(kind) or any(each(kind) for each in kinds)
