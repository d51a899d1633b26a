"""Bytes of the catalogue's files: commits and checkpoints. Used by Catalogue alone; knows no disk.

A file is a line of text, then a JSON object to its end:

  PULSARX COMMIT 1 crc32=<8 hex digits> size=<bytes of the object>

The checksum starts from the folder's id, so a file of another folder does not pass for one of this.
The checksum is that of zlib. A commit has all of it twice (`folder/copies`): a checkpoint can be
replaced by an older one and the commits behind it, a commit by nothing.
"""

from __future__ import annotations

from pulsarx._pycore.ground.file_system import crc32
from pulsarx._pycore.ground.plain_json import json_bytes, json_value
from pulsarx.broker.folder.copies import both_copies, copies_of
from pulsarx.errors import CatalogueError, NewerFormatError, detail_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COMMIT = "commit"
CHECKPOINT = "checkpoint"
END = "end"  # a record of end_log
TRANSACTIONS = "transactions"  # a row of transaction_log
SEQUENCES = "sequences"  # of topics/deduplication
TEMPORARY_SUFFIX = ".tmp"
# What errors advise where files of the catalogue cannot be read.
SALVAGE = "make a new folder of what is whole: run pulsarx salvage FOLDER TARGET"
_VERSIONS = {COMMIT: "1", CHECKPOINT: "2", SEQUENCES: "1", END: "1", TRANSACTIONS: "1"}
_WITH_TRANSACTIONS = "3"  # of a checkpoint: earlier programs would lose them
_READ = {
    COMMIT: ("1",),
    CHECKPOINT: ("1", "2", _WITH_TRANSACTIONS),
    SEQUENCES: ("1",),
    END: ("1",),
    TRANSACTIONS: ("1",),
}
_NUMBER_DIGITS = 20
_HEADER_SIZE_MAX = 200


def catalogue_file_name(kind: str, number: int) -> str:
    return f"{number:0{_NUMBER_DIGITS}d}.{kind}"


def catalogue_file_number(kind: str, name: str) -> int:
    """Number in the name of a file of this kind; -1: it is not one."""
    digits = name.removesuffix(f".{kind}")
    if len(digits) != _NUMBER_DIGITS or len(name) == len(digits) or not digits.isascii():
        return -1
    return int(digits) if digits.isdigit() else -1


def catalogue_file_encode(kind: str, folder_id: str, document: dict[str, Any]) -> tuple[bytes, int]:
    """The file of a document, one copy of that of a commit; and its checksum. ValueError,
    TypeError: JSON cannot say it."""
    body = json_bytes(document)
    version = _VERSIONS[kind]
    if kind == CHECKPOINT and document.get("next_transaction"):
        version = _WITH_TRANSACTIONS
    checksum = _checksum(kind, version, folder_id, body)
    header = f"PULSARX {kind.upper()} {version} crc32={checksum:08x} size={len(body)}\n"
    return b"%b%b\n" % (header.encode(), body), checksum


def catalogue_file_decode(
    kind: str, folder_id: str, path: str, data: bytes
) -> tuple[dict[str, Any], int]:
    """The document of a file and its checksum. Of a commit whose first copy is damaged the second
    one is read, which the log tells.

    CatalogueError: not what was written. NewerFormatError: whole, but of a later version.
    """
    if kind != COMMIT:
        return _decoded(kind, folder_id, path, data)
    copies = (*copies_of(data), _first_of_cut(data))
    try:
        return _decoded(kind, folder_id, path, copies[0])
    except CatalogueError as error:
        for copy in copies[1:]:
            try:
                found = _decoded(kind, folder_id, path, copy)
            except CatalogueError:
                continue
            import logging

            logging.getLogger("pulsarx").warning("%s", _one_copy(error))
            return found
        raise


def commit_fault(folder_id: str, path: str, data: bytes) -> str:
    """The fault of the file of a commit, though it can be read; "": none."""
    first, second = copies_of(data)
    if data == both_copies(first):
        return ""
    for copy in (first, second):
        try:
            _decoded(COMMIT, folder_id, path, copy)
        except CatalogueError as error:
            return _one_copy(error)
    return f"{path} is damaged: what lies between its two copies is not zero. Both are whole"


def commit_mended(folder_id: str, path: str, data: bytes) -> bytes:
    """The file of a commit as it was written, of one that can be read. CatalogueError: none can."""
    first, *others = (_first_of_cut(data), *copies_of(data))
    for copy in others:
        try:
            _decoded(COMMIT, folder_id, path, copy)
            return both_copies(copy)
        except CatalogueError:
            continue
    _decoded(COMMIT, folder_id, path, first)
    return both_copies(first)


def _first_of_cut(data: bytes) -> bytes:
    """The first copy of a file that was cut behind it, by the size that its header has."""
    header, _, body = data[:_HEADER_SIZE_MAX].partition(b"\n")
    size = header.rpartition(b" size=")[2]
    if not size.isdigit():
        return body
    return data[: len(header) + 1 + int(size) + 1]


def _one_copy(error: CatalogueError) -> str:
    why = detail_of(error).partition(". Nothing was changed")[0]
    return f"{why}. That is one of its two copies; the other one is whole and is read"


def _decoded(kind: str, folder_id: str, path: str, data: bytes) -> tuple[dict[str, Any], int]:
    header, mark, body = data[:_HEADER_SIZE_MAX].partition(b"\n")
    body = data[len(header) + 1 : -1]
    words = header.decode("ascii", "replace").split(" ")
    if not mark or len(words) != 5 or words[:2] != ["PULSARX", kind.upper()]:
        raise _damaged(path, data, "it does not start as one")
    checksum = _checksum(kind, words[2], folder_id, body)
    if words[4] != f"size={len(body)}" or data[-1:] != b"\n":
        raise _damaged(path, data, f"{len(body)} bytes where {words[4]!r} is written")
    if words[3] != f"crc32={checksum:08x}":
        raise _damaged(path, data, "its checksum does not match, or it is of another folder")
    if words[2] not in _READ[kind]:
        raise NewerFormatError(
            detail=f"{path} is of version {words[2]}; this PulsarX knows version "
            f"{_READ[kind][-1]}. Upgrade PulsarX to open the folder"
        )
    try:
        document = json_value(body)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, data, f"no JSON ({error})") from error
    if not isinstance(document, dict):
        raise _damaged(path, data, "no JSON object")
    return document, checksum


def _checksum(kind: str, version: str, folder_id: str, body: bytes) -> int:
    checksum: int = crc32(body, crc32(f"{kind} {version} {folder_id}".encode()))
    return checksum


def _damaged(path: str, data: bytes, why: str) -> CatalogueError:
    return CatalogueError(
        detail=f"{path} is damaged ({len(data)} bytes): {why}. Nothing was changed or deleted. "
        f"Restore this file from a backup of the folder, or {SALVAGE}"
    )
