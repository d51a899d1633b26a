"""Compiles one Cython test module: `compile_module.py <pyx> <folder of the .so> <folder of the C>`.

A process of its own, so that what the compilers say can be shown whole when they refuse.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

from build_mode import build_mode  # noqa: E402
from link_tree import TREE  # noqa: E402
from strict_cython import be_strict  # noqa: E402


def compile_module(source: Path, so_folder: Path, c_folder: Path) -> None:
    from Cython.Build import cythonize
    from setuptools import Extension
    from setuptools.dist import Distribution

    mode = build_mode()
    be_strict()
    extension = Extension(
        source.stem,
        [str(source)],
        include_dirs=[str(ROOT / "src" / "core"), str(ROOT / "src" / "pycore")],
        # A test is compiled more often than it is run.
        extra_compile_args=[*mode.compile_flags, "-O1", "-UNDEBUG"],
        extra_link_args=mode.link_flags,
        define_macros=mode.macros,
    )
    made = cythonize(
        [extension],
        force=True,
        build_dir=str(c_folder),
        include_path=[str(TREE), str(source.parent)],
        compiler_directives=mode.directives | {"binding": True},
        emit_linenums=True,
        quiet=True,
    )
    command = Distribution({"ext_modules": made}).get_command_obj("build_ext")
    command.build_lib = str(so_folder)
    command.build_temp = str(c_folder / "objects")
    command.force = True
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    compile_module(*(Path(argument).resolve() for argument in sys.argv[1:4]))
