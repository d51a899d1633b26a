"""The message that a `message_router` is shown, which is about to be sent."""

from __future__ import annotations

from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.schema.schema import Schema


class RoutedMessage:
    """A message before it is sent, with the accessors of a received one. One thread."""

    __slots__ = ("_content", "_event_timestamp", "_ordering_key", "_key", "_properties", "_schema")

    def __init__(
        self,
        schema: Schema,
        content: Any,
        properties: dict[str, str] | None,
        key: str | None,
        ordering_key: str | None,
        event_timestamp: int | None,
    ) -> None:
        self._schema = schema
        self._content = content
        self._properties = properties
        self._key = key
        self._ordering_key = ordering_key
        self._event_timestamp = event_timestamp

    def data(self) -> bytes:
        """The content as the schema encodes it; `b""` for a message without a value."""
        return b"" if self._content is None else bytes(self._schema.encode(self._content))

    def value(self) -> Any:
        """The content as it was given to send."""
        return self._content

    def has_null_value(self) -> bool:
        return self._content is None

    def properties(self) -> dict[str, str]:
        return dict(self._properties or {})

    def partition_key(self) -> str:
        """The key, `""` when it has none."""
        return self._key or ""

    def ordering_key(self) -> str:
        return self._ordering_key or ""

    def event_timestamp(self) -> int:
        return self._event_timestamp or 0

    # Not known before a message is sent; what the official client answers then.

    def publish_timestamp(self) -> int:
        return 0

    def message_id(self) -> MessageId:
        return MessageId()

    def topic_name(self) -> str:
        return ""

    def redelivery_count(self) -> int:
        return 0

    def schema_version(self) -> str:
        return ""

    def producer_name(self) -> str:
        return ""

    def encryption_context(self) -> None:
        return None
