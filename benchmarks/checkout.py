"""A checkout of this project that can be measured: a folder as it is, or a revision of this clone.

A revision is unpacked into build/compare/<commit> and built there by this interpreter, with the
packages of this clone, so that two sides differ in nothing but the project.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = 3  # unpacked revisions; what was unpacked before them is deleted


class CheckoutError(Exception):
    """A side that cannot be had; the text says why."""


@dataclass(frozen=True)
class Checkout:
    """A built project. described: what the table calls it."""

    folder: Path
    described: str

    @property
    def benchmarks(self) -> Path:
        return self.folder / "benchmarks"

    @property
    def tree(self) -> str:
        return str(self.folder / "build" / "tree")

    @property
    def environment(self) -> dict[str, str]:
        """For a process that shall find this project, and no other."""
        found = {name: value for name, value in os.environ.items() if "PULSARX" not in name}
        return found | {"PYTHONPATH": self.tree}


def checkout(text: str) -> Checkout:
    """A path, or what git calls a commit. It is built when this returns."""
    folder = Path(text)
    if (folder / "benchmarks" / "reach.py").exists():
        found = Checkout(folder.resolve(), f"{text} ({revision(folder)})")
    else:
        commit = _git(ROOT, "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}")
        if not commit:
            raise CheckoutError(f"{text} is neither a folder of this project nor a revision")
        found = Checkout(_unpacked(commit), f"{text} ({commit[:9]})")
    if found.folder != ROOT:  # this one has been built by whoever runs this
        _build(found.folder)
    return found


def revision(folder: Path) -> str:
    return _git(folder, "describe", "--always", "--dirty", "--abbrev=9") or "unknown"


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", f"safe.directory={folder.resolve()}", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _unpacked(commit: str) -> Path:
    revisions = ROOT / "build" / "compare"
    folder = revisions / commit[:12]
    if folder.exists():
        os.utime(folder)
        return folder
    revisions.mkdir(parents=True, exist_ok=True)
    partly = folder.with_suffix(".partly")
    shutil.rmtree(partly, ignore_errors=True)
    partly.mkdir()
    archive = partly.with_suffix(".tar")
    _git(ROOT, "archive", f"--output={archive}", commit)
    done = subprocess.run(["tar", "-xf", archive, "-C", partly], check=False)
    archive.unlink(missing_ok=True)
    if done.returncode:
        raise CheckoutError(f"{commit} cannot be unpacked into {partly}")
    partly.rename(folder)
    os.utime(folder)
    for old in sorted(revisions.iterdir(), key=lambda each: -each.stat().st_mtime)[KEPT:]:
        shutil.rmtree(old)
    return folder


def _build(folder: Path) -> None:
    _share_what_is_made(folder)
    if (folder / ".venv").exists():
        command = ["tools/bootstrap", "bench"]  # its own way, so that it stays as its owner has it
    else:
        command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    print(f"building {folder}", file=sys.stderr, flush=True)
    environment = {name: value for name, value in os.environ.items() if "PULSARX" not in name}
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        raise CheckoutError(f"{folder} does not build:\n{done.stdout.decode(errors='replace')}")


def _share_what_is_made(folder: Path) -> None:
    """Most modules of two revisions are the same, and what was made of them is known by their
    content."""
    made = ROOT / "build"
    if (folder / "build").exists() or not (made / "objects").exists():
        return
    partly = folder / "build.partly"
    shutil.rmtree(partly, ignore_errors=True)
    with open(made / "c" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as native_build has it
        for name in ("c", "objects"):
            shutil.copytree(made / name, partly / name)
    partly.rename(folder / "build")
