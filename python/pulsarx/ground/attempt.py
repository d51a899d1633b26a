"""Runs the steps of closing and deleting: the next ones even when one fails."""

from __future__ import annotations

from pulsarx._pycore.ground.threads import rest_for_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")


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


def insist(step: Callable[[], T]) -> T:
    """Take a step again until there is memory for it, and return what it returns: for threads that
    others need. Raises what else it fails with."""
    while True:
        try:
            return step()
        except MemoryError:
            rest_for_memory()
