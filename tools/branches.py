"""Tells which branches of src/core the tests take: `branches.py [test...]`, `make coverage`.

Builds the library and tests/core for gcov (PULSARX_BRANCHES in build_mode.py; gcc alone has it),
runs the tests, and prints a table and each line of which a way was never taken. Ends with 1 under
95 %, or when a test fails.

A branch is where code goes on in one of several ways: an if, a loop, each operand of `and` and `or`
and the whole, a case. Each way counts, as gcov counts them; so do those of functions in contracts
and in crc32c.h, whose copies in several modules count as one. Not counted, and said at the end:

invariants    the other way ends the process by design
loading       what stands at the margin of a module runs once, when it is loaded
outside       what Cython adds around functions, C inside `cdef extern`, pycore, tests

A process adds its counts to those of others when it ends. One that is killed, or ended by
`os._exit`, loses its own, so what only such a process does counts as not taken.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from build_mode import ROOT, build_mode

CORE = ROOT / "src" / "core"
PERCENT_LEAST = 95
TESTS = ("tests/core", "tests/pycore")


class GcovError(Exception):
    """gcov says what this cannot use."""


@dataclass
class Left:
    """Ways that are not counted."""

    invariants: int = 0
    loading: int = 0
    outside: int = 0


class CoreSource:
    """The text of one file of src/core."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.lines = path.read_text().splitlines()
        self.is_c = path.suffix == ".h"
        self._invariants = set(self._lines_of_invariants())

    def left(self, number: int) -> str | None:
        """Why the ways of a line are not counted, a field of Left; None: they are."""
        if not self.is_c and not self.lines[number - 1].startswith(" "):
            return "loading"
        return "invariants" if number in self._invariants else None

    def _lines_of_invariants(self) -> Iterator[int]:
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
    path = Path(file)
    if path.parent.parts[-2:] in (("pulsarx", "_core"), ("src", "core")):
        return CORE / path.name if (CORE / path.name).exists() else None
    return None


def collect(reports: Iterable[dict[str, Any]]) -> tuple[list[FileBranches], Left]:
    """What all objects count, by file."""
    ways: dict[tuple[Path, int], list[int]] = {}
    left = Left()
    for report in reports:
        for file in report["files"]:
            source = source_of(file["file"])
            for line in file["lines"]:
                counts = [each["count"] for each in line["branches"]]
                if source is None:
                    left.outside += len(counts)
                    continue
                number = line["line_number"]
                before = ways.setdefault((source, number), [0] * len(counts))
                if len(before) != len(counts):
                    raise GcovError(f"{source.name}:{number} has other branches elsewhere")
                before[:] = map(sum, zip(before, counts, strict=True))
    files: dict[Path, FileBranches] = {}
    for (source, number), counts in sorted(ways.items()):
        found = files.setdefault(source, FileBranches(CoreSource(source)))
        if reason := found.source.left(number):
            setattr(left, reason, getattr(left, reason) + len(counts))
        elif counts:
            found.lines[number] = counts
    return [each for each in files.values() if each.ways], left


def report_of(notes: Path) -> dict[str, Any]:
    """What gcov says of an object, by its notes; it has no counts where nothing of it ran."""
    counts = notes.with_suffix(".gcda")
    name = str(counts if counts.exists() else notes)
    command = ["gcov", "--json-format", "--branch-probabilities", "--stdout", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=notes.parent)
    if done.returncode or not done.stdout:
        raise GcovError(f"gcov refuses {name}: {done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def show(files: list[FileBranches], left: Left) -> bool:
    """Print what was found; whether it is enough."""
    print(f"\n{'file of src/core':24} {'branches':>8} {'taken':>8} {'percent':>8}")
    ways, taken = sum(each.ways for each in files), sum(each.taken for each in files)
    rows = [(each.source.name, each.ways, each.taken) for each in files]
    for name, of, count in [*rows, ("all", ways, taken)]:
        print(f"{name:24} {of:8} {count:8} {100 * count / of:8.1f}")
    print()
    for each in files:
        for number, of, never in each.open_lines:
            text = each.source.lines[number - 1].strip()
            print(f"{each.source.name}:{number}: {never} of {of} never taken: {text}")
    print(
        f"\n{100 * taken / ways:.1f} % of {ways} branches were taken, {PERCENT_LEAST} % must be.\n"
        f"Not counted: {left.invariants} of invariants, {left.loading} of loading modules, "
        f"{left.outside} outside of src/core."
    )
    return 100 * taken >= PERCENT_LEAST * ways


def main(tests: list[str]) -> int:
    os.environ["PULSARX_BRANCHES"] = "1"
    mode = build_mode()
    if shutil.which("gcov") is None:
        print("branches: install gcc, which brings gcov", file=sys.stderr)
        return 2
    folders = [mode.objects, ROOT / "build" / "tests" / f"branches-{sys.implementation.cache_tag}"]
    subprocess.run([ROOT / "tools" / "bootstrap", "tests/core", "tests/pycore"], check=True)
    for folder in folders:
        for counts in folder.rglob("*.gcda"):
            counts.unlink()
    paths = [str(mode.tree), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "pytest", "-q", *tests]
    failed = subprocess.call(command, cwd=ROOT, env=environment)
    notes = [each for folder in folders for each in sorted(folder.rglob("*.gcno"))]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        enough = show(*collect(pool.map(report_of, notes)))
    return 0 if enough and not failed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(TESTS)))
