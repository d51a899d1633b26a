"""Steps of closing and deleting, of which the next ones are taken even when one fails."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def attempt(step: Callable[[], object]) -> Exception | None:
    """Take a step; what it failed with, or None."""
    try:
        step()
    except Exception as error:
        return error
    return None
