"""The headers of CPythons on musl: CPython's own configure makes pyconfig.h with the compiler that
the wheels are made with. make_wheels calls it.

The source is Debian's, fetched by its apt-get. A Python on musl itself is not made: what is built
for it is checked by auditwheel alone, unless this machine's own is one.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path

from debian_pythons import DebianPythons, NoPythonError, Python
from wheel_targets import Target
from zig_compiler import compiler, wrapper

SHOWN = 300  # characters of what configure says
# What configure can ask only where its programs run. None of them is seen by an extension.
ANSWERS = (
    "ac_cv_file__dev_ptmx=yes",
    "ac_cv_file__dev_ptc=no",
    "ac_cv_buggy_getaddrinfo=no",
)


class MuslHeaders:
    """Keeps them below a folder. One process at a time."""

    def __init__(self, folder: Path, debian: DebianPythons) -> None:
        self._folder, self._debian = folder, debian

    def python(self, target: Target, build: Python) -> Python:
        """build: one of the same version that runs here. Raises NoPythonError."""
        place = self._folder / f"{target.tag}-{target.machine}"
        if not place.exists():
            self._make(place, target, build)
        why = f"no Python {target.python} on musl here"
        return Python("CPython's source", (place,), (), why_not_run=why)

    def _make(self, place: Path, target: Target, build: Python) -> None:
        if not build.command:
            raise NoPythonError(f"configuring needs a Python {target.python}: {build.why_not_run}")
        work = place.with_name(f"{place.name}.partly")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            source = self._source(target.python, work)
            self._configure(source, target, build, work)
            made = work / "made"
            shutil.copytree(source / "Include", made)
            shutil.copyfile(work / "pyconfig.h", made / "pyconfig.h")
            made.rename(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _source(self, version: str, work: Path) -> Path:
        archive = self._debian.source(version, work)
        with tarfile.open(archive) as tar:
            tar.extractall(work / "source", filter="data")
        (top,) = (work / "source").iterdir()
        return top

    def _configure(self, source: Path, target: Target, build: Python, work: Path) -> None:
        python = wrapper(work / "python", build.command)
        machine = platform.machine()
        command = [
            str(source / "configure"),
            f"--host={target.machine}-linux-musl",
            f"--build={machine}-linux-gnu",
            f"--with-build-python={python}",
            *ANSWERS,
        ]
        environment = os.environ | {"CC": f"{compiler(work)} -target {target.triple}", "CFLAGS": ""}
        log = work / "configure.log"
        with log.open("w") as out:
            done = subprocess.run(
                command, cwd=work, env=environment, stdout=out, stderr=out,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
        if done.returncode:
            said = log.read_text(errors="replace").strip()[-SHOWN:]
            raise NoPythonError(f"configure of Python {target.python} fails: {said}")
