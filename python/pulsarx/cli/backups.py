"""`pulsarx backup` and `pulsarx restore`: copies of a folder, and folders of copies."""

from __future__ import annotations

from dataclasses import asdict

from pulsarx.cli.command import command
from pulsarx.cli.declared import Path, argument, option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.backups.contents import Contents
    from pulsarx.cli.folder import Folder


@command("pulsarx backup events-monday")
@argument("target", type=Path())
def backup(folder: Folder, target: str) -> None:
    """Copy the folder to TARGET, which must not exist, or be empty.

    Also while it is used, by whatever process, and from `pulsarx serve` at an http:// URL, whose
    superusers may do that. TARGET appears when the copy is whole.
    """
    from pulsarx.backups import backup as copied

    source, more = folder.to_read()
    with folder.output.bar("Copying") as told:
        found = copied(source, target, progress=told, **more)
    _show(folder, found)


@command("pulsarx restore events-restored")
@argument("target", type=Path())
@option("--allow-damage", is_flag=True, help="Restore what is whole, and say what is not.")
def restore(folder: Folder, target: str, allow_damage: bool) -> None:
    """Make TARGET of a backup, which --url names, and prove that it is whole.

    Every entry is compared with its checksum, and every subscription is opened. TARGET must not
    exist, or be empty; it appears when it is proved. The backup stays as it is. Both are folders:
    that of a running server cannot be replaced under its clients.
    """
    from pulsarx.backups import restore as restored

    source = folder.place if folder.is_cluster else folder.path
    with folder.output.bar("Restoring") as told:
        found = restored(source, target, progress=told, allow_damage=allow_damage)
    _show(folder, found)


def _show(folder: Folder, found: Contents) -> None:
    fields = asdict(found)
    if folder.output.is_table:
        fields["damage"] = [str(each) for each in found.damage]
    folder.output.record(fields)
