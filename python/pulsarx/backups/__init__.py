"""Backups of a folder: `backup` copies one while it is used, `restore` makes a folder of a copy and
proves it; `check` proves a folder; `salvage` puts one together of what is whole of another. Not in
the official client; of folders of this machine, and of those that `pulsarx serve` serves, by its
URL.
"""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.options.service_url import CLUSTER_SCHEMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from typing import Any

    from pulsarx.admin.http_channel import HttpChannel
    from pulsarx.backups.contents import Contents, Salvaged
    from pulsarx.options.authentication import Authentication

__all__ = ["backup", "check", "restore", "salvage"]


def backup(
    folder: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    progress: Any = False,
    authentication: Authentication | None = None,
    tls_trust_certs_file_path: str | None = None,
) -> Contents:
    """Copy a folder, beside its owner too, in this process or another; answers what the copy holds.
    The owner goes on publishing and acknowledging.

    The copy is what a kill of the owner at one moment of the copying would have left: of each topic
    every message that was confirmed before `backup` was called, and those behind it without a gap
    up to some later moment, which is not the same for all topics; no acknowledgement of a message
    that it does not hold; policies, schemas and all else that the catalogue knows. Messages that
    were acknowledged while it was copied may be unacknowledged in it. Non-persistent topics keep
    nothing, and staging areas of jobs are left out.

    folder: an http:// or https:// URL is that of `pulsarx serve`, which sends the copy; superusers
    alone get it, where clients are asked who they are. It is read once more when it has come, and
    `damage` of what is answered says what was damaged there.
    target: does not exist yet, or is an empty folder; it appears, durable, when the copy is whole.
    An interrupted call removes what it wrote, a killed one leaves `<target>.<hex>.unfinished`.
    progress: True for a bar on the standard error output, or a callable (done, all), in bytes.
    authentication, tls_trust_certs_file_path: of a URL, as Admin.at.
    FolderError: no data directory, or a target that is in use. FolderOwnedError: the owner cannot
    be asked to keep what is copied. StorageError, StorageFullError. At a URL, besides:
    OperationNotSupported: there is another server than `pulsarx serve`. AuthorizationError.
    ServiceUnitNotReady: it sends too many by now. ConnectError, Timeout: the connection ended.
    """
    _require_folder(target, f"copy to {target!s}", "give a folder of this machine as target")
    channel = _channel(folder, authentication, tls_trust_certs_file_path)
    if channel is not None:
        control_plane.load("pulsarx.backups.served")
        from pulsarx.backups import served

        return served.backup(channel, target, progress)
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

    target, progress: as of `backup`. allow_damage: restore what is whole, as `salvage` does where
    marker or catalogue cannot be read; `damage` of what is answered says what is not.
    CorruptDataError, CatalogueError: it is not whole; there is no target then.
    FolderOwnedError: a client has opened the backup itself. FolderError, StorageError,
    StorageFullError: as of `backup`. InvalidUrl: backup or target is the URL of a server, whose
    folder cannot be replaced under its clients.
    """
    _require_folder(
        backup,
        f"restore {backup!s}",
        "that is a server and no backup; copy its folder with `backup`, and restore the copy",
    )
    _require_folder(
        target,
        f"restore to {target!s}",
        "the folder of a running server cannot be replaced under its clients; restore to a new "
        "folder on its machine, end the server, and have `pulsarx serve` serve the new one",
    )
    control_plane.load("pulsarx.backups.copying")
    from pulsarx.backups import copying

    return copying.restore(backup, target, progress, allow_damage)


def check(
    folder: str | os.PathLike[str],
    *,
    progress: Any = False,
    authentication: Authentication | None = None,
    tls_trust_certs_file_path: str | None = None,
) -> Contents:
    """Read every entry of every ledger, every cursor and all of the catalogue, compare them with
    their checksums and with each other, and answer what the folder holds: `damage` of it says what
    is not as it was written, where that is, and how many messages are missing by it. Nothing is
    changed.

    Beside an owner, in this process or another, what is published is read as far as it is when it
    is come to, and what goes meanwhile is passed over. What a kill left behind the last confirmed
    message is no damage. folder, progress, authentication, tls_trust_certs_file_path: as of
    `backup`; the server of a URL reads the folder itself. FolderError: no data directory.
    NewerFormatError. StorageError: this user may not read it, or the system refuses for now. At a
    URL, besides: as of `backup`.
    """
    channel = _channel(folder, authentication, tls_trust_certs_file_path)
    if channel is not None:
        control_plane.load("pulsarx.backups.served")
        from pulsarx.backups import served

        return served.check(channel, progress)
    control_plane.load("pulsarx.backups.proof")
    from pulsarx.backups import proof

    return proof.check(folder, progress)


def salvage(
    folder: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    progress: Any = False,
) -> Salvaged:
    """Make a folder of what is whole of another one, whose marker or catalogue is lost or damaged,
    and answer what that is: `found` has each topic, `damage` all that was left out, or is damaged
    in both, with file, offset and why, and `assumed` what no file says any more. Nothing of the
    folder is changed.

    Where the catalogue can be read, that counts, as far as it goes. What it does not say is told by
    the headers of ledgers (topic and id of each) and of cursors (topic and subscription).
    Policies, schemas, properties, and what has no file yet are in the catalogue alone. Ledgers
    written before their headers said that become topics `public/salvaged/ledger-<id>`. Open ones
    are recovered as by an owner. At the end all of the target is read, as by `check`.

    target, progress: as of `backup`. FolderError: no folder, or nothing that could be salvaged; or
    a target that is in use. FolderOwnedError: a client has it open. NewerFormatError. StorageError,
    StorageFullError. InvalidUrl: of a server. There is no target then.
    """
    _require_folder(
        folder, f"salvage {folder!s}", "that is a server; give the folder, on its machine"
    )
    _require_folder(target, f"salvage to {target!s}", "give a folder of this machine as target")
    control_plane.load("pulsarx.backups.salvaging")
    from pulsarx.backups import salvaging

    return salvaging.salvage(folder, target, progress)


def _is_url(place: str | os.PathLike[str], schemes: tuple[str, ...]) -> bool:
    scheme, mark, _ = str(place).partition("://")
    return bool(mark) and scheme.lower() in schemes


def _require_folder(place: str | os.PathLike[str], what: str, advice: str) -> None:
    """InvalidUrl: it is the URL of a server."""
    if _is_url(place, CLUSTER_SCHEMES):
        raise errors.InvalidUrl(detail=f"{what}: {advice}")


def _channel(
    folder: str | os.PathLike[str],
    authentication: Authentication | None,
    tls_trust_certs_file_path: str | None,
) -> HttpChannel | None:
    """Open the channel to the server that a URL names; None: it is a folder. InvalidUrl: it can be
    neither."""
    if _is_url(folder, ("http", "https")):
        control_plane.load("pulsarx.admin.http_channel")
        from pulsarx.admin.http_channel import HttpChannel

        return HttpChannel(str(folder), authentication, tls_trust_certs_file_path)
    _require_folder(folder, f"{folder!s}", "give the http:// URL of `pulsarx serve`, or a folder")
    if authentication is not None or tls_trust_certs_file_path is not None:
        raise errors.InvalidConfiguration(
            detail=f"{folder}: a folder has no authentication and no TLS"
        )
    return None
