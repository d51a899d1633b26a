"""Single chunks as a server may have stored them: in any order, of any producers, with any claims.

In this process a message's chunks are stored one behind the other, and all of them; a topic that
was copied from a server, or written by one, need not be so."""

from __future__ import annotations

import struct
from typing import Any

import pulsarx
from pulsarx._pycore.ranges.entry_codec import crc32c
from pulsarx.testing import inspect


class ChunkWriter:
    """Stores chunks of messages on one topic, in the order it is told."""

    def __init__(self, client: pulsarx.Client, topic: str) -> None:
        self._client = client
        self._topic = topic

    def chunk(self, *arguments: Any, **more: Any) -> pulsarx.MessageId:
        """Store one: see chunk_entry."""
        return inspect(self._client).append_entry(self._topic, chunk_entry(*arguments, **more))

    def whole(self, uuid: str, parts: list[bytes]) -> None:
        """Store all chunks of a message."""
        for number, part in enumerate(parts):
            self.chunk(uuid, number, len(parts), part, sum(map(len, parts)))


def chunk_entry(
    uuid: str,
    chunk_id: int,
    count: int,
    payload: bytes,
    size: int | None = None,
    *,
    publish_ms: int = 1,
    key: str | None = None,
    compression: int = 0,
    uncompressed_size: int = 0,
) -> bytes:
    """size: what all are said to hold; None: as many bytes as `count` of these."""
    fields = [
        _block(1, uuid.encode()),
        _number(2, 0),
        _number(3, publish_ms),
        _block(6, key.encode()) if key is not None else b"",
        _number(8, compression) if compression else b"",
        _number(9, uncompressed_size) if uncompressed_size else b"",
        _block(26, uuid.encode()),
        _number(27, count),
        _number(28, count * len(payload) if size is None else size),
        _number(29, chunk_id),
    ]
    metadata = b"".join(fields)
    checked = struct.pack(">I", len(metadata)) + metadata + payload
    return struct.pack(">HI", 0x0E01, crc32c(checked)) + checked


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _block(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data
