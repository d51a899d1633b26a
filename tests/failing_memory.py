"""Makes failing_memory.c, which lets memory run out in a child process, and libraries like it."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sysconfig
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
MEMORY_CAN_FAIL = [
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="replaces malloc of glibc"),
    pytest.mark.skipif("PULSARX_SANITIZE" in os.environ, reason="sanitizers have their own malloc"),
]


def compiled(folder: Path, source: Path = TESTS / "failing_memory.c") -> Path:
    """The library of a source, made in a folder."""
    library = folder / f"{source.stem}.so"
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = [*shlex.split(compiler), "-O2", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(source), "-ldl"], check=True)
    return library


def environment(*libraries: Path, of_python: bool = True) -> dict[str, str]:
    """Of a child process that has these libraries, and imports what tests do. of_python: what
    Python asks for can fail; else it keeps memory, and asks the system seldom."""
    added = {
        "LD_PRELOAD": " ".join(map(str, libraries)),
        "PYTHONPATH": f"{TESTS}:{TESTS / 'api'}",
    }
    return os.environ | added | ({"PYTHONMALLOC": "malloc"} if of_python else {})
