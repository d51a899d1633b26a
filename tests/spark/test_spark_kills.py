"""Whatever is killed of a real Spark, each message that a query or a job writes is there once, and
what is read is whole: Python workers and their daemons, what plans and commits, the source of a
stream, executors, drivers. Tasks are tried again, and beside themselves; executors come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from counts import counted
from killed_driver import CLUSTERS
from prepared_python import PreparedPython
from seeds import new_seed, scaled
from spark_kills import SparkKills


@pytest.mark.long
@pytest.mark.parametrize("cluster", CLUSTERS)
def test_whatever_is_killed_of_spark_each_message_is_there_once(
    worker_python: PreparedPython, tmp_path: Path, cluster: str
) -> None:
    kills = SparkKills(cluster, tmp_path, new_seed())
    try:
        kills.run(scaled(25))
    finally:
        print(kills.report())
    counted(len(kills.killed), "kills of a real Spark")
