"""A digest of what a write holds: a number that tells it from another write under the same name."""

from __future__ import annotations

from pulsarx._pycore.ranges.rows_digest import rows_digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class ContentDigest:
    """The digest of rows in any order, wherever they are cut. One thread at a time."""

    __slots__ = ("given", "value")

    def __init__(self, values: Iterable[int] = (), given: Iterable[int] = ()) -> None:
        """values, given: of digests of other rows, which then are in this one."""
        self.value: int = sum(values) % 2**64
        self.given: int = sum(given) % 2**64  # 0: no value was made of anything

    def add(
        self, rows: Any, topic: str, value: str, given: str | None = None, **columns: str
    ) -> None:
        """Arrow rows for a topic; columns as of SealedLedgerWriter.append_arrow.

        given: what the values were made of, where a later version of their schema makes other
            values of it.
        """
        name = topic.encode()
        self.value = (self.value + rows_digest(rows, name, value, **columns)) % 2**64
        if given is not None:
            self.given = (self.given + rows_digest(rows, name, given, **columns)) % 2**64

    def text(self, message_count: int) -> str:
        given = f"-{self.given:016x}" if self.given else ""
        return f"{message_count:x}-{self.value:016x}{given}"


def is_same_content(one: str, other: str) -> bool:
    """Whether two texts are of the same messages, or of messages made of the same rows."""
    (count, value, *given), (other_count, other_value, *other_given) = (
        text.split("-") for text in (one, other)
    )
    is_made_of_the_same = given == other_given and len(given) > 0
    return count == other_count and (value == other_value or is_made_of_the_same)
