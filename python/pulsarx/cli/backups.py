"""`pulsarx backup` and `pulsarx restore`: copies of a folder, and folders of copies."""

from __future__ import annotations

from dataclasses import asdict

import click

from pulsarx.cli.command import command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.cli.folder import Folder


@command("pulsarx backup events-monday")
@click.argument("target", type=click.Path())
def backup(folder: Folder, target: str) -> None:
    """Copy the folder to TARGET, which must not exist, or be empty.

    Also while it is used, by whatever process. TARGET appears when the copy is whole.
    """
    from pulsarx.backups import backup as copied

    with folder.output.progress("Copying", None) as advance:
        found = copied(folder.path, target, progress=_steps(advance))
    folder.output.record(asdict(found))


@command("pulsarx restore events-restored")
@click.argument("target", type=click.Path())
@click.option("--allow-damage", is_flag=True, help="Restore what is whole, and say what is not.")
def restore(folder: Folder, target: str, allow_damage: bool) -> None:
    """Make TARGET of a backup, which --url names, and prove that it is whole.

    Every entry is compared with its checksum, and every subscription is opened. TARGET must not
    exist, or be empty; it appears when it is proved. The backup stays as it is.
    """
    from pulsarx.backups import restore as restored

    with folder.output.progress("Restoring", None) as advance:
        found = restored(folder.path, target, progress=_steps(advance), allow_damage=allow_damage)
    folder.output.record(asdict(found))


def _steps(advance: Callable[[int], None]) -> Callable[[int, int | None], None]:
    """Tells what came since the call before."""
    before = 0

    def told(done: int, _: int | None) -> None:
        nonlocal before
        advance(done - before)
        before = done

    return told
