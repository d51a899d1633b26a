"""What is written from the table of policies is as the table says."""

from __future__ import annotations

import pytest
import write_policies
from write_policies import BEGIN, END, METHODS, methods_text, outputs, replaced

from pulsarx.broker.policies.table import TABLE


@pytest.mark.parametrize("path", outputs(), ids=lambda path: path.name)
def test_what_is_written_from_the_table_of_policies_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == outputs()[path], "run tools/write_policies.py"


def test_a_row_that_was_not_written_is_found():
    assert methods_text(TABLE[1:]) != METHODS.read_text(encoding="utf-8")
    for path, text in outputs(TABLE[1:]).items():
        assert text != path.read_text(encoding="utf-8")


def test_only_what_is_between_the_marks_is_replaced():
    assert replaced(f"a\n{BEGIN}\nold\n{END}\nb\n", ["new"]) == f"a\n{BEGIN}\nnew\n{END}\nb\n"
    with pytest.raises(ValueError, match="lacks"):
        replaced("a\n", ["new"])


def test_each_policy_is_one_row():
    names = [each.name for each in TABLE]
    assert sorted(set(names)) == sorted(names)
    assert write_policies.TABLE is TABLE
