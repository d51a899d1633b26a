"""A copy of a folder that is made in another folder of this machine."""

from __future__ import annotations

import os

from pulsarx.backups.workplace import copied_blocks, refusals
from pulsarx.broker.folder.data_directory import SUBDIRECTORIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from pulsarx._pycore.ground.file_system import FileSystem
    from pulsarx.broker.catalogue.records import OffloadRecord

    Steps = Generator[None, None, None]


class FolderTarget:
    """See CopyTarget. Calls of one thread."""

    def __init__(
        self, source: str, work: str, files: FileSystem, meanwhile: Callable[[], object]
    ) -> None:
        """source: the folder that is copied; work: where to. meanwhile: called while an object is
        fetched, besides the steps."""
        self.copied: int = 0
        self._source = source
        self._work = work
        self._files = files
        self._meanwhile = meanwhile

    def begin(self) -> Steps:
        yield from ()
        with refusals(f"make the folders of {self._work}"):
            for name in SUBDIRECTORIES:
                os.mkdir(f"{self._work}/{name}")

    def expect(self, size: int) -> Steps:
        yield from ()

    def copy(self, name: str, size: int | None) -> Generator[None, None, bool]:
        try:
            for block in copied_blocks(f"{self._source}/{name}", f"{self._work}/{name}", size):
                self.copied += block
                yield
        except FileNotFoundError:
            return False
        return True

    def fetch(self, name: str, offload: OffloadRecord) -> Generator[None, None, bool]:
        from pulsarx.broker.offload.offloaded_ledger import copy_object

        yield from ()
        return copy_object(offload, f"{self._work}/{name}", self._fetched)

    def _fetched(self, size: int) -> None:
        self.copied += size
        self._meanwhile()

    def write(self, name: str, data: bytes) -> Steps:
        yield from ()
        path = f"{self._work}/{name}"
        with refusals(f"write {path}"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._files.create(path, data, exclusive=False)

    def remove(self, names: list[str]) -> Steps:
        yield from ()
        for name in names:
            path = f"{self._work}/{name}"
            with refusals(f"remove {path}"):
                if os.path.exists(path):
                    os.unlink(path)

    def size(self) -> int:
        """Bytes of all its files."""
        with refusals(f"measure {self._work}"):
            return sum(
                os.path.getsize(f"{folder}/{name}")
                for folder, _, names in os.walk(self._work)
                for name in names
            )
