"""The schema base and the schemas that need no definition. Any layer may use them.

A schema holds no state of a topic or client, so one object may serve many.
"""

from __future__ import annotations

from pulsarx.enumerations import SchemaType
from pulsarx.errors import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Generic

    from typing_extensions import TypeVar

    T = TypeVar("T", default=Any)

    class Typed(Generic[T]):
        """Takes a type of values."""
else:
    T = None

    class Typed:
        """Takes a type of values, which says nothing at run time."""

        def __class_getitem__(cls, _: object) -> type:
            return cls


class SchemaInfo:
    """The record of a schema that a topic keeps: its type, name and definition as JSON text. A
    value."""

    __slots__ = ("_name", "_properties", "_schema", "_schema_type", "_version")

    def __init__(
        self,
        schema_type: SchemaType,
        name: str,
        schema: str,
        properties: dict[str, str] | None = None,
        version: int | None = None,
    ) -> None:
        """Describe a schema.

        Args:
            schema_type: Its type.
            name: Its name.
            schema: Its definition, mostly JSON.
            properties: The properties of the schema.
            version: On the topic it was asked from; None: it comes from no topic.
        """
        self._schema_type = schema_type
        self._name = name
        self._schema = schema
        self._properties = dict(properties or {})
        self._version = version

    def schema_type(self) -> SchemaType:
        """Return the type."""
        return self._schema_type

    def name(self) -> str:
        """Return the name."""
        return self._name

    def schema(self) -> str:
        """Return the definition."""
        return self._schema

    def properties(self) -> dict[str, str]:
        """Return the properties, in a new dict."""
        return dict(self._properties)

    def version(self) -> int | None:
        """Return its version on the topic it was asked from; None: it comes from no topic."""
        return self._version

    def with_text(self, schema: str) -> SchemaInfo:
        """Return the same with another definition.

        Args:
            schema: The definition.
        """
        return SchemaInfo(self._schema_type, self._name, schema, self._properties)

    def as_document(self) -> dict[str, Any]:
        """Return itself as JSON says it; without the version."""
        document: dict[str, Any] = {
            "type": self._schema_type.name,
            "name": self._name,
            "schema": self._schema,
        }
        return document | {"properties": self._properties} if self._properties else document

    @staticmethod
    def of_document(document: dict[str, Any], version: int | None = None) -> SchemaInfo:
        """Return the description that as_document made.

        Args:
            document: With type, name and schema.
            version: On the topic.

        Raises:
            ValueError: It is no such document.
            KeyError: A field is missing.
            TypeError: A field is of the wrong type.
        """
        kind = SchemaType.__members__.get(document["type"])
        texts = (document["name"], document["schema"])
        properties = document.get("properties", {})
        if kind is None or not all(isinstance(each, str) for each in texts):
            raise ValueError(f"no description of a schema: {shown(document)}")
        if not isinstance(properties, dict) or not all(
            isinstance(each, str) for pair in properties.items() for each in pair
        ):
            raise ValueError(f"properties of a schema are a dict of str: {shown(properties)}")
        return SchemaInfo(kind, *texts, properties, version)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SchemaInfo):
            return NotImplemented
        return self.as_document() == other.as_document()

    def __hash__(self) -> int:
        return hash((self._schema_type, self._name, self._schema))

    def __repr__(self) -> str:
        version = "" if self._version is None else f", version={self._version}"
        return f"SchemaInfo({self._schema_type.name}, {self._name!r}, {self._schema!r}{version})"


