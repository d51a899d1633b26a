"""File operations for tests, in plain Python: `pulsarx.broker.folder.file_operations`."""

from __future__ import annotations

import os


class PlainFiles:
    """Asks the operating system; `flush=False` leaves flushing out, where a test needs none."""

    def __init__(self, flush: bool = True) -> None:
        self.flush = flush

    def guard(self, path: str) -> None:
        pass

    def is_there(self) -> bool:
        return True

    def create(self, path: str, data: bytes, exclusive: bool = True, flush: bool = True) -> None:
        flags = os.O_WRONLY | os.O_CREAT | (os.O_EXCL if exclusive else os.O_TRUNC)
        descriptor = os.open(path, flags, 0o666)
        try:
            written = 0
            while written < len(data):
                written += os.write(descriptor, data[written:])
            if self.flush and flush:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def flush_file(self, path: str) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            if self.flush:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_at(self, path: str, data: bytes, offset: int, flush: bool) -> None:
        with open(path, "r+b", buffering=0) as file:
            file.seek(offset)
            assert file.write(data) == len(data)
            if self.flush and flush:
                os.fdatasync(file.fileno())

    def read_at(self, path: str, offset: int, size: int) -> bytes:
        with open(path, "rb") as file:
            file.seek(offset)
            return file.read(size)

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def take_name(self, source: str, target: str) -> None:
        os.link(source, target)

    def link_or_copy(self, source: str, target: str) -> bool:
        os.link(source, target)
        return False

    def unlink(self, path: str) -> None:
        os.unlink(path)

    def flush_directory(self, path: str) -> None:
        if self.flush:
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def make_directory(self, path: str, mode: int = 0o755) -> None:
        os.mkdir(path, mode)

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
