"""Has the owner of a folder say when messages come on a topic that is read in this process, for
those who do not sleep on it: listeners, table views, coroutines; and when topics come, go or grow.
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx.processes.guest.host import GuestHost
    from pulsarx.processes.guest.owner_connection import GuestConnection


class _News:
    """News from one owner of the folder after the other. Any thread may call; the thread that reads
    the connection calls told and lost."""

    name: str

    def __init__(self, host: GuestHost) -> None:
        """A call of the control plane."""
        self._host = host
        while True:
            connection = self._connection = host.connection
            try:
                self._watch(connection)
                break
            except errors.ConnectError:
                if not connection.is_lost:
                    raise
        host.members.add(self)
        if connection.is_lost:
            host.bring(self)

    def resume(self, connection: GuestConnection) -> None:
        """Ask the owner there is now, which says at once that there may be news."""
        if connection is not self._connection:
            self._connection = connection
            self._watch(connection)

    def _watch(self, connection: GuestConnection) -> None:
        raise NotImplementedError

    def lost(self, _: Exception) -> None:
        """The connection has ended; there will be another one, or `end`."""

    def end(self, _: Exception) -> None:
        """Nobody tells it any more; who wants to know finds out when they look."""

    def abandon(self) -> None:
        """In a forked child: it is the parent's."""


class TopicNews(_News):
    """The owner's news of one topic."""

    def __init__(self, host: GuestHost, topic: str, tail: LedgerTail) -> None:
        """A call of the control plane."""
        self.name = topic
        self.topic = self  # as of a consumer, for the log
        self._tail = tail
        self._number = 0
        super().__init__(host)

    def _watch(self, connection: GuestConnection) -> None:
        number = self._number = connection.add_consumer(self)
        try:
            connection.perform("guest.watch", {"topic": self.name, "number": number})
        except errors.TopicNotFound:
            connection.forget_consumer(number)  # its readers find that out
        self._tail.wake()

    def leave(self) -> None:
        """Nobody here reads the topic any more: the owner need not tell of it, and may delete it
        when nobody else uses it."""
        connection, number = self._connection, self._number
        connection.forget_consumer(number)
        connection.perform("guest.unwatch", {"number": number})

    def told(self, _: str, values: dict[str, Any], __: bytes) -> None:
        if values["numbers"][0]:
            self._host.resume_later(partial(self._again, self._connection, self._number))
        self._tail.wake()

    def _again(self, connection: GuestConnection, number: int) -> None:
        """Its topic was unloaded, or deleted. A job."""
        connection.forget_consumer(number)
        if connection is self._connection and not connection.is_lost:
            self._watch(connection)

    def end(self, _: Exception) -> None:
        """Nobody tells it any more; readers find out when they look."""
        self._tail.wake()


class DirectoryNews(_News):
    """The owner's news of all topics."""

    name = "the news of topics"

    def __init__(self, host: GuestHost, heard: Callable[[], object]) -> None:
        """heard: only enqueues. A call of the control plane."""
        self.topic = host  # whose name the log has
        self._heard = heard
        super().__init__(host)

    def _watch(self, connection: GuestConnection) -> None:
        connection.perform("guest.watch_topics", {"number": connection.add_consumer(self)})

    def told(self, _: str, __: dict[str, Any], ___: bytes) -> None:
        self._heard()
