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
from pulsarx.broker.requests.owner_request import ask_owner
from pulsarx.broker.staging.content_digest import ContentDigest, is_same_content
from pulsarx.broker.staging.new_schema import NewSchema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pulsarx.broker.staging.staged_file import StagedFile
    from pulsarx.spark.commit_message import CommitMessage
    from pulsarx.spark.write_job import WriteJob

_LEDGER_BYTES_ADVISED = 1 << 20
_LEDGERS_UNNOTICED = 16  # fewer small ones do no harm
_MERGED_EVERY = 100  # versions of a write that has some
_MERGED_FILES = 100  # of one write, after which it is done as well


class WrittenBeforeError(errors.NotAllowedError):
    """A version that was written with other messages, or before a later one."""


def commit_write(
    job: WriteJob,
    messages: Iterable[CommitMessage],
    on_small_ledgers: str = "warn",
    *,
    derived: Iterable[CommitMessage] = (),
) -> AttachResult:
    """Attach what the tasks wrote, once: the same application and version again answers what was
    attached then.

    A schema that the topic did not have is registered with the rows, or not at all.

    Args:
        job: What `plan_write` returned.
        messages: Those of all tasks.
        on_small_ledgers: `warn`, `error` or `ignore`, when there are many of them.
        derived: Messages of rows that follow from the others and from what the topic held then, as
            deletes: attached with them, but not compared, for a repeated write finds another topic.

    Returns:
        What was attached, or had been before.

    Raises:
        NotAllowedError: This version was written with other messages, or a later one was, unless
            the job was planned with on_conflict="ignore"; or there are many small ledgers.
        ProducerBusy: A producer has the topic to itself, or waits for that.
        ProducerBlockedQuotaExceededError: The backlog of the topic is above its quota.
        ValueError: Messages of another write, or of two for one Spark partition.
        Timeout: Whether it was attached is unknown: call it again. After other errors nothing was.
        IncompatibleSchema: The topic refuses the schema.

    Durability:
        The rows are on the device when it returns, in one commit.
    """
    return commit_writes(job, [StagedWrite(job, messages, derived)], on_small_ledgers)


class StagedWrite:
    """Carries what the tasks of one write left for its commit. A value."""

    __slots__ = ("derived", "job", "messages")

    def __init__(
        self,
        job: WriteJob,
        messages: Iterable[CommitMessage],
        derived: Iterable[CommitMessage] = (),
    ) -> None:
        self.job: WriteJob = job
        self.messages: list[CommitMessage] = list(messages)
        self.derived: list[CommitMessage] = list(derived)


def commit_writes(
    job: WriteJob, writes: list[StagedWrite], on_small_ledgers: str = "warn"
) -> AttachResult:
    """Attach what the tasks of several writes wrote, in their order, in one commit.

    job: has the transaction of all of them. Raises what commit_write does.
    """
    files: list[StagedFile] = []
    merged: set[str] = set()  # the topics whose small ledgers may be
    for each in writes:
        found = ordered_files(each.job, each.messages + each.derived)
        files += found
        merged |= {file.topic for file in found if each.job.merge_small_ledgers}
    _advise(files, on_small_ledgers)
    content = _content_of(job, writes)
    for each in writes:
        _create_topic(each.job)
    schemas = _new_schemas(writes)
    try:
        result = attach(job.root, job.transaction, files, content=content, schemas=schemas)
    except errors.Timeout:
        result = attach(job.root, job.transaction, files, content=content, schemas=schemas)
    for each in writes:
        remove_staged(each.job)
    check_order(job, result)
    if (
        job.on_conflict == "error"
        and result.content
        and not is_same_content(result.content, content)
    ):
        count = sum(_message_count(each.messages) for each in writes)
        raise WrittenBeforeError(
            detail=f"write version {job.version} of {job.application!r}: it was written before, "
            f"with {result.message_count} messages, and these {count} are not the same. Nothing "
            "was written. Give each write its own version; where a write that is repeated computes "
            "something else, as from the time or a random number, and the first is to stay: "
            "option txnConflict ignore, argument on_conflict='ignore'"
        )
    _merge_small(job, merged, len(files))
    return result


