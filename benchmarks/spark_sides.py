"""A Spark session in a process of its own, and both sides of every row that is measured in it.

`spark_sides.py <folder> tcp|uds`: reads a line of JSON, [what, {arguments}], does it, writes a line
of JSON, {"answer": ...} or {"error": text}; until the end of its input. The parent is SparkProcess.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import spark_ceiling
from spark_data import FLIGHT_AVRO, FLIGHT_DDL, PARTS, VALUE_SIZE, SparkData, make_root

import pulsarx.spark as pulsarx_spark
from pulsarx.spark.partition_reader import PASSED_BYTES_MAX, read_partitions

# Of the flights, what is asked for, and what the mapping function makes of it.
TYPED_DDL = "carrier string, arr_delay int, distance int"
MAPPED_DDL = "carrier string, delay long, distance long, flights long"
# Each ledger and each Parquet file a task, however large: both sides have PARTS of them.
PART_BYTES_MAX = 8 << 30


class Sides:
    """What can be asked for: the public methods, by their names."""

    def __init__(self, folder: Path, sockets: str) -> None:
        self.folder = folder
        self.data = SparkData(folder, 0)
        self.shapes: spark_ceiling.Shapes = []
        self.spark = pulsarx_spark.session(
            "benchmark",
            "local[2]",
            {
                "spark.python.unix.domain.socket.enabled": str(sockets == "uds").lower(),
                "spark.driver.memory": "4g",
                "spark.local.dir": str(folder / "spark"),
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.sql.shuffle.partitions": "2",
            },
        )
        self.spark.sparkContext.setLogLevel("ERROR")
        pulsarx_spark.register(self.spark)
        self.spark.dataSource.register(spark_ceiling.CeilingSource)
        self.spark.dataSource.register(spark_ceiling.NothingSink)

    def use(self, folder: str, messages: int) -> None:
        """From now on these messages; the ceilings get the shape that PulsarX's batches have."""
        self.data = SparkData(Path(folder), messages)
        groups = pulsarx_spark.plan_topic(
            self.data.root, "plain", columns="value", lease_ms=0, **self._parts()
        )
        self.shapes = [
            [each.num_rows for each in read_partitions(group, max_bytes=PASSED_BYTES_MAX)]
            for group in groups
        ]
        largest = max(path.stat().st_size for path in self.data.parquet.glob("*.parquet"))
        self.spark.conf.set("spark.sql.files.maxPartitionBytes", str(largest))

    @staticmethod
    def _parts() -> dict[str, int]:
        return {"min_partitions": PARTS, "max_bytes_per_partition": PART_BYTES_MAX}

    # Frames to read -------------------------------------------------------------------------------

    def parquet(self) -> Any:
        return self.spark.read.schema("value binary").parquet(str(self.data.parquet))

    def source_ceiling(self) -> Any:
        options = {"shapes": json.dumps(self.shapes), "valueSize": str(VALUE_SIZE)}
        return self.spark.read.format("ceiling").options(**options).load()

    def source(self, topic: str = "plain", columns: str | None = "value") -> Any:
        options = {"root": str(self.data.root), "topic": topic}
        options |= {"minPartitions": str(PARTS), "maxBytesPerPartition": str(PART_BYTES_MAX)}
        options |= {"columns": columns} if columns else {}
        return self.spark.read.format("pulsarx").options(**options).load()

    def topic_ceiling(self) -> Any:
        function = functools.partial(
            spark_ceiling.yield_prebuilt, shapes=self.shapes, value_size=VALUE_SIZE
        )
        count = len(self.shapes)
        return self.spark.range(0, count, 1, count).mapInArrow(function, "value binary")

    def topic(self, topic: str = "plain", columns: str | None = "value") -> Any:
        return pulsarx_spark.read_topic(
            self.spark, topic, root=self.data.root, columns=columns, **self._parts()
        )

    def small_topics(self, root: str, topics: list[str]) -> Any:
        """As whoever asks for nothing else gets it."""
        return pulsarx_spark.read_topic(self.spark, topics, root=root, columns="value")

    def flights_parsed(self, folder: str) -> Any:
        """Parsed by Spark."""
        options = {"root": f"{folder}/data", "topic": "flights", "columns": "value"}
        found = self.spark.read.format("pulsarx").options(minPartitions=str(PARTS), **options)
        text = found.load().selectExpr("string(value) AS value")
        return self._delays(text.selectExpr(f"from_json(value, '{FLIGHT_DDL}') AS v"), "v.")

    def flights_parquet(self, folder: str) -> Any:
        text = self.spark.read.schema("value string").parquet(f"{folder}/parquet")
        return self._delays(text.selectExpr(f"from_json(value, '{FLIGHT_DDL}') AS v"), "v.")

    def flights_typed(self, folder: str) -> Any:
        """Decoded in the tasks that read."""
        options = {"root": f"{folder}/data", "topic": "flights", "valueFormat": "json"}
        found = self.spark.read.format("pulsarx").options(minPartitions=str(PARTS), **options)
        return self._delays(found.schema(TYPED_DDL).load(), "")

    def flights_avro(self, folder: str) -> Any:
        options = {"root": f"{folder}/data", "topic": "avro", "valueFormat": "avro"}
        options |= {"columns": "carrier, arr_delay, distance", "minPartitions": str(PARTS)}
        found = self.spark.read.format("pulsarx").options(**options)
        return self._delays(found.option("valueSchema", json.dumps(FLIGHT_AVRO)).load(), "")

    def flights_map(self, folder: str) -> Any:
        """By a function of columns, which gets them where they are decoded."""
        found = pulsarx_spark.map_topic(
            self.spark,
            "flights",
            spark_ceiling.sum_delays,
            MAPPED_DDL,
            root=f"{folder}/data",
            value_format="json",
            value_schema=TYPED_DDL,
            columns="carrier, arr_delay, distance",
            min_partitions=PARTS,
        )
        return self._sums(found)

    def flights_avro_map(self, folder: str) -> Any:
        found = pulsarx_spark.map_topic(
            self.spark,
            "avro",
            spark_ceiling.sum_delays,
            MAPPED_DDL,
            root=f"{folder}/data",
            value_format="avro",
            value_schema=json.dumps(FLIGHT_AVRO),
            columns="carrier, arr_delay, distance",
            min_partitions=PARTS,
        )
        return self._sums(found)

    def flights_parquet_map(self, folder: str) -> Any:
        """By the same function behind Spark's parser."""
        text = self.spark.read.schema("value string").parquet(f"{folder}/parquet")
        parsed = text.selectExpr(f"from_json(value, '{TYPED_DDL}') AS v").select("v.*")
        return self._sums(parsed.mapInArrow(spark_ceiling.sum_delays, MAPPED_DDL))

    @staticmethod
    def _sums(frame: Any) -> Any:
        return frame.groupBy("carrier").sum("delay", "distance", "flights").orderBy("carrier")

    @staticmethod
    def _delays(frame: Any, prefix: str) -> Any:
        names = [f"{prefix}{name} AS {name}" for name in ("carrier", "arr_delay", "distance")]
        found = frame.selectExpr(*names).groupBy("carrier")
        return found.agg({"*": "count", "arr_delay": "sum", "distance": "sum"}).orderBy("carrier")

    def rows(self, frame: str, **arguments: Any) -> list[list[Any]]:
        """What a frame of few rows holds."""
        return [list(row) for row in getattr(self, frame)(**arguments).collect()]

    def parquet_map(self) -> Any:
        return self.parquet().mapInArrow(spark_ceiling.sum_sizes, "size long")

    def topic_map(self) -> Any:
        return pulsarx_spark.map_topic(
            self.spark,
            "plain",
            spark_ceiling.sum_sizes,
            "size long",
            root=self.data.root,
            columns="value",
            **self._parts(),
        )

    def read(self, frame: str, **arguments: Any) -> None:
        """Every row of a frame, all its columns, into Spark's sink for nothing."""
        getattr(self, frame)(**arguments).write.format("noop").mode("overwrite").save()

    def count(self, frame: str, **arguments: Any) -> int:
        return int(getattr(self, frame)(**arguments).count())

    def amounts(self, frame: str, **arguments: Any) -> dict[str, int]:
        """How much that is: so that nothing is compared with less."""
        found = getattr(self, frame)(**arguments)
        size = "sum(size)" if frame.endswith("_map") else "sum(octet_length(value))"
        # What the mapping functions answer is a row a batch, so their rows say nothing.
        rows = "0" if frame.endswith("_map") else "count(1)"
        row = found.selectExpr(f"{rows} as messages", f"{size} as bytes").first()
        return {
            "messages": row["messages"],
            "bytes": row["bytes"],
            "tasks": found.rdd.getNumPartitions(),
        }

    # Writing --------------------------------------------------------------------------------------

    @property
    def _written(self) -> Path:
        return self.folder / "written"

    def clean(self) -> None:
        """What was written goes, its dirty pages with it, and an empty topic is there."""
        shutil.rmtree(self._written, ignore_errors=True)
        self._written.mkdir()
        make_root(self._written / "data", "out")
        os.sync()

    def write_parquet(self) -> None:
        writer = self.parquet().write.option("compression", "none")
        writer.parquet(str(self._written / "parquet"))

    def save(self, flush: bool = True) -> None:
        options = {"root": str(self._written / "data"), "topic": "out", "flush": str(flush)}
        self.parquet().write.format("pulsarx").options(**options).mode("append").save()

    def write_topic(self, flush: bool = True) -> None:
        pulsarx_spark.write_topic(self.parquet(), "out", root=self._written / "data", flush=flush)

    def written(self) -> dict[str, int]:
        """What is in the topic now."""
        groups = pulsarx_spark.plan_topic(self._written / "data", "out", lease_ms=0)
        ranges = [each for group in groups for each in group]
        count = sum(each.end_message - each.first_message for each in ranges)
        return {"messages": count, "ledgers": len(ranges)}

    # A stream -------------------------------------------------------------------------------------

    def stream(self, sink: str, messages_per_batch: int) -> list[float]:
        """The whole topic `trickle`, batch by batch; how many milliseconds each took. The first,
        in which the query starts, is left out."""
        options = {"root": str(self.data.root), "topic": "trickle", "columns": "value"}
        options |= {"startingOffsets": "earliest", "maxMessagesPerTrigger": str(messages_per_batch)}
        writer = (
            self.spark.readStream.format("pulsarx").options(**options).load().writeStream
        ).format(sink)
        if sink == "pulsarx":
            writer = writer.options(root=str(self._written / "data"), topic="out")
        query = (
            writer.option("checkpointLocation", str(self._written / f"checkpoint-{sink}"))
            .trigger(availableNow=True)
            .start()
        )
        if not query.awaitTermination(300):
            query.stop()
            raise RuntimeError("the stream did not end")
        batches = [each for each in query.recentProgress if each.numInputRows]
        return [float(each.durationMs["triggerExecution"]) for each in batches[1:]]


def answer(sides: Sides, line: str) -> dict[str, Any]:
    what, arguments = json.loads(line)
    method: Callable[..., Any] = getattr(sides, what)
    try:
        return {"answer": method(**arguments)}
    except Exception:
        return {"error": traceback.format_exc()}


def main(folder: Path, sockets: str) -> None:
    # Java and the workers write where they like: answers have a file of their own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sides = Sides(folder, sockets)
    for line in sys.stdin:
        print(json.dumps(answer(sides, line)), file=answers, flush=True)
    sides.spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
