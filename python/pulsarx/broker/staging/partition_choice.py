"""Chooses the partition of a key for jobs that write ledgers without a producer. Any thread may
call."""

from __future__ import annotations

from pulsarx._pycore.publish.partition_hash import partition_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def partitions_of_keys(
    keys: Iterable[str | bytes], partition_count: int, hashing_scheme: int
) -> list[int]:
    """The partitions that producers of that scheme choose for the keys; -1 for an empty key, which
    is none.

    hashing_scheme: a HashingScheme or its number. ValueError: another one. A key that is no UTF-8
    goes where Java's client, which reads it as text, would send it.
    """
    scheme = int(hashing_scheme)
    return [partition_hash(scheme, key) % partition_count if key else -1 for key in keys]
