"""Has the process that owns a data directory perform an admin operation.

For every process that can reach the folder. In this order: the broker of this very process, the
owner over its control socket, this process itself: for a verb that only reads, without owning the
folder, else as the owner for just this request.
"""

from __future__ import annotations

import errno
import os

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ground.locks import Event
from pulsarx.broker import registry
from pulsarx.broker.control.control_frame import FrameError, frame_receive, frame_send
from pulsarx.broker.control.control_socket import new_socket, user_of, with_address
from pulsarx.broker.folder.data_directory import BRIEF_OWNER, LOCK_NAME, DataDirectory
from pulsarx.broker.verbs.table import VERBS, perform
from pulsarx.clock import Deadline

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.folder.owner_lock import OwnerInfo

    Arguments = dict[str, Any]

TIMEOUT_MS = 60_000
_PATIENCE_MS = 10_000  # with an owner that comes or goes, or cannot be reached
# While an owner comes or goes; each wait is longer than the one before, up to the second number.
_WAIT_FIRST_SECONDS = 0.005
_WAIT_MAX_SECONDS = 0.25


def ask_owner(
    folder: str | os.PathLike[str],
    verb: str,
    arguments: Arguments,
    timeout_ms: int = TIMEOUT_MS,
    known: Callable[[], Arguments | None] | None = None,
) -> Any:
    """The answer of a verb of `broker.verbs.table`. Repeats it as long as owners come and go,
    unless it removes something and may have done so.

    known: asked for the answer before this process makes itself the owner, which is a commit.
    FolderError: no data directory. FolderOwnedError: its owner cannot be reached.
    Timeout: an owner was asked and did not answer; the request may have been performed.
    """
    # Without a signal in between: this process may become the owner for a moment.
    return control_plane.perform(
        _ask_until_answered,
        (os.path.realpath(os.fspath(folder)), verb, arguments, timeout_ms, known),
    )


def _ask_until_answered(
    path: str,
    verb: str,
    arguments: Arguments,
    timeout_ms: int,
    known: Callable[[], Arguments | None] | None,
) -> Any:
    deadline = Deadline(timeout_ms)
    patience = Deadline(min(timeout_ms, _PATIENCE_MS))
    wait = Event()
    wait_seconds = _WAIT_FIRST_SECONDS
    unanswered = False
    pid: int | None = None
    while True:
        try:
            return _ask_once(path, verb, arguments, deadline, known)
        except _Unanswered as error:
            # The owner that was asked is gone. The next one knows what it has done.
            found = str(error)
            unanswered = True
            if verb in VERBS and VERBS[verb].removes:
                raise errors.Timeout(
                    detail=f"{verb} in {path}: {found}. It may have been done, and is not "
                    "repeated, as that would remove what has come since; look, and ask again"
                ) from error
            patience = Deadline(_PATIENCE_MS)
        except _NotNow as error:
            found, pid = str(error), error.pid
        if patience.expired() or deadline.expired():
            what = f"{verb} in {path}, asked on host {os.uname().nodename}: {found}"
            if unanswered:
                raise errors.Timeout(detail=f"{what}. It may have been done; ask again")
            raise errors.FolderOwnedError(detail=what, folder=path, pid=pid)
        wait.wait(wait_seconds)
        wait_seconds = min(2 * wait_seconds, _WAIT_MAX_SECONDS)


def check_owner(folder: str | os.PathLike[str]) -> None:
    """FolderOwnedError: the folder has an owner that cannot be asked from here."""
    directory = DataDirectory.open(os.path.realpath(folder), files=FileSystem(), read_only=True)
    try:
        owned = directory.owner() is not None
    finally:
        directory.close()
    if owned:
        ask_owner(folder, "leases.release", {"job": "nobody"})  # which has no lease, says the owner


class _Unanswered(Exception):
    """The owner was asked and went away. Never leaves this module."""


class _NotNow(Exception):
    """No owner was asked: they come and go, or cannot be reached. Never leaves this module."""

    def __init__(self, text: str, pid: int | None = None) -> None:
        super().__init__(text)
        self.pid = pid


def _ask_once(
    path: str,
    verb: str,
    arguments: Arguments,
    deadline: Deadline,
    known: Callable[[], Arguments | None] | None,
) -> Any:
    """The answer of the process that owns the folder now, be it this one."""
    mine = registry.lend(path)
    if mine is not None:
        try:
            return perform(mine, verb, arguments)
        finally:
            registry.release(path, mine)
    directory = DataDirectory.open(path, files=FileSystem(), read_only=True)
    try:
        return _ask_owner_of(directory, verb, arguments, deadline, known)
    finally:
        directory.close()


