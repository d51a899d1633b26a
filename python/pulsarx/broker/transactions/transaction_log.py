"""Transactions of clients of a network that have not ended, as rows of a file. The next owner of
the folder goes on with them, for their clients come back by other connections. Written by the
owner, read by the next one, and by readers while there is none.

  catalogue/<epoch>.transactions    of the owner of that epoch, made with its first row

A row has the form of a commit, once. What is cut ends the file: a kill leaves that of a row of
which nobody was told. Where whole rows are behind it the file is damaged, and nothing of it counts:
what goes on would lack a topic, or an acknowledgement.

  row     fields                                    when it is written
  begun   boot, held                                first
  opened  number, timeout_ms, opened_ms, role       before the client learns of it
  joined  number, topic                             before the first message goes there
  acked   number, topic, cursor_id, individual,     before the answer
          cumulative
  ended   number                                    behind the record that decided
  held    entries                                   at a close: (id, entries) of the ledgers that
                                                    are held back
  closed                                            last, by an owner that closed, and flushed all

Rows are not flushed, nor are the messages: both outlive a process, and not a power cut. So what was
begun under another boot of the machine counts only if it was closed, by the owner of just before.
Whatever else is lost of it aborts transactions, as their messages are then in no open one.

The newest file is the one that counts: an owner that was killed while it opened the folder has
made none, and that of the owner before it is still there.
"""

from __future__ import annotations

from contextlib import suppress

from pulsarx._pycore.ground.locks import RLock
from pulsarx.broker.catalogue.file import (
    TEMPORARY_SUFFIX,
    TRANSACTIONS,
    catalogue_file_decode,
    catalogue_file_encode,
    catalogue_file_name,
    catalogue_file_number,
)
from pulsarx.broker.folder.reserve import with_reserve
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.errors import CatalogueError, NewerFormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pulsarx.broker.folder.file_operations import FileOperations

    Row = dict[str, Any]

_BOOT = "/proc/sys/kernel/random/boot_id"
_HEADER_SIZE_MAX = 200
_MARK = b"PULSARX TRANSACTIONS "
_SIZE_MIN = 64 << 10  # a smaller file is not worth writing anew


class LeftTransaction:
    """A transaction that has not ended, as far as the log knows it."""

    __slots__ = ("number", "timeout_ms", "opened_ms", "role", "topics", "acks")

    def __init__(self, number: int, timeout_ms: int, opened_ms: int, role: str | None) -> None:
        self.number: int = number
        self.timeout_ms: int = timeout_ms
        self.opened_ms: int = opened_ms
        self.role: str | None = role
        self.topics: dict[str, bool] = {}  # that may have messages of it
        self.acks: list[Row] = []  # in their order

    def rows(self) -> Iterator[Row]:
        yield {
            "row": "opened", "number": self.number, "timeout_ms": self.timeout_ms,
            "opened_ms": self.opened_ms, "role": self.role,
        }  # fmt: skip
        for topic in self.topics:
            yield {"row": "joined", "number": self.number, "topic": topic}
        yield from self.acks

    def is_over(self, now_ms: int) -> bool:
        """Whether its deadline has passed."""
        return now_ms >= self.opened_ms + self.timeout_ms


