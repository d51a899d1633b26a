"""What is written for users of Spark is true: the Python of both pages runs, in the session of the
tests, their tables name what the code has, and `make spark-demo` notices what is wrong."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import pulsarx.spark
from pulsarx.spark.options import OPTIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
CATALOGUES = (ROOT / "docs" / "spark-catalogues.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "spark" / "README.md").read_text(encoding="utf-8")


def test_the_blocks_run_in_the_order_of_the_text(
    spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    text = PAGE + GUIDE + CATALOGUES
    blocks = re.findall(r"^```python spark\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == text.count("```python")
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "docs/spark.md", "exec"), {"__name__": "__main__"})
    with pulsarx.Client("shop") as client:
        stats = client.admin.topics.stats
        assert [stats(topic)["messages"] for topic in ("totals", "archive")] == [3, 100]
        assert stats("clicks")["subscriptions"]["archiver"]["msg_backlog"] == 0


def test_a_view_ends_where_the_topic_did(spark, folder: Path, publish):
    publish("t", 5)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW v USING pulsarx OPTIONS (root '{folder}', topic 't')"
    )
    publish("t", 3, first=5)
    assert spark.table("v").count() == 5


def test_the_functions_are_named():
    items = PAGE[PAGE.index("- `session(") :].split("\n\n")[0]
    first = re.findall(r"^- (.*?):", items, re.MULTILINE)
    named = set(re.findall(r"`(\w+)[`(]", " ".join(first)))
    assert named <= set(pulsarx.spark.__all__)
    assert [name for name in pulsarx.spark.__all__ if f"`{name}" not in PAGE] == []


def test_the_table_of_options_is_complete():
    """Names, what they are for, and defaults, which are read as the option is."""
    table = GUIDE.split("## Options of ")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (?:`(\w+)` )?\| ([\w, ]+?) \|", table, re.MULTILINE)
    told = {name: (default, tuple(uses.split(", "))) for name, default, uses in rows}
    missing = [
        f"| `{name}` | {default} | {', '.join(uses)} | {meaning} |"
        for name, _, default, uses, meaning in OPTIONS
        if name not in told
    ]
    assert not missing, "\n".join(["rows to add:", *missing])
    assert set(told) == {row[0] for row in OPTIONS}
    for name, read, default, uses, _ in OPTIONS:
        text, told_uses = told[name]
        assert told_uses == uses, name
        assert (read(text) if text else None) == (default or None) or read(text) == default, name


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
    said = capsys.readouterr().out
    assert "0 hours differ, 0 out of order" in said
    assert said.splitlines()[-1].startswith("No plot was drawn: ")
    monkeypatch.setattr(
        spark_demo, "expected", lambda flights, right=spark_demo.expected: right(flights[:-1])
    )
    monkeypatch.setattr(spark_demo, "save_plot", lambda path, delays: True)
    assert spark_demo.main(["--flights", "100", str(tmp_path / "two")]) == 1
    *_, verdict, plot = capsys.readouterr().out.splitlines()
    assert "MISMATCH" in verdict and plot.endswith(f": {tmp_path / 'two.png'}")
    sys.modules.pop("spark_demo")
