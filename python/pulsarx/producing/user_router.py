"""A user's `message_router`, asked about one message. Used by PartitionedProducer."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.producing.routed_message import RoutedMessage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.topics.partitioned_topic import PartitionedTopic
    from pulsarx.schema.schema import Schema


class UserRouter:
    """Runs in the thread that calls send, which gets what the router raises."""

    def __init__(
        self, router: Callable[[Any, int], int], topic: PartitionedTopic, schema: Schema
    ) -> None:
        self._router = router
        self._topic = topic
        self._schema = schema

    def encode_by(self, schema: Schema) -> None:
        """Show messages as this schema encodes them from now on."""
        self._schema = schema

    def __call__(
        self,
        content: Any,
        properties: dict[str, str] | None,
        key: str | None,
        ordering_key: str | None,
        event_timestamp: int | None,
    ) -> int:
        """The partition. InvalidConfiguration: the topic has no such one."""
        message = RoutedMessage(
            self._schema, content, properties, key, ordering_key, event_timestamp
        )
        count = self._topic.partition_count
        index = int(self._router(message, count))
        if not 0 <= index < count:
            raise errors.InvalidConfiguration(
                detail=f"the message_router of {self._topic.name} answered {index}; it has {count} "
                f"partitions, 0 to {count - 1}"
            )
        return index
