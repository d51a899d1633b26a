"""The files of a copy that comes from a server."""

from __future__ import annotations

import os
import re
from io import FileIO

from pulsarx import errors
from pulsarx.backups.workplace import refusals
from pulsarx.broker.folder.data_directory import SUBDIRECTORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

# What is in a folder. Others, which a server that lies may send, lead elsewhere.
_PATH = re.compile(r"(?:[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}/){0,6}[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")
# Written down before more is written, as a server hangs up on a client that takes nothing for 20 s:
# a slow disk writes so much in that time.
_FLUSH_SIZE = 8 << 20


class ReceivedFolder:
    """One copy, made in a folder that is empty. One thread."""

    def __init__(self, work: str, what: str) -> None:
        """what: is done, for errors. StorageError, StorageFullError, of all methods."""
        self._work = work
        self._what = what
        self._file: FileIO | None = None  # the one that is written
        self._unflushed = 0
        self._sizes: dict[str, int] = {}
        self._name = ""
        with refusals(f"make the folders of {work}"):
            for name in SUBDIRECTORIES:
                os.mkdir(f"{work}/{name}")

    def __enter__(self) -> ReceivedFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._file is not None:
            self._file.close()

    def begin(self, name: Any) -> None:
        """Begin a file: what is written from here on is this file, from its first byte on."""
        path = self._path_of(name)
        self.finish()
        with refusals(f"write {path}"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = FileIO(path, "wb")
        self._name = name
        self._sizes[name] = self._unflushed = 0

    def write(self, data: bytes) -> None:
        """UnknownError: of no file."""
        file = self._file
        if file is None:
            raise errors.UnknownError(detail=f"{self._what}: bytes of no file came")
        with refusals(f"write {self._work}/{self._name}"):
            left = memoryview(data)
            while left:
                left = left[os.write(file.fileno(), left) :]
            self._sizes[self._name] += len(data)
            self._unflushed += len(data)
            if self._unflushed >= _FLUSH_SIZE:
                os.fsync(file.fileno())
                self._unflushed = 0

    def finish(self) -> None:
        """Have the file be on its disk."""
        file, self._file = self._file, None
        if file is not None:
            with refusals(f"write {self._work}/{self._name}"), file:
                os.fsync(file.fileno())

    def remove(self, names: Any) -> None:
        self.finish()
        for name in names if isinstance(names, list) else [names]:
            path = self._path_of(name)
            if self._sizes.pop(name, None) is not None:
                with refusals(f"remove {path}"):
                    os.unlink(path)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(self._sizes.values())

    def _path_of(self, name: object) -> str:
        if not isinstance(name, str) or not _PATH.fullmatch(name):
            raise errors.UnknownError(
                detail=f"{self._what}: a file {name!r:.200} came, which no folder has"
            )
        return f"{self._work}/{name}"
