"""What Python the collector runs."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def nothing_collected() -> Iterator[Callable[[], set[str]]]:
    """No collection inside, but by the function that is given: it collects, and returns what Python
    ran meanwhile. A signal handler that raises there is not heard by anybody."""

    def collect() -> set[str]:
        met: set[str] = set()

        def trace(frame: FrameType, event: str, _: object) -> None:
            met.add(f"{frame.f_code.co_filename} {frame.f_code.co_qualname}")

        callbacks, gc.callbacks[:] = gc.callbacks[:], []  # those of hypothesis
        sys.settrace(trace)
        try:
            gc.collect()
        finally:
            sys.settrace(None)
            gc.callbacks[:] = callbacks
        return met

    gc.collect()
    gc.disable()
    try:
        yield collect
    finally:
        gc.enable()
