"""Entries through the Python door: round trips, golden bytes, damage."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seeds import scaled

from pulsarx._pycore.ranges import entry_codec
from pulsarx._pycore.ranges.entry_codec import decode_entry, encode_batch, encode_entry
from pulsarx.errors import CorruptDataError

TIME_MS = 1700000000000
HELLO = bytes.fromhex("0e01cf85822f0000000c0a017010001880d095ffbc3168656c6c6f")
BATCH = bytes.fromhex(
    "0e01dcd1fbce000000110a017010001880d095ffbc315802c0010100000004180140006100000004180240016262"
)
# All fields; pulsar-client 3.13.0 (`_pulsar.MessageBatch.parse_from`) reads the three messages as
# RICH below, and protobuf 7.36 serialises the same fields to these bytes.
RICH_BATCH = bytes.fromhex(
    "0e01883b888800000028"
    "0a0470726f6410071880d095ffbc3132026b31580382010200019201036f7264c001808080808020"
    "00000020"
    "0a060a01611201310a060a001202c3a912026b31180328d2093a036f72644007"
    "6f6e65"
    "00000006"
    "180040084801"
    "0000000b"
    "1200180340808080808020"
    "74776f"
)
RICH_SINGLE = bytes.fromhex(
    "0e019d4516e000000031"
    "0a0470726f6410071880d095ffbc3122060a016112013122060a001202c3a932026b3160d209"
    "82010200019201036f7264"
    "6f6e65"
)
RICH: list[tuple[bytes, dict[str, Any]]] = [
    (
        b"one",
        {
            "key": "k1",
            "properties": {"a": "1", "": "é"},
            "event_time_ms": 1234,
            "ordering_key": b"ord",
            "sequence_id": 7,
        },
    ),
    (b"", {"null_value": True, "sequence_id": 8}),
    (b"two", {"sequence_id": 1 << 40, "key": ""}),
]

U64 = st.integers(0, 2**64 - 1)
TEXT = st.text(max_size=200)
FIELDS = st.fixed_dictionaries(
    {"sequence_id": U64},
    optional={
        "key": TEXT,
        "ordering_key": st.binary(max_size=200),
        "properties": st.dictionaries(TEXT, TEXT, max_size=4),
        "event_time_ms": st.integers(1, 2**63),
        "null_value": st.booleans(),
    },
)
MESSAGES = st.lists(st.tuples(st.binary(max_size=300), FIELDS), min_size=1, max_size=5)


def assert_carries(message: dict[str, Any], payload: bytes, fields: dict[str, Any]) -> None:
    assert message["payload"] == payload
    assert message["sequence_id"] == fields["sequence_id"]
    assert message["key"] == fields.get("key")
    assert message["ordering_key"] == fields.get("ordering_key")
    assert message["properties"] == fields.get("properties", {})
    assert message["event_time_ms"] == fields.get("event_time_ms", 0)
    assert message["null_value"] == fields.get("null_value", False)


def test_the_vector_of_one_message() -> None:
    entry = encode_entry(b"hello", producer_name="p", sequence_id=0, publish_time_ms=TIME_MS)
    assert entry == HELLO
    assert encode_batch([(b"hello", {})], producer_name="p", publish_time_ms=TIME_MS) == HELLO


def test_the_vector_of_a_batch() -> None:
    entry = encode_batch([(b"a", {}), (b"bb", {})], producer_name="p", publish_time_ms=TIME_MS)
    assert entry == BATCH
    found = decode_entry(BATCH)
    assert [message["payload"] for message in found["messages"]] == [b"a", b"bb"]
    assert (found["batch"], found["message_count"], found["highest_sequence_id"]) == (True, 2, 1)
    assert (found["producer_name"], found["publish_time_ms"]) == ("p", TIME_MS)


def test_golden_bytes_with_all_fields() -> None:
    common: dict[str, Any] = {
        "producer_name": "prod",
        "publish_time_ms": TIME_MS,
        "schema_version": b"\0\1",
    }
    assert encode_batch(RICH, **common) == RICH_BATCH
    assert encode_batch(RICH[:1], **common) == RICH_SINGLE
    assert encode_entry(RICH[0][0], **common, **RICH[0][1]) == RICH_SINGLE
    for message, (payload, fields) in zip(decode_entry(RICH_BATCH)["messages"], RICH, strict=True):
        assert_carries(message, payload, fields)


def test_the_envelope_of_a_batch_carries_the_first_key_but_not_its_properties() -> None:
    found = decode_entry(RICH_BATCH)
    assert (found["key"], found["ordering_key"], found["schema_version"]) == ("k1", b"ord", b"\0\1")
    assert (found["properties"], found["event_time_ms"]) == ({}, 0)
    assert (found["sequence_id"], found["highest_sequence_id"]) == (7, 1 << 40)


@given(messages=MESSAGES, compression=st.integers(0, 4), producer_name=TEXT)
@settings(max_examples=scaled(300), deadline=None)
def test_batches_come_back(
    messages: list[tuple[bytes, dict[str, Any]]], compression: int, producer_name: str
) -> None:
    entry = encode_batch(
        messages, producer_name=producer_name, publish_time_ms=TIME_MS, compression=compression
    )
    found = decode_entry(entry)
    assert found["producer_name"] == producer_name
    assert found["compression"] == compression
    assert found["batch"] == (len(messages) > 1)
    for message, (payload, fields) in zip(found["messages"], messages, strict=True):
        assert_carries(message, payload, fields)


@given(
    payload=st.binary(max_size=300),
    fields=FIELDS,
    compression=st.integers(0, 4),
    deliver_at_ms=st.integers(-(2**63), 2**63 - 1),
    schema_version=st.binary(max_size=10),
)
@settings(max_examples=scaled(300), deadline=None)
def test_single_messages_come_back(
    payload: bytes,
    fields: dict[str, Any],
    compression: int,
    deliver_at_ms: int,
    schema_version: bytes,
) -> None:
    entry = encode_entry(
        payload,
        producer_name="p",
        publish_time_ms=TIME_MS,
        deliver_at_ms=deliver_at_ms,
        schema_version=schema_version,
        compression=compression,
        **fields,
    )
    found = decode_entry(entry)
    assert_carries(found["messages"][0], payload, fields)
    assert (found["deliver_at_ms"], found["schema_version"]) == (deliver_at_ms, schema_version)


@pytest.mark.parametrize("compression", range(5))
def test_large_batches_come_back(compression: int) -> None:
    messages = [(bytes([n % 256]) * n, {"key": str(n)}) for n in range(1500)]
    entry = encode_batch(
        messages, producer_name="p", publish_time_ms=TIME_MS, compression=compression
    )
    found = decode_entry(entry)["messages"]
    assert [(m["payload"], m["key"]) for m in found] == [(p, f["key"]) for p, f in messages]


@given(data=st.binary(max_size=3000), seed=st.integers(0, 2**32 - 1))
def test_the_two_checksums_agree(data: bytes, seed: int) -> None:
    assert entry_codec.crc32c(data, seed) == entry_codec.crc32c_portable(data, seed)


def test_hashes_take_any_buffer() -> None:
    text = b"123456789"
    buffers: list[bytes | bytearray | memoryview] = [text, bytearray(text), memoryview(text)]
    for data in buffers:
        assert entry_codec.crc32c(data) == 0xE3069283
    assert entry_codec.murmur3_32(b"Order-3459134") == 3112179635
    assert entry_codec.crc32c(b"6789", entry_codec.crc32c(b"12345")) == 0xE3069283


def test_a_key_that_is_not_utf8_comes_back() -> None:
    entry = encode_entry(
        b"x", producer_name="p", sequence_id=0, publish_time_ms=TIME_MS, key=b"\xff\xfe"
    )
    key = decode_entry(entry)["key"]
    again = encode_entry(b"x", producer_name="p", sequence_id=0, publish_time_ms=TIME_MS, key=key)
    assert again == entry


@given(data=st.data())
@settings(max_examples=scaled(500), deadline=None)
def test_damage_is_an_error_and_nothing_else(data: st.DataObject) -> None:
    damaged = bytearray(data.draw(st.sampled_from([HELLO, BATCH, RICH_BATCH, RICH_SINGLE])))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(2, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        decode_entry(bytes(damaged), verify=False)
    except CorruptDataError:
        pass


@given(garbage=st.binary(max_size=200))
@settings(max_examples=scaled(500), deadline=None)
def test_garbage_is_an_error_and_nothing_else(garbage: bytes) -> None:
    for entry in [garbage, b"\x0e\x01" + garbage, HELLO[:22] + b"\x58\x02" + garbage]:
        try:
            decode_entry(entry, verify=False)
        except CorruptDataError:
            pass


def test_every_truncation_is_noticed() -> None:
    for cut in range(len(RICH_BATCH)):
        with pytest.raises(CorruptDataError):
            decode_entry(RICH_BATCH[:cut])


def _recounted(count: int) -> bytes:
    """BATCH with another count in its envelope."""
    body = BATCH[6:].replace(b"\x58\x02", bytes([0x58, count]))
    return b"\x0e\x01" + struct.pack(">I", entry_codec.crc32c(body)) + body


def test_a_count_that_does_not_fit_is_corrupt() -> None:
    assert _recounted(2) == BATCH
    for count in [1, 3]:
        with pytest.raises(CorruptDataError, match="the count does not fit"):
            decode_entry(_recounted(count))


def test_more_than_the_limit_is_not_unpacked() -> None:
    entry = encode_entry(
        bytes(10_000_000), producer_name="p", sequence_id=0, publish_time_ms=0, compression=3
    )
    with pytest.raises(CorruptDataError, match="10000000 bytes are claimed"):
        decode_entry(entry, limit=1_000_000)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="at least one message"):
        encode_batch([], producer_name="p", publish_time_ms=0)
    with pytest.raises(TypeError):
        untyped: Any = "text"
        encode_entry(untyped, producer_name="p", sequence_id=0, publish_time_ms=0)
    with pytest.raises(OverflowError):
        encode_entry(b"", producer_name="p", sequence_id=-1, publish_time_ms=0)
