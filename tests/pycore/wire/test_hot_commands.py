"""Facts about the commands of which there is one an entry: bytes as the tables make and read
them."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pulsarx._pycore.wire.hot_commands import message_encode, receipt_encode, send_decode
from pulsarx.wire.commands import command_decode
from pulsarx.wire.frames import frame_encode
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
