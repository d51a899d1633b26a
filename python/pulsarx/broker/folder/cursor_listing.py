"""The files of the cursors, listed once for all of them: a folder may hold 100,000."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.file_operations import FileOperations
    from pulsarx.broker.folder.memory_directory import MemoryDirectory


def cursor_place(directory: DataDirectory | MemoryDirectory, cursor_id: int) -> tuple[str, bytes]:
    """What the paths of a cursor's files begin with, and what tells it from all other cursors."""
    identity = cursor_id.to_bytes(8, "little") + bytes.fromhex(directory.folder_id)[:8]
    return f"{directory.path}/cursors/{cursor_id}", identity


class CursorListing:
    """Any thread may call. Holds for the one process that owns the folder."""

    def __init__(self, files: FileOperations, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._lock = threading.Lock()
        self._names: dict[str, list[str]] | None = None  # by cursor; None: not listed yet
        self._asked: set[str] = set()

    def names_of(self, cursor_id: int) -> list[str]:
        """The names that begin with the cursor's id and a dot."""
        cursor = str(cursor_id)
        with self._lock:
            if self._names is None:
                self._names = self._listed()
            if cursor not in self._asked:
                self._asked.add(cursor)
                # Nobody but this cursor's store makes its files, and that is only made now.
                return self._names.pop(cursor, [])
        return self._listed().get(cursor, [])

    def _listed(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self._files.list(self._folder):
            found.setdefault(name.partition(".")[0], []).append(name)
        return found
