"""Writing topics by partition-mapped functions: each task seals ledgers of its own, and the driver
attaches all of them in one commit (write_commit)."""

from __future__ import annotations

from pulsarx import errors
from pulsarx.spark.commit_message import CommitMessage
from pulsarx.spark.keywords import check_keywords, check_raw
from pulsarx.spark.worker_heap import freeze_heap
from pulsarx.spark.write_commit import abort_write, commit_write, find_commit
from pulsarx.spark.write_job import WriteJob, plan_write
from pulsarx.spark.written_schema import check_write_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    import pyarrow as pa
    from pyspark import RDD, Accumulator
    from pyspark.sql import DataFrame, SparkSession

    from pulsarx.broker.requests.attach import AttachResult

MESSAGE_COLUMN = "message"
MESSAGE_DDL = f"{MESSAGE_COLUMN} string"


def write_partitions(
    parts: Iterable[Any],
    job: WriteJob,
    *,
    messages: Accumulator[list[CommitMessage]] | None = None,
) -> Iterator[CommitMessage]:
    """Stage what a task was given. Runs in a worker.

    In rdd.mapPartitions: collect what comes. In df.mapInArrow: wrap it into `message_batches`. In
    foreachPartition, which answers nothing: give an accumulator of `message_accumulator`.

    Args:
        parts: Arrow record batches, or rows: bytes, str, (key, value), dict or Row by column names.
        job: What `plan_write` returned.
        messages: An accumulator that gets the message, too.

    Yields:
        The message for `commit_write`, once.

    Raises:
        FolderError: This host does not have the folder; the text names host and path.
        ValueError: A row does not fit; the text names it.
        MessageTooBig: A row is larger than max_message_size.
        StorageFullError: There is no room.

    Durability:
        With `flush` of the job the files are on the device when the message comes; nobody reads
        them before commit_write.
    """
    from pulsarx.spark.row_batches import row_batches
    from pulsarx.spark.task_writer import TaskWriter

    freeze_heap()
    partition_id, attempt = _task()
    with TaskWriter(job, partition_id, attempt) as writer:
        for batch in row_batches(parts, partition_id):
            writer.add(batch)
        message = writer.finish()
    if messages is not None:
        messages.add([message])
    yield message


def message_batches(messages: Iterable[CommitMessage]) -> Iterator[pa.RecordBatch]:
    """Yield messages as what a function of mapInArrow answers, with the schema "message string".

    Args:
        messages: What `write_partitions` yields.

    Yields:
        One record batch.
    """
    from pulsarx.ground.extras import optional_module

    optional_module("pyarrow", "spark", "message_batches")
    import pyarrow as pa

    texts = [message.text() for message in messages]
    yield pa.record_batch([pa.array(texts, pa.string())], [MESSAGE_COLUMN])


def message_accumulator(spark: SparkSession) -> Accumulator[list[CommitMessage]]:
    """Return the accumulator where tasks of foreachPartition leave their messages; its value is for
    `commit_write`.

    Args:
        spark: The session.
    """
    from pyspark.accumulators import AccumulatorParam

    class _Messages(AccumulatorParam[list[CommitMessage]]):
        def zero(self, value: list[CommitMessage]) -> list[CommitMessage]:
            return []

        def addInPlace(
            self, value1: list[CommitMessage], value2: list[CommitMessage]
        ) -> list[CommitMessage]:
            return value1 + value2

    return spark.sparkContext.accumulator([], _Messages())


def write_topic(
    frame: DataFrame,
    topic: str | None = None,
    *,
    root: str | os.PathLike[str],
    **options: Any,
) -> AttachResult:
    """Append the rows to a topic, all or none, and wait for it.

    Rows of a Spark partition stay in order, partitions come in theirs; keys go to the topic
    partition their producers choose.

    Args:
        frame: Column value (binary or string), and if they are there __key, __eventTime,
            __messageProperties, __partition, __orderingKey, __deliverAt, and __topic where no topic
            is given. With value_format json, avro or schema the other columns become the value.
        topic: A name; None: the column __topic names it.
        root: The data directory.
        **options: Those of `plan_write`; application and version make it idempotent: the same again
            writes nothing, other messages under them are refused.

    Returns:
        What was attached, or had been before.

    Raises:
        TopicNotFound: There is no such topic, and the commit may not create it.
        NotAllowedError: The version was written with other messages, or a later one was.
        IncompatibleSchema: The topic refuses the schema, or rows without one.
        StorageFullError: There is no room.
        FolderError: There is no such folder.
        ValueError: A row or an argument is wrong; the text says what to change.
        TypeError: frame is no DataFrame, or an option does not exist.
        Timeout: Whether the rows were attached is unknown; the same again with application and
            version tells.

    Durability:
        All rows are on the device when it returns, in one commit; with flush=False a power cut may
        take them.
    """
    job = plan_frame_write(root, topic, frame, options)
    return write_once(
        job,
        lambda: commit_write(job, stage_frame(frame, job)),
        lambda: compute_frame(frame),
    )


