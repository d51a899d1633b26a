"""Attaches a consumer to the topics whose names match its pattern: those there are, and each that
is created while it is open. Lets go of those that are deleted."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.ground.call_timeout import call_timeout, within
from pulsarx.listening.listener_pool import log_exception
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.consuming.topics_pattern import TopicsPattern

    AttachAll = Callable[[list[AnyTopic | PartitionedTopic], bool], list[TopicName]]
    Drop = Callable[[TopicName], bool]


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
        """attach_all: called with topics and whether they came after the consumer did; answers the
        names of those that went since they were found. drop: called with a topic that may be
        deleted; answers whether the consumer has one of that name that is not. period_seconds:
        how soon a topic is tried again that could not be attached."""
        self._pattern = pattern
        self._broker = broker
        self._attach_all = attach_all
        self._drop = drop
        self._period_ms = max(period_seconds, 1) * 1000
        self._lock = Lock()  # taken before any lock of the broker; attaching makes no topic
        self._attached: set[TopicName] = set()
        self._timeout_seconds = call_timeout()  # of the client it follows for

    is_over = False

    def follows(self) -> None:
        """None: no single topic."""

    @property
    def non_persistent_namespace(self) -> str | None:
        """The namespace of which it follows non-persistent topics; None: it follows none."""
        return self._pattern.non_persistent_namespace

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
                # It may have been deleted and made anew between two looks at another process.
                if name not in self._attached or not self._drop(name):
                    within(self._timeout_seconds, self._attach, [name], True)
        except Exception:
            log_exception(
                "%s: a consumer of the pattern %r was not attached; tried again in %d s",
                name, self._pattern.text, self._period_ms // 1000,
            )  # fmt: skip
            self._broker.runtime.clock.call_after(self._period_ms, partial(self._try_again, name))

    def grown(self, name: TopicName) -> None:
        """The consumer of the topic attaches to its new partitions itself."""

    def deleted(self, name: TopicName) -> None:
        """Let go of a topic that was deleted. One that has its name by now is attached, as one that
        was created."""
        if not self._pattern.matches(name):
            return
        with self._lock:
            if name not in self._attached or self._drop(name):
                return
            self._attached.discard(name)
        if self._broker.topics.is_there(name.full):
            self.created(name)

    def _try_again(self, name: TopicName) -> None:
        if self._broker.runtime.state.is_open:
            self._broker.runtime.background.post(partial(self.created, name))

    def _attach(self, names: list[TopicName], is_new: bool) -> None:
        """Attach the consumer to the topics; those that are deleted meanwhile are passed over."""
        wanted = names
        while wanted:
            found = []
            for name in wanted:
                try:
                    found.append(self._broker.topics.lookup(name, create=False))
                except errors.TopicNotFound:
                    pass
            wanted = self._attach_all(found, is_new)
            gone = set(wanted)
            self._attached.update(name for name in map(_name_of, found) if name not in gone)


def _name_of(topic: AnyTopic | PartitionedTopic) -> TopicName:
    return topic.topic_name
