"""The stream reader of format("pulsarx"). Lives in one worker beside the driver; the tasks get
only what maps files.

An offset is {"topic": [ledger id, n]}, by sorted names: the next message is the one behind the
first n of that ledger. One place has one form.
"""

from __future__ import annotations

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from pulsarx import errors
from pulsarx.clock import Deadline, monotonic_ms
from pulsarx.spark.batch_reader import make_partitions, read_partition
from pulsarx.spark.subscription_sync import hold_topics, move_subscription
from pulsarx.spark.topic_source import TopicSource

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit

    from pulsarx.broker.ledger_range import LedgerRange
    from pulsarx.broker.offsets import Offsets
    from pulsarx.broker.plan import Planner
    from pulsarx.spark.options import Options

    SparkOffset = dict[str, list[int]]

_ATTEMPTS_MAX = 3  # while retention removes ledgers between planning and leasing


def to_spark(offsets: Offsets) -> SparkOffset:
    """The one form: sorted, so that equal places are equal texts."""
    return {name: list(offsets[name]) for name in sorted(offsets)}


def of_spark(offset: SparkOffset) -> Offsets:
    return {name: (int(ledger_id), int(count)) for name, (ledger_id, count) in offset.items()}


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One thread at a time. What travels to tasks is without files and state."""

    def __init__(self, options: Options, columns: tuple[str, ...]) -> None:
        self._options = options
        self._columns = columns
        self._reset()

    def _reset(self) -> None:
        self._source: TopicSource | None = None
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._delay: Deadline | None = None  # until which too few messages are waited for
        self._held: set[str] = set()  # topics with our subscription
        self._moved: Offsets = {}  # where it is
        self._job = ""
        self._leased: dict[str, set[int]] = {}
        self._lease_until_ms = 0
        self._lease_expires_ms = 0  # as the owner's clock has it

    def __getstate__(self) -> dict[str, Any]:
        return {"_options": self._options, "_columns": self._columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def _planner(self) -> Planner | None:
        if self._source is None:
            self._source = TopicSource(self._options)
        planner = self._source.planner()
        if planner is not None and self._options.subscription is not None:
            hold_topics(self._options, planner.topics, self._held)
        return planner

    # Offsets --------------------------------------------------------------------------------------

    def initialOffset(self) -> SparkOffset:
        planner = self._planner()
        if planner is None:
            return {}
        options = self._options
        if options.startingTimestamp is not None:
            found = planner.at_time(options.startingTimestamp)
        else:
            found = planner.resolve(
                options.startingOffsets or "latest", fail_on_data_loss=options.failOnDataLoss
            )
        if options.subscription is not None:
            move_subscription(options.root, options.subscription, found)
        return to_spark(found)

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        most = options.maxMessagesPerTrigger or options.maxEntriesPerTrigger
        if options.maxBytesPerTrigger is not None:
            return ReadMaxBytes(options.maxBytesPerTrigger)
        if most is not None:
            return ReadMaxRows(most)
        if options.minMessagesPerTrigger is not None:
            return ReadMinRows(options.minMessagesPerTrigger)
        return ReadAllAvailable()

    def latestOffset(self, start: SparkOffset, limit: ReadLimit) -> SparkOffset:
        planner = self._planner()
        if planner is None:
            return start
        end = planner.latest()
        if self._target is not None:
            end = {
                name: min(position, self._target[name])
                for name, position in end.items()
                if name in self._target
            }
        begin = of_spark(start)
        if begin == end:
            return start
        begin, end = self._complete(planner, begin, end)
        if begin == end:
            return to_spark(end)
        if not isinstance(limit, ReadAllAvailable):
            end = self._admit(planner, begin, end)
        return to_spark(end)

    def _complete(self, planner: Planner, begin: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Both with every topic there is, checked, the end nowhere before the beginning."""
        fail = self._options.failOnDataLoss
        nothing = planner.earliest()
        if not fail:
            begin = {name: position for name, position in begin.items() if name in nothing}
        begin = planner.resolve({**nothing, **begin}, fail_on_data_loss=fail)
        return begin, {
            name: max(end.get(name, position), position) for name, position in begin.items()
        }

    def _admit(self, planner: Planner, begin: Offsets, end: Offsets) -> Offsets:
        options = self._options
        least = options.minMessagesPerTrigger
        if least is not None and self._target is None:
            if self._delay is None:
                self._delay = Deadline(options.maxTriggerDelay)
            if not self._delay.expired() and planner.amounts(begin, end)["messages"] < least:
                return begin
            self._delay = None
        return planner.limit(
            begin,
            end,
            max_messages=options.maxMessagesPerTrigger,
            max_entries=options.maxEntriesPerTrigger,
            max_bytes=options.maxBytesPerTrigger,
            fail_on_data_loss=options.failOnDataLoss,
        )

    def prepareForTriggerAvailableNow(self) -> None:
        planner = self._planner()
        self._target = {} if planner is None else planner.latest()

    def reportLatestOffset(self) -> SparkOffset | None:
        planner = self._planner()
        return None if planner is None else to_spark(planner.latest())

    # Reading --------------------------------------------------------------------------------------

    def partitions(self, start: SparkOffset, end: SparkOffset) -> list[InputPartition]:
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            ranges = self._plan(of_spark(start), of_spark(end))
            try:
                self._lease(ranges)
                break
            except errors.NotAllowedError:
                if attempt == _ATTEMPTS_MAX:
                    raise
        return list(make_partitions(ranges, self._options))

    def _plan(self, start: Offsets, end: Offsets) -> list[LedgerRange]:
        planner = self._planner()
        if planner is None:
            if start == end:
                return []
            assert self._source is not None
            planner = self._source.require()
        options = self._options
        nothing = planner.earliest()
        if not options.failOnDataLoss:
            start = {name: position for name, position in start.items() if name in nothing}
            end = {name: position for name, position in end.items() if name in nothing}
        start = {**nothing, **start}
        # A topic that is not in the end came later, and its turn comes with the next batch.
        return planner.plan(
            start,
            {**{name: start[name] for name in nothing}, **end},
            self._columns,
            target_bytes=options.maxBytesPerPartition,
            min_partitions=options.minPartitions,
            max_records_per_partition=options.maxRecordsPerPartition,
            fail_on_data_loss=options.failOnDataLoss,
        )

    def _lease(self, ranges: list[LedgerRange]) -> None:
        """One lease a stream, replaced when it does not cover a batch or is half over."""
        seconds = self._options.leaseSeconds
        if not ranges or not seconds or self._options.subscription is not None:
            return
        wanted: dict[str, set[int]] = {}
        for each in ranges:
            wanted.setdefault(each.topic, set()).add(each.ledger_id)
        covered = all(ids <= self._leased.get(name, set()) for name, ids in wanted.items())
        from pulsarx.broker.lease import bear_lease, lease_ranges

        ttl_ms = seconds * 1000
        if covered and monotonic_ms() < self._lease_until_ms:
            bear_lease(ranges, self._job, ttl_ms, self._lease_expires_ms)
            return
        if not self._job:
            import uuid

            self._job = f"spark-stream-{uuid.uuid4().hex}"
        self._lease_expires_ms = lease_ranges(self._options.root, self._job, ranges, ttl_ms)
        self._leased = wanted
        self._lease_until_ms = monotonic_ms() + seconds * 500

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition)

    def commit(self, end: SparkOffset) -> None:
        """Spark has noted the batch before this one; the subscription may follow."""
        name = self._options.subscription
        changed = {
            topic: position
            for topic, position in of_spark(end).items()
            if self._moved.get(topic) != position
        }
        if name is not None and changed:
            move_subscription(self._options.root, name, changed)
            self._moved.update(changed)

    def stop(self) -> None:
        if self._source is not None:
            self._source.close()
        if self._job:
            from pulsarx.broker.lease import release_lease

            job, self._job = self._job, ""
            try:
                release_lease(self._options.root, job, timeout_ms=1000)
            except errors.PulsarException:
                pass  # it ends by itself
        self._reset()
