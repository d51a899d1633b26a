"""Tells another process that messages may have come on a topic, which it reads itself."""

from __future__ import annotations

from pulsarx._pycore.ground.owner_link import frame
from pulsarx.wire.commands import LINK_NEWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.topics.topic import Topic


class GuestWatch:
    """One watch of one topic. Calls of its session, but for `due`."""

    def __init__(self, topic: Topic, number: int, wake: Callable[[], object]) -> None:
        """number: as the other process knows it."""
        self._topic = topic
        self._number = number
        self._wake = wake
        self.is_due = True  # for what came before it
        topic.tail.watch(self.due)
        topic.watches.add(self)

    def due(self) -> None:
        """In any thread, and with mutexes held."""
        self.is_due = True
        self._wake()

    @property
    def is_over(self) -> bool:
        """Whether the topic is not used any more: it was deleted, or unloaded."""
        return self._topic.is_gone

    def news(self) -> bytes:
        """The frame that says it."""
        self.is_due = False
        return frame(LINK_NEWS, self._number, int(self.is_over))

    def close(self) -> None:
        """Nobody there reads it any more."""
        self._topic.tail.unwatch(self.due)
        self._topic.watches.discard(self)
        self._topic.touch()
