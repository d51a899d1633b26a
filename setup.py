"""Builds one library of all the .pyx of src/core and src/pycore. The rest is in pyproject.toml.

Import names come from a tree of links (tools/link_tree.py), flags from tools/build_mode.py.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tools"))

from build_mode import build_mode  # noqa: E402
from link_tree import TREE, link_tree  # noqa: E402
from linked_extension import BuildLinked  # noqa: E402
from strict_cython import be_strict  # noqa: E402

FOLDERS = {"pulsarx._core": "src/core", "pulsarx._pycore": "src/pycore"}
MODE = build_mode()


def modules() -> list[Extension]:
    """One for each .pyx, as Cython wants them."""
    return [
        Extension(
            ".".join([package, *path.relative_to(ROOT / folder).with_suffix("").parts]),
            [str(path.relative_to(ROOT))],
            define_macros=MODE.macros,
        )
        for package, folder in FOLDERS.items()
        for path in sorted((ROOT / folder).rglob("*.pyx"))
    ]


def library() -> Extension:
    """What they are linked into; its sources are known once they are translated."""
    headers = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob("src/**/*.h"))
    return Extension(
        "pulsarx._linked",
        [str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("src/**/*.pyx"))],
        depends=headers,
        include_dirs=list(FOLDERS.values()),
        extra_compile_args=MODE.compile_flags,
        extra_link_args=MODE.link_flags,
        define_macros=MODE.macros,
    )


class BuildExtensions(BuildLinked):
    """Translates to C, compiles in parallel, and starts afresh when the mode changed."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.parallel = os.cpu_count()  # `-j` may say otherwise

    def run(self) -> None:
        link_tree()
        stamp = ROOT / Path(self.build_temp).parent / "mode"
        stamp.parent.mkdir(parents=True, exist_ok=True)
        # The folder belongs to it: an editable install builds elsewhere than `build_ext`.
        wanted = f"{MODE} {sys.version} {Path(self.build_lib).resolve()}\n"
        if not stamp.exists() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)
            self.force = True
        self.translate()
        super().run()
        link_tree()  # the library itself
        stamp.write_text(wanted)

    def translate(self) -> None:
        """Turn the .pyx sources of the library into C, the same for all modes but coverage."""
        import Cython
        from Cython.Build import cythonize
        from Cython.Compiler.Errors import CompileError

        # A released sdist must still build when a newer Cython has a new warning.
        if (ROOT / ".git").exists():
            be_strict()
        version = ROOT / "build" / ("cython-coverage" if MODE.line_trace else "cython")
        if not version.exists() or version.read_text() != Cython.__version__:
            for old in ROOT.glob(f"{MODE.c_folder or 'src'}/**/*.c"):
                old.unlink()
            version.write_text(Cython.__version__)
        try:
            made = cythonize(
                modules(),
                nthreads=os.cpu_count() or 1,
                build_dir=MODE.c_folder,
                include_path=[str(TREE.relative_to(ROOT))],
                compiler_directives=MODE.directives,
                emit_linenums=True,
                quiet=not self.verbose,
            )
        except CompileError as error:
            sys.exit(f"setup.py: Cython refuses {error}; its reasons are above")
        for extension in self.extensions:
            extension.sources = [source for module in made for source in module.sources]


if __name__ == "__main__":
    setup(ext_modules=[library()], cmdclass={"build_ext": BuildExtensions})
