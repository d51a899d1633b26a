"""Makes failing_memory.c, which lets memory run out in a child process."""

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


def compiled(folder: Path) -> Path:
    """The library, made in a folder."""
    library = folder / "failing_memory.so"
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    command = [*shlex.split(compiler), "-O2", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(TESTS / "failing_memory.c")], check=True)
    return library


def environment(library: Path) -> dict[str, str]:
    """Of a child process whose memory can fail, and that imports what tests do."""
    # Else Python keeps memory, and asks the system seldom.
    added = {"LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc", "PYTHONPATH": str(TESTS)}
    return os.environ | added
