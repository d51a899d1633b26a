"""Makes build/tree, where every folder carries its import name. The build calls it.

Cython finds pxd files by import name only, and mypy and `PYTHONPATH=build/tree` want the same, so
the tree is made of symbolic links to the sources, of copies where the file system refuses links.
Linking again costs a few milliseconds; one process does it at a time. Every mode but release has a
tree of its own beside it, with the same links but for the library.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from build_mode import ROOT, BuildMode

TREE = ROOT / "build" / "tree"  # of release, and the one that Cython reads


def _wanted(library: Path | None) -> dict[str, Path]:
    """What is linked, by its path in the tree: the package's parts and the modules beside it."""
    python = ROOT / "python"
    package = python / "pulsarx"
    wanted = {
        f"pulsarx/{entry.name}": entry
        for entry in package.iterdir()
        if entry.name != "__pycache__" and not (library and entry.name.startswith("_linked"))
    }
    if library:
        wanted[f"pulsarx/{library.name}"] = library
    named = {"_core": "src/core", "_pycore": "src/pycore", "spark": "spark"}
    wanted |= {f"pulsarx/{name}": ROOT / folder for name, folder in named.items()}
    return wanted | {module.name: module for module in python.glob("*.py")}


def _link(link: Path, target: Path) -> None:
    relative = os.path.relpath(target, link.parent)
    if link.is_symlink() and os.readlink(link) == relative:
        return
    _remove(link)
    try:
        link.symlink_to(relative)
    except OSError:
        (shutil.copytree if target.is_dir() else shutil.copy2)(target, link)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


def link_tree(mode: BuildMode | None = None) -> Path:
    """Bring a tree up to date and return its root, the folder for sys.path; release by default."""
    tree = mode.tree if mode else TREE
    folder = tree / "pulsarx"
    folder.mkdir(parents=True, exist_ok=True)
    with open(tree.with_name("tree.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = _wanted(mode.library if mode and tree != TREE else None)
        for entry in [*folder.iterdir(), *tree.glob("*.py")]:
            if str(entry.relative_to(tree)) not in wanted and entry.name != "__pycache__":
                _remove(entry)
        for name, target in wanted.items():
            _link(tree / name, target)
    return tree


if __name__ == "__main__":
    print(link_tree())
