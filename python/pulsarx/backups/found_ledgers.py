"""Tells which ledgers a file holds: one, or several that were merged. Used by salvaging, for copies
of the files of a folder, of which nothing else is known for certain.

A ledger counts by its header, or where that is gone by the uuid that its name record or the
catalogue has, which seeds the checksums of its entries. Behind one that is whole another one may
begin, at the next multiple of 4096.
"""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx._pycore.ledger.name_record import name_record_of
from pulsarx.backups.folder_view import HEADER_SIZE
from pulsarx.backups.workplace import read_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ALIGNMENT = 4096  # of merged ledgers
_MAGIC = b"PULSARXL"
_COPY_AT = 2048  # of the header in its block
_BLOCK = 1 << 20


class FoundLedger:
    """One ledger in a file. A value."""

    __slots__ = (
        "at", "file_id", "first_index", "headless", "name", "path", "sealed", "size", "source",
        "uuid",
    )  # fmt: skip

    def __init__(self, path: str, source: str, file_id: int, at: int, file: LedgerFile) -> None:
        self.path: str = path  # of the copy
        self.source: str = source  # of the file it is a copy of, in the folder
        self.file_id: int = file_id  # by its name
        self.at: int = at  # where it begins
        self.uuid: str = file.uuid.hex()
        self.headless: bool = file.headless
        # Of its first message, as its first entry says it; -1: it does not.
        self.first_index: int = file.said_first_index(file.mapped_size) or -1
        self.name: Any = None  # its NameRecord; None: it has none
        self.sealed: bool = False  # with a footer that holds
        self.size: int = 0  # bytes, to the end of the footer; 0: to where the next one begins


class Skipped:
    """Bytes of a file in which no ledger can be found. A value."""

    __slots__ = ("at", "size", "why")

    def __init__(self, at: int, size: int, why: str) -> None:
        self.at: int = at
        self.size: int = size
        self.why: str = why


class LedgersOfFile:
    """The ledgers of one file. Used once, by one thread."""

    def __init__(
        self, path: str, source: str, file_id: int, folder_id: str, known: dict[int, str]
    ) -> None:
        """path: of the copy. source: of the file, in the folder. known: the uuids by where ledgers
        begin in the file, as far as the catalogue says."""
        self.ledgers: list[FoundLedger] = []
        self.skipped: list[Skipped] = []
        self._path = path
        self._source = source
        self._file_id = file_id
        self._folder_id = folder_id
        self._known = known
        self._size = os.path.getsize(path)
        self._is_merged = any(known)
        self._why = ""  # no ledger begins where the last look was
        with open(path, "rb", buffering=0, opener=open_descriptor) as file:
            self._descriptor = file.fileno()
            self._find()

    def _find(self) -> None:
        at = 0
        while at < self._size and self._holds_anything(at):
            found = self._look(at)
            if found is None and at and not self._is_merged:
                return  # what a kill left behind the footer
            if found is None:
                end = self._next(at)
                if self._holds_anything(at, end):
                    self.skipped.append(Skipped(at, end - at, self._why))
            else:
                self.ledgers.append(found)
                self._is_merged |= bool(at) or self._is_of_merged(found)
                end = at + found.size
                if not found.sealed:
                    end = self._next(at) if self._is_merged else self._size
                    found.size = end - at
            at = -(-end // _ALIGNMENT) * _ALIGNMENT

    def _is_of_merged(self, found: FoundLedger) -> bool:
        return found.name is not None and found.name.ledger_id not in (0, self._file_id)

    def _look(self, at: int) -> FoundLedger | None:
        """The ledger that begins here; None: none does, which `_why` says."""
        block = read_at(self._descriptor, HEADER_SIZE, at)
        name = name_record_of(block)
        opened = self._opened(at, block, name)
        if opened is None:
            return None
        if opened.folder_id != self._folder_id:
            self._why = f"it is a ledger of another folder, {opened.folder_id}"
            return None
        found = FoundLedger(self._path, self._source, self._file_id, at, opened)
        if name is not None and name.uuid.hex() == found.uuid:
            found.name = name
        try:
            opened.summary()
            found.sealed, found.size = True, int(opened.sealed_size)
        except errors.StorageError:
            pass
        if at and not found.sealed and not self._is_merged:
            self._why = "it is not sealed, as merged ledgers are"
            return None
        return found

    def _opened(self, at: int, block: bytes, name: Any) -> LedgerFile | None:
        size = self._size - at
        wanted = [self._known[at]] if at in self._known else []
        if name is not None and name.folder_id.hex() == self._folder_id:
            wanted.append(name.uuid.hex())
        try:
            found = LedgerFile.open(self._path, self._file_id, at=at, size=size)
            if not found.unborn:
                return found
            self._why = "its header is gone"
        except errors.NewerFormatError:
            raise
        except errors.PulsarException:
            self._why = "its header is damaged in both copies"
        for uuid in wanted:
            try:
                found = LedgerFile.open(
                    self._path, self._file_id, at=at, size=size, uuid=uuid,
                    folder_id=self._folder_id,
                )  # fmt: skip
            except errors.PulsarException:
                continue
            if not found.unborn:
                return found
        return None

    def _next(self, begin: int) -> int:
        """The offset of the next ledger that is certain to be one of this folder, and no part of a
        message; else the end of the file."""
        for at in range(begin + _ALIGNMENT, self._size, _ALIGNMENT):
            if at in self._known:
                return at
            block = read_at(self._descriptor, HEADER_SIZE, at)
            if _MAGIC not in (block[:8], block[_COPY_AT : _COPY_AT + 8]):
                continue
            found = self._look(at)
            if found is not None and found.sealed and self._is_of_merged(found):
                return at
        return self._size

    def _holds_anything(self, begin: int, end: int | None = None) -> bool:
        """Whether the bytes are not all zeros."""
        stop = self._size if end is None else end
        for at in range(begin, stop, _BLOCK):
            if read_at(self._descriptor, min(_BLOCK, stop - at), at).strip(b"\0"):
                return True
        return False


def header_folder_id(path: str) -> str:
    """The folder that a file of ledgers says it was written for; "": it does not say. OSError."""
    with open(path, "rb", buffering=0, opener=open_descriptor) as file:
        block = read_at(file.fileno(), HEADER_SIZE, 0)
    try:
        found = LedgerFile.open(path, 0, read_to=HEADER_SIZE)
        if not found.unborn:
            return str(found.folder_id)
    except errors.PulsarException:
        pass
    name = name_record_of(block)
    return "" if name is None else str(name.folder_id.hex())
