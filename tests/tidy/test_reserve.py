"""Whoever spends the reserve of a folder gives it back: spenders are counted, and it does not grow
while there are any."""

from __future__ import annotations

import re

import pytest
from source_files import LIBRARY, files, without_strings

SPENDS = re.compile(r"(?<!def )\bspend_reserve\(")
ENDS = re.compile(r"\bfinally:\s+(?:\w+\.)+end_spending\(\)")


def is_kept_spending(text: str) -> bool:
    code = without_strings(text)
    return len(SPENDS.findall(code)) > len(ENDS.findall(code))


@pytest.mark.parametrize("ending", ["files.fill_reserve()", "pass"])
def test_who_does_not_end_what_it_spends_is_found(ending: str) -> None:
    text = f"if files.spend_reserve():\n    try:\n        write()\n    finally:\n        {ending}\n"
    assert is_kept_spending(text)
    assert not is_kept_spending(text.replace(ending, "files.end_spending()"))


def test_who_spends_the_reserve_ends_that() -> None:
    texts = {path: path.read_text() for path in files(LIBRARY, {".py", ".pyx"})}
    assert sum(bool(SPENDS.search(text)) for text in texts.values()) >= 3
    for path, text in texts.items():
        assert not is_kept_spending(text), path
