"""Plans what the tasks of a Spark job read: ledger ranges, leased, put together. Runs on the
driver; imports no Spark."""

from __future__ import annotations

import os
import uuid
from contextlib import contextmanager

from pulsarx import errors
from pulsarx.broker.catalogue.kept_log import take_log
from pulsarx.broker.scan.lease import lease_ranges, release_lease
from pulsarx.broker.scan.ledger_range import group_ranges
from pulsarx.broker.scan.plan import TARGET_BYTES, Planner, plan_at_once
from pulsarx.options.members import check_selector
from pulsarx.spark.cluster_url import is_store, read_root
from pulsarx.spark.given_filter import filters_of
from pulsarx.spark.given_offsets import boundary_of
from pulsarx.spark.root_view import open_root, tell_ends
from pulsarx.spark.row_filter import RangeChoice
from pulsarx.spark.topic_columns import column_names
from pulsarx.spark.topic_source import check_topics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from pulsarx.broker.scan.ledger_range import LedgerRange
    from pulsarx.broker.scan.plan import Boundary

LEASE_MS = 3600 * 1000
_SHARE_BYTES_MIN = 1 << 20  # a task for less is not worth its start, unless it was asked for
_RELEASE_TIMEOUT_MS = 1000
_ATTEMPTS_MAX = 3  # while retention removes ledgers between planning and leasing


def plan_topic(
    root: str | os.PathLike[str],
    topics: str | Sequence[str],
    *,
    start: Boundary | datetime = "earliest",
    end: Boundary | datetime = "latest",
    columns: str | Sequence[str] | None = None,
    min_partitions: int | None = None,
    parallelism: int = 0,
    max_bytes_per_partition: int | None = None,
    max_records_per_partition: int | None = None,
    fail_on_data_loss: bool = True,
    sealed_only: bool = False,
    lease_ms: int = LEASE_MS,
    where: str | None = None,
    selector: str | None = None,
) -> list[list[LedgerRange]]:
    """Plan what each task reads: ledger ranges in order, small ones together, also of several
    topics.

    Args:
        root: The data directory, with or without a living owner; or the URL of an object store,
            of which the history is read: what was offloaded there.
        topics: A name, names with commas between, or a list of them.
        start: `earliest`, `latest`, a time (datetime, or milliseconds since 1970), or offsets by
            topic, as in the options of format("pulsarx").
        end: As start.
        columns: Those to read; None: all.
        min_partitions: So many tasks at least, if there are as many messages.
        parallelism: As min_partitions, if that is more than 1 MiB each.
        max_bytes_per_partition: Bytes of a task at most; None: 128 MiB.
        max_records_per_partition: Messages of a task at most; None: any number.
        fail_on_data_loss: False: messages that retention removed are skipped.
        sealed_only: Without what is still being written, which hosts other than the owner's may not
            see as it is.
        lease_ms: How many milliseconds retention spares what was planned, and longer while any of
            it is being read; 0: not at all, and nothing is written. Of an object store nothing is
            leased.
        where: As the option; leaves out ledgers, and of their ends what was published at other
            times. `read_partitions`, which is to be given it, too, leaves out the other messages.
        selector: As the option. It is checked here, and leaves out no ledger: `read_partitions` is
            to be given it.

    Returns:
        The ranges of each task.

    Raises:
        TopicNotFound: There is no such topic.
        ValueError: An argument is wrong; the text says what to change.
        InvalidConfiguration: The selector is wrong; the text says where.
        DataLossError: Retention removed messages behind start.
        FolderError: There is no such folder.
    """
    check_selector(selector)
    names = column_names(columns)
    path = read_root(root)
    named = topic_names(topics)
    least = min_partitions or 0
    for name, value in (("min_partitions", least), ("lease_ms", lease_ms)):
        if value < 0:
            raise ValueError(f"{name} is {value}; it must be 0 or more")

    choice = RangeChoice()
    for each in [] if where is None else filters_of(where):
        choice.add(each)

    from pulsarx.spark.lease_keeper import keeper

    def look() -> list[LedgerRange]:
        # Its lease reads the same catalogue, and so does the next plan.
        broker = open_root(path, named, take_log)
        try:
            check_topics(broker, named)
            planner = Planner(broker, named, sealed_only=sealed_only)
            found = planner.plan(
                boundary_of(start, planner.topics),
                boundary_of(end, planner.topics),
                names,
                min_partitions=max(least, parallelism),
                max_bytes_per_partition=max_bytes_per_partition,
                max_records_per_partition=max_records_per_partition,
                fail_on_data_loss=fail_on_data_loss,
                from_ms=choice.from_ms,
                until_ms=choice.until_ms,
            )
            chosen = choice.of(found)
            tell_ends(broker, planner.topics)
            if lease_ms and not broker.is_stored:
                keeper.join(chosen, lease_ms, broker.catalogue.state.leases)
            return chosen
        finally:
            broker.close_and_keep_log()

    ranges = plan_leased(look, path, lease_ms)
    with given_back_on_error([ranges]):
        bytes_max = max_bytes_per_partition or TARGET_BYTES
        if parallelism > least:
            share = sum(each.size for each in ranges) // parallelism
            bytes_max = min(bytes_max, max(share, _SHARE_BYTES_MIN))
        return group_for_tasks(ranges, bytes_max, least, max_records_per_partition)


