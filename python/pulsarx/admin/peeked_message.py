"""A message as `client.admin.topics.peek_messages` returns it: a copy that belongs to no
consumer."""

from __future__ import annotations

from base64 import b64decode

from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PeekedMessage:
    """Methods named as those of Message. A value."""

    __slots__ = ("_answer", "_data")

    def __init__(self, answer: dict[str, Any]) -> None:
        """answer: of the verb."""
        self._answer = answer
        self._data = b64decode(answer["data"] or "")

    def message_id(self) -> MessageId:
        found: MessageId = MessageId.from_text(self._answer["message_id"])
        return found

    def data(self) -> bytes:
        return self._data

    def has_null_value(self) -> bool:
        return self._answer["data"] is None

    def properties(self) -> dict[str, str]:
        return dict(self._answer["properties"])

    def partition_key(self) -> str:
        return str(self._answer["partition_key"])

    def ordering_key(self) -> str:
        return str(self._answer["ordering_key"])

    def publish_timestamp(self) -> int:
        return int(self._answer["publish_timestamp"])

    def event_timestamp(self) -> int:
        return int(self._answer["event_timestamp"])

    def producer_name(self) -> str:
        return str(self._answer["producer_name"])

    def __repr__(self) -> str:
        return f"PeekedMessage({self.message_id()}, {len(self._data)} bytes)"
