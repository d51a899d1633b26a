"""format("pulsarx"): a topic as a Spark table and stream, both ways.

Found by its name when `pyspark_pulsarx` can be imported where Spark plans, else by
`pulsarx.spark.register(spark)`. Whatever is wrong with options, topics or columns is an error when
the query is planned.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSource

from pulsarx import errors
from pulsarx.spark.batch_reader import BatchReader, FilteringReader
from pulsarx.spark.batch_writer import BatchWriter
from pulsarx.spark.options import BATCH, SINK, STREAM, STREAM_SINK, of_stream, read_options
from pulsarx.spark.row_codec import columns_of, read_schema
from pulsarx.spark.stream_reader import StreamReader
from pulsarx.spark.stream_writer import StreamWriter
from pulsarx.spark.topic_columns import COLUMN_TYPES
from pulsarx.spark.topic_source import TopicSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.broker.offsets import Offsets
    from pulsarx.spark.options import Options


class PulsarxDataSource(DataSource):
    """Spark makes one for each DataFrame, and pickles it. Parameter names are Spark's."""

    _end: Offsets | None = None  # where a batch ends; settled with the schema

    @classmethod
    def name(cls) -> str:
        return "pulsarx"

    def schema(self) -> StructType:
        """Looks at the folder, too: the DataFrame is of what is published now."""
        options = self._read_options()
        source = TopicSource(options)
        try:
            self._end = source.latest()
            self._check_offsets(options, source)
        finally:
            source.close()
        return read_schema(options.columns or tuple(COLUMN_TYPES))

    def _check_offsets(self, options: Options, source: TopicSource) -> None:
        """Offsets of other topics are told early. Those that retention overtook are not: a stream
        that goes on from its checkpoint need not care."""
        planner = source.planner()
        for given in (options.startingOffsets, options.endingOffsets):
            if given is not None and planner is not None:
                try:
                    planner.resolve(given)
                except errors.DataLossError:
                    pass

    def _read_options(self) -> Options:
        """Spark does not say here whether it is for a stream, but some options do."""
        return read_options(self.options, STREAM if of_stream(self.options) else BATCH)

    def reader(self, schema: StructType) -> BatchReader:
        options = read_options(self.options, BATCH)
        kind = FilteringReader if options.filterPushdown else BatchReader
        return kind(options, columns_of(schema), self._end)

    def streamReader(self, schema: StructType) -> StreamReader:
        return StreamReader(read_options(self.options, STREAM), columns_of(schema))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        return BatchWriter(read_options(self.options, SINK), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        return StreamWriter(read_options(self.options, STREAM_SINK), schema, overwrite)


def register(spark: Any) -> None:
    """Make format("pulsarx") known to a Spark session, where it is not found by itself."""
    spark.dataSource.register(PulsarxDataSource)
