"""Spark Connect: format("pulsarx") and the functions of DataFrames, with the folder on the server.
Runs where the packages of its client are installed, as `make test-spark-versions` has them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarx

for package in ("pyspark", "grpc", "grpc_status", "zstandard"):
    pytest.importorskip(package, reason=f"no {package}: make test-spark-versions installs it")

from pulsarx.spark.java_runtime import JavaNotFoundError, find_java  # noqa: E402

HERE = Path(__file__).parent
TREE = str(Path(pulsarx.__file__).parents[1])
LIMIT_SECONDS = 300


@pytest.mark.standard
def test_a_topic_is_written_and_read_by_spark_connect(folder: Path) -> None:
    try:
        find_java()
    except JavaNotFoundError as error:
        pytest.skip(str(error))
    pulsarx.Client(folder).close()
    paths = [TREE, str(HERE), os.environ.get("PYTHONPATH", "")]
    ran = subprocess.run(
        [sys.executable, str(HERE / "connect_steps.py"), str(folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    twice = sorted([*range(30), *range(30)])
    assert f"format {twice}\nread_topic {twice}\n" in ran.stdout, ran.stderr[-4000:]
