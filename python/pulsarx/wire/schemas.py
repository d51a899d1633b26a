"""Schemas as Pulsar's protocol carries them: numbers of types, and pairs in binary.

A KEY_VALUE schema is size and bytes of the key's definition, then of the value's; what types they
have stands in its properties.
"""

from __future__ import annotations

import struct

from pulsarx import errors
from pulsarx.enumerations import SchemaType
from pulsarx.schema.pair_shapes import PARTS, pair_parts, pair_text
from pulsarx.schema.schema import SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Values = dict[str, Any]

AUTO_CONSUME = 21
_SIZE = struct.Struct(">i")
# Of schemas: those of SchemaType, but for the two that have no definition.
_NUMBERS = {SchemaType.BYTES: 0, SchemaType.AUTO_CONSUME: AUTO_CONSUME}


def schema_values(info: SchemaInfo) -> Values:
    """The fields of a schema in a command."""
    kind, properties = info.schema_type(), info.properties()
    data = info.schema().encode()
    if kind == SchemaType.KEY_VALUE:
        texts, properties = pair_parts(info.schema(), properties)
        definitions = [texts[part].encode() for part in PARTS]
        data = b"".join(_SIZE.pack(len(each)) + each for each in definitions)
    return {
        "name": info.name(),
        "data": data,
        "type": _NUMBERS.get(kind, int(kind)),
        "properties": [{"key": key, "value": value} for key, value in properties.items()],
    }


def schema_of(values: Values | None, version: int | None = None) -> SchemaInfo | None:
    """The schema that a command carries; None: none. One of bytes is one of the type NONE.

    IncompatibleSchema: of a type that is not known, or malformed.
    """
    if values is None:
        return None
    kind = next((each for each in _known() if int(each) == values["type"]), None)
    if values["type"] == AUTO_CONSUME:
        kind = SchemaType.AUTO_CONSUME
    properties = {each["key"]: each["value"] for each in values["properties"]}
    try:
        if kind is None:
            raise ValueError(f"a schema of type {values['type']}, which is not supported")
        if kind == SchemaType.KEY_VALUE:
            text = _text_of_pair(values["data"], properties)
        else:
            text = values["data"].decode()
    except (ValueError, LookupError, TypeError) as error:
        raise errors.IncompatibleSchema(detail=f"{type(error).__name__}: {error}") from error
    return SchemaInfo(kind, values["name"], text, properties, version)


def _known() -> list[SchemaType]:
    return [each for each in SchemaType.__members__.values() if int(each) >= 0]


def _text_of_pair(data: bytes, properties: dict[str, str]) -> str:
    """The definition of a pair in JSON; what it was made of leaves the properties."""
    texts, at = {}, 0
    for part in PARTS:
        size = _SIZE.unpack(data[at : at + _SIZE.size].rjust(_SIZE.size, b"\xff"))[0]
        at += _SIZE.size
        if not 0 <= size <= len(data) - at:
            raise ValueError("a KEY_VALUE schema whose parts are longer than it is")
        texts[part] = data[at : at + size].decode()
        at += size
    if at != len(data):
        raise ValueError("a KEY_VALUE schema that is longer than its parts")
    return pair_text(texts, properties)
