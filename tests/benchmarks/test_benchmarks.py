"""The benchmarks run, and no promise can be forgotten. What they measure here says nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    """reach.py and report.py, which import each other by their plain names."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import reach
    import report

    return reach, report


def test_every_row_gets_a_figure() -> None:
    for package in ("pytest_benchmark", "lmdb", "pyarrow"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: tools/bootstrap bench")
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "MISSING" not in done.stdout


def found_for(reach: ModuleType, report: ModuleType, *left_out: str) -> dict[str, object]:
    benchmarks = [
        {"extra_info": {"row": row.name, "values": [row.limit], "note": ""}}
        for row in reach.ROWS
        if row.name not in left_out
    ]
    found: dict[str, object] = report.results_of({"benchmarks": benchmarks})
    return found


def test_a_row_without_a_figure_is_named(modules: tuple[ModuleType, ModuleType]) -> None:
    reach, report = modules
    results = found_for(reach, report, "latency")
    assert [row.name for row in report.missing(results)] == ["latency"]
    assert "without a figure: latency" in report.table_for_terminal(results)
    assert not report.missing(found_for(reach, report))


def test_a_limit_is_met_from_the_right_side(modules: tuple[ModuleType, ModuleType]) -> None:
    reach, report = modules
    cases = [("receive", 8.1, "MISSED"), ("receive", 8.0, "met"), ("receive", 5.9, "met, stretch")]
    cases += [("kib_send", 0.49, "MISSED"), ("kib_send", 0.5, "met"), ("idle", 1.0, "MISSED")]
    for name, value, expected in cases:
        result = report.Result([value], "")
        assert report.verdict(reach.BY_NAME[name], result).startswith(expected), name


def test_every_row_names_the_benchmark_that_fills_it(
    modules: tuple[ModuleType, ModuleType],
) -> None:
    reach, _ = modules
    for row in reach.ROWS:
        assert f'"{row.name}"' in (BENCHMARKS / row.file).read_text(), row.name
    assert {row.file for row in reach.ROWS} == set(reach.FILES)
    assert {path.name for path in BENCHMARKS.glob("bench_*.py")} == set(reach.FILES)
