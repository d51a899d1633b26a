"""Finds the position that a seek of a consumer or reader goes to."""

from __future__ import annotations

from pulsarx.errors import OperationNotSupported, shown
from pulsarx.message_id import MessageId, MessageIndex
from pulsarx.options.argument_check import INT64_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    Position = tuple[int, int]
    Target = MessageId | MessageIndex | int

    class Positions(Protocol):
        """The ledgers of a topic."""

        def position_of(self, message_id: MessageId, inclusive: bool) -> Position: ...
        def position_at_time(self, publish_time_ms: int) -> Position: ...
        def position_at_index(self, index: int) -> Position: ...
        def last_message_id(self) -> MessageId: ...


UINT64_MAX = (1 << 64) - 1


def check_seek_target(target: object) -> None:
    """ValueError: no MessageId, MessageIndex or time. TypeError: a time outside 64 bits."""
    if isinstance(target, (MessageId, MessageIndex)):
        return
    if not isinstance(target, int):
        raise ValueError(f"invalid seek_arg type {type(target)}")
    if not 0 <= target <= UINT64_MAX:
        raise TypeError(f"seek to {shown(target)}: a time in milliseconds must be within 0..2^64-1")


def check_index_of_one(target: object, name: str, count: int) -> None:
    """OperationNotSupported: an index is sought on several topics or partitions."""
    if isinstance(target, MessageIndex) and count > 1:
        raise OperationNotSupported(
            detail=f"seek to {target} of {name}: each of its {count} topics or partitions counts "
            "its own messages; seek with a consumer or reader of one of them, or to a time"
        )


def seek_position(ledgers: Positions, target: Target, inclusive: bool) -> Position:
    """The position of a message id (behind it, or at it when inclusive), or at an index or a time.
    A call of the control plane."""
    if isinstance(target, MessageIndex):
        return ledgers.position_at_index(target.index())
    if isinstance(target, MessageId):
        return ledgers.position_of(target, inclusive)
    return ledgers.position_at_time(min(target, INT64_MAX))


def reader_position(ledgers: Positions, target: Target, inclusive: bool) -> Position:
    """Like seek_position, for a reader: latest, inclusive, is the last message, where there is
    one."""
    if inclusive and isinstance(target, MessageId) and target == MessageId.latest:
        last = ledgers.last_message_id()
        target = target if last == MessageId.earliest else last
    return seek_position(ledgers, target, inclusive)


def start_position(positions: Positions | None, target: MessageId, inclusive: bool) -> Position:
    """Like reader_position, for a reader that begins to read a topic. A non-persistent topic has no
    positions: its readers are handed what comes from now on."""
    return (0, 0) if positions is None else reader_position(positions, target, inclusive)
