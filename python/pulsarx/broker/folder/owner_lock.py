"""The lock that makes one process the owner of a data directory. Used by DataDirectory alone.

An open-file-description lock: it ends with the last descriptor of its opening, so a killed owner
leaves none behind, and a second opening in the same process is refused like one elsewhere. A forked
child shares the opening; DataDirectory closes the descriptor there, so that the child does not hold
the lock for an owner that died.
"""

from __future__ import annotations

import os

from pulsarx._pycore.ground.file_system import (
    close_file,
    is_file_locked,
    lock_file,
    open_descriptor,
    unlock_file,
)

# One block, written by one call: a reader beside the owner sees the old text or the new one.
_TEXT_SIZE = 4096
_GUESTS_SIZE_MAX = 1024  # bytes of the numbers of processes; of more of them some are not told
_SETTINGS_SIZE_MAX = 2048  # of longer ones nothing is said


class OwnerInfo:
    """The owner of a data directory, as it wrote itself into LOCK. Immutable by habit."""

    __slots__ = ("pid", "epoch", "started_ms", "control_socket", "shared", "guests", "settings")

    def __init__(
        self,
        pid: int,
        epoch: int,
        started_ms: int,
        control_socket: str,
        shared: bool = False,
        guests: tuple[int, ...] = (),
        settings: str = "",
    ) -> None:
        self.settings: str = settings  # what those share with it; one line of ASCII
        self.shared: bool = (
            shared  # other processes used the folder through it, or through one before
        )
        self.guests: tuple[int, ...] = guests  # pids of those that use it now, or are awaited
        self.pid: int = pid  # 0: the owner had not written it yet
        self.epoch: int = epoch  # 0: it has not committed its epoch yet
        self.started_ms: int = started_ms
        self.control_socket: str = control_socket  # empty: none

    def __repr__(self) -> str:
        return f"OwnerInfo(pid={self.pid}, epoch={self.epoch}, started_ms={self.started_ms})"


def owner_lock_take(path: str) -> int:
    """Descriptor of the locked file, made if missing; -1 when another opening holds it. OSError."""
    descriptor: int = open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if lock_file(descriptor):
            return descriptor
    except BaseException:
        try:
            close_file(descriptor)
        except OSError:
            pass  # the failure that is being told stands in front
        raise
    close_file(descriptor)
    return -1


def owner_lock_release(descriptor: int) -> None:
    """Unlock and close. Unlocked by name: a process that another thread is starting just now has
    the descriptor, too, until it runs its own program. OSError: done, but closing failed."""
    unlock_file(descriptor)
    close_file(descriptor)


def owner_lock_drop(descriptor: int) -> None:
    """The same, because of a failure that this one must not hide."""
    try:
        owner_lock_release(descriptor)
    except OSError:
        pass


def owner_lock_write(descriptor: int, owner: OwnerInfo) -> None:
    """Write the owner into LOCK. Not flushed: it says nothing once the owner is gone."""
    text = f"pid {owner.pid}\nepoch {owner.epoch}\nstarted_ms {owner.started_ms}\n"
    text += f"control_socket {owner.control_socket}\n" + ("shared 1\n" if owner.shared else "")
    if owner.guests:
        pids = " ".join(map(str, owner.guests))
        if len(pids) > _GUESTS_SIZE_MAX:
            pids = pids[:_GUESTS_SIZE_MAX].rpartition(" ")[0]
        text += f"guests {pids}\n"
        if len(owner.settings) <= _SETTINGS_SIZE_MAX:
            text += f"settings {owner.settings}\n"
    data = text.encode("utf-8", "surrogateescape")
    os.pwrite(descriptor, data.ljust(_TEXT_SIZE), 0)


def owner_lock_left(descriptor: int) -> OwnerInfo:
    """The owner before, or zeros, as its text says; for one that has just taken the lock."""
    return _owner_of_text(os.pread(descriptor, _TEXT_SIZE, 0))


def owner_lock_query(path: str) -> OwnerInfo | None:
    """The holder of the lock now, or None. Takes nothing, writes nothing, waits for nothing."""
    try:
        descriptor = open_descriptor(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        if not is_file_locked(descriptor):
            return None
        return _owner_of_text(os.pread(descriptor, _TEXT_SIZE, 0))
    finally:
        close_file(descriptor)


def _owner_of_text(data: bytes) -> OwnerInfo:
    """The owner that the text names; anything it does not say is 0 or empty."""
    found: dict[str, str] = {}
    for line in data.decode("utf-8", "surrogateescape").splitlines():
        name, _, value = line.partition(" ")
        found[name] = value.strip()

    def number(name: str) -> int:
        text = found.get(name, "")
        return int(text) if _is_number(text) else 0

    return OwnerInfo(
        number("pid"),
        number("epoch"),
        number("started_ms"),
        found.get("control_socket", ""),
        number("shared") == 1,
        tuple(int(each) for each in found.get("guests", "").split() if _is_number(each)),
        found.get("settings", ""),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20
