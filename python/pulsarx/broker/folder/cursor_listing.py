"""The files of the cursors, listed once for all of them: a folder may hold 100,000."""

from __future__ import annotations

import threading

from pulsarx.broker.folder.storage_errors import storage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.folder.file_operations import FileOperations


class CursorListing:
    """Any thread may call. Holds for the one process that owns the folder."""

    def __init__(self, files: FileOperations, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._lock = threading.Lock()
        self._names: dict[str, list[str]] | None = None  # by cursor; None: not listed yet

    def take(self, cursor_id: int) -> list[str]:
        """The names that begin with the cursor's id and a dot. They are the caller's from now on,
        and so is what comes to them: nobody but a cursor's store makes its files."""
        with self._lock:
            if self._names is None:
                self._names = self._listed()
            return self._names.pop(str(cursor_id), [])

    def list_again(self) -> None:
        """What was taken could not be opened: the next one who takes finds what is there then."""
        with self._lock:
            self._names = None

    def _listed(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        try:
            names = self._files.list(self._folder)
        except OSError as error:
            raise storage_error(f"list {self._folder}", error) from error
        for name in names:
            found.setdefault(name.partition(".")[0], []).append(name)
        return found
