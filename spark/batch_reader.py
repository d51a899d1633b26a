"""The batch reader of format("pulsarx"): what is read is settled in the driver, a Spark partition
maps ledger files.

Start and end are settled when the DataFrame is made, so that all its queries see the same messages.
"""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
)

from pulsarx import errors
from pulsarx.broker.scan.lease_renewal import finish_soon
from pulsarx.spark.lease_keeper import is_leased
from pulsarx.spark.partition_reader import PASSED_BYTES_MAX, read_partitions
from pulsarx.spark.root_view import tell_ends
from pulsarx.spark.row_filter import RangeChoice, filter_of, filtered
from pulsarx.spark.topic_columns import COLUMN_TYPES, PARTITION
from pulsarx.spark.topic_plan import group_for_tasks, plan_leased
from pulsarx.spark.topic_source import TopicSource, ending_offsets, starting_offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from pyspark.sql.datasource import Filter

    from pulsarx.broker.scan.ledger_range import LedgerRange
    from pulsarx.broker.scan.offsets import Offsets
    from pulsarx.broker.scan.plan import Planner
    from pulsarx.spark.options import Options
    from pulsarx.spark.row_filter import RowFilter
    from pulsarx.spark.value_format import ValueFormat


_ADVISED_FROM = 128 << 20  # bytes: about a second


class LedgerPartition(InputPartition):
    """A Spark partition: consecutive ledger ranges of one topic or several. Pickles."""

    def __init__(
        self,
        ranges: list[LedgerRange],
        fail_on_data_loss: bool = True,
        values: ValueFormat | None = None,
        filters: list[RowFilter] | None = None,
        where: Sequence[RowFilter] = (),
        selector: str | None = None,
    ) -> None:
        """filters: of the columns that are read. where, selector: of messages, before values are
        decoded."""
        super().__init__(None)
        # Which of how many partitions of a plan that has a lease; None: it has none of its own.
        self.part: tuple[int, int] | None = None
        self.where = where
        self.selector = selector
        self.values = values
        self.filters: list[RowFilter] = filters or []
        self.ranges = ranges
        self.fail_on_data_loss = fail_on_data_loss


def make_partitions(
    ranges: list[LedgerRange],
    options: Options,
    values: ValueFormat | None,
    filters: list[RowFilter] | None = None,
) -> list[LedgerPartition]:
    """Small neighbours together, but not below minPartitions."""
    groups = group_for_tasks(
        ranges,
        options.maxBytesPerPartition,
        options.minPartitions,
        options.maxRecordsPerPartition,
    )
    chosen = (filters, options.where, options.selector)
    return [LedgerPartition(group, options.failOnDataLoss, values, *chosen) for group in groups]


def read_partition(partition: InputPartition) -> Iterator[Any]:
    """Spark makes a partition without ranges when there is nothing to read."""
    if not isinstance(partition, LedgerPartition):
        return iter(())
    found = read_partitions(
        partition.ranges,
        fail_on_data_loss=partition.fail_on_data_loss,
        values=partition.values,
        where=partition.where,
        selector=partition.selector,
        max_bytes=PASSED_BYTES_MAX if partition.values is None else None,
    )
    if partition.filters:
        found = (filtered(batch, partition.filters) for batch in found)
    return found if partition.part is None else _finishing(found, partition.ranges, partition.part)


def _finishing(
    batches: Iterator[Any], ranges: list[LedgerRange], part: tuple[int, int]
) -> Iterator[Any]:
    yield from batches
    finish_soon(ranges[0], *part)


class Snapshot:
    """The range that a DataFrame reads: from where to where in which folder. Pickles."""

    def __init__(self, options: Options) -> None:
        """Looks at the folder. Whatever is wrong with topics and places is an error here."""
        source = TopicSource(options)
        try:
            planner = source.require()
            self.folder_id: str = source.folder_id
            # In this order: the start may be the latest, and is then not behind the end.
            self.start: Offsets = starting_offsets(planner, options, "earliest")
            self.end: Offsets = ending_offsets(planner, options)
        finally:
            source.close()

    def within(self, planner: Planner) -> tuple[Offsets, Offsets]:
        """Start and end for the partitions there are now. One that comes later is not read."""
        nothing = planner.earliest()
        return {**nothing, **self.start}, {**nothing, **self.end}


