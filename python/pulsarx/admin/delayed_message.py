"""A message that waits for its time, as `client.admin.topics.get_delayed_messages` returns it."""

from __future__ import annotations

from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class DelayedMessage:
    """Its id, and when it is due. A value."""

    __slots__ = ("_deliver_at", "_message_id")

    def __init__(self, answer: dict[str, Any]) -> None:
        """Read the answer of a verb.

        Args:
            answer: A message as JSON.
        """
        self._message_id: MessageId = MessageId.from_text(answer["message_id"])
        self._deliver_at = int(answer["deliver_at"])

    def message_id(self) -> MessageId:
        """Return the place where it is stored."""
        return self._message_id

    def deliver_at(self) -> int:
        """Return when it is due, in milliseconds since 1970."""
        return self._deliver_at

    def __repr__(self) -> str:
        return f"DelayedMessage({self._message_id}, deliver_at={self._deliver_at})"
