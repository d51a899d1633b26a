"""Ledger files with entries of any kind, and ranges over them, for the tests of reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from ledger_files import make_ledger
from range_topics import FULL

import pulsarx
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ranges.entry_codec import encode_batch
from pulsarx.broker.scan.ledger_range import LedgerRange
from pulsarx.broker.scan.read_range import read_range

COLUMNS = (
    "value", "__key", "__topic", "__messageId", "__publishTime", "__eventTime",
    "__messageProperties",
)  # fmt: skip


def part(whole: LedgerRange, **changes: Any) -> LedgerRange:
    return LedgerRange(**dict(zip(LedgerRange.__slots__[:-1], whole.row(), strict=True)) | changes)


def damage(planned: LedgerRange, offset: int) -> None:
    with open(planned.path, "r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 1]))


def write_ledger(folder: Path, entries: list[tuple[bytes, int, int]]) -> LedgerRange:
    """A ledger of entries (bytes, messages, publish time), and a range over all of it."""
    writer = make_ledger(folder / "f")
    for entry, count, time_ms in entries:
        writer.append(entry, message_count=count, publish_time_ms=time_ms)
    writer.flush()
    path = str(folder / "f")
    identity = LedgerFile.open(path, 9).uuid.hex()
    total = sum(count for _, count, _ in entries)
    end = writer.end
    writer.close()
    return LedgerRange(FULL, 2, 9, path, identity, "0" * 32, 0, total, 4096, end, COLUMNS)


def batch_of(values: list[bytes], time_ms: int = 5) -> tuple[bytes, int, int]:
    messages = [(value, {"key": "k", "properties": {"a": "b"}}) for value in values]
    body = encode_batch(messages, producer_name="p", publish_time_ms=time_ms)
    return body, len(values), time_ms


def read_values(planned: LedgerRange, **options: Any) -> list[Any]:
    found: list[Any] = []
    for batch in read_range(planned, ("value",), **options):
        found += pa.record_batch(batch).to_pydict()["value"]
    return found


def publish_all_kinds(client: pulsarx.Client) -> None:
    producer = client.create_producer("t", batching_enabled=True)
    producer.send(b"single", {"a": "1", "b": ""}, "key", event_timestamp=5)
    producer.send(None)
    producer.send(b"")
    producer.send_many([b"x", b"y" * 300, b"z"], keys=["a", None, "k" * 200])
    producer.send_many([b"p", b"q"], properties=[{"ü": "x" * 300}, None], event_timestamps=[7, 0])
    producer.send_arrow(pa.table({"value": [b"r", None, b"s"]}))
    packed = client.create_producer("t", compression_type=pulsarx.CompressionType.LZ4)
    packed.send_many([b"c" * 1000, b"d"], keys=["a", "b"])
    packed.send(b"e" * 100)
    client.create_producer("t", batching_enabled=False).send(b"plain", ordering_key="o")


# Columns
