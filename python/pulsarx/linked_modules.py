"""Finds the compiled modules, which are all linked into one library. Used by the package itself.

Opening ninety libraries one by one costs more than everything else that importing PulsarX does.
The packages `_core` and `_pycore` name LIBRARY as a folder of their search path, behind their own
one; whatever is imported below them and is no file there is looked for in the library.
"""

from __future__ import annotations

import sys

# What importlib.machinery shows; that package loads more than a start should pay for.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import EXTENSION_SUFFIXES, ExtensionFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

LIBRARY = f"{__file__.rpartition('/')[0]}/_linked{EXTENSION_SUFFIXES[0]}"


class LinkedModules:
    """What the import system asks for the modules of LIBRARY."""

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, ExtensionFileLoader(name, LIBRARY), origin=LIBRARY)

    def invalidate_caches(self) -> None:
        """This finder has no caches."""


sys.path_importer_cache[LIBRARY] = LinkedModules()
