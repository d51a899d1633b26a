"""A driver in a process of its own. Its first session says what it was told, reads, and is stopped;
its second one begins three writes, each of which stops at its point and waits to be killed. Run as
a program:

    python other_driver.py OWNED OTHER CHECKPOINTS NOTES

  session   what the first session found, JSON; it has read the topic `read` of the folder OTHER
  batch     numbers, into the topic `t` of OTHER, before its commit
  copy      a stream of the topic of OWNED, behind the commit of its first batch
  counts    the counts of its keys, behind what foreachBatch has written of the first batch

Of the writes Spark has noted nothing then. Each of these files in NOTES says that it is so far.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from dying_batch import DyingBatchSource, leave
from dying_source import DyingSource
from living_owner import start_copy, start_counts
from numbered_rows import write_numbers
from spark_steps import SMALL_JAVA, small_session

from pulsarx.spark import read_topic, session
from pulsarx.spark.lease_keeper import keeper

WRITES = ("batch", "copy", "counts")
TOLD = ("python.unix.domain.socket.enabled", "ui.enabled", "ui.showConsoleProgress", "master")


def first_session(root: Path) -> dict[str, Any]:
    """As a user begins one; workers of tasks are the Python that it finds by itself."""
    prepared = os.environ.pop("PYSPARK_PYTHON")
    spark: Any = session(conf={"spark.driver.extraJavaOptions": f"-Dtold=1 {SMALL_JAVA}"})
    conf = spark.sparkContext.getConf()
    told = {name: conf.get(f"spark.{name}") for name in TOLD}
    told["java"] = spark.sparkContext._jvm.System.getProperty("told")
    python = spark.sparkContext.parallelize([1], 1).map(lambda _: sys.executable).collect()
    frame = read_topic(spark, "read", root=root)
    found = {"told": told, "python": python, "rows": frame.count(), "kept": len(keeper._kept)}
    spark.stop()
    keeper.look()
    os.environ["PYSPARK_PYTHON"] = prepared
    return found | {"kept when stopped": len(keeper._kept)}


def stop_in_writes(owned: Path, other: Path, checkpoints: Path, notes: Path) -> None:
    settings = {"spark.python.unix.domain.socket.enabled": "true", "spark.ui.enabled": "false"}
    spark = small_session("stopping", "local[2]", **settings)
    spark.dataSource.register(DyingBatchSource)
    spark.dataSource.register(DyingSource)

    def stop() -> None:
        leave(notes / "counts")
        threading.Event().wait()

    def write_batch() -> None:
        write_numbers(session(), other, notes / "batch", "wait")

    threading.Thread(target=write_batch, daemon=True).start()
    dying = {"dieAt": "after", "wait": "yes", "marker": str(notes / "copy")}
    start_copy(spark, owned, checkpoints, sink_format="pulsarx-dying", sink_options=dying)
    start_counts(spark, owned, checkpoints, behind=stop)


def main(owned: Path, other: Path, checkpoints: Path, notes: Path) -> None:
    leave(notes / "session", json.dumps(first_session(other)))
    stop_in_writes(owned, other, checkpoints, notes)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
