"""The folder one broker keeps its data in: marker, owner lock and the paths of everything else.

README.md of this package says what lies where. Opened by the broker, one object per opening.
"""

from __future__ import annotations

import os
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import Event
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx._pycore.ground.when_forgotten import WhenForgotten
from pulsarx.broker.folder.folder_marker import (
    MARKER_NAME,
    marker_clear,
    marker_create,
    marker_mend,
    marker_read,
)
from pulsarx.broker.folder.owner_lock import (
    OwnerInfo,
    owner_lock_drop,
    owner_lock_left,
    owner_lock_query,
    owner_lock_release,
    owner_lock_take,
    owner_lock_write,
)
from pulsarx.broker.folder.reserve import RESERVE_NAME
from pulsarx.broker.folder.storage_errors import folder_error, storage_error
from pulsarx.clock import Deadline
from pulsarx.errors import AlreadyClosed, FolderError, FolderOwnedError
from pulsarx.ground.fork import at_fork

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pulsarx.broker.folder.file_operations import FileOperations

LOCK_NAME = "LOCK"
PRIVATE_MODE = 0o700  # of a folder that holds messages, unless whoever wants another made it first
# Stands for the control socket of a process that owns the folder for one request only.
BRIEF_OWNER = "-"
_BRIEF_MS = 5000
_BRIEF_WAIT_SECONDS = 0.005
SUBDIRECTORIES = ("catalogue", "ledgers", "cursors")
_LEDGER_SUFFIX = ".ledger"


