"""The connections of other processes that use the folder of this one, each with a thread that does
all for it: reads, does what was asked for, delivers, and sends what the socket had no room for.

What a sender of this process publishes is sent to a guest by the sender, where that is plain, so
that this thread need not be woken; see PositionConsumer. Reading pauses while what came is not
answered, or not taken by the other process; delivering pauses while that does not take it.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.failure_log import log_failure
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.control.control_socket import shut
from pulsarx.clock import Deadline
from pulsarx.ground.attempt import attempt, insist
from pulsarx.ground.fork import at_fork
from pulsarx.processes.owner.session_verbs import SessionGuests
from pulsarx.sessions.server import Server
from pulsarx.wire.protobuf import WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable

    from pulsarx.broker.broker import Broker
    from pulsarx.sessions.session import Session

_READ_SIZE = 256 << 10  # bytes that are read at a time
UNSENT_MAX = 1 << 20  # bytes that a guest has not taken: nothing more is delivered, or read
_LAST_MAX = 1 << 20  # bytes that came before the end, and are done
_PARTING_MS = 5000  # how long guests may take their last answers

_log = logging.getLogger("pulsarx")


class GuestService:
    """Serves a broker's guests from its first one on until it is closed, or the broker, which hangs
    up on them last: what a guest leaves would go to the others. Any thread but the main one may
    call."""

    def __init__(self, broker: Broker) -> None:
        self.process: int = os.getpid()
        self._broker = broker
        self._closing = Lock()
        self._lock = Lock()  # of what follows, and of what LOCK says of guests
        self._is_ending = False
        self.all_are_quiet: Event = Event()  # nothing is given to any of them; see close
        self._pids: dict[ServedGuest, int] = {}  # of those that have not left
        self.connections: set[ServedGuest] = set()  # whose threads run
        self.server: Server = Server(broker)
        _services.add(self)

    def take(self, sock: _socket.socket, pid: int) -> bool:
        """Serve a guest, whose socket is closed with its connection. False: it cannot be served,
        and should see that, to come again or go to the next owner."""
        try:
            guest = ServedGuest(self, sock)
            with self._lock:
                if not self._is_ending:
                    self._begin(guest, pid)
                    return True
        except Exception as error:
            _log.error("another process cannot be served: %s", errors.detail_of(error))
        return False

    def _begin(self, guest: ServedGuest, pid: int) -> None:
        """Lock held. RuntimeError: there is no thread for it. StorageError: nobody could know of
        it."""
        self._pids[guest] = pid
        self.connections.add(guest)
        try:
            self._tell_guests()
            guest.thread.start()
        except BaseException:
            self.connections.discard(guest)
            del self._pids[guest]
            raise

    def _tell_guests(self) -> None:
        """Have the next owner know whom it is to await. While this one closes that stays. Lock
        held."""
        if not self._is_ending:
            awaited = self._broker.runtime.arrivals.awaited
            pids = awaited.union(self._pids.values())
            self._broker.directory.share(True, tuple(sorted(pids)))

    def has_guests(self) -> bool:
        """Whether another process is served, or is about to be."""
        return bool(self._pids)

    def let_go(self, guest: ServedGuest) -> None:
        """It is about to be hung up on. By its thread."""
        with self._lock:
            self._pids.pop(guest, None)
            failure = attempt(self._tell_guests)
        if failure is not None:
            _log.error("a process has left: %s", errors.detail_of(failure))

    def forget(self, guest: ServedGuest) -> None:
        """Its thread ends."""
        with self._lock:
            self.connections.discard(guest)

    # Life -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Do what guests have asked for up to now, answer, and hang up. Idempotent; in a forked
        child nothing.

        First none of them is given anything more: what one leaves when it is hung up on is still in
        its hands, and would go to those that are hung up on later.
        """
        if os.getpid() != self.process:
            return
        with self._closing:
            with self._lock:
                self._is_ending = True
                guests = list(self.connections)
            failure: Exception | None = None
            ended: list[ServedGuest] = []
            try:
                for each in guests:
                    error = attempt(each.end)
                    failure = error or failure
                    if error is None:
                        ended.append(each)
                deadline = Deadline(_PARTING_MS)
                for each in ended:
                    each.is_quiet.wait(deadline.remaining_seconds())
            finally:
                self.all_are_quiet.set()  # their threads wait for it, and hang up then
            for each in ended:
                each.thread.join()
            self.server.close()
            if failure is not None:
                raise failure

    def abandon(self) -> None:
        """In a forked child: its copies of the connections would keep them open when their owner
        has ended."""
        failure = None
        for each in list(self.connections):
            try:
                each.abandon()
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure


