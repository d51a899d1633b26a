"""Stand-in until the native one is there."""

from __future__ import annotations


def partition_hash(scheme: int, key: str) -> int:
    """scheme: 0 JavaStringHash, 1 Murmur3_32Hash; both with the sign bit cleared."""
    if scheme == 1:
        import mmh3

        return mmh3.hash(key.encode(), 0, signed=False) & 0x7FFFFFFF
    value = 0
    units = key.encode("utf-16-le")
    for at in range(0, len(units), 2):
        value = (31 * value + units[at] + (units[at + 1] << 8)) & 0xFFFFFFFF
    return value & 0x7FFFFFFF
