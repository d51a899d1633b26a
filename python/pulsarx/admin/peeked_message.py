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
        """Read the answer of a verb.

        Args:
            answer: A message as JSON.
        """
        self._answer = answer
        self._data = b64decode(answer["data"] or "")

    def message_id(self) -> MessageId:
        """Return the place where it is stored."""
        found: MessageId = MessageId.from_text(self._answer["message_id"])
        return found

    def data(self) -> bytes:
        """Return the payload; `b""` for a message without a value."""
        return self._data

    def has_null_value(self) -> bool:
        """Tell whether it was sent without a value."""
        return self._answer["data"] is None

    def properties(self) -> dict[str, str]:
        """Return the properties, a new dict at each call."""
        return dict(self._answer["properties"])

    def partition_key(self) -> str:
        """Return the key, `""` when it has none."""
        return str(self._answer["partition_key"])

    def ordering_key(self) -> str:
        """Return the ordering key, `""` when it has none."""
        return str(self._answer["ordering_key"])

    def publish_timestamp(self) -> int:
        """Return the publish time in milliseconds since 1970."""
        return int(self._answer["publish_timestamp"])

    def event_timestamp(self) -> int:
        """Return the event time in milliseconds since 1970, 0 when none was given."""
        return int(self._answer["event_timestamp"])

    def producer_name(self) -> str:
        """Return the name of the producer that sent it."""
        return str(self._answer["producer_name"])

    def __repr__(self) -> str:
        return f"PeekedMessage({self.message_id()}, {len(self._data)} bytes)"
