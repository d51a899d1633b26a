"""PULSARX, the file that makes a folder a data directory. Used by DataDirectory alone.

Four lines of text: a title, `format <n>`, `folder <32 hex digits>`, `crc32 <8 hex digits>` of what
is above it; and all of it once more (`copies`). Every later format keeps that form, title, format
and crc32, so an old program can tell a newer folder from a damaged one. Never changed, but for a
copy that was damaged.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.file_system import crc32
from pulsarx.broker.folder.copies import both_copies, copies_of
from pulsarx.broker.folder.storage_errors import folder_error
from pulsarx.errors import FolderError, NewerFormatError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.folder.file_operations import FileOperations

MARKER_NAME = "PULSARX"
FORMAT_VERSION = 1
_TITLE = "PulsarX folder"
_TITLE_BEFORE = b"PulsarX data directory\n"  # of what was made before the first release


def marker_read(files: FileOperations, folder: str) -> str | None:
    """The id of a folder, 32 hex digits, by its marker, or None when it has none.

    NewerFormatError, CorruptDataError, FolderError (made before the first release): it is not one
    this version can use. Nothing is changed.
    """
    path = f"{folder}/{MARKER_NAME}"
    try:
        data = files.read(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise folder_error(f"read {path}", error, "Make it readable for this user") from error
    if data.startswith(_TITLE_BEFORE):
        raise FolderError(
            detail=f"{folder} was made before the first release of PulsarX, 0.1.0, in a form that "
            "no release reads. Nothing was changed. Read it with the version that made it, and "
            "publish what is to be kept into a new folder"
        )
    first_of_cut = data.partition(b"\0")[0]
    copies = (*copies_of(data), first_of_cut)
    found = next(filter(None, map(_checked_lines, copies)), None)
    if found is None:
        raise errors.CorruptDataError(
            detail=f"{path} is damaged in both copies ({len(data)} bytes). Nothing was changed. "
            "Restore this file from a backup of the folder, or make a new folder of what is whole "
            f"of it: run pulsarx salvage {folder} TARGET"
        )
    version, folder_id = found
    if version > FORMAT_VERSION:
        raise NewerFormatError(
            detail=f"{folder} has format {version}; this PulsarX knows formats up to "
            f"{FORMAT_VERSION}. Upgrade PulsarX to open it"
        )
    return folder_id


def marker_create(files: FileOperations, folder: str, random_bytes: Callable[[int], bytes]) -> str:
    """Make a folder a data directory; its id. The first process that does so wins."""
    folder_id = random_bytes(16).hex()
    path = f"{folder}/{MARKER_NAME}"
    temporary = f"{path}.{folder_id}.tmp"
    try:
        marker_clear(files, folder)  # of a process that was killed here: its claim stands for ever
        files.create(temporary, marker_bytes(FORMAT_VERSION, folder_id))
        try:
            files.take_name(temporary, path)
        except FileExistsError:
            pass
        files.flush_directory(folder)
        marker_clear(files, folder)
    except OSError as error:
        advice = "Choose a folder where this user may write"
        raise folder_error(f"make {folder} a data directory", error, advice) from error
    made = marker_read(files, folder)
    if made is None:
        raise FolderError(
            detail=f"{path} vanished while the folder was being opened. Open it again"
        )
    return made


def marker_clear(files: FileOperations, folder: str) -> None:
    """Remove what those left who were killed while they made one. For the owner. OSError."""
    for name in files.list(folder):
        if name.startswith(f"{MARKER_NAME}.") and name.endswith(".tmp"):
            files.unlink(f"{folder}/{name}")


def marker_fault(files: FileOperations, folder: str, folder_id: str) -> str:
    """The fault of the marker of a folder of this id, though it can be read; "": none. OSError."""
    path = f"{folder}/{MARKER_NAME}"
    if files.read(path) == marker_bytes(FORMAT_VERSION, folder_id):
        return ""
    return f"{path} is damaged: one of its two copies; the other one is whole and is read"


def marker_mend(files: FileOperations, folder: str, folder_id: str) -> None:
    """Write the marker anew if one of its copies is damaged. For the owner. OSError."""
    fault = marker_fault(files, folder, folder_id)
    if not fault:
        return
    import logging

    path = f"{folder}/{MARKER_NAME}"
    temporary = f"{path}.{folder_id}.tmp"
    files.create(temporary, marker_bytes(FORMAT_VERSION, folder_id))
    files.rename(temporary, path)
    files.flush_directory(folder)
    logging.getLogger("pulsarx").warning("%s. The file was written anew", fault)


def marker_bytes(format_version: int, folder_id: str) -> bytes:
    """The file of such a marker."""
    above = f"{_TITLE}\nformat {format_version}\nfolder {folder_id}\n".encode()
    return both_copies(above + b"crc32 %08x\n" % crc32(above))


def _checked_lines(data: bytes) -> tuple[int, str] | None:
    """Format version and folder id; None: not what was written."""
    above, mark, checksum = data.rpartition(b"crc32 ")
    if not mark or len(data) > 65536 or checksum != b"%08x\n" % crc32(above):
        return None
    lines = above.decode("utf-8", "replace").splitlines()
    if len(lines) < 2 or lines[0] != _TITLE or not lines[1].startswith("format "):
        return None
    version = lines[1].removeprefix("format ")
    if not (version.isascii() and version.isdigit() and len(version) < 10) or int(version) < 1:
        return None
    folder_id = lines[2].removeprefix("folder ") if len(lines) > 2 else ""
    if int(version) == FORMAT_VERSION and len(folder_id) != 32:
        return None
    return int(version), folder_id
