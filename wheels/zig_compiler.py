"""The C compiler that wheels are made with: clang and the C libraries of the package ziglang, which
compiles for old versions of glibc, for musl and for other processors. make_wheels calls it."""

from __future__ import annotations

import importlib.util
import shlex
from importlib.metadata import version
from pathlib import Path

from native_build import Commands
from wheel_targets import Target

# As CPython's own flags; clang would otherwise trap what C leaves undefined, and what Cython makes
# has unused functions by the hundred. The least processor of an architecture is zig's default.
FLAGS = ("-DNDEBUG", "-fwrapv", "-fPIC", "-fno-sanitize=undefined", "-fno-strict-aliasing", "-w")


class NoCompilerError(Exception):
    """The text says what to do."""


def commands(target: Target, folder: Path) -> Commands:
    """How modules of a target are compiled and linked. folder: for the wrapper."""
    program = str(compiler(folder))
    for_target = (program, "-target", target.triple)
    return Commands((*for_target, *FLAGS), (*for_target, "-shared", "-s"))


def compiler(folder: Path) -> Path:
    """A program that is `zig cc`. Its name has the version, so that another one compiles anew."""
    found = importlib.util.find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        raise NoCompilerError(
            "the compiler for wheels is missing, which is the package ziglang: "
            "`tools/bootstrap wheels` installs it"
        )
    zig = Path(found.submodule_search_locations[0]) / "zig"
    if not zig.exists():
        raise NoCompilerError(f"ziglang has no {zig}: remove .venv/stamps and run this again")
    return wrapper(folder / f"zig-{version('ziglang')}", (str(zig), "cc"))


def wrapper(path: Path, command: tuple[str, ...]) -> Path:
    """A program of one name for a command of several words."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n'
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
        path.chmod(0o755)
    return path
