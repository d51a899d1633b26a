"""PulsarX beside its peers: the rounds run, what is missing is named, and what is shown is what was
measured."""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BENCHMARKS = ROOT / "benchmarks"


def peers_module(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module(f"peers.{name}")


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return peers_module(monkeypatch, "table")


def test_rounds_run_with_what_needs_no_installation(tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    paths = [str(BENCHMARKS), str(ROOT / "build" / "tree"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "peers.rounds", "--quick", "--only", "sqlite", "--write", written],
        capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    found = json.loads(written.read_text())
    assert not {"sqlite", "pulsarx"} & set(found["skipped"])
    ways = ("publish_each", "publish_stream", "publish_batch", "consume_each", "consume_batch")
    for way in ways:
        for mode in ("page cache", "flushed"):
            row = found["turns"][f"{way}, {mode}"]["100"]
            assert row["PulsarX"][0] > 0 and row["SQLite WAL"][0] > 0
    assert {"PulsarX", "queue.SimpleQueue"} <= set(found["hand-over"]["threads"])
    assert {"PulsarX", "a Unix socket, nothing stored"} <= set(found["hand-over"]["processes"])


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = peers_module(monkeypatch, "rounds")
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    monkeypatch.delitem(sys.modules, "peers.rocksdb_peer", raising=False)
    skipped: dict[str, str] = {}
    found = rounds.wanted(("rocksdb_peer:RocksDb", "sqlite_peer:Sqlite"), [], skipped)
    assert [peer.name for peer in found] == ["SQLite WAL"]
    assert skipped == {"rocksdb": "not installed: rocksdict"}


def test_what_cannot_be_fetched_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    get = peers_module(monkeypatch, "get")
    monkeypatch.setattr(get, "BUILD", tmp_path)
    monkeypatch.setattr(get, "PYTHON", tmp_path / "python")
    monkeypatch.setattr(get, "package_names", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    failed = get.get_all()
    assert set(failed) == {"redis-server", "nats-server", "Chronicle Queue"}
    assert failed["nats-server"].startswith("no go: ")
    with pytest.raises(get.Missing, match="no redis-server"):
        get.redis_server()


def test_a_peer_that_fails_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rounds = peers_module(monkeypatch, "rounds")
    sqlite = rounds.loaded("sqlite_peer:Sqlite")

    class Broken(sqlite):  # type: ignore[misc, valid-type]
        name = "broken"

        def consume_each(self, count: int) -> None:
            raise OSError("its disk is gone")

    monkeypatch.setattr(rounds, "SCRATCH", tmp_path)
    skipped: dict[str, str] = {}
    options = SimpleNamespace(rounds=2, seconds=0)
    found = rounds.Block("page cache", 100, options, skipped).measure([Broken, sqlite])
    assert len(found["publish_each"]["broken"]) == 2
    assert set(found["consume_each"]) == set(found["consume_batch"]) == {"SQLite WAL"}
    assert skipped == {"broken, page cache, 100 bytes": "OSError: its disk is gone"}
    assert not list(tmp_path.iterdir())


def figures(table: ModuleType, **turns: dict[str, list[float]]) -> object:
    rows = {f"{way}, page cache": {"100": found} for way, found in turns.items()}
    return table.Figures({"places": {}, "turns": rows, "hand-over": {}})


def test_a_ratio_is_of_turns_of_one_round(table: ModuleType) -> None:
    """A round that was slow for both says what the others say."""
    found = figures(table, publish_each={"PulsarX": [100, 1000, 100], "LMDB": [200, 2000, 300]})
    ratio = found.ratio("publish_each", "page cache", "100", "PulsarX", "LMDB")
    assert (ratio.median, ratio.low, ratio.high) == (2, 2, 3)
    assert found.ratio("publish_each", "flushed", "100", "PulsarX", "LMDB") is None


def test_a_peer_without_lists_is_compared_with_its_best_way(table: ModuleType) -> None:
    found = figures(
        table,
        publish_stream={"Redis": [50]},
        publish_batch={"PulsarX": [10], "LMDB": [30]},
    )
    assert found.ratio("publish_batch", "page cache", "100", "PulsarX", "Redis").median == 5
    assert found.has_way("publish_batch", "page cache", "LMDB")
    assert not found.has_way("publish_batch", "page cache", "Redis")


def test_what_is_shown_is_what_was_measured(table: ModuleType) -> None:
    for path, text in table.outputs().items():
        assert path.read_text(encoding="utf-8") == text, (
            f"{path.name}: run PYTHONPATH=benchmarks python -m peers.table"
        )


def test_pictures_show_each_ratio(monkeypatch: pytest.MonkeyPatch, table: ModuleType) -> None:
    draw = peers_module(monkeypatch, "draw")
    found = table.Figures.read()
    for size in table.SIZES:
        text = (draw.PICTURES / f"peers-{size}.svg").read_text(encoding="utf-8")
        for ratio in table.cells(found, size, tuple(table.OURS)).values():
            assert f">{table.number(ratio.median)}×</text>" in text
    text = (draw.PICTURES / "peers-hand-over.svg").read_text(encoding="utf-8")
    for row in found.found["hand-over"].values():
        for name, times in row.items():
            assert f">{name}</text>" in text
            assert f">{table.time_text(statistics.median(times))}</text>" in text


def test_the_same_figures_make_the_same_picture(
    monkeypatch: pytest.MonkeyPatch, table: ModuleType
) -> None:
    draw = peers_module(monkeypatch, "draw")
    if importlib.util.find_spec("matplotlib") is None:
        pytest.skip("matplotlib is not installed: tools/bootstrap bench-peers")
    assert draw.outputs() == draw.outputs()
