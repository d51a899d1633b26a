"""A driver of Spark that does the jobs that it is asked for, until it is killed. Run as a program:

    python killed_driver.py CLUSTER FOLDER SCRATCH

  local          tasks in the driver's Java, each tried four times
  local-cluster  two executors, which come and go with the work (dynamic allocation)
  hosts          two executors on two addresses; slow tasks are tried twice (speculation)

  copy           a stream from topic to topic
  each           a stream whose foreachBatch shuffles, and writes each batch twice by its number
  named          save() behind a shuffle, with txnAppId and txnVersion
  save           save() without them
  write_topic    the same by the function
  load           load(), and all that is in a topic is there
  read_topic     the same by the function

SCRATCH/ask has the number and what is asked, SCRATCH/answer-NUMBER what has failed, or nothing.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cluster_jobs import SETTINGS, start_cluster
from dying_batch import leave
from spark_steps import SMALL_JAVA, read, run_stream, small_session, write

from pulsarx.spark import read_topic, register, write_topic

KEYS = 5
COMMON = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.task.maxFailures": "4",
}
DYNAMIC = {
    "spark.executor.extraJavaOptions": SMALL_JAVA,
    "spark.executor.memory": "512m",
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": "2",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "4s",
}
CLUSTERS = ("local", "local-cluster", "hosts")


def session(cluster: str, scratch: Path) -> Any:
    if cluster == "local":
        return small_session(cluster, "local[2,4]", **COMMON)
    if cluster == "local-cluster":
        return small_session(cluster, "local-cluster[2,1,1024]", **COMMON, **DYNAMIC)
    return small_session(cluster, start_cluster(scratch), **SETTINGS | COMMON)


def delayed(slow: dict[str, float]) -> Callable[[Any], Any]:
    """A function of mapInArrow: the first attempts of some tasks wait in front of their end. By
    the number of the task, seconds."""

    def run(batches: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        seconds = slow.get(str(context.partitionId()), 0)
        if seconds and not context.attemptNumber():
            threading.Event().wait(seconds)

    return run


class Driver:
    """Does one job at a time."""

    def __init__(self, spark: Any, folder: Path, scratch: Path) -> None:
        self._spark = spark
        self._folder = folder
        self._scratch = scratch

    def copy(self, asked: dict[str, Any]) -> None:
        limits = {"maxMessagesPerTrigger": "60", "maxRecordsPerPartition": "20"}
        run_stream(self._spark, self._folder, "in", "copy", self._scratch / "copy", **limits)

    def each(self, asked: dict[str, Any]) -> None:
        folder, slow = self._folder, delayed(asked["slow"])

        def write_twice(frame: Any, batch: int) -> None:
            frame = frame.select("value", "__key").repartition("__key")
            frame = frame.mapInArrow(slow, frame.schema)
            options = {"root": folder, "application": "each", "version": batch}
            write_topic(frame, "each", **options)
            assert write_topic(frame, "each", **options).already

        given = {"root": str(folder), "topic": "in", "startingOffsets": "earliest"}
        source = self._spark.readStream.format("pulsarx")
        query = (
            source.options(**given, maxMessagesPerTrigger="60", maxRecordsPerPartition="20")
            .load()
            .writeStream.foreachBatch(write_twice)
            .option("checkpointLocation", str(self._scratch / "each"))
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(200):
            query.stop()
            raise AssertionError("the stream did not end")

    def _rows(self, asked: dict[str, Any]) -> Any:
        begin, end = asked["rows"]
        rows = self._spark.range(begin, end, numPartitions=4).selectExpr(
            "CAST(id AS string) AS value", f"CAST(id % {KEYS} AS string) AS __key"
        )
        return rows.mapInArrow(delayed(asked["slow"]), rows.schema)

    def named(self, asked: dict[str, Any]) -> None:
        rows = self._rows(asked).repartition("__key").sortWithinPartitions("__key", "value")
        version = {"txnAppId": "named", "txnVersion": str(asked["version"])}
        write(rows, self._folder, "named", **version)

    def save(self, asked: dict[str, Any]) -> None:
        write(self._rows(asked), self._folder, "save")

    def write_topic(self, asked: dict[str, Any]) -> None:
        write_topic(self._rows(asked), "write_topic", root=self._folder)

    def load(self, asked: dict[str, Any]) -> None:
        options = {"columns": "value", "maxRecordsPerPartition": "50"}
        self._is_whole(read(self._spark, self._folder, "in", **options), asked)

    def read_topic(self, asked: dict[str, Any]) -> None:
        options: dict[str, Any] = {"columns": "value", "max_records_per_partition": 50}
        frame = read_topic(self._spark, "in", root=self._folder, **options)
        self._is_whole(frame, asked)
        assert frame.count() == asked["published"], "counted otherwise"

    def _is_whole(self, frame: Any, asked: dict[str, Any]) -> None:
        frame = frame.mapInArrow(delayed(asked["slow"]), frame.schema)
        found = sorted(int(row["value"]) for row in frame.collect())
        assert found == list(range(asked["published"])), f"read {found}"


JOBS = ("copy", "each", "named", "save", "write_topic", "load", "read_topic")


def main(cluster: str, folder: Path, scratch: Path) -> None:
    spark = session(cluster, scratch)
    spark.sparkContext.setLogLevel("OFF")
    # Where the Python that looks for formats is killed, a session would know none any more.
    register(spark)
    driver = Driver(spark, folder, scratch)
    leave(scratch / "lives")
    ask, patience, last = scratch / "ask", threading.Event(), -1
    while True:
        asked = json.loads(ask.read_text())
        if asked["number"] == last:
            patience.wait(0.01)
            continue
        last = asked["number"]
        answer: dict[str, str] = {}
        try:
            getattr(driver, asked["job"])(asked)
        except AssertionError as error:
            answer = {"wrong": str(error)}
        except Exception as error:
            answer = {"failed": str(error)}
        leave(scratch / f"answer-{last}", json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
