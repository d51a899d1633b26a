"""The folder in which a copy is made: it gets its name when it is whole."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager, suppress

from pulsarx import errors
from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx.broker.folder.data_directory import PRIVATE_MODE
from pulsarx.broker.folder.storage_errors import folder_error, storage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pulsarx._pycore.ground.file_system import FileSystem

BLOCK = 8 << 20  # bytes copied between two looks at the time
_SUFFIX = "unfinished"


@contextmanager
def workplace(target: str, source: str, files: FileSystem) -> Iterator[str]:
    """A folder beside the target, which becomes it, durably, at the end of the block. It is as
    private as an empty folder that is there, else to its user alone. When the
    block fails or is interrupted it is removed; behind the moment in which it becomes the target
    that stays, whole, and only its name may not be durable yet. FolderError: the target is in use,
    or inside of the source.

    target, source: as os.path.realpath gives them; a source that is none of this machine is a URL.
    """
    _check_target(target, source)
    unfinished = f"{target}.{os.urandom(4).hex()}.{_SUFFIX}"
    try:
        try:
            os.mkdir(unfinished, PRIVATE_MODE)
            if os.path.isdir(target):
                mode = stat.S_IMODE(os.stat(target).st_mode)
                os.chmod(unfinished, mode)  # as whoever made the target wants it
        except OSError as error:
            advice = "The folder above the target must be there, and writable for this user"
            raise folder_error(f"make {unfinished}", error, advice) from error
        yield unfinished
        _check_target(target, source)
        try:
            for folder, _, _ in os.walk(unfinished, topdown=False):
                files.flush_directory(folder)
            os.rename(unfinished, target)
            files.flush_directory(os.path.dirname(target))
        except OSError as error:
            raise storage_error(f"give {unfinished} its name {target}", error) from error
    except BaseException:
        for _ in range(2):  # it ignores no error of closing a folder
            with suppress(OSError):
                shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _check_target(target: str, source: str) -> None:
    if os.path.isabs(source) and os.path.commonpath([source, target]) == source:
        raise errors.FolderError(detail=f"copy {source} to {target}: the target is inside of it")
    try:
        taken = os.listdir(target)
    except FileNotFoundError:
        return
    except OSError as error:
        advice = "Give a target that does not exist, or an empty folder"
        raise folder_error(f"copy {source} to {target}", error, advice) from error
    if taken:
        raise errors.FolderError(
            detail=f"copy {source} to {target}: it holds {taken[0]!r}. Nothing was changed. Give a "
            "target that does not exist, or an empty folder"
        )


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """Raise what the system refuses as StorageError, StorageFullError. what: what is done."""
    try:
        yield
    except OSError as error:
        where = f", {error.filename}" if error.filename and str(error.filename) not in what else ""
        raise storage_error(what + where, error) from error


def read_at(descriptor: int, size: int, at: int) -> bytes:
    """So many bytes of a file; fewer at its end alone, where one call may give fewer anywhere.
    OSError."""
    data = os.pread(descriptor, size, at)
    if not data or len(data) == size:
        return data
    parts = [data]
    while data and (size := size - len(data)):
        at += len(data)
        data = os.pread(descriptor, size, at)
        parts.append(data)
    return b"".join(parts)


def copied_blocks(source: str, target: str, size: int | None) -> Iterator[int]:
    """Copies a file, durably but for its name, and yields the bytes of each block. size: how many
    at most; None: all. FileNotFoundError: there is no source."""
    what = f"copy {source} to {target}"
    copied = 0
    try:
        with (
            open(source, "rb", buffering=0, opener=open_descriptor) as reading,
            refusals(what),
        ):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb", buffering=0, opener=open_descriptor) as writing:
                while size is None or copied < size:
                    wanted = BLOCK if size is None else min(BLOCK, size - copied)
                    data = os.pread(reading.fileno(), wanted, copied)
                    if not data:
                        break
                    view = memoryview(data)
                    while view:
                        view = view[os.write(writing.fileno(), view) :]
                    copied += len(data)
                    yield len(data)
                os.fsync(writing.fileno())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise storage_error(what, error) from error
