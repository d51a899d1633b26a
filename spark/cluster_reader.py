"""The batch and stream readers of format("pulsarx") for a cluster: planned from the admin REST API
in the driver, read by tasks through the official client, by ranges of entries."""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from pulsarx import errors
from pulsarx.clock import Deadline, system_clock
from pulsarx.spark.cluster_access import ClusterAccess
from pulsarx.spark.cluster_topics import AwaitingTopics, ClusterTopics
from pulsarx.spark.entry_reader import check_columns, read_entries
from pulsarx.spark.stream_offsets import FOLDER, START, STATUS
from pulsarx.spark.topic_plan import group_for_tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.streaming.datasource import ReadLimit

    from pulsarx.spark.cluster_topics import Places
    from pulsarx.spark.entry_range import EntryRange
    from pulsarx.spark.options import Options
    from pulsarx.spark.stream_offsets import SparkOffset
    from pulsarx.spark.value_format import ValueFormat


_LOOK_MS = 250


class EntryPartition(InputPartition):
    """A Spark partition: consecutive ranges of entries of one topic or several. Pickles."""

    def __init__(
        self,
        access: ClusterAccess,
        ranges: list[EntryRange],
        fail_on_data_loss: bool,
        values: ValueFormat | None,
    ) -> None:
        super().__init__(None)
        self.access = access
        self.ranges = ranges
        self.fail_on_data_loss = fail_on_data_loss
        self.values = values


def _partitions(
    options: Options, ranges: list[EntryRange], values: ValueFormat | None
) -> list[InputPartition]:
    planned: Any = ranges  # with the size and the count of ledger ranges
    groups: Any = group_for_tasks(planned, options.maxBytesPerPartition, options.minPartitions)
    access = ClusterAccess.of(options)
    return [EntryPartition(access, group, options.failOnDataLoss, values) for group in groups]


def _read(partition: InputPartition) -> Iterator[Any]:
    """Spark makes a partition without ranges when there is nothing to read."""
    if not isinstance(partition, EntryPartition):
        return iter(())
    return read_entries(
        partition.access, partition.ranges, partition.fail_on_data_loss, partition.values
    )


class ClusterSnapshot:
    """The range that a DataFrame reads: from where to where in which cluster. Pickles."""

    def __init__(self, options: Options) -> None:
        topics = ClusterTopics(options)
        self.cluster: str = topics.cluster
        # In this order: the start may be the latest, and is then not behind the end.
        self.start: Places = topics.starting("earliest")
        self.end: Places = topics.ending()


class ClusterBatchReader(DataSourceReader):
    """Plans in the driver, reads in workers."""

    def __init__(
        self,
        options: Options,
        columns: tuple[str, ...],
        values: ValueFormat | None,
        snapshot: ClusterSnapshot,
    ) -> None:
        check_columns(columns)
        self._options = options
        self._columns = columns
        self._values = values
        self._snapshot = snapshot

    def partitions(self) -> list[InputPartition]:
        options, snapshot = self._options, self._snapshot
        topics = ClusterTopics(options)
        _check_cluster(snapshot.cluster, topics, "the DataFrame was made of")
        fail = options.failOnDataLoss
        ranges = topics.ranges(
            topics.resolved(snapshot.start, fail),
            topics.resolved(snapshot.end, fail),
            self._columns,
            from_ms=options.startingTimestamp,
            until_ms=options.endingTimestamp,
        )
        return _partitions(options, ranges, self._values)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(partition)


def _check_cluster(noted: str | None, topics: ClusterTopics, whose: str) -> None:
    if noted not in (None, topics.cluster):
        raise errors.NotAllowedError(
            detail=f"{topics.options.root} is {topics.cluster}, {whose} {noted}: its messages are "
            "at other places"
        )


class ClusterStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batches of a cluster; one thread at a time. What travels to tasks is without
    connections and state."""

    def __init__(
        self, options: Options, columns: tuple[str, ...], values: ValueFormat | None
    ) -> None:
        check_columns(columns)
        self._options = options
        self._columns = columns
        self._values = values
        self._reset()

    def _reset(self) -> None:
        self._topics: ClusterTopics | None = None
        self._initial: Places | None = None
        self._reached: Places | None = None  # the end of the last batch
        self._target: Places | None = None  # of Trigger.AvailableNow
        self._delay: Deadline | None = None  # until which too few entries are waited for
        self._looked = Deadline(0)

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_options": self._options,
            "_columns": self._columns,
            "_values": self._values,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def _look(self) -> ClusterTopics:
        """The topics as they are now, or were a moment ago: an idle query asks all the time."""
        if self._topics is None:
            self._topics = AwaitingTopics(self._options)
        elif self._looked.expired():
            self._topics.look()
        else:
            return self._topics
        self._looked = Deadline(_LOOK_MS)
        return self._topics

    # Offsets --------------------------------------------------------------------------------------

    def initialOffset(self) -> SparkOffset:
        topics = self._look()
        if self._initial is None:
            self._initial = topics.starting("latest")
        return _to_spark(self._initial, topics.cluster)

    def getDefaultReadLimit(self) -> ReadLimit:
        if self._options.maxBytesPerTrigger is not None:
            return ReadMaxBytes(self._options.maxBytesPerTrigger)
        if self._options.maxEntriesPerTrigger is not None:
            return ReadMaxRows(self._options.maxEntriesPerTrigger)
        return ReadAllAvailable()

    def latestOffset(self, start: SparkOffset, limit: ReadLimit) -> SparkOffset:
        topics = self._look()
        _check_cluster(start.get(FOLDER), topics, "the checkpoint is of")
        noted = _of_spark(start)
        fail = self._options.failOnDataLoss
        begin = topics.earliest() | topics.resolved(noted, fail)
        end = topics.latest()
        if self._target is not None:
            # A topic that came later waits for the next run.
            target = topics.resolved(self._target, False)
            end = {name: min(end[name], target.get(name, begin[name])) for name in end}
        end = {name: max(end[name], place) for name, place in begin.items()}
        first = START not in start and noted == self._initial
        if self._target is None and self._too_few(topics, begin, end):
            end = begin
        elif not isinstance(limit, ReadAllAvailable):
            end = topics.limited(begin, end)
        self._reached = end
        if first:
            return _to_spark(end, topics.cluster, begin)
        return start if end == noted else _to_spark(end, topics.cluster)

    def _too_few(self, topics: ClusterTopics, begin: Places, end: Places) -> bool:
        least = self._options.minEntriesPerTrigger
        if least is None:
            return False
        count = sum(
            last - first
            for name in end
            for _, first, last, _ in topics.topics[name].amounts(begin[name], end[name])
        )
        if count >= least:
            self._delay = None
            return False
        if self._delay is None:
            self._delay = Deadline(self._options.maxTriggerDelay)
        if not self._delay.expired():
            return True
        self._delay = None
        return False

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._look().latest()

    def reportLatestOffset(self) -> SparkOffset | None:
        """For the progress alone. Never an error: the query went well."""
        topics = self._topics
        if topics is None:
            return None
        try:
            found = _to_spark(topics.latest(), topics.cluster)
            found[STATUS] = self._status(topics)
            return found
        except (errors.PulsarException, ValueError, OSError):
            return None

    def _status(self, topics: ClusterTopics) -> dict[str, Any]:
        """Report what is left behind the batch that was last begun, as stream_progress reads it."""
        backlog = topics.backlog(self._reached or {})
        since = backlog.first_publish_ms
        age_ms = 0 if since is None else max(system_clock().now_ms() - since, 0)
        is_told = since is not None or not backlog.entries
        return {
            "root": self._options.root,
            "topics": len(topics.topics),
            "messages": None if backlog.entries else 0,
            "entries": backlog.entries,
            "bytes": backlog.bytes,
            "seconds": age_ms / 1000 if is_told else None,
            "ledgers": backlog.ledgers,
            "lease": None,
            "lease_expires_ms": None,
            "subscription": None,
        }

    # Reading --------------------------------------------------------------------------------------

    def partitions(self, start: SparkOffset, end: SparkOffset) -> list[InputPartition]:
        topics = self._look()
        _check_cluster(end.get(FOLDER), topics, "the checkpoint is of")
        # Spark repeats a first batch from an initial offset it asked for anew.
        noted = end.get(START)
        fail = self._options.failOnDataLoss
        begin = topics.earliest() | topics.resolved(_of_spark(noted or start), fail)
        until = self._reached = topics.resolved(_of_spark(end), fail)
        values = self._values
        if values is not None:
            broker: Any = topics  # knows the schemas
            values = values.with_writers(broker, until)
        return _partitions(self._options, topics.ranges(begin, until, self._columns), values)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return _read(partition)


def _to_spark(places: Places, cluster: str, start: Places | None = None) -> SparkOffset:
    found: SparkOffset = {name: _listed(places[name]) for name in sorted(places)}
    found[FOLDER] = cluster
    if start is not None:
        found[START] = {name: _listed(start[name]) for name in sorted(start)}
    return found


def _listed(place: tuple[int, int, int]) -> list[int]:
    return list(place if place[2] else place[:2])


def _of_spark(offset: SparkOffset) -> Places:
    return {
        name: (int(at[0]), int(at[1]), int(at[2]) if len(at) > 2 else 0)
        for name, at in offset.items()
        if isinstance(at, list)
    }
