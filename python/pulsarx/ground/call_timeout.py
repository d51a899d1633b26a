"""The operation timeout of calls that wait for the process that owns their folder. Clients of a
process share their connection to that one, so the timeout of each travels with its calls: in the
thread that makes them, or the greenlet."""

from __future__ import annotations

from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

_seconds: ContextVar[int | None] = ContextVar("pulsarx_call_timeout", default=None)


def within(seconds: int | None, function: Callable[..., T], *arguments: object) -> T:
    """Call the function for a client with this operation timeout, and return what it returns. None:
    as if it were called without this."""
    if seconds is None:
        return function(*arguments)
    token = _seconds.set(seconds)
    try:
        return function(*arguments)
    finally:
        _seconds.reset(token)


def call_timeout() -> int | None:
    """The operation timeout, in seconds, of the client for which this thread works just now. None:
    it works for nobody, or for a client whose process owns the folder."""
    return _seconds.get()
