"""Compiles the C of all modules, each when it is stale, and links it into one library.

setup.py uses it. pulsarx/linked_modules.py says why there is one library and finds modules in it.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension
from setuptools.command.build_ext import build_ext


class BuildLinked(build_ext):
    """Builds extensions of many sources: in parallel, and of each only what changed."""

    def build_extension(self, ext: Any) -> None:
        library = Path(self.get_ext_fullpath(ext.name))
        objects = self.compiled(ext)
        if not self.force and library.exists() and not newer_than(library, objects):
            return
        library.parent.mkdir(parents=True, exist_ok=True)
        self.compiler.link_shared_object(
            [str(each) for each in objects],
            str(library),
            extra_postargs=ext.extra_link_args,
            build_temp=self.build_temp,
        )

    def compiled(self, ext: Extension) -> list[Path]:
        """The object of each source; raises what the compiler refuses first."""
        headers = [Path(each) for each in ext.depends]

        def compile_one(source: str) -> Path:
            made = Path(self.build_temp, source).with_suffix(".o")
            if self.force or not made.exists() or newer_than(made, [Path(source), *headers]):
                self.compiler.compile(
                    [source],
                    output_dir=self.build_temp,
                    macros=ext.define_macros,
                    include_dirs=ext.include_dirs,
                    extra_postargs=ext.extra_compile_args,
                )
            return made

        with ThreadPoolExecutor(self.parallel or os.cpu_count()) as pool:
            return list(pool.map(compile_one, ext.sources))


def newer_than(made: Path, inputs: list[Path]) -> bool:
    """Whether one of the inputs is younger than what was made of them."""
    time = made.stat().st_mtime_ns
    return any(each.stat().st_mtime_ns > time for each in inputs)
