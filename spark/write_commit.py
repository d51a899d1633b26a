"""The end of a write, on the driver: everything its tasks wrote becomes visible in one commit, or
nothing does. Imports no Spark.

  tasks     seal ledgers in the staging area, each answers a CommitMessage
  driver    attaches what the messages name, in the order of topic partition and Spark partition
  driver    takes the staging area away: failed attempts left files there that no message names
"""

from __future__ import annotations

import os
import warnings

from pulsarx import errors
from pulsarx.broker.requests.attach import AttachResult, attach, attached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulsarx.broker.staging.staged_file import StagedFile
    from pulsarx.spark.commit_message import CommitMessage
    from pulsarx.spark.write_job import WriteJob

_LEDGER_BYTES_ADVISED = 1 << 20
_LEDGERS_UNNOTICED = 16  # fewer small ones do no harm


def commit_write(
    job: WriteJob, messages: Iterable[CommitMessage], on_small_ledgers: str = "warn"
) -> AttachResult:
    """Attach what the tasks wrote, once: the same application and version again answers what was
    attached then. Durable when it returns.

    on_small_ledgers: warn, error (NotAllowedError) or ignore, when there are many of them.
    ValueError: messages of another write, or of two for one Spark partition.
    The errors of `attach`; nothing was attached then, but after a Timeout: call it again.
    """
    files = ordered_files(job, messages)
    _advise(files, on_small_ledgers)
    try:
        result = attach(job.root, job.transaction, files)
    except errors.Timeout:
        result = attach(job.root, job.transaction, files)
    remove_staged(job)
    _warn_of_later(job, result)
    return result


def find_commit(job: WriteJob) -> AttachResult | None:
    """What an earlier write of this application has attached, with this version or a later one."""
    found = attached(job.root, job.transaction)
    if found is not None:
        _warn_of_later(job, found)
    return found


def abort_write(job: WriteJob) -> None:
    """Give a write up. Harmless after its commit: only staged names go, and what was attached has
    others."""
    remove_staged(job)


def ordered_files(job: WriteJob, messages: Iterable[CommitMessage]) -> list[StagedFile]:
    """Order files by topic partition, Spark partition, and the order written: rows sorted before
    they were written are messages in that order. A message may be told twice."""
    by_partition: dict[int, CommitMessage] = {}
    for message in messages:
        for file in message.files:
            if file.job != job.name:
                raise ValueError(f"{message!r} is of the write {file.job}, this is {job.name}")
        known = by_partition.get(message.partition_id)
        if known is None or not known.files:
            by_partition[message.partition_id] = message
        elif message.files and message.files != known.files:
            # Attaching two attempts would double rows; leaving out one of two RDDs would lose some.
            raise ValueError(
                f"two messages of Spark partition {message.partition_id}: {known!r} and "
                f"{message!r}. Nothing was attached. Plan a write for each RDD or DataFrame, and "
                "run it once"
            )
    found = [
        (file.topic, partition_id, place, file)
        for partition_id, message in by_partition.items()
        for place, file in enumerate(message.files)
    ]
    return [each[3] for each in sorted(found, key=lambda each: each[:3])]


def remove_staged(job: WriteJob) -> None:
    """Take the staging area of a job away. Attempts that still run fail at their next file; what
    they leave is collected by age."""
    try:
        names = os.listdir(job.staging)
    except OSError:
        return
    for name in names:
        try:
            os.unlink(f"{job.staging}/{name}")
        except OSError:
            pass
    try:
        os.rmdir(job.staging)
    except OSError:
        pass


def _advise(files: list[StagedFile], on_small_ledgers: str) -> None:
    size = sum(file.size for file in files)
    if on_small_ledgers == "ignore" or len(files) <= _LEDGERS_UNNOTICED:
        return
    if size >= len(files) * _LEDGER_BYTES_ADVISED:
        return
    text = (
        f"{len(files)} ledgers of {size // len(files)} bytes on average are attached; readers "
        "are fastest with 1 MiB or more. Write fewer Spark partitions (coalesce), or for a "
        "topic with partitions repartition by key first, for many topics by __topic"
    )
    if on_small_ledgers == "error":
        raise errors.NotAllowedError(f"{text}. Refused, as onSmallFiles says: nothing was attached")
    warnings.warn(text, stacklevel=3)


def _warn_of_later(job: WriteJob, result: AttachResult) -> None:
    """Warn of a version out of order, which counts as written: the caller may mean it to be new."""
    if result.batch_id > job.version:
        warnings.warn(
            f"version {job.version} of {job.application!r} was not written: version "
            f"{result.batch_id} was before. Versions of an application must ascend",
            stacklevel=3,
        )
