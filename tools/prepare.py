"""The second half of tools/bootstrap, run by the .venv's Python: `prepare.py [extra...]`.

Installs what pyproject.toml asks for, builds the extensions in the mode of the environment and puts
build/tree, which is release's, on the .venv's path. Each step is skipped while its inputs are what
they were.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

from build_mode import ROOT, build_mode
from link_tree import link_tree

STAMPS = ROOT / ".venv" / "stamps"
MODE = build_mode()


def requirements(extras: list[str]) -> list[str]:
    """What to install for building, for running, and for the extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    found = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in extras:
        found += project["project"]["optional-dependencies"][extra]
    return found


def install(extras: list[str]) -> None:
    for extra in ["", *extras]:
        wanted = requirements([extra] if extra else [])
        stamp = STAMPS / f"installed-{extra or 'base'}"
        text = "\n".join(wanted)
        if stamp.exists() and stamp.read_text() == text:
            continue
        print(f"bootstrap: installing {' '.join(wanted)}", file=sys.stderr, flush=True)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, *wanted], check=True)
        stamp.write_text(text)


def provide_java() -> None:
    """Spark's tests and demo need Java: the machine's, else one of the Python package index."""
    stamp = STAMPS / "java"
    if stamp.exists() and Path(stamp.read_text(), "bin", "java").exists():
        return
    find = [sys.executable, "-P", str(ROOT / "spark" / "java_runtime.py")]
    found = subprocess.run(find, capture_output=True, text=True)
    if found.returncode:
        try:
            install(["java"])
        except subprocess.CalledProcessError:
            print("bootstrap: no Java for this platform there", file=sys.stderr)
        found = subprocess.run(find, stdout=subprocess.PIPE, text=True)
    if found.returncode:
        print("bootstrap: going on without Java; what needs Spark is skipped", file=sys.stderr)
    else:
        stamp.write_text(found.stdout.strip())


def inputs_digest() -> str:
    """Changes whenever the extensions must be built again."""
    digest = hashlib.sha256(f"{MODE} {sys.version}".encode())
    files = [ROOT / "setup.py", ROOT / "pyproject.toml", *ROOT.glob("tools/*.py")]
    for pattern in ("*.pyx", "*.pxd", "*.h"):
        files += ROOT.glob(f"src/**/{pattern}")
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT)} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def build() -> None:
    stamp = MODE.folder / "inputs"
    digest = inputs_digest()
    if stamp.exists() and stamp.read_text() == digest and MODE.library.exists():
        return
    stamp.unlink(missing_ok=True)
    print(f"bootstrap: building the extensions, {MODE.name}", file=sys.stderr, flush=True)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", *MODE.build_arguments],
        cwd=ROOT,
        check=True,
        stdout=sys.stderr,
    )
    stamp.write_text(digest)


def main(extras: list[str]) -> None:
    os.chdir(ROOT)
    STAMPS.mkdir(exist_ok=True)
    with open(STAMPS / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tree = link_tree()
        install(extras)
        if {"test", "spark"} & set(extras):
            provide_java()
        # Not an editable install: its import hook costs time at each start and hides types.
        path_file = Path(sysconfig.get_paths()["purelib"]) / "pulsarx.pth"
        path_file.write_text(f"{tree}\n")
        build()
        link_tree(MODE)  # the library itself


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"bootstrap: failed: {' '.join(map(str, error.cmd))}")
