"""The schema base and the schemas that need no definition. Any layer may use them.

A schema holds no state of a topic or client, so one object may serve many.
"""

from __future__ import annotations

from pulsarx.enumerations import SchemaType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class SchemaInfo:
    """The record of a schema that a topic keeps: its type, name and definition as JSON text."""

    __slots__ = ("_name", "_schema", "_schema_type")

    def __init__(self, schema_type: SchemaType, name: str, schema: str) -> None:
        self._schema_type = schema_type
        self._name = name
        self._schema = schema

    def schema_type(self) -> SchemaType:
        return self._schema_type

    def name(self) -> str:
        return self._name

    def schema(self) -> str:
        return self._schema


class Schema:
    """Base: turns the values of one class into payloads and back. Subclasses give both ways."""

    def __init__(
        self,
        record_cls: type,
        schema_type: SchemaType,
        schema_definition: object,
        schema_name: str,
    ) -> None:
        definition = "null"
        if schema_definition is not None:
            import json

            definition = json.dumps(schema_definition, indent=True)
        self._record_cls = record_cls
        self._schema_info = SchemaInfo(schema_type, schema_name, definition)

    def encode(self, obj: Any) -> bytes:
        """The payload. TypeError when the value is not of the schema's class."""
        raise NotImplementedError

    def decode(self, data: bytes) -> Any:
        raise NotImplementedError

    def decode_message(self, msg: Any) -> Any:
        """Called by `Message.value()`; a schema whose definition changes looks at the version."""
        return self.decode(msg.data())

    def schema_info(self) -> SchemaInfo:
        return self._schema_info

    def attach_client(self, client: object) -> None:
        """Called when a consumer or reader is made. Keeping the client here would keep it alive."""

    def _validate_object_type(self, obj: object) -> None:
        if not isinstance(obj, self._record_cls):
            raise TypeError(
                f"{type(self).__name__} takes {self._record_cls.__name__}, "
                f"not {type(obj).__name__}: {obj!r:.80}"
            )


class BytesSchema(Schema):
    """Payloads as they are: bytes, and nothing that is merely like them."""

    def __init__(self) -> None:
        super().__init__(bytes, SchemaType.BYTES, None, "BYTES")

    def encode(self, data: bytes) -> bytes:
        self._validate_object_type(data)
        return data

    def decode(self, data: bytes) -> bytes:
        return data

    def __str__(self) -> str:
        return "BytesSchema"


class StringSchema(Schema):
    """Text as UTF-8."""

    def __init__(self) -> None:
        super().__init__(str, SchemaType.STRING, None, "STRING")

    def encode(self, obj: str) -> bytes:
        self._validate_object_type(obj)
        return obj.encode("utf-8")

    def decode(self, data: bytes) -> str:
        return data.decode("utf-8")

    def __str__(self) -> str:
        return "StringSchema"
