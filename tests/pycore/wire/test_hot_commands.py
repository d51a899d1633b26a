"""Facts about the commands of which there is one an entry: bytes as the tables make and read
them."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsarx._pycore.wire.hot_commands import (
    ack_decode,
    flow_decode,
    message_encode,
    receipt_decode,
    receipt_encode,
    send_decode,
)
from pulsarx.wire.commands import command_decode
from pulsarx.wire.frames import FrameReader, frame_encode
from pulsarx.wire.protobuf import WireError

U64 = st.integers(0, (1 << 64) - 1)
I64 = st.integers(-1, (1 << 63) - 1)
PARTITION = st.integers(-1, (1 << 31) - 1)


def place(ledger_id: int, entry_id: int, partition: int) -> dict[str, int]:
    found = {"ledger_id": ledger_id % (1 << 64), "entry_id": entry_id % (1 << 64)}
    return found | ({"partition": partition} if partition >= 0 else {})


@given(U64, U64, I64, I64, PARTITION)
def test_a_receipt_is_as_the_table_makes_it(
    producer_id: int, sequence_id: int, ledger_id: int, entry_id: int, partition: int
) -> None:
    values = {"producer_id": producer_id, "sequence_id": sequence_id}
    values_of_id = place(ledger_id, entry_id, partition)
    expected = frame_encode("SEND_RECEIPT", {**values, "message_id": values_of_id})
    assert receipt_encode(producer_id, sequence_id, ledger_id, entry_id, partition) == expected


@given(U64, I64, I64, PARTITION, st.integers(0, (1 << 32) - 1), U64, st.binary(min_size=1))
def test_a_message_is_as_the_table_makes_it(
    consumer_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int,
    redelivery_count: int,
    epoch: int,
    entry: bytes,
) -> None:
    values = {
        "consumer_id": consumer_id,
        "message_id": place(ledger_id, entry_id, partition),
        "redelivery_count": redelivery_count or None,
        "consumer_epoch": epoch or None,
    }
    made = message_encode(
        consumer_id, ledger_id, entry_id, partition, redelivery_count, epoch, entry
    )
    assert made == frame_encode("MESSAGE", values, entry)


@given(U64, U64, st.binary(min_size=1), st.none() | st.integers(1, 1000))
def test_a_send_is_read_as_the_table_reads_it(
    producer_id: int, sequence_id: int, entry: bytes, count: int | None
) -> None:
    values = {"producer_id": producer_id, "sequence_id": sequence_id, "num_messages": count}
    frame = frame_encode("SEND", values, entry)
    assert send_decode(frame[4:]) == (producer_id, sequence_id, entry)


@given(U64, U64, I64, I64, PARTITION)
def test_a_receipt_is_read_as_the_table_reads_it(
    producer_id: int, sequence_id: int, ledger_id: int, entry_id: int, partition: int
) -> None:
    frame = receipt_encode(producer_id, sequence_id, ledger_id, entry_id, partition)
    [(name, values, entry)] = FrameReader(1000).feed(memoryview(frame))
    read = command_decode(frame[8:])
    assert (name, values | {"message_id": None}) == (read[0], read[1] | {"message_id": None})
    assert entry == b""
    ids = [dict(each["message_id"], ack_set=list(each["message_id"]["ack_set"]))
           for each in (values, read[1])]  # fmt: skip
    assert ids[0] == ids[1]
    in_range = ledger_id >= 0 and entry_id >= 0
    expected = (producer_id, sequence_id, ledger_id, entry_id, partition)
    assert receipt_decode(frame[4:]) == (expected if in_range else None)


def receipt(**values: Any) -> bytes:
    given = {"producer_id": 1, "sequence_id": 2, "message_id": place(3, 4, -1), **values}
    return frame_encode("SEND_RECEIPT", given)[4:]


def test_a_receipt_that_says_more_is_left_to_the_tables() -> None:
    assert receipt_decode(receipt()) == (1, 2, 3, 4, -1)
    assert receipt_decode(receipt(message_id=None)) is None
    assert receipt_decode(receipt(message_id=place(3, 4, 5) | {"batch_index": 0})) is None
    assert receipt_decode(receipt(message_id=place(3, 4, 5) | {"ack_set": [1]})) is None
    assert receipt_decode(receipt() + b"x") is None
    assert receipt_decode(frame_encode("FLOW", {"consumer_id": 3, "permits": 4})[4:]) is None
    assert receipt_decode(b"") is None
    # As Pulsar sends it: with highest_sequence_id, field 4.
    command = receipt()[4:]
    longer = command[:3] + bytes([command[3] + 2]) + command[4:] + b"\x20\x07"
    assert receipt_decode(len(longer).to_bytes(4, "big") + longer) == (1, 2, 3, 4, -1)
    assert command_decode(longer)[1] == command_decode(command)[1]


def test_lies_about_receipts_are_read_as_the_tables_read_them() -> None:
    chance = random.Random(9)
    true = receipt_encode(300, 70_000, 5, 70_001, 3)[4:]
    read = 0
    for _ in range(20_000):
        lie = bytearray(true)
        for _ in range(chance.randint(1, 3)):
            lie[chance.randrange(len(lie))] = chance.randrange(256)
        found = receipt_decode(bytes(lie))
        if found is None:
            continue
        read += 1
        name, values = command_decode(bytes(lie[4:]))
        place = values["message_id"]
        assert (name, values["producer_id"], values["sequence_id"]) == ("SEND_RECEIPT", *found[:2])
        assert (place["ledger_id"], place["entry_id"], place["partition"]) == found[2:]
        assert not place["ack_set"] and place["batch_index"] == -1
    assert read > 100


PLACES = st.lists(st.tuples(st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1)))


@given(U64, PLACES, st.none() | PARTITION)
def test_an_acknowledgement_of_entries_is_read_as_the_table_reads_it(
    consumer_id: int, places: list[tuple[int, int]], partition: int | None
) -> None:
    frame = ack(consumer_id, [{**place(*each, -1), "partition": partition} for each in places])
    assert ack_decode(frame) == (consumer_id, places)
    assert send_decode(frame) is None


def ack(consumer_id: int, ids: list[dict[str, Any]], **values: Any) -> bytes:
    given = {"ack_type": 0, "consumer_id": consumer_id, "message_ids": ids, **values}
    return frame_encode("ACK", given)[4:]


def test_an_acknowledgement_that_says_more_is_left_to_the_tables() -> None:
    plain = place(1, 2, -1)
    assert ack_decode(ack(1, [plain])) == (1, [(1, 2)])
    assert ack_decode(ack(1, [{**plain, "batch_index": 3, "batch_size": 4}])) == (1, [(1, 2)])
    assert ack_decode(ack(1, [{**plain, "ack_set": [5]}])) is None
    assert ack_decode(ack(1, [plain], ack_type=1)) is None
    assert ack_decode(ack(1, [plain], request_id=0)) is None
    assert ack_decode(ack(1, [plain], transaction_most=0)) is None
    assert ack_decode(ack(1, [plain], validation_error=2)) is None
    assert ack_decode(ack(1, [place(1, -1, -1)])) is None
    assert ack_decode(ack(1, [plain]) + b"x") is None
    assert ack_decode(b"") is None


def test_lies_about_acknowledgements_are_read_as_the_tables_read_them() -> None:
    chance = random.Random(8)
    true = ack(300, [place(5, 70_000, 3), place(5, 70_001, -1)])
    read = 0
    for _ in range(20_000):
        lie = bytearray(true)
        for _ in range(chance.randint(1, 3)):
            lie[chance.randrange(len(lie))] = chance.randrange(256)
        found = ack_decode(bytes(lie))
        if found is None:
            continue
        read += 1
        name, values = command_decode(bytes(lie[4:]))
        ids = [(each["ledger_id"], each["entry_id"]) for each in values["message_ids"]]
        assert (name, values["consumer_id"], ids) == ("ACK", *found)
        assert values["ack_type"] == 0 and values["request_id"] is None
        assert not any(each["ack_set"] for each in values["message_ids"])
    assert read > 100


@given(U64, st.integers(0, (1 << 31) - 1))
def test_permits_are_read_as_the_table_reads_them(consumer_id: int, permits: int) -> None:
    frame = frame_encode("FLOW", {"consumer_id": consumer_id, "permits": permits})
    assert flow_decode(frame[4:]) == (consumer_id, permits)
    assert ack_decode(frame[4:]) is None
    assert flow_decode(frame[4:] + b"x") is None


def test_lies_about_permits_are_read_as_the_tables_read_them() -> None:
    chance = random.Random(6)
    true = frame_encode("FLOW", {"consumer_id": 300, "permits": 70_000})[4:]
    assert flow_decode(b"") is None
    read = 0
    for _ in range(20_000):
        lie = bytearray(true)
        for _ in range(chance.randint(1, 3)):
            lie[chance.randrange(len(lie))] = chance.randrange(256)
        found = flow_decode(bytes(lie))
        if found is None:
            continue
        read += 1
        name, values = command_decode(bytes(lie[4:]))
        assert (name, values["consumer_id"], values["permits"]) == ("FLOW", *found)
    assert read > 100


def test_other_commands_and_other_fields_are_left_to_the_tables() -> None:
    send: dict[str, Any] = {"producer_id": 1, "sequence_id": 2}
    assert send_decode(frame_encode("FLOW", {"consumer_id": 3, "permits": 4})[4:]) is None
    assert send_decode(frame_encode("SEND", {**send, "transaction_most": 1}, b"x")[4:]) is None
    assert send_decode(frame_encode("SEND", send, b"x")[4:-1]) is None  # without an entry
    assert send_decode(b"") is None


def test_lies_are_read_as_the_tables_read_them_or_not_at_all() -> None:
    chance = random.Random(7)
    true = frame_encode("SEND", {"producer_id": 300, "sequence_id": 70000}, b"entry")[4:]
    read = 0
    for _ in range(20_000):
        lie = bytearray(true)
        for _ in range(chance.randint(1, 3)):
            lie[chance.randrange(len(lie))] = chance.randrange(256)
        found = send_decode(
            bytes(lie[: chance.randint(0, len(lie))] if chance.random() < 0.2 else lie)
        )
        if found is None:
            continue
        read += 1
        size = int.from_bytes(lie[:4], "big")
        try:
            name, values = command_decode(bytes(lie[4 : 4 + size]))
        except WireError as error:
            raise AssertionError(f"{lie.hex()} was read, and is none: {error}") from error
        assert name == "SEND"
        assert (values["producer_id"], values["sequence_id"]) == found[:2]
        assert values["transaction_most"] is None
    assert read > 100
