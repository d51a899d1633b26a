"""Makes the record of what a compaction left again, of its ledger alone. Used by salvaged_state."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ranges.entry_codec import decode_entry
from pulsarx.backups.folder_view import HEADER_SIZE
from pulsarx.broker.catalogue.records import CompactionRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BLOCK = 16 << 20
_PLACE_SIZE = 40  # of what precedes an entry and says where it was in its topic
_BATCH, _TAKEN_OUT = 1, 32  # flags of a frame
_MAGIC = b"\x0e\x01"


def compaction_of(
    path: str, ledger_id: int, summary: Any, horizon: tuple[int, int, int], now_ms: int
) -> CompactionRecord | None:
    """The record of a compacted ledger, of which this is the summary. horizon: as its name record
    has it. None: no entry of it can be read."""
    file = LedgerFile.open(path, ledger_id)
    at, entry_id, message = HEADER_SIZE, 0, 0
    last: list[int] = []
    ledgers: list[list[int]] = []
    while at < summary.size:
        try:
            found = file.entry(at, summary.size)
        except errors.CorruptDataError:
            *_, behind = file.scan(at, summary.size, _BLOCK, entry_id, message, compacted=True)
            if behind is None or behind[1] < 0:
                break
            at, entry_id, message = behind
            continue
        if found is None:
            break
        frame, entry, at = found
        entry_id = frame["entry_id"] + 1
        message = frame["first_message"] + frame["message_count"]
        place = _place_of(entry)
        if place is None:
            continue
        of_ledger, of_entry, first, count = place
        index = count - 1
        if frame["flags"] & _TAKEN_OUT:
            index = _last_survivor(entry[_PLACE_SIZE:], index)
        last = [of_ledger, of_entry, index if frame["flags"] & _BATCH else -1]
        if not ledgers or ledgers[-1][0] != of_ledger:
            ledgers.append([of_ledger, 0])
        ledgers[-1][1] = first + index + 1
    if not last:
        return None
    if not horizon[0]:
        horizon = last[0], last[1], ledgers[-1][1]
    return CompactionRecord(
        ledger_id, file.uuid.hex(), summary.entry_count, summary.message_count, summary.size,
        *horizon, last, ledgers, now_ms, 0, 0,
    )  # fmt: skip


def holds_survivors(path: str, at: int, size: int) -> bool:
    """Whether the first entry of a ledger in a file is one that a compaction left."""
    try:
        file = LedgerFile.open(path, 0, at=at, size=size)
        found = file.entry(HEADER_SIZE, file.mapped_size)
    except errors.PulsarException:
        return False
    return found is not None and _place_of(found[1]) is not None


def _place_of(entry: bytes) -> tuple[int, int, int, int] | None:
    """The place that an entry of a compacted ledger had: ledger, entry, first message, messages."""
    head, behind = entry[:_PLACE_SIZE], entry[_PLACE_SIZE : _PLACE_SIZE + 2]
    if behind != _MAGIC:
        return None
    ledger_id, entry_id, first = (int.from_bytes(head[at : at + 8], "little") for at in (8, 16, 24))
    return ledger_id, entry_id, first, int.from_bytes(head[32:36], "little")


def _last_survivor(entry: bytes, index: int) -> int:
    """The place of the last message of a batch that was not taken out; index, where the batch
    cannot be read."""
    try:
        messages = decode_entry(entry)["messages"]
    except errors.PulsarException:
        return index
    there = [at for at, each in enumerate(messages) if not each.get("compacted_out")]
    return there[-1] if there else index
