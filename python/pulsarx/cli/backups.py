"""`pulsarx backup`, `pulsarx restore` and `pulsarx salvage`: copies of a folder, folders of copies,
and of what is whole of a damaged one."""

from __future__ import annotations

from dataclasses import asdict

from pulsarx.cli.command import DAMAGED, command
from pulsarx.cli.declared import Exit, Path, argument, option

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


@command("pulsarx salvage events events-salvaged")
@argument("path", metavar="FOLDER", type=Path())
@argument("target", type=Path())
def salvage(folder: Folder, path: str, target: str) -> None:
    """Make TARGET of what is whole of FOLDER, whose marker or catalogue is lost or damaged.

    Prints each topic that is found, what no file says any more and was assumed, and each thing that
    is left out, with file, offset and why. FOLDER stays as it is, and nobody may have it open.
    TARGET must not exist, or be empty; it appears when it is whole. The exit status is 3 where
    something is left out, and 1 where nothing can be salvaged: there is no TARGET then.
    """
    from pulsarx.backups import salvage as salvaged

    with folder.output.bar("Salvaging") as told:
        found = salvaged(path, target, progress=told)
    fields = asdict(found)
    topics, assumed, damage = (fields.pop(each) for each in ("found", "assumed", "damage"))
    if topics:
        folder.output.rows(("topic", "ledgers", "messages", "subscriptions"), topics)
    if assumed:
        folder.output.rows(("assumed",), [{"assumed": each} for each in assumed])
    if damage:
        folder.output.rows(("what", "messages", "text"), damage)
    folder.output.record({**fields, "found": len(topics), "damage": len(damage)})
    if damage:
        raise Exit(DAMAGED)


def _show(folder: Folder, found: Contents) -> None:
    fields = asdict(found)
    if folder.output.is_table:
        fields["damage"] = [str(each) for each in found.damage]
    folder.output.record(fields)
