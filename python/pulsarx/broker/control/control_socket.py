"""The socket on which the owner of a data directory listens for requests of other processes.

Made by the registry for the broker of a folder. One thread sleeps in accept and uses no CPU; each
request has a thread of its own, a few at a time, so that none waits for another that is slow. Only
the user of the owner (and root) is answered. `LOCK` says the address:

control.sock   the socket of that name in the folder; reached through a descriptor of the folder
               where the whole path is longer than an address may be
@<name>        a name without a file, where the file system has no sockets
"""

from __future__ import annotations

import os
import stat
import sys
import threading
from functools import partial

from pulsarx._pycore.ground.failure_log import log_failure
from pulsarx._pycore.ground.file_system import hold_low_descriptors, open_descriptor
from pulsarx._pycore.ground.locks import Condition, Event, RLock
from pulsarx._pycore.ground.threads import OwnThread, rest_for_memory
from pulsarx._pycore.ground.unix_listener import UnixListener
from pulsarx.clock import Deadline, ManualClock
from pulsarx.errors import PulsarException, attributes_of, detail_of
from pulsarx.ground import upward

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from typing import Any

    from pulsarx.broker.broker import Broker

SOCKET_NAME = "control.sock"
GUEST_PROTOCOL = 6  # how processes that share a folder talk; see processes/
_REQUEST_MS = 10_000  # how long a request may take to arrive, and its answer to be taken
_BACKLOG = 64
_AT_ONCE_MAX = 8  # requests; others wait in the backlog
PATH_SIZE_MAX = 107  # of a socket's address, without the zero behind it
# After an accept that failed for want of descriptors or memory.
_REST_SECONDS = 1.0
_PEER_CREDENTIALS_SIZE = 12  # pid, uid, gid


