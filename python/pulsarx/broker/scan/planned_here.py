"""The state that the ranges of a plan share in the process that made it, so that it knows whether
somebody may still read them. Used by the driver of Spark."""

from __future__ import annotations

from functools import partial

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.when_forgotten import WhenForgotten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class PlannedHere:
    """Refers to no range; each of them refers to it."""

    __slots__ = ("key", "_goes_out", "_forgotten")

    def __init__(
        self, goes_out: Callable[[object], object], forgotten: Callable[[object], object]
    ) -> None:
        """Both are called with the key of the plan. goes_out: when a range is pickled or made a
        row, in that thread. forgotten: in the control plane, when no range is left."""
        self.key: object = object()
        self._goes_out = goes_out
        self._forgotten = WhenForgotten(control_plane.post, partial(forgotten, self.key))

    def goes_out(self) -> None:
        """A range is about to be read elsewhere."""
        self._goes_out(self.key)
