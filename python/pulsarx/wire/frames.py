"""Frames of Pulsar's binary protocol. Integers are big endian.

simple   u32 total size | u32 command size | command
payload  u32 total size | u32 command size | command | entry
entry    0x0e01 | u32 crc32c | u32 metadata size | metadata | payload
link     u32 48 | u32 0 | u32 kind | u64 consumer id | 4 u64; between processes of one folder alone

The total size counts everything behind itself. SEND and MESSAGE bear an entry, with the bytes it
has in a ledger; who opens it verifies its checksum. In a MESSAGE of other brokers a block 0x0e02 |
u32 size | BrokerEntryMetadata may stand before it, which is passed over.
"""

from __future__ import annotations

from pulsarx._pycore.wire.frame_cutter import FrameCutter
from pulsarx._pycore.wire.hot_commands import ack_decode, link_decode, receipt_decode, send_decode
from pulsarx.wire.commands import INDIVIDUAL, WITH_ENTRY, command_decode, command_encode
from pulsarx.wire.protobuf import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ENTRY_PADDING = 10240  # bytes that an entry may have above max_message_size, for its metadata
COMMAND_PADDING = 10240  # bytes that a frame may have above its entry
_NO_TRANSACTION = {"transaction_least": None, "transaction_most": None}
# An ACK of whole entries: their `places` stand for its message_ids.
_PLAIN_ACK = {"ack_type": INDIVIDUAL, "message_ids": (), "request_id": None, **_NO_TRANSACTION}
# The rest of the id of a whole entry.
_WHOLE_ENTRY = {"batch_index": -1, "ack_set": (), "batch_size": 0}
_BROKER_METADATA = b"\x0e\x02"


def entry_size_max(message_size_max: int) -> int:
    return message_size_max + ENTRY_PADDING


def frame_size_max(message_size_max: int) -> int:
    return entry_size_max(message_size_max) + COMMAND_PADDING


def frame_encode(name: str, values: dict[str, Any], entry: bytes | None = None) -> bytes:
    """One command, and the entry of SEND and MESSAGE. ValueError: see command_encode."""
    if (entry is not None) != (name in WITH_ENTRY):
        raise ValueError(f"a {name} {'without' if entry is None else 'with'} an entry")
    command = command_encode(name, values)
    rest = entry or b""
    sizes = (4 + len(command) + len(rest)).to_bytes(4, "big") + len(command).to_bytes(4, "big")
    return sizes + command + rest


class FrameReader:
    """Cuts what comes over one connection into commands. One thread at a time."""

    def __init__(self, message_size_max: int) -> None:
        self.cutter: FrameCutter = FrameCutter(frame_size_max(message_size_max))

    def feed(self, data: bytes | memoryview) -> Iterator[tuple[str, dict[str, Any], bytes]]:
        """(name, fields, entry) of each command that is whole by now and that the cutter tells
        nobody of; the entry is empty where there is none. The name of a link frame is LINK.
        WireError: the rest of the connection is not to be read."""
        cutter = self.cutter
        cutter.feed(data)
        while (frame := cutter.next()) is not None:
            if isinstance(frame, int):
                limit = cutter.frame_size_max
                raise WireError(f"a frame of {frame} bytes; it has from 4 to {limit}")
            yield _frame_decode(frame)

    def end(self) -> None:
        """The connection ended. WireError: in the middle of a frame."""
        if self.cutter.size:
            raise WireError(f"the connection ended after {self.cutter.size} bytes of a frame")


def _frame_decode(frame: bytes) -> tuple[str, dict[str, Any], bytes]:
    """frame: without its total size."""
    size = int.from_bytes(frame[:4], "big")
    if size == 0:
        linked = link_decode(frame)
        if linked is not None:
            kind, consumer_id, numbers = linked
            return "LINK", {"kind": kind, "consumer_id": consumer_id, "numbers": numbers}, b""
    hot = send_decode(frame)
    if hot is not None:
        producer_id, sequence_id, entry = hot
        sent = {"producer_id": producer_id, "sequence_id": sequence_id}
        return "SEND", {**_NO_TRANSACTION, **sent}, entry
    acknowledged = ack_decode(frame)
    if acknowledged is not None:
        consumer_id, places = acknowledged
        return "ACK", {**_PLAIN_ACK, "consumer_id": consumer_id, "places": places}, b""
    receipt = receipt_decode(frame)
    if receipt is not None:
        producer_id, sequence_id, ledger_id, entry_id, partition = receipt
        place = {**_WHOLE_ENTRY, "ledger_id": ledger_id, "entry_id": entry_id}
        place["partition"] = partition
        confirmed = {"producer_id": producer_id, "sequence_id": sequence_id, "message_id": place}
        return "SEND_RECEIPT", confirmed, b""
    if size > len(frame) - 4:
        raise WireError(f"a command of {size} bytes in a frame of {len(frame)}")
    name, values = command_decode(frame[4 : 4 + size])
    entry = frame[4 + size :]
    if name not in WITH_ENTRY and entry:
        raise WireError(f"{len(entry)} bytes behind a {name}")
    if name in WITH_ENTRY and not entry:
        raise WireError(f"a {name} without an entry")
    if name == "MESSAGE" and entry[:2] == _BROKER_METADATA:
        skipped = 6 + int.from_bytes(entry[2:6], "big")
        if len(entry) < 6 or skipped >= len(entry):
            raise WireError(f"{skipped} bytes before an entry, and {len(entry)} are there")
        entry = entry[skipped:]
    return name, values, entry
