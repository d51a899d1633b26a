"""`client.admin.topics`: what topics there are, their partitions and what is in them."""

from __future__ import annotations

from pulsarx.admin.schema_policies import SchemaPolicies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.admin.channel import Channel


class Topics(SchemaPolicies):
    """Any thread may call. TopicNotFound: there is no such topic."""

    _LEVEL = "topic"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def get_list(self, namespace: str = "public/default") -> list[str]:
        """Full names of the topics of a namespace that hold messages: of a partitioned topic, its
        partitions."""
        found: list[str] = self._channel.perform("topics.get_list", {"namespace": namespace})
        return found

    def get_partitioned_topic_list(self, namespace: str = "public/default") -> list[str]:
        """Full names of the partitioned topics of a namespace."""
        arguments = {"namespace": namespace}
        found: list[str] = self._channel.perform("topics.get_partitioned_topic_list", arguments)
        return found

    # Creating -------------------------------------------------------------------------------------

    def create_non_partitioned_topic(self, topic: str) -> None:
        """Create a topic without partitions. NotAllowedError: it exists. Durable on return."""
        self._channel.perform("topics.create_non_partitioned_topic", {"topic": topic})

    def create_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Create a topic of so many partitions, each a topic of its own: `<topic>-partition-0` and
        so on.

        NotAllowedError: it exists. Durable on return.
        """
        arguments = {"topic": topic, "partitions": partitions}
        self._channel.perform("topics.create_partitioned_topic", arguments)

    def update_partitioned_topic(self, topic: str, partitions: int) -> None:
        """Let a partitioned topic have so many partitions.

        The durable subscriptions of partition 0 begin on each new partition at its first message,
        and open producers use it at once. Keys change their partition. NotAllowedError: partitions
        only become more. Durable on return.
        """
        arguments = {"topic": topic, "partitions": partitions}
        self._channel.perform("topics.update_partitioned_topic", arguments)

    def get_partitioned_topic_metadata(self, topic: str) -> dict[str, int]:
        """{"partitions": how many}; 0 for a topic without partitions."""
        arguments = {"topic": topic}
        found: dict[str, int] = self._channel.perform(
            "topics.get_partitioned_topic_metadata", arguments
        )
        return found

    # Policies -------------------------------------------------------------------------------------
    def set_deduplication(self, topic: str, enabled: bool) -> None:
        """Whether a topic, or all its partitions, tells messages that are sent again, by their
        sequence ids, and does not store them again. Open producers heed it at once. Durable on
        return."""
        if not isinstance(enabled, bool):
            raise ValueError(f"enabled must be a bool, not {type(enabled).__name__}")
        arguments = {"topic": topic, "enabled": enabled}
        self._channel.perform("topics.set_deduplication", arguments)

    def get_deduplication(self, topic: str) -> bool | None:
        """What was set here; None: nothing was."""
        found: bool | None = self._channel.perform("topics.get_deduplication", {"topic": topic})
        return found

    def remove_deduplication(self, topic: str) -> None:
        """Take back what was set here. Durable on return."""
        self._channel.perform("topics.remove_deduplication", {"topic": topic})

    # Statistics -----------------------------------------------------------------------------------

    def stats(self, topic: str) -> dict[str, Any]:
        """Entries, messages and bytes stored, ledgers, producers, and of each subscription its
        type, its backlog in messages and entries, what is unacknowledged, the permits of each
        consumer, and the keys held back. OperationNotSupported: it has partitions;
        see partitioned_stats."""
        found: dict[str, Any] = self._channel.perform("topics.stats", {"topic": topic})
        return found

    def partitioned_stats(self, topic: str) -> dict[str, Any]:
        """The statistics of the partitions, added up, and under "partitions" that of each.
        TopicNotFound: there is no partitioned topic of this name."""
        found: dict[str, Any] = self._channel.perform("topics.partitioned_stats", {"topic": topic})
        return found
