"""`MessageId`, the place of a message, and `MessageIndex`, its number. Any layer may use them."""

from __future__ import annotations

from pulsarx._pycore.message.message_id import MessageId

__all__ = ["MessageId", "MessageIndex"]

INDEX_END = 1 << 63


class MessageIndex:
    """The number of a message among all that its topic or partition ever had, from 0: where to seek
    to. Immutable; compared by value."""

    __slots__ = ("_index",)

    def __init__(self, index: int) -> None:
        """Name a message by what `Message.index` returned.

        Args:
            index: The number, 0 or more.

        Raises:
            TypeError: index is not an int.
            ValueError: It is negative, or needs more than 63 bits.
        """
        if not isinstance(index, int) or isinstance(index, bool):
            raise TypeError(f"an index of a message is an int, not a {type(index).__name__}")
        if not 0 <= index < INDEX_END:
            raise ValueError(f"an index of a message is from 0 to 2^63-1, not {str(index)[:40]}")
        self._index = index

    def index(self) -> int:
        """Return the number."""
        return self._index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MessageIndex):
            return NotImplemented
        return self._index == other._index

    def __hash__(self) -> int:
        return hash((MessageIndex, self._index))

    def __repr__(self) -> str:
        return f"MessageIndex({self._index})"
