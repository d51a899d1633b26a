"""Makes wheels, tries them and keeps them: `make wheels`, `make wheel`.

    make_wheels.py [NAME...] [--tests PATH...]   all, or those whose name holds one of NAME
    make_wheels.py --here                        one of the library that is built in place

For each of wheel_targets: its Python (pythons), its modules (native_build, with the compiler of
zig_compiler; the generated C is the same for all), its wheel (wheel_files), a try (test_wheel) in
the Python it is for. A wheel that passes lies in dist/ and is kept for other clones (kept_wheels);
one that fails is removed, and nothing is left half made. What was made and tried, and what was not
and why, is printed as a table and lies in dist/wheels.json. The status is 1 when something failed.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "wheels")]

import kept_wheels  # noqa: E402
from build_mode import RELEASE, build_mode  # noqa: E402
from kept_wheels import MadeOf, made_of  # noqa: E402
from link_tree import TREE, link_tree  # noqa: E402
from native_build import BuildError, Recipe, linked, made, units_in  # noqa: E402
from packages import has_pip  # noqa: E402
from prepare import is_built  # noqa: E402
from pythons import NoPythonError, Python, Pythons  # noqa: E402
from wheel_files import Kind, WheelError, packed, unpacked  # noqa: E402
from wheel_targets import Target, chosen  # noqa: E402
from zig_compiler import NoCompilerError, commands, compiler  # noqa: E402

WORK, DIST = ROOT / "build" / "wheels", ROOT / "dist"
RESULTS = DIST / "wheels.json"
FOLDERS = {"pulsarx._core": ROOT / "src" / "core", "pulsarx._pycore": ROOT / "src" / "pycore"}
COLUMNS = ("wheel", "python", "size", "import", "result")


class TryError(Exception):
    """A wheel does not work; the text says what failed."""


@dataclass
class Row:
    """What became of one wheel."""

    name: str
    result: str
    python: str = ""
    file: str = ""
    size: int = 0  # bytes
    import_ms: float | None = None
    content: str = ""
    passed: list[str] = field(default_factory=list)

    @property
    def cells(self) -> tuple[str, ...]:
        size = f"{self.size / 1e6:.1f} MB" if self.size else ""
        time = f"{self.import_ms:.1f} ms" if self.import_ms else ""
        return (self.name, self.python, size, time, self.result)


# One wheel ----------------------------------------------------------------------------------------


def library(target: Target, python: Python) -> Path:
    """What is compiled, for a target. Raises BuildError."""
    mode = build_mode()
    folder = WORK / "objects" / target.identifier
    recipe = Recipe(
        mode, commands(target, WORK), folder, mode.c_folder, (TREE,), python_headers=python.headers
    )
    units = [unit for package, at in FOLDERS.items() for unit in units_in(at, package)]
    return linked(made(units, recipe), folder / target.library, recipe)


def make(target: Target, pythons: Pythons, files: Path, of: MadeOf, tests: list[str]) -> Row:
    """Make, try and keep one. Raises what stands in ERRORS, and leaves no wheel then."""
    python = pythons.python(target)
    print(f"{target.identifier}: {python.origin}", file=sys.stderr, flush=True)
    kind = Kind(target.tag, target.platform, target.machine, target.library)
    wheel = packed(files, library(target, python), kind, of, DIST)
    return tried(wheel, Row(target.identifier, "", python.origin), python, of, tests, target)


def tried(
    wheel: Path, row: Row, python: Python, of: MadeOf, tests: list[str], target: Target | None
) -> Row:
    """Try a wheel that lies in dist/, and keep it if it works. Raises TryError."""
    row.file, row.size, row.content = wheel.name, wheel.stat().st_size, of.content
    try:
        if made_of() != of:
            raise TryError("the sources were changed meanwhile: build again")
        _try(wheel, row, python, tests, target)
    except BaseException:
        wheel.unlink()
        raise
    if target is None and not kept_wheels.is_plain():
        return row  # of flags of one's own; those of others are not touched by them
    try:
        kept_wheels.keep(wheel)
    except OSError as error:
        where = f"{error}; {kept_wheels.VARIABLE} names another place"
        print(f"make wheels: {wheel.name} cannot be kept: {where}", file=sys.stderr)
    return row


def _try(wheel: Path, row: Row, python: Python, tests: list[str], target: Target | None) -> None:
    if not python.command:
        row.result = f"built, passed by auditwheel, not run: {python.why_not_run}"
        return
    report = WORK / f"report-{row.name}.json"
    report.unlink(missing_ok=True)
    try:
        if python.emulated and target:
            said = _emulated(wheel, python, target, report)
        else:
            more = ["--tests", *tests] if tests else []
            said = _in_own(python, ["--report", str(report), str(wheel), *more], {})
        if not report.exists():
            raise TryError(said)
        found = json.loads(report.read_text())
    finally:
        report.unlink(missing_ok=True)
    row.python = f"{found['python']}, {python.origin.removeprefix(found['python']).strip()}"
    row.import_ms, row.passed = found["import_ms"], found["passed"]
    row.result = ("smoke test under qemu: " if python.emulated else "passed: ") + ", ".join(
        each.replace("_", " ") for each in row.passed
    )
    if found["missing"]:
        row.result += f"; without {', '.join(found['missing'])}, which have no wheels for it"
    if "tests" in found:
        row.result += f"; {found['tests']}"


def _in_own(python: Python, arguments: list[str], environment: dict[str, str]) -> str:
    """Run test_wheel.py by the Python of the wheel; what it says."""
    program = [*python.command, str(ROOT / "wheels" / "test_wheel.py"), *arguments]
    unwanted = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}
    own = {name: text for name, text in os.environ.items() if name not in unwanted}
    done = subprocess.run(
        program, env=own | environment, capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    said = f"{done.stdout}{done.stderr}".strip()
    if done.returncode:
        raise TryError(f"test_wheel.py fails:\n{said[-3000:]}")
    return said[-3000:]


def _emulated(wheel: Path, python: Python, target: Target, report: Path) -> str:
    """An emulated Python starts no pip: this one installs for it, into a folder."""
    place = WORK / f"installed-{target.identifier}"
    shutil.rmtree(place, ignore_errors=True)
    if not has_pip():
        subprocess.run([sys.executable, "-m", "ensurepip"], check=False, capture_output=True)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    pip += ["--target", str(place), "--only-binary=:all:", f"--python-version={target.python}"]
    pip += ["--implementation=cp", f"--abi={target.tag}", f"--platform={target.platform}"]
    pip += [f"--platform=manylinux2014_{target.machine}", f"--platform=linux_{target.machine}"]
    pip.append(f"--platform=manylinux_2_27_{target.machine}")
    try:
        missing = ""
        if subprocess.run([*pip, str(wheel)], check=False, capture_output=True).returncode:
            done = subprocess.run([*pip, "--no-deps", str(wheel)], check=False, capture_output=True)
            done = done if done.returncode else subprocess.run(
                [*pip, "click", "rich"], check=False, capture_output=True
            )  # fmt: skip
            if done.returncode:
                raise TryError(f"it cannot be installed: {done.stderr.decode()[-1000:]}")
            missing = "numpy,mmh3,lz4,zstandard,python-snappy"
        given = ["--smoke", "--report", str(report), f"--missing={missing}"]
        return _in_own(python, given, {"PYTHONPATH": str(place), "PULSARX_EMULATED": "1"})
    finally:
        shutil.rmtree(place, ignore_errors=True)


# All of them --------------------------------------------------------------------------------------

ERRORS = (NoCompilerError, BuildError, WheelError, TryError, OSError)


def make_all(names: list[str], tests: list[str]) -> int:
    wanted = chosen(names)
    compiler(WORK)  # say it before anything takes minutes
    of, rows = made_of(), _results(made_of())
    link_tree()
    files = unpacked(WORK / "files")
    pythons, failed, there = Pythons(WORK, ROOT), False, 0
    for target in wanted:
        row = Row(target.identifier, "")
        try:
            row = make(target, pythons, files, of, tests)
            there += 1
        except NoPythonError as error:
            row.result = f"not built: {error}"
        except ERRORS as error:
            failed = True
            print(f"make wheels: {target.identifier}: {error}", file=sys.stderr)
            row.result = f"failed: {str(error).splitlines()[0]}"
        rows[row.name] = row
        _write(rows)
        print(f"{row.name}: {row.result}", file=sys.stderr, flush=True)
    _show([rows[each.identifier] for each in wanted])
    return 1 if failed or not there else 0


def make_here() -> int:
    """The library that `make build` left in place, for this Python and this machine's C library."""
    mode, of = build_mode(), made_of()
    if not is_built():
        where = mode.library.relative_to(ROOT)
        raise TryError(f"{where} is not there, or not of these sources: make build compiles it")
    files = unpacked(WORK / "files")
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    kind = Kind(tag, "auto", platform.machine(), mode.library.name)
    wheel = packed(files, mode.library, kind, of, DIST)
    python = Python(f"{platform.python_version()} of .venv", (), (sys.executable,))
    name = wheel.stem.split("-", 2)[2]
    rows = _results(of)
    rows[name] = tried(wheel, Row(name, ""), python, of, [], None)
    _write(rows)
    _show([rows[name]])
    print(wheel.relative_to(ROOT))
    return 0


