"""The connection of this process to the one that owns a folder, over its control socket."""

from __future__ import annotations

import os
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx.broker.control.control_frame import FrameError, frame_receive, frame_send
from pulsarx.broker.control.control_socket import (
    GUEST_PROTOCOL,
    new_socket,
    shut,
    with_address,
)
from pulsarx.broker.requests.owner_request import check_is_owner, rebuilt
from pulsarx.ground.fork import at_fork
from pulsarx.processes.guest.connection import Connection
from pulsarx.wire.frames import FrameReader
from pulsarx.wire.protobuf import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ground.job_queue import JobQueue
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx.broker.folder.data_directory import DataDirectory
    from pulsarx.broker.folder.owner_lock import OwnerInfo
    from pulsarx.clock import Deadline

_READ_SIZE = 1 << 18  # bytes


_greeting: set[_socket.socket] = set()  # sockets of no connection yet


class NoOwner(Exception):
    """Nobody can be asked now: owners come and go. Never leaves this package."""


def greet_owner(
    directory: DataDirectory, owner: OwnerInfo, deadline: Deadline
) -> tuple[_socket.socket, dict[str, Any]]:
    """A connection to the owner of a folder, and the settings that it has.

    NoOwner: it is going, or has not come yet. Timeout: it does not answer. Raises what it answers.
    """
    connection = new_socket()
    _greeting.add(connection)
    try:
        connection.settimeout(deadline.remaining_seconds())
        with_address(directory.path, owner.control_socket, connection.connect)
        check_is_owner(directory, owner, connection)
        request = {"folder": directory.folder_id, "epoch": owner.epoch, "verb": "connect"}
        asked = {"protocol": GUEST_PROTOCOL, "pid": os.getpid()}
        frame_send(connection, {**request, "arguments": {}, "connect": asked}, deadline)
        answer = frame_receive(connection, deadline)
        if answer.get("again"):
            raise NoOwner(f"its owner (process {owner.pid}) is closing it")
        if "error" in answer:
            detail = str(answer.get("detail"))
            if answer["error"] == "OperationNotSupported":
                raise errors.FolderOwnedError(
                    detail=f"{directory.path} is owned by process {owner.pid}, whose version of "
                    "PulsarX does not share folders; use one version in all processes",
                    folder=directory.path,
                    pid=owner.pid,
                )
            raise rebuilt(str(answer["error"]), detail, answer.get("attributes"))
        connection.setblocking(False)
        return connection, answer["result"]
    except (TimeoutError, FrameError) as error:
        _drop(connection)
        raise errors.Timeout(
            detail=f"open {directory.path}: its owner (process {owner.pid}) does not answer. "
            + how_to_go_on(owner.pid)
        ) from error
    except OSError as error:
        _drop(connection)
        raise NoOwner(f"its owner (process {owner.pid}) cannot be reached: {error}") from error
    except BaseException:
        _drop(connection)
        raise


def how_to_go_on(pid: int) -> str:
    """The advice in an error about an owner that does not answer."""
    return (
        "It lives, and is stopped or busy, or hangs. Nobody else can own the folder as long as it "
        f"lives: to go on, end it (kill -9 {pid}); what it confirmed is kept, and another process "
        "owns the folder at once"
    )


def _drop(connection: _socket.socket) -> None:
    connection.close()
    _greeting.discard(connection)


class GuestConnection(Connection):
    """A connection to one owner. `read` is called by one thread."""

    def __init__(
        self,
        socket: _socket.socket,
        owner_pid: int,
        timeout_seconds: Callable[[], float],
        completions: CompletionQueue,
        background: JobQueue,
    ) -> None:
        self.socket = socket
        _greeting.discard(socket)
        self.owner_pid = owner_pid
        self.link: OwnerLink = OwnerLink(socket.fileno())
        super().__init__(
            self.link.write, partial(shut, socket), timeout_seconds, completions, background
        )

    def request(self, name: str, **values: Any) -> dict[str, Any]:
        """Send a request as a Connection does. ConnectError: also for what an owner refuses because
        it closes; the next one is to be asked."""
        return self._asked(partial(super().request, name, **values), values.get("verb") or name)

    def request_to_leave(self, name: str, **values: Any) -> dict[str, Any]:
        """Like `request`, waiting together with all that leave at a time."""
        ask = partial(super().request_to_leave, name, **values)
        return self._asked(ask, values.get("verb") or name)

    def _asked(self, ask: Callable[[], dict[str, Any]], what: str) -> dict[str, Any]:
        try:
            return ask()
        except errors.Timeout as error:
            raise self._unanswered(what) from error
        except (errors.AlreadyClosed, errors.ServiceUnitNotReady) as error:
            if not self.has_left():
                raise
            raise errors.ConnectError(
                detail=f"the owner (process {self.owner_pid}) was closing the folder"
            ) from error

    def settle(self) -> None:
        self._settled(super().settle)

    def settle_to_leave(self) -> None:
        self._settled(super().settle_to_leave)

    def _settled(self, settle: Callable[[], None]) -> None:
        try:
            settle()
        except errors.Timeout as error:
            raise self._unanswered("ask whether all is done") from error

    def _unanswered(self, what: str) -> errors.Timeout:
        return errors.Timeout(
            detail=f"{what}: no answer of the owner of the folder (process {self.owner_pid}) "
            f"within {self.timeout_seconds:g} s. It may have done it, or do it later. "
            + how_to_go_on(self.owner_pid)
        )

    def read(self) -> None:
        """Do what the owner sends, until the connection ends."""
        # `recv` would take so much memory anew each time, and give it back.
        taken = memoryview(bytearray(_READ_SIZE))
        while (size := self.link.wait(taken, True)) >= 0:
            if size or self.link.was_left:
                try:
                    self.received(taken[:size])
                except WireError:
                    return

    def _next_reader(self, values: dict[str, Any]) -> FrameReader:
        found = super()._next_reader(values)
        self.link.let_callers_read(found.cutter)
        return found

    def post_close_producer(self, number: int) -> None:
        """Have the owner close a producer; nobody waits for it."""
        self.request_later("CLOSE_PRODUCER", _nothing, producer_id=number)

    def close_consumer_later(self, number: int) -> None:
        """Have the owner close a consumer; nobody waits for it."""
        try:
            self.request_later("CLOSE_CONSUMER", _nothing, consumer_id=number)
        except (errors.AlreadyClosed, errors.ConnectError):
            pass  # it ended with its connection

    def let_go(self) -> None:
        """It has ended, and nobody reads it any more."""
        self.link.end()
        self.socket.close()

    def abandon(self) -> None:
        """In a forked child, whose copy would keep it open. No lock is to be taken."""
        descriptor = self.socket.detach()
        if descriptor >= 0:
            os.close(descriptor)


def _abandon_greetings() -> None:
    """In a forked child: its copies would keep them open when the parent has ended."""
    for each in list(_greeting):
        descriptor = each.detach()
        if descriptor >= 0:
            os.close(descriptor)
    _greeting.clear()


at_fork(__name__, _abandon_greetings)


def _nothing(_: Exception | None) -> None:
    pass
