"""CollectorPaused: no search for garbage while much is made that stays. Anybody may use it."""

from __future__ import annotations

import gc


class CollectorPaused:
    """A block in which the collector does not run: there is no garbage, and looking for it among
    what is made takes longer than making it."""

    __slots__ = ("_was_on",)

    def __enter__(self) -> None:
        self._was_on = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._was_on:
            gc.enable()
