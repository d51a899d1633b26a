"""The second half of tools/bootstrap, run by the .venv's Python: `prepare.py [extra...]`. In the
place of an extra stands a file or folder of tests, for what they need (extras_of_tests.py).

Installs what pyproject.toml asks for, builds the extensions in the mode of the environment and puts
build/tree, which is release's, on the .venv's path. Packages that the build does not need are
fetched while it compiles. Where a wheel fits that is kept on this machine (kept_wheels.py), its
library is taken, and nothing that building needs is installed. Each step is skipped while its
inputs are what they were, so a run that was interrupted is gone on with by the next one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import kept_wheels
from build_mode import ROOT, build_mode
from extras_of_tests import ALL, all_extras, extras_of, is_folder, packages_of
from link_tree import link_tree
from packages import InstallError, begin_installing, install

STAMPS = ROOT / ".venv" / "stamps"
MODE = build_mode()
BUILT_OF = MODE.folder / "inputs"  # digest of what the library was made of, and which one it is
FULL_DISK_BYTES = 64 << 20  # with less nothing can be built
FOR_JAVA = {"spark", "spark-demo"}
WITHOUT_LIBRARY = ["wheels"]  # they are compiled by another compiler
CORE_TESTS = ROOT / "tests" / "core"


class PrepareError(Exception):
    """The text says what to do."""


def requirements(extras: list[str]) -> list[str]:
    """What to install beside what building needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *packages_of(extras)]


def build_requirements() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted: list[str] = project["build-system"]["requires"]
    return wanted


def provide_java() -> None:
    """Spark's tests and demo need Java: the machine's, else one of the Python package index."""
    stamp = STAMPS / "java"
    if stamp.exists() and Path(stamp.read_text(), "bin", "java").exists():
        return
    find = [sys.executable, "-P", str(ROOT / "spark" / "java_runtime.py")]
    found = subprocess.run(find, capture_output=True, text=True, check=False)
    if found.returncode:
        try:
            install(all_extras()["java"])
        except InstallError:
            print("bootstrap: no Java for this platform there", file=sys.stderr)
        found = subprocess.run(find, stdout=subprocess.PIPE, text=True, check=False)
    if found.returncode:
        print("bootstrap: going on without Java; what needs Spark is skipped", file=sys.stderr)
    else:
        stamp.write_text(found.stdout.strip())


def inputs_digest() -> str:
    """Changes whenever something may have to be built again; with less work than to look at each
    module."""
    digest = hashlib.sha256(f"{MODE} {sys.version} {version('Cython')}".encode())
    digest.update(repr([os.environ.get(name) for name in kept_wheels.FLAGS]).encode())
    compiler = shutil.which(
        (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    )
    digest.update(repr(compiler and (compiler, os.stat(compiler).st_mtime_ns)).encode())
    files = [ROOT / "setup.py", ROOT / "pyproject.toml", *ROOT.glob("tools/*.py")]
    for pattern in ("*.pyx", "*.pxd", "*.h"):
        files += ROOT.glob(f"src/**/{pattern}")
    files += kept_wheels.vendored(ROOT)
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT)} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_built() -> bool:
    """Whether the library in its place was compiled of these sources."""
    try:
        return _library_is_of(inputs_digest())
    except PackageNotFoundError:  # nothing was built without Cython
        return False


def build() -> None:
    digest = inputs_digest()
    if _library_is_of(digest):
        return
    BUILT_OF.unlink(missing_ok=True)
    _run("build the extensions", "setup.py", "-q", "build_ext", *MODE.build_arguments)
    BUILT_OF.write_text(f"{digest} {_library_now()}")


def take_library(asked: list[str]) -> bool:
    """Put the library of a kept wheel in its place; False: there is none, or one was built."""
    if not kept_wheels.may_be_used(asked):
        return False
    digest = f"wheel-{kept_wheels.made_of().library}"
    if _library_is_of(digest):
        return True
    if is_built():
        return False
    found = kept_wheels.search()
    for sentence in found.said:
        print(f"bootstrap: {sentence}", file=sys.stderr)
    if found.wheel is None:
        return False
    BUILT_OF.unlink(missing_ok=True)
    BUILT_OF.parent.mkdir(parents=True, exist_ok=True)
    partly = MODE.library.with_name(f"{MODE.library.name}.{os.getpid()}.partly")
    try:
        partly.write_bytes(kept_wheels.library_of(found.wheel))
        partly.replace(MODE.library)
    finally:
        partly.unlink(missing_ok=True)
    BUILT_OF.write_text(f"{digest} {_library_now()}")
    print(f"bootstrap: nothing is compiled: the library is that of {found.wheel}", file=sys.stderr)
    return True


def _library_is_of(digest: str) -> bool:
    return BUILT_OF.exists() and BUILT_OF.read_text() == f"{digest} {_library_now()}"


def _library_now() -> str:
    """Which one lies there: others than this program build it, too."""
    try:
        found = MODE.library.stat()
    except FileNotFoundError:
        return "none"
    return f"{found.st_size} {found.st_mtime_ns}"


def _run(what: str, *arguments: str) -> None:
    command = [sys.executable, *arguments]
    if subprocess.run(command, cwd=ROOT, check=False, stdout=sys.stderr).returncode:
        raise PrepareError(f"cannot {what}; the reasons are above")


def needs_core_tests(asked: str) -> bool:
    """Those are compiled."""
    return asked == ALL or (is_folder(asked) and CORE_TESTS.is_relative_to(Path(asked).resolve()))


def prepare(asked: list[str]) -> None:
    """What is asked for: extras, and files or folders of tests."""
    extras = [name for each in asked for name in (extras_of(each) if is_folder(each) else [each])]
    link_tree()
    taken, core_tests = take_library(asked), any(map(needs_core_tests, asked))
    if core_tests or not taken:
        install(build_requirements())
    installing = begin_installing(requirements(extras))
    try:
        # Not an editable install: its import hook costs time at each start and hides types.
        path_file = Path(sysconfig.get_paths()["purelib"]) / "pulsarx.pth"
        path_file.write_text(f"{link_tree()}\n")
        if not taken and asked != WITHOUT_LIBRARY:
            build()
        link_tree(MODE)  # the library itself
        if core_tests:
            _run("build the tests of the core", str(CORE_TESTS / "compile_modules.py"))
    except BaseException:
        if installing:
            installing.stop()
        raise
    if installing:
        installing.wait()
    if FOR_JAVA & set(extras):
        provide_java()


def main(asked: list[str]) -> int:
    os.chdir(ROOT)
    STAMPS.mkdir(exist_ok=True)
    try:
        with open(STAMPS / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                print("bootstrap: waiting for another one", file=sys.stderr)
                fcntl.flock(lock, fcntl.LOCK_EX)
            prepare(asked)
    except KeyboardInterrupt:
        print("\nbootstrap: interrupted; the next run goes on from here", file=sys.stderr)
        return 130
    except (PrepareError, InstallError, OSError) as error:
        said, free = str(error), shutil.disk_usage(ROOT).free
        if free < FULL_DISK_BYTES:
            said = f"the disk of {ROOT} is full ({free >> 20} MiB left): make room"
        print(f"bootstrap: {said}. The next run goes on from here.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
