"""Waits for what another thread or process does, and gives no sign of."""

from __future__ import annotations

import threading
from collections.abc import Callable

PAUSE_SECONDS = 0.005
LOOKS = 12_000  # a minute; longer on a busy machine, where a pause is


def wait_until(
    holds: Callable[[], object], what: str = "it never happened", minutes: int = 1
) -> None:
    """Return once it holds; AssertionError, which says what, after so many minutes."""
    pause = threading.Event()
    for _ in range(LOOKS * minutes):
        if holds():
            return
        pause.wait(PAUSE_SECONDS)
    raise AssertionError(what)
