"""Says where PulsarX cannot be built, in one sentence. setup.py asks first of all."""

from __future__ import annotations

import sys
import sysconfig


def refusal() -> str | None:
    """The sentence; None: here it can."""
    if sys.platform != "linux":
        names = {"darwin": "macOS", "win32": "Windows", "cygwin": "Cygwin"}
        return (
            f"PulsarX runs on Linux alone, and this is {names.get(sys.platform, sys.platform)}: "
            "use a virtual machine, a container or WSL with Linux"
        )
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        version = "{}.{}".format(*sys.version_info)
        return (
            f"PulsarX does not work on free-threaded builds of Python (Py_GIL_DISABLED) yet, and "
            f"this is one: use python{version} in the place of python{version}t"
        )
    return None
