"""The hash by which a client and a broker find that they know the same topics."""

from __future__ import annotations

from pulsarx._pycore.ranges.entry_codec import crc32c

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def topics_hash(names: Iterable[str]) -> str:
    """CRC32C of the sorted names with commas between, least significant byte first, in hexadecimal.

    Source: TopicList.calculateHash, which prints Guava's HashCode.
    """
    return crc32c(",".join(sorted(names)).encode()).to_bytes(4, "little").hex()
