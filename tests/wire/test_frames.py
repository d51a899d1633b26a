"""Facts about frames: how they are cut, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from pulsarx._pycore.ranges.entry_codec import crc32c, encode_entry
from pulsarx.wire.frames import FrameReader, frame_encode
from pulsarx.wire.protobuf import WireError

LIMIT = 1 << 20
ENTRY = encode_entry(b"payload", producer_name="p", sequence_id=42, publish_time_ms=1000)
FLOW: dict[str, Any] = {"consumer_id": 3, "permits": 1000}
SEND: dict[str, Any] = {"producer_id": 0, "sequence_id": 42}


def read(data: bytes) -> list[tuple[str, dict[str, Any], bytes]]:
    return list(FrameReader(LIMIT).feed(data))


def test_a_simple_frame_is_two_sizes_and_a_command() -> None:
    frame = frame_encode("FLOW", FLOW)
    assert frame.hex() == "0000000d" + "00000009" + "080b5a05080310e807"
    assert read(frame) == [("FLOW", FLOW, b"")]


def test_a_send_bears_the_entry_as_it_is_stored() -> None:
    """total size | command size | command | 0x0e01 | crc32c | metadata size | metadata | payload"""
    frame = frame_encode("SEND", SEND, ENTRY)
    command = bytes.fromhex("08063204 0800102a")
    assert frame[:4] == (4 + len(command) + len(ENTRY)).to_bytes(4, "big")
    assert frame[4:8] == len(command).to_bytes(4, "big")
    assert frame[8:] == command + ENTRY
    assert ENTRY[:2] == b"\x0e\x01"
    assert int.from_bytes(ENTRY[2:6], "big") == crc32c(ENTRY[6:])
    name, values, entry = read(frame)[0]
    assert (name, values["sequence_id"], entry) == ("SEND", 42, ENTRY)


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 64])
def test_frames_come_in_pieces_of_any_size(piece: int) -> None:
    whole = (
        frame_encode("FLOW", FLOW) + frame_encode("SEND", SEND, ENTRY) + frame_encode("PING", {})
    )
    reader = FrameReader(LIMIT)
    found = []
    for at in range(0, len(whole), piece):
        found += list(reader.feed(whole[at : at + piece]))
    reader.end()
    assert [each[0] for each in found] == ["FLOW", "SEND", "PING"]
    assert found[1][2] == ENTRY


def test_what_a_broker_puts_before_an_entry_is_passed_over() -> None:
    values = {"consumer_id": 0, "message_id": {"ledger_id": 1, "entry_id": 2}}
    before = b"\x0e\x02" + (3).to_bytes(4, "big") + b"abc"
    assert read(frame_encode("MESSAGE", values, before + ENTRY))[0][2] == ENTRY
    with pytest.raises(WireError, match="before an entry"):
        read(frame_encode("MESSAGE", values, b"\x0e\x02" + (300).to_bytes(4, "big") + b"abc"))


@pytest.mark.parametrize("total", [0, 3, LIMIT + 20481, (1 << 32) - 1])
def test_a_lying_total_size_is_refused_before_the_frame_has_come(total: int) -> None:
    with pytest.raises(WireError, match=f"a frame of {total} bytes"):
        read(total.to_bytes(4, "big"))


def test_a_lying_command_size_is_refused() -> None:
    frame = bytearray(frame_encode("FLOW", FLOW))
    frame[4:8] = (10).to_bytes(4, "big")
    with pytest.raises(WireError, match="a command of 10 bytes in a frame of 13"):
        read(bytes(frame))


def test_bytes_behind_a_command_are_refused() -> None:
    frame = frame_encode("FLOW", FLOW)
    longer = (len(frame) - 4 + 2).to_bytes(4, "big") + frame[4:] + b"ab"
    with pytest.raises(WireError, match="2 bytes behind a FLOW"):
        read(longer)


def test_a_send_without_an_entry_is_refused() -> None:
    frame = frame_encode("SEND", SEND, b"x")[:-1]
    shorter = (len(frame) - 4).to_bytes(4, "big") + frame[4:]
    with pytest.raises(WireError, match="a SEND without an entry"):
        read(shorter)
    with pytest.raises(ValueError, match="a SEND without an entry"):
        frame_encode("SEND", SEND)
    with pytest.raises(ValueError, match="a FLOW with an entry"):
        frame_encode("FLOW", FLOW, ENTRY)


def test_a_connection_that_ends_within_a_frame_is_told() -> None:
    reader = FrameReader(LIMIT)
    assert list(reader.feed(frame_encode("FLOW", FLOW)[:-1])) == []
    with pytest.raises(WireError, match="ended after 16 bytes"):
        reader.end()
