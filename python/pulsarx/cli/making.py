"""`pulsarx init`: makes a folder."""

from __future__ import annotations

from pulsarx.cli.command import command, folder_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.cli.folder import Folder


@command("pulsarx init events")
@folder_argument
def init(folder: Folder) -> None:
    """Make a folder for topics and messages.

    The folder must not exist, or be empty. One that is made already stays as it is. Other commands
    never make one, but for `produce --create-folder`.
    """
    made = folder.make()
    folder.output.record({"folder": folder.path, "made": made})
