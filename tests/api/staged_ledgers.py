"""Sealed ledgers in the staging area of a data directory, as a writing task leaves them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ledger.ledger_writer import LedgerWriter
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx._pycore.ranges.entry_codec import encode_entry
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.staging.staged_file import StagedFile
from pulsarx.broker.staging.staging import make_staging

PREFIX = "persistent://public/default/"
PUBLISHED_MS = 1_700_000_000_000


def write_ledger(
    path: str, payloads: Iterable[bytes], uuid: bytes | None = None, store_id: str = "0" * 32
) -> None:
    """A sealed ledger with one message an entry."""
    slots = PublishedEnds.memory(1)
    writer = LedgerWriter.create(
        path,
        ledger_id=1,
        uuid=uuid or os.urandom(16),
        created_ms=PUBLISHED_MS,
        entry_count_max=1 << 30,
        size_max=1 << 30,
        publish_on_flush=False,
        zero_space=False,
        slots=slots,
        slot=slots.allocate(),
        folder_id=bytes.fromhex(store_id),
    )
    for number, payload in enumerate(payloads):
        published_ms = PUBLISHED_MS + number
        entry = encode_entry(
            payload, producer_name="task", sequence_id=number, publish_time_ms=published_ms
        )
        writer.append(entry, message_count=1, publish_time_ms=published_ms)
    writer.seal(flush=False)
    writer.close()


def folder_id(folder: Path) -> str:
    directory = DataDirectory.open(str(folder), files=FileSystem(), read_only=True)
    return directory.folder_id


def stage(
    folder: Path, topic: str, payloads: Iterable[bytes], job: str = "job", name: str = ""
) -> StagedFile:
    """Write a file of these messages for a topic (its local name) and describe it."""
    area = make_staging(folder, job)
    name = name or f"{len(os.listdir(area))}.ledger"
    write_ledger(f"{area}/{name}", payloads, store_id=folder_id(folder))
    real = os.path.realpath(folder)
    return StagedFile.of_file(real, folder_id(folder), PREFIX + topic, job, name)


def staged_names(folder: Path, job: str = "job") -> list[str]:
    area = folder / "staging" / job
    return sorted(os.listdir(area)) if area.exists() else []