class DataDirectory:
    """An opened folder. Any thread may call; in a forked child every use raises ForkedError."""

    __slots__ = (
        "path", "read_only", "files", "folder_id", "started_ms", "epoch",
        "catalogue_path", "ends_path", "orphans_path", "is_shared", "guests", "settings",
        "_durable", "_control_socket", "_lock_descriptor", "_when_forgotten", "_closed", "_forked",
        "__weakref__",
    )  # fmt: skip

    def __init__(self, path: str, read_only: bool, files: FileOperations, folder_id: str) -> None:
        """Use `open`."""
        self.path: str = path
        self.read_only: bool = read_only
        self.files: FileOperations = files
        self.folder_id: str = folder_id  # 32 hex digits, random: no two folders share it
        self.started_ms: int = 0
        self.epoch: int = 0
        self.catalogue_path: str = f"{path}/catalogue"
        self.ends_path: str = f"{path}/ends"
        self.orphans_path: str = f"{path}/orphans"
        self._durable: set[str] = set()  # folders whose name this opening flushed
        self._control_socket = ""
        self._lock_descriptor = -1
        self._when_forgotten: WhenForgotten | None = None
        # Other processes used it through its owner, this one or the one before, and may come again.
        self.is_shared: bool = False
        self.guests: tuple[int, ...] = ()  # pids of those processes
        self.settings: str = ""  # what those share with the owner, for the next one
        self._closed = False
        self._forked = False

    @classmethod
    def open(
        cls,
        path: str,
        *,
        files: FileOperations,
        read_only: bool = False,
        brief: bool = False,
        now_ms: int = 0,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> DataDirectory:
        """Open a folder, and unless read_only own it; an empty or missing one becomes a data
        directory.

        read_only: writes nothing, takes nothing and waits for nothing.
        brief: own it for one request; others that want to own it wait for that long.
        FolderOwnedError: another opening owns it. FolderError: it is none and cannot become one.
        StorageError, StorageFullError: the device refused, or a limit of the process did.
        Durable when it returns: the folder, its marker and its subdirectories.
        """
        path = os.path.abspath(os.fspath(path))
        if read_only:
            _check_is_folder(path)
        else:
            _make_folder(files, path)
        try:
            files.guard(path)  # before marker and lock, which are this very folder's
        except OSError as error:
            raise _refused(path, error) from error
        if read_only:
            folder_id = marker_read(files, path)
            if folder_id is None:
                raise FolderError(
                    detail=f"open {path} read-only: not a PulsarX data directory (no {MARKER_NAME} "
                    "in it). Check the path, or open it once for writing to make one. If its data "
                    f"is there: run pulsarx salvage {path} TARGET"
                )
            return cls(path, True, files, folder_id)
        if marker_read(files, path) is None:
            try:
                _check_may_become_one(files, path)
            except FolderError:
                # Another process may have made it one since; its marker comes before its data.
                if marker_read(files, path) is None:
                    raise
        descriptor, left = _take_ownership(path, now_ms, BRIEF_OWNER if brief else "")
        try:
            _make_subdirectories(files, path)
            folder_id = marker_read(files, path)
            if folder_id is None:
                folder_id = marker_create(files, path, random_bytes)
            else:
                # The process that made it may have been killed before it flushed.
                marker_clear(files, path)
                files.flush_directory(path)
                _mend_marker(files, path, folder_id)
            opened = cls(path, False, files, folder_id)
            release = partial(owner_lock_drop, descriptor)
            opened._when_forgotten = WhenForgotten(control_plane.post, release)
        except OSError as error:
            owner_lock_drop(descriptor)
            raise _refused(path, error) from error
        except BaseException:
            owner_lock_drop(descriptor)
            raise
        opened._lock_descriptor = descriptor
        opened._control_socket = BRIEF_OWNER if brief else ""
        opened.started_ms = now_ms
        opened.is_shared, opened.guests = left.shared, left.guests
        opened.settings = left.settings
        _opened.add(opened)
        return opened

    def check_usable(self) -> None:
        """Raise when it was closed, or when this process was forked from the one that opened it."""
        if self._forked:
            raise errors.ForkedError(
                detail=f"this process was forked from the owner of {self.path}, which stays with "
                "its parent. Open a client of its own in the child"
            )
        if self._closed:
            raise AlreadyClosed(detail=f"the data directory {self.path} was closed")

    def check_writable(self) -> None:
        """Raise unless this opening owns the folder."""
        self.check_usable()
        if self.read_only:
            raise FolderError(
                detail=f"{self.path} was opened read-only; open it for writing to change it"
            )

    def is_there(self) -> bool:
        """Whether its path still leads to this folder: it was not removed, moved or replaced."""
        if not self.files.is_there():
            return False
        if not self.read_only:
            return True
        # Nothing keeps the inode from being that of another folder by now.
        try:
            found = marker_read(self.files, self.path)
        except errors.PulsarException:
            return True  # that cannot be told now
        return found == self.folder_id

    def owner(self) -> OwnerInfo | None:
        """The owner of the folder now, be it this opening; None: it has none. StorageError: that
        cannot be told now."""
        path = f"{self.path}/{LOCK_NAME}"
        try:
            return owner_lock_query(path)
        except OSError as error:
            import errno

            # It is not allowed, or the file system has no locks.
            if error.errno in (
                errno.EACCES, errno.EPERM, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS,
                errno.EINVAL,
            ):  # fmt: skip
                return None
            # No descriptor is left, say. An owner taken for dead would have its open ledgers taken
            # for whole.
            raise storage_error(f"look for the owner in {path}", error) from error

    def announce(self, epoch: int, control_socket: str = "") -> None:
        """Say in LOCK which epoch this owner has, and where it listens."""
        self.check_writable()
        self.epoch = epoch
        self._control_socket = control_socket or self._control_socket
        self._write_owner()

    def share(self, is_shared: bool, guests: tuple[int, ...] = ()) -> None:
        """Say in LOCK whether other processes use the folder through its owner, and which ones: the
        next owner gives them time to come."""
        if is_shared != self.is_shared or guests != self.guests:
            self.is_shared, self.guests = is_shared, guests
            self._write_owner()

    def _write_owner(self) -> None:
        mine = OwnerInfo(
            os.getpid(), self.epoch, self.started_ms, self._control_socket, self.is_shared,
            self.guests, self.settings,
        )  # fmt: skip
        try:
            owner_lock_write(self._lock_descriptor, mine)
        except OSError as error:
            raise storage_error(f"write {self.path}/{LOCK_NAME}", error) from error

    def ledger_path(self, ledger_id: int) -> str:
        """The path of a ledger's file. Spread over 256 folders, because there may be 100,000 of
        them."""
        return f"{self.path}/ledgers/{ledger_id & 255:02x}/{ledger_id}{_LEDGER_SUFFIX}"

    def cursor_path(self, cursor_id: int, generation: int) -> str:
        """The path of one generation of a cursor's record of acknowledgements."""
        return f"{self.path}/cursors/{cursor_id}.{generation}"

    def prepare_ledger_path(self, ledger_id: int) -> str:
        """The same as `ledger_path`, with its folder made and durable."""
        self.check_writable()
        path = self.ledger_path(ledger_id)
        try:
            self._check_there()
            self._make_directory(os.path.dirname(path))
        except OSError as error:
            raise storage_error(f"make the folder of {path}", error) from error
        return path

    def prepare_ledger_paths(self, ledger_ids: list[int]) -> list[str]:
        """The same for several, with one flush. OSError: the disk refused."""
        self.check_writable()
        paths = [self.ledger_path(ledger_id) for ledger_id in ledger_ids]
        self._check_there()
        fresh = {os.path.dirname(path) for path in paths} - self._durable
        for folder in sorted(fresh):
            try:
                self.files.make_directory(folder)
            except FileExistsError:
                pass
        if fresh:
            self.files.flush_directory(f"{self.path}/ledgers")
            self._durable |= fresh
        return paths

    def _check_there(self) -> None:
        """OSError: what is written here would be written nowhere, or into another folder."""
        if not self.files.is_there():
            import errno

            text = "it was removed, moved or replaced while it was open"
            raise OSError(errno.ESTALE, text, self.path)

    def check_mounted(self) -> None:
        """The catalogue names ledgers: refuse to take all of them for lost."""
        if not self._names("ledgers"):
            raise FolderError(
                detail=f"{self.path}/ledgers is empty, although the catalogue names ledgers. Is "
                "its device mounted? Nothing was changed"
            )

    def ledger_files(self) -> Iterator[tuple[int, str]]:
        """Ledger id and path of every ledger file there is, known to the catalogue or not."""
        for shard in sorted(self._names("ledgers")):
            for name in self._names(f"ledgers/{shard}"):
                text = name.removesuffix(_LEDGER_SUFFIX)
                if text != name and text.isascii() and text.isdigit():
                    yield int(text), f"{self.path}/ledgers/{shard}/{name}"

    def cursor_files(self) -> Iterator[tuple[int, int, str]]:
        """Cursor id, generation and path of every cursor file there is."""
        for name in self._names("cursors"):
            parts = name.split(".")
            if len(parts) == 2:
                cursor, generation = parts
                if (cursor + generation).isascii() and cursor.isdigit() and generation.isdigit():
                    yield int(cursor), int(generation), f"{self.path}/cursors/{name}"

    def set_aside(self, path: str) -> str:
        """Move a file the catalogue does not know to orphans/ and say where it is now.

        Nothing unknown is ever deleted: a catalogue that lost its memory must not cost the data.
        """
        self.check_writable()
        try:
            return self._set_aside(path)
        except OSError as error:
            raise storage_error(f"move {path} to {self.orphans_path}", error) from error

    def _set_aside(self, path: str) -> str:
        self._make_directory(self.orphans_path)
        taken = set(self._names("orphans"))
        name = base = os.path.basename(path)
        turn = 0
        while name in taken:
            turn += 1
            name = f"{base}.{turn}"
        target = f"{self.orphans_path}/{name}"
        self.files.rename(path, target)
        self.files.flush_directory(self.orphans_path)
        self.files.flush_directory(os.path.dirname(path))
        return target

    def close(self) -> None:
        """Give the folder up. May be called twice, and in a forked child, where it does nothing.
        StorageError: given up, but the device refused to close LOCK."""
        self._closed = True
        descriptor = self._take_descriptor()
        if descriptor >= 0:
            try:
                owner_lock_release(descriptor)
            except OSError as error:
                raise storage_error(f"close {self.path}/{LOCK_NAME}", error) from error

    def _take_descriptor(self) -> int:
        descriptor, self._lock_descriptor = self._lock_descriptor, -1
        if self._when_forgotten is not None:
            self._when_forgotten.cancel()
        return descriptor

    def _names(self, folder: str) -> list[str]:
        try:
            return self.files.list(f"{self.path}/{folder}")
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise storage_error(f"list {self.path}/{folder}", error) from error

    def _make_directory(self, path: str) -> None:
        # A killed process may have left a folder whose name is not durable yet, and it looks like
        # any other. So each opening flushes the name of each folder once before it puts something
        # there.
        if path in self._durable:
            return
        try:
            self.files.make_directory(path)
        except FileExistsError:
            pass
        self.files.flush_directory(os.path.dirname(path))
        self._durable.add(path)

    def abandon(self) -> None:
        """In a forked child."""
        descriptor = self._take_descriptor()
        self._forked = True
        if descriptor >= 0:
            os.close(descriptor)  # never unlocked: the lock is the parent's


_opened = WeakList()


at_fork(__name__, abandon=_opened)


def _check_is_folder(path: str) -> None:
    try:
        names_a_folder = os.path.isdir(path)
        exists = names_a_folder or os.path.lexists(path)
    except ValueError as error:  # a NUL in the path
        raise FolderError(detail=f"{path!r} is no path: {error}") from error
    if not exists:
        raise FolderError(detail=f"{path} does not exist. Check the path")
    if not names_a_folder:
        raise FolderError(detail=f"{path} is a file; give the path of a folder")


def _make_folder(files: FileOperations, path: str) -> None:
    """Make the folder and what is missing above it, each name durable before the next is made. The
    folder is private to its user; what is above it is as the umask says.

    So a killed process leaves at most the lowest folder without a flush; its name is flushed too,
    unless it is a data directory already.
    """
    missing = []
    above = path
    while "\0" not in above and not os.path.lexists(above):
        missing.append(above)
        above = os.path.dirname(above)
    try:
        if not os.path.lexists(f"{path}/{MARKER_NAME}") and os.path.isdir(above):
            if os.access(os.path.dirname(above), os.R_OK):
                files.flush_directory(os.path.dirname(above))
        for folder in reversed(missing):
            try:
                if folder == path:
                    files.make_directory(folder, PRIVATE_MODE)
                else:
                    files.make_directory(folder)
            except FileExistsError:
                pass  # another process was faster
            files.flush_directory(os.path.dirname(folder))
    except OSError as error:
        advice = "Choose a place where this user may write"
        raise folder_error(f"make the folder {path}", error, advice) from error
    _check_is_folder(path)


def _make_subdirectories(files: FileOperations, path: str) -> None:
    """Make them if missing; the caller flushes their names."""
    for name in SUBDIRECTORIES:
        if not os.path.isdir(f"{path}/{name}"):
            files.make_directory(f"{path}/{name}")


def _mend_marker(files: FileOperations, path: str, folder_id: str) -> None:
    try:
        marker_mend(files, path, folder_id)
    except OSError:
        pass  # one copy is enough, and the next owner tries again


def _check_may_become_one(files: FileOperations, path: str) -> None:
    """Refuse a folder that holds something else. What an interrupted making left does not count."""
    try:
        names = files.list(path)
        ours = [name for name in names if name in SUBDIRECTORIES]
        folders = [each for each in ours if os.path.isdir(f"{path}/{each}")]
        holds_data = any(files.list(f"{path}/{each}") for each in folders)
    except OSError as error:
        raise _refused(path, error) from error
    if holds_data:
        raise FolderError(
            detail=f"{path} holds data of PulsarX but its marker {MARKER_NAME} is missing. Nothing "
            f"was changed. Restore {MARKER_NAME} from a backup of this folder, or make a new one "
            f"of what is whole of it: run pulsarx salvage {path} TARGET"
        )
    for name in names:
        if name in (*ours, LOCK_NAME, RESERVE_NAME, "lost+found"):
            continue
        if name.startswith(f"{MARKER_NAME}.") and name.endswith(".tmp"):
            continue
        raise FolderError(
            detail=f"{path} is not empty and not a PulsarX data directory (it holds {name!r}). "
            "Nothing was changed. Choose an empty folder"
        )


def _take_ownership(path: str, now_ms: int, control_socket: str) -> tuple[int, OwnerInfo]:
    """The locked descriptor, and what the owner before wrote."""
    lock_path = f"{path}/{LOCK_NAME}"
    try:
        descriptor = _take_lock(lock_path)
    except OSError as error:
        raise _refused(path, error) from error
    if descriptor < 0:
        try:
            owner = owner_lock_query(lock_path)
        except OSError as error:
            raise _refused(path, error) from error
        if owner is None or not owner.pid:
            who = "another process, which is just opening or closing it"
        elif owner.pid == os.getpid():
            who = f"this process already (pid {owner.pid})"
        elif owner.pid == os.getppid():
            who = f"the parent of this process (pid {owner.pid}, epoch {owner.epoch})"
        else:
            who = f"another process (pid {owner.pid}, epoch {owner.epoch})"
        raise FolderOwnedError(
            detail=f"{path} is owned by {who}. One process may write; use that one, stop it, or "
            "open the folder with read_only=True",
            folder=path,
            pid=owner.pid if owner is not None and owner.pid else None,
        )
    try:
        left = owner_lock_left(descriptor)
        mine = OwnerInfo(
            os.getpid(), 0, now_ms, control_socket, left.shared, left.guests, left.settings
        )
        owner_lock_write(descriptor, mine)
    except OSError as error:
        owner_lock_drop(descriptor)
        raise _refused(path, error) from error
    except BaseException:
        owner_lock_drop(descriptor)
        raise
    return descriptor, left


def _take_lock(lock_path: str) -> int:
    """The locked descriptor, or -1; a brief owner is waited for."""
    deadline = Deadline(_BRIEF_MS)
    while True:
        descriptor = owner_lock_take(lock_path)
        if descriptor >= 0:
            return descriptor
        owner = owner_lock_query(lock_path)
        brief = owner is None or owner.control_socket == BRIEF_OWNER
        if not brief or deadline.expired():
            return -1
        Event().wait(_BRIEF_WAIT_SECONDS)


def _refused(path: str, error: OSError) -> Exception:
    advice = "Make it writable for this user, or open it with read_only=True"
    return folder_error(f"open {path} for writing", error, advice)
