"""The disk space that each folder keeps in reserve for the operations that free space: else a full
disk stays full.

The file `reserve` holds nothing. What frees room and finds none has it removed, is tried again, and
the file grows again by what is left. A kill leaves a smaller one or none, which the next owner
fills. It does not grow while any thread spends it, which `FileSystem.spend_reserve` counts. Another
program, or a thread that writes, may be quicker to take the room than who gave it up, but only what
it can use at that moment.
"""

from __future__ import annotations

from pulsarx.broker.folder.storage_errors import is_full
from pulsarx.errors import StorageFullError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from pulsarx.broker.folder.file_operations import FileOperations

    Result = TypeVar("Result")

RESERVE_NAME = "reserve"
RESERVE_SIZE = 128 << 10
# Sealing leaves so much of it, for commits: many ledgers may want to be sealed that free nothing.
SEALING_LEAVES = 48 << 10


def with_reserve(files: FileOperations, action: Callable[[], Result], least: int = 0) -> Result:
    """Do what frees room, or leads to it, at the cost of the reserve where there is no room.

    action: may be tried twice. least: the reserve is not touched when it has less."""
    try:
        return action()
    except (OSError, StorageFullError) as error:
        full = isinstance(error, StorageFullError) or is_full(error)
        if not full or not files.spend_reserve(least):
            raise
    try:
        return action()
    finally:
        files.end_spending()
