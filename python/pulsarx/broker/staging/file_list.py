"""The list of an attach whose files are too many for one request: a file in the staging area, which
the request names. Written by the process that asks, read once by the owner.

Each line is a file, the JSON of `StagedFile.document`. The request says how many lines there are
and their checksum, so a list that is not whole attaches nothing.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import uuid
from contextlib import contextmanager
from zlib import crc32

from pulsarx import errors
from pulsarx._pycore.ground.file_system import open_descriptor
from pulsarx.broker.staging.staged_file import StagedFile, check_plain_name
from pulsarx.broker.staging.staging import make_staging, staging_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# The owner holds about 1 KiB for each while it attaches them, and the commit 150 bytes.
FILES_MAX = 1_000_000
# A topic's name has 32,767 bytes at most, up to three times that in JSON; the rest is shorter.
_LINE_SIZE_MAX = 1 << 18
_BUFFER_SIZE = 1 << 20
_NAME = "files.json"


@contextmanager
def listed_files(
    folder: str | os.PathLike[str], files: Sequence[StagedFile]
) -> Iterator[dict[str, Any]]:
    """Write the list of an attach; what a request says of it. It is removed behind the request, and
    where that was killed it is collected by age, as everything in the staging area.

    ValueError: too many for one attach. StorageError, StorageFullError: it cannot be written.
    """
    if len(files) > FILES_MAX:
        raise ValueError(
            f"attach {len(files)} files at once; at most {FILES_MAX} can be. Write fewer Spark "
            "partitions (coalesce), or several batches"
        )
    job = f"attach-{uuid.uuid4().hex}"
    path = f"{staging_path(os.path.realpath(os.fspath(folder)), job)}/{_NAME}"
    try:
        try:
            make_staging(folder, job)
            checksum = _write(path, files)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            kind = errors.StorageFullError if full else errors.StorageError
            raise kind(
                detail=f"attach {len(files)} files: {error}. Nothing was attached",
                errno=error.errno,
            ) from error
        yield {"job": job, "name": _NAME, "count": len(files), "checksum": checksum}
    finally:
        for remove, each in ((os.unlink, path), (os.rmdir, os.path.dirname(path))):
            try:
                remove(each)
            except OSError:
                pass


def _write(path: str, files: Sequence[StagedFile]) -> int:
    """Write the list without a flush, for a power cut takes the request, too. Its checksum."""
    checksum = 0
    with open(path, "xb", _BUFFER_SIZE, opener=open_descriptor) as opened:
        for file in files:
            line = json.dumps(file.document(), separators=(",", ":")).encode() + b"\n"
            checksum = crc32(line, checksum)
            opened.write(line)
    return checksum


def read_list(folder: str, job: str, name: str, count: int, checksum: int) -> list[StagedFile]:
    """The files of a list that a request names, all of them or none.

    ValueError: the request is none, or a line describes no file. StorageError: there is no such
    list here. CorruptDataError: it is not what the request says.
    """
    if not 0 < count <= FILES_MAX:
        raise ValueError(f"attach_list: count is {count}; it must be from 1 to {FILES_MAX}")
    path = f"{staging_path(folder, job)}/{check_plain_name(name, 'name of a list')}"
    found: list[StagedFile] = []
    sum_found = 0
    try:
        with open(path, "rb", _BUFFER_SIZE, opener=_open_regular) as opened:
            while line := opened.readline(_LINE_SIZE_MAX):
                if len(found) == count or line[-1:] != b"\n":
                    raise _damaged(path, f"line {len(found) + 1} is one too many, or not whole")
                sum_found = crc32(line, sum_found)
                found.append(_file_of(path, line))
    except OSError as error:
        raise errors.StorageError(
            detail=f"attach the files listed in {path}: {error.strerror}. Nothing was attached. "
            "Call again"
        ) from error
    if len(found) != count or sum_found != checksum:
        raise _damaged(
            path,
            f"{len(found)} files with checksum {sum_found:08x}, the request said {count} with "
            f"{checksum & 0xFFFFFFFF:08x}",
        )
    return found


def _open_regular(path: str, flags: int) -> int:
    """Neither through a link, nor anything that might never answer."""
    area = os.path.dirname(path)
    if not stat.S_ISDIR(os.lstat(area).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "its area is no folder", area)
    opened: int = open_descriptor(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.EINVAL, "is no regular file", path)
    return opened


def _file_of(path: str, line: bytes) -> StagedFile:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"no JSON: {error}") from error
    return StagedFile.of_document(document)


def _damaged(path: str, why: str) -> errors.CorruptDataError:
    return errors.CorruptDataError(
        detail=f"attach the files listed in {path}: the list is damaged: {why}. Nothing was "
        "attached. Call again"
    )
