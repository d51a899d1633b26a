"""A partitioned topic of a folder that another process owns."""

from __future__ import annotations

from pulsarx._pycore.ground.clock_core import monotonic_ms
from pulsarx.broker.topics.read_only_partitions import ReadOnlyPartitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.state import TopicRecord
    from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
    from pulsarx.remote.guest_host import GuestHost
    from pulsarx.topic_name import TopicName

_LOOK_MS = 1000  # nobody tells a guest that a topic has grown


class GuestPartitions(ReadOnlyPartitions):
    """Stands where a PartitionedTopic stands. Any thread may call."""

    def __init__(
        self, folder: GuestHost, record: TopicRecord, topic: Callable[[TopicName], ReadOnlyTopic]
    ) -> None:
        super().__init__(folder, record, topic)
        self._host = folder
        self._look_ms = monotonic_ms() + _LOOK_MS

    @property
    def partition_count(self) -> int:
        """As the catalogue had it within the last second."""
        if monotonic_ms() < self._look_ms:
            return self._count
        self._look_ms = monotonic_ms() + _LOOK_MS
        found: int = super().partition_count
        return found

    def hold(self, name: str, producer: Any) -> None:
        """Partitions that come are taken when they are first published to."""

    def watch(self, watcher: Any) -> None:
        """Call watcher.grown(partition count) some time after the topic has grown."""
        self._host.topics.watch_growth(self, watcher)
