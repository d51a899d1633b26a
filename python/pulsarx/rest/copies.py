"""Routes about the folder as a whole, which Pulsar does not have: it is checked, or copied, beside
the clients that use it. They read every message, so they are for superusers.
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx.backups.records import FILES, LINES
from pulsarx.backups.streams import CheckStream, CopyStream
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.verbs.leases import release
from pulsarx.rest.route import Route

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.rest.call import Call, Host


def _check(call: Call) -> CheckStream:
    return CheckStream(_folder(call, "check the folder"))


def _backup(call: Call) -> CopyStream:
    return CopyStream(_folder(call, "copy the folder"), partial(_perform, call.host))


def _perform(host: Host, verb: str, arguments: dict[str, Any]) -> Any:
    if verb == "leases.release":
        # Also while the folder is being closed: it would hold what was copied for nothing.
        return release(host.broker, **arguments)
    return host.perform(verb, arguments)


def _folder(call: Call, what: str) -> str:
    """Its path. AuthorizationError: the client may not read all of it."""
    if call.host.access is not None:
        call.host.access.require_superuser(call.role or "", what)
    directory = call.host.broker.directory
    if not isinstance(directory, DataDirectory):
        raise errors.OperationNotSupported(
            detail=f"{what}: it is in memory, where there are no files"
        )
    return directory.path


ROUTES = [
    Route(
        "POST",
        "/pulsarx/check",
        _check,
        "Check all files of the folder: progress and damage as they come, then the counts.",
        answer=LINES,
    ),
    Route(
        "POST",
        "/pulsarx/backup",
        _backup,
        "Copy the folder: its files, block by block.",
        answer=FILES,
    ),
]
