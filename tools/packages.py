"""Installs Python packages into .venv, for tools/prepare.py; as a program into another folder:
`packages.py FOLDER requirement...`.

By uv where it is there, on PATH or in .venv: it takes a third of pip's time. Else, and where uv
fails, by pip, which knows the indexes of pip.conf.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path

from build_mode import ROOT
from progress import say_seconds

STAMP = ROOT / ".venv" / "stamps" / "installed"  # what was asked for and is there, a line each
SHOWN_LINES = 6  # of what failed
LOG = ROOT / ".venv" / "install.log"


def has_pip() -> bool:
    """Whether this Python has pip. Neither imported nor searched for as modules are: before Python
    3.12 either makes setuptools give distutils back, of which it has classes already."""
    return PathFinder.find_spec("pip") is not None


class InstallError(Exception):
    """Packages cannot be had; the text says what to do."""


class Installing:
    """Packages that are being installed, by a process of its own."""

    def __init__(self, wanted: list[str], target: str = "") -> None:
        """target: a folder; "": .venv."""
        self._wanted = wanted
        self._target = target
        self._commands = _commands(wanted, ["--target", target] if target else [])
        self._next()

    def _next(self) -> None:
        with LOG.open("a") as log:
            command = self._commands.pop(0)
            if command[1:3] == ["-m", "pip"] and not has_pip():
                # The environment was made for uv.
                ensure = [sys.executable, "-m", "ensurepip"]
                subprocess.run(ensure, stdout=log, stderr=log, check=False)
            print(f"\n$ {' '.join(command)}", file=log, flush=True)
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=ROOT)

    def wait(self) -> None:
        """Return when all are installed; InstallError otherwise."""
        names = ", ".join(_name(each) for each in self._wanted)
        what = f"installing {len(self._wanted)} packages"
        say_seconds(f"{what} ({names})" if len(names) < 60 else what, self._is_over)
        if self._process.returncode == 0:
            if not self._target:
                _note(self._wanted)
            return
        if self._commands:
            self._next()
            self.wait()
            return
        said = LOG.read_text(errors="replace").rstrip().splitlines()[-SHOWN_LINES:]
        print("\n".join(said), file=sys.stderr)
        raise InstallError(
            f"packages cannot be installed (above is the end of {LOG}). Is there a network? A "
            "mirror is named by PIP_INDEX_URL, a proxy by https_proxy"
        )

    def _is_over(self) -> bool:
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def begin_installing(wanted: Iterable[str]) -> Installing | None:
    """Have what is missing installed in the background; None: nothing is."""
    there = set(STAMP.read_text().splitlines()) if STAMP.exists() else set()
    missing = [each for each in dict.fromkeys(wanted) if each not in there]
    return Installing(missing) if missing else None


def install(wanted: Iterable[str]) -> None:
    if installing := begin_installing(wanted):
        installing.wait()


def _commands(wanted: list[str], options: list[str]) -> list[list[str]]:
    """Ways to install, the next where the one before fails."""
    pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile"]
    pip += options
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv:
        by_uv = [uv, "pip", "install", "--python", sys.executable, *options, *wanted]
        return [by_uv, [*pip, *wanted]]
    return [[*pip, "--only-binary=uv", "uv", *wanted], [*pip, *wanted]]


def _note(wanted: list[str]) -> None:
    with STAMP.open("a") as stamp:
        stamp.writelines(f"{each}\n" for each in wanted)


def _name(requirement: str) -> str:
    return requirement.split(";")[0].rstrip("<>=.*0123456789, ")


if __name__ == "__main__":
    try:
        Installing(sys.argv[2:], sys.argv[1]).wait()
    except InstallError as error:
        sys.exit(str(error))
