"""A sealed ledger that waits in the staging area, as its writer describes it.

The writer makes it on any host, it travels as JSON or pickle, and `attach` compares every field
with what lies there.

It lies at staging/<job>/<name> in the data directory; job and name are plain names.
"""

from __future__ import annotations

import os
import stat
from functools import lru_cache

from pulsarx import errors
from pulsarx._pycore.ledger.ledger_file import LedgerFile
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    class Sealed(Protocol):
        """The description of a sealed ledger by its writer."""

        path: str
        uuid: str
        folder_id: str
        size: int
        file_size: int
        digest: int
        entry_count: int
        message_count: int
        first_publish_ms: int
        last_publish_ms: int


STAGING_NAME = "staging"
_NAME_SIZE_MAX = 200
_COUNT_MAX = 1 << 62
_FIRST_OFFSET = 4096  # of the entries in a ledger file


@lru_cache(128)
def _shared(text: str) -> str:
    """Return the text that many files have. Not interned, for Python 3.12 keeps what is for
    ever."""
    return text


class StagedFile:
    """The description of one staged file. A value."""

    __slots__ = (
        "topic", "job", "name", "uuid", "store_id", "size", "file_size", "digest", "entry_count",
        "message_count", "first_publish_ms", "last_publish_ms", "host", "path",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        job: str,
        name: str,
        uuid: str,
        store_id: str,
        size: int,
        file_size: int,
        digest: int,
        entry_count: int,
        message_count: int,
        first_publish_ms: int,
        last_publish_ms: int,
        host: str,
        path: str,
    ) -> None:
        self.topic: str = topic  # in full, a partition's name where the topic has partitions
        self.job: str = job
        self.name: str = name
        self.uuid: str = uuid  # 32 hex digits, as in its header
        self.store_id: str = store_id  # id of the data directory it was written for
        self.size: int = size  # where its entries end
        self.file_size: int = file_size
        self.digest: int = digest
        self.entry_count: int = entry_count
        self.message_count: int = message_count
        self.first_publish_ms: int = first_publish_ms
        self.last_publish_ms: int = last_publish_ms
        self.host: str = host  # where it was written, and under which path; for messages to people
        self.path: str = path

    @classmethod
    def of_file(cls, folder: str, store_id: str, topic: str, job: str, name: str) -> StagedFile:
        """Describe a sealed file in the staging area, on the host that wrote it."""
        path = staged_path(folder, job, name)
        file = LedgerFile.open(path, 0)
        summary = file.summary()
        return cls(
            str(TopicName.of(topic)),
            job,
            name,
            file.uuid.hex(),
            store_id,
            summary.size,
            os.path.getsize(path),
            summary.digest,
            summary.entry_count,
            summary.message_count,
            summary.first_publish_ms,
            summary.last_publish_ms,
            os.uname().nodename,
            path,
        )

    @classmethod
    def of_sealed(cls, topic: str, sealed: Sealed) -> StagedFile:
        """From what a writer of sealed ledgers answers, on the host that wrote it."""
        area, _, name = sealed.path.rpartition("/")
        above, _, job = area.rpartition("/")
        if above.rpartition("/")[2] != STAGING_NAME:
            raise ValueError(f"{sealed.path} is not in the staging area of a data directory")
        return cls(
            str(TopicName.of(topic)),
            job,
            name,
            sealed.uuid,
            sealed.folder_id,
            sealed.size,
            sealed.file_size,
            sealed.digest,
            sealed.entry_count,
            sealed.message_count,
            sealed.first_publish_ms,
            sealed.last_publish_ms,
            os.uname().nodename,
            sealed.path,
        )

    def document(self) -> dict[str, Any]:
        """Itself as JSON keeps it."""
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def of_document(cls, document: object) -> StagedFile:
        """ValueError: not what `document` made."""
        if not isinstance(document, dict) or set(document) != set(cls.__slots__):
            raise ValueError(f"{errors.shown(document)} describes no staged file")
        made = cls(**document)
        for name in ("topic", "job", "name", "uuid", "store_id", "host", "path"):
            if not isinstance(getattr(made, name), str):
                raise ValueError(f"staged file: {name} {getattr(made, name)!r:.200} is no text")
        for name in cls.__slots__[5:12]:
            value = getattr(made, name)
            if value.__class__ is not int or not -_COUNT_MAX < value < _COUNT_MAX:
                raise ValueError(f"staged file: {name} {errors.shown(value)} is no number")
        topic = TopicName.of(made.topic).full
        if topic != made.topic:
            raise ValueError(f"staged file: topic {made.topic:.200} is not written in full")
        check_plain_name(made.job, "job")
        check_plain_name(made.name, "name of a staged file")
        made.topic = topic
        for name in ("job", "store_id", "host"):
            setattr(made, name, _shared(getattr(made, name)))
        return made

    def is_there(self, folder: str | os.PathLike[str]) -> bool:
        """Whether there is a file of this name, in a folder that is reached in whatever way."""
        return os.path.lexists(staged_path(os.fspath(folder), self.job, self.name))

    def check(self, folder: str, store_id: str, thorough: bool = False) -> tuple[int, ...]:
        """Compare it with the file in this data directory; what `identity` says of that.

        thorough: reads every entry; else header, footer, first and last entry.
        FolderError: written for another data directory. StorageError: not there.
        CorruptDataError: not what was written.
        """
        self._check_store(folder, self.store_id, store_id)
        checked, file = self._open(folder, store_id)
        try:
            found = self._look(folder, store_id, file)
        except errors.CorruptDataError as error:
            raise self._damaged(folder, errors.detail_of(error)) from error
        found["file_size"] = checked[2]
        for name, value in found.items():
            if value != getattr(self, name):
                raise errors.CorruptDataError(
                    detail=f"attach {self._described(folder)}: {name} is {value}, its writer said "
                    f"{getattr(self, name)}. Nothing was attached. {_MOUNT}"
                )
        try:
            self._check_ends(file)
            if thorough:
                self._read_all(file)
        except errors.CorruptDataError as error:
            raise self._damaged(folder, errors.detail_of(error)) from error
        return checked

    def _check_store(self, folder: str, written_for: str, store_id: str) -> None:
        if written_for != store_id:
            raise errors.FolderError(
                detail=f"attach {self._described(folder)}: it was written for the data directory "
                f"with id {written_for}, this one has {store_id}. Nothing was attached. {_MOUNT}"
            )

    def _open(self, folder: str, store_id: str) -> tuple[tuple[int, ...], LedgerFile]:
        path = staged_path(folder, self.job, self.name)
        try:
            if not stat.S_ISDIR(os.lstat(os.path.dirname(path)).st_mode):
                raise FileNotFoundError(2, "is no folder", os.path.dirname(path))
            checked = identity(path)
            return checked, LedgerFile.open(path, 0)
        except errors.CorruptDataError as error:
            raise self._damaged(folder, errors.detail_of(error)) from error
        except FileNotFoundError as error:
            raise errors.StorageError(
                detail=f"attach {self._described(folder)}: there is no such file in the data "
                f"directory with id {store_id} ({error.strerror}). Nothing was attached. {_MOUNT}"
            ) from error
        except (OSError, errors.StorageError) as error:
            raise errors.StorageError(
                detail=f"attach {self._described(folder)}: it cannot be read here: {error}. "
                "Nothing was attached"
            ) from error

    def _look(self, folder: str, store_id: str, file: LedgerFile) -> dict[str, Any]:
        summary = file.summary()
        self._check_store(folder, file.folder_id, store_id)
        if summary.damage_count or file.header_damaged:
            raise errors.CorruptDataError(
                detail=f"{summary.damage_count} places in it cannot be read, or its header"
            )
        return {
            "uuid": file.uuid.hex(),
            "size": summary.size,
            "entry_count": summary.entry_count,
            "message_count": summary.message_count,
            "first_publish_ms": summary.first_publish_ms,
            "last_publish_ms": summary.last_publish_ms,
            "digest": summary.digest,
        }

    def _check_ends(self, file: LedgerFile) -> None:
        """Its first and last entry must bear out the footer, which comes from the same hand as what
        it was compared with."""
        if self.entry_count < 1:
            raise errors.CorruptDataError(detail="it has no entry")
        begin = file.entry(_FIRST_OFFSET, self.size)
        last_offset = file.find_entry(self.entry_count - 1, self.size)
        found = file.entry(last_offset, self.size)
        if begin is None or found is None:
            raise errors.CorruptDataError(detail="the last entry of its footer is not there")
        first, _, behind = begin
        last, _, end = found
        file.check_entries(_FIRST_OFFSET, behind)
        file.check_entries(last_offset, self.size)
        times = first["publish_time_ms"], last["publish_time_ms"]
        if (
            (first["entry_id"], first["first_message"], end) != (0, 0, self.size)
            or last["entry_id"] + 1 != self.entry_count
            or last["first_message"] + last["message_count"] != self.message_count
            or not self.first_publish_ms <= min(times) <= max(times) <= self.last_publish_ms
        ):
            raise errors.CorruptDataError(detail="its footer says something else than its entries")

    def _read_all(self, file: LedgerFile) -> None:
        recovery = file.recover()
        if recovery.damaged_entries or recovery.digest != self.digest:
            raise errors.CorruptDataError(
                detail=f"{recovery.damaged_entries} entries cannot be read, digest "
                f"{recovery.digest} where its writer said {self.digest}"
            )
        for name in ("entry_count", "message_count", "first_publish_ms", "last_publish_ms"):
            if getattr(recovery, name) != getattr(self, name):
                raise errors.CorruptDataError(
                    detail=f"{name} of its entries is {getattr(recovery, name)}"
                )
        file.check_entries(_FIRST_OFFSET, self.size)
        before = _FIRST_OFFSET
        for offset, entry_id, first_message, _ in file.index():
            place = entry_id, first_message
            if not before <= offset < self.size or offset % 8:
                raise errors.CorruptDataError(
                    detail=f"its index names offset {offset} after {before}"
                )
            frame = file.frame(offset, self.size)
            if frame is None or (frame["entry_id"], frame["first_message"]) != place:
                raise errors.CorruptDataError(detail=f"its index is wrong about offset {offset}")
            before = offset

    def _damaged(self, folder: str, why: str) -> errors.CorruptDataError:
        return errors.CorruptDataError(
            detail=f"attach {self._described(folder)}: damaged, nothing was attached: {why}. Write "
            "the file again"
        )

    def _described(self, folder: str) -> str:
        expected = staged_path(folder, self.job, self.name)
        where = f"{expected} on host {os.uname().nodename}"
        return f"{where} (written on host {self.host} as {self.path})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StagedFile):
            return NotImplemented
        return self.document() == other.document()

    def __hash__(self) -> int:
        return hash((self.job, self.name, self.uuid))

    def __repr__(self) -> str:
        return f"StagedFile(topic={self.topic!r}, job={self.job!r}, name={self.name!r})"


_MOUNT = "Every host must have the same data directory mounted under the path it uses"


def identity(path: str) -> tuple[int, ...]:
    """The numbers that stay the same for an unchanged file under all its names. OSError; a link or
    a folder is FileNotFoundError."""
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(2, "is no regular file", path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def staged_path(folder: str, job: str, name: str) -> str:
    return f"{folder}/{STAGING_NAME}/{job}/{name}"


def check_plain_name(name: object, what: str) -> str:
    """A name that stays in its folder. ValueError."""
    plain = isinstance(name, str) and name.isascii() and name.isprintable()
    if not plain or not isinstance(name, str) or not 0 < len(name) <= _NAME_SIZE_MAX:
        raise ValueError(
            f"{what} {errors.shown(name)}: 1 to {_NAME_SIZE_MAX} printable ASCII characters"
        )
    if "/" in name or name in (".", ".."):
        raise ValueError(f"{what} {errors.shown(name)} is a path and not a name")
    return name
