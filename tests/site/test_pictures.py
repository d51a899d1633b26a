"""What the pages show is what the library does, and what was measured."""

from __future__ import annotations

import re

import draw_concepts
import pytest
import write_figures
from page_samples import ROOT


def test_the_pictures_of_the_concepts_are_of_runs_of_this_library():
    for path, text in draw_concepts.outputs().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run tools/draw_concepts.py"
    assert {path.name for path in draw_concepts.PICTURES.glob("*")} == set(draw_concepts.PICTURE_OF)


def test_figures_are_those_of_the_results():
    for path, text in write_figures.outputs().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run tools/write_figures.py"


def test_another_result_is_another_figure():
    results = write_figures.RESULTS.read_text(encoding="utf-8")
    row = write_figures.PLOTS["readme.svg"][1][1]
    ours = write_figures.figure(results, row).ours
    changed = re.sub(rf"(\*\*{row.row}\*\*.*PulsarX )[\d.]+ \w+", r"\g<1>999 ns", results, count=1)
    assert write_figures.figure(changed, row).ours == 999 != ours
    assert "999 ns" in write_figures.outputs(changed)[ROOT / "README.md"]


def test_a_row_without_a_figure_is_refused():
    results = write_figures.RESULTS.read_text(encoding="utf-8")
    pair = write_figures.PLOTS["readme.svg"][1][0]
    with pytest.raises(ValueError, match=pair.row):
        write_figures.outputs(results.replace(f"| {pair.row} |", "| gone |"))
    with pytest.raises(ValueError, match="no time behind"):
        write_figures.outputs(results.replace("the official client ", "it "))


def test_every_picture_is_shown_by_a_page():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {
        name
        for page in pages
        for name in re.findall(r"pictures/([\w-]+\.svg)", page.read_text(encoding="utf-8"))
    }
    there = {path.name for path in (ROOT / "docs").rglob("pictures/*.svg")}
    assert there == shown
