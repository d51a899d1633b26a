"""A copy of a folder that is sent to another process, as records."""

from __future__ import annotations

import os

from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx.backups.records import BLOCK, PULSE, record
from pulsarx.broker.folder.storage_errors import storage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import IO

    from pulsarx.broker.catalogue.records import OffloadRecord

    Steps = Generator[bytes, None, None]


class StreamTarget:
    """See CopyTarget. What the generators yield is to be sent, in this order. Calls of one thread
    at a time; nothing is kept of what was sent."""

    def __init__(self, source: str, check: Callable[[], None]) -> None:
        """source: the folder that is copied. check: called while an object is fetched, by any
        thread; raises Stopped when nobody wants the copy any more."""
        self.copied: int = 0
        self._source = source
        self._check = check
        self._sizes: dict[str, int] = {}  # of the files of the copy

    def begin(self) -> Steps:
        yield PULSE

    def expect(self, size: int) -> Steps:
        yield record({"total": size})

    def copy(self, name: str, size: int | None) -> Generator[bytes, None, bool]:
        path = f"{self._source}/{name}"
        try:
            with open(path, "rb", buffering=0, opener=open_descriptor) as file:
                yield from self._file(name)
                yield from self._blocks(name, file, size)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise storage_error(f"read {path}", error) from error
        return True

    def fetch(self, name: str, offload: OffloadRecord) -> Generator[bytes, None, bool]:
        from pulsarx.broker.offload.offloaded_ledger import fetch_object

        file = fetch_object(offload, self._source, self._check)
        if file is None:
            return False
        with file:
            yield from self._file(name)
            yield from self._blocks(name, file, None)
        return True

    def write(self, name: str, data: bytes) -> Steps:
        copied = self.copied
        yield from self._file(name)
        for at in range(0, len(data), BLOCK):
            yield self._block(name, data[at : at + BLOCK])
        self.copied = copied

    def remove(self, names: list[str]) -> Steps:
        sent = [each for each in names if self._sizes.pop(each, None) is not None]
        for at in range(0, len(sent), 1000):
            yield record({"remove": sent[at : at + 1000]})

    def end(self) -> bytes:
        return record({"end": sum(self._sizes.values())})

    def _file(self, name: str) -> Steps:
        self._sizes[name] = 0
        yield record({"file": name})

    def _blocks(self, name: str, file: IO[bytes], size: int | None) -> Steps:
        copied = 0
        while size is None or copied < size:
            wanted = BLOCK if size is None else min(BLOCK, size - copied)
            data = os.pread(file.fileno(), wanted, copied)
            if not data:
                return
            copied += len(data)
            yield self._block(name, data)

    def _block(self, name: str, data: bytes) -> bytes:
        self._sizes[name] += len(data)
        self.copied += len(data)
        return record({}, data)
