"""CollectorPaused: no search for garbage while much is made that stays. Anybody may use it."""

from __future__ import annotations

import gc
import os


class CollectorPaused:
    """A block in which the collector does not run: there is no garbage, and looking for it among
    what is made takes longer than making it."""

    __slots__ = ("_was_on",)

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        if self._was_on:
            _paused.add(self)
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()  # first: a child that is forked between the two has it
            _paused.discard(self)


_paused: set[CollectorPaused] = set()  # those that turn it on again


def _forked() -> None:
    """In a child, where the threads in such blocks are not."""
    if _paused:
        _paused.clear()
        gc.enable()


os.register_at_fork(after_in_child=_forked)
