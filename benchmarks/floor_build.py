"""Compiles floors.pyx, timers.pyx, idle_loop.pyx and wire_flight.pyx into build/bench, with the
flags of the library; `floors()`, `timers()`, `idle_loop()` and `wire_flight()` import them.

    python floor_build.py NAME      compiles one, so that the measuring process stays small
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BUILD = ROOT / "build" / "bench"


def floors() -> Any:
    """What a call would cost at least."""
    return _built("floors")


def timers() -> Any:
    """The timer wheel of the core, for Python."""
    return _built("timers")


def idle_loop() -> Any:
    """The loop of a broker that does nothing."""
    return _built("idle_loop")


def wire_flight() -> Any:
    """Clients that cost next to nothing."""
    return _built("wire_flight")


def _built(name: str) -> Any:
    """A module, built again where it is stale."""
    command = [sys.executable, __file__, name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}.pyx does not compile:\n{done.stdout}{done.stderr}")
    spec = importlib.util.spec_from_file_location(name, _library(name))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _library(name: str) -> Path:
    return BUILD / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"


def compile_source(name: str) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    from build_mode import build_mode
    from link_tree import link_tree
    from native_build import Recipe, Unit, commands, linked, made, only_build

    recipe = Recipe(
        build_mode(), commands(), BUILD / "objects", BUILD / "c", (link_tree(),), flags=("-O3",)
    )
    with only_build(recipe):
        objects = made([Unit(name, HERE / f"{name}.pyx")], recipe)
        linked(objects, _library(name), recipe)


if __name__ == "__main__":
    compile_source(sys.argv[1])
