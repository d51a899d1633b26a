"""A stand-in for the file operations of the broker, with failures on demand."""

from __future__ import annotations

import os


class PlainFiles:
    """Files of the operating system. `fail` names the operations that raise OSError."""

    def __init__(self) -> None:
        self.fail: set[str] = set()

    def _may_fail(self, operation: str) -> None:
        if operation in self.fail:
            raise OSError(5, f"{operation} was told to fail")

    def create(self, path: str, data: bytes, exclusive: bool = True, flush: bool = True) -> None:
        self._may_fail("create")
        with open(path, "xb" if exclusive else "wb") as file:
            file.write(data)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def rename(self, source: str, target: str) -> None:
        self._may_fail("rename")
        os.rename(source, target)

    def unlink(self, path: str) -> None:
        self._may_fail("unlink")
        os.unlink(path)

    def flush_directory(self, path: str) -> None:
        self._may_fail("flush_directory")
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def keep_reserve(self, folder: str, name: str, size: int) -> None:
        pass

    def fill_reserve(self) -> None:
        pass

    def spend_reserve(self, least: int = 0) -> bool:
        return False

    def end_spending(self) -> None:
        pass

    def list(self, path: str) -> list[str]:
        return os.listdir(path)
