"""Steps of closing and deleting, of which the next ones are taken even when one fails."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def attempt(step: Callable[[], object]) -> Exception | None:
    """Take a step; what it failed with, or None; the next ones are taken even then. One that ran
    out of memory is taken a second time, so it must be one that can be."""
    try:
        step()
        return None
    except MemoryError:
        pass  # and what it held is free
    except Exception as error:
        return error
    try:
        step()
    except Exception as error:
        return error
    return None
