"""The benchmarks run, and no promise can be forgotten. What they measure here says nothing."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

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


# One session, and what needs none: the other benchmarks of Spark differ from these in their frames.
SPARK_SAMPLE = "bench_spark_driver or (bench_source and uds)"
SAMPLED = ("spark_source_uds", "spark_attach", "spark_plan", "spark_latest", "spark_decode")


def run_quick(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    for package in ("pytest_benchmark", "lmdb", "pyarrow"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed: tools/bootstrap bench")
    command = [sys.executable, str(BENCHMARKS / "run.py"), "--quick", *arguments]
    # pytest-benchmark measures nothing where pytest-xdist runs; but there it runs only this test.
    alone = {name: os.environ[name] for name in os.environ if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=alone | environment
    )
    if "nothing was measured" in done.stderr:
        pytest.skip(done.stderr)
    return done


@pytest.mark.parametrize(
    "group", ["core", "official", "serve", pytest.param("spark", marks=pytest.mark.long)]
)
def test_every_row_gets_a_figure(group: str) -> None:
    done = run_quick("--group", group)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "MISSING" not in done.stdout


def test_some_rows_of_spark_get_a_figure() -> None:
    pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")
    from prepared_python import PreparedPython
    from spark_steps import SMALL_JAVA

    with PreparedPython():
        done = run_quick(
            "--group", "spark", "-k", SPARK_SAMPLE,
            PYSPARK_SUBMIT_ARGS=f"--driver-java-options '{SMALL_JAVA}' pyspark-shell",
        )  # fmt: skip
    lines = {line.split()[0]: line for line in done.stdout.splitlines() if line.strip()}
    for row in SAMPLED:
        assert not lines[row].endswith("MISSING"), f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 1  # the others are missing, and that is said


def test_a_real_pulsar_is_measured_where_its_url_is_given() -> None:
    """The oracle gives it; here a broker that does nothing has its place."""
    paths = [str(ROOT / "build" / "tree"), os.environ.get("PYTHONPATH", "")]
    with subprocess.Popen(
        [sys.executable, str(BENCHMARKS / "idle_broker.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        text=True,
    ) as broker:
        assert broker.stdin is not None and broker.stdout is not None
        try:
            url = broker.stdout.readline().strip()
            done = run_quick("--group", "real_pulsar", "--pulsar-url", url)
        finally:
            broker.stdin.close()  # which ends it
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "MISSING" not in done.stdout
    assert broker.returncode == 0


@pytest.mark.parametrize("group", ["real_pulsar", "transactions"])
def test_a_real_pulsar_is_not_measured_without_its_url(group: str) -> None:
    done = run_quick("--group", group)
    assert done.returncode == 2 and "make oracle" in done.stderr


def found_for(group: Any, report: ModuleType, *left_out: str) -> dict[str, object]:
    benchmarks = [
        {"extra_info": {"row": row.name, "values": [row.limit], "note": ""}}
        for row in group.rows
        if row.name not in left_out
    ]
    found: dict[str, object] = report.results_of({"benchmarks": benchmarks})
    return found


def test_a_row_without_a_figure_is_named(modules: tuple[ModuleType, ModuleType]) -> None:
    reach, report = modules
    results = found_for(reach.CORE, report, "latency")
    assert [row.name for row in report.missing(reach.CORE, results)] == ["latency"]
    assert "without a figure: latency" in report.table_for_terminal(reach.CORE, results)
    assert not report.missing(reach.CORE, found_for(reach.CORE, report))


def test_a_limit_is_met_from_the_right_side(modules: tuple[ModuleType, ModuleType]) -> None:
    reach, report = modules
    cases = [("receive", 8.1, "MISSED"), ("receive", 8.0, "met"), ("receive", 4.4, "met, stretch")]
    cases += [("kib_send", 0.49, "MISSED"), ("kib_send", 0.5, "met"), ("idle", 1.0, "MISSED")]
    cases += [("spark_map_tcp", 2.9, "MISSED"), ("spark_decode", 1.0, "no promise")]
    for name, value, expected in cases:
        result = report.Result([value], "")
        assert report.verdict(reach.BY_NAME[name], result).startswith(expected), name


def test_what_is_no_promise_is_not_counted_as_one(modules: tuple[ModuleType, ModuleType]) -> None:
    reach, report = modules
    promised = sum(row.promised for row in reach.SPARK.rows)
    assert promised < len(reach.SPARK.rows)
    text = report.summary(reach.SPARK, found_for(reach.SPARK, report))
    assert text == f"{promised} of {promised} met, 0 missed"


def test_one_group_leaves_what_the_other_has_found(modules: tuple[ModuleType, ModuleType]) -> None:
    reach, report = modules

    def part(group: Any, date: str) -> str:
        found: str = report.group_markdown(group, found_for(group, report), [("a", "b")], date)
        return found

    core, spark, later = part(reach.CORE, "1"), part(reach.SPARK, "2"), part(reach.CORE, "3")
    alone = report.results_markdown("", reach.CORE, core)
    assert core in alone and "Not measured yet: `make bench-spark`" in alone
    both = report.results_markdown(alone, reach.SPARK, spark)
    assert core in both and spark in both and "Not measured yet: `make bench-spark`" not in both
    again = report.results_markdown(both, reach.CORE, later)
    assert again == both.replace(core, later)


def test_rows_measured_later_stand_among_the_others(
    modules: tuple[ModuleType, ModuleType],
) -> None:
    reach, report = modules
    machine = [("processor", "of old"), ("revision", "1a"), ("load before", "0 0 0")]
    names = ("send", "receive", "latency")
    left_out = [row.name for row in reach.CORE.rows if row.name not in names]
    old = found_for(reach.CORE, report, *left_out)
    old["receive"] = report.Result([99.0], "slow once")
    before = report.group_markdown(reach.CORE, old, machine, "2026-01-01")
    machine = [("processor", "new"), ("revision", "2b"), ("load before", "1 2 3")]
    added = {"receive": report.Result([7.0], "n"), "idle": report.Result([5.0], "busy")}
    part = report.with_rows(before, reach.CORE, added, machine, "2026-02-02")
    lines = part.splitlines()
    assert "- **receive** (bench_receive.py): n; measured on 2026-02-02, revision 2b, load " in part
    assert "slow once" not in part and "| processor | of old |" in lines
    assert next(line for line in before.splitlines() if line.startswith("| send |")) in lines
    assert [line for line in lines if line.startswith("- **receive**: ")] == []
    assert [line for line in lines if line.startswith("- **idle**: ")] != []
    promised = sum(row.promised for row in reach.CORE.rows)
    assert f"3 of {promised} met, 1 missed, without a figure: send_key, send_many, " in part
    assert "by `make bench` on 2026-01-01; later rows say when." in part
    again = report.with_rows(part, reach.CORE, {}, machine, "2026-03-03")
    assert again == part


def test_results_have_a_part_for_every_group(modules: tuple[ModuleType, ModuleType]) -> None:
    reach, report = modules
    text = (BENCHMARKS / "RESULTS.md").read_text()
    for group in reach.PARTS:
        assert report.part_of(text, group).startswith(f"## {group.title}\n"), group.name


def test_every_row_names_the_benchmark_that_fills_it(
    modules: tuple[ModuleType, ModuleType],
) -> None:
    reach, _ = modules
    files = [name for group in reach.GROUPS.values() for name in group.files]
    for row in reach.ROWS:
        assert f'"{row.name}"' in (BENCHMARKS / row.file).read_text(), row.name
    assert {row.file for row in reach.ROWS} == set(files)
    assert sorted(path.name for path in BENCHMARKS.glob("bench_*.py")) == sorted(files)
