"""Which partition of a topic a message belongs to, for jobs that write ledgers themselves.

As a producer of the topic chooses it, so that one key is in one partition whoever wrote it.
"""

from __future__ import annotations

from pulsarx._pycore.partition_hash import partition_hash
from pulsarx.enumerations import HashingScheme

HASHING_SCHEMES = {
    "JavaStringHash": int(HashingScheme.JavaStringHash),
    "Murmur3_32Hash": int(HashingScheme.Murmur3_32Hash),
}


def partition_of_key(hashing_scheme: int, key: bytes | str, partition_count: int) -> int:
    """0 .. partition_count - 1. hashing_scheme: a value of HASHING_SCHEMES."""
    text = key if isinstance(key, str) else key.decode("utf-8", "replace")
    return int(partition_hash(hashing_scheme, text)) % partition_count
