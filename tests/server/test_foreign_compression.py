"""Payloads as clients of other languages compress them: stored, delivered to all, and never counted
as acknowledged because they cannot be read here."""

from __future__ import annotations

import zlib

import pytest
from peer import Peer, names, packed_entry
from support.consumer_types import ALL_TYPES

import pulsarx
from pulsarx import InitialPosition, errors

ZLIB = 2
EARLIEST = InitialPosition.Earliest
TEXT = b"hello " * 50
ALL = pytest.mark.parametrize(
    "kind",
    ALL_TYPES,
)


def flushed(plain: bytes) -> bytes:
    """Zlib as the Java client writes it: flushed, and not ended."""
    stream = zlib.compressobj()
    return stream.compress(plain) + stream.flush(zlib.Z_SYNC_FLUSH)


def batch_of(*payloads: bytes) -> bytes:
    metadata = [b"\x18" + bytes([len(each)]) for each in payloads]
    return b"".join(
        len(each).to_bytes(4, "big") + each + payload
        for each, payload in zip(metadata, payloads, strict=True)
    )


@ALL
def test_zlib_without_an_end_comes_single_and_in_batches(
    client: pulsarx.Client, peer: Peer, kind: pulsarx.ConsumerType
) -> None:
    batch = batch_of(b"one", b"two")
    sent = [
        packed_entry(flushed(TEXT), ZLIB, len(TEXT)),
        packed_entry(flushed(batch), ZLIB, len(batch), 2),
    ]
    assert names(peer.produce(*sent)) == ["SEND_RECEIPT"] * 2
    peer.subscribe()
    told = peer.say("FLOW", consumer_id=0, permits=10)
    assert [each[2] for each in told] == sent
    consumer = client.subscribe("t", "here", kind, initial_position=EARLIEST)
    assert [each.data() for each in consumer.receive_many(10, 0)] == [TEXT, b"one", b"two"]


@ALL
def test_what_cannot_be_decompressed_stays_unacknowledged(
    client: pulsarx.Client, peer: Peer, kind: pulsarx.ConsumerType
) -> None:
    peer.produce(
        packed_entry(b"of nobody", ZLIB, 100), packed_entry(flushed(TEXT), ZLIB, len(TEXT))
    )
    consumer = client.subscribe("t", "s", kind, initial_position=EARLIEST)
    with pytest.raises(errors.UnreadableEntryError, match="ZLIB"):
        consumer.receive(0)
    message = consumer.receive(0)
    assert message.data() == TEXT
    consumer.acknowledge(message)
    assert client.admin.topics.stats("t")["subscriptions"]["s"]["msg_backlog"] == 1
