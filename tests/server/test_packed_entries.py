"""What is unpacked in the memory of a broker: nothing of what it only passes on, and a bounded
part of what waits for consumers of its own process."""

from __future__ import annotations

import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from peer import Peer, packed_entry, varint

import pulsarx
from pulsarx.wire.commands import EXCLUSIVE, FAILOVER, KEY_SHARED, SHARED

ZLIB = 2
MIB = 1 << 20
SIZE = 4 * MIB
COUNT = 16
EARLIEST = pulsarx.InitialPosition.Earliest
pytestmark = pytest.mark.standard

ALL = pytest.mark.parametrize("kind", [EXCLUSIVE, FAILOVER, SHARED, KEY_SHARED])


@contextmanager
def growing_at_most(size: int) -> Iterator[None]:
    """Of what Python objects take, unpacked payloads among them."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= size


def single() -> bytes:
    return packed_entry(zlib.compress(bytes(SIZE), 9), ZLIB, SIZE)


def batch_of_two_keys() -> bytes:
    half = bytes(SIZE // 2)
    plain = b""
    for key in (b"a", b"b"):
        size = b"\x12\x01" + key + b"\x18" + varint(len(half))
        plain += len(size).to_bytes(4, "big") + size + half
    return packed_entry(zlib.compress(plain, 9), ZLIB, len(plain), 2)


@ALL
@pytest.mark.parametrize("make", [single, batch_of_two_keys])
def test_what_goes_to_a_network_client_is_not_kept_unpacked(
    peer: Peer, kind: int, make: Callable[[], bytes]
) -> None:
    """However many permits the client has, and when it comes again, too."""
    sent = [make()] * COUNT
    peer.produce(*sent)
    peer.subscribe(type=kind)
    # One at a time is unpacked where its keys are looked at.
    with growing_at_most(3 * SIZE):
        told = peer.say("FLOW", consumer_id=0, permits=1000)
        assert [each[2] for each in told] == sent
        told = peer.say("REDELIVER_UNACKNOWLEDGED", consumer_id=0)
        assert [each[2] for each in told if each[0] == "MESSAGE"] == sent


def test_damage_inside_a_compressed_entry_is_left_to_the_client(peer: Peer) -> None:
    """A broker does not look there."""
    sent = [packed_entry(b"of nobody", ZLIB, 100), single()]
    peer.produce(*sent)
    peer.subscribe(type=SHARED)
    assert [each[2] for each in peer.say("FLOW", consumer_id=0, permits=9)] == sent


@pytest.mark.parametrize("kind", [pulsarx.ConsumerType.Shared, pulsarx.ConsumerType.KeyShared])
def test_what_waits_for_consumers_of_the_process_is_unpacked_in_part(
    client: pulsarx.Client, peer: Peer, kind: pulsarx.ConsumerType
) -> None:
    """64 MiB of all consumers; what is more is unpacked again when its turn comes."""
    peer.produce(*[batch_of_two_keys()] * 40)
    consumers = [client.subscribe("t", name, kind, initial_position=EARLIEST) for name in "ab"]
    with growing_at_most(64 * MIB + 4 * SIZE):
        for consumer in consumers:
            consumer.acknowledge(consumer.receive(0))
        for consumer in consumers:
            for _ in range(79):
                message = consumer.receive(0)
                assert message.data() == bytes(SIZE // 2)
                consumer.acknowledge(message)
                del message
            with pytest.raises(pulsarx.Timeout):
                consumer.receive(0)
