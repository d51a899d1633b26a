"""`client.admin.topics`: what topics there are, their partitions and what is in them."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.broker.topics.partitioned_topic import partition_count_of, partition_names
from pulsarx.broker.topics.statistics import partitioned_statistics, topic_statistics
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.broker.broker import Broker
    from pulsarx.broker.read_only_broker import ReadOnlyBroker


class Topics:
    """Any thread may call. TopicNotFound: there is no such topic."""

    def __init__(self, broker: Broker | ReadOnlyBroker, read_only: bool) -> None:
        self._broker = broker
        self._read_only = read_only

    def get_list(self, namespace: str = "public/default") -> list[str]:
        """Full names of the topics of a namespace that hold messages: of a partitioned topic, its
        partitions."""
        return self._names(namespace, partitioned=False)

    def get_partitioned_topic_list(self, namespace: str = "public/default") -> list[str]:
        """Full names of the partitioned topics of a namespace."""
        return self._names(namespace, partitioned=True)

    def _names(self, namespace: str, partitioned: bool) -> list[str]:
        self._broker.check_open()
        self._broker.refresh()
        prefix = f"://{namespace}/"
        return sorted(
            name
            for name, record in list(self._broker.catalogue.state.topics.items())
            if prefix in name and (record.partition_count > 0) == partitioned
        )

    # Creating -------------------------------------------------------------------------------------

    def create_non_partitioned_topic(self, topic: str) -> None:
        """Create a topic without partitions. NotAllowedError: it exists. Durable on return."""
        broker = self._owner("create_non_partitioned_topic")
        broker.create_non_partitioned_topic(TopicName.of(topic))

    def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Create a topic of so many partitions, each a topic of its own: `<topic>-partition-0` and
        so on.

        NotAllowedError: it exists. Durable on return.
        """
        broker = self._owner("create_partitioned_topic")
        broker.create_partitioned_topic(TopicName.of(topic), partitions)

    def update_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Let a partitioned topic have so many partitions.

        The durable subscriptions of partition 0 begin on each new partition at its first message,
        and open producers use it at once. Keys change their partition. NotAllowedError: partitions
        only become more. Durable on return.
        """
        broker = self._owner("update_partitioned_topic")
        broker.update_partitioned_topic(TopicName.of(topic), partitions)

    def get_partitioned_topic_metadata(self, topic: str) -> dict[str, int]:
        """{"partitions": how many}; 0 for a topic without partitions."""
        name = self._existing(topic)
        return {"partitions": partition_count_of(self._broker.catalogue.state, name)}

    # Statistics -----------------------------------------------------------------------------------

    def stats(self, topic: str) -> dict[str, Any]:
        """Entries, messages and bytes stored, ledgers, producers, and of each subscription its
        type, its backlog in messages and entries, what is unacknowledged, the permits of each
        consumer, and the keys held back. OperationNotSupported: it has partitions;
        see partitioned_stats."""
        name = self._existing(topic)
        if partition_count_of(self._broker.catalogue.state, name):
            raise errors.OperationNotSupported(
                f"stats of {name}, which has partitions; call partitioned_stats, or stats of one"
            )
        return topic_statistics(self._broker.topic(name, create=False))

    def partitioned_stats(self, topic: str) -> dict[str, Any]:
        """What stats tells of the partitions, added up, and under "partitions" that of each.
        TopicNotFound: there is no partitioned topic of this name."""
        name = self._existing(topic)
        count = partition_count_of(self._broker.catalogue.state, name)
        if not count:
            raise errors.TopicNotFound(f"there is no partitioned topic {name}")
        return partitioned_statistics(
            str(name), [self.stats(each) for each in partition_names(name, count)]
        )

    def _existing(self, topic: str) -> TopicName:
        self._broker.check_open()
        self._broker.refresh()
        name = TopicName.of(topic)
        if str(name) not in self._broker.catalogue.state.topics:
            raise errors.TopicNotFound(str(name))
        return name

    def _owner(self, action: str) -> Broker:
        self._broker.check_open()
        if self._read_only:
            raise errors.OperationNotSupported(f"{action}: the client was opened read_only")
        return self._broker  # type: ignore[return-value]