def topic_names(topics: str | Sequence[str]) -> list[str]:
    """TypeError, ValueError: no name, or something else than names."""
    from collections.abc import Iterable

    named: object = [topics] if isinstance(topics, str) else topics
    if not isinstance(named, Iterable) or isinstance(named, bytes):
        raise TypeError(f"topics is {topics!r:.80}; give the name of a topic, or a list of names")
    found = list(named)
    wrong = [each for each in found if not isinstance(each, str)]
    if wrong:
        raise TypeError(f"topics has {wrong[0]!r:.80}, which is no name of a topic")
    if not found:
        raise ValueError("topics is empty; name at least one topic")
    return found


def plan_leased(
    look: Callable[[], list[LedgerRange]], root: str, lease_ms: int
) -> list[LedgerRange]:
    """The ranges that look finds, leased; looks again when retention was faster. When a signal
    interrupts the caller, the lease is given back."""
    return plan_at_once(_plan_leased, (look, root, lease_ms), _give_back)


@contextmanager
def given_back_on_error(groups: list[list[LedgerRange]]) -> Iterator[None]:
    """A block that makes what is read under the lease of a plan; without it nobody keeps that."""
    try:
        yield
    except BaseException:
        try:
            _give_back([each for group in groups for each in group])
        except errors.PulsarException:
            pass  # it ends by itself
        raise


def _give_back(ranges: list[LedgerRange]) -> None:
    from pulsarx.spark.lease_keeper import keeper

    if ranges and ranges[0].lease is not None and not keeper.leave(ranges):
        release_lease(ranges[0].folder, ranges[0].lease[0], timeout_ms=_RELEASE_TIMEOUT_MS)


def _plan_leased(
    look: Callable[[], list[LedgerRange]], root: str, lease_ms: int
) -> list[LedgerRange]:
    from pulsarx.spark.lease_keeper import keeper

    job = f"spark-read-{uuid.uuid4().hex}"
    for attempt in range(1, _ATTEMPTS_MAX + 1):
        ranges = look()
        if not lease_ms or is_store(root):
            break
        try:
            if not keeper.lengthen(ranges):
                lease_read(root, job, ranges, lease_ms)
            keeper.watch(ranges)
            break
        except errors.NotAllowedError:
            if attempt == _ATTEMPTS_MAX:
                raise
    return ranges


def lease_read(root: str, job: str, ranges: list[LedgerRange], lease_ms: int) -> int:
    """Have retention spare what a job is about to read; when that ends, unless it is renewed."""
    if not ranges:
        return 0
    try:
        return lease_ranges(root, job, ranges, lease_ms)
    except (errors.FolderOwnedError, errors.StorageError) as error:
        error.add_note(
            "Only the lease needs the owner, or leave to write into the folder. To read without "
            "one, so that retention may remove what is being read: option leaseSeconds 0, "
            "argument lease_ms=0"
        )
        raise


def group_for_tasks(
    ranges: list[LedgerRange], bytes_max: int, count_min: int = 0, messages_max: int | None = None
) -> list[list[LedgerRange]]:
    """Small neighbours together; at least count_min groups, if there are as many ranges."""
    if count_min > 1:
        bytes_max = min(bytes_max, sum(each.size for each in ranges) // count_min)
    groups = group_ranges(ranges, bytes_max, messages_max)
    while len(groups) < min(count_min, len(ranges)):
        bytes_max //= 2
        groups = group_ranges(ranges, bytes_max, messages_max)
    return groups
