"""Messages of Protobuf. Needs the package protobuf: `pip install 'pulsarx[protobuf]'`."""

from __future__ import annotations

import base64

from pulsarx.enumerations import SchemaType
from pulsarx.errors import shown
from pulsarx.schema.schema import Schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_HINT = (
    "Protobuf needs the package protobuf, which is not installed: pip install 'pulsarx[protobuf]'"
)


class ProtobufNativeSchema(Schema["Any"]):
    """A class of messages that protoc generated. Its definition is its file and all that it
    imports."""

    def __init__(self, record_cls: Any) -> None:
        """Make the schema of a class of messages.

        Args:
            record_cls: As protoc generated it.

        Raises:
            ImportError: protobuf is missing.
            TypeError: It is no class of messages.
        """
        try:
            from google.protobuf.message import Message
        except ImportError as error:
            raise ImportError(_HINT) from error
        if not isinstance(record_cls, type) or not issubclass(record_cls, Message):
            raise TypeError(
                f"record_cls must be a protobuf Message subclass, got {shown(record_cls)}"
            )
        super().__init__(
            record_cls, SchemaType.PROTOBUF_NATIVE, definition_of(record_cls), "PROTOBUF_NATIVE"
        )

    def encode(self, obj: Any) -> bytes:
        """Return the payload of a message.

        Args:
            obj: A message of the class.

        Raises:
            TypeError: It is none.
        """
        self._validate_object_type(obj)
        found: bytes = obj.SerializeToString()
        return found

    def decode(self, data: bytes) -> Any:
        """Return the message of a payload.

        Args:
            data: The payload.

        Raises:
            google.protobuf.message.DecodeError: It is no such message.
        """
        made: Any = self._record_cls()
        made.ParseFromString(data)
        return made


def definition_of(record_cls: Any) -> dict[str, str]:
    """The files, imported ones first, the message and its file, as Pulsar's Java client does."""
    from google.protobuf.descriptor_pb2 import FileDescriptorSet

    files: dict[str, Any] = {}

    def add(file: Any) -> None:
        if file.name not in files:
            for imported in file.dependencies:
                add(imported)
            files[file.name] = file

    descriptor = record_cls.DESCRIPTOR
    add(descriptor.file)
    found = FileDescriptorSet()
    for file in files.values():
        file.CopyToProto(found.file.add())
    return {
        "fileDescriptorSet": base64.b64encode(found.SerializeToString()).decode("ascii"),
        "rootMessageTypeName": descriptor.full_name,
        "rootFileDescriptorName": descriptor.file.name,
    }


def dict_reader(definition: dict[str, str]) -> Callable[[bytes], dict[str, Any]]:
    """Reads messages of a definition as dicts. ImportError; ValueError: it is no definition."""
    try:
        from google.protobuf import descriptor_pool, json_format, message_factory
        from google.protobuf.descriptor_pb2 import FileDescriptorSet
    except ImportError as error:
        raise ImportError(_HINT) from error
    try:
        files = FileDescriptorSet()
        files.ParseFromString(base64.b64decode(definition["fileDescriptorSet"], validate=True))
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        descriptor = pool.FindMessageTypeByName(definition["rootMessageTypeName"])
        record_cls = message_factory.GetMessageClass(descriptor)
    except Exception as error:
        raise ValueError(f"no definition of Protobuf: {type(error).__name__} {error}") from error

    def read(data: bytes) -> dict[str, Any]:
        message = record_cls()
        message.ParseFromString(data)
        found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=True)
        return found

    return read