class ControlSocket:
    """Listens from `open` to `close`. Any thread may close it; a forked child abandons it."""

    def __init__(self, broker: Broker, folder: str) -> None:
        """Use `open`. OSError: no socket can be had."""
        self.address: str = ""  # as LOCK says it
        self._broker = broker
        self._folder = folder
        self._listener = UnixListener()
        self._lock = RLock()
        self._closed = False
        self._changed = Condition(self._lock)
        self._asking: dict[_socket.socket, int] = {}  # and the thread of each
        self._reading: set[_socket.socket] = set()  # those whose request is awaited
        self._rest = Event()
        self._thread = OwnThread(self._serve, "pulsarx-socket")

    @classmethod
    def open(cls, broker: Broker) -> ControlSocket | None:
        """Listen for a broker that owns its folder; None (and a warning) where that is impossible,
        everything else works without."""
        folder = broker.directory.path
        made = None
        try:
            made = cls(broker, folder)
            made._bind()
            made._listener.listen(_BACKLOG)
            made._thread.start()
        except (OSError, RuntimeError) as error:  # no sockets, descriptors or threads
            if made is not None:
                made._listener.close()
            try:
                import logging
            except OSError:  # not even its file can be opened
                return None
            logging.getLogger("pulsarx").warning(
                "%s: no control socket (%s); other processes cannot attach while this one is "
                "the owner",
                folder,
                error,
            )
            return None
        return made

    def _bind(self) -> None:
        self._remove_stale(f"{self._folder}/{SOCKET_NAME}")
        try:
            with_address(self._folder, SOCKET_NAME, self._listener.bind)
            os.chmod(f"{self._folder}/{SOCKET_NAME}", 0o600)  # before anybody is listened to
            self.address = SOCKET_NAME
        except OSError:
            self._listener.close()
            self._listener = UnixListener()  # the first one may be bound
            self.address = f"@pulsarx-{self._broker.directory.folder_id}-{os.getpid()}"
            with_address(self._folder, self.address, self._listener.bind)

    @staticmethod
    def _remove_stale(path: str) -> None:
        """Remove the socket of a killed owner: the lock is ours, so no owner listens there."""
        try:
            if not stat.S_ISSOCK(os.lstat(path).st_mode):
                import errno

                raise OSError(errno.EEXIST, "is no socket, and none of ours", path)
            os.unlink(path)
        except FileNotFoundError:
            pass

    def close(self) -> None:
        """Finish the requests that are being performed and listen no more. May be called twice."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._listener.shutdown()
            for each in self._reading:
                shut(each)
            self._changed.notify_all()
        self._rest.set()
        me = threading.get_ident()  # that of a request, if that forgot the last client
        if not self._thread.runs_here():
            self._thread.join()
        with self._lock:
            while any(each != me for each in self._asking.values()):
                self._changed.wait()
        self._listener.close()
        if self.address == SOCKET_NAME and self._broker.directory.is_there():
            try:
                os.unlink(f"{self._folder}/{SOCKET_NAME}")
            except OSError:
                pass  # the next owner does it

    def abandon(self) -> None:
        """In a forked child: let go of the descriptors, which are copies; the parent listens on."""
        self._closed = True
        self._listener.close()
        for each in self._asking:
            each.close()

    def _serve(self) -> None:
        rests = False
        while not self._closed:
            try:
                if rests:
                    self._rest.wait(_REST_SECONDS)
                    rests = False
                self._serve_next()
            except Exception:  # no descriptors or memory: others wait in the backlog
                rests = True

    def _serve_next(self) -> None:
        try:
            descriptor = self._listener.accept()
        except ConnectionAbortedError:
            return
        try:
            connection = _connection(descriptor)
        except BaseException:  # no descriptor is left to load the module with, or no memory
            os.close(descriptor)
            raise
        try:
            with self._lock:
                self._asking[connection] = 0
            try:
                OwnThread(partial(self._talk, connection), "pulsarx-request").start()
            except RuntimeError:  # no more threads
                self._talk(connection)
        except BaseException:
            self._hang_up(connection, False)
            raise
        with self._lock:
            while len(self._asking) >= _AT_ONCE_MAX and not self._closed:
                self._changed.wait()

    def _talk(self, connection: _socket.socket) -> None:
        is_taken = False
        try:
            from pulsarx.broker.control.control_frame import FrameError

            self._asking[connection] = threading.get_ident()
            try:
                if user_of(connection) in (0, os.geteuid()):
                    is_taken = self._answer(connection)
            except (FrameError, OSError):
                pass  # the asking process is gone, or does not follow the protocol
        except Exception as error:  # as without memory: it sees the end, and may ask again
            log_failure("pulsarx", error, "a request on the control socket failed%s", "")
        finally:
            self._hang_up(connection, is_taken)

    def _hang_up(self, connection: _socket.socket, is_taken: bool) -> None:
        """is_taken: a guest has the connection. `close` waits for it, so it is done though there be
        no memory now."""
        while True:
            try:
                if not is_taken:
                    connection.close()
                with self._lock:
                    self._asking.pop(connection, None)
                    self._changed.notify_all()
                return
            except MemoryError:
                rest_for_memory()

    def _answer(self, connection: _socket.socket) -> bool:
        """Perform the one request of a connection, or take its process as a guest: true."""
        from pulsarx.broker.control.control_frame import frame_receive, frame_send

        with self._lock:
            if self._closed:
                return False
            self._reading.add(connection)
        try:
            request = frame_receive(connection, Deadline(_REQUEST_MS))
        finally:
            with self._lock:
                self._reading.discard(connection)
        is_guest = "connect" in request
        answer = self._greet(request["connect"]) if is_guest else None
        if answer is None or self._is_of_another(request):
            answer, is_guest = self._perform(request), False
        try:
            frame_send(connection, answer, Deadline(_REQUEST_MS))
        except ValueError as error:
            told = {"error": "StorageError", "detail": f"the answer: {error}"}
            frame_send(connection, told, Deadline(_REQUEST_MS))
        if not is_guest:
            return False
        asked = request["connect"]
        pid: Any = asked.get("pid") if isinstance(asked, dict) else None
        arrivals = self._broker.runtime.arrivals
        if "error" in answer:
            arrivals.has_arrived(pid)
            return False
        arrivals.comes(pid)
        service = upward.load("pulsarx.processes.owner.service")
        return bool(service.take_guest(self._broker, connection, pid))

    def _greet(self, asked: Any) -> dict[str, Any]:
        """The answer to another process that wants to use the folder through this one."""
        broker = self._broker
        protocol = asked.get("protocol") if isinstance(asked, dict) else None
        if protocol != GUEST_PROTOCOL:
            return {
                "error": "FolderOwnedError",
                "detail": f"{broker.name} is owned by process {os.getpid()}, whose version of "
                f"PulsarX shares folders by protocol {GUEST_PROTOCOL}, not {protocol!r:.20}; use "
                "one version in all processes",
                "attributes": {"folder": broker.directory.path, "pid": os.getpid()},
            }
        if broker.exclusive_count:
            return {
                "error": "FolderOwnedError",
                "detail": f"{broker.name} is owned by process {os.getpid()}, which opened it with "
                "exclusive=True and does not share it. Close it there, or open it with "
                "read_only=True",
                "attributes": {"folder": broker.directory.path, "pid": os.getpid()},
            }
        settings = broker.settings
        return {
            "result": {
                **settings.shared(),
                "manual_clock": isinstance(settings.clock, ManualClock),
                "pid": os.getpid(),
            }
        }

    def _is_of_another(self, request: dict[str, Any]) -> bool:
        """Whether it was asked of an owner before this one, whose LOCK was read."""
        directory = self._broker.directory
        return bool(
            request.get("folder") != directory.folder_id or request.get("epoch") != directory.epoch
        )

    def _perform(self, request: dict[str, Any]) -> dict[str, Any]:
        from pulsarx.broker.verbs.table import perform

        if self._is_of_another(request):
            return {"again": True}
        try:
            result = perform(self._broker, request.get("verb"), request.get("arguments"))
            return {"result": result}
        except PulsarException as error:
            if not self._broker.state.is_open:
                return {"again": True, "begun": True}
            told = {"error": type(error).__name__, "detail": detail_of(error)}
            return {**told, "attributes": attributes_of(error)}
        except (ValueError, TypeError) as error:
            return {"error": "ValueError", "detail": str(error)}
        except Exception as error:
            import logging

            logging.getLogger("pulsarx").exception("a request on the control socket failed")
            return {"error": "InternalError", "detail": f"{type(error).__name__}: {error}"}


def _connection(descriptor: int) -> _socket.socket:
    # By the first request: opening a folder is not to pay for it.
    from pulsarx.broker.control.control_frame import sockets

    return sockets.socket(fileno=descriptor)


def new_socket() -> _socket.socket:
    """A Unix stream socket."""
    from pulsarx.broker.control.control_frame import sockets

    hold_low_descriptors()
    return sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM)


def with_address(folder: str, address: str, use: Any) -> None:
    """Call use(what the system takes for an address), for `bind` and `connect`."""
    if address.startswith("@"):
        use("\0" + address[1:])
        return
    path = f"{folder}/{address}"
    if len(os.fsencode(path)) <= PATH_SIZE_MAX:
        use(path)
        return
    descriptor = open_descriptor(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        use(f"/proc/self/fd/{descriptor}/{address}")
    finally:
        os.close(descriptor)


def user_of(connection: _socket.socket) -> int:
    """The user at the other end, as the system knows it."""
    from pulsarx.broker.control.control_frame import sockets

    size = _PEER_CREDENTIALS_SIZE
    peer = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, size)
    return int.from_bytes(peer[4:8], sys.byteorder)


def shut(one: _socket.socket) -> None:
    """Wake the threads that sleep in a call on it."""
    from pulsarx.broker.control.control_frame import sockets

    try:
        one.shutdown(sockets.SHUT_RDWR)
    except OSError:
        pass  # not connected
