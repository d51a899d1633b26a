"""Wheels kept on this machine, and the one that was made of the sources of this clone for a Python.

`make wheel` and `make wheels` keep what they make. tools/bootstrap, tools/prepare.py and
`pip install --find-links "$(python3 tools/kept_wheels.py)" pulsarx` take what fits, so that nothing
is compiled. Runs where there is no .venv yet: by the standard library alone.

    PLACE/<library>/<content>/pulsarx-....whl    where `keep` puts them
    PLACE/pulsarx-....whl                        what others put there is looked at, too

PLACE is PULSARX_WHEELS, else pulsarx/wheels in the user's cache; with an empty PULSARX_WHEELS there
is none.
Each wheel says in MADE_OF what it was made of, as two digests: `library` of all that is compiled,
`content` of everything. It is used where these, its tags, the checksums of all its files and the
loader of this machine agree, and where nobody but this user or root may have written it, nor put
it there. A file there is whole or not there at all, whoever writes at a time.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VARIABLE = "PULSARX_WHEELS"
MADE_OF = "made-of.json"  # in .dist-info
CONTENTS_KEPT = 8  # as many commits; those used last stay
COMPILED = {".pyx", ".pxd", ".h"}
VENDORED = {".c", ".h"}
NO_CONTENT = {".so", ".pyc", ".c", ".of", ".html", ".partly"}
BUILDING = ("setup.py", "tools/build_mode.py", "tools/native_build.py")
# Who runs the library, and measures or changes nothing; what else is asked for is compiled here.
FOR_USERS = {"quickstart", "spark", "spark-demo"}
FOR_TESTS = {"test"}
# With flags of their own users mean another library; without release's there is no wheel.
FLAGS = ("CC", "CFLAGS", "CPPFLAGS", "LDSHARED", "LDFLAGS")
MODES = ("PULSARX_DEBUG", "PULSARX_COVERAGE", "PULSARX_SANITIZE")

_DIGEST = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class MadeOf:
    """What a wheel, or the next one of a clone, is made of."""

    library: str
    content: str


@dataclass(frozen=True)
class Search:
    """What was found for a clone. wheel: one that fits. said: a sentence for each that does not."""

    wheel: Path | None
    said: tuple[str, ...]


def place() -> Path | None:
    """Where wheels are kept; None: nowhere."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named).resolve() if named.strip() else None
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if cache.startswith("/"):  # of the standard: a relative one is to be ignored
        return Path(cache) / "pulsarx" / "wheels"
    home = os.path.expanduser("~")  # unchanged where a user has none
    return Path(home) / ".cache" / "pulsarx" / "wheels" if home != "~" else None


def made_of(root: Path = ROOT) -> MadeOf:
    """The digests of a clone as it is now."""
    project = tomllib.loads((root / "pyproject.toml").read_text())
    version, requires = project["project"]["version"], project["build-system"]["requires"]
    sources = [path for path in (root / "src").rglob("*") if path.suffix in COMPILED]
    sources += vendored(root)
    library = _digest(root, [*sources, *(root / each for each in BUILDING)], version, requires)
    alone = [each for each in ("pyproject.toml", "README.md", "LICENSE") if (root / each).exists()]
    packaged = [
        path
        for folder in ("python", "spark", "src")
        for path in (root / folder).rglob("*")
        if path.suffix not in NO_CONTENT and path.is_file() and not _is_made(path)
    ]
    return MadeOf(library, _digest(root, [*packaged, *(root / each for each in alone)], library))


def vendored(root: Path) -> list[Path]:
    """What of others is compiled in."""
    return [path for path in (root / "vendored").rglob("*") if path.suffix in VENDORED]


def _is_made(path: Path) -> bool:
    return any(part == "__pycache__" or part.endswith(".egg-info") for part in path.parts)


def _digest(root: Path, paths: Iterable[Path], *more: object) -> str:
    digest = hashlib.sha256(repr(more).encode())
    for path in sorted(paths):
        data = path.read_bytes()
        digest.update(b"\0%s %d " % (path.relative_to(root).as_posix().encode(), len(data)))
        digest.update(data)
    return digest.hexdigest()[:32]


# Keeping ------------------------------------------------------------------------------------------


