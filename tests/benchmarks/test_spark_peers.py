"""PulsarX beside others on Spark: the works run, what is missing is named, and what is shown is
what was measured."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BENCHMARKS = ROOT / "benchmarks"
WORKS = "write,where time goes"


def module(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(f"spark_peers.{name}")


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return module(monkeypatch, "page")


def test_works_run_without_what_is_not_fetched(tmp_path: Path) -> None:
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: tools/bootstrap spark")
    written, empty = tmp_path / "figures.json", tmp_path / "nothing"
    paths = [str(BENCHMARKS), str(ROOT / "build" / "tree"), os.environ.get("PYTHONPATH", "")]
    program = (
        "import sys; from pathlib import Path; from spark_peers import get, run;"
        f"get.BUILD = get.PYTHON = Path({str(empty)!r}); sys.exit(run.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "--rows", "80", "--rounds", "1", "--works", WORKS,
         "--write", str(written)],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads(written.read_text())
    assert set(found["skipped"]) == {"Delta", "Kafka"}
    seconds = found["blocks"]["80 x 100"]["seconds"]
    assert list(seconds) == WORKS.split(",")
    assert set(seconds["write"]) >= {"PulsarX", "Parquet"}
    assert len(seconds["where time goes"]) == 8
    for work in WORKS.split(","):
        assert all(len(each) == 1 and each[0] > 0 for each in seconds[work].values())


def test_values_are_json_of_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    values = module(monkeypatch, "values")
    for size in (100, 1024):
        for number in (0, 999_999, 19_999_999):
            text = values.value(number, size, 1.5)
            assert len(text) == size
            assert json.loads(text)["id"] == number


def test_what_cannot_be_fetched_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    get = module(monkeypatch, "get")
    monkeypatch.setattr(get, "BUILD", tmp_path)
    monkeypatch.setattr(get, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(get, "PACKAGES", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    failed = get.get_all()
    assert {"Delta", "Kafka", "Spark's Kafka source"} <= set(failed)
    assert failed["Kafka"].startswith("no mvn: ")
    assert get.missing_jars(get.BROKER) == "not fetched: Kafka"


def test_turns_alternate_behind_one_that_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    run = module(monkeypatch, "run")
    order: list[str] = []

    def turn(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = run.alternated({"a": lambda: turn("a"), "b": lambda: turn("b")}, 2)
    assert order == ["b", "a", "a", "b", "b", "a"]
    assert found == {"a": [3, 6], "b": [4, 5]}


def test_what_is_shown_is_what_was_measured(page: ModuleType) -> None:
    for path, text in page.outputs().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name}: run PYTHONPATH=benchmarks python -m spark_peers.page"
        )


def test_the_page_says_what_was_not_measured(page: ModuleType) -> None:
    text = page.page(page.read())
    for rows, size in page.ASKED:
        name = page.block_name(rows, size)
        head, missing = f"## {page.spoken(name)}", f"- {page.spoken(name)}: not measured yet"
        assert (name in page.read()["blocks"]) == (head in text) != (missing in text)


def test_the_picture_has_every_ratio(page: ModuleType) -> None:
    text = (page.PICTURES / page.PICTURE).read_text(encoding="utf-8")
    for block in page.read()["blocks"].values():
        for work in page.works_of(block):
            for peer in page.others(block):
                found = page.ratio(block["seconds"][work], peer)
                assert found is None or f">{page.number(found.median)}×</text>" in text


def test_a_reason_stands_where_others_are_faster(page: ModuleType) -> None:
    block = {"seconds": {"read": {"PulsarX": [2.0, 4.0], "Parquet": [1.0, 2.0], "Kafka": [4, 8]}}}
    lines = page.slower(block)
    assert any(line.startswith("- read: Parquet takes 0.5 times as long") for line in lines)
    assert not any("Kafka takes" in line for line in lines)
    block = {"seconds": {"stream": block["seconds"]["read"]}, "dates": {}}
    block["seconds"][page.PARTS_OF_WORKS] = {page.BARE_STREAM: [1.5]}
    block["dates"] = dict.fromkeys(block["seconds"], "now")
    assert f"0.5 of the time is that of {page.BARE_STREAM}." in " ".join(
        " ".join(page.slower(block)).split()
    )
    block["dates"]["stream"] = "before"  # of another run
    assert "of the time is that of" not in " ".join(page.slower(block))
