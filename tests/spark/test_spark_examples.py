"""The README's Python for Spark and `make spark-demo` run, in the session of the tests."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python spark\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_there_are_blocks():
    assert BLOCKS


def test_the_blocks_of_the_readme_run(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    for block in BLOCKS:
        exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})


def test_the_demo_checks_what_spark_computed(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import spark_demo
    from flights import Flight

    flights = [
        Flight(
            ("AA", "UA", "B6")[number % 3],
            1_357_000_000_000 + number * 600_000,
            b'{"carrier":"%b","dep_delay":%b}'
            % ((b"AA", b"UA", b"B6")[number % 3], b"null" if number % 7 == 0 else b"%d" % number),
        )
        for number in range(600)
    ]
    monkeypatch.setattr(spark_demo, "read_flights", lambda: iter(flights))
    monkeypatch.setattr(spark_demo, "save_plot", lambda path, delays: False)
    assert spark_demo.main([str(tmp_path / "one")]) == 0
    assert "0 hours differ, 0 out of order" in capsys.readouterr().out
    monkeypatch.setattr(
        spark_demo, "expected", lambda flights, right=spark_demo.expected: right(flights[:-1])
    )
    assert spark_demo.main(["--flights", "100", str(tmp_path / "two")]) == 1
    assert "MISMATCH" in capsys.readouterr().out
    sys.modules.pop("spark_demo")
