"""A partitioned topic of a folder that another process owns."""

from __future__ import annotations

from pulsarx.broker.topics.read_only_partitions import ReadOnlyPartitions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic
    from pulsarx.processes.guest.host import GuestHost
    from pulsarx.topic_name import TopicName


class GuestPartitions(ReadOnlyPartitions):
    """Stands where a PartitionedTopic stands. Any thread may call."""

    def __init__(
        self, folder: GuestHost, record: TopicRecord, topic: Callable[[TopicName], ReadOnlyTopic]
    ) -> None:
        super().__init__(folder, record, topic)
        self._host = folder
        self._seen = -1  # of the news of topics

    @property
    def partition_count(self) -> int:
        """The count as the followers of the topic know it: nothing is sent to partitions that came
        while the consumers of this process are still to attach to them."""
        news_count: int = self._host.topics.news_count
        if news_count == self._seen:
            return self._count
        self._seen = news_count
        found: int = super().partition_count
        return found

    def count_now(self) -> int:
        """The count as the catalogue has it."""
        record = self._record()
        return self._count if record is None else record.partition_count

    def hold(self, name: str, producer: Any) -> None:
        """The owner keeps partitions that come for a producer that has the others to itself; it
        takes them some time after that."""
        self._host.topics.watch_growth(self, producer, sends=True)

    def watch(self, watcher: Any) -> None:
        """Call watcher.grown(partition count) soon after the topic has grown."""
        self._host.topics.watch_growth(self, watcher)
