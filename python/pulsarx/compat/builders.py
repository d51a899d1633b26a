"""The small classes of `_pulsar`: builders of messages and policies."""

from __future__ import annotations

from pulsarx.enumerations import KeySharedMode
from pulsarx.errors import OperationNotSupported
from pulsarx.message_id import MessageId
from pulsarx.options import consumer_policies as policies
from pulsarx.options.argument_check import INT32_MAX, INT64_MAX, native_integer, native_type
from pulsarx.options.consumer_policies import DeadLetterPolicy
from pulsarx.producing.routed_message import RoutedMessage
from pulsarx.schema.schema import BYTES_SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta
    from typing import Any, Self


class DeadLetterPolicyBuilder:
    """Builds a DeadLetterPolicy."""

    def __init__(self) -> None:
        self._count = INT32_MAX
        self._topic = ""
        self._subscription = ""

    def maxRedeliverCount(self, count: int) -> Self:
        self._count = native_integer(count, "maxRedeliverCount", -INT32_MAX - 1, INT32_MAX)
        return self

    def deadLetterTopic(self, topic: str) -> Self:
        native_type(str, topic, "deadLetterTopic")
        self._topic = topic
        return self

    def initialSubscriptionName(self, name: str) -> Self:
        native_type(str, name, "initialSubscriptionName")
        self._subscription = name
        return self

    def build(self) -> DeadLetterPolicy:
        """ValueError: maxRedeliverCount is not above 0."""
        if self._count < 1:
            raise ValueError(f"maxRedeliverCount must be above 0, not {self._count}")
        return DeadLetterPolicy(self._count, self._topic, self._subscription)


class KeySharedPolicy(policies.KeySharedPolicy):
    """The policy of a Key_Shared consumer, set one by one."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()

    def set_key_shared_mode(self, mode: KeySharedMode) -> Self:
        native_type(KeySharedMode, mode, "key_shared_mode")
        self._key_shared_mode = mode
        return self

    def set_allow_out_of_order_delivery(self, allow: bool) -> Self:
        self._allow_out_of_order_delivery = bool(allow)
        return self

    def set_sticky_ranges(self, ranges: Sequence[tuple[int, int]]) -> Self:
        """ValueError: a range runs backwards, beyond 65535, or into another."""
        self._sticky_ranges = policies.check_ranges(ranges)
        return self


class TopicRegex:
    """A pattern of topics, as text."""

    __slots__ = ("_pattern",)

    def __init__(self, pattern: str) -> None:
        native_type(str, pattern, "pattern")
        self._pattern = pattern

    @property
    def pattern(self) -> str:
        return self._pattern


class Error:
    """A result and what is said about it, as callbacks are told. Nobody makes one."""

    __slots__ = ("error", "message")

    def __init__(self, *_: Any) -> None:
        raise TypeError("an Error is told to a callback, and not made")


class BuiltMessage(RoutedMessage):
    """A message that is not sent yet."""

    __slots__ = ("described",)

    def __init__(self, content: bytes | None, described: dict[str, Any]) -> None:
        """described: the arguments of `Producer.send` besides its content."""
        super().__init__(
            BYTES_SCHEMA,
            content,
            described.get("properties"),
            described.get("partition_key"),
            described.get("ordering_key"),
            described.get("event_timestamp"),
        )
        self.described: dict[str, Any] = described

    def length(self) -> int:
        return len(self.data())

    def int_schema_version(self) -> int:
        return -1


class MessageBuilder:
    """Describes one message."""

    def __init__(self) -> None:
        self._content: bytes | None = b""
        self._described: dict[str, Any] = {}

    def _with(self, name: str, value: Any) -> Self:
        self._described[name] = value
        return self

    def content(self, content: bytes | str) -> Self:
        """The payload; text as UTF-8."""
        if isinstance(content, str):
            content = content.encode()
        native_type(bytes, content, "content")
        self._content = content
        return self

    def set_null_value(self) -> Self:
        self._content = None
        return self

    def property(self, name: str, value: str) -> Self:
        return self.properties({name: value})

    def properties(self, properties: Mapping[str, str]) -> Self:
        for name, value in properties.items():
            native_type(str, name, "name of a property")
            native_type(str, value, f"property {name}")
        return self._with("properties", {**self._described.get("properties", {}), **properties})

    def partition_key(self, key: str) -> Self:
        native_type(str, key, "partition_key")
        return self._with("partition_key", key)

    def ordering_key(self, key: str) -> Self:
        native_type(str, key, "ordering_key")
        return self._with("ordering_key", key)

    def sequence_id(self, sequence_id: int) -> Self:
        native_integer(sequence_id, "sequence_id", -INT64_MAX - 1, INT64_MAX)
        return self._with("sequence_id", sequence_id)

    def event_timestamp(self, event_timestamp: int) -> Self:
        native_integer(event_timestamp, "event_timestamp", 0, 2 * INT64_MAX + 1)
        return self._with("event_timestamp", event_timestamp)

    def deliver_at(self, deliver_at_ms: int) -> Self:
        native_integer(deliver_at_ms, "deliver_at", 0, 2 * INT64_MAX + 1)
        return self._with("deliver_at", deliver_at_ms)

    def deliver_after(self, delay: timedelta) -> Self:
        return self._with("deliver_after", delay)

    def replication_clusters(self, clusters: Sequence[str]) -> Self:
        return self._with("replication_clusters", list(clusters))

    def disable_replication(self, disable: bool) -> Self:
        return self._with("disable_replication", bool(disable))

    def build(self) -> BuiltMessage:
        return BuiltMessage(self._content, dict(self._described))


class MessageBatch:
    """The messages of an entry's payload. OperationNotSupported: here they come from consumers and
    readers alone."""

    def __init__(self) -> None:
        self._message_id = MessageId()

    def with_message_id(self, msg_id: MessageId) -> Self:
        """TypeError: it is no MessageId."""
        native_type(MessageId, msg_id, "msg_id")
        self._message_id = msg_id
        return self

    def parse_from(self, data: bytes, size: int) -> Any:
        raise OperationNotSupported(
            detail="MessageBatch.parse_from: an entry's payload is not to be had here; "
            "receive its messages, or read them"
        )

    def messages(self) -> list[Any]:
        """None: nothing was parsed."""
        return []
