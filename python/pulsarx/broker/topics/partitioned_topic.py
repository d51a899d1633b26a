"""Partitioned topics: their names, how they are created, and how they grow.

The partitions are topics of their own, `x-partition-0` and so on. The partitioned topic itself
holds no messages, only how many partitions there are.
"""

from __future__ import annotations

import weakref

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.catalogue import changes
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker_options import PARTITION_COUNT_MAX
from pulsarx.options.argument_check import check_integer
from pulsarx.topic_name import PARTITION_SUFFIX, TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from typing_extensions import TypeIs

    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.topics.any_topic import AnyTopic

    Operations = list[dict[str, Any]]


class PartitionedTopic:
    """A partitioned topic of an owned data directory. Any thread may call. The broker has one
    object a topic, and `partition_count` grows with it."""

    is_partitioned = True

    def __init__(
        self, name: TopicName, record: TopicRecord, topic: Callable[[TopicName], AnyTopic]
    ) -> None:
        """topic: gives the topic of a partition's name, which is there."""
        self._topic = topic
        self._lock = Lock()
        self.topic_name = name
        self.name: str = name.full
        self.partition_count: int = record.partition_count
        self.holder_name: str = ""
        self.is_deleted = False
        self._watchers = WeakList()  # with grown(partition count)
        self._holder: weakref.ref[Any] | None = None

    def partition(self, index: int) -> AnyTopic:
        """The topic of a partition; TopicNotFound when there are not so many. TopicGone: it was
        deleted."""
        try:
            found = self._topic(self.topic_name.partition(index))
        except errors.TopicNotFound:
            if not self.is_deleted:
                raise
        if self.is_deleted:  # what was found may be of another topic that has its name by now
            raise TopicGone(detail=f"{self.name}: it was deleted")
        return found

    def watch(self, watcher: Any) -> None:
        """Call watcher.grown(partition count) after the topic has grown, without a lock held.

        It is held weakly: the watcher may simply go.
        """
        self._watchers.add(watcher)

    def hold(self, name: str, holder: Any) -> None:
        """The holder has partition 0 to itself: new partitions are kept for it, and it is told."""
        self._holder = weakref.ref(holder)
        self.holder_name = name
        self._watchers.add(holder)

    def holder(self) -> Any:
        found = None if self._holder is None else self._holder()
        return found if found is not None and found.is_connected() else None

    def has_grown(self, partition_count: int) -> None:
        """Told by the directory of topics."""
        with self._lock:
            # Two calls that let it grow may come here in the other order.
            self.partition_count = max(self.partition_count, partition_count)
        for watcher in self._watchers.members():
            watcher.grown(partition_count)


def has_partitions(topic: AnyTopic | PartitionedTopic) -> TypeIs[PartitionedTopic]:
    """Whether it is a partitioned topic, of whichever kind of broker."""
    return topic.is_partitioned


def partition_names(name: TopicName, partition_count: int) -> list[str]:
    return [name.partition(index).full for index in range(partition_count)]


def partition_count_of(state: CatalogueState, name: TopicName) -> int:
    """How many partitions a topic has; 0: it is not partitioned, or does not exist."""
    record = state.topics.get(name.full)
    return 0 if record is None else record.partition_count


def check_partition_count(partitions: object, name: TopicName) -> int:
    """A number of partitions that a caller asks for, if it is one."""
    count = check_integer(partitions, "partitions", "int")
    if not 1 <= count <= PARTITION_COUNT_MAX:
        raise ValueError(
            f"{name}: partitions is {count}; it must be from 1 to {PARTITION_COUNT_MAX}"
        )
    if name.partition_index >= 0:
        raise errors.NotAllowedError(
            detail=f"{name} is the name of a partition and cannot have partitions itself"
        )
    return count


def check_is_whole(state: CatalogueState, name: TopicName) -> None:
    """Refuse a partitioned name where a topic is needed that holds messages itself."""
    count = partition_count_of(state, name)
    if count:
        raise errors.OperationNotSupported(
            detail=f"{name} has {count} partitions, and this is done with one of them: "
            f"{name.partition(0)} and so on"
        )


def check_may_be_created(state: CatalogueState, name: TopicName) -> None:
    """Refuse to create a topic named as a partition: partitions come with their topic."""
    if name.partition_index < 0:
        return
    count = partition_count_of(state, name.whole)
    if count:
        raise errors.TopicNotFound(detail=f"{name}: {name.partitioned_name} has {count} partitions")
    raise errors.NotAllowedError(
        detail=f"create {name}: it is the name of a partition, and there is no partitioned topic "
        f"{name.partitioned_name}; create that, or choose a name that does not end like this"
    )


def creation(catalogue: Catalogue, name: TopicName, partition_count: int) -> Operations:
    """The operations that create a partitioned topic and its partitions."""
    topics = catalogue.state.topics
    if name.full in topics:
        raise errors.NotAllowedError(detail=f"create {name} with partitions: it exists already")
    prefix = f"{name}{PARTITION_SUFFIX}"
    for other in topics:
        if other.startswith(prefix) and TopicName.of(other).partition_index >= 0:
            raise errors.NotAllowedError(
                detail=f"create {name} with partitions: there is a topic {other} already"
            )
    allocate = catalogue.allocate_id
    return [
        changes.create_topic(name.full, allocate(), partition_count=partition_count),
        *(
            changes.create_topic(each, allocate())
            for each in partition_names(name, partition_count)
        ),
    ]


def growth(
    catalogue: Catalogue,
    record: TopicRecord,
    partition_count: int,
    now_ms: int,
    allocate_cursor_id: Callable[[], int],
    is_held: bool,
) -> Operations:
    """The operations that add partitions.

    Each begins with the durable subscriptions of partition 0, at its first message: so no
    subscription misses what is sent there before its consumers have come. is_held: one producer has
    the topic to itself, and takes them.
    """
    if partition_count < record.partition_count:
        raise errors.NotAllowedError(
            detail=f"{record.name} has {record.partition_count} partitions; they cannot become "
            f"{partition_count}, only more"
        )
    name = TopicName.of(record.name)
    subscriptions = catalogue.state.topics[name.partition(0).full].subscriptions.values()
    operations: Operations = []
    for each in partition_names(name, partition_count)[record.partition_count :]:
        operations.append(changes.create_topic(each, catalogue.allocate_id()))
        if is_held and name.persistent:
            operations.append(changes.set_topic_epoch(each, 0))
        for subscription in subscriptions:
            operations.append(
                changes.create_subscription(
                    each,
                    subscription.name,
                    allocate_cursor_id(),
                    type=subscription.type,
                    created_ms=now_ms,
                    properties=subscription.properties,
                )
            )
    return [*operations, changes.set_partition_count(record.name, partition_count)]
