"""Attaches a consumer to the topics whose names match its pattern: those there are, and each that
is created while it is open. Lets go of those that are deleted."""

from __future__ import annotations

import threading
from functools import partial

from pulsarx import errors
from pulsarx.listening.listener_pool import log_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.consuming.topics_pattern import TopicsPattern
    from pulsarx.topic_name import TopicName

    AttachAll = Callable[[list[AnyTopic | PartitionedTopic], bool], object]
    Drop = Callable[[TopicName], object]


class PatternFollower:
    """Follows the topics of a pattern for a consumer, which keeps it alive; the broker does not.
    Calls of the control plane."""

    def __init__(
        self,
        pattern: TopicsPattern,
        broker: Broker,
        attach_all: AttachAll,
        drop: Drop,
        period_seconds: int,
    ) -> None:
        """attach_all: called with topics, each once, and whether they came after the consumer did.
        drop: called with a topic that is deleted, whose consumers are closed. period_seconds: how
        soon a topic is tried again that could not be attached."""
        self._pattern = pattern
        self._broker = broker
        self._attach_all = attach_all
        self._drop = drop
        self._period_ms = max(period_seconds, 1) * 1000
        self._lock = (
            threading.Lock()
        )  # taken before any lock of the broker; attaching makes no topic
        self._attached: set[TopicName] = set()

    def follows(self) -> None:
        """None: no single topic."""

    def start(self) -> None:
        """Attach the topics there are, and watch for more. Raises what attaching raises."""
        with self._lock:
            self._broker.topics.watch(self)
            names = self._pattern.topics_of(self._broker)
            self._attach(names, False)

    def created(self, name: TopicName) -> None:
        """Attach a topic that was created. Its creator waits, so that nothing that is sent to it is
        missed; no lock is held."""
        if not self._pattern.matches(name):
            return
        try:
            with self._lock:
                if name not in self._attached:
                    self._attach([name], True)
        except errors.TopicNotFound:
            return  # deleted meanwhile
        except Exception:
            log_exception(
                "%s: a consumer of the pattern %r was not attached; tried again in %d s",
                name, self._pattern.text, self._period_ms // 1000,
            )  # fmt: skip
            self._broker.runtime.clock.call_after(self._period_ms, partial(self._try_again, name))

    def deleted(self, name: TopicName) -> None:
        """Let go of a topic that was deleted. One that has its name by now is attached, as one that
        was created."""
        if not self._pattern.matches(name):
            return
        with self._lock:
            if name not in self._attached:
                return
            self._attached.discard(name)
            self._drop(name)
        if self._broker.topics.is_there(str(name)):
            self.created(name)

    def _try_again(self, name: TopicName) -> None:
        if self._broker.runtime.state.is_open:
            self._broker.runtime.background.post(partial(self.created, name))

    def _attach(self, names: list[TopicName], is_new: bool) -> None:
        find = self._broker.topics.lookup
        self._attach_all([find(each, create=False) for each in names], is_new)
        self._attached.update(names)
