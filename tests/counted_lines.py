"""Counts the work that something takes, where a time would be one of the machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of Python are run meanwhile, in this thread; each turn of a loop counts."""
    count = 0

    def note(_: Any, event: str, __: Any) -> Any:
        nonlocal count
        count += event == "line"
        return note

    before = sys.gettrace()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
