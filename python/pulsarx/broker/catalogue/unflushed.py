"""Commits that were written and not flushed: which there are, and the file that says so. Used by
CatalogueLog alone.

With durability `os` or `interval` a topic that a producer, consumer or reader makes needs not to be
on the device when it returns. Its commit says `unflushed`; a power cut may take it or leave it
damaged. So that this is told from other damage, `<number>.unflushed` lies durably in the folder
before the first such commit, which has this number, is written, and until all of them are flushed.

Every other commit flushes those before it first. So it never follows one that may be missing, and
what a power cut takes is the end of the catalogue: topics in which nothing is stored, as a ledger
or a subscription comes with a commit that is flushed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.folder.file_operations import FileOperations

UNFLUSHED = "unflushed"


class UnflushedCommits:
    """The unflushed commits at the end of one log. The catalogue's lock guards it; OSError passes
    through."""

    __slots__ = ("numbers", "announced", "_file", "_files", "_path")

    def __init__(self, files: FileOperations, path: str, file: Callable[[str, int], str]) -> None:
        """file: the path of a file of a kind and number."""
        self.numbers: list[int] = []
        self._files = files
        self._path = path
        self._file = file
        self.announced: list[int] = []  # the files that say so, as far as they are known

    def announce(self, number: int) -> None:
        """Say durably that commits from this number on may be lost, unless that is said already."""
        if self.announced:
            return
        try:
            self._files.create(self._file(UNFLUSHED, number), b"", flush=False)
        except FileExistsError:
            pass
        self._files.flush_directory(self._path)
        self.announced.append(number)

    def flush(self, kind: str) -> None:
        """Make all of them durable."""
        if not self.numbers:
            return
        for number in self.numbers:
            try:
                self._files.flush_file(self._file(kind, number))
            except FileNotFoundError:
                pass  # folded by the owner, so a checkpoint has it
        self._files.flush_directory(self._path)
        self.numbers = []

    def withdraw(self, announced: list[int]) -> None:
        """Take away what says that commits may be lost, once they are flushed. These files and the
        known ones; durable after the next flush of the folder."""
        for number in {*announced, *self.announced}:
            try:
                self._files.unlink(self._file(UNFLUSHED, number))
            except FileNotFoundError:
                pass
        self.announced = []
