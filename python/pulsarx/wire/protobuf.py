"""Protobuf messages as tables: a dict of values to bytes and back. For commands, of which there is
one an entry or less; what an entry holds is read by the core.

Unknown fields are skipped, the last value of a field counts, the parts of a message that comes in
several are merged, repeated integers may be packed. Bytes are untrusted; all is bounded.
"""

from __future__ import annotations

from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_VARINT, _FIXED_64, _BLOCK, _FIXED_32 = 0, 1, 2, 5
_NUMBER_MAX = (1 << 29) - 1


class WireError(Exception):
    """The other end of a connection breaks the protocol: the connection is to be closed."""


class Kind(Enum):
    """The scalar types. Enumerations travel as INT32."""

    UINT64 = "uint64"
    UINT32 = "uint32"
    INT64 = "int64"
    INT32 = "int32"
    BOOL = "bool"
    STRING = "string"
    BYTES = "bytes"


_BOUNDS = {
    Kind.UINT64: (0, (1 << 64) - 1),
    Kind.UINT32: (0, (1 << 32) - 1),
    Kind.INT64: (-(1 << 63), (1 << 63) - 1),
    Kind.INT32: (-(1 << 31), (1 << 31) - 1),
    Kind.BOOL: (0, 1),
}


class Field:
    """One row of a table. A value."""

    __slots__ = ("default", "kind", "number", "repeated", "required")

    def __init__(
        self,
        number: int,
        kind: Kind | Schema,
        *,
        required: bool = False,
        repeated: bool = False,
        default: Any = None,
    ) -> None:
        """default: what decoding says when it is absent; encoding leaves out what is None."""
        self.number: int = number
        self.kind: Kind | Schema = kind
        self.required: bool = required
        self.repeated: bool = repeated
        self.default: Any = default


class Schema:
    """The table of one message. Immutable once made; any thread may use it."""

    __slots__ = ("_absent", "_by_number", "_lists", "_required", "fields", "name")

    def __init__(self, name: str, /, **fields: Field) -> None:
        self.name: str = name
        self.fields: dict[str, Field] = fields
        self._by_number = {field.number: (key, field) for key, field in fields.items()}
        self._absent = {key: field.default for key, field in fields.items()}
        self._lists = [key for key, field in fields.items() if field.repeated]
        self._required = frozenset(key for key, field in fields.items() if field.required)

    def encode(self, values: dict[str, Any]) -> bytes:
        """ValueError: a field that the message has not, or that is missing or does not fit."""
        unknown = values.keys() - self.fields.keys()
        if unknown:
            raise ValueError(f"{self.name} has no field {', '.join(sorted(unknown))}")
        found = bytearray()
        for key, field in self.fields.items():
            value = values.get(key)
            if value is None:
                if field.required:
                    raise ValueError(f"{self.name} without its {key}")
                continue
            for each in value if field.repeated else (value,):
                found += self._encode_one(key, field, each)
        return bytes(found)

    def _encode_one(self, key: str, field: Field, value: Any) -> bytes:
        if isinstance(field.kind, Schema):
            block = field.kind.encode(value)
        elif field.kind is Kind.STRING:
            block = value.encode()
        elif field.kind is Kind.BYTES:
            block = bytes(value)
        else:
            low, high = _BOUNDS[field.kind]
            if not low <= value <= high:
                raise ValueError(f"{self.name}: {key} {value} is no {field.kind.value}")
            return varint(field.number << 3 | _VARINT) + varint(int(value) & ((1 << 64) - 1))
        return varint(field.number << 3 | _BLOCK) + varint(len(block)) + block

    def decode(self, data: bytes) -> dict[str, Any]:
        """Decode all fields of the table, absent ones to their default. WireError: it is no such
        message."""
        found: dict[str, Any] = dict(self._absent)
        for key in self._lists:
            found[key] = []
        parts: dict[str, list[bytes]] = {}  # of messages that are not repeated
        given = set()
        at = 0
        while at < len(data):
            tag, at = self._varint(data, at)
            number, wire = tag >> 3, tag & 7
            if not 0 < number <= _NUMBER_MAX:
                raise WireError(f"{self.name}: field number {number}")
            value, at = self._value(data, at, wire)
            if number not in self._by_number:
                continue
            key, field = self._by_number[number]
            given.add(key)
            kind = field.kind
            if isinstance(kind, Schema) and not field.repeated:
                parts.setdefault(key, []).append(self._block(key, value))
            elif field.repeated and isinstance(kind, Kind) and isinstance(value, bytes):
                found[key] += self._packed(key, kind, value)
            elif field.repeated:
                found[key].append(self._decode_one(key, kind, value))
            else:
                found[key] = self._decode_one(key, kind, value)
        for key, blocks in parts.items():
            found[key] = self.fields[key].kind.decode(b"".join(blocks))  # type: ignore[union-attr]
        if not self._required <= given:
            raise WireError(f"{self.name} without its {', '.join(sorted(self._required - given))}")
        return found

    def _value(self, data: bytes, at: int, wire: int) -> tuple[int | bytes, int]:
        if wire == _VARINT:
            return self._varint(data, at)
        if wire == _BLOCK:
            size, at = self._varint(data, at)
        elif wire in (_FIXED_64, _FIXED_32):
            size = 8 if wire == _FIXED_64 else 4
        else:
            raise WireError(f"{self.name}: wire type {wire} at byte {at} of {len(data)}")
        if size > len(data) - at:
            raise WireError(
                f"{self.name}: {size} bytes at byte {at}, and {len(data) - at} are there"
            )
        return data[at : at + size], at + size

    def _varint(self, data: bytes, at: int) -> tuple[int, int]:
        value = shift = 0
        for end in range(at, min(at + 10, len(data))):
            value |= (data[end] & 0x7F) << shift
            shift += 7
            if data[end] < 0x80:
                return value & ((1 << 64) - 1), end + 1
        raise WireError(f"{self.name}: no whole varint at byte {at} of {len(data)}")

    def _block(self, key: str, value: int | bytes) -> bytes:
        if not isinstance(value, bytes):
            raise WireError(f"{self.name}: {key} is a number")
        return value

    def _packed(self, key: str, kind: Kind, data: bytes) -> list[Any]:
        if kind in (Kind.STRING, Kind.BYTES):
            return [self._decode_one(key, kind, data)]
        found = []
        at = 0
        while at < len(data):
            value, at = self._varint(data, at)
            found.append(self._decode_one(key, kind, value))
        return found

    def _decode_one(self, key: str, kind: Kind | Schema, value: int | bytes) -> Any:
        if isinstance(kind, Schema):
            return kind.decode(self._block(key, value))
        if kind is Kind.BYTES:
            return self._block(key, value)
        if kind is Kind.STRING:
            try:
                return self._block(key, value).decode()
            except UnicodeDecodeError as error:
                raise WireError(f"{self.name}: {key} is no UTF-8") from error
        if isinstance(value, bytes):
            raise WireError(f"{self.name}: {key} is no number")
        if kind is Kind.BOOL:
            return value != 0
        bits = 32 if kind in (Kind.INT32, Kind.UINT32) else 64
        value &= (1 << bits) - 1
        signed = kind in (Kind.INT32, Kind.INT64)
        return value - (1 << bits) if signed and value >> (bits - 1) else value


def varint(value: int) -> bytes:
    """0 and up."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