def plan_frame_write(
    root: str | os.PathLike[str], topic: str | None, frame: DataFrame, options: dict[str, Any]
) -> WriteJob:
    """Plan what write_topic does."""
    check_keywords("write_topic", options, plan_write, "root")
    if not hasattr(type(frame), "writeStream"):
        kind = type(frame)
        raise TypeError(
            f"write_topic takes a DataFrame of Spark, not {kind.__module__}.{kind.__qualname__}; "
            "save_rdd writes an RDD"
        )
    job = plan_write(root, topic, **options)
    try:
        check_write_schema(frame.schema, topic is not None, job.values)
    except BaseException:
        abort_write(job)
        raise
    return job


def stage_frame(frame: DataFrame, job: WriteJob) -> list[CommitMessage]:
    """Have tasks stage the rows; their messages are for `commit_write`."""

    def stage(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (batch.rename_columns(names) for batch in batches)
        return message_batches(write_partitions(named, job))

    names = frame.columns
    # By their names mapInArrow would take a column `a.b` for a field of a column.
    numbered = frame.toDF(*(f"column{place}" for place in range(len(names))))
    rows = numbered.mapInArrow(stage, MESSAGE_DDL).collect()
    return [CommitMessage.of_text(row[0]) for row in rows]


def compute_frame(frame: DataFrame) -> None:
    """Have tasks compute all rows, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def save_rdd(
    rdd: RDD[Any], topic: str | None = None, *, root: str | os.PathLike[str], **options: Any
) -> AttachResult:
    """Append the elements of an RDD to a topic, all or none, and wait for it.

    Args:
        rdd: Elements as of `write_partitions`.
        topic: A name; None: the column __topic names it.
        root: The data directory.
        **options: Those of `plan_write`.

    Returns:
        What was attached, or had been before.

    Raises:
        TopicNotFound: As write_topic.
        NotAllowedError: As write_topic.
        StorageFullError: As write_topic.
        FolderError: As write_topic.
        ValueError: As write_topic.
        TypeError: rdd is no RDD, or an option does not exist.
        Timeout: As write_topic.

    Durability:
        As write_topic.
    """
    job = plan_rdd_write(root, topic, rdd, options)
    return write_once(job, lambda: commit_write(job, stage_rdd(rdd, job)), rdd.count)


def plan_rdd_write(
    root: str | os.PathLike[str], topic: str | None, rdd: RDD[Any], options: dict[str, Any]
) -> WriteJob:
    """Plan what save_rdd does."""
    check_keywords("save_rdd", options, plan_write, "root")
    if hasattr(type(rdd), "writeStream"):
        raise TypeError("save_rdd takes an RDD; write_topic writes a DataFrame")
    check_raw("save_rdd", options)
    return plan_write(root, topic, **options)


def stage_rdd(rdd: RDD[Any], job: WriteJob) -> list[CommitMessage]:
    """Have tasks stage the elements; their messages are for `commit_write`."""

    def stage(parts: Iterable[Any]) -> Iterator[CommitMessage]:
        return write_partitions(parts, job)

    return rdd.mapPartitions(stage).collect()


def write_once(
    job: WriteJob, write: Callable[[], AttachResult], compute: Callable[[], object]
) -> AttachResult:
    """Have a write staged and committed, unless an earlier one is known to count as this.

    compute: runs all tasks of the rows, for that case: Spark fails a stateful query whose batch is
        repeated and ends before each task has put its state away, which is behind its last row.
    """
    try:
        done = find_commit(job)
        if done is None:
            return write()
        compute()
        abort_write(job)
        return done
    except errors.Timeout:
        raise  # whether it was attached is unknown: the files must stay
    except BaseException:
        abort_write(job)
        raise


def _task() -> tuple[int, str]:
    """The Spark partition, and what tells this attempt from others; outside of a task 0."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None:
        return 0, "0"
    return context.partitionId(), f"{context.stageId()}.{context.taskAttemptId()}"
