"""What grows is measured point by point, and what is shown is what was measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import growth.page

    return growth.page


def test_a_point_is_measured_in_a_process_of_its_own() -> None:
    paths = [str(BENCHMARKS), str(ROOT / "build" / "tree"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "growth.run", "--child", "holes", "--point", "100"],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["consume the rest ns"] > 0
    assert found["memory B"] >= 0


def test_each_axis_was_measured_at_each_point(page: ModuleType) -> None:
    found = page.read()
    for axis in page.AXES:
        rows = page.curves(found, axis)
        assert rows, axis.name
        for what, values in rows.items():
            missing = {each for each in axis.points if each < axis.large} - set(values)
            assert not missing, f"{axis.name}, {what}: run make bench-growth"


def test_what_is_shown_is_what_was_measured(page: ModuleType) -> None:
    for path, text in page.outputs().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name}: run PYTHONPATH=benchmarks python -m growth.page"
        )


def test_the_picture_has_every_curve(page: ModuleType) -> None:
    text = (page.PICTURES / page.PICTURE).read_text(encoding="utf-8")
    found = page.read()
    for axis in page.AXES:
        for what in page.times_of(page.curves(found, axis)):
            assert f">{what.removesuffix(' ns')}</text>" in text


def test_growth_is_told_of_the_cheapest_point(page: ModuleType) -> None:
    assert page.growth({1: 20.0, 10: 10.0, 100: 40.0}) == {1: 2.0, 10: 1.0, 100: 4.0}