def _results(of: MadeOf) -> dict[str, Row]:
    """What earlier runs said of the same sources; the wheels of others are removed, and what runs
    left that were killed."""
    DIST.mkdir(exist_ok=True)
    for left in DIST.glob("partly-*"):
        shutil.rmtree(left, ignore_errors=True)
    for wheel in DIST.glob("pulsarx-*.whl"):
        if not _is_of(wheel, of):
            wheel.unlink()
    try:
        rows = [Row(**each) for each in json.loads(RESULTS.read_text())]
    except (OSError, ValueError, TypeError):
        return {}
    return {row.name: row for row in rows if row.content == of.content and row.file}


def _is_of(wheel: Path, of: MadeOf) -> bool:
    try:
        with zipfile.ZipFile(wheel) as archive:
            (name,) = [each for each in archive.namelist() if each.endswith(kept_wheels.MADE_OF)]
            return bool(json.loads(archive.read(name)) == asdict(of))
    except (OSError, ValueError, zipfile.BadZipFile):
        return False


def _write(rows: dict[str, Row]) -> None:
    partly = RESULTS.with_name(f"{RESULTS.name}.partly")
    found = [asdict(rows[name]) for name in sorted(rows)]
    partly.write_text(json.dumps(found, indent=1) + "\n")
    partly.replace(RESULTS)