class ServedGuest:
    """The connection of another process on this machine. By its own thread, unless a method says
    otherwise."""

    def __init__(self, service: GuestService, sock: _socket.socket) -> None:
        self._service = service
        self._socket = sock
        self.link: OwnerLink = OwnerLink(sock.fileno())
        self.link.unsent_max = UNSENT_MAX
        self._session: Session | None = None
        self._is_ending = False  # nothing is to be read but what has come
        self.is_quiet: Event = Event()  # it is given nothing any more
        shut_here = partial(shut, sock)  # a forked child may have a copy
        steps = (self._be_quiet, self.link.flush_kept, self._part, self.link.end, shut_here)
        # Made here: at the end there may be no memory for it.
        self._last_steps: deque[Callable[[], object]] = deque(
            (*steps, sock.close, partial(service.forget, self))
        )
        self.thread: OwnThread = OwnThread(self._run, "pulsarx-guests")

    def _run(self) -> None:
        try:
            self._serve_and_tell()
        finally:
            self._end()

    def _serve_and_tell(self) -> None:
        try:
            self._serve()
        except WireError as error:
            _log.warning("the connection from another process was closed: %s", error)
        except BaseException as error:
            about = "because of a bug"
            log_failure(
                "pulsarx", error, "the connection from another process was closed, %s", about
            )

    def _end(self) -> None:
        """Whatever fails: the guest waits for the end, and others for what it has."""
        while self._last_steps:
            step = self._last_steps.popleft()
            try:
                insist(step)
            except BaseException as error:
                about = "as it should be"
                log_failure(
                    "pulsarx", error, "the connection from another process was not closed %s", about
                )

    def _serve(self) -> None:
        """Do what the guest asks for, and deliver, until either end hangs up."""
        link = self.link
        session = self._session = self._service.server.open_session(
            link.write, link.wake, has_room=link.has_room, guests=SessionGuests, link=link
        )
        taken = memoryview(bytearray(_READ_SIZE))
        left = _LAST_MAX
        while left > 0:
            is_ending = self._is_ending
            reads = link.has_room() and not session.is_full
            size = link.wait(taken, reads, 0 if is_ending else -1)
            if size < 0:
                session.lose()
                return
            is_due = link.was_asked or not size
            if size and session.received(taken[:size]):
                is_due = True
            if self._service.all_are_quiet.is_set():
                return  # it took longer than was waited for it: others have left what they had
            if is_due:
                link.flush_kept()  # this may take long
                session.deliver()
            if is_ending:
                if not size:
                    return
                left -= size

    def _be_quiet(self) -> None:
        """Give it nothing more and, where the owner closes, return when nobody is given more."""
        try:
            if self._session is not None and self._is_ending:
                self._session.want_nothing()
        finally:
            self.is_quiet.set()
        if self._is_ending:
            self._service.all_are_quiet.wait()

    def _part(self) -> None:
        """Close what the guest had, and have it take the last answers."""
        self._service.let_go(self)
        if self._session is not None:
            self._session.close()
        deadline = Deadline(_PARTING_MS)
        while self.link.unsent and not deadline.expired():
            self.link.wait(bytearray(), False, deadline.remaining_ms() or 0)

    def end(self) -> None:
        """Do what came, answer, and hang up. In any thread."""
        self._is_ending = True
        self.link.wake()

    def abandon(self) -> None:
        """In a forked child. No lock is to be taken."""
        descriptor = self._socket.detach()
        if descriptor >= 0:
            os.close(descriptor)


_services = WeakList()
_making = Lock()


def take_guest(broker: Broker, sock: _socket.socket, pid: int) -> bool:
    """Serve the process of a number, a guest of a broker, which becomes the owner of the socket;
    False: it is not, and the guest should see its end. What the control socket calls."""
    with _making:
        found: GuestService | None = getattr(broker, "guest_service", None)
        if found is None:
            found = GuestService(broker)
            broker.guest_service = found
    return found.take(sock, pid)


def _renew_lock() -> None:
    global _making
    _making = Lock()


at_fork(__name__, _renew_lock, abandon=_services)
