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
_READ_SIZE = 4096  # at first, of what a reader has not seen


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
        "_is_flushed", "_seen", "_seen_at", "_seen_order",
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
        self._is_flushed = True  # what no commit has
        self._seen = (b"", b"")  # how it began, and went on, when it was read last
        self._seen_at = 0  # from where
        self._seen_order = 0  # of the last record before that

    # Its owner ------------------------------------------------------------------------------------

    def begin(self, epoch: int) -> bool:
        """Make the file, unless it is there; whether it was made just now: another owner may have
        come before, who does not know of it."""
        if self._written:
            return False
        path = self._file(ENDS, epoch)
        self._files.create(path, bytes(FILE_SIZE), exclusive=False)
        self._files.flush_directory(self._path)
        self._written, self._at = path, 0
        return True

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
        self._is_flushed = flush

    def take_back(self, data: bytes) -> bool:
        """Whether nothing is left of a record that could not be written."""
        empty = bytes(len(data))
        try:
            was_there = self._is_there(data)
            try:
                self._files.write_at(self._written, empty, self._at, True)
            except OSError:
                if was_there:  # so the device may have it, whatever is read here
                    return False
            return not self._is_there(data)
        except OSError:
            return False

    def _is_there(self, data: bytes) -> bool:
        """Whether a copy of a record is; what an older one left says nothing."""
        found = self._files.read_at(self._written, self._at, len(data))
        return next(_records(self._folder_id, self._written, found), None) is not None

    def flush(self) -> None:
        """Make durable what was written without a flush."""
        if not self._is_flushed:
            self._files.flush_file(self._written)
            self._is_flushed = self.is_durable = True

    def are_committed(self) -> None:
        """A commit has all of them, and is as durable."""
        self.pending, self.is_durable = [], False
        self._at = 0
        self._is_flushed = True

    def remove(self) -> None:
        """Take the file away; for the owner's end, when a commit has what is in it."""
        if self._written and not self.pending:
            self._files.unlink(self._written)
            self._written = ""

    def take_over(self, names: list[str]) -> list[EndRecord]:
        """Have no owner of before write any more; what is in their files, by order. `keep` says
        what counts of it."""
        for name in names:
            epoch = catalogue_file_number(ENDS, name)
            if epoch >= 0:
                self._files.rename(self._file(ENDS, epoch), self._file(ENDED, epoch))
        return self.read([name.replace(f".{ENDS}", f".{ENDED}") for name in names])

    def keep(self, records: list[EndRecord], order: int, names: list[str]) -> None:
        """The next commit is to have those of the records, which were taken over, up to this order:
        those behind one that a power cut took are void, so nobody may find them later."""
        kept = [each for each in records if each.order <= order]
        self.pending = [each.operation for each in kept]
        self.is_durable = bool(kept)
        if len(kept) < len(records):
            for path in self._paths([name.replace(f".{ENDS}", f".{ENDED}") for name in names]):
                for start, end, each in _records(self._folder_id, path, self._files.read(path)):
                    if each.order > order:
                        self._files.write_at(path, bytes(end - start), start, True)

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
            for *_, each in _records(self._folder_id, path, data):
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
        self._seen, self._seen_at, self._seen_order = (b"", b""), 0, 0

    def _look(self, path: str) -> tuple[bytes, bytes]:
        first = self._files.read_at(path, 0, _ALIGNMENT)
        return first, self._files.read_at(path, self._seen_at, _ALIGNMENT)

    def _read_on(self, path: str) -> list[EndRecord]:
        seen = self._look(path)
        if seen == self._seen:
            return []
        start = order = 0
        if seen[0] == self._seen[0]:  # else it is written from its beginning again
            start, order = self._seen_at, self._seen_order
        self.forget_seen()
        size = _READ_SIZE
        while True:
            data = self._files.read_at(path, start, size)
            found, end = _pairs(self._folder_id, path, data, order)
            if len(data) < size or 0 <= end <= size - _ALIGNMENT:
                break
            size *= 8
        if end < 0:  # one is damaged, or comes just now
            return sorted((each for *_, each in _records(self._folder_id, path, data)), key=_order)
        self._seen = (seen[0] if start else data[:_ALIGNMENT], data[end : end + _ALIGNMENT])
        self._seen_at = start + end
        self._seen_order = found[-1].order if found else order
        return found

    def _paths(self, names: list[str]) -> list[str]:
        numbers = sorted(
            (number, kind)
            for name in names
            for kind in (ENDED, ENDS)
            if (number := catalogue_file_number(kind, name)) >= 0
        )
        return [self._file(kind, number) for number, kind in numbers]


def _order(record: EndRecord) -> int:
    return record.order


def _pairs(folder_id: str, path: str, data: bytes, order: int) -> tuple[list[EndRecord], int]:
    """The records after one of this order from the beginning of data on, and where they end; -1:
    what is there is not whole. NewerFormatError."""
    found: list[EndRecord] = []
    at = 0
    while True:
        first = _record_at(folder_id, path, data, at)
        if first is None:
            return found, -1 if data.startswith(_MARK, at) else at
        if first[1].order <= order:
            return found, at  # of before the last commit
        second = _record_at(folder_id, path, data, first[0])
        if second is None or second[1].order != first[1].order:
            return found, -1
        found.append(first[1])
        at, order = second[0], first[1].order


def _records(folder_id: str, path: str, data: bytes) -> Iterator[tuple[int, int, EndRecord]]:
    """Each copy that is whole: where it is, and what it says. NewerFormatError."""
    at = data.find(_MARK)
    while at >= 0:
        found = _record_at(folder_id, path, data, at) if at % _ALIGNMENT == 0 else None
        if found is not None:
            yield at, *found
        at = data.find(_MARK, at + 1 if found is None else found[0])


def _record_at(folder_id: str, path: str, data: bytes, at: int) -> tuple[int, EndRecord] | None:
    """The copy that begins here, and where it ends; None: none is whole. NewerFormatError."""
    if not data.startswith(_MARK, at):
        return None
    header = data[at : at + _HEADER_SIZE_MAX].partition(b"\n")[0]
    size = header.rpartition(b" size=")[2]
    end = at + len(header) + 2 + (int(size) if size.isdigit() else 0)
    try:
        document, _ = catalogue_file_decode(END, folder_id, path, data[at:end])
    except CatalogueError:
        return None  # the other copy may be whole; it may be written just now
    return end - end % -_ALIGNMENT, EndRecord.of_document(path, document)


def end_log_fault(folder_id: str, path: str, data: bytes) -> str:
    """The fault of a file of ends of which one copy of each record can be read; "": none."""
    counts: dict[int, int] = {}
    last = 0
    for *_, each in _records(folder_id, path, data):
        if each.order < last:
            break  # of before the last commit: the first of them may be written over in part
        last = each.order
        counts[last] = counts.get(last, 0) + 1
    # The newest may be cut by a kill.
    single = [order for order, count in counts.items() if count == 1 and order != last]
    if single:
        return f"{path}: one of two copies of end {single[0]} is damaged. The other one is read"
    return ""
