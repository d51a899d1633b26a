"""Sealed ledgers whose checksums hold and that lie all the same, as bugs and enemies make them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HEADER_SIZE = 4096
_FRAME = "<IIQQQqqIIII"
_FRAME_FIELDS = (
    "entry_size", "checksum", "entry_id", "durable_count", "first_message", "publish_time_ms",
    "deliver_at_ms", "message_count", "sticky_hash", "flags", "unused",
)  # fmt: skip
_FOOTER = "<8sIIQQQqqQQIIQI36s"
_FOOTER_FIELDS = (
    "magic", "checksum", "digest", "end", "entry_count", "message_count", "first_publish_ms",
    "last_publish_ms", "index_offset", "index_count", "damage_count", "index_checksum",
    "torn_size", "flags", "unused",
)  # fmt: skip
_INDEX = "<QQQq"
_INDEX_FIELDS = ("offset", "entry_id", "first_message", "publish_max_ms")

Fields = dict[str, Any]


def _crc32c(data: bytes, value: int = 0) -> int:
    value ^= 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


class Forgery:
    """The parts of a sealed file, to be changed; `write` makes every checksum hold again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._data = bytearray(path.read_bytes())
        self._seed = _crc32c(bytes(self._data[16:32]))
        end, self._place = struct.unpack_from("<QQ", self._data, 512 + 16)
        self.footer = _unpacked(self._data, self._place, _FOOTER, _FOOTER_FIELDS)
        self.frames: list[Fields] = []
        self._offsets: list[int] = []
        at = _HEADER_SIZE
        while at < end:
            frame = _unpacked(self._data, at, _FRAME, _FRAME_FIELDS)
            self.frames.append(frame)
            self._offsets.append(at)
            at += 64 + -(-frame["entry_size"] // 8) * 8
        self.index = [
            _unpacked(self._data, end + 32 * number, _INDEX, _INDEX_FIELDS)
            for number in range(self.footer["index_count"])
        ]

    def write(self) -> None:
        for at, frame in zip(self._offsets, self.frames):
            _pack(self._data, at, _FRAME, frame)
            whole = (
                at.to_bytes(8, "little") + self._data[at : at + 4] + self._data[at + 8 : at + 64]
            )
            struct.pack_into("<I", self._data, at + 4, _crc32c(whole, self._seed))
        start = self.footer["index_offset"]
        for number, record in enumerate(self.index):
            _pack(self._data, start + 32 * number, _INDEX, record)
        records = bytes(self._data[start : self._place])
        self.footer["index_checksum"] = _crc32c(records, self._seed)
        _pack(self._data, self._place, _FOOTER, self.footer)
        footer = self._data[self._place : self._place + 128]
        checksum = _crc32c(bytes(footer[:8] + footer[12:]), self._seed)
        struct.pack_into("<I", self._data, self._place + 8, checksum)
        self._path.write_bytes(self._data)


def forge(path: Path, change: Callable[[Forgery], None]) -> None:
    forgery = Forgery(path)
    change(forgery)
    forgery.write()


def _unpacked(data: bytearray, at: int, form: str, names: tuple[str, ...]) -> Fields:
    return dict(zip(names, struct.unpack_from(form, data, at)))


def _pack(data: bytearray, at: int, form: str, fields: Fields) -> None:
    struct.pack_into(form, data, at, *fields.values())
