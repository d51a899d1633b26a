"""Finds the position that a seek of a consumer or reader goes to."""

from __future__ import annotations

from pulsarx.message_id import MessageId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    Position = tuple[int, int]

    class Positions(Protocol):
        """The ledgers of a topic."""

        def position_of(self, message_id: MessageId, inclusive: bool) -> Position: ...
        def position_at_time(self, publish_time_ms: int) -> Position: ...


TIME_MS_MAX = (1 << 63) - 1


def seek_position(ledgers: Positions, target: MessageId | int, inclusive: bool) -> Position:
    """The position of a message id (behind it, or at it when inclusive), or of a time. A call of
    the control plane."""
    if isinstance(target, MessageId):
        return ledgers.position_of(target, inclusive)
    if isinstance(target, int):
        return ledgers.position_at_time(max(0, min(target, TIME_MS_MAX)))
    raise ValueError(f"invalid seek_arg type {type(target)}")
