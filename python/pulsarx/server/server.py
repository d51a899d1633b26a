"""Serves the topics of one broker to clients at the other end of connections."""

from __future__ import annotations

import threading

from pulsarx._pycore.publish.completion_queue import CompletionQueue
from pulsarx.server.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscription import Subscription


class Server:
    """What the sessions of one broker share. Any thread may call but the main one, which runs no
    function of the broker."""

    def __init__(self, broker: Broker) -> None:
        """broker: open as long as the server is."""
        self.broker = broker
        # Callbacks are told the error itself: its code and its text go to the client.
        self.completions = CompletionQueue(None, lambda error: error)
        self._lock = threading.Lock()  # of what follows
        self._sessions: set[Session] = set()
        self._sought: dict[tuple[str, str], Position] = {}

    def open_session(self, write: Callable[[bytes], object], wake: Callable[[], object]) -> Session:
        """The session of a new connection. See Session."""
        session = Session(self, write, wake)
        with self._lock:
            self._sessions.add(session)
        return session

    def forget_session(self, session: Session) -> None:
        with self._lock:
            self._sessions.discard(session)

    def seek(self, subscription: Subscription, find: Callable[[], Position]) -> None:
        """Move a subscription. All its consumers are closed, and come again.

        A non-durable one goes with its consumers: the next consumer of its name, which does not say
        where to begin, begins where this one went.
        """
        if subscription.durable:
            subscription.seek(find)
        else:
            position = find()
            with self._lock:
                self._sought[subscription.topic.name, subscription.name] = position
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close_consumers_of(subscription)

    def take_sought(self, topic: str, subscription: str) -> Position | None:
        """Where a non-durable subscription was moved before its consumer was closed."""
        with self._lock:
            return self._sought.pop((topic, subscription), None)

    def close(self) -> None:
        """End all sessions. The broker stays open."""
        with self._lock:
            sessions = list(self._sessions)
        for session in sessions:
            session.close()
        self.completions.close()
