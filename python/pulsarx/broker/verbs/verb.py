"""A verb: something a caller can ask of an opened folder, in process or over a channel."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


class Verb:
    """A value. function(folder, **arguments) answers what JSON can say; it may be repeated, for the
    answer to a request may get lost, unless it is one that removes."""

    __slots__ = ("function", "kinds", "optional", "reads", "removes")

    def __init__(
        self,
        function: Callable[..., Any],
        kinds: Mapping[str, type],
        *,
        optional: Mapping[str, type] | None = None,
        reads: bool = False,
        removes: bool = False,
    ) -> None:
        """kinds: the arguments that are required; optional: those that need not be there. reads:
        changes nothing, so that a folder opened read_only can do it. removes: done once more it
        would take what has come since."""
        self.function = function
        self.kinds = kinds
        self.optional = optional or {}
        self.reads = reads
        self.removes = removes