class TransactionLog:
    """The file of one owner. Any thread may call; nothing of it waits for a device, but a close."""

    def __init__(self, files: FileOperations, catalogue: str, folder_id: str, epoch: int) -> None:
        """catalogue: the path of that folder."""
        self._files = files
        self._folder_id = folder_id
        self._catalogue = catalogue
        self._path = _path(catalogue, epoch)
        self._lock = RLock()
        self._open: dict[int, LeftTransaction] = {}
        self._held: dict[int, int] = {}  # see LeftLog
        self._boot: str | None = None  # asked for with the first row
        self._at = 0  # where the next row goes; 0: there is no file
        self._worn_at = _SIZE_MIN  # a file that would be greater is written anew

    def begin(self, left: dict[int, LeftTransaction], held: dict[int, int]) -> None:
        """Begin with those of the owner before, and what it had held back. StorageError: nothing
        was written."""
        with self._lock:
            self._open, self._held = dict(left), held
            try:
                if left:
                    # A full disk must not keep the folder from being opened.
                    with_reserve(self._files, self._write_anew)
            except OSError as error:
                raise storage_error(f"write {self._path}", error) from error

    def opened(self, number: int, timeout_ms: int, opened_ms: int, role: str | None) -> None:
        """Note one before its client learns of it. StorageError: it must not be opened."""
        made = LeftTransaction(number, timeout_ms, opened_ms, role)
        with self._lock:
            self._add(next(made.rows()))
            self._open[number] = made

    def joined(self, number: int, topic: str) -> None:
        """Note that messages of it are about to be stored there. StorageError: they must not be."""
        with self._lock:
            known = self._open.get(number)
            if known is not None and topic not in known.topics:
                self._add({"row": "joined", "number": number, "topic": topic})
                known.topics[topic] = True

    def acked(
        self, number: int, topic: str, cursor_id: int, individual: list[Any], cumulative: Any
    ) -> None:
        """Note an acknowledgement. StorageError: it must not be answered."""
        row = {
            "row": "acked", "number": number, "topic": topic, "cursor_id": cursor_id,
            "individual": individual, "cumulative": cumulative,
        }  # fmt: skip
        with self._lock:
            known = self._open.get(number)
            if known is not None:
                self._add(row)
                known.acks.append(row)

    def ended(self, number: int) -> None:
        """Note that the catalogue has its end, or that it had nothing. StorageError: the next owner
        ends it once more, of which nothing comes."""
        with self._lock:
            if self._open.pop(number, None) is not None:
                self._add({"row": "ended", "number": number})

    def close(self, held: dict[int, int], *, flushed: bool) -> None:
        """Add nothing any more. held: the entries of the ledgers that are held back, by their ids.
        flushed: whether all that it is about is on the device."""
        with self._lock:
            if not self._at:
                return
            try:
                if not self._open:
                    self._files.unlink(self._path)
                    return
                self._add({"row": "held", "entries": [list(each) for each in held.items()]})
                if flushed:
                    self._add({"row": "closed"})
                    self._files.flush_file(self._path)
                    self._files.flush_directory(self._catalogue)
            except OSError as error:
                raise storage_error(f"close {self._path}", error) from error

    def _add(self, row: Row) -> None:
        data = self._encode(row)
        try:
            if not self._at:
                self._write_anew()
            if self._at + len(data) > self._worn_at:
                self._write_anew()
            self._files.write_at(self._path, data, self._at, False)
        except OSError as error:
            # A part of it may be there: whoever reads stops in front of it, and the next one goes
            # over it.
            raise storage_error(f"note a transaction in {self._path}", error) from error
        self._at += len(data)

    def _rows(self) -> Iterator[Row]:
        held = [list(each) for each in self._held.items()]
        if self._boot is None:
            self._boot = boot_id(self._files)
        yield {"row": "begun", "boot": self._boot, "held": held}
        for each in list(self._open.values()):
            yield from each.rows()

    def _write_anew(self) -> None:
        data = b"".join(map(self._encode, self._rows()))
        temporary = self._path + TEMPORARY_SUFFIX
        with suppress(FileNotFoundError):
            self._files.unlink(temporary)
        self._files.create(temporary, data, flush=False)
        self._files.rename(temporary, self._path)
        self._at = len(data)
        self._worn_at = max(4 * len(data), _SIZE_MIN)  # most rows are of those that have ended

    def _encode(self, row: Row) -> bytes:
        return catalogue_file_encode(TRANSACTIONS, self._folder_id, row)[0]


class LeftLog:
    """The log of a dead owner, read. A value."""

    __slots__ = ("transactions", "held")

    def __init__(self) -> None:
        self.transactions: dict[int, LeftTransaction] = {}  # by number
        # The entries that ledgers which are held back had when an owner closed, by their ids.
        self.held: dict[int, int] = {}


