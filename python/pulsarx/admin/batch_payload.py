"""Takes apart the payload of a batch, as Pulsar's admin API answers it: for each message a size of
four bytes, its SingleMessageMetadata in protobuf, and its payload. Bytes of others, not trusted."""

from __future__ import annotations

from base64 import b64encode

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Fields of SingleMessageMetadata, and of KeyValue.
_PROPERTIES, _PARTITION_KEY, _PAYLOAD_SIZE, _COMPACTED_OUT, _EVENT_TIME = 1, 2, 3, 4, 5
_ORDERING_KEY, _NULL_VALUE = 7, 9
_KEY, _VALUE = 1, 2


def messages_of_batch(payload: bytes) -> list[dict[str, Any]]:
    """The messages of a batch, each as a peek describes it. CorruptDataError: it is no batch."""
    try:
        return list(_messages(payload))
    except (IndexError, ValueError) as error:
        raise errors.CorruptDataError(
            detail=f"a batch of {len(payload)} bytes that cannot be taken apart: {error}"
        ) from None


def _messages(payload: bytes) -> Iterator[dict[str, Any]]:
    at = 0
    while at < len(payload):
        metadata, at = _taken(payload, at + 4, int.from_bytes(payload[at : at + 4], "big"))
        found: dict[int, Any] = {}
        properties = {}
        for number, value in _fields(metadata):
            if number == _PROPERTIES:
                pair = dict(_fields(value))
                properties[_text(pair.get(_KEY, b""))] = _text(pair.get(_VALUE, b""))
            else:
                found[number] = value
        data, at = _taken(payload, at, found.get(_PAYLOAD_SIZE, 0))
        if found.get(_COMPACTED_OUT):
            continue
        yield {
            "data": None if found.get(_NULL_VALUE) else b64encode(data).decode(),
            "properties": properties,
            "partition_key": _text(found.get(_PARTITION_KEY, b"")),
            "ordering_key": _text(found.get(_ORDERING_KEY, b"")),
            "event_timestamp": found.get(_EVENT_TIME, 0),
        }


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: Any
        if kind == _VARINT:
            value, at = _varint(data, at)
        elif kind == _BYTES:
            size, at = _varint(data, at)
            value, at = _taken(data, at, size)
        elif kind in (_FIXED32, _FIXED64):
            value, at = _taken(data, at, 4 if kind == _FIXED32 else 8)
        else:
            raise ValueError(f"a field of kind {kind}")
        yield tag >> 3, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than ten bytes")


def _taken(data: bytes, at: int, size: int) -> tuple[bytes, int]:
    if size > len(data) - at:
        raise ValueError(f"{size} bytes where {len(data) - at} are left")
    return data[at : at + size], at + size
