"""Tells which branches of src/core tests take: `branches.py [test...]`, `make coverage`.

Builds the library and tests/core for gcov (PULSARX_BRANCHES, build_mode.py), runs the tests and
prints a table, then each line of which a way was never taken. Ends with 1 under 95 %, or when a
test fails.

A branch is where the code goes on in one of several ways: an if, a loop, each operand of `and` and
`or`, a case; each way is counted, as gcov does. Ways are counted of all functions in src/core, those
written in contracts and in crc32c.h included. Not counted, and said below the table:

invariant   the other way ends the process by design
written C   functions inside `cdef extern`, of a few lines
scaffold    what Cython writes around: loading of modules, conversions, exported functions

Each process adds its counts when it ends; one that is killed loses its own, so a way that only a
killed process took counts as not taken.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["PULSARX_BRANCHES"] = "1"

from build_mode import ROOT, build_mode  # noqa: E402  # reads what was just set

CORE = ROOT / "src" / "core"
PERCENT_LEAST = 95
TESTS = ("tests/core", "tests/pycore", "tests/broker/catalogue")


class GcovError(Exception):
    """gcov says what this cannot use."""


@dataclass
class Left:
    """Ways that are not counted."""

    invariant: int = 0
    scaffold: int = 0
    elsewhere: int = 0


class CoreSource:
    """The text of one file of src/core, and which of its lines are not counted."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.lines = path.read_text().splitlines()
        self.of_module = set(self._of_module()) if path.suffix != ".h" else set()
        self.of_invariants = set(self._of_invariants())

    def _of_module(self) -> Iterator[int]:
        """What runs when the module is loaded stands at the margin, functions are indented; gcov
        has more lines than the file for what Cython writes behind it."""
        yield from (at for at, line in enumerate(self.lines, 1) if not line.startswith(" "))

    def _of_invariants(self) -> Iterator[int]:
        depth = 0
        for number, line in enumerate(self.lines, 1):
            if depth or re.match(r"\s*invariant\(", line):
                yield number
                depth += line.count("(") - line.count(")")


@dataclass
class FileBranches:
    """The ways of one file of src/core."""

    source: CoreSource
    lines: dict[int, list[int]] = field(default_factory=dict)  # how often each way was taken

    @property
    def ways(self) -> int:
        return sum(map(len, self.lines.values()))

    @property
    def taken(self) -> int:
        return sum(1 for each in self.lines.values() for count in each if count)

    @property
    def open_lines(self) -> Iterator[tuple[int, int, int]]:
        """Number of a line, its ways and those never taken, where there are any."""
        for number, counts in sorted(self.lines.items()):
            if 0 in counts:
                yield number, len(counts), counts.count(0)


def source_of(file: str) -> Path | None:
    """The file of src/core that gcov means."""
    name = Path(file).name
    folder = Path(file).parent
    if folder.parts[-2:] in {("pulsarx", "_core"), ("src", "core")} and (CORE / name).exists():
        return CORE / name
    return None


def collect(reports: Iterable[dict[str, Any]]) -> tuple[list[FileBranches], Left]:
    """What all objects count, the copies of an inline function as one."""
    counts: dict[tuple[Path, int], list[int]] = {}
    left = Left()
    for report in reports:
        for file in report["files"]:
            source = source_of(file["file"])
            for line in file["lines"]:
                ways = [each["count"] for each in line["branches"]]
                if source is None:
                    left.elsewhere += len(ways)
                    continue
                before = counts.setdefault((source, line["line_number"]), [0] * len(ways))
                if len(before) != len(ways):
                    place = f"{source.name}:{line['line_number']}"
                    raise GcovError(f"{place} has other branches in {report['data_file']}")
                before[:] = [one + more for one, more in zip(before, ways, strict=True)]
    files: dict[Path, FileBranches] = {}
    sources: dict[Path, CoreSource] = {}
    for (source, number), ways in counts.items():
        if source not in sources:
            sources[source] = CoreSource(source)
        files.setdefault(source, FileBranches(sources[source]))
        if number in sources[source].of_module:
            left.scaffold += len(ways)
        elif number in sources[source].of_invariants:
            left.invariant += len(ways)
        elif ways:
            files[source].lines[number] = ways
    found = sorted(files.values(), key=lambda each: each.source.name)
    return [each for each in found if each.ways], left


def reports(mode_objects: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """What gcov says of each object, by its notes."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        yield from pool.map(report_of, mode_objects)


def report_of(notes: Path) -> dict[str, Any]:
    counts = notes.with_suffix(".gcda")
    command = ["gcov", "--json-format", "--branch-probabilities", "--stdout"]
    done = subprocess.run(
        [*command, str(counts if counts.exists() else notes)], capture_output=True, text=True,
        check=False, cwd=notes.parent,
    )  # fmt: skip
    if done.returncode or not done.stdout:
        raise GcovError(f"gcov refuses {notes}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def main(tests: list[str]) -> int:
    mode = build_mode()
    folders = [mode.objects, ROOT / "build" / "tests" / f"branches-{sys.implementation.cache_tag}"]
    subprocess.run([ROOT / "tools" / "bootstrap", "tests/core", "tests/pycore"], check=True)
    for counts in (each for folder in folders for each in folder.rglob("*.gcda")):
        counts.unlink()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(mode.tree), os.environ.get("PYTHONPATH")]))
    }
    command = [sys.executable, "-m", "pytest", "-q"]
    failed = subprocess.call([*command, *tests], cwd=ROOT, env=environment)
    notes = [each for folder in folders for each in sorted(folder.rglob("*.gcno"))]
    files, left = collect(reports(notes))
    return int(show(files, left) or failed)


def show(files: list[FileBranches], left: Left) -> bool:
    """Print what was found; whether it is too little."""
    for each in files:
        for number, ways, never in each.open_lines:
            text = each.source.lines[number - 1].strip()
            print(f"{each.source.name}:{number}: {never} of {ways} never taken: {text}")
    ways, taken = sum(each.ways for each in files), sum(each.taken for each in files)
    print(f"\n{'file of src/core':24} {'branches':>8} {'taken':>8} {'percent':>8}")
    for each in files:
        percent = 100 * each.taken / each.ways
        print(f"{each.source.name:24} {each.ways:8} {each.taken:8} {percent:8.1f}")
    percent = 100 * taken / ways
    print(f"{'all':24} {ways:8} {taken:8} {percent:8.1f}\n")
    print(
        f"not counted: {left.invariant} ways of invariants, {left.scaffold} of loading modules, "
        f"{left.elsewhere} outside src/core (what Cython adds, pycore, tests, C in `cdef extern`)"
    )
    return percent < PERCENT_LEAST


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(TESTS)))