def _ask_owner_of(
    directory: DataDirectory,
    verb: str,
    arguments: Arguments,
    deadline: Deadline,
    known: Callable[[], Arguments | None] | None,
) -> Any:
    owner = directory.owner()
    if owner is None:
        answer = known() if known is not None else None
        if answer is not None:
            return answer
        return _ask_nobody(directory.path, verb, arguments)
    if owner.control_socket == BRIEF_OWNER:
        raise _NotNow(
            f"another process (pid {owner.pid}) owns it for a request of its own", owner.pid
        )
    if not owner.control_socket:
        raise _NotNow(f"its owner (pid {owner.pid}) has no control socket (yet)", owner.pid)
    return _ask_over_socket(directory, owner, verb, arguments, deadline)


def _ask_nobody(path: str, verb: str, arguments: Arguments) -> Any:
    """Read the folder as it lies, or own it for this request alone."""
    from pulsarx.broker.runtime import BrokerSettings

    if verb in VERBS and VERBS[verb].reads:
        return _read(path, verb, arguments)

    settings = BrokerSettings()
    answer: list[Any] = []

    def work(broker: Broker) -> None:
        answer.append(perform(broker, verb, arguments))

    try:
        done = registry.own_briefly(path, path, settings, work)
    except errors.FolderOwnedError as error:
        raise _NotNow(errors.detail_of(error), error.pid) from error
    if not done:
        raise _NotNow("this process is just opening it")
    return answer[0]


def _read(path: str, verb: str, arguments: Arguments) -> Any:
    """Nothing is written, so it works on folders that may only be read."""
    from pulsarx.broker.read_only_broker import ReadOnlyBroker

    folder = ReadOnlyBroker(path)
    try:
        return perform(folder, verb, arguments)
    finally:
        folder.close()


def _ask_over_socket(
    directory: DataDirectory,
    owner: OwnerInfo,
    verb: str,
    arguments: Arguments,
    deadline: Deadline,
) -> Any:
    connection = new_socket()
    asked = False
    try:
        connection.settimeout(deadline.remaining_seconds())
        with_address(directory.path, owner.control_socket, connection.connect)
        check_is_owner(directory, owner, connection)
        request = {"folder": directory.folder_id, "epoch": owner.epoch, "verb": verb}
        frame_send(connection, {**request, "arguments": arguments}, deadline)
        asked = True
        answer = frame_receive(connection, deadline)
    except OSError as error:
        if asked:
            raise _Unanswered(f"its owner (pid {owner.pid}) went away: {error}") from error
        raise _NotNow(
            f"its owner (pid {owner.pid}) does not answer on its control socket ({error}). "
            "Is it on another host, or of another user? Ask from there, or close it",
            owner.pid,
        ) from error
    except FrameError as error:
        raise errors.Timeout(
            detail=f"{verb} in {directory.path}: no answer of the owner (pid {owner.pid}): "
            f"{error}. It may have been done; ask again"
        ) from error
    finally:
        connection.close()
    if answer.get("again"):
        if answer.get("begun"):
            raise _Unanswered(f"its owner (pid {owner.pid}) was closing")
        raise _NotNow(f"its owner (pid {owner.pid}) is closing", owner.pid)
    if "error" in answer:
        raise rebuilt(str(answer["error"]), str(answer.get("detail")), answer.get("attributes"))
    return answer.get("result")


def check_is_owner(directory: DataDirectory, owner: OwnerInfo, connection: _socket.socket) -> None:
    """Refuse a listener that may not write LOCK: any user can take a name without a file."""
    if owner.control_socket.startswith("@"):
        expected = os.stat(f"{directory.path}/{LOCK_NAME}").st_uid
        if user_of(connection) not in (0, os.geteuid(), expected):
            raise PermissionError(errno.EPERM, "another user listens there")


def rebuilt(name: str, detail: str, attributes: object) -> Exception:
    if name == "ValueError":
        return ValueError(detail)
    kind = getattr(errors, name, None)
    if not isinstance(kind, type) or not issubclass(kind, errors.PulsarException):
        kind = errors.InternalError
    return errors.remade(kind, detail, attributes)
