"""Builds one library of all the .pyx of src/core and src/pycore. The rest is in pyproject.toml.

Import names come from a tree of links (tools/link_tree.py), flags from tools/build_mode.py, objects
from tools/native_build.py, the text for package indexes from tools/index_readme.py.
ground/linked_modules.py says why there is one library and finds modules in it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

from supported_platforms import refusal  # noqa: E402

if said := refusal():  # before anything is imported that other platforms have not
    sys.exit(f"setup.py: {said}")

from concurrent.futures.process import BrokenProcessPool  # noqa: E402
from typing import Any  # noqa: E402

from bill_of_materials import FILE_NAME, bill_of_materials  # noqa: E402
from build_mode import build_mode, release_mode  # noqa: E402
from index_readme import index_readme  # noqa: E402
from link_tree import TREE, link_tree  # noqa: E402
from native_build import (  # noqa: E402
    BuildError,
    Recipe,
    Unit,
    commands,
    copied,
    linked,
    made,
    only_build,
    units_in,
)
from setuptools import Extension, setup  # noqa: E402
from setuptools.command.bdist_wheel import bdist_wheel  # noqa: E402
from setuptools.command.build_ext import build_ext  # noqa: E402

FOLDERS = {"pulsarx._core": ROOT / "src" / "core", "pulsarx._pycore": ROOT / "src" / "pycore"}
MODE = build_mode()


def library() -> Extension:
    """What setuptools is to know: its name, and sources for the sdist."""
    sources = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.pyx"))
    return Extension("pulsarx._linked", sources)


class BuildLibrary(build_ext):
    """Makes what is stale of all modules, and links them. `-j` says in how many processes."""

    def run(self) -> None:
        link_tree()
        super().run()
        link_tree()  # the library itself

    def swig_sources(self, sources: list[str], extension: Any) -> list[str]:
        return sources

    def build_extension(self, ext: Any) -> None:
        recipe = Recipe(MODE, commands(MODE.compiler), MODE.objects, MODE.c_folder, (TREE,))
        units = [unit for package, folder in FOLDERS.items() for unit in units_in(folder, package)]
        target = Path(self.get_ext_fullpath(ext.name))
        try:
            with only_build(recipe):  # all of it: another build has other objects
                objects = self.made(units, recipe)
                copied(linked(objects, MODE.objects / target.name, recipe), target, recipe)
        except (BuildError, BrokenProcessPool, OSError) as error:
            sys.exit(f"setup.py: {error}")

    def made(self, units: list[Unit], recipe: Recipe) -> list[Path]:
        """The objects, those that are not the mode's own by release."""
        own = [each for each in units if MODE.compiles(each.name)]
        objects = made(own, recipe, jobs=self.parallel, force=bool(self.force))
        others = [each for each in units if each not in own]
        if others:
            release = release_mode()
            plain = Recipe(release, commands(), release.objects, release.c_folder, (TREE,))
            objects += made(others, plain, jobs=self.parallel)
        return objects


class BuildWheel(bdist_wheel):
    """Adds what of others is compiled in (tools/bill_of_materials.py)."""

    def egg2dist(self, egginfo_path: str, distinfo_path: str) -> None:
        super().egg2dist(egginfo_path, distinfo_path)  # also where metadata alone is asked for
        about = self.distribution.metadata
        bill = bill_of_materials(about.name, about.version, about.license_expression)
        folder = Path(distinfo_path) / "sboms"
        folder.mkdir(exist_ok=True)
        (folder / FILE_NAME).write_text(bill)


if __name__ == "__main__":
    setup(
        ext_modules=[library()],
        cmdclass={"build_ext": BuildLibrary, "bdist_wheel": BuildWheel},
        long_description=index_readme(),
        long_description_content_type="text/markdown",
    )
