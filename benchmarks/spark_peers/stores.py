"""What is compared: each store keeps keys and JSON values, and does the same works with them, as
its own documentation has them done. A place is a table or a topic of a store."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from peers.peer import Missing
from spark_peers import get
from spark_peers.broker import Broker
from spark_peers.values import COLUMNS, DDL, PARTS

PULSARX, FLUSHED, PARQUET, DELTA, KAFKA = "PulsarX", "PulsarX, flushed", "Parquet", "Delta", "Kafka"
LIVE = "live"
PACKAGE = "org.apache.spark.sql.delta"
# Those of Delta are settings of the whole session, as its documentation has them.
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": f"{PACKAGE}.catalog.DeltaCatalog",
    "spark.databricks.delta.properties.defaults.enableDeletionVectors": "true",
    # 50 without it: as many as a cluster has tasks for.
    "spark.databricks.delta.snapshotPartitions": "4",
}


def parsed(frame: Any, value: str = "value") -> Any:
    """JSON as columns, by Spark."""
    return frame.selectExpr(f"from_json({value}, '{DDL}') AS v").select("v.*")


def row_counts(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow

    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({"rows": [batch.num_rows]})


class Store:
    """The defaults. What a store cannot do has no place in `works`."""

    name = ""
    ours = False
    works: tuple[str, ...] = (
        "write", "read", "count", "groupBy", "stream", "topic to topic", "upsert",
        "read upserted", "latency",
    )  # fmt: skip

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._checkpoints: Iterator[int] = iter(range(1_000_000))

    def checkpoint(self) -> str:
        return str(self.folder / f"checkpoint-{next(self._checkpoints)}")

    def path(self, place: str) -> str:
        return str(self.folder / place)

    def create(self, place: str) -> None:
        """Make what must be there before it is written to; not timed."""

    def drop(self, place: str) -> None:
        shutil.rmtree(self.path(place), ignore_errors=True)

    def write(self, frame: Any, place: str) -> None:
        """frame: columns key and value, of text."""
        raise NotImplementedError

    def raw(self, place: str) -> Any:
        """A frame that is counted."""
        raise NotImplementedError

    def typed(self, place: str, columns: Sequence[str] = COLUMNS) -> Any:
        """columns: of the value; Spark chooses them by itself but for sources of Python."""
        raise NotImplementedError

    def typed_stream(self, place: str, latest: bool = False) -> Any:
        raise NotImplementedError

    def copy(self, place: str, to: str) -> Any:
        """A writer of a stream of all messages to another place."""
        raise NotImplementedError

    def upsert(self, changes: Any, place: str, version: int) -> None:
        raise NotImplementedError

    def newest(self, place: str) -> Any:
        """The newest value of each key."""
        raise NotImplementedError

    def live_place(self, place: str) -> str:
        """What live.py takes."""
        return self.path(place)

    def close(self) -> None:
        pass


class Topic(Store):
    """PulsarX. Rows are in the page cache when a write returns, as those of the others are."""

    name = PULSARX
    ours = True
    flush = False

    def __init__(self, spark: Any, folder: Path) -> None:
        super().__init__(spark, folder)
        import pulsarx
        import pulsarx.spark

        self.api = pulsarx.spark
        self.root = self.path("data")
        pulsarx.Client(self.root).close()
        pulsarx.spark.register(spark)
        self._pulsarx = pulsarx

    def create(self, place: str) -> None:
        with self._pulsarx.Client(self.root) as client:
            client.admin.topics.create_non_partitioned_topic(place)

    def drop(self, place: str) -> None:
        with self._pulsarx.Client(self.root) as client:
            client.admin.topics.delete(place, force=True)  # a lease of what was read is still there

    def write(self, frame: Any, place: str) -> None:
        rows = frame.selectExpr("value", "key AS __key")
        self.api.write_topic(rows, place, root=self.root, flush=self.flush)

    def raw(self, place: str) -> Any:
        return self.api.read_topic(self.spark, place, root=self.root, min_partitions=PARTS)

    def typed(self, place: str, columns: Sequence[str] = COLUMNS) -> Any:
        return self.api.read_topic(
            self.spark, place, root=self.root, schema=DDL, columns=columns, min_partitions=PARTS
        )

    def typed_count(self, place: str) -> Any:
        """The same columns, decoded as they are for a function, which hands on their number."""
        return self.api.map_topic(
            self.spark, place, row_counts, "rows long", root=self.root, columns=COLUMNS,
            value_format="json", value_schema=DDL, min_partitions=PARTS,
        )  # fmt: skip

    def typed_stream(self, place: str, latest: bool = False) -> Any:
        options = {"root": self.root, "topic": place, "valueFormat": "json"}
        options |= {"minPartitions": str(PARTS)}
        options |= {"startingOffsets": "latest" if latest else "earliest"}
        return self.spark.readStream.format("pulsarx").options(**options).schema(DDL).load()

    def copy(self, place: str, to: str) -> Any:
        options = {"root": self.root, "topic": place, "columns": "value, __key"}
        options |= {"minPartitions": str(PARTS), "startingOffsets": "earliest"}
        found = self.spark.readStream.format("pulsarx").options(**options).load()
        written = {"root": self.root, "topic": to, "flush": str(self.flush).lower()}
        return found.writeStream.format("pulsarx").options(**written)

    def upsert(self, changes: Any, place: str, version: int) -> None:
        rows = changes.selectExpr("value", "key AS __key")
        arguments = {"application": "comparison", "version": version, "flush": self.flush}
        self.api.upsert_topic(rows, place, root=self.root, **arguments)

    def newest(self, place: str) -> Any:
        columns = "value, __key, __ledgerId, __entryId, __batchIndex"
        found = self.api.read_topic(
            self.spark, place, root=self.root, columns=columns, min_partitions=PARTS
        )
        place_of = "struct(__ledgerId, __entryId, __batchIndex)"
        from pyspark.sql.functions import expr

        newest = found.groupBy("__key").agg(expr(f"max_by(value, {place_of}) AS value"))
        return parsed(newest, "string(value)")

    def live_place(self, place: str) -> str:
        return f"{self.root}#{place}"


class FlushedTopic(Topic):
    """With the flush to the device that is PulsarX's default, and that no other here does."""

    name = FLUSHED
    flush = True
    works = ("write", "topic to topic", "upsert")


