"""The options of reading topics as tables, in one form for `scan`, `sql` and asyncio."""

from __future__ import annotations

from typing import TypedDict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class ReadOptions(TypedDict, total=False):
    """Options that are given by name; see `Client.read_table` and `Client.scan`."""

    schema: Any
    start: Any
    end: Any
    last: int | None
    keys: str | Iterable[str] | None
    selector: str | None
    metadata: Iterable[str]
    tombstones: str
    crypto_key_reader: Any
    progress: Any


class ScanOptions(ReadOptions, total=False):
    """Options of `Client.scan`."""

    batch_size: int | None
