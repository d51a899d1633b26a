"""Each case of tests/transactions.md, or of the differences, is there once and names its tests."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from source_files import ROOT
from test_statements import is_there

CASES = 64
FILES = {"tests/transactions.md": 3, "tests/oracle/differences.md": 5}  # cells of a line
NO_CASE = "–"


def lines(text: str) -> Iterator[list[str]]:
    """The cells of each line that names tests in its last one, and of each that has a number."""
    for row in text.splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        if cells and (cells[0].isdecimal() or cells[0] == NO_CASE):
            yield cells


def faults(texts: dict[str, str]) -> list[str]:
    """texts: what the files contain."""
    found: list[str] = []
    seen: list[int] = []
    for file, text in texts.items():
        for cells in lines(text):
            said = f"{file}, case {cells[0]}: "
            tests = re.findall(r"`(tests/[^`]*)`", cells[-1])
            if len(cells) != FILES[file] or "" in cells:
                found.append(f"{said}{len(cells)} cells, or an empty one")
            if not tests:
                found.append(f"{said}no test")
            found += [f"{said}{test} is not there" for test in tests if not is_there(test)]
            seen += [int(cells[0])] if cells[0] != NO_CASE else []
    found += [f"case {each} is there twice" for each in {*seen} if seen.count(each) > 1]
    missing = {*range(1, CASES + 1)} ^ {*seen}
    return found + [f"case {each} is not there, or there is none" for each in sorted(missing)]


def test_each_case_is_held_as_in_pulsar_or_in_a_way_that_is_told():
    wrong = faults({file: (ROOT / file).read_text() for file in FILES})
    assert not wrong, "\n".join(wrong)


HERE = "`tests/tidy/test_transaction_cases.py::test_a_fault_is_found`"
HELD = "\n".join(f"| {each} | so | {HERE} |" for each in range(1, CASES))
LAST = f"| {CASES} | when | there | here | {HERE} |"


def test_a_case_in_either_file_is_let_through():
    texts = [HELD, f"| – | when | there | here | {HERE} |\n{LAST}"]
    assert faults(dict(zip(FILES, texts))) == []


@pytest.mark.parametrize(
    ("held", "differs", "fault"),
    [
        (HELD, "", f"case {CASES} is not there"),
        (f"{HELD}\n| 7 | so | {HERE} |", LAST, "case 7 is there twice"),
        (f"{HELD}\n| 65 | so | {HERE} |", LAST, "case 65"),
        (HELD, f"| {CASES} | when | there | here | looking |", "no test"),
        (HELD, LAST.replace("test_a_fault", "test_no_fault"), "is not there"),
        (HELD, f"| {CASES} | when | there | | {HERE} |", "an empty one"),
        (HELD, f"{LAST}\n| – | when | there | here | |", "no test"),
        (HELD, f"| {CASES} | when | {HERE} |", "3 cells"),
    ],
)
def test_a_fault_is_found(held: str, differs: str, fault: str):
    found = faults(dict(zip(FILES, (held, differs))))
    assert any(fault in each for each in found), found
