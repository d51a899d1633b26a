"""`pulsarx check`: reads all of a folder, and tells what is damaged."""

from __future__ import annotations

from dataclasses import asdict

from pulsarx.cli.command import DAMAGED, command, folder_argument
from pulsarx.cli.declared import Exit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.cli.folder import Folder


@command("pulsarx check")
@folder_argument
def check(folder: Folder) -> None:
    """Read every ledger, cursor and commit of the folder, and tell what is damaged.

    Also while it is used, by whatever process, and by `pulsarx serve` at an http:// URL, for its
    superusers; nothing is changed. Prints each damaged place, and
    then what the folder holds. The exit status is 3 where there is damage, and 1 where the folder
    cannot be read.
    """
    from pulsarx.backups import check as checked

    source, more = folder.to_read()
    with folder.output.bar("Checking") as told:
        found = checked(source, progress=told, **more)
    damage = [asdict(each) for each in found.damage]
    if damage:
        folder.output.rows(("what", "messages", "text"), damage)
    folder.output.record({**asdict(found), "damage": len(damage)})
    if damage:
        raise Exit(DAMAGED)
