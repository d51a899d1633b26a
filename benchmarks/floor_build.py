"""Compiles floors.pyx and idle_loop.pyx into build/bench, with the flags of the library; `floors()`
and `idle_loop()` import them.

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
    return _built("floors", ROOT / "src" / "core" / "crc32c.pyx")


def idle_loop() -> Any:
    """The loop of a broker that does nothing."""
    return _built("idle_loop")


def _built(name: str, *more_inputs: Path) -> Any:
    """A module, built again when its source or the library is younger."""
    library = BUILD / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
    source = HERE / f"{name}.pyx"
    inputs = (source, Path(__file__), *more_inputs)
    if not library.exists() or library.stat().st_mtime < max(p.stat().st_mtime for p in inputs):
        command = [sys.executable, __file__, name]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{source.name} does not compile:\n{done.stdout}{done.stderr}")
    spec = importlib.util.spec_from_file_location(name, library)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_source(name: str) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    from build_mode import build_mode
    from Cython.Build import cythonize
    from link_tree import link_tree
    from setuptools import Extension
    from setuptools.dist import Distribution
    from strict_cython import be_strict

    be_strict()
    mode = build_mode()
    BUILD.mkdir(parents=True, exist_ok=True)
    made = cythonize(
        [Extension(name, [str(HERE / f"{name}.pyx")], extra_compile_args=mode.compile_flags)],
        force=True,
        build_dir=str(BUILD / "c"),
        include_path=[str(link_tree())],
        compiler_directives=mode.directives,
        quiet=True,
    )
    command = Distribution({"ext_modules": made}).get_command_obj("build_ext")
    command.build_lib = str(BUILD)
    command.build_temp = str(BUILD / "objects")
    command.force = True
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    compile_source(sys.argv[1])
