"""Backups of a folder: `backup` copies one while it is used, `restore` makes a folder of a copy and
proves it; `check` proves a folder. Not in the official client; of folders of this machine alone.
"""

from __future__ import annotations

from pulsarx._pycore.ground.control_plane import control_plane

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from pulsarx.backups.contents import Contents

__all__ = ["backup", "check", "restore"]


def backup(
    folder: str | os.PathLike[str], target: str | os.PathLike[str], *, progress: Any = False
) -> Contents:
    """Copy a folder, beside its owner too, in this process or another; answers what the copy holds.
    The owner goes on publishing and acknowledging.

    The copy is what a kill of the owner at one moment of the copying would have left: of each topic
    every message that was confirmed before `backup` was called, and those behind it without a gap
    up to some later moment, which is not the same for all topics; no acknowledgement of a message
    that it does not hold; policies, schemas and all else that the catalogue knows. Messages that
    were acknowledged while it was copied may be unacknowledged in it. Non-persistent topics keep
    nothing, and staging areas of jobs are left out.

    target: does not exist yet, or is an empty folder; it appears, durable, when the copy is whole.
    An interrupted call removes what it wrote, a killed one leaves `<target>.<hex>.unfinished`.
    progress: True for a bar on the standard error output, or a callable (done, all), in bytes.
    FolderError: no data directory, or a target that is in use. FolderOwnedError: the owner cannot
    be asked to keep what is copied. StorageError, StorageFullError.
    """
    control_plane.load("pulsarx.backups.copying")
    from pulsarx.backups import copying

    return copying.backup(folder, target, progress)


def restore(
    backup: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    progress: Any = False,
    allow_damage: bool = False,
) -> Contents:
    """Make a folder of a backup, prove that it is whole, and answer what it holds: every entry of
    every ledger is read and compared with its checksum and the catalogue's counts, every cursor is
    opened. The backup stays as it is.

    target, progress: as of `backup`. allow_damage: restore what is whole; `damage` of what is
    answered says what is not. CorruptDataError: it is not whole; there is no target then.
    FolderOwnedError: a client has opened the backup itself. FolderError, StorageError,
    StorageFullError: as of `backup`.
    """
    control_plane.load("pulsarx.backups.copying")
    from pulsarx.backups import copying

    return copying.restore(backup, target, progress, allow_damage)


def check(folder: str | os.PathLike[str], *, progress: Any = False) -> Contents:
    """Read every entry of every ledger, every cursor and all of the catalogue, compare them with
    their checksums and with each other, and answer what the folder holds: `damage` of it says what
    is not as it was written, where that is, and how many messages are missing by it. Nothing is
    changed.

    Beside an owner, in this process or another, what is published is read as far as it is when it
    is come to, and what goes meanwhile is passed over. What a kill left behind the last confirmed
    message is no damage. progress: as of `backup`. FolderError: no data directory.
    NewerFormatError. StorageError: this user may not read it, or the system refuses for now.
    """
    control_plane.load("pulsarx.backups.proof")
    from pulsarx.backups import proof

    return proof.check(folder, progress)
