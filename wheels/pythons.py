"""Finds the CPythons that wheels are made for and tried with. make_wheels calls it.

Of the machine's own processor: on PATH, of pyenv and uv. Else those of Debian (debian_pythons), and
for musl the headers that CPython's own configure makes (musl_headers).
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from debian_pythons import DebianPythons, NoPythonError, Python
from musl_headers import MuslHeaders
from wheel_targets import C_LIBRARIES, Target

ASK = """
import json, platform, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps([platform.python_implementation(), platform.python_version(), sys.abiflags,
    platform.machine(), sysconfig.get_config_var("SOABI"), paths["include"], paths["platinclude"]]))
"""


class Pythons:
    """Keeps what it has to make below a folder. One process at a time."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self._debian = DebianPythons(folder / "roots", shared)
        self._musl = MuslHeaders(folder / "musl", self._debian)

    def python(self, target: Target) -> Python:
        """That of a target. Raises NoPythonError."""
        if target.machine == platform.machine() and (found := installed(target)):
            return found
        if target.family == "musllinux":
            return self._musl.python(target, self._of_build(target))
        return self._debian.python(target.python, target.machine)

    def _of_build(self, target: Target) -> Python:
        """The one of its version that runs here."""
        found = installed(replace(target, family="manylinux"))
        return found or self._debian.python(target.python, platform.machine())


def installed(target: Target) -> Python | None:
    """One of this machine, with headers; none that is free-threaded or made for debugging."""
    version, library = target.python, C_LIBRARIES[target.family]
    for program in _programs(version):
        try:
            done = subprocess.run([program, "-c", ASK], capture_output=True, text=True, check=False)
            kind, full, flags, machine, soabi, *headers = json.loads(done.stdout)
        except (OSError, ValueError):
            continue
        fits = kind == "CPython" and full.startswith(f"{version}.") and not flags
        fits = fits and machine == platform.machine() and str(soabi).endswith(f"-linux-{library}")
        folders = tuple(dict.fromkeys(map(Path, headers)))
        if fits and any((each / "Python.h").exists() for each in folders):
            return Python(f"{full} of this machine", folders, (str(program),))
    return None


def _programs(version: str) -> Iterator[Path]:
    name = f"python{version}"
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    data = Path(os.environ.get("XDG_DATA_HOME", "~/.local/share")).expanduser()
    for folder in (*pyenv.glob(f"{version}.*"), *(data / "uv" / "python").glob("cpython-3.*")):
        if (folder / "bin" / name).exists():
            yield folder / "bin" / name
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        # A shim of pyenv is a script that may fail; what it stands for is above.
        if (Path(entry) / name).exists() and Path(entry).name != "shims":
            yield Path(entry) / name


__all__ = ["NoPythonError", "Python", "Pythons", "installed"]
