"""Have `import pulsar` find PulsarX in a process below `pulsarx run`. Python imports this module
when it starts, in place of another one of its name, which is imported here. Loads nothing of
PulsarX before the program asks for it."""

from __future__ import annotations

import os
import sys
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class Alias:
    """A finder of sys.meta_path, until the first import of `pulsar`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in ("pulsar", "_pulsar"):
            return None
        sys.meta_path.remove(self)
        try:
            from pulsarx.compat.started_processes import install_here
        except ImportError:  # another Python, which has no PulsarX
            return None
        install_here()
        return find_spec(fullname)


def _run_other() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    places = [each for each in sys.path if os.path.abspath(each or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", places)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(module_from_spec(spec))


if "PULSARX_RUN" in os.environ:
    sys.meta_path.insert(0, Alias())
_run_other()
