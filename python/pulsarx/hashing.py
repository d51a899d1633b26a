"""The hashes by which keys choose partitions and consumers, for a `message_router` and for programs
that want to know beforehand. One key at a time."""

from __future__ import annotations

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.enumerations import HashingScheme
from pulsarx.errors import shown

__all__ = ["key_shared_slot", "murmur3_32", "partition_of", "sticky_key_hash"]

SLOT_COUNT = 65_536
NON_KEY = b"NON_KEY"


def murmur3_32(key: str | bytes, seed: int = 0) -> int:
    """Return the hash that Pulsar's clients and brokers use, 0 .. 2^32-1, of bytes or of text as
    UTF-8."""
    control_plane.load("pulsarx._pycore.ranges.entry_codec")
    from pulsarx._pycore.ranges.entry_codec import murmur3_32 as murmur3

    found: int = murmur3(key.encode() if isinstance(key, str) else key, seed)
    return found


def partition_of(
    key: str, partitions: int, hashing_scheme: HashingScheme = HashingScheme.JavaStringHash
) -> int:
    """Return the partition that a producer with this `hashing_scheme` sends a key to.

    ValueError: no key, or no partition.
    """
    if not key or partitions < 1:
        raise ValueError(
            f"key {shown(key)}, {partitions} partitions: a key and a partition are needed"
        )
    if hashing_scheme == HashingScheme.Murmur3_32Hash:
        return (murmur3_32(key) & 0x7FFFFFFF) % partitions
    control_plane.load("pulsarx._pycore.publish.partition_hash")
    from pulsarx._pycore.publish.partition_hash import partition_hash

    return partition_hash(int(hashing_scheme), key) % partitions


def sticky_key_hash(key: str | bytes | None) -> int:
    """Return the hash that Key_Shared dispatches by. key: ordering key, else partition key; None:
    neither."""
    return murmur3_32(NON_KEY if key is None else key)


def key_shared_slot(key: str | bytes | None) -> int:
    """Return the slot of a key, 1 .. 65535, in the `sticky_ranges` of a ConsumerKeySharedPolicy."""
    return (sticky_key_hash(key) & 0x7FFFFFFF) % SLOT_COUNT or 1