def keep(wheel: Path) -> Path | None:
    """Put a wheel where other clones find it; None: nothing is kept here. Raises OSError."""
    folder = place()
    if folder is None:
        return None
    with zipfile.ZipFile(wheel) as archive:
        of = _made_of(archive)
    target = folder / of.library / of.content / wheel.name
    for path in (*reversed(target.parent.parents), target.parent):
        if not path.exists():  # whatever the umask: what others may write is not used
            path.mkdir(0o755, exist_ok=True)
    # A name that no other process has, of another container neither.
    file, name = tempfile.mkstemp(".partly", f"{target.name}.", target.parent)
    partly = Path(name)
    try:
        with open(file, "wb") as out:
            out.write(wheel.read_bytes())
        partly.chmod(0o644)
        partly.replace(target)
    finally:
        partly.unlink(missing_ok=True)
    _used(target)
    _forget_old(folder)
    return target


def _used(wheel: Path) -> None:
    with suppress(OSError):  # a mounted place may be read-only
        os.utime(wheel.parent)


def _forget_old(folder: Path) -> None:
    """Another process may do the same, or read: what it has open stays readable. The place may be
    somebody's folder with other things in it, which are not touched."""
    by_use: list[tuple[int, Path]] = []
    for path in folder.glob("*/*"):
        digests = path.is_dir() and _DIGEST.fullmatch(path.name)
        if digests and _DIGEST.fullmatch(path.parent.name):
            with suppress(OSError):
                by_use.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(by_use, reverse=True)[CONTENTS_KEPT:]:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.parent.rmdir()


# Finding ------------------------------------------------------------------------------------------


def search(root: Path = ROOT, *, whole: bool = False) -> Search:
    """A wheel that fits a clone and this Python. whole: all of it, not only what is compiled."""
    folder = place()
    if folder is None or not folder.is_dir():
        return Search(None, ())
    if fault := _of_others(folder):
        return Search(None, (f"{folder} {fault}: no wheel in it is used",))
    wanted = made_of(root)
    ordered = sorted((folder / wanted.library).glob("*/*.whl")) + sorted(folder.glob("*.whl"))
    said: list[str] = []
    for_others: list[Path] = []
    for wheel in ordered:
        if not _is_for_this_python(wheel.name):
            for_others.append(wheel)
            continue
        fault = _of_others_up_to(folder, wheel) or fault_of(wheel, wanted, whole=whole)
        if not fault:
            _used(wheel)
            return Search(wheel, tuple(said))
        said.append(f"{wheel} {fault}: it is not used")
    if for_others:
        tags = {"-".join(path.stem.split("-")[-3:]) for path in for_others}
        others = ", ".join(sorted(tags))
        said.append(f"wheels in {folder} are for other Pythons or platforms ({others}): not used")
    return Search(None, tuple(said))


def _of_others_up_to(folder: Path, wheel: Path) -> str:
    """As _of_others, of a wheel and of each folder between the place and it."""
    between = [path for path in wheel.parents if path != folder and path.is_relative_to(folder)]
    for path in between:
        if fault := _of_others(path):
            return f"lies in {path}, which {fault}"
    return _of_others(wheel)


def _of_others(path: Path) -> str:
    """Why others than this user and root may have changed it; "": they cannot."""
    try:
        found = path.stat()
    except OSError as error:
        return f"cannot be looked at ({error})"
    if found.st_uid not in (0, os.geteuid()):
        return f"belongs to user {found.st_uid}, neither to you nor to root"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        return f"may be written by others (mode {mode:o}; chmod go-w allows it)"
    return ""


def fault_of(wheel: Path, wanted: MadeOf, *, whole: bool = False) -> str:
    """Why a wheel of this Python cannot be used; "": it can."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            if fault := _damage(archive):
                return f"is damaged ({fault})"
            of, library = _made_of(archive), archive.read(library_name())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        return f"is damaged ({error})"
    if of.library != wanted.library:
        return "was made of other native sources"
    if whole and of.content != wanted.content:
        return "was made of other sources"
    return _cannot_be_loaded(library)


def library_name() -> str:
    """That of this Python, in a wheel."""
    return f"pulsarx/_linked{sysconfig.get_config_var('EXT_SUFFIX')}"


def library_of(wheel: Path) -> bytes:
    """What is compiled, of a wheel that `search` found."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(library_name())


