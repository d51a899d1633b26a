"""Calls that touch the disk or the broker, made by a coroutine: the control plane performs them."""

from __future__ import annotations

from pulsarx._pycore.ground.loop_queue import begin_call, loop_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


async def perform(
    function: Callable[..., Any],
    *arguments: Any,
    give_back: Callable[[Any], object] | None = None,
    **named: Any,
) -> Any:
    """Call the function in the control plane and return what it returns. It runs to its end also
    when the caller is cancelled, and the next call begins when it has, so that it can be repeated.

    give_back: called with a result that its caller did not wait for.
    """
    call = begin_call(function, arguments, named, give_back)
    try:
        return await call.future
    except BaseException:
        call.leave()
        raise


async def wait_until_told(
    tell: Callable[[Callable[[], object]], object], leave: Callable[[], object]
) -> None:
    """Return when what was given to tell is called, in whatever thread.

    leave: performed in the control plane when the caller is cancelled.
    """
    event = loop_event()
    tell(event)
    try:
        await event.future
    except BaseException:
        begin_call(leave, (), {}, None).leave()
        raise
