"""RELIABILITY.md names what there is: campaigns, and the tests that hold a promise."""

from __future__ import annotations

import re

from campaigns import CAMPAIGNS
from source_files import ROOT

PAGE = (ROOT / "RELIABILITY.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.partition("## Promises")[2].partition("## What is not")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| promise")
]
NAMES = {each.name for each in CAMPAIGNS}


def test_campaigns_that_it_names_are_there() -> None:
    for promise, _, campaigns, _ in ROWS:
        for name in campaigns.split(", "):
            begins = any(each == name or each.startswith(f"{name}-") for each in NAMES)
            assert name == "-" or begins, f"{promise}: there is no campaign {name}"


def test_every_promise_is_held_by_tests_that_are_there() -> None:
    assert len(ROWS) > 15
    for promise, tests, _, _ in ROWS:
        found = re.findall(r"\]\(([^)#]+)", tests)
        assert any(each.startswith("tests/") for each in found), promise
        assert all((ROOT / each).exists() for each in found), (promise, found)
