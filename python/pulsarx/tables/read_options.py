"""The options of reading topics as tables, in one form for `scan`, `sql` and the calls of asyncio."""

from __future__ import annotations

from typing import TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class ReadOptions(TypedDict, total=False):
    """What may be given by name; see `Client.read_table` and `Client.scan`."""

    schema: Any
    start: Any
    end: Any
    last: int | None
    keys: str | Iterable[str] | None
    metadata: Iterable[str]
    tombstones: str
    crypto_key_reader: Any
    progress: Any


class ScanOptions(ReadOptions, total=False):
    """What `Client.scan` has besides."""

    batch_size: int | None
