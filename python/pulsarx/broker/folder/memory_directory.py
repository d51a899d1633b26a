"""The data directory of a `memory:` broker: the same interface, no file anywhere.

Opened by the broker, one object per broker; what it holds goes with it.
"""

from __future__ import annotations

import errno
import os

from pulsarx.broker.folder.owner_lock import OwnerInfo
from pulsarx.errors import AlreadyClosed, ForkedError, OperationNotSupported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class MemoryFiles:
    """Small files in memory, for the catalogue. Guarded by the lock of the catalogue."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data: dict[str, bytes] = {}

    def guard(self, path: str) -> None:
        pass

    def is_there(self) -> bool:
        return True

    def create(self, path: str, data: bytes, exclusive: bool = True, flush: bool = True) -> None:
        if exclusive and path in self._data:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._data[path] = bytes(data)

    def flush_file(self, path: str) -> None:
        pass

    def read(self, path: str) -> bytes:
        try:
            return self._data[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None

    def write_at(self, path: str, data: bytes, offset: int, flush: bool) -> None:
        before = self.read(path)
        self._data[path] = before[:offset] + data + before[offset + len(data) :]

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        return self.read(path)[offset : offset + size]

    def rename(self, source: str, target: str) -> None:
        self._data[target] = self.read(source)
        del self._data[source]

    def take_name(self, source: str, target: str) -> None:
        self.create(target, self.read(source))

    def link_or_copy(self, source: str, target: str) -> bool:
        self.take_name(source, target)
        return True

    def unlink(self, path: str) -> None:
        self.read(path)
        del self._data[path]

    def flush_directory(self, path: str) -> None:
        pass

    def make_directory(self, path: str, mode: int = 0o755) -> None:
        pass

    def keep_reserve(self, folder: str, name: str, size: int) -> None:
        pass

    def fill_reserve(self) -> None:
        pass

    def spend_reserve(self, least: int = 0) -> bool:
        return False

    def end_spending(self) -> None:
        pass

    def list(self, path: str) -> list[str]:
        return [name.rpartition("/")[2] for name in self._data if name.rpartition("/")[0] == path]


class MemoryDirectory:
    """Stands where a DataDirectory would. Any thread may call; a forked child may not."""

    __slots__ = (
        "path", "read_only", "files", "folder_id", "started_ms", "epoch",
        "catalogue_path", "ends_path", "orphans_path", "_pid", "_closed",
    )  # fmt: skip

    def __init__(
        self,
        name: str = "",
        *,
        now_ms: int = 0,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self.path: str = f"memory:{name}"
        self.read_only: bool = False
        self.files: MemoryFiles = MemoryFiles()
        self.folder_id: str = random_bytes(16).hex()
        self.started_ms: int = now_ms
        self.epoch: int = 0
        self.catalogue_path: str = "catalogue"
        self.ends_path: str | None = None
        self.orphans_path: str | None = None
        self._pid = os.getpid()
        self._closed = False

    def check_usable(self) -> None:
        """Raise when it was closed, or when this process was forked from the one that opened it."""
        if os.getpid() != self._pid:
            raise ForkedError(
                detail=f"this process was forked from the owner of {self.path}, which stays with "
                "its parent. Open a client of its own in the child"
            )
        if self._closed:
            raise AlreadyClosed(detail=f"the broker {self.path} was closed")

    def check_writable(self) -> None:
        self.check_usable()

    def is_there(self) -> bool:
        """Nobody can remove it."""
        return True

    def owner(self) -> OwnerInfo | None:
        """The owner is this process, until it is closed."""
        return None if self._closed else OwnerInfo(self._pid, self.epoch, self.started_ms, "")

    def announce(self, epoch: int, control_socket: str = "") -> None:
        """Remember the epoch; no other process can ask for it."""
        self.check_writable()
        self.epoch = epoch

    def share(self, is_shared: bool, guests: tuple[int, ...] = ()) -> None:
        """No other process can use it."""

    def ledger_path(self, ledger_id: int) -> str | None:
        return None

    def cursor_path(self, cursor_id: int, generation: int) -> str | None:
        return None

    def prepare_ledger_path(self, ledger_id: int) -> str | None:
        return None

    def prepare_ledger_paths(self, ledger_ids: list[int]) -> list[str]:
        raise OperationNotSupported(detail=f"attach ledgers to {self.path}: it has no files")

    def set_aside(self, path: str) -> str:
        """There are no files, so none that the catalogue does not know."""
        return path

    def check_mounted(self) -> None:
        """There is no device that could be missing."""

    def ledger_files(self) -> Iterator[tuple[int, str]]:
        return iter(())

    def cursor_files(self) -> Iterator[tuple[int, int, str]]:
        return iter(())

    def close(self) -> None:
        """Let everything go. May be called twice."""
        self._closed = True
