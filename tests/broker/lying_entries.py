"""Entries whose checksum holds and whose counts and sizes are lies, in staged ledgers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from forged_ledgers import Forgery, forge
from staged_ledgers import PREFIX, PUBLISHED_MS, folder_id
from support.protobuf_fields import block, whole

from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx._pycore.ranges.entry_codec import crc32c
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import make_staging

BATCH, COMPRESSED, MIXED_KEYS = 1, 2, 4
HUGE = 2**31 - 1


def single(payload: bytes, key: bytes = b"", payload_size: int = -1, size: int = -1) -> bytes:
    """One message of a batch; sizes: what it claims, if not the truth."""
    metadata = block(2, key) if key else b""
    metadata += whole(3, len(payload) if payload_size < 0 else payload_size) + whole(8, 0)
    size = len(metadata) if size < 0 else size
    return size.to_bytes(4, "big") + metadata + payload


def entry(
    payload: bytes, count: int = 0, compression: int = 0, uncompressed_size: int = 0
) -> bytes:
    """count: num_messages_in_batch; 0: no batch."""
    metadata = block(1, b"liar") + whole(2, 0) + whole(3, PUBLISHED_MS)
    if compression:
        metadata += whole(8, compression) + whole(9, uncompressed_size)
    if count:
        metadata += whole(11, count)
    body = len(metadata).to_bytes(4, "big") + metadata + payload
    return b"\x0e\x01" + crc32c(body).to_bytes(4, "big") + body


PLAIN = entry(b"plain")


def stage_entries(
    folder: Path,
    entries: list[tuple[bytes, int, int]],
    change: Callable[[Forgery], None] | None = None,
    topic: str = "t",
) -> StagedFile:
    """A sealed ledger of (entry, message count of its frame, flags), and a description of it that
    bears out every lie."""
    area = make_staging(folder, "job")
    name = f"{len(os.listdir(area))}.ledger"
    slots = PublishedEnds.memory(1)
    writer = LedgerWriter.create(
        f"{area}/{name}",
        ledger_id=1,
        uuid=os.urandom(16),
        created_ms=PUBLISHED_MS,
        entry_count_max=1 << 30,
        size_max=1 << 30,
        publish_on_flush=False,
        zero_space=False,
        slots=slots,
        slot=slots.allocate(),
        folder_id=bytes.fromhex(folder_id(folder)),
    )
    for data, count, flags in entries:
        writer.append(data, message_count=count, publish_time_ms=PUBLISHED_MS, flags=flags)
    writer.seal(flush=False)
    writer.close()
    return describe(folder, name, change, topic)


def describe(
    folder: Path, name: str, change: Callable[[Forgery], None] | None, topic: str = "t"
) -> StagedFile:
    """A staged file after the change, by the hand that made the change."""
    real = os.path.realpath(folder)
    file = StagedFile.of_file(real, folder_id(folder), PREFIX + topic, "job", name)
    if change is None:
        return file
    path = folder / "staging" / "job" / name
    forge(path, change)
    said = Forgery(path).footer
    told = ("entry_count", "message_count", "first_publish_ms", "last_publish_ms", "digest")
    document = file.document() | {field: said[field] for field in told}
    return StagedFile.of_document(document | {"size": said["end"]})
