"""Spark on several hosts, as docs/spark-cluster.md has it: the program of the page, and Pythons
that take longer to start than the 10 seconds of Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from driver_process import HERE
from prepared_python import PreparedPython
from slow_python import write_slow
from spark_steps import make_topics

import pulsarx

ROOT = HERE.parents[1]
SOURCE = "pyspark.sql.streaming.python_streaming_source_runner"
LATE = "Python worker failed to connect back"


@pytest.mark.long
@pytest.mark.needs("_pulsar", "starlette", "uvicorn")
def test_the_program_of_the_page_finds_every_number(
    worker_python: PreparedPython, tmp_path: Path
) -> None:
    """Workers of a standalone cluster, with the folder, without it, and over pulsar://."""
    command = [sys.executable, str(ROOT / "examples" / "spark_cluster.py"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("right: ") == 6 and "All is right." in done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    ("slow", "settings", "late"),
    [
        (f"{SOURCE}=12", {}, {"stream"}),
        # What else Spark waits for has other limits.
        (f"{SOURCE}=12", {"spark.python.authenticate.socketTimeout": "120s"}, {"stream"}),
        ("pyspark.worker=12", {}, set()),
        ("pyspark.worker=12", {"spark.python.use.daemon": "false"}, {"table", "stream"}),
    ],
)
def test_spark_waits_ten_seconds_for_a_python_without_a_daemon(
    tmp_path: Path,
    slow: str,
    settings: dict[str, str],
    late: set[str],
    worker_python: PreparedPython,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a process of its own, with the Python that Spark starts by itself."""
    folder, site = tmp_path / "data", tmp_path / "site"
    site.mkdir()
    write_slow(site)
    make_topics(folder, "in", "out")
    with pulsarx.Client(folder) as client:
        client.create_producer("in").send_many([b"1", b"2", b"3"])
    paths = [str(site), os.environ["PYTHONPATH"]]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("SLOW", slow)
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name)
    places = [str(folder), str(tmp_path / "checkpoint"), json.dumps(settings)]
    command = [sys.executable, str(HERE / "slow_python.py"), *places]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert {name for name, text in found.items() if LATE in text} == late, found
    assert "table" in late or found["table"] == "3"
    if not late:
        assert int(found["stream"]) >= 1
