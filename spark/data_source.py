"""format("pulsarx"): a topic as a Spark table and stream, both ways.

Found by its name when `pyspark_pulsarx` can be imported where Spark plans, else by
`pulsarx.spark.register(spark)`. Whatever is wrong with options, topics or columns is an error when
the query is planned.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource

from pulsarx import errors
from pulsarx.spark.batch_reader import (
    PUSHED_STAY_APART,
    BatchReader,
    FilteringReader,
    Snapshot,
)
from pulsarx.spark.batch_writer import BatchWriter
from pulsarx.spark.cluster_reader import (
    ClusterBatchReader,
    ClusterSnapshot,
    ClusterStreamReader,
)
from pulsarx.spark.cluster_topics import AwaitingTopics
from pulsarx.spark.cluster_writer import ClusterBatchWriter, ClusterStreamWriter
from pulsarx.spark.options import BATCH, SINK, STREAM, STREAM_SINK, of_stream, read_options
from pulsarx.spark.stream_reader import StreamReader
from pulsarx.spark.stream_writer import StreamWriter
from pulsarx.spark.topic_columns import COLUMN_TYPES, columns_of, read_schema
from pulsarx.spark.topic_source import TopicSource
from pulsarx.spark.value_format import FormatPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.spark.options import Options
    from pulsarx.spark.value_format import ValueFormat


class PulsarxDataSource(DataSource):
    """Spark makes one for each DataFrame, and pickles it. Parameter names are Spark's."""

    _snapshot: Snapshot | ClusterSnapshot | None = None

    @classmethod
    def name(cls) -> str:
        return "pulsarx"

    def schema(self) -> StructType:
        """Looks at the folder, too: the DataFrame is of what is published now."""
        options = self._read_options()
        try:
            self._snapshot = _snapshot_of(options)
        except errors.DataLossError:
            pass  # a stream that goes on from its checkpoint need not care; the reader tells
        except errors.TopicNotFound:
            if options.topicsPattern is None and not options.waitForTopic:
                raise
        if options.valueFormat != "raw":
            return plan_format(options).schema(options.columns)
        return read_schema(options.columns or tuple(COLUMN_TYPES))

    def __getstate__(self) -> dict[str, Any]:
        """With a given schema Spark does not call schema(), but pickles it before the first of all
        queries: settled here, they all are of the same messages."""
        if self._snapshot is None:
            try:
                self._snapshot = _snapshot_of(read_options(self.options, BATCH))
            except Exception:
                pass  # a write, or a stream; or it is told when the query is planned
        return self.__dict__

    def _read_options(self) -> Options:
        """Spark does not say here whether it is for a stream."""
        try:
            return read_options(self.options, BATCH)
        except ValueError as flaw:
            try:
                return read_options(self.options, STREAM)
            except ValueError as flaw_of_stream:
                if of_stream(self.options):
                    raise flaw_of_stream from None
                raise ValueError(str(flaw).removeprefix(f"{BATCH}.")) from None

    def reader(self, schema: StructType) -> BatchReader | ClusterBatchReader:
        options = read_options(self.options, BATCH)
        columns, values = _columns(schema, options)
        if self._snapshot is None:
            self._snapshot = _snapshot_of(options)
        if isinstance(self._snapshot, ClusterSnapshot):
            return ClusterBatchReader(options, columns, values, self._snapshot)
        kind = FilteringReader if options.filterPushdown and PUSHED_STAY_APART else BatchReader
        return kind(options, columns, values, self._snapshot)

    def streamReader(self, schema: StructType) -> StreamReader | ClusterStreamReader:
        options = read_options(self.options, STREAM)
        kind = ClusterStreamReader if options.of_cluster else StreamReader
        return kind(options, *_columns(schema, options))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter | ClusterBatchWriter:
        options = read_options(self.options, SINK)
        kind = ClusterBatchWriter if options.of_cluster else BatchWriter
        return kind(options, schema, overwrite)

    def streamWriter(
        self, schema: StructType, overwrite: bool
    ) -> StreamWriter | ClusterStreamWriter:
        options = read_options(self.options, STREAM_SINK)
        kind = ClusterStreamWriter if options.of_cluster else StreamWriter
        return kind(options, schema, overwrite)


def _snapshot_of(options: Options) -> Snapshot | ClusterSnapshot:
    return ClusterSnapshot(options) if options.of_cluster else Snapshot(options)


def _columns(schema: StructType, options: Options) -> tuple[tuple[str, ...], ValueFormat | None]:
    """Return the columns that are read of messages, and how the value becomes columns; None: it
    does not. ValueError: the schema is not that of a topic, or not that of option columns."""
    values = None
    if options.valueFormat == "raw":
        found = columns_of(schema)
    else:
        values = plan_format(options).of_schema(schema)
        found = values.columns
    if options.columns is not None and options.columns != found:
        raise ValueError(
            f"the schema has the columns {', '.join(found)}, and option columns says "
            f"{', '.join(options.columns)}. Give one of them"
        )
    return (found, None) if values is None else (values.read_columns, values)


def plan_format(options: Options) -> FormatPlan:
    """Looks at the folder for the schemas of the topics."""
    if options.of_cluster:
        found: Any = AwaitingTopics(options)
        return FormatPlan(
            options.valueFormat,
            options.mode,
            options.valueSchema,
            found,
            list(found.topics),
            options.rules,
            options.columnNameOfCorruptRecord,
        )
    source = TopicSource(options)
    try:
        planner = source.planner()
        return FormatPlan(
            options.valueFormat,
            options.mode,
            options.valueSchema,
            source.broker,
            planner.topics if planner is not None else [],
            options.rules,
            options.columnNameOfCorruptRecord,
        )
    finally:
        source.close()


def register(spark: Any) -> None:
    """Make format("pulsarx") known to a Spark session, where it is not found by itself.

    Args:
        spark: The session.
    """
    spark.dataSource.register(PulsarxDataSource)
