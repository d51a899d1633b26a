"""Counts messages that were sent and whose callbacks have not come."""

from __future__ import annotations

from pulsarx._pycore.ground.locks import Condition
from pulsarx.errors import detail_of
from pulsarx.results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class PendingSends:
    """Counts the pending messages of one or more producers. `end` is their callback. Any thread may
    call."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._count = 0
        self._failure: str | None = None

    def begin(self) -> None:
        with self._condition:
            self._count += 1

    def end(self, result: Result, _: Any) -> None:
        with self._condition:
            self._count -= 1
            if result != Result.Ok:
                self._failure = str(result)
            self._condition.notify_all()

    def fail(self, error: BaseException) -> None:
        """The send that was begun was refused."""
        with self._condition:
            self._count -= 1
            self._failure = sentence_of(error)
            self._condition.notify_all()

    @property
    def is_idle(self) -> bool:
        return self._count == 0

    def wait(self) -> str | None:
        """Wait for all callbacks; what failed last, if anything ever did."""
        with self._condition:
            self._condition.wait_for(lambda: self._count == 0)
            return self._failure


def sentence_of(error: BaseException) -> str:
    """Describe an error for a log, in one sentence."""
    return f"{type(error).__name__}: {detail_of(error)}"
