"""The folder that a command line is about: how its commands reach it, whoever owns it."""

from __future__ import annotations

import os

from pulsarx import errors
from pulsarx.cli.output import Output
from pulsarx.options.service_url import CLUSTER_SCHEMES, parse_service_url

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.admin import Admin
    from pulsarx.client import Client

VARIABLE = "PULSARX_URL"


class Folder:
    """What was said of it on the command line. It is never made, and never owned for longer than a
    request or, for messages that are published or acknowledged, the work on those."""

    def __init__(self) -> None:
        self.url: str | None = None
        self.output = Output()

    @property
    def path(self) -> str:
        """InvalidUrl: it can be no folder."""
        url = self.url or os.environ.get(VARIABLE) or "."
        if url.partition(":")[0].lower() in CLUSTER_SCHEMES:
            raise errors.InvalidUrl(
                f"{url!r}: the command line works on folders, not on URLs yet; give --url FOLDER"
            )
        path = parse_service_url(url).folder
        if path is None:
            raise errors.InvalidUrl(
                f"{url!r}: what is in the memory of a process cannot be reached from another one; "
                "give --url FOLDER"
            )
        return path

    def admin(self) -> Admin:
        """Asks the owner; what only reads is read here where there is none."""
        from pulsarx.admin import Admin

        return Admin.at(self.path)

    def read_only(self) -> Client:
        """Beside the owner."""
        from pulsarx.client import Client

        return Client(self.path, read_only=True)

    def owned(self, action: str) -> Client:
        """As the owner, for as long as it is open. FolderOwnedError: another process is it."""
        from pulsarx.client import Client

        path = self.path
        self.read_only().close()  # refuses what is no data directory, which would become one
        try:
            return Client(path)
        except errors.FolderOwnedError as error:
            who = "another process" if error.pid is None else f"process {error.pid}"
            raise errors.FolderOwnedError(
                f"{path} is owned by {who}, and `pulsarx {action}` has to own it. Do it in {who}, "
                "or stop that and try again; ls, stats, tail, read, peek, seek, skip, clear and "
                "the groups work beside it",
                folder=path,
                pid=error.pid,
            ) from None
