"""The stream reader of format("pulsarx"). Lives in one worker beside the driver; the tasks get
only what maps files.

Offsets are those of stream_offsets: the next message, down to its place in a batch.
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
from pulsarx.clock import Deadline, monotonic_ms, system_clock
from pulsarx.spark.batch_reader import make_partitions, read_partition
from pulsarx.spark.stream_offsets import FOLDER, STATUS, of_spark, start_of, to_spark
from pulsarx.spark.subscription_sync import hold_topics, move_subscription
from pulsarx.spark.topic_plan import lease_read
from pulsarx.spark.topic_source import TopicSource, starting_offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit

    from pulsarx.broker.scan.ledger_range import LedgerRange
    from pulsarx.broker.scan.offsets import Offsets
    from pulsarx.broker.scan.plan import Planner
    from pulsarx.spark.options import Options
    from pulsarx.spark.stream_offsets import SparkOffset
    from pulsarx.spark.value_format import ValueFormat

_STARTS = ("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp")
_ATTEMPTS_MAX = 3  # while retention removes ledgers between planning and leasing


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads micro-batches of a folder; one thread at a time. What travels to tasks is without files
    and state."""

    def __init__(
        self, options: Options, columns: tuple[str, ...], values: ValueFormat | None
    ) -> None:
        """columns: those of messages; values: how the value becomes others, None: it does not."""
        self._options = options
        self._columns = columns
        self._values = values
        self._reset()

    def _reset(self) -> None:
        self._source: TopicSource | None = None
        self._reached: Offsets | None = None  # the end of the last batch
        self._initial: Offsets | None = None  # where a stream without a checkpoint begins
        self._target: Offsets | None = None  # of Trigger.AvailableNow
        self._delay: Deadline | None = None  # until which too few messages are waited for
        self._too_few_until: Offsets | None = None
        self._held: set[str] = set()  # topics with our subscription
        self._found: Offsets = {}  # where it was before this stream
        self._moved: Offsets = {}  # where it is, or behind that
        self._following: set[str] = set()  # topics where it is known not to be ahead of the stream
        self._job = ""
        self._leased: dict[str, set[int]] = {}
        self._lease_until_ms = 0
        self._lease_expires_ms = 0  # as the owner's clock has it

    def __getstate__(self) -> dict[str, Any]:
        return {
            "_options": self._options,
            "_columns": self._columns,
            "_values": self._values,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._reset()

    def _planner(self, position: str = "earliest") -> Planner | None:
        """position: where the subscription begins on topics that have none yet; "": without."""
        if self._source is None:
            self._source = TopicSource(self._options)
        planner = self._source.planner()
        if planner is not None and self._options.subscription is not None and position:
            self._found |= hold_topics(self._options, planner.topics, self._held, position)
        return planner

    # Offsets --------------------------------------------------------------------------------------

    def initialOffset(self) -> SparkOffset:
        if self._initial is None:
            self._initial = self._find_start()
        return self._to_spark(self._initial)

    def _to_spark(self, offsets: Offsets, start: Offsets | None = None) -> SparkOffset:
        assert self._source is not None
        return to_spark(offsets, self._source.folder_id, start)

    def _of_spark(self, offset: SparkOffset) -> Offsets:
        """FolderError: it is of another data directory, which lay under the same path."""
        assert self._source is not None
        noted, found = offset.get(FOLDER), self._source.folder_id
        if noted != found:
            raise errors.FolderError(
                detail=f"stream from {self._options.root}: its checkpoint is of data directory "
                f"{noted}, and {found} is there now. Put that one back, or begin with a new "
                "checkpoint"
            )
        return of_spark(offset)

    def _find_start(self) -> Offsets:
        options = self._options
        default = options.subscriptionInitialPosition or "latest"
        told = any(getattr(options, each) is not None for each in _STARTS)
        planner = self._planner("earliest" if told else default)
        if planner is None:
            return {}
        start = starting_offsets(planner, options, default)
        if told or not self._found:
            return start
        # As a consumer would: it goes on where the subscription is.
        known = {name: at for name, at in self._found.items() if name in start}
        found = planner.resolve({**start, **known}, fail_on_data_loss=options.failOnDataLoss)
        return {name: found[name] for name in start}

    def getDefaultReadLimit(self) -> ReadLimit:
        options = self._options
        most = options.maxMessagesPerTrigger or options.maxEntriesPerTrigger
        if options.maxBytesPerTrigger is not None:
            return ReadMaxBytes(options.maxBytesPerTrigger)
        if most is not None:
            return ReadMaxRows(most)
        least = options.minMessagesPerTrigger or options.minEntriesPerTrigger
        if least is not None:
            return ReadMinRows(least)
        return ReadAllAvailable()

    def latestOffset(self, start: SparkOffset, limit: ReadLimit) -> SparkOffset:
        planner = self._planner()
        if planner is None:
            if of_spark(start) and self._options.failOnDataLoss:
                assert self._source is not None
                self._source.require()
            return start
        begin = self._of_spark(start)
        # Spark makes a first batch in any case. From then on the checkpoint knows the beginning.
        first = start_of(start) is None and begin == self._initial
        end = self._reached = self._reach(planner, begin, limit)
        if first:
            return self._to_spark(end, begin)
        if begin != end:
            return self._to_spark(end)
        if self._target is not None:
            self._release()  # the query is over, and Spark forgets to call stop
        return start

    def _reach(self, planner: Planner, begin: Offsets, limit: ReadLimit) -> Offsets:
        """Find where the next batch ends."""
        end = planner.latest()
        if self._target is not None:
            end = {
                name: min(position, self._target[name])
                for name, position in end.items()
                if name in self._target
            }
        if begin == end:
            return end
        begin, end = self._complete(planner, begin, end)
        if begin == end or isinstance(limit, ReadAllAvailable):
            return end
        return self._admit(planner, begin, end)

    def _complete(self, planner: Planner, begin: Offsets, end: Offsets) -> tuple[Offsets, Offsets]:
        """Begin and end with every topic there is, checked, the end nowhere before the begin."""
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
        if self._target is None and self._too_few(planner, begin, end):
            if self._delay is None:
                self._delay = Deadline(options.maxTriggerDelay)
            if not self._delay.expired():
                self._too_few_until = end
                return begin
        self._delay = self._too_few_until = None
        return planner.limit(
            begin,
            end,
            max_messages=options.maxMessagesPerTrigger,
            max_entries=options.maxEntriesPerTrigger,
            max_bytes=options.maxBytesPerTrigger,
            fail_on_data_loss=options.failOnDataLoss,
        )

    def _too_few(self, planner: Planner, begin: Offsets, end: Offsets) -> bool:
        options = self._options
        least = {"messages": options.minMessagesPerTrigger, "entries": options.minEntriesPerTrigger}
        if least["messages"] is least["entries"] is None:
            return False
        if self._too_few_until == end:  # Spark asks every few milliseconds
            return True
        found = planner.amounts(begin, end)
        return any(found[what] < (wanted or 0) for what, wanted in least.items())

    def prepareForTriggerAvailableNow(self) -> None:
        planner = self._planner("")  # before the start is known
        self._target = {} if planner is None else planner.latest()

    def reportLatestOffset(self) -> SparkOffset | None:
        """For the progress alone. Never an error: the query went well."""
        try:
            planner = self._planner()
            if planner is None:
                return None
            found = self._to_spark(planner.latest())
            found[STATUS] = self._status(planner)
            return found
        except (errors.PulsarException, ValueError, OSError):
            return None

    def _status(self, planner: Planner) -> dict[str, Any]:
        """Report what is left behind the batch that was last begun, as stream_progress reads it."""
        reached = self._reached if self._reached is not None else planner.earliest()
        known = set(planner.topics)
        backlog = planner.backlog({name: at for name, at in reached.items() if name in known})
        now_ms = system_clock().now_ms()
        since = backlog.first_publish_ms
        return {
            "root": self._options.root,
            "topics": len(known),
            "messages": backlog.messages,
            "bytes": backlog.bytes,
            "seconds": 0.0 if since is None else max(now_ms - since, 0) / 1000,
            "ledgers": backlog.ledgers,
            "lease": self._job or None,
            "lease_expires_ms": self._lease_expires_ms if self._job else None,
            "subscription": self._options.subscription,
        }

    # Reading --------------------------------------------------------------------------------------

    def partitions(self, start: SparkOffset, end: SparkOffset) -> list[InputPartition]:
        self._planner()
        until = self._reached = self._of_spark(end)
        # Spark repeats a first batch from an initial offset it asked for anew.
        first = start_of(end)
        if first is not None:
            self._move(first)
        begin = of_spark(start) if first is None else first
        for attempt in range(1, _ATTEMPTS_MAX + 1):
            ranges = self._plan(begin, until)
            try:
                self._lease(ranges)
                break
            except errors.NotAllowedError:
                if attempt == _ATTEMPTS_MAX:
                    raise
        values = self._values
        if values is not None and self._source is not None:
            # A producer may have brought another version since the query began.
            values = values.with_writers(self._source.broker, {each.topic for each in ranges})
        return list(make_partitions(ranges, self._options, values))

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
            start = self._what_is_left(planner, start)
            end = {name: position for name, position in end.items() if name in nothing}
        start = {**nothing, **start}
        if options.sealedOnly:
            _check_sealed(end, start, planner.latest())
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

    def _what_is_left(self, planner: Planner, start: Offsets) -> Offsets:
        """Find where a batch can begin, and write to the log when that is not its start."""
        known = set(planner.topics)
        kept = {name: position for name, position in start.items() if name in known}
        found = planner.resolve(kept, fail_on_data_loss=False)
        lost = [
            f"{name} goes on at {list(found[name])} and not {list(position)}"
            for name, position in kept.items()
            if found[name] != position
        ]
        lost += [f"{name} is not there any more" for name in start if name not in known]
        if lost:
            import logging

            logging.getLogger("pulsarx").warning(
                "stream from %s: messages are lost, and failOnDataLoss is false: %s",
                self._options.root,
                "; ".join(lost),
            )
        return {name: found[name] for name in kept}

    def _lease(self, ranges: list[LedgerRange]) -> None:
        """Take the stream's lease, or replace it when it does not cover the batch or is half over.
        No lease is taken where the stream's subscription holds the batch."""
        seconds = self._options.leaseSeconds
        if not ranges or not seconds:
            return
        if self._following.issuperset(each.topic for each in ranges):
            self._release()
            return
        wanted: dict[str, set[int]] = {}
        for each in ranges:
            wanted.setdefault(each.topic, set()).add(each.ledger_id)
        covered = all(ids <= self._leased.get(name, set()) for name, ids in wanted.items())
        from pulsarx.broker.scan.lease import bear_lease

        ttl_ms = seconds * 1000
        if covered and monotonic_ms() < self._lease_until_ms:
            bear_lease(ranges, self._job, ttl_ms, self._lease_expires_ms)
            return
        if not self._job:
            import uuid

            self._job = f"spark-stream-{uuid.uuid4().hex}"
        self._lease_expires_ms = lease_read(self._options.root, self._job, ranges, ttl_ms)
        self._leased = wanted
        self._lease_until_ms = monotonic_ms() + seconds * 500

    def read(self, partition: InputPartition) -> Iterator[Any]:
        return read_partition(partition)

    def commit(self, end: SparkOffset) -> None:
        """Spark has noted the batch before this one; the subscription may follow."""
        self._move(of_spark(end))

    def _move(self, offsets: Offsets) -> None:
        name = self._options.subscription
        planner = self._planner() if name is not None else None
        if planner is None:
            return
        known = set(planner.topics)
        # Messages removed by retention, or of a deleted topic with this name, need no
        # acknowledgement.
        found = planner.resolve(
            {topic: position for topic, position in offsets.items() if topic in known},
            fail_on_data_loss=False,
        )
        changed = {
            topic: position
            for topic, position in found.items()
            if topic in offsets and self._moved.get(topic) != position
        }
        if not changed:
            return
        moved, gone = move_subscription(self._options.root, name, changed)
        self._moved.update(changed)
        self._following.update(moved)
        for topic in gone:  # or the subscription: if it comes again, it is another one
            self._moved.pop(topic, None)
            self._held.discard(topic)
            self._following.discard(topic)

    def stop(self) -> None:
        if self._source is not None:
            self._source.close()
        self._release()
        self._reset()

    def _release(self) -> None:
        if not self._job:
            return
        from pulsarx.broker.scan.lease import release_lease

        job, self._job, self._leased = self._job, "", {}
        try:
            release_lease(self._options.root, job, timeout_ms=1000)
        except errors.PulsarException:
            pass  # it ends by itself


def _check_sealed(end: Offsets, start: Offsets, sealed_end: Offsets) -> None:
    """ValueError: a batch that was planned without sealedOnly would come out short."""
    for name, last in sealed_end.items():
        if end.get(name, last) > max(last, start[name]):
            raise ValueError(
                f"{name}: the batch that is repeated ends at {list(end[name])}, in a ledger that "
                f"is still being written, and option sealedOnly ends at {list(last)}. Leave it "
                "away until this batch is done, or until that ledger is sealed"
            )
