"""Numbers as Pulsar's Java client writes them: big-endian, of fixed size."""

from __future__ import annotations

import struct

from pulsarx.enumerations import SchemaType
from pulsarx.errors import shown
from pulsarx.schema.schema import Schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar, TypeVar

    N = TypeVar("N", int, float)
else:
    N = float


class _NumberSchema(Schema[N]):
    """Base. bool is no number here, as it would be read back as one."""

    KIND: ClassVar[SchemaType]
    CODE: ClassVar[str]

    def __init__(self) -> None:
        """Make the schema of numbers."""
        kind: type = float if self.CODE in "fd" else int
        super().__init__(kind, self.KIND, None, self.KIND.name)
        self._schema_info = self._schema_info.with_text("")
        self._struct = struct.Struct(f">{self.CODE}")

    def encode(self, obj: N) -> bytes:
        """Return the payload of a number.

        Args:
            obj: The number. True and False are none.

        Raises:
            TypeError: It is no such number.
            ValueError: It needs more bits.
        """
        if obj.__class__ is not int and not (obj.__class__ is float and self._record_cls is float):
            raise TypeError(
                f"{type(self).__name__} takes {self._record_cls.__name__}, "
                f"not {type(obj).__name__}: {shown(obj)}"
            )
        try:
            return self._struct.pack(obj)
        except (struct.error, OverflowError) as error:
            raise ValueError(
                f"{type(self).__name__}: {shown(obj)} does not fit: {error}"
            ) from error

    def decode(self, data: bytes) -> N:
        """Return the number of a payload.

        Args:
            data: The payload.

        Raises:
            ValueError: It has not so many bytes.
        """
        if len(data) != self._struct.size:
            raise ValueError(
                f"{type(self).__name__} has {self._struct.size} bytes; the message has {len(data)}"
            )
        found: N = self._struct.unpack(data)[0]
        return found

    def __str__(self) -> str:
        return type(self).__name__


class Int8Schema(_NumberSchema[int]):
    """-128 to 127."""

    KIND: ClassVar[SchemaType] = SchemaType.INT8
    CODE: ClassVar[str] = "b"


class Int16Schema(_NumberSchema[int]):
    """16 bits with a sign."""

    KIND: ClassVar[SchemaType] = SchemaType.INT16
    CODE: ClassVar[str] = "h"


class Int32Schema(_NumberSchema[int]):
    """32 bits with a sign."""

    KIND: ClassVar[SchemaType] = SchemaType.INT32
    CODE: ClassVar[str] = "i"


class Int64Schema(_NumberSchema[int]):
    """64 bits with a sign."""

    KIND: ClassVar[SchemaType] = SchemaType.INT64
    CODE: ClassVar[str] = "q"


class FloatSchema(_NumberSchema[float]):
    """32 bits: a float loses digits."""

    KIND: ClassVar[SchemaType] = SchemaType.FLOAT
    CODE: ClassVar[str] = "f"


class DoubleSchema(_NumberSchema[float]):
    """64 bits: a float as it is."""

    KIND: ClassVar[SchemaType] = SchemaType.DOUBLE
    CODE: ClassVar[str] = "d"


NUMBER_SCHEMAS: tuple[type[_NumberSchema[int]] | type[_NumberSchema[float]], ...] = (
    Int8Schema,
    Int16Schema,
    Int32Schema,
    Int64Schema,
    FloatSchema,
    DoubleSchema,
)
