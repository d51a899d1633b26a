"""What a source, a mapping function and a sink in Python cost before they do anything: the ceilings
that PulsarX is measured against. Imported by the workers of Spark."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    InputPartition,
    WriterCommitMessage,
)

Shapes = list[list[int]]  # rows of each batch, of each Spark partition


@functools.cache
def prebuilt(rows: int, value_size: int) -> Any:
    """One batch a worker, made before it is measured: workers live on after the warm-up."""
    import numpy

    content = numpy.random.default_rng(rows).bytes(rows * value_size)
    offsets = numpy.arange(rows + 1, dtype=numpy.int32) * value_size
    buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content)]
    return pa.record_batch([pa.Array.from_buffers(pa.binary(), rows, buffers)], ["value"])


def again_and_again(shape: list[int], value_size: int) -> Iterator[Any]:
    """As many batches, of as many rows and bytes, as the topic's reader yields there."""
    if not shape:
        return
    batch = prebuilt(max(shape), value_size)
    for rows in shape:
        yield batch if rows == batch.num_rows else batch.slice(0, rows)


def yield_prebuilt(ids: Iterator[Any], shapes: Shapes, value_size: int) -> Iterator[Any]:
    """A function for mapInArrow, over a frame of one number a Spark partition."""
    for batch in ids:
        for index in batch.column(0).to_pylist():
            yield from again_and_again(shapes[index], value_size)


def sum_sizes(batches: Iterator[Any]) -> Iterator[Any]:
    """The Python work of the mapping rows: how many bytes the values of each batch have."""
    import pyarrow.compute as pc

    for batch in batches:
        total = pc.sum(pc.binary_length(batch.column(0))).as_py()
        yield pa.record_batch([pa.array([total], pa.int64())], ["size"])


def sum_delays(batches: Iterator[Any]) -> Iterator[Any]:
    """The Python work of the mapping rows of typed columns: delays and distances by carrier."""
    sums = [("arr_delay", "sum"), ("distance", "sum"), ("carrier", "count")]
    for batch in batches:
        found = pa.Table.from_batches([batch]).group_by("carrier").aggregate(sums)
        names = ("carrier", "arr_delay_sum", "distance_sum", "carrier_count")
        columns = [found[name].combine_chunks() for name in names]
        yield pa.record_batch(columns, ["carrier", "delay", "distance", "flights"])


class CeilingSource(DataSource):
    """Yields one prebuilt batch again and again. Options: shapes as JSON, valueSize."""

    @classmethod
    def name(cls) -> str:
        return "ceiling"

    def schema(self) -> str:
        return "value binary"

    def reader(self, schema: Any) -> DataSourceReader:
        return CeilingReader(json.loads(self.options["shapes"]), int(self.options["valueSize"]))


class CeilingReader(DataSourceReader):
    def __init__(self, shapes: Shapes, value_size: int) -> None:
        self.shapes = shapes
        self.value_size = value_size

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(shape) for shape in self.shapes]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return again_and_again(partition.value, self.value_size)


class NothingSink(DataSource):
    """A stream sink that takes every batch and does nothing with it."""

    @classmethod
    def name(cls) -> str:
        return "nothing"

    def schema(self) -> str:
        return "value binary"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamArrowWriter:
        return NothingWriter()


class NothingWriter(DataSourceStreamArrowWriter):
    def write(self, iterator: Iterator[Any]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Any, batchId: int) -> None:
        pass

    def abort(self, messages: Any, batchId: int) -> None:
        pass