class BatchReader(DataSourceReader):
    """Plans in the driver, reads in workers."""

    def __init__(
        self,
        options: Options,
        columns: tuple[str, ...],
        values: ValueFormat | None,
        snapshot: Snapshot,
    ) -> None:
        """columns: those of messages; values: how the value becomes others, None: it does not."""
        self._options = options
        self._columns = columns
        self._values = values
        self._filters: list[RowFilter] = []
        self._choice = RangeChoice()
        for each in options.where:
            self._choice.add(each)
        self._snapshot = snapshot

    def partitions(self) -> list[InputPartition]:
        options = self._options
        ranges = plan_leased(self._plan, options.root, options.leaseSeconds * 1000)
        self._advise(sum(each.size for each in ranges))
        made = make_partitions(ranges, options, self._values, self._filters)
        for index, each in enumerate(made if is_leased([ranges]) else ()):
            each.part = index, len(made)
        return list(made)

    def _advise(self, size: int) -> None:
        """Name the option that spares columns, where that is worth something: what a query selects,
        and that a count needs no column, Spark tells no data source of Python."""
        whole = self._values is None and self._columns == tuple(COLUMN_TYPES)
        if size < _ADVISED_FROM or not whole:
            return
        import logging

        logging.getLogger("pulsarx.spark").warning(
            "read from %s: all %d columns of %d MiB of messages are read, whatever the query "
            "selects, also for count(): Spark does not tell. Name those that are needed with "
            'option columns, as columns="value" or, to count, columns="%s"; count() of read_topic '
            "reads no values",
            self._options.root,
            len(self._columns),
            size >> 20,
            PARTITION,
        )

    def _plan(self) -> list[LedgerRange]:
        options = self._options
        source = TopicSource(options)
        try:
            if source.folder_id != self._snapshot.folder_id:
                raise errors.FolderError(
                    detail=f"{options.root} is data directory {source.folder_id}, the DataFrame "
                    f"was made of {self._snapshot.folder_id}. Make the DataFrame again, or mount "
                    "the folder that it is of"
                )
            planner = source.require()
            tell_ends(source.broker, planner.topics)
            start, end = self._snapshot.within(planner)
            ranges = planner.plan(
                start,
                end,
                self._columns,
                target_bytes=options.maxBytesPerPartition,
                min_partitions=options.minPartitions,
                max_records_per_partition=options.maxRecordsPerPartition,
                fail_on_data_loss=options.failOnDataLoss,
                from_ms=_latest(options.startingTimestamp, self._choice.from_ms),
                until_ms=_earliest(options.endingTimestamp, self._choice.until_ms),
            )
            return self._choice.of(ranges)
        finally:
            source.close()

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition)


def _latest(*times_ms: int | None) -> int | None:
    return max((each for each in times_ms if each is not None), default=None)


def _earliest(*times_ms: int | None) -> int | None:
    return min((each for each in times_ms if each is not None), default=None)


# Up to 4.3 Spark keeps what a plan with filters reads with the DataFrame, and takes it for other
# queries of that, too: rows would be missing there. The change that mends it came with pushLimit.
PUSHED_STAY_APART = hasattr(DataSourceReader, "pushLimit")

_OPERATIONS = {
    EqualTo: "in",
    EqualNullSafe: "in",
    In: "in",
    GreaterThan: "greater",
    GreaterThanOrEqual: "greater_equal",
    LessThan: "less",
    LessThanOrEqual: "less_equal",
    IsNull: "is_null",
    IsNotNull: "is_valid",
}


class FilteringReader(BatchReader):
    """A reader that Spark tells its filters. Those of columns of messages it applies itself, to
    ranges, and to rows before they leave the task."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take the filters that are applied here, and return those that are left to Spark."""
        return [each for each in filters if not self._note(each)]

    def _note(self, given: Filter) -> bool:
        """Whether it is applied here, exactly."""
        (column, *deeper) = getattr(given, "attribute", (None,))
        operation = _OPERATIONS.get(type(given))
        if deeper or operation is None:
            return False
        values: list[Any] = []
        if not isinstance(given, IsNull | IsNotNull):
            value: Any = getattr(given, "value", None)
            if value is None:
                return False
            values = list(value) if isinstance(given, In) else [value]
        found = filter_of(column, operation, values)
        if found is None:
            return False
        self._choice.add(found)
        if found.is_of_range():
            return True
        if column not in self._columns:
            return False
        self._filters.append(found)
        return True