class Parquet(Store):
    name = PARQUET
    works = ("write", "read", "count", "groupBy", "stream", "topic to topic", "latency")
    format = "parquet"

    def create(self, place: str) -> None:
        Path(self.path(place)).mkdir()

    def write(self, frame: Any, place: str) -> None:
        frame.write.format(self.format).mode("append").save(self.path(place))

    def raw(self, place: str) -> Any:
        return self.spark.read.schema("key string, value string").parquet(self.path(place))

    def typed(self, place: str, columns: Sequence[str] = COLUMNS) -> Any:
        return parsed(self.raw(place)).select(*columns)

    def raw_stream(self, place: str) -> Any:
        schema = "key string, value string"
        return self.spark.readStream.schema(schema).parquet(self.path(place))

    def typed_stream(self, place: str, latest: bool = False) -> Any:
        return parsed(self.raw_stream(place))

    def copy(self, place: str, to: str) -> Any:
        return self.raw_stream(place).writeStream.format(self.format).option("path", self.path(to))


class Delta(Parquet):
    name = DELTA
    works = Store.works
    format = "delta"

    def __init__(self, spark: Any, folder: Path) -> None:
        absent = get.missing_jars(get.DELTA)
        if absent or not get.has_packages():
            raise Missing(absent or "not fetched: delta-spark")
        super().__init__(spark, folder)

    def create(self, place: str) -> None:
        rows = self.spark.createDataFrame([], "key string, value string")
        # What live.py writes with knows no deletion vectors.
        vectors = str(place != LIVE).lower()
        writer = rows.write.format("delta").option("delta.enableDeletionVectors", vectors)
        writer.save(self.path(place))

    def raw(self, place: str) -> Any:
        return self.spark.read.format("delta").load(self.path(place))

    def raw_stream(self, place: str) -> Any:
        return self.spark.readStream.format("delta").load(self.path(place))

    def upsert(self, changes: Any, place: str, version: int) -> None:
        from delta.tables import DeltaTable

        table = DeltaTable.forPath(self.spark, self.path(place)).alias("t")
        merge = table.merge(changes.alias("s"), "t.key = s.key")
        merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()

    def newest(self, place: str) -> Any:
        return self.typed(place)


class Kafka(Store):
    """Spark's sink for it writes at least once; all others here are exactly once."""

    name = KAFKA

    def __init__(self, spark: Any, folder: Path, java: str) -> None:
        super().__init__(spark, folder)
        self._broker = Broker(folder / "broker", java)
        self._options = {"kafka.bootstrap.servers": self._broker.servers}

    def create(self, place: str) -> None:
        policy = "compact" if place.startswith("table") else "delete"
        self._broker.create(place, **{"cleanup.policy": policy})

    def drop(self, place: str) -> None:
        self._broker.delete(place)

    def write(self, frame: Any, place: str) -> None:
        frame.write.format("kafka").options(**self._options, topic=place).save()

    def raw(self, place: str) -> Any:
        options = self._options | {"subscribe": place}
        return self.spark.read.format("kafka").options(**options).load()

    def typed(self, place: str, columns: Sequence[str] = COLUMNS) -> Any:
        return parsed(self.raw(place), "string(value)").select(*columns)

    def raw_stream(self, place: str, latest: bool = False) -> Any:
        options = self._options | {"subscribe": place}
        options |= {"startingOffsets": "latest" if latest else "earliest"}
        return self.spark.readStream.format("kafka").options(**options).load()

    def typed_stream(self, place: str, latest: bool = False) -> Any:
        return parsed(self.raw_stream(place, latest), "string(value)")

    def copy(self, place: str, to: str) -> Any:
        found = self.raw_stream(place).select("key", "value")
        return found.writeStream.format("kafka").options(**self._options, topic=to)

    def upsert(self, changes: Any, place: str, version: int) -> None:
        """Into a topic that is compacted."""
        self.write(changes, place)

    def newest(self, place: str) -> Any:
        from pyspark.sql.functions import expr

        found = self.raw(place).groupBy("key").agg(expr("max_by(value, offset) AS value"))
        return parsed(found, "string(value)")

    def live_place(self, place: str) -> str:
        return f"{self._broker.servers}#{place}"

    def close(self) -> None:
        self._broker.close()
