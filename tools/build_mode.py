"""The ways to build, as one table. setup.py and tests/core compile with what stands here.

mode        chosen by                             for
release     nothing                               users, benchmarks
debug       PULSARX_DEBUG=1                       gdb, perf: lines of the pyx
coverage    PULSARX_COVERAGE=1                    lines covered, nogil ones too; C beside the pyx
branches    PULSARX_BRANCHES=1                    branches taken, by gcov: tools/branches.py
sanitize    PULSARX_SANITIZE=address,undefined    out of bounds, use after free, undefined behaviour
            PULSARX_SANITIZE=thread               races: accesses that nothing orders
fuzz        PULSARX_FUZZ=1                        the same of what parses, by clang, and which
                                                  branches it takes; the rest is release's

Each mode keeps what it makes: objects, a library, a tree of links to run the project from
(link_tree.py). So changing between modes builds nothing anew. Release has python/pulsarx, where
other tools look for a library, and build/tree; the others have build/<mode>.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RELEASE = "release"
# Of release: by the beginning of a module's name. What is entered for each message or byte is
# compiled to be fast; -O1 for the rest halves the time of the C compiler. Receiving costs 5 % more
# where its packages are -O2; publishing costs the same.
OPTIMISED = (
    ("pulsarx._core.", "-O3"),
    ("pulsarx._pycore.arrow.", "-O2"),
    ("pulsarx._pycore.consume.", "-O3"),
    ("pulsarx._pycore.dispatch.", "-O3"),
    ("pulsarx._pycore.ledger.", "-O3"),
    ("pulsarx._pycore.message.", "-O3"),
    ("pulsarx._pycore.publish.", "-O2"),
    ("pulsarx._pycore.ranges.", "-O2"),
    ("pulsarx._pycore.wire.", "-O2"),
)
# Of fuzz: what reads bytes that nobody vouches for. All of the library takes an hour of clang, and
# branches of what does not parse lead a fuzzer astray.
PARSERS = (
    "pulsarx._core.",
    "pulsarx._pycore.arrow.avro_reader",
    "pulsarx._pycore.arrow.column_",
    "pulsarx._pycore.arrow.json_",
    "pulsarx._pycore.cursor.subscription_label",
    "pulsarx._pycore.dispatch.chunk_assembler",
    "pulsarx._pycore.ground.plain_json",
    "pulsarx._pycore.ledger.name_record",
    "pulsarx._pycore.message.chunked_message",
    "pulsarx._pycore.message.entry_bytes",
    "pulsarx._pycore.message.payload_blocks",
    "pulsarx._pycore.ranges.entry_codec",
    "pulsarx._pycore.wire.",
)


@dataclass
class BuildMode:
    """What one mode changes. Read only."""

    name: str
    compile_flags: list[str]
    link_flags: list[str] = field(default_factory=list)
    macros: list[tuple[str, str | None]] = field(default_factory=list)
    line_trace: bool = False
    counts_branches: bool = False
    compiler: str = ""  # that alone can build it; none: Python's, or CC
    own: tuple[str, ...] = ("",)  # the modules it compiles, by the beginnings of their names

    @property
    def folder(self) -> Path:
        """What only this mode uses."""
        return ROOT / "build" if self.name == RELEASE else ROOT / "build" / self.name

    @property
    def tree(self) -> Path:
        """The folder for PYTHONPATH."""
        return self.folder / "tree"

    @property
    def library(self) -> Path:
        """Where all .pyx are linked into."""
        name = f"_linked{sysconfig.get_config_var('EXT_SUFFIX')}"
        if self.name == RELEASE:
            return ROOT / "python" / "pulsarx" / name
        return self.folder / "lib" / "pulsarx" / name

    @property
    def build_arguments(self) -> list[str]:
        """For `setup.py build_ext`."""
        if self.name == RELEASE:
            return ["--inplace"]
        return [f"--build-lib={self.folder}/lib"]

    @property
    def objects(self) -> Path:
        """Of this Python alone: several may share the folder."""
        return self.folder / "objects" / str(sys.implementation.cache_tag)

    @property
    def c_folder(self) -> Path | None:
        """Where generated C goes; None is beside the source, where Cython.Coverage looks for it."""
        if self.line_trace:
            return None
        return ROOT / "build" / ("c-with-lines" if self.lines_of_sources else "c")

    @property
    def lines_of_sources(self) -> bool:
        """Whether gdb, perf and sanitizers name lines of the .pyx. To write them down took an
        eighth of Cython's time, and a quarter of its C is about them."""
        return self.name != RELEASE

    def optimisation(self, module: str) -> list[str]:
        """The level for a module of the library."""
        if self.name != RELEASE:
            return []
        return [next((level for start, level in OPTIMISED if module.startswith(start)), "-O1")]

    def compiles(self, module: str) -> bool:
        """False: its object is release's."""
        return module.startswith(self.own)

    @property
    def directives(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "cdivision": True,
            # Plain method descriptors: a call costs a quarter less than through a Cython function.
            # In exchange signatures are written the way inspect reads them from built-ins.
            "binding": False,
            "embedsignature": True,
            "embedsignature.format": "clinic",
            # What is to be pickled says how. Cython's own way was a twelfth of the library.
            "auto_pickle": False,
            "emit_code_comments": self.line_trace,  # Cython.Coverage reads them
        }
        return found | ({"linetrace": True} if self.line_trace else {})


