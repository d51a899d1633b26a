"""Compiles the modules of the tests that are written in Cython, each when it is stale:
`compile_modules.py [source...]`, all without arguments. tools/prepare.py and conftest.py call it.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BESIDE = [ROOT / "tests" / each for each in ("border", "reliability")]
sys.path.insert(0, str(ROOT / "tools"))

from build_mode import build_mode  # noqa: E402
from link_tree import TREE  # noqa: E402
from native_build import (  # noqa: E402
    BuildError,
    Recipe,
    Unit,
    commands,
    linked,
    made,
    only_build,
)

MODE = build_mode()
FOLDER = ROOT / "build" / "tests" / f"{MODE.name}-{sys.implementation.cache_tag}"


def library_of(source: Path) -> Path:
    """Where it is when it is compiled."""
    return FOLDER / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"


def compile_modules(sources: list[Path]) -> None:
    """Raises BuildError with what the compilers say."""
    recipe = Recipe(
        MODE,
        commands(MODE.compiler),
        objects=FOLDER / "objects",
        c_folder=FOLDER / "c",
        include_path=(TREE, HERE),
        header_path=(ROOT / "src" / "core", HERE),
        directives={"binding": True},
        # A test is compiled more often than it is run.
        flags=("-O0" if MODE.counts_branches else "-O1", "-UNDEBUG"),
    )
    with only_build(recipe):  # several processes may collect at the same time
        objects = made(
            [Unit(each.stem, each) for each in sources], recipe, noun="tests of the core"
        )
        for source, each in zip(sources, objects, strict=True):
            linked([each], library_of(source), recipe)


if __name__ == "__main__":
    try:
        given = [Path(each).resolve() for each in sys.argv[1:]]
        found = [path for folder in BESIDE for path in folder.glob("*.pyx")]
        compile_modules(given or sorted([*HERE.glob("test_*.pyx"), *found]))
    except BuildError as error:
        sys.exit(str(error))
