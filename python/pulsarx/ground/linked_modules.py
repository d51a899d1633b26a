"""Finds the modules of the library. The first that its package imports.

The compiled ones are all linked into one library, because opening ninety libraries one by one costs
more than everything else that importing PulsarX does. The packages `_core` and `_pycore`, and those
in them, name LIBRARY as a folder of their search path, behind their own one; whatever is imported
below them and is no file there is looked for in the library. It is in the path before a package
runs: another thread looks there as soon as the package is in sys.modules.

Those in Python are asked for by their names. Python's own finder lists each folder first and then
asks for what it found there by each of five endings: a sixth of a start. Its loader asks for the
source a second time, and reads byte code through an object of a file. Both are used all the same
where what this takes from the inside of CPython is not there, or not known to be as it was.
"""

from __future__ import annotations

import sys
from marshal import loads
from posix import F_OK, O_CLOEXEC, O_RDONLY, access, close, fstat, open, read, stat

# The newest that the wheels are tested on.
NEWEST_PYTHON = (3, 14)
try:
    if sys.version_info[:2] > NEWEST_PYTHON:
        raise ImportError("a Python of which nothing private is known")
    # What importlib.machinery and importlib.util show; that package loads more than a start should
    # pay for.
    from _frozen_importlib import ModuleSpec
    from _frozen_importlib_external import (
        EXTENSION_SUFFIXES,
        MAGIC_NUMBER,
        ExtensionFileLoader,
        FileFinder,
        SourceFileLoader,
        cache_from_source,
    )
    from _imp import _fix_co_filename  # type: ignore[attr-defined]  # what its base uses

    _IS_KNOWN = True
except ImportError:
    from importlib.machinery import (
        EXTENSION_SUFFIXES,
        ExtensionFileLoader,
        FileFinder,
        ModuleSpec,
        SourceFileLoader,
    )
    from importlib.util import MAGIC_NUMBER, cache_from_source

    _IS_KNOWN = False

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import stat_result
    from types import CodeType, ModuleType

_OWN_FOLDER, _OWN_NAME = __file__.rsplit("/", 1)
PACKAGE = _OWN_FOLDER.rpartition("/")[0]
LIBRARY = f"{PACKAGE}/_linked{EXTENSION_SUFFIXES[0]}"
_WITH_LIBRARY = (f"{PACKAGE}/_core", f"{PACKAGE}/_pycore")


class LinkedModules:
    """Finds the modules of LIBRARY for the import system."""

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, ExtensionFileLoader(name, LIBRARY), origin=LIBRARY)

    def invalidate_caches(self) -> None:
        """This finder has no caches."""


class ByteCodeLoader(SourceFileLoader):
    """Loads a module as its base does, by fewer steps where its byte code was kept."""

    def __init__(self, name: str, source: str, kept: str, found: stat_result) -> None:
        """kept: where its byte code may lie. found: what the finder just saw of the source."""
        super().__init__(name, source)
        self._kept = kept
        self._found: stat_result | None = found

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module, with what Python else looks for on it in vain first, which takes an error
        for each."""
        made = type(sys)(spec.name)
        made.__file__ = spec.origin
        made.__cached__ = spec.cached  # type: ignore[attr-defined]
        if spec.submodule_search_locations is not None:
            made.__path__ = spec.submodule_search_locations
        return made

    def get_code(self, name: str) -> CodeType | None:
        found, self._found = self._found, None  # true for one import
        code = None if found is None else self._read_code(found)
        if code is not None:
            return code
        try:
            return super().get_code(name)
        except (SyntaxError, SystemError):
            # What Python's compiler says in one of a hundred places where it finds no memory.
            return super().get_code(name)

    def _read_code(self, found: stat_result) -> CodeType | None:
        """None: there is none of just this source, or not of the usual kind, which names the time
        and size of the source."""
        try:
            file = open(self._kept, O_RDONLY | O_CLOEXEC)
        except OSError:
            return None
        try:
            data = read(file, fstat(file).st_size)
        finally:
            close(file)
        source = int(found.st_mtime) & 0xFFFFFFFF | (found.st_size & 0xFFFFFFFF) << 32
        if data[:16] != _OF_THIS_PYTHON + source.to_bytes(8, "little"):
            return None
        try:
            code: CodeType = loads(memoryview(data)[16:])
        except (EOFError, TypeError, ValueError):
            return None  # Python says what is wrong with it
        _fix_co_filename(code, self.path)
        return code


_OF_THIS_PYTHON = MAGIC_NUMBER + bytes(4)  # and with the time of the source


class SourceModules(FileFinder):
    """Finds the modules in a folder of the package for the import system: sources, and nothing
    else."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        # As Python names it, by its version, options and cache prefix.
        self._kept, _, self._kept_suffix = cache_from_source(f"{path}/*.py").rpartition("*")
        self._is_with_library = path.startswith(_WITH_LIBRARY)

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        last = name.rpartition(".")[2]
        stem = f"{self.path}/{last}"
        if self._is_with_library and not (access(f"{stem}.py", F_OK) or access(stem, F_OK)):
            return None  # most there are compiled; an error for each would have to be made
        try:
            source, folders, kept = f"{stem}.py", None, f"{self._kept}{last}{self._kept_suffix}"
            found = stat(source)
        except OSError:
            source, folders = f"{stem}/__init__.py", [stem]
            try:
                found = stat(source)
            except OSError:
                return None
            inner = sys.path_importer_cache.get(stem)
            if not isinstance(inner, SourceModules):
                inner = sys.path_importer_cache[stem] = SourceModules(stem)
            kept = f"{inner._kept}__init__{inner._kept_suffix}"
            if inner._is_with_library:
                folders.append(LIBRARY)
        loader = ByteCodeLoader(name, source, kept, found)
        spec = ModuleSpec(name, loader, origin=source, is_package=folders is not None)
        spec.submodule_search_locations = folders
        spec.has_location = True
        spec.cached = kept
        return spec


class PythonsModules(FileFinder):
    """Replaces SourceModules where a private part of the interpreter is missing or unknown, or
    somebody installed byte code alone: all is Python's own, but that the library is in the path of
    a package."""

    def __init__(self, path: str) -> None:
        from importlib import machinery

        super().__init__(
            path,
            (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
            (machinery.SourcelessFileLoader, machinery.BYTECODE_SUFFIXES),
        )

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = super().find_spec(name, target)
        folders = None if spec is None else spec.submodule_search_locations
        for folder in list(folders or ()):
            if not isinstance(sys.path_importer_cache.get(folder), PythonsModules):
                sys.path_importer_cache[folder] = PythonsModules(folder)
            if folders is not None and folder.startswith(_WITH_LIBRARY):
                folders.append(LIBRARY)
        return spec


sys.path_importer_cache[LIBRARY] = LinkedModules()
_finder = SourceModules if _IS_KNOWN and _OWN_NAME == "linked_modules.py" else PythonsModules
for _folder in (PACKAGE, _OWN_FOLDER):  # Python has looked into both by now
    sys.path_importer_cache[_folder] = _finder(_folder)
