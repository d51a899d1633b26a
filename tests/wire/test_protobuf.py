"""Facts about commands as protobuf: what they look like as bytes, and which bytes are none."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from pulsarx.wire.commands import COMMANDS, command_decode, command_encode
from pulsarx.wire.message_ids import ack_set_bits
from pulsarx.wire.protobuf import Field, Kind, Schema, WireError, varint

SAMPLES: dict[Any, Any] = {
    Kind.UINT64: (1 << 64) - 1,
    Kind.UINT32: (1 << 32) - 1,
    Kind.INT64: -(1 << 63),
    Kind.INT32: -3,
    Kind.BOOL: True,
    Kind.STRING: "persistent://public/default/t",
    Kind.BYTES: b"\x00\xff",
}


def sample(schema: Schema) -> dict[str, Any]:
    """Every field of a message, repeated ones twice."""
    found = {}
    for key, field in schema.fields.items():
        kind = field.kind
        value = sample(kind) if isinstance(kind, Schema) else SAMPLES[kind]
        found[key] = [value, value] if field.repeated else value
    return found


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_command_with_all_its_fields_comes_back(name: str) -> None:
    values = sample(COMMANDS[name][1])
    assert command_decode(command_encode(name, values)) == (name, values)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_no_truncated_command_is_another_error_than_ours(name: str) -> None:
    whole = command_encode(name, sample(COMMANDS[name][1]))
    for end in range(len(whole)):
        with pytest.raises(WireError):
            command_decode(whole[:end])


def test_random_bytes_are_refused_or_read_and_nothing_else() -> None:
    seed = 20_240_601
    print(f"seed {seed}")
    chance = random.Random(seed)
    whole = [command_encode(name, sample(schema)) for name, (_, schema) in COMMANDS.items()]
    for _ in range(3000):
        data = bytearray(chance.choice(whole))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            command_decode(bytes(data))
        except WireError:
            pass


# By hand from PulsarApi.proto: field << 3 | wire type, then the value.
GOLDEN = [
    ("PING", {}, "0812 920100"),
    ("FLOW", {"consumer_id": 3, "permits": 1000}, "080b 5a05 0803 10e807"),
    ("SEND", {"producer_id": 0, "sequence_id": 42}, "0806 3204 0800 102a"),
    ("SUCCESS", {"request_id": 0}, "080d 6a02 0800"),
    ("CLOSE_CONSUMER", {"consumer_id": 1, "request_id": 2}, "0810 820104 0801 1002"),
    (
        "SEND_RECEIPT",
        {
            "producer_id": 0,
            "sequence_id": 42,
            "message_id": {"ledger_id": 7, "entry_id": 0, "partition": -1},
        },
        "0807 3a15 0800 102a 1a0f 0807 1000 18ffffffffffffffffff01",
    ),
    (
        "ACK",
        {
            "consumer_id": 0,
            "ack_type": 0,
            "message_ids": [{"ledger_id": 7, "entry_id": 1, "ack_set": [21]}],
        },
        "080a 520c 0800 1000 1a06 0807 1001 2815",
    ),
    (
        "MESSAGE",
        {"consumer_id": 0, "message_id": {"ledger_id": 7, "entry_id": 1}, "redelivery_count": 2},
        "0809 4a0a 0800 1204 0807 1001 1802",
    ),
]


@pytest.mark.parametrize(("name", "values", "expected"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_the_bytes_are_those_of_the_protocol(
    name: str, values: dict[str, Any], expected: str
) -> None:
    data = command_encode(name, values)
    assert data.hex() == expected.replace(" ", "")
    assert command_decode(data)[0] == name


SCHEMA = Schema(
    "Sample",
    numbers=Field(1, Kind.INT64, repeated=True),
    inner=Field(2, Schema("Inner", a=Field(1, Kind.INT32, default=-1), b=Field(2, Kind.INT32))),
    flag=Field(3, Kind.BOOL, default=True),
)


def test_repeated_numbers_may_be_packed() -> None:
    plain, packed = bytes.fromhex("0805080a"), bytes.fromhex("0a02050a")
    assert SCHEMA.decode(plain)["numbers"] == SCHEMA.decode(packed)["numbers"] == [5, 10]


def test_unknown_fields_are_skipped_and_the_last_value_counts() -> None:
    unknown = bytes.fromhex("c03e05 d23e0161 c13e0102030405060708 c53e01020304")
    assert SCHEMA.decode(unknown + bytes.fromhex("18011800"))["flag"] is False


def test_the_parts_of_a_message_are_merged() -> None:
    assert SCHEMA.decode(bytes.fromhex("12020801 12021002"))["inner"] == {"a": 1, "b": 2}


def test_what_is_absent_has_its_default() -> None:
    assert SCHEMA.decode(b"") == {"numbers": [], "inner": None, "flag": True}
    assert SCHEMA.decode(bytes.fromhex("1200"))["inner"] == {"a": -1, "b": None}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("00", "field number 0"),
        ("08", "no whole varint"),
        ("08" + "ff" * 11, "no whole varint"),
        ("12ff01", "255 bytes"),
        ("13", "wire type 3"),
        ("1001", "inner is a number"),
        ("1a0101", "flag is no number"),
    ],
)
def test_what_is_no_message_is_refused_with_the_reason(data: str, why: str) -> None:
    with pytest.raises(WireError, match=why):
        SCHEMA.decode(bytes.fromhex(data))


def test_a_required_field_that_is_missing_is_named() -> None:
    with pytest.raises(WireError, match="FLOW without its permits"):
        command_decode(bytes.fromhex("080b5a020803"))
    with pytest.raises(ValueError, match="FLOW without its permits"):
        command_encode("FLOW", {"consumer_id": 1})


def test_a_type_that_nobody_knows_is_refused() -> None:
    with pytest.raises(WireError, match="command type 200"):
        command_decode(b"\x08" + varint(200))


def test_a_type_without_its_command_is_refused() -> None:
    with pytest.raises(WireError, match="without its FLOW"):
        command_decode(b"\x08\x0b")


def test_a_field_or_value_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="no field permit"):
        command_encode("FLOW", {"consumer_id": 1, "permits": 1, "permit": 2})
    with pytest.raises(ValueError, match="permits -1"):
        command_encode("FLOW", {"consumer_id": 1, "permits": -1})


def test_a_message_in_many_parts_costs_what_its_bytes_do() -> None:
    """Each part was appended to all before it: 5 MiB of them took minutes."""
    outer = Schema("Outer", inner=Field(1, Schema("Inner", a=Field(1, Kind.UINT64))))
    unknown = b"\x12" + varint(1000) + bytes(1000)
    part = b"\x0a" + varint(len(unknown) + 2) + b"\x08\x01" + unknown
    began = time.process_time()
    assert outer.decode(part * 10_000) == {"inner": {"a": 1}}
    assert time.process_time() - began < 1


def test_the_bits_of_a_large_ack_set_cost_what_its_words_do() -> None:
    """Each word was added to all before it: a command of 5 MiB kept a thread for minutes."""
    began = time.process_time()
    assert ack_set_bits([-1] * 200_000).bit_count() == 64 * 200_000
    assert time.process_time() - began < 2
