"""A partitioned topic of a folder opened read-only: its partitions, as the catalogue has them."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.faces import FolderView
    from pulsarx.broker.topics.read_only_topic import ReadOnlyTopic


class ReadOnlyPartitions:
    """Stands where a PartitionedTopic stands in a folder that is owned. Any thread may call."""

    is_partitioned = True

    def __init__(
        self,
        folder: FolderView,
        record: TopicRecord,
        topic: Callable[[TopicName], ReadOnlyTopic],
    ) -> None:
        """topic: gives the topic of a partition's name."""
        self._folder = folder
        self._topic = topic
        self._topic_id = record.topic_id
        self._count: int = record.partition_count
        self.topic_name: TopicName = TopicName.of(record.name)
        self.name: str = record.name

    @property
    def partition_count(self) -> int:
        """The count as the catalogue has it now; the last one of a deleted topic."""
        self._folder.refresh_if_changed()
        record = self._record()
        if record is not None:
            self._count = record.partition_count
        return self._count

    @property
    def is_deleted(self) -> bool:
        """Whether its owner has deleted it, as far as the catalogue was read."""
        return self._record() is None

    def _record(self) -> TopicRecord | None:
        found = self._folder.catalogue.state.topics.get(self.name)
        return found if found is not None and found.topic_id == self._topic_id else None

    def partition(self, index: int) -> ReadOnlyTopic:
        """The topic of a partition. TopicGone: it was deleted."""
        try:
            found = self._topic(self.topic_name.partition(index))
        except errors.TopicNotFound:
            if not self.is_deleted:
                raise
        if self.is_deleted:  # what was found may be of another topic that has its name by now
            raise TopicGone(detail=f"{self.name}: it was deleted")
        return found

    def watch(self, watcher: object) -> None:
        """Nobody tells: its followers look."""