def _made_of(archive: zipfile.ZipFile) -> MadeOf:
    names = [name for name in archive.namelist() if name.endswith(f".dist-info/{MADE_OF}")]
    if len(names) != 1:
        raise ValueError(f"it has no {MADE_OF}")
    found = json.loads(archive.read(names[0]))
    return MadeOf(str(found["library"]), str(found["content"]))


def _damage(archive: zipfile.ZipFile) -> str:
    """The first file that is not what RECORD says; each must be there."""
    records = [name for name in archive.namelist() if name.endswith(".dist-info/RECORD")]
    if len(records) != 1:
        return "it has no RECORD"
    listed = {row[0]: row[1] for row in csv.reader(io.StringIO(archive.read(records[0]).decode()))}
    if listed.keys() != {name for name in archive.namelist() if not name.endswith("/")}:
        return "RECORD lists other files"
    for name, said in listed.items():
        digest = hashlib.sha256(archive.read(name)).digest()
        own = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        if name != records[0] and said != f"sha256={own}":
            return f"{name} is not what RECORD says"
    return ""


def _is_for_this_python(name: str) -> bool:
    parts = name.removesuffix(".whl").split("-")
    if len(parts) < 5 or sys.implementation.name != "cpython":
        return False
    own = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    # t: free-threaded, d: debug; theirs are other ABIs.
    return parts[-3:-1] == [own, own + sys.abiflags] and any(map(_runs, parts[-1].split(".")))


def _runs(tag: str) -> bool:
    """Whether this machine runs what has a platform tag."""
    old = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}
    found = re.fullmatch(r"(?:(manylinux|musllinux)_(\d+)_(\d+)|(manylinux\d+)|linux)_(\w+)", tag)
    if not found or found[5] != platform.machine() or sys.maxsize < 2**32:
        return False
    if found[1] == "musllinux":
        return glibc() is None  # the loader says of which version
    least = old.get(found[4]) if found[4] else (int(found[2]), int(found[3])) if found[1] else ()
    own = glibc()
    return least is not None and (not least or (own is not None and own >= least))


def glibc() -> tuple[int, int] | None:
    """The version of this machine's; None: it has another C library."""
    try:
        name, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()
    except (ValueError, OSError):
        return None
    first, second = version.split(".")[:2]
    return (int(first), int(second)) if name == "glibc" else None


def _cannot_be_loaded(library: bytes) -> str:
    """What the loader says; "": nothing, it loads it."""
    with tempfile.TemporaryDirectory(prefix="pulsarx-wheel-") as folder:
        path = Path(folder) / Path(library_name()).name
        path.write_bytes(library)
        load = [sys.executable, "-c", "import ctypes, sys; ctypes.PyDLL(sys.argv[1])", str(path)]
        done = subprocess.run(load, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        return f"cannot be loaded ({reason})"
    return ""


# For whom -----------------------------------------------------------------------------------------


def is_plain() -> bool:
    """Whether nothing in the environment asks for another library than everybody's."""
    return not any(os.environ.get(name, "0") not in ("", "0") for name in (*FLAGS, *MODES))


def may_be_used(asked: Sequence[str]) -> bool:
    """Whether what was asked of tools/bootstrap is served by a wheel's library. Benchmarks measure
    what is compiled here, `make build` means it; tests take a wheel where VARIABLE names a place.
    """
    if not asked or not is_plain():
        return False
    allowed = FOR_USERS
    if os.environ.get(VARIABLE, "").strip():
        allowed = FOR_USERS | FOR_TESTS
    return all(each in allowed for each in asked)


def main(arguments: list[str]) -> int:
    """Print the folder for --find-links. `--for what...`: say by the status whether what is asked
    of tools/bootstrap needs no compiler."""
    if arguments[:1] == ["--for"]:
        asked = arguments[1:]
        serves = may_be_used(asked) and not FOR_TESTS & set(asked)  # some tests are compiled
        return 0 if serves and search().wheel else 1
    found = search(whole=True)
    for sentence in found.said:
        print(f"kept_wheels: {sentence}", file=sys.stderr)
    if found.wheel is None:
        where = place()
        there = f"in {where}" if where else f"as {VARIABLE} is empty"
        print(
            f"kept_wheels: there is no wheel of these sources for {sys.executable} {there}: "
            "make wheels makes one, pip install . compiles",
            file=sys.stderr,
        )
        return 1
    print(found.wheel.parent)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
