"""Serves the topics of one broker to clients at the other end of connections."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx._pycore.wire.command_output import CommandOutput
from pulsarx.sessions.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx._pycore.ground.owner_link import OwnerLink
    from pulsarx.access.access import Access
    from pulsarx.access.advertised_listeners import AdvertisedListener
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.sessions.context import GuestPart


def _always() -> bool:
    return True


def _nobody() -> None:
    return None


class Server:
    """The shared part of the sessions of one broker. Any thread may call but the main one, which
    runs no function of the broker."""

    def __init__(
        self,
        broker: Broker,
        *,
        verbs: bool = True,
        access: Access | None = None,
        listeners: dict[str, AdvertisedListener] | None = None,
    ) -> None:
        """broker: open as long as the server is. verbs: whether clients may ask for any verb, as
        the user of the broker's process may. access: who clients are, and what they may do; None:
        they are not asked, and may do everything else. listeners: where clients are led to
        that ask for a name."""
        self.broker = broker
        self.verbs = verbs
        self.access = access
        self.listeners: dict[str, AdvertisedListener] = listeners or {}
        # Callbacks are told the error itself: its code and its text go to the client.
        self.completions: CompletionQueue = CompletionQueue(None, lambda error: error)
        self._lock = Lock()  # of what follows
        self._sessions: set[Session] = set()
        # Where non-durable subscriptions were moved, and the sessions that have not heard of it.
        self._sought: dict[tuple[str, str], tuple[Position, set[Session]]] = {}
        if access is not None:
            broker.on_permissions.append(self._permissions_have_changed)

    def open_session(
        self,
        write: Callable[[bytes], object],
        wake: Callable[[], object],
        *,
        has_room: Callable[[], bool] = _always,
        output: CommandOutput | None = None,
        service_url: str | None = None,
        service_url_tls: str | None = None,
        certificate_name: Callable[[], str | None] = _nobody,
        host: str = "",
        guests: Callable[..., GuestPart] | None = None,
        link: OwnerLink | None = None,
    ) -> Session:
        """The session of a new connection. See Session, ClientProof and SessionContext. output:
        what write belongs to; None: to nothing that could take bytes natively."""
        if output is None:
            output = CommandOutput(write, has_room)
        session = Session(self, write, wake, output, service_url, guests)
        if link is not None:
            session.use_link(link)
        session.context.service_url_tls = service_url_tls
        session.proof.certificate_name, session.proof.host = certificate_name, host
        with self._lock:
            self._sessions.add(session)
        return session

    def forget_session(self, session: Session) -> None:
        with self._lock:
            self._sessions.discard(session)
            for key in list(self._sought):
                self._has_heard(session, key)

    def _has_heard(self, session: Session, key: tuple[str, str]) -> None:
        """A session has subscribed again after a seek, or never will; lock held."""
        _, unheard = self._sought[key]
        unheard.discard(session)
        if not unheard:
            del self._sought[key]

    def seek(self, subscription: Subscription, find: Callable[[], Position]) -> None:
        """Move a subscription. All its consumers are closed, and come again; what they acknowledge
        from now on does not count, as it is of before.

        A non-durable one goes with the last of its consumers: when they come again, from one
        connection sooner than from another, it may be made anew where it went, or be there still.
        """
        found: list[Position] = []

        def find_and_keep() -> Position:
            found.append(find())
            return found[-1]

        with self._lock:
            behind = [each for each in self._sessions if each.has_consumers_of(subscription)]
        for session in behind:
            session.fall_behind(subscription, True)
        try:
            subscription.seek(find_and_keep)
        except BaseException:
            for session in behind:
                session.fall_behind(subscription, False)
            raise
        with self._lock:
            sessions = [each for each in self._sessions if each.has_consumers_of(subscription)]
            if not subscription.durable:
                key = (subscription.topic.name, subscription.name)
                self._sought[key] = (found[-1], set(sessions))
        for session in sessions:
            session.close_consumers_of(subscription)

    def take_sought(self, session: Session, topic: str, subscription: str) -> Position | None:
        """The position to which a non-durable subscription was moved before a consumer of the
        session was closed for it."""
        with self._lock:
            sought = self._sought.get((topic, subscription))
            if sought is None or session not in sought[1]:
                return None
            self._has_heard(session, (topic, subscription))
            return sought[0]

    def _permissions_have_changed(self) -> None:
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.check_permissions()

    def close(self) -> None:
        """End all sessions. The broker stays open."""
        if self._permissions_have_changed in self.broker.on_permissions:
            self.broker.on_permissions.remove(self._permissions_have_changed)
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()
        self.completions.close()
