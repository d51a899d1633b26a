"""The folder in which a copy is made: it gets its name when it is whole."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager

from pulsarx import errors
from pulsarx.broker.folder.storage_errors import storage_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsarx._pycore.ground.file_system import FileSystem

BLOCK = 8 << 20  # bytes copied between two looks at the time
_SUFFIX = "unfinished"


@contextmanager
def workplace(target: str, source: str, files: FileSystem) -> Iterator[str]:
    """A folder beside the target, which becomes it, durably, at the end of the block. When the
    block fails or is interrupted it is removed; behind the moment in which it becomes the target
    that stays, whole, and only its name may not be durable yet. FolderError: the target is in use,
    or inside of the source.

    target, source: as os.path.realpath gives them.
    """
    _check_target(target, source)
    unfinished = f"{target}.{os.urandom(4).hex()}.{_SUFFIX}"
    try:
        try:
            os.mkdir(unfinished)
        except OSError as error:
            raise errors.FolderError(
                f"make {unfinished}: {error.strerror}. The folder above the target must be there, "
                "and writable for this user"
            ) from error
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
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _check_target(target: str, source: str) -> None:
    if os.path.commonpath([source, target]) == source:
        raise errors.FolderError(f"copy {source} to {target}: the target is inside of it")
    try:
        taken = os.listdir(target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise errors.FolderError(f"copy {source} to {target}: {error.strerror}") from error
    if taken:
        raise errors.FolderError(
            f"copy {source} to {target}: it holds {taken[0]!r}. Nothing was changed. Give a target "
            "that does not exist, or an empty folder"
        )


def copy_file(source: str, target: str, size: int | None, told: Callable[[int], object]) -> int:
    """Copy a file, durably but for its name; how many bytes. size: how many at most; None: all.
    told: called with the bytes of each block. FileNotFoundError: there is no source."""
    with open(source, "rb", buffering=0) as reading:
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb", buffering=0) as writing:
                copied = _copy(reading.fileno(), writing.fileno(), size, told)
                os.fsync(writing.fileno())
        except OSError as error:
            raise storage_error(f"copy {source} to {target}", error) from error
    return copied


def _copy(source: int, target: int, size: int | None, told: Callable[[int], object]) -> int:
    copied = 0
    while size is None or copied < size:
        wanted = BLOCK if size is None else min(BLOCK, size - copied)
        data = os.pread(source, wanted, copied)
        if not data:
            break
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
        copied += len(data)
        told(len(data))
    return copied
