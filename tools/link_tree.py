"""Makes build/tree, where every folder carries its import name. The build calls it.

Cython finds pxd files by import name only, and mypy and `PYTHONPATH=build/tree` want the same, so
the tree is made of symbolic links to the sources, of copies where the file system refuses links.
Linking again costs a few milliseconds.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "tree"


def _wanted() -> dict[str, Path]:
    """What is linked, by its path in the tree: the package's parts and the modules beside it."""
    python = ROOT / "python"
    package = python / "pulsarx"
    wanted = {
        f"pulsarx/{entry.name}": entry for entry in package.iterdir() if entry.name != "__pycache__"
    }
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
    except FileExistsError:
        pass  # a build beside this one was quicker
    except OSError:
        (shutil.copytree if target.is_dir() else shutil.copy2)(target, link)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)


def link_tree() -> Path:
    """Bring the tree up to date and return its root, the folder for sys.path."""
    folder = TREE / "pulsarx"
    folder.mkdir(parents=True, exist_ok=True)
    wanted = _wanted()
    for entry in [*folder.iterdir(), *TREE.glob("*.py")]:
        if str(entry.relative_to(TREE)) not in wanted and entry.name != "__pycache__":
            _remove(entry)
    for name, target in wanted.items():
        _link(TREE / name, target)
    return TREE


if __name__ == "__main__":
    print(link_tree())
