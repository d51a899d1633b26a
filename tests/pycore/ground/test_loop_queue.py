"""Facts about the queue between threads and an asyncio loop."""

from __future__ import annotations

import asyncio
import gc
import sys
from types import FrameType

from pulsarx._pycore.ground.loop_queue import loop_event


async def use() -> int:
    """The number of the loop that runs, which has a queue from now on."""
    loop_event()
    return id(asyncio.get_running_loop())


def test_where_a_queue_goes_no_python_runs() -> None:
    """A callback in Python removed it from the list of queues, and lost what a signal handler
    raised in it: in the middle of a call, where the collector found it."""
    keys: set[object] = set()

    def trace(frame: FrameType, event: str, _: object) -> None:
        keys.add(getattr(frame.f_locals.get("wr"), "key", None))

    loop, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    number = loop.run_until_complete(use())
    loop.close()
    sys.settrace(trace)
    try:
        other.run_until_complete(use())  # the last one that was asked for is kept
        del loop
        gc.collect()
    finally:
        sys.settrace(None)
        other.close()
    assert number not in keys
