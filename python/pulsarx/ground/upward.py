"""Loads a module that stands above its caller, where a step up is meant: by its name, when it is
needed. tests/tidy/test_layers.py has every such step in its table, and allows no other."""

from __future__ import annotations

import sys

from pulsarx._pycore.ground.control_plane import control_plane

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def load(name: str) -> Any:
    """The module of a name, loaded in the control plane."""
    control_plane.load(name)
    return sys.modules[name]
