"""Shows how far a long call is."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Progress = Callable[[int, "int | None"], object]

WIDTH = 40


def progress_of(given: Any, noun: str) -> Progress:
    """given: False, True for a bar on the standard error output, or a callable, which is called
    with the number of messages that are done and of all, None where that is not known."""
    if callable(given):
        found: Progress = given
        return found
    if not isinstance(given, bool):
        raise ValueError(f"progress must be a bool or callable, not {type(given).__name__}")
    return Bar(noun) if given else _nothing


def _nothing(done: int, total: int | None) -> None:
    pass


class Bar:
    """A bar of text that is drawn anew in its line; ended by the call with done == total."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._shown = -1

    def __call__(self, done: int, total: int | None) -> None:
        is_end = done == total
        filled = WIDTH * done // total if total else WIDTH * is_end
        if filled == self._shown and not is_end and total is not None:
            return
        self._shown = filled
        bar = "" if total is None else f"[{'#' * filled}{'.' * (WIDTH - filled)}] "
        of = "" if total is None else f" of {total:,}"
        print(
            f"\r{bar}{done:,}{of} {self._noun}",
            end="\n" if is_end else "",
            file=sys.stderr,
            flush=True,
        )
