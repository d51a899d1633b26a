"""The files of the cursors, listed once for all of them: a folder may hold 100,000."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker.folder.storage_errors import storage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.file_operations import FileOperations
    from pulsarx.broker.folder.memory_directory import MemoryDirectory

_UNFINISHED_SUFFIX = ".unfinished"  # of CursorStore


def cursor_place(directory: DataDirectory | MemoryDirectory, cursor_id: int) -> tuple[str, bytes]:
    """The beginning of the paths of a cursor's files, and the bytes that tell it from all other
    cursors."""
    identity = cursor_id.to_bytes(8, "little") + bytes.fromhex(directory.folder_id)[:8]
    return f"{directory.path}/cursors/{cursor_id}", identity


class CursorListing:
    """Any thread may call. Holds for the one process that owns the folder."""

    def __init__(self, files: FileOperations, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._lock = Lock()
        self._has_cleared = False
        self._names: dict[str, list[str]] | None = None  # by cursor; None: not listed yet

    def take(self, cursor_id: int) -> list[str]:
        """The names that begin with the cursor's id and a dot. They are the caller's from now on,
        and so are later ones: only the cursor's store makes its files."""
        with self._lock:
            if self._names is None:
                self._names = self._listed()
            return self._names.pop(str(cursor_id), [])

    def list_again(self) -> None:
        """List once more at the next take, because files that were taken could not be opened."""
        with self._lock:
            self._names = None

    def _listed(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        try:
            names = self._files.list(self._folder)
        except OSError as error:
            raise storage_error(f"list {self._folder}", error) from error
        if not self._has_cleared:  # before the first cursor of this owner is written
            self._has_cleared = True
            names = [name for name in names if not self._clear(name)]
        for name in names:
            found.setdefault(name.partition(".")[0], []).append(name)
        return found

    def _clear(self, name: str) -> bool:
        """Remove a file that a killed owner had only begun to write; False: it is none."""
        if not name.endswith(_UNFINISHED_SUFFIX):
            return False
        try:
            self._files.unlink(f"{self._folder}/{name}")
        except OSError:
            return False  # its cursor writes it anew, or the next owner removes it
        return True
