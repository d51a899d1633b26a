"""A batch on disk whose entry is whole and whose fourth message is not."""

from __future__ import annotations

from pathlib import Path


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def damage(folder: Path) -> None:
    """The size of the fourth message's metadata becomes nonsense; the entry's checksum is right."""
    (path,) = [
        each for each in folder.rglob("*") if each.is_file() and b"message-5" in each.read_bytes()
    ]
    data = bytearray(path.read_bytes())
    start = data.rindex(b"\x0e\x01", 0, data.index(b"message-0"))
    end = data.index(b"message-5") + len(b"message-5")
    at = data.index(b"message-2") + len(b"message-2")
    data[at : at + 4] = b"\x00\xff\xff\xff"
    data[start + 2 : start + 6] = crc32c(data[start + 6 : end]).to_bytes(4, "big")
    path.write_bytes(data)
