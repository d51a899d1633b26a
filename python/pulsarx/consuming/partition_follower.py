"""Attaches a consumer to the partitions that its topic gets while it is open."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.ground.call_timeout import call_timeout, within
from pulsarx.listening.listener_pool import log_exception

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.broker.topics.read_only_partitions import ReadOnlyPartitions
    from pulsarx.topic_name import TopicName

AGAIN_MS = 1000  # after attaching to a new partition failed


class PartitionFollower:
    """Follows a partitioned topic for a consumer, which keeps it alive; the topic does not. Calls
    of the control plane."""

    def __init__(
        self,
        topic: PartitionedTopic | ReadOnlyPartitions,
        runtime: BrokerRuntime | None,
        attach: Callable[[Any, bool], object],
    ) -> None:
        """attach: called with each partition once, and whether it came after the consumer did.
        runtime: None, where the topic is of a folder opened read-only."""
        self._topic = topic
        self._runtime = runtime
        self._attach = attach
        self._lock = Lock()
        self._attached_count = 0
        self._timeout_seconds = call_timeout()  # of the client it follows for

    def follows(self) -> TopicName:
        return self._topic.topic_name

    @property
    def is_over(self) -> bool:
        """Whether its topic was deleted."""
        return self._topic.is_deleted

    def start(self) -> None:
        """Attach the partitions there are, and watch for more. Raises what attaching raises.
        TopicGone: the topic was deleted meanwhile."""
        self._topic.watch(self)
        self._attach_up_to(self._topic.partition_count, False)

    def look(self) -> None:
        """Attach the partitions that came since, where nobody calls `grown`. Raises what attaching
        raises."""
        self._attach_up_to(self._topic.partition_count, True)

    def grown(self, partition_count: int) -> None:
        """Attach new partitions. The topic calls it when it has grown; no lock is held."""
        try:
            self._attach_up_to(partition_count, True)
        except TopicGone:
            return  # deleted meanwhile
        except Exception:
            log_exception(
                "%s: a consumer did not get its new partitions; tried again soon", self._topic.name
            )
            assert self._runtime is not None
            self._runtime.clock.call_after(AGAIN_MS, self._try_again)

    def _try_again(self) -> None:
        assert self._runtime is not None
        if self._runtime.state.is_open:
            self._runtime.background.post(self._catch_up)

    def _catch_up(self) -> None:
        self.grown(self._topic.partition_count)

    def _attach_up_to(self, partition_count: int, is_new: bool) -> None:
        within(self._timeout_seconds, self._attach_each_up_to, partition_count, is_new)

    def _attach_each_up_to(self, partition_count: int, is_new: bool) -> None:
        with self._lock:
            while self._attached_count < partition_count:
                try:
                    self._attach(self._topic.partition(self._attached_count), is_new)
                except TopicGone:
                    if self._topic.is_deleted:
                        raise
                    continue  # unloaded just after it was found
                self._attached_count += 1
