"""Reads whatever schema the messages of a topic were written with."""

from __future__ import annotations

import json

from pulsarx.enumerations import SchemaType
from pulsarx.schema.schema import BytesSchema, Schema, SchemaInfo, StringSchema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


class AutoConsumeSchema(Schema["Any"]):
    """Decodes messages, for consumers and readers, by the schema that their producer had.

    Records are dicts; a message that was written without a schema is bytes.
    """

    reads_any = True  # a topic that has consumers of it alone may still get its schema

    def __init__(self) -> None:
        """Make the schema that reads all others."""
        super().__init__(object, SchemaType.AUTO_CONSUME, None, "AUTO_CONSUME")

    def encode(self, obj: Any) -> NoReturn:
        """Refuse: it is no schema to write with.

        Args:
            obj: Anything.

        Raises:
            TypeError: Always.
        """
        raise TypeError("AutoConsumeSchema reads; a producer needs a schema of its own")

    def decode(self, data: bytes) -> Any:
        """Return a payload that was written without a schema, as it is.

        Args:
            data: The payload.
        """
        return data

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], Any]:
        return self.decode if writer is None else reader_of(writer)

    def __str__(self) -> str:
        return "AutoConsumeSchema"


def reader_of(writer: SchemaInfo) -> Callable[[bytes], Any]:
    """Reads payloads of a schema without a class for them."""
    kind = writer.schema_type()
    if kind in (SchemaType.BYTES, SchemaType.NONE):
        return BytesSchema().decode
    if kind == SchemaType.STRING:
        return StringSchema().decode
    if kind == SchemaType.JSON:
        return json.loads
    if kind == SchemaType.AVRO:
        from pulsarx.schema.avro_schema import AvroSchema

        return AvroSchema(None, json.loads(writer.schema())).decode
    if kind == SchemaType.PROTOBUF_NATIVE:
        from pulsarx.schema.protobuf_schema import dict_reader

        return dict_reader(json.loads(writer.schema()))
    if kind == SchemaType.KEY_VALUE:
        from pulsarx.schema.key_value import check_inline, decode_pair, parts_of

        check_inline(writer)
        read_key, read_value = (reader_of(each) for each in parts_of(writer))
        return lambda data: decode_pair(data, read_key, read_value)
    from pulsarx.schema.primitives import NUMBER_SCHEMAS

    for number_schema in NUMBER_SCHEMAS:
        if kind == number_schema.KIND:
            return number_schema().decode
    from pulsarx.errors import OperationNotSupported

    raise OperationNotSupported(
        detail=f"AutoConsumeSchema cannot read a schema of type {kind.name}"
    )
