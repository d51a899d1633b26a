"""Finds the modules of the package. Used by the package itself.

The compiled ones are all linked into one library, because opening ninety libraries one by one costs
more than everything else that importing PulsarX does. The packages `_core` and `_pycore`, and those
in them, name LIBRARY as a folder of their search path, behind their own one; whatever is imported
below them and is no file there is looked for in the library. It is in the path before a package
runs: another thread looks there as soon as the package is in sys.modules.

Those in Python are asked for by their names. Python's own finder lists each folder first and then
asks for what it found there by each of five endings: a sixth of a start.
"""

from __future__ import annotations

import sys

# What importlib.machinery shows; that package loads more than a start should pay for.
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import (
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    spec_from_file_location,
)
from posix import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

PACKAGE, _, _OWN_NAME = __file__.rpartition("/")
LIBRARY = f"{PACKAGE}/_linked{EXTENSION_SUFFIXES[0]}"
_WITH_LIBRARY = ("pulsarx._core", "pulsarx._pycore")


class LinkedModules:
    """What the import system asks for the modules of LIBRARY."""

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, ExtensionFileLoader(name, LIBRARY), origin=LIBRARY)

    def invalidate_caches(self) -> None:
        """This finder has no caches."""


class SourceModules(FileFinder):
    """What the import system asks for the modules in a folder of the package: sources, and nothing
    else."""

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        stem = f"{self.path}/{name.rpartition('.')[2]}"
        for file, folders in ((f"{stem}.py", None), (f"{stem}/__init__.py", [stem])):
            try:
                stat(file)
            except OSError:
                continue
            if folders:
                sys.path_importer_cache.setdefault(stem, SourceModules(stem))
                if name.startswith(_WITH_LIBRARY):
                    folders.append(LIBRARY)
            loader = SourceFileLoader(name, file)
            return spec_from_file_location(
                name, file, loader=loader, submodule_search_locations=folders
            )
        return None


sys.path_importer_cache[LIBRARY] = LinkedModules()
if _OWN_NAME == "linked_modules.py":  # not where somebody installed byte code alone
    sys.path_importer_cache[PACKAGE] = SourceModules(PACKAGE)
