"""Bugs that the sweeps of failures must find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Planted:
    """A bug, planted in the process of one point. kind, scene, points: of the sweep that finds it.
    faults: those that it is found with; None: all of the sweep."""

    plant: Callable[[], None]
    kind: str
    scene: str
    points: int
    faults: tuple[tuple[Any, ...], ...] | None = None


def nothing() -> None:
    """The fault itself is the bug."""


PLANTED: dict[str, Planted] = {
    "a failed flush is ignored": Planted(
        nothing, "files", "publish", 3, (("system", "flush", "lie"),)
    ),
    "a failed write is ignored": Planted(
        nothing, "files", "publish", 3, (("system", "write", "lie"),)
    ),
}