def _merge_small(job: WriteJob, topics: set[str], file_count: int) -> None:
    """Now and then, have the small ledgers of the topics be merged. The write is attached by then,
    so what fails here is told and no more."""
    has_versions = job.on_conflict != ""
    due = (job.version + 1) % _MERGED_EVERY == 0 or file_count >= _MERGED_FILES
    if not (has_versions and due):
        return
    for topic in sorted(topics):
        try:
            merge_small_ledgers(job.root, topic)
        except Exception as error:  # of a write that is done, and must not fail by it
            warnings.warn(
                f"small ledgers of {topic} were not merged behind version {job.version} of "
                f"{job.application!r}, which is written: {errors.detail_of(error)}",
                stacklevel=5,
            )


def _create_topic(job: WriteJob) -> None:
    """With the commit, so that a job that fails leaves no topic; a kill leaves an empty one."""
    if job.new_partitions < 0 or job.topic is None:
        return
    arguments: dict[str, Any] = {"topic": job.topic}
    verb = "topics.create_non_partitioned_topic"
    if job.new_partitions:
        arguments["partitions"] = job.new_partitions
        verb = "topics.create_partitioned_topic"
    try:
        ask_owner(job.root, verb, arguments)
    except errors.NotAllowedError as error:
        if "exists" not in errors.detail_of(error):
            raise
        # Somebody else did, as another batch; where partitions differ attaching finds that out.


def _new_schemas(writes: list[StagedWrite]) -> list[NewSchema]:
    """The schemas that the commit registers: no row was refused by then, so none is left behind.
    IncompatibleSchema: two for one topic."""
    found: dict[str, NewSchema] = {}
    for each in writes:
        values = each.job.values
        if values is None or not values.is_new:
            continue
        assert each.job.topic is not None
        assert values.info is not None and values.version is not None
        new = NewSchema(each.job.topic, values.version, values.info)
        known = found.setdefault(new.topic, new)
        if known.document() != new.document():
            raise errors.IncompatibleSchema(
                detail=f"{new.topic}: two writes of one transaction bring different schemas. "
                "Nothing was written; write one of them before, by itself"
            )
    return list(found.values())


def _content_of(job: WriteJob, writes: list[StagedWrite]) -> str:
    """The digest of all rows, in whatever order and tasks they were."""
    if not job.on_conflict:
        return ""
    found = [message for each in writes for message in _distinct(each.messages)]
    digest = ContentDigest([each.content for each in found], [each.given for each in found])
    return digest.text(sum(each.message_count for each in found))


def _message_count(messages: list[CommitMessage]) -> int:
    return sum(each.message_count for each in _distinct(messages))


def _distinct(messages: list[CommitMessage]) -> list[CommitMessage]:
    """One message of each Spark partition that has rows: it may be told twice."""
    return list({each.partition_id: each for each in messages if each.message_count}.values())


def find_commit(job: WriteJob) -> AttachResult | None:
    """Find what an earlier write of this application has attached, with this version or a later
    one; None, too, when only the messages tell whether it was the same write: `commit_write`
    compares.

    NotAllowedError: it was a later version, as for `commit_write`.
    """
    found = attached(job.root, job.transaction)
    if found is not None:
        check_order(job, found)
        if job.new_partitions >= 0:
            raise errors.NotAllowedError(
                detail=f"write version {job.version} of {job.application!r}: it was written "
                f"before, and {job.topic} is not there any more. To write it to a new topic, give "
                "it another version"
            )
    return None if found is not None and job.on_conflict == "error" and found.content else found


def abort_write(job: WriteJob) -> None:
    """Give a write up. Harmless after its commit: only staged names go, and what was attached has
    others.

    Args:
        job: What `plan_write` returned.
    """
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


def merge_small_ledgers(root: str, topic: str) -> None:
    """Have the owner merge the small ledgers of a topic without partitions."""
    arguments = {"topic": topic, "size_max": _LEDGER_BYTES_ADVISED}
    ask_owner(root, "topics.merge_ledgers", arguments)


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
        raise errors.NotAllowedError(
            detail=f"{text}. Refused, as onSmallFiles says: nothing was attached"
        )
    warnings.warn(text, stacklevel=4)


def check_order(job: WriteJob, result: AttachResult) -> None:
    """A version behind a later one counts as written; the caller may mean it to be new."""
    if result.batch_id <= job.version:
        return
    text = (
        f"version {job.version} of {job.application!r} was not written: version "
        f"{result.batch_id} was before. Versions of an application must ascend"
    )
    if job.on_conflict == "error":
        raise WrittenBeforeError(
            detail=f"{text}. Where an earlier version again is to be left out: option txnConflict "
            "ignore, argument on_conflict='ignore'"
        )
    warnings.warn(text, stacklevel=3)
