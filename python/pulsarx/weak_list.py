"""Objects that are held weakly, and found again as long as somebody else holds them."""

from __future__ import annotations

import weakref

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class WeakList:
    """As weakref.WeakSet, without its callbacks. Any thread.

    A callback is Python code that runs wherever the last reference goes, in the middle of a call of
    the main thread for one; what a signal handler raises there is lost.
    """

    __slots__ = ("_prune_at", "_references")

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[Any]] = {}
        self._prune_at = 16

    def add(self, member: Any) -> None:
        reference = weakref.ref(member)
        self._references[id(reference)] = reference
        if len(self._references) > self._prune_at:
            for key, each in list(self._references.items()):
                if each() is None:
                    self._references.pop(key, None)
            self._prune_at = 2 * len(self._references) + 16

    def members(self) -> list[Any]:
        """Those that are still there, in the order they came."""
        found = [reference() for reference in list(self._references.values())]
        return [each for each in found if each is not None]
