"""Makes Cython strict: its warnings are errors, and so is a nogil function that would take the GIL to look for errors.

setup.py and tests/core call it before they compile. Cython prints the second only as a hint, and it costs
48 ns a call instead of 2.5.
"""

from __future__ import annotations

import multiprocessing
import os
from typing import Any


def be_strict() -> None:
    """Acts on this process and on the workers it forks."""
    from Cython.Compiler import Errors, Options, PyrexTypes, Symtab

    Options.warning_errors = True

    def refuse(position: Any, message: str, environment: Any) -> Any:
        if environment.directives["show_performance_hints"]:
            return Errors.error(position, message)
        return None

    PyrexTypes.performance_hint = Symtab.performance_hint = refuse
    if os.name == "posix":
        multiprocessing.set_start_method("fork", force=True)
