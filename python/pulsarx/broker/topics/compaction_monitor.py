"""Compacts open topics by themselves: every 60 seconds those of which more was published since the
last compaction than their threshold says."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.periodic_check import PeriodicCheck

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.topic_name import TopicName

POLICY = "compaction_threshold"
_INTERVAL_MS = 60_000


class CompactionMonitor:
    """Any thread may call. Its timer runs only while a threshold is set anywhere."""

    def __init__(self, runtime: BrokerRuntime, open_topics: Callable[[], list[Topic]]) -> None:
        self._runtime = runtime
        self._open_topics = open_topics
        self._check = PeriodicCheck(runtime.clock, runtime.background, _INTERVAL_MS, self._look)

    def arm(self) -> None:
        """Look in 60 seconds, if there is a threshold."""
        if self._has_threshold():
            self._check.arm()

    def _has_threshold(self) -> bool:
        state = self._runtime.catalogue.state
        return bool(
            self._runtime.options.broker_service_compaction_threshold_in_bytes
            or any(POLICY in policies for policies in list(state.namespaces.values()))
            or any(POLICY in topic.policies for topic in list(state.topics.values()))
        )

    def _look(self) -> bool:
        for topic in self._open_topics():
            try:
                topic.compaction.trigger_above(self._threshold(topic.topic_name))
            except (errors.TopicNotFound, errors.StorageError):
                continue  # it goes; or its ledgers cannot be read, which others are told
        return self._has_threshold()

    def _threshold(self, topic: TopicName) -> int:
        """In bytes; 0: it is compacted only when that is asked for."""
        found = self._runtime.policies.in_force(topic, POLICY)
        options = self._runtime.options
        return int(options.broker_service_compaction_threshold_in_bytes if found is None else found)

    def close(self) -> None:
        """Look no more."""
        self._check.close()
