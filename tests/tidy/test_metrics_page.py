"""Each metric is declared once, and docs/monitoring.md tells of each what the declaration says."""

from __future__ import annotations

import re

import pytest
from write_metrics import BEGIN, END, PAGE, list_text, page_text

from pulsarx.rest.metric_table import COUNTER, LEVELS, SUBSCRIPTION


def test_the_page_tells_the_metrics_as_they_are_declared():
    text = PAGE.read_text(encoding="utf-8")
    assert page_text(text) == text, "run tools/write_metrics.py"


def test_a_metric_that_was_not_written_is_found():
    text = PAGE.read_text(encoding="utf-8")
    assert page_text(text, LEVELS[1:]) != text
    assert f"`{SUBSCRIPTION.names[0]}`" in list_text([SUBSCRIPTION])


def test_only_what_is_between_the_marks_is_written():
    assert page_text(f"a\n{BEGIN}\nold\n{END}\nb\n", []) == f"a\n{BEGIN}\n\n{END}\nb\n"
    with pytest.raises(ValueError, match="lacks"):
        page_text("a\n")


def test_a_level_has_each_metric_once_and_each_has_a_unit_and_a_meaning():
    for level in LEVELS:
        assert len(set(level.names)) == len(level.names)
        for each in level.metrics:
            assert re.fullmatch(r"(pulsarx?|process)_[a-z_]+", each.name)
            assert each.unit and each.meaning and not each.meaning.endswith(".")
            assert "\n" not in each.meaning and "\\" not in each.meaning
            is_counter = each.name.endswith("_total") and not each.falls
            assert (each.kind == COUNTER) == is_counter
