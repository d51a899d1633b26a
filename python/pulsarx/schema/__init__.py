"""Schemas: they turn values into payloads and back.

`BytesSchema`, `StringSchema`; `Int8Schema` to `Int64Schema`, `FloatSchema`, `DoubleSchema`;
`JsonSchema` and `AvroSchema` of a `Record`; `ProtobufNativeSchema`; `KeyValueSchema` of two others;
`AutoConsumeSchema` for reading what others wrote. Modules are loaded with the first name of theirs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.enumerations import SchemaType
    from pulsarx.schema.auto_consume import AutoConsumeSchema
    from pulsarx.schema.avro_schema import AvroSchema
    from pulsarx.schema.definition import (
        Array,
        Boolean,
        Bytes,
        CustomEnum,
        Double,
        Field,
        Float,
        Integer,
        Long,
        Map,
        Null,
        Record,
        String,
    )
    from pulsarx.schema.json_schema import JsonSchema
    from pulsarx.schema.key_value import KeyValueSchema
    from pulsarx.schema.primitives import (
        DoubleSchema,
        FloatSchema,
        Int8Schema,
        Int16Schema,
        Int32Schema,
        Int64Schema,
    )
    from pulsarx.schema.protobuf_schema import ProtobufNativeSchema
    from pulsarx.schema.schema import BytesSchema, Schema, SchemaInfo, StringSchema

__all__ = [
    "Array",
    "AutoConsumeSchema",
    "AvroSchema",
    "Boolean",
    "Bytes",
    "BytesSchema",
    "CustomEnum",
    "Double",
    "DoubleSchema",
    "Field",
    "Float",
    "FloatSchema",
    "Int16Schema",
    "Int32Schema",
    "Int64Schema",
    "Int8Schema",
    "Integer",
    "JsonSchema",
    "KeyValueSchema",
    "Long",
    "Map",
    "Null",
    "ProtobufNativeSchema",
    "Record",
    "Schema",
    "SchemaInfo",
    "SchemaType",
    "String",
    "StringSchema",
]

_HOMES = {
    "pulsarx.enumerations": ("SchemaType",),
    "pulsarx.schema.auto_consume": ("AutoConsumeSchema",),
    "pulsarx.schema.avro_schema": ("AvroSchema",),
    "pulsarx.schema.definition": (
        "Array", "Boolean", "Bytes", "CustomEnum", "Double", "Field", "Float", "Integer", "Long",
        "Map", "Null", "Record", "String",
    ),
    "pulsarx.schema.json_schema": ("JsonSchema",),
    "pulsarx.schema.key_value": ("KeyValueSchema",),
    "pulsarx.schema.primitives": (
        "DoubleSchema", "FloatSchema", "Int8Schema", "Int16Schema", "Int32Schema", "Int64Schema",
    ),
    "pulsarx.schema.protobuf_schema": ("ProtobufNativeSchema",),
    "pulsarx.schema.schema": ("BytesSchema", "Schema", "SchemaInfo", "StringSchema"),
}  # fmt: skip


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            found = getattr(import_module(home), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'pulsarx.schema' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
