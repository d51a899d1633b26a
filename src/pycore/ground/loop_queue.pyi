from asyncio import Future
from collections.abc import Callable
from typing import Any

class LoopCall:
    """A call of the control plane that a coroutine waits for."""

    future: Future[Any]
    def leave(self) -> None:
        """Its caller does not wait any more: what was made for it is given back."""

class LoopEvent:
    """Something that happens once, for a coroutine: calling it completes its future, from any
    thread."""

    future: Future[None]
    def __call__(self) -> None: ...

def begin_call(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    give_back: Callable[[Any], object] | None,
) -> LoopCall:
    """Perform a function in the control plane, for the loop that runs here."""

def loop_event() -> LoopEvent:
    """An event of the loop that runs here."""
