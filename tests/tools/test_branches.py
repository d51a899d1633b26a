"""Counting of branches: what counts, what does not, and that a way never taken is told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import branches  # noqa: E402
from native_build import as_counted  # noqa: E402

SOURCE = """\
cdef int COUNT = 0
cdef int clipped(int number) noexcept nogil:
    invariant(
        number >= 0)
    if number > 9:
        return 9
    return number
"""


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "clip.pyx").write_text(SOURCE)
    monkeypatch.setattr(branches, "CORE", tmp_path)
    return tmp_path


def report(file: str, lines: dict[int, list[int]]) -> dict[str, Any]:
    """As gcov has it: how often each way of a line was taken."""
    return {"files": [{"file": file, "lines": [
        {"line_number": number, "branches": [{"count": count} for count in counts]}
        for number, counts in lines.items()
    ]}]}  # fmt: skip


def test_copies_of_a_function_are_one(core: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = report("pulsarx/_core/clip.pyx", {5: [3, 0]})
    other = report("/anywhere/src/core/clip.pyx", {5: [0, 2]})
    found, _ = branches.collect([one, other])
    assert [(each.source.name, each.lines) for each in found] == [("clip.pyx", {5: [3, 2]})]
    assert branches.show(found, branches.Left())
    assert "never taken" not in capsys.readouterr().out


def test_a_way_never_taken_is_told(core: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, left = branches.collect([report("src/core/clip.pyx", {5: [3, 0], 6: []})])
    assert not branches.show(found, left)
    assert "clip.pyx:5: 1 of 2 never taken: if number > 9:" in capsys.readouterr().out


def test_invariants_loading_and_other_files_are_not_counted(core: Path) -> None:
    lines = {1: [1, 0], 3: [0, 1], 4: [0, 1, 0], 5: [1, 1]}
    elsewhere = report("vendored/lz4.c", {5: [1, 0, 0, 0]})
    found, left = branches.collect([report("src/core/clip.pyx", lines), elsewhere])
    assert [each.lines for each in found] == [{5: [1, 1]}]
    assert (left.invariants, left.loading, left.outside) == (5, 2, 4)


def test_copies_of_other_code_are_refused(core: Path) -> None:
    one, other = (report("src/core/clip.pyx", {5: counts}) for counts in ([1, 2], [1, 2, 3]))
    with pytest.raises(branches.GcovError, match=r"clip\.pyx:5"):
        branches.collect([one, other])


def test_the_last_operand_is_branched_on_and_lines_of_c_are_its_own() -> None:
    c = """\
static int f(void) {
#line 7 "f.pyx"
  __pyx_t_2 = (b);
#line 7 "f.pyx"
  __pyx_t_1 = __pyx_t_2;
#line 7 "f.pyx"
  __pyx_L4_bool_binop_done:;
}
static int g(void) {
"""
    counted = as_counted(c, "f.c").splitlines()
    assert "  if (__pyx_t_2) __pyx_t_1 = __pyx_t_2; else __pyx_t_1 = __pyx_t_2;" in counted
    at = counted.index("static int g(void) {")
    assert counted[at - 1] == f'#line {at + 1} "f.c"'
