"""Which producers or consumers of a connection have something due, so that the others are not
looked at: a client may have thousands of them."""

from __future__ import annotations

from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class DueIds:
    """Any thread, and with mutexes held; each call is one step of a dict."""

    def __init__(self, wake: Callable[[], object]) -> None:
        """wake: has the session take them soon."""
        self._ids: dict[int, None] = {}
        self._wake = wake

    def mark(self, number: int) -> None:
        """There is something to do, and the session is woken."""
        self._ids[number] = None
        self._wake()

    def marking(self, number: int) -> Callable[[], None]:
        """What marks that one."""
        return partial(self.mark, number)

    def keep(self, number: int) -> None:
        """It stays due, or becomes so by what the session does just now."""
        self._ids[number] = None

    def take(self) -> list[int]:
        """Those that are due, in the order in which they became so; they are not any more."""
        found = list(self._ids)
        for each in found:
            self._ids.pop(each, None)
        return found
