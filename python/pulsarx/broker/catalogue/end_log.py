"""Ends of transactions behind the last commit: a file that is written in place, so that an end
costs one flush and no name. Used by CatalogueLog alone.

  <epoch>.ends    of the owner of that epoch, made whole with its first end
  <epoch>.ended   the same file when the next owner has come, until a commit has what is in it

A record has the form of a commit, and both copies of it begin at multiples of 64 bytes. The next
commit repeats the operations of all records; from then on the file is written from its beginning
again. Ends are numbered by `order` in a whole folder, so each is applied once, and what is left of
older records says nothing.

Readers take the file first and the commits then: what a record needs of those was there before it.
"""

from __future__ import annotations

from pulsarx.broker.catalogue.file import (
    END,
    catalogue_file_decode,
    catalogue_file_encode,
    catalogue_file_number,
)
from pulsarx.errors import CatalogueError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.broker.folder.file_operations import FileOperations

ENDS = "ends"
ENDED = "ended"
FILE_SIZE = 64 << 10
_ALIGNMENT = 64
_MARK = f"PULSARX {END.upper()} ".encode()
_HEADER_SIZE_MAX = 200


class EndRecord:
    """One end. Immutable by habit."""

    __slots__ = ("order", "behind", "operation", "flushed")

    def __init__(
        self, order: int, behind: int, operation: dict[str, Any], flushed: bool = True
    ) -> None:
        self.order: int = order  # 1, 2, 3 ... in this folder
        self.behind: int = behind  # number of the commit that it follows
        self.operation: dict[str, Any] = operation
        self.flushed: bool = flushed  # and all before it

    @staticmethod
    def of_document(path: str, document: dict[str, Any]) -> EndRecord:
        try:
            operation = document["operation"]
            made = EndRecord(
                int(operation["order"]),
                int(document["behind"]),
                operation,
                not document.get("unflushed"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CatalogueError(detail=f"{path} holds something else than ends") from error
        return made


class EndLog:
    """The file of one log. The catalogue's lock guards it; OSError passes through."""

    __slots__ = (
        "pending", "is_durable", "_files", "_path", "_folder_id", "_file", "_written", "_at",
        "_seen", "_seen_at",
    )  # fmt: skip

    def __init__(
        self, files: FileOperations, path: str, folder_id: str, file: Callable[[str, int], str]
    ) -> None:
        """file: the path of a file of a kind and number."""
        self.pending: list[dict[str, Any]] = []  # operations that no commit of the owner has yet
        self.is_durable: bool = False  # one of them is
        self._files = files
        self._path = path
        self._folder_id = folder_id
        self._file = file
        self._written = ""  # the owner's
        self._at = 0  # where its next record goes
        self._seen = (b"", b"")  # how it began, and went on, when it was read last
        self._seen_at = 0  # from where

    # Its owner ------------------------------------------------------------------------------------

    def begin(self, epoch: int) -> None:
        """Make the file, unless it is there."""
        if not self._written:
            path = self._file(ENDS, epoch)
            self._files.create(path, bytes(FILE_SIZE), exclusive=False)
            self._files.flush_directory(self._path)
            self._written, self._at = path, 0

    def encode(self, record: EndRecord) -> bytes:
        """Both copies of a record. ValueError, TypeError: JSON cannot say it."""
        document: dict[str, Any] = {"behind": record.behind, "operation": record.operation}
        if not record.flushed:
            document["unflushed"] = True
        data, _ = catalogue_file_encode(END, self._folder_id, document)
        return (data + bytes(-len(data) % _ALIGNMENT)) * 2

    def has_room(self, data: bytes) -> bool:
        return self._at + len(data) <= FILE_SIZE

    def write(self, data: bytes, *, flush: bool) -> None:
        """Add a record. FileNotFoundError: another owner has come, and may have read it."""
        self._files.write_at(self._written, data, self._at, flush)
        self._files.read_at(self._written, 0, 1)  # the next owner takes its name away first
        self._at += len(data)

    def take_back(self, data: bytes) -> bool:
        """Whether nothing is left of a record that could not be written."""
        empty = bytes(len(data))
        try:
            self._files.write_at(self._written, empty, self._at, True)
        except OSError:
            pass  # nothing may be there
        try:
            found = self._files.read_at(self._written, self._at, len(data))
        except OSError:
            return False
        # Both copies have to be gone; what an older record left says nothing.
        return next(_records(self._folder_id, self._written, found), None) is None

    def are_committed(self) -> None:
        """A commit has all of them, and is as durable."""
        self.pending, self.is_durable = [], False
        self._at = 0

    def remove(self) -> None:
        """Take the file away; for the owner's end, when a commit has what is in it."""
        if self._written and not self.pending:
            self._files.unlink(self._written)
            self._written = ""

    def take_over(self, names: list[str]) -> list[EndRecord]:
        """Have no owner of before write any more; what is in their files, by order."""
        for name in names:
            epoch = catalogue_file_number(ENDS, name)
            if epoch >= 0:
                self._files.rename(self._file(ENDS, epoch), self._file(ENDED, epoch))
        records = self.read([name.replace(f".{ENDS}", f".{ENDED}") for name in names])
        self.pending = [each.operation for each in records]
        self.is_durable = bool(records)
        return records

    def forget_old(self, names: list[str]) -> None:
        """A commit has what is in the files of owners of before."""
        for name in names:
            if catalogue_file_number(ENDED, name) >= 0:
                try:
                    self._files.unlink(f"{self._path}/{name}")
                except OSError:
                    pass  # the next owner does it

    # Its readers ----------------------------------------------------------------------------------

    def read(self, names: list[str]) -> list[EndRecord]:
        """All records that are whole, by order, of the files among these names."""
        found: dict[int, EndRecord] = {}
        for path in self._paths(names):
            try:
                data = self._files.read(path)
            except FileNotFoundError:
                continue  # a commit has what was in it
            for _, each in _records(self._folder_id, path, data):
                found.setdefault(each.order, each)
        return [found[order] for order in sorted(found)]

    def read_new(self, names: list[str]) -> list[EndRecord]:
        """The records that came since the last call, and perhaps others, by order."""
        paths = self._paths(names)
        if len(paths) == 1:
            try:
                return self._read_on(paths[0])
            except FileNotFoundError:
                pass
        self.forget_seen()
        return self.read(names)

    def has_new(self, epoch: int) -> bool:
        """Whether the owner of an epoch wrote something since the last `read_new`."""
        try:
            return self._look(self._file(ENDS, epoch)) != self._seen
        except FileNotFoundError:
            return False  # none, or a commit has them
        except OSError:
            return True  # who reads tells

    def forget_seen(self) -> None:
        """Read all of it the next time."""
        self._seen, self._seen_at = (b"", b""), 0

    def _look(self, path: str) -> tuple[bytes, bytes]:
        first = self._files.read_at(path, 0, _ALIGNMENT)
        return first, self._files.read_at(path, self._seen_at, _ALIGNMENT)

    def _read_on(self, path: str) -> list[EndRecord]:
        seen = self._look(path)
        if seen == self._seen:
            return []
        start = self._seen_at if seen[0] == self._seen[0] else 0
        data = self._files.read_at(path, start, FILE_SIZE - start)
        found = sorted(_records(self._folder_id, path, data), key=_order)
        if len(found) > 1 and found[-1][1].order == found[-2][1].order:
            size = found[-1][0]
            self._seen_at = start + size
            self._seen = (seen[0] if start else data[:_ALIGNMENT], data[size : size + _ALIGNMENT])
        else:  # both copies of a newer one come just now
            self.forget_seen()
        return [each for _, each in found]

    def _paths(self, names: list[str]) -> list[str]:
        numbers = sorted(
            (number, kind)
            for name in names
            for kind in (ENDED, ENDS)
            if (number := catalogue_file_number(kind, name)) >= 0
        )
        return [self._file(kind, number) for number, kind in numbers]


def _order(found: tuple[int, EndRecord]) -> tuple[int, int]:
    return found[1].order, found[0]


def _records(folder_id: str, path: str, data: bytes) -> Iterator[tuple[int, EndRecord]]:
    """Each copy that is whole: where it ends, and what it says. NewerFormatError."""
    at = data.find(_MARK)
    while at >= 0:
        following = at + 1
        if at % _ALIGNMENT == 0:
            header = data[at : at + _HEADER_SIZE_MAX].partition(b"\n")[0]
            size = header.rpartition(b" size=")[2]
            end = at + len(header) + 2 + (int(size) if size.isdigit() else 0)
            try:
                document, _ = catalogue_file_decode(END, folder_id, path, data[at:end])
            except CatalogueError:
                pass  # the other copy may be whole; it may be written just now
            else:
                following = end - end % -_ALIGNMENT
                yield following, EndRecord.of_document(path, document)
        at = data.find(_MARK, following)


def end_log_fault(folder_id: str, path: str, data: bytes) -> str:
    """The fault of a file of ends of which one copy of each record can be read; "": none."""
    counts: dict[int, int] = {}
    for _, each in _records(folder_id, path, data):
        counts[each.order] = counts.get(each.order, 0) + 1
    last = max(counts, default=0)
    # The oldest may be written over in part, the newest be cut by a kill.
    single = [order for order, count in counts.items() if count == 1 and order != last]
    newer = [order for order in single if order > min(counts)]
    if newer:
        return f"{path}: one of two copies of end {newer[0]} is damaged. The other one is read"
    return ""
