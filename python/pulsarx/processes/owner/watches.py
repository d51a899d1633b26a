"""Tells another process that messages may have come on a topic, which it reads itself, or that
topics came, went or grew."""

from __future__ import annotations

from pulsarx._pycore.ground.due_flag import DueFlag
from pulsarx._pycore.ground.owner_link import frame
from pulsarx.broker.topics.inactivity import watched, watched_no_more
from pulsarx.wire.commands import LINK_NEWS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.topic_name import TopicName


class GuestWatch(DueFlag):
    """One watch of one topic. Calls of its session, but for `due`."""

    def __init__(self, topic: Topic, number: int, wake: Callable[[], object]) -> None:
        """number: as the other process knows it."""
        super().__init__(wake)
        self._topic = topic
        self._number = number
        topic.tail.watch(self.due)
        watched(topic, self)

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
        watched_no_more(self._topic, self)
        self._topic.touch()


class GuestTopicsWatch:
    """One watch of all topics of the folder. Calls of its session, but for those of the directory
    of topics, which come in any thread."""

    is_over = False

    def __init__(self, broker: Broker, number: int, wake: Callable[[], object]) -> None:
        """number: as the other process knows it."""
        self._number = number
        self._wake = wake
        self.is_due: bool = True  # for what came before it
        broker.topics.watch(self)

    def created(self, _: TopicName) -> None:
        self.is_due = True
        self._wake()

    def deleted(self, name: TopicName) -> None:
        self.created(name)

    def grown(self, name: TopicName) -> None:
        self.created(name)

    def news(self) -> bytes:
        """The frame that says it."""
        self.is_due = False
        return frame(LINK_NEWS, self._number, 0)

    def close(self) -> None:
        """Nobody there is told any more. The directory forgets it with its session."""
