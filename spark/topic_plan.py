"""Plans what the tasks of a Spark job read. Runs on the driver; imports no Spark."""

from __future__ import annotations

import os
import uuid

from pulsarx import errors
from pulsarx.broker.foreign_broker import ForeignBroker
from pulsarx.broker.lease import lease_ranges
from pulsarx.broker.ledger_range import group_ranges
from pulsarx.broker.plan import TARGET_BYTES, plan
from pulsarx.spark.topic_columns import column_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulsarx.broker.ledger_range import LedgerRange
    from pulsarx.broker.plan import Boundary

LEASE_MS = 3600 * 1000
_GROUP_BYTES_MIN = 1 << 20  # a task for less is not worth its start
_ATTEMPTS_MAX = 3  # while retention removes ledgers between planning and leasing


def plan_topic(
    root: str | os.PathLike[str],
    topics: str | Sequence[str],
    *,
    start: Boundary = "earliest",
    end: Boundary = "latest",
    columns: str | Sequence[str] | None = None,
    min_partitions: int = 0,
    max_bytes_per_partition: int | None = None,
    max_records_per_partition: int | None = None,
    fail_on_data_loss: bool = True,
    lease_ms: int = LEASE_MS,
) -> list[list[LedgerRange]]:
    """What each task reads: ledger ranges, small ones of a topic put together, in order.

    root: the data directory, with or without a living owner. start, end, columns, max_...: as
        `pulsarx.broker.plan.plan`. min_partitions: so many tasks, if that is more than 1 MiB each.
    lease_ms: how long retention spares what was planned, and longer while any of it is being read;
        0: not at all, and nothing is written.
    TopicNotFound, ValueError, DataLossError, FolderError: say what to change.
    """
    names = column_names(columns)
    path = os.path.realpath(os.fspath(root))
    target = max_bytes_per_partition or TARGET_BYTES
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        broker = ForeignBroker(path)
        try:
            ranges = plan(
                broker,
                topics,
                start,
                end,
                names,
                min_partitions=min_partitions,
                max_bytes_per_partition=max_bytes_per_partition,
                max_records_per_partition=max_records_per_partition,
                fail_on_data_loss=fail_on_data_loss,
            )
        finally:
            broker.close()
        try:
            if ranges and lease_ms:
                lease_ranges(path, f"spark-{uuid.uuid4().hex}", ranges, lease_ms)
            break
        except errors.NotAllowedError:
            if attempt == _ATTEMPTS_MAX:
                raise
    if max_records_per_partition is not None:
        return [[each] for each in ranges]
    if min_partitions > 1:
        share = sum(each.size for each in ranges) // min_partitions
        target = min(target, max(share, _GROUP_BYTES_MIN))
    return group_ranges(ranges, target)