def _show(rows: list[Row]) -> None:
    """A table; what is said of the last column may be long."""
    cells = [COLUMNS, *(row.cells for row in rows)]
    widths = [max(len(each[at]) for each in cells) for at in range(len(COLUMNS) - 1)]
    for each in cells:
        first = "  ".join(cell.ljust(width) for cell, width in zip(each, widths))
        print(f"{first}  {each[-1]}".rstrip())


@contextmanager
def _alone() -> Iterator[None]:
    WORK.mkdir(parents=True, exist_ok=True)
    with open(WORK / "lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("make wheels: waiting for another one", file=sys.stderr, flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="make_wheels.py", description="Makes and tries wheels.")
    parser.add_argument("names", nargs="*", help="cp312, aarch64, cp313-musllinux_x86_64, ...")
    parser.add_argument("--tests", nargs="+", default=[], help="tests of the repository, in each")
    parser.add_argument("--here", action="store_true", help="one of the library built in place")
    given = parser.parse_args(arguments)
    if build_mode().name != RELEASE:
        sys.exit("make wheels: wheels are of release mode: unset PULSARX_DEBUG and its like")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit("make wheels: free-threaded Pythons are not supported: use another .venv")
    try:
        with _alone():
            return make_here() if given.here else make_all(given.names, given.tests)
    except ValueError as error:
        print(f"make wheels: {error}", file=sys.stderr)
    except ERRORS as error:
        print(f"make wheels: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # cleans up
    sys.exit(main(sys.argv[1:]))
