"""Packages that PulsarX needs for some calls only, and the extras that install them."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def optional_module(name: str, extra: str, caller: str) -> Any:
    """A module of a package that may be missing, imported in the control plane.

    ImportError: it is missing; the text names the extra.
    """
    from pulsarx._pycore.ground.control_plane import control_plane

    try:
        control_plane.load(name)
    except ModuleNotFoundError as error:
        package = name.partition(".")[0]
        if error.name != package:
            raise  # something that the package itself needs
        raise ImportError(
            f"{caller} needs the package {package}, which is not installed: "
            f"pip install 'pulsarx[{extra}]'"
        ) from error
    return sys.modules[name]
