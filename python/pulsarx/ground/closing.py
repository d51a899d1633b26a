"""Closing: the steps of `close` of a client, producer, consumer or reader, taken once."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.locks import Lock
from pulsarx.ground.attempt import attempt
from pulsarx.ground.owner import perform_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pulsarx.ground.owner import MemberOwner

# With which the steps ended half way: without memory, or because a handler of a signal was in the
# middle of a call. The next call of close goes on.
_TO_GO_ON = (MemoryError, errors.NotAllowedError)


class Closing:
    """Takes the steps of closing once, for all callers. The caller of `close` is told what failed,
    be it by a second call because the first was interrupted. Any thread may call."""

    __slots__ = ("_ended", "_failure", "_lock", "begun", "told")

    def __init__(self) -> None:
        self._lock = Lock()  # taken by calls of the control plane only
        self._failure: Exception | None = None
        self._ended = False
        self.begun: bool = False
        self.told: bool = False  # a caller of close knows that it is closed

    def close(self, steps: Callable[[], object], owner: MemberOwner | None) -> None:
        """Take the steps, or wait until another thread has. Raises what failed.

        owner: the client, whose callbacks the steps wait for.
        """
        perform_for(owner, self._take, (steps, owner))
        failure = self._failure
        self.told = not isinstance(failure, _TO_GO_ON)
        if failure is not None:
            raise failure

    def finish(self, steps: Callable[[], object], owner: MemberOwner | None) -> None:
        """Like `close`, for an object that the user did not close; raises only what these steps
        failed with. A call of the control plane."""
        failure = self._take(steps, owner)
        if failure is not None:
            raise failure

    def _take(self, steps: Callable[[], object], owner: MemberOwner | None) -> Exception | None:
        self.begun = True
        if not self._lock.acquire(blocking=False):
            if owner is not None and owner.runs_callbacks_here():
                return None  # the thread that closes waits for the callback that called this
            self._lock.acquire()
        try:
            if self._ended:
                return None
            self._ended = True
            self._failure = attempt(steps)
            self._ended = not isinstance(self._failure, _TO_GO_ON)
            return self._failure
        finally:
            self._lock.release()
