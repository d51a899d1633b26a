"""Entries and ledgers for the tests of ledger files."""

from __future__ import annotations

import os
from pathlib import Path

from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.published_ends import PublishedEnds


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _table()


def crc32c(data: bytes) -> int:
    """An implementation of its own, so that the core's is not checked against itself."""
    value = 0xFFFFFFFF
    for byte in data:
        value = _TABLE[(value ^ byte) & 255] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def make_entry(body: bytes) -> bytes:
    """Bytes a ledger takes for an entry: 0x0e01, checksum, body."""
    return b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body


def make_ledger(
    path: Path | str | None,
    *,
    durability: str = "os",
    entry_count_max: int = 1_000_000,
    size_max: int = 1 << 26,
    slots: PublishedEnds | None = None,
    uuid: bytes | None = None,
    name_record: bytes = b"",
) -> LedgerWriter:
    """A new ledger with id 5, as a broker of this durability makes it."""
    if slots is None:
        slots = PublishedEnds.memory(1)
    return LedgerWriter.create(
        None if path is None else str(path),
        ledger_id=5,
        uuid=uuid or os.urandom(16),
        created_ms=1_700_000_000_000,
        entry_count_max=entry_count_max,
        size_max=size_max,
        publish_on_flush=durability == "sync",
        zero_space=durability != "os" and path is not None,
        slots=slots,
        slot=slots.allocate(),
        folder_id=bytes(16),
        name_record=name_record,
    )


def append(writer: LedgerWriter, number: int, size: int = 40) -> bytes:
    """Append the entry with this number, of two messages, published at 1000 + number; its bytes."""
    entry = make_entry(number.to_bytes(8, "little") * (size // 8) + bytes(number % 8))
    writer.append(entry, message_count=2, publish_time_ms=1000 + number)
    return entry