def clang() -> str:
    """The one that fuzzing takes; empty: there is none."""
    names = [os.environ.get("CC", ""), "clang", *(f"clang-{each}" for each in range(30, 13, -1))]
    return next((each for each in names if "clang" in each and shutil.which(each)), "")


def build_mode() -> BuildMode:
    """The mode the environment asks for."""
    always = ["-fvisibility=hidden"]
    if os.environ.get("PULSARX_FUZZ", "0") != "0":
        # What it remarks on, GCC does not: that is for the other modes.
        flags = [
            *always,
            "-O1",
            "-gline-tables-only",
            "-fno-omit-frame-pointer",
            "-fno-wrapv",
            "-w",
        ]
        flags += ["-fsanitize=address,undefined,fuzzer-no-link", "-fno-sanitize-recover=undefined"]
        flags += ["-fno-sanitize=pointer-overflow"]  # Cython adds 0 to NULL to slice no bytes
        link = ["-fsanitize=address,undefined,fuzzer-no-link"]
        return BuildMode("fuzz", flags, link, compiler=clang(), own=PARSERS)
    sanitizers = os.environ.get("PULSARX_SANITIZE", "")
    if sanitizers:
        flag = f"-fsanitize={sanitizers}"
        name = "sanitize-" + sanitizers.replace(",", "-")
        flags = [*always, "-O1", "-g3", "-fno-omit-frame-pointer", flag]
        # Python's own flags have -fwrapv, which hides every overflow of signed integers.
        flags += ["-fno-wrapv", "-fno-sanitize-recover=undefined"]
        return BuildMode(name, flags, [flag], [("PULSARX_DEBUG", "1")])
    if os.environ.get("PULSARX_COVERAGE", "0") != "0":
        macros: list[tuple[str, str | None]] = [
            ("CYTHON_TRACE_NOGIL", "1"),
            ("CYTHON_USE_SYS_MONITORING", "0"),
        ]
        return BuildMode("coverage", [*always, "-O1", "-g0"], [], macros, line_trace=True)
    if os.environ.get("PULSARX_BRANCHES", "0") != "0":
        # Threads count in the same places. Optimised code has other branches than the source.
        flags = [*always, "-O0", "-g0", "--coverage", "-fprofile-update=atomic"]
        return BuildMode("branches", flags, ["--coverage"], counts_branches=True)
    if os.environ.get("PULSARX_DEBUG", "0") != "0":
        return BuildMode("debug", [*always, "-Og", "-g3"], [], [("PULSARX_DEBUG", "1")])
    return release_mode()


def release_mode() -> BuildMode:
    # Without the table of symbols, of which a tenth of the file is. Debug has it.
    return BuildMode(RELEASE, ["-fvisibility=hidden", "-g0"], ["-Wl,--strip-all"])
