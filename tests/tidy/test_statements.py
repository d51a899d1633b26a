"""Each statement of tests/statements.md that is held names tests that are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from source_files import ROOT

HELD, OTHERWISE, NOT_YET = "Held", "Held in another way", "Not held yet"
# How many cells a line has: number, statement, what PulsarX does where that is told, the last one.
CELLS = {HELD: 3, OTHERWISE: 4, NOT_YET: 3}
HEADERS = {"statement"}


@dataclass
class Line:
    """One line of a table: a statement, and in its last cell tests, or the missing feature."""

    section: str
    number: str
    cells: list[str]

    @property
    def tests(self) -> list[str]:
        return re.findall(r"`(tests/[^`]*)`", self.cells[-1])


def lines(text: str) -> Iterator[Line]:
    """The lines of all tables, without headers and rules."""
    section = ""
    for row in text.splitlines():
        if row.startswith("## "):
            section = row.removeprefix("## ").strip()
        if not row.startswith("|") or set(row) <= set("|- :"):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        if len(cells) < 2 or cells[1] not in HEADERS:
            yield Line(section, cells[0], cells)


@cache
def known_tests(file: str) -> frozenset[str]:
    """The names of the tests in a file below the root, which need not be importable."""
    path = ROOT / file
    if not path.is_file():
        return frozenset()
    return frozenset(names(path.read_text(), path.suffix))


def names(text: str, suffix: str) -> Iterator[str]:
    if suffix == ".pyx":
        yield from re.findall(r"^def (test_\w+)\(", text, re.MULTILINE)
        return
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.parse(text).body:
        if isinstance(node, functions) and node.name.startswith("test_"):
            yield node.name
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            for inner in node.body:
                if isinstance(inner, functions) and inner.name.startswith("test_"):
                    yield f"{node.name}::{inner.name}"


def is_there(test: str) -> bool:
    """test: a node id as pytest writes it; what stands in brackets behind it does not matter."""
    file, _, name = test.partition("::")
    return name.partition("[")[0] in known_tests(file)


def faults(text: str) -> list[str]:
    found: list[str] = []
    last: dict[str, int] = {}
    seen: set[int] = set()
    for line in lines(text):
        said = f"{line.section}, line {line.number}: "
        if line.section not in CELLS or len(line.cells) != CELLS[line.section]:
            found.append(f"{said}{len(line.cells)} cells, or no such table")
            continue
        if not line.number.isdecimal():
            found.append(f"{said}no number")
            continue
        number = int(line.number)
        if number in seen:
            found.append(f"{said}the number is there twice")
        if number <= last.get(line.section, 0):
            found.append(f"{said}the numbers of a table do not ascend")
        seen.add(number)
        last[line.section] = number
        if not re.fullmatch(r'".+"', line.cells[1]):
            found.append(f"{said}no statement in quotation marks")
        if "" in line.cells:
            found.append(f"{said}an empty cell")
        if line.section == NOT_YET:
            found += [f"{said}not held yet, and names {test}" for test in line.tests]
            continue
        if not line.tests:
            found.append(f"{said}no test")
        found += [f"{said}{test} is not there" for test in line.tests if not is_there(test)]
    gone = set(range(1, max(seen, default=0))) - seen
    return found + [f"number {number} is in no table" for number in sorted(gone)]


def test_every_statement_that_is_held_names_tests_that_are_there():
    text = (ROOT / "tests" / "statements.md").read_text()
    assert {line.section for line in lines(text)} >= {HELD, OTHERWISE}
    wrong = faults(text)
    assert not wrong, "\n".join(wrong)


HERE = f"tests/tidy/{Path(__file__).name}::test_whole_tables_are_let_through"
COMPILED = "tests/core/test_murmur3.pyx::test_vectors_of_pulsar"


def tables(held: str = "", otherwise: str = "", not_yet: str = "") -> str:
    return f"""# Title

## {HELD}

### A subject

| | statement | tests |
|---|---|---|
{held}

## {OTHERWISE}

| | statement | in PulsarX | tests |
|---|---|---|---|
{otherwise}

## {NOT_YET}

| | statement | feature |
|---|---|---|
{not_yet}
"""


def test_whole_tables_are_let_through():
    held = f'| 1 | "so \\| so" | `{HERE}` |\n| 4 | "a" | `{HERE}[x-1]`<br>`{COMPILED}` |'
    otherwise = f'| 2 | "b" | More. | `{COMPILED}` |'
    assert faults(tables(held, otherwise, '| 3 | "c" | chunking |')) == []


MISSING = "tests/tidy/test_statements.py::test_that_nobody_wrote"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (tables('| 1 | "a" | |'), "no test"),
        (tables('| 1 | "a" | by looking at it |'), "no test"),
        (tables(f'| 1 | "a" | `{MISSING}` |'), "test_that_nobody_wrote is not there"),
        (tables(f'| 1 | "a" | `{HERE}`<br>`{MISSING}` |'), "test_that_nobody_wrote is not there"),
        (tables('| 1 | "a" | `tests/tidy/test_gone.py::test_x` |'), "is not there"),
        (tables('| 1 | "a" | `tests/core/test_murmur3.pyx::test_x` |'), "is not there"),
        (tables('| 1 | "a" | `tests/tidy/test_statements.py` |'), "is not there"),
        (tables(otherwise=f'| 1 | "a" | More. | `{MISSING}` |'), "is not there"),
        (tables(otherwise='| 1 | "a" | More. | |'), "no test"),
        (tables(otherwise=f'| 1 | "a" | | `{HERE}` |'), "an empty cell"),
        (tables(otherwise=f'| 1 | "a" | `{HERE}` |'), "3 cells"),
        (tables(f'| 1 | "a" | `{HERE}` |', not_yet='| 1 | "b" | chunking |'), "twice"),
        (tables(f'| 2 | "a" | `{HERE}` |\n| 1 | "b" | `{HERE}` |'), "do not ascend"),
        (tables(f'| | "a" | `{HERE}` |'), "no number"),
        (tables(f'| 1 | "a" | `{HERE}` |\n| 3 | "b" | `{HERE}` |'), "number 2 is in no table"),
        (tables(f"| 1 | a | `{HERE}` |"), "quotation marks"),
        (tables(not_yet='| 1 | "a" | |'), "an empty cell"),
        (tables(not_yet=f'| 1 | "a" | chunking `{HERE}` |'), "not held yet, and names"),
        (tables().replace(f"## {HELD}\n", f'## Else\n\n| 1 | "a" | `{HERE}` |\n'), "no such table"),
    ],
)
def test_a_fault_is_found(text: str, fault: str):
    assert any(fault in each for each in faults(text)), faults(text)


def test_tests_are_found_without_importing_their_files():
    text = (
        "import nothing_of_the_kind\n"
        "def test_a(): pass\n"
        "async def test_b(): pass\n"
        "class TestC:\n    def test_d(self): pass\n    def helper(self): pass\n"
        "class Other:\n    def test_e(self): pass\n"
        "def helper():\n    def test_inside(): pass\n"
        "# def test_in_a_comment(): pass\n"
    )
    assert set(names(text, ".py")) == {"test_a", "test_b", "TestC::test_d"}
    assert set(names("cdef int x\ndef test_f():\n    pass\n    def test_g(): pass\n", ".pyx")) == {
        "test_f"
    }
