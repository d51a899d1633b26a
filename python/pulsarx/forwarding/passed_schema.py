"""The schema of payloads that are passed on as they are."""

from __future__ import annotations

from pulsarx.schema.schema import BYTES_SCHEMA, Schema, SchemaInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PassedSchema(Schema[bytes]):
    """Declares the schema of the source, and encodes nothing."""

    decoding = "bytes"
    value_of_none = b""

    def __init__(self, info: SchemaInfo) -> None:
        self._schema_info = info

    def encode(self, obj: bytes) -> bytes:
        return obj


def passed_schema(info: SchemaInfo | None) -> Schema[Any]:
    """info: of the source's topic; None: its messages have none."""
    if info is None:
        return BYTES_SCHEMA
    own = SchemaInfo(info.schema_type(), info.name(), info.schema(), info.properties())
    return PassedSchema(own)
