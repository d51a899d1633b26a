"""The batch reader of format("pulsarx"): what is read is settled in the driver, a Spark partition
maps ledger files.

The end is settled when the DataFrame is made, so that all its queries see the same messages.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from pulsarx import errors
from pulsarx.broker.ledger_range import group_ranges
from pulsarx.spark.partition_reader import read_partitions
from pulsarx.spark.row_codec import PUBLISH_TIME, TOPIC
from pulsarx.spark.topic_source import TopicSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pyspark.sql.datasource import Filter

    from pulsarx.broker.ledger_range import LedgerRange
    from pulsarx.broker.offsets import Offsets
    from pulsarx.spark.options import Options

_ATTEMPTS_MAX = 3  # while retention removes ledgers between planning and leasing


class LedgerPartition(InputPartition):
    """One Spark partition: consecutive ledger ranges of one topic partition. Pickles."""

    def __init__(self, ranges: list[LedgerRange]) -> None:
        super().__init__(None)
        self.ranges = ranges


def make_partitions(ranges: list[LedgerRange], options: Options) -> list[LedgerPartition]:
    """Small neighbours together, but not below minPartitions."""
    target = options.maxBytesPerPartition
    if options.maxRecordsPerPartition is not None:
        target = 1
    if options.minPartitions:
        target = min(target, sum(each.size for each in ranges) // options.minPartitions)
    return [LedgerPartition(group) for group in group_ranges(ranges, target)]


def read_partition(partition: InputPartition) -> Iterator[Any]:
    """Spark makes a partition without ranges when there is nothing to read."""
    return read_partitions(getattr(partition, "ranges", []))


class BatchReader(DataSourceReader):
    """Plans in the driver, reads in workers."""

    def __init__(self, options: Options, columns: tuple[str, ...], end: Offsets | None) -> None:
        """end: where the DataFrame ends; None: here and now."""
        self._options = options
        self._columns = columns
        self._from_ms: int | None = options.startingTimestamp
        self._until_ms: int | None = options.endingTimestamp
        self._topics: set[str] | None = None
        source = TopicSource(options)
        try:
            self._end = source.latest() if end is None else end
            # What is wrong with offsets is told before anything is read.
            self._start = self._resolve_start(source)
            if options.endingOffsets is not None:
                self._end = source.require().resolve(
                    options.endingOffsets,
                    fail_on_data_loss=options.failOnDataLoss,
                    complete=options.endingOffsets.startswith("{"),
                )
        finally:
            source.close()

    def _resolve_start(self, source: TopicSource) -> Offsets:
        given = self._options.startingOffsets or "earliest"
        return source.require().resolve(given, fail_on_data_loss=self._options.failOnDataLoss)

    def partitions(self) -> list[InputPartition]:
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            ranges = self._plan()
            try:
                self._lease(ranges)
                break
            except errors.NotAllowedError:
                if attempt == _ATTEMPTS_MAX:
                    raise
        return list(make_partitions(ranges, self._options))

    def _plan(self) -> list[LedgerRange]:
        options = self._options
        source = TopicSource(options)
        try:
            planner = source.require()
            # A partition that came since is not part of it.
            nothing = planner.earliest()
            ranges = planner.plan(
                {**nothing, **self._start},
                {name: self._end.get(name, nothing[name]) for name in nothing},
                self._columns,
                target_bytes=options.maxBytesPerPartition,
                min_partitions=options.minPartitions,
                max_records_per_partition=options.maxRecordsPerPartition,
                fail_on_data_loss=options.failOnDataLoss,
                from_ms=self._from_ms,
                until_ms=self._until_ms,
            )
        finally:
            source.close()
        if self._topics is not None:
            ranges = [each for each in ranges if each.topic in self._topics]
        return ranges

    def _lease(self, ranges: list[LedgerRange]) -> None:
        seconds = self._options.leaseSeconds
        if ranges and seconds:
            import uuid

            from pulsarx.broker.lease import lease_ranges

            job = f"spark-read-{uuid.uuid4().hex}"
            lease_ranges(self._options.root, job, ranges, seconds * 1000)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition)


class FilteringReader(BatchReader):
    """A reader that Spark tells its filters, to skip ledgers; Spark still applies them all."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        for each in filters:
            if each.__class__ is EqualTo and each.attribute == (TOPIC,):
                self._only_topics([each.value])
            elif each.__class__ is In and each.attribute == (TOPIC,):
                self._only_topics(each.value)
            elif getattr(each, "attribute", None) == (PUBLISH_TIME,):
                self._only_times(each)
        return filters

    def _only_topics(self, names: Iterable[Any]) -> None:
        wanted = {str(name) for name in names}
        self._topics = wanted if self._topics is None else self._topics & wanted

    def _only_times(self, given: Filter) -> None:
        value = getattr(given, "value", None)
        if getattr(value, "tzinfo", None) is None:
            return
        time_ms = value.timestamp() * 1000  # type: ignore[union-attr]
        # Publish times are whole milliseconds; a millisecond to spare each way.
        if isinstance(given, (GreaterThan, GreaterThanOrEqual, EqualTo)):
            self._from_ms = max(int(time_ms) - 1, self._from_ms or 0)
        if isinstance(given, (LessThan, LessThanOrEqual, EqualTo)):
            until_ms = int(time_ms) + 2
            self._until_ms = min(until_ms, until_ms if self._until_ms is None else self._until_ms)
