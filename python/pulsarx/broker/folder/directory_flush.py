"""Makes the names in directories durable at once: flush_directories of many directories,
FlushedTogether of many files in one. Anybody may call."""

from __future__ import annotations

from functools import partial

from pulsarx.broker.folder.at_once import take_at_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.folder.file_operations import FileOperations


def flush_directories(files: FileOperations, paths: Iterable[str]) -> None:
    """Durable when it returns. OSError: of the first that failed."""
    take_at_once([partial(files.flush_directory, path) for path in sorted(set(paths))])


class FlushedTogether:
    """File operations for several files that are made in one directory at a time: it is flushed
    once, by `flush`, and not for each of them. From then on they are those they were made of.

    Nobody may rely on one of the files before."""

    def __init__(self, files: FileOperations, path: str) -> None:
        self._files = files
        self._path = path
        self._waits = True

    def flush_directory(self, path: str) -> None:
        if not self._waits or path != self._path:
            self._files.flush_directory(path)

    def flush(self) -> None:
        """Durable when it returns. OSError: it is not."""
        self._files.flush_directory(self._path)
        self._waits = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)