class Schema(Typed[T]):
    """Base: turns the values of one class into payloads and back. Subclasses give both ways.

    decoding: how a message finds its value. "bytes": it is the payload; "payload": by `decode`;
    "version": by `decoder`; "message": by `decode_message`. A subclass is what it gives.
    """

    decoding: str = "payload"
    value_of_none: Any = None  # what a message without a value has
    # Of a subclass whose constructor does not call this one's.
    _record_cls: type = object
    _schema_info = SchemaInfo(SchemaType.NONE, "NONE", "null")

    def __init_subclass__(cls) -> None:
        given = cls.__dict__
        if "decode_message" in given:
            cls.decoding = "message"
        elif "decoder" in given:
            cls.decoding = "version"
        elif "decode" in given and "decoding" not in given:
            cls.decoding = "payload"
        if "decode" in given and "value_of_none" not in given:
            cls.value_of_none = None

    def __init__(
        self,
        record_cls: type,
        schema_type: SchemaType,
        schema_definition: object,
        schema_name: str,
    ) -> None:
        """Keep what a schema tells the topic.

        Args:
            record_cls: The class of its values.
            schema_type: Its type.
            schema_definition: Made JSON; None: there is none.
            schema_name: Its name.
        """
        definition = "null"
        if schema_definition is not None:
            import json

            definition = json.dumps(schema_definition, indent=True)
        self._record_cls = record_cls
        self._schema_info = SchemaInfo(schema_type, schema_name, definition)

    def encode(self, obj: T) -> bytes:
        """Return the payload of a value.

        Args:
            obj: The value.

        Raises:
            TypeError: The value is not of the schema's class.
            ValueError: The schema cannot write it.
            NotImplementedError: A subclass does not have it.
        """
        raise NotImplementedError

    def decode(self, data: bytes) -> T:
        """Return the value of a payload.

        Args:
            data: The payload.

        Raises:
            ValueError: It is none of this schema.
            TypeError: What it holds does not fit the class of values.
            NotImplementedError: A subclass does not have it.
        """
        raise NotImplementedError

    def decode_message(self, msg: Any) -> T:
        """Return the value of a message. `Message.value()` calls it of a subclass that has it;
        others are asked for a decoder.

        Args:
            msg: The message.

        Raises:
            ValueError: As decode.
        """
        return self.decode(msg.data())

    def decoder(self, writer: SchemaInfo | None) -> Callable[[bytes], T]:
        """Return the function that decodes payloads that a producer of another schema wrote. Asked
        once a version; what does not need to know answers `decode`.

        Args:
            writer: The schema of the producer; None: none that the topic knows.

        Raises:
            ValueError: Payloads of it cannot be read by this one.
            OperationNotSupported: A schema of its type cannot be read.
        """
        return self.decode

    def schema_info(self) -> SchemaInfo:
        """Return what the schema tells the topic."""
        return self._schema_info

    def attach_client(self, client: object) -> None:
        """Take note that a consumer or reader is made. Keeping the client here would keep it alive.

        Args:
            client: The one that makes it.
        """

    def _validate_object_type(self, obj: object) -> None:
        if not isinstance(obj, self._record_cls):
            raise TypeError(
                f"Invalid record obj of type {type(obj)} - expected type is {self._record_cls}"
            )


class BytesSchema(Schema[bytes]):
    """Payloads as they are: bytes, and nothing that is merely like them."""

    decoding = "bytes"
    value_of_none = b""

    def __init__(self) -> None:
        """Make the schema of payloads as they are."""
        super().__init__(bytes, SchemaType.BYTES, None, "BYTES")

    def encode(self, data: bytes) -> bytes:
        """Return the payload of a value: itself.

        Args:
            data: bytes.

        Raises:
            TypeError: It is something else.
        """
        self._validate_object_type(data)
        return data

    def decode(self, data: bytes) -> bytes:
        """Return the value of a payload: itself.

        Args:
            data: The payload.
        """
        return data

    def __str__(self) -> str:
        return "BytesSchema"


class StringSchema(Schema[str]):
    """Text as UTF-8."""

    value_of_none = ""

    def __init__(self) -> None:
        """Make the schema of text."""
        super().__init__(str, SchemaType.STRING, None, "STRING")

    def encode(self, obj: str) -> bytes:
        self._validate_object_type(obj)
        return obj.encode("utf-8")

    def decode(self, data: bytes) -> str:
        return data.decode("utf-8")

    def __str__(self) -> str:
        return "StringSchema"


BYTES_SCHEMA = BytesSchema()  # holds no state, so all calls share it

# A topic knows nothing of them: they say nothing about payloads.
_UNDECLARED = (
    SchemaType.BYTES,
    SchemaType.NONE,
    SchemaType.AUTO_CONSUME,
    SchemaType.AUTO_PUBLISH,
)


def declared_info(schema: Schema[Any]) -> SchemaInfo | None:
    """Return the schema that a producer or consumer declares to its topic; None: nothing.

    ValueError: the schema describes itself by something else.
    """
    if schema is BYTES_SCHEMA:
        return None
    info = schema.schema_info()
    if not isinstance(info, SchemaInfo):
        raise ValueError(
            f"schema_info() of {type(schema).__name__} must be a SchemaInfo, not "
            f"{type(info).__name__}"
        )
    return None if info.schema_type() in _UNDECLARED else info