def read_left(files: FileOperations, catalogue: str, folder_id: str, epoch: int) -> LeftLog:
    """Read the newest log; nothing, where a power cut came in between. epoch: of the owner
    just before. StorageError, NewerFormatError."""
    missing = -1
    while True:
        try:
            newest = max(_epochs(files, catalogue), default=-1)
            if newest == missing:
                return LeftLog()
            boot = boot_id(files) if newest >= 0 else ""
            data = files.read(_path(catalogue, newest))
        except FileNotFoundError:
            missing = newest  # the next owner has it in its own by now
            continue
        except OSError as error:
            raise storage_error(f"read the open transactions in {catalogue}", error) from error
        break
    return _left(folder_id, _path(catalogue, newest), data, boot, newest >= epoch)


def _left(folder_id: str, path: str, data: bytes, boot: str, is_last: bool) -> LeftLog:
    """is_last: nobody owned the folder behind the owner that wrote this."""
    said = LeftLog()
    found = said.transactions
    counts = False
    for row in _rows_of(folder_id, path, data):
        kind, number = row.get("row"), row.get("number", -1)
        if kind == "begun":
            counts = row["boot"] != "" and row["boot"] == boot
            said.held = dict(row["held"])
        elif kind == "held":
            said.held = dict(row["entries"])
        elif kind == "closed":
            counts = counts or is_last
        elif kind == "damaged":
            _tell_damaged(path)
            return LeftLog()
        elif kind == "opened":
            found[number] = LeftTransaction(
                number, row["timeout_ms"], row["opened_ms"], row["role"]
            )
        elif kind == "ended":
            found.pop(number, None)
        elif number in found and kind == "joined":
            found[number].topics[row["topic"]] = True
        elif number in found and kind == "acked":
            found[number].acks.append(row)
    return said if counts else LeftLog()


def _tell_damaged(path: str) -> None:
    import logging

    logging.getLogger("pulsarx").error(
        "%s is damaged: the transactions of clients of a network that were open are aborted", path
    )


def forget_left(files: FileOperations, catalogue: str, epoch: int) -> None:
    """Remove what owners up to an epoch left: the next one has it."""
    with suppress(OSError):
        for each in _epochs(files, catalogue):
            if each <= epoch:
                files.unlink(_path(catalogue, each))


def _epochs(files: FileOperations, catalogue: str) -> list[int]:
    """The owners of which there is a log."""
    numbers = (catalogue_file_number(TRANSACTIONS, name) for name in files.list(catalogue))
    return [each for each in numbers if each >= 0]


def boot_id(files: FileOperations) -> str:
    """The name that the kernel has for this boot of the machine; "": it does not say. OSError: it
    could not be asked."""
    try:
        return files.read_at(_BOOT, 0, 64).decode("ascii").strip()
    except (FileNotFoundError, PermissionError, ValueError):
        return ""


def _path(catalogue: str, epoch: int) -> str:
    return f"{catalogue}/{catalogue_file_name(TRANSACTIONS, epoch)}"


def _is_row(folder_id: str, path: str, data: bytes) -> bool:
    """Whether a whole row is here; data: without its mark."""
    try:
        catalogue_file_decode(TRANSACTIONS, folder_id, path, _MARK + data)
    except CatalogueError:
        return False
    return True


def _rows_of(folder_id: str, path: str, data: bytes) -> Iterator[Row]:
    at = 0
    while at < len(data):
        header = data[at : at + _HEADER_SIZE_MAX].partition(b"\n")[0]
        size = header.rpartition(b" size=")[2]
        end = at + len(header) + 2 + (int(size) if size.isdigit() else 0)
        try:
            row, _ = catalogue_file_decode(TRANSACTIONS, folder_id, path, data[at:end])
        except NewerFormatError:
            raise
        except CatalogueError:
            if any(_is_row(folder_id, path, each) for each in data[at + 1 :].split(_MARK)[1:]):
                yield {"row": "damaged"}
            return
        yield row
        at = end
