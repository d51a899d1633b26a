"""The markers that leave tests of the API out of a second run are of tests that have one, and give
reasons that are there."""

from __future__ import annotations

import re

import border_list
import guest_list
import pytest
from left_out import REASONS
from source_files import ROOT

MODULES = {"border": border_list.MODULES, "guest": guest_list.MODULES}


def reasons_of(marker: str) -> dict[str, set[str]]:
    """What the markers in each module of the tests of the API say."""
    found = {}
    for path in (ROOT / "tests" / "api").rglob("test_*.py"):
        text = path.read_text("utf-8")
        if said := set(re.findall(rf'^@pytest.mark.{marker}\(left_out="(.*?)"', text, re.M)):
            found[".".join(path.relative_to(ROOT / "tests" / "api").with_suffix("").parts)] = said
    return found


@pytest.mark.parametrize("marker", MODULES)
def test_each_marked_test_runs_there(marker: str) -> None:
    assert reasons_of(marker) and reasons_of(marker).keys() <= set(MODULES[marker])


def test_the_reasons_are_those_that_tests_give() -> None:
    given = [said for marker in MODULES for said in reasons_of(marker).values()]
    assert set().union(*given) == REASONS.keys()
