"""Publishes rows as the newest state of their keys: what foreachBatch does with output mode update
or complete. The topic is a table for those who read it compacted."""

from __future__ import annotations

import os

from pulsarx.spark.keywords import check_keywords, check_raw
from pulsarx.spark.partition_writer import compute_frame, stage_frame, write_once
from pulsarx.spark.write_commit import commit_write
from pulsarx.spark.write_job import check_flag, plan_write
from pulsarx.spark.written_schema import check_write_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import DataFrame

    from pulsarx.broker.requests.attach import AttachResult
    from pulsarx.spark.commit_message import CommitMessage
    from pulsarx.spark.write_job import WriteJob

_KEY, _VALUE, _PARTITION = "__key", "value", "__partition"
_READ_AT_ONCE = 10_000


def upsert_topic(
    frame: DataFrame,
    topic: str,
    *,
    root: str | os.PathLike[str],
    application: str,
    version: int,
    complete: bool = False,
    **options: Any,
) -> AttachResult:
    """Write each row as the newest message of its key, all or none, and wait for it.

    Args:
        frame: Columns as of `write_topic`, with __key, which is never null nor empty, and a row a
            key; without a value the key is deleted.
        topic: A name.
        root: The data directory.
        application: The name of the query.
        version: The number of its batch: the same rows again write nothing.
        complete: Rows are the whole table, as of output mode complete: keys of the topic that are
            not among them are deleted, for which the driver reads the topic, compacted if it is.
        **options: Those of `plan_write`.

    Returns:
        What was attached, or had been before.

    Raises:
        NotAllowedError: The batch was written with other rows, or a later one was, as with a new
            checkpoint or one that was put back; on_conflict="ignore" takes both as written.
        TopicNotFound: As write_topic.
        StorageFullError: As write_topic.
        FolderError: As write_topic.
        ValueError: There is no column __key, or a row or an argument is wrong.
        TypeError: An option does not exist.
        Timeout: As write_topic.

    Durability:
        As write_topic.
    """
    given = {"application": application, "version": version, **options}
    job = plan_upsert(root, topic, frame, complete, given)

    def write() -> AttachResult:
        messages, deletes = stage_upsert(frame, job, complete)
        return commit_write(job, messages, derived=deletes)

    return write_once(job, write, lambda: compute_frame(frame))


def plan_upsert(
    root: str | os.PathLike[str],
    topic: str,
    frame: DataFrame,
    complete: bool,
    options: dict[str, Any],
) -> WriteJob:
    """Plan what upsert_topic does."""
    if _KEY not in frame.columns:
        raise ValueError(
            f"upsert_topic: the DataFrame has no column {_KEY!r}, which says whose newest state a "
            f"row is. It has {', '.join(frame.columns)}"
        )
    check_flag("complete", complete)  # a text would delete all other keys
    check_keywords("upsert_topic", options, plan_write, "root", "complete")
    check_raw("upsert_topic", options)
    check_write_schema(frame.schema, True)
    planned: dict[str, Any] = {"null_values": True, **options}
    job = plan_write(root, topic, **planned)
    job.needs_key = True
    return job


def stage_upsert(
    frame: DataFrame, job: WriteJob, complete: bool
) -> tuple[list[CommitMessage], list[CommitMessage]]:
    """Have tasks stage the rows, and the deletes that follow from them and the topic."""
    if not complete:
        return stage_frame(frame, job), []
    cached = frame.is_cached
    if not cached:
        frame.persist()
    try:
        messages = stage_frame(frame, job)
        deletes = _stage_deletes(frame, job, messages)
    finally:
        if not cached:
            frame.unpersist()
    return messages, deletes


def _stage_deletes(
    frame: DataFrame, job: WriteJob, messages: list[CommitMessage]
) -> list[CommitMessage]:
    """Have tasks stage messages without a value for keys of the topic that are not in a frame.
    messages: of its rows, in whose Spark partitions no delete may seem to be."""
    known = [] if job.new_partitions >= 0 else _live_keys(job)
    if not known:
        return []
    found = stage_frame(_deletes(frame, known), job)
    behind = 1 + max((each.partition_id for each in messages), default=-1)
    for each in found:
        each.partition_id += behind
    return found


def _deletes(frame: DataFrame, known: list[tuple[bytes, int]]) -> DataFrame:
    """Messages without a value for those of the keys that are not in a frame, which may have them
    as text."""
    from pyspark.sql import functions

    keys = frame.sparkSession.createDataFrame(known, f"{_KEY} binary, {_PARTITION} int")
    there = frame.select(functions.col(_KEY).cast("binary").alias(_KEY))
    gone = keys.join(there, _KEY, "left_anti")
    return gone.withColumn(_VALUE, functions.lit(None).cast("binary"))


def _live_keys(job: WriteJob) -> list[tuple[bytes, int]]:
    """The keys whose last message in a partition has a value, as they are stored, and the
    partition (-1: the topic has none): where other producers, or fewer partitions, have put a key
    it has to be deleted."""
    import pulsarx

    topic = str(job.topic)
    is_parted = job.partition_counts[topic] > 0
    found: dict[tuple[bytes, int], bool] = {}
    with pulsarx.Client(job.root, read_only=True) as client:
        for index, part in enumerate(client.get_topic_partitions(topic)):
            reader = client.create_reader(part, pulsarx.MessageId.earliest, is_read_compacted=True)
            while reader.has_message_available():
                for message in reader.read_many(_READ_AT_ONCE, 0):
                    # The text of a key that is no UTF-8 has a surrogate for each other byte.
                    key = message.partition_key().encode("utf-8", "surrogateescape")
                    if key:
                        # As compaction has it: an empty value deletes its key, too.
                        is_live = not message.has_null_value() and bool(message.data())
                        found[key, index if is_parted else -1] = is_live
            reader.close()
    return [place for place, is_live in found.items() if is_live]
