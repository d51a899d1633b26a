"""Pairs of a key and a value, each with a schema of its own."""

from __future__ import annotations

import json
import struct

from pulsarx.enumerations import SchemaType
from pulsarx.errors import shown
from pulsarx.schema.schema import Schema, SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

_SIZE = struct.Struct(">i")
_NULL = _SIZE.pack(-1)
# A property of schemas: whether the key is in the payload, as where there is no such property, or
# is the key of the message.
KEY_ENCODING = "kv.encoding.type"


class KeyValueSchema(Schema["tuple[Any, Any]"]):
    """(key, value) in one payload, which Pulsar calls INLINE: size and bytes of the key, size and
    bytes of the value; -1 for None."""

    def __init__(self, key_schema: Schema[Any], value_schema: Schema[Any]) -> None:
        """Make the schema of pairs.

        Args:
            key_schema: The schema of the keys.
            value_schema: The schema of the values.

        Raises:
            TypeError: One of them is no schema.
        """
        for name, each in (("key_schema", key_schema), ("value_schema", value_schema)):
            if not isinstance(each, Schema):
                raise TypeError(f"{name} must be a schema, not {type(each).__name__}")
        self.key_schema = key_schema
        self.value_schema = value_schema
        super().__init__(tuple, SchemaType.KEY_VALUE, None, "KEY_VALUE")
        parts = {"key": key_schema.schema_info(), "value": value_schema.schema_info()}
        text = json.dumps({name: part.as_document() for name, part in parts.items()}, indent=True)
        self._schema_info = self._schema_info.with_text(text)

    def encode(self, obj: tuple[Any, Any]) -> bytes:
        """Return the payload of a pair.

        Args:
            obj: (key, value); None for one that is missing.

        Raises:
            TypeError: It is no pair, or as the schema of the part.
            ValueError: As the schema of the part.
        """
        if not isinstance(obj, tuple) or len(obj) != 2:
            raise TypeError(f"KeyValueSchema takes (key, value), not {shown(obj)}")
        key, value = obj
        return _part(self.key_schema, key) + _part(self.value_schema, value)

    def decode(self, data: bytes) -> tuple[Any, Any]:
        return decode_pair(data, self.key_schema.decode, self.value_schema.decode)

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], tuple[Any, Any]]:
        if writer is not None:
            check_inline(writer)
        if writer is None or writer.schema() == self._schema_info.schema():
            return self.decode
        key, value = parts_of(writer)
        decode_key, decode_value = self.key_schema.decoder(key), self.value_schema.decoder(value)
        return lambda data: decode_pair(data, decode_key, decode_value)


def parts_of(info: SchemaInfo) -> tuple[SchemaInfo, SchemaInfo]:
    """The schemas of key and value. ValueError: it says nothing about them."""
    try:
        document = json.loads(info.schema())
        return SchemaInfo.of_document(document["key"]), SchemaInfo.of_document(document["value"])
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"no definition of a KEY_VALUE schema: {info.schema():.200}") from error


def check_inline(writer: SchemaInfo) -> None:
    """OperationNotSupported: its pairs have their keys outside of the payload."""
    if writer.properties().get(KEY_ENCODING, "INLINE") != "INLINE":
        from pulsarx.errors import OperationNotSupported

        raise OperationNotSupported(
            detail="a KEY_VALUE schema with kv.encoding.type SEPARATED: the key is that of the "
            "message (message.partition_key()), the value is in message.data(), and neither is "
            "decoded here"
        )


def decode_pair(
    data: bytes, decode_key: Callable[[bytes], Any], decode_value: Callable[[bytes], Any]
) -> tuple[Any, Any]:
    key, at = _taken(data, 0)
    value, at = _taken(data, at)
    if at != len(data):
        raise ValueError(f"no (key, value): {len(data) - at} bytes are left of {len(data)}")
    return (
        None if key is None else decode_key(key),
        None if value is None else decode_value(value),
    )


def _part(schema: Schema[Any], value: Any) -> bytes:
    if value is None:
        return _NULL
    data = schema.encode(value)
    return _SIZE.pack(len(data)) + data


def _taken(data: bytes, at: int) -> tuple[bytes | None, int]:
    """One part, None for none, and where it ends."""
    start = at + _SIZE.size
    if start <= len(data):
        size = _SIZE.unpack_from(data, at)[0]
        if size == -1:
            return None, start
        if 0 <= size <= len(data) - start:
            return data[start : start + size], start + size
    raise ValueError(f"no (key, value): a part at byte {at} is longer than the {len(data)} bytes")
