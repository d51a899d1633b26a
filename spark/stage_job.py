"""Plans, writes and commits for the batch and stream writers of format("pulsarx").

  a job                     transaction                               repeated
  batch, txnAppId, topic    (txnAppId > topic, txnVersion)            by a second run of the job
  batch, txnAppId, __topic  (txnAppId, txnVersion)                    the same
  batch                     (a name of its own, 0)                    never
  stream, topic             (spark-query-<query id> > topic, batch)   by Spark, after any failure
  stream, __topic           (spark-query-<query id>, batch)           the same

A transaction is one commit of the catalogue for all topics and partitions.
"""

from __future__ import annotations

from pyspark.sql.datasource import WriterCommitMessage

from pulsarx import errors
from pulsarx.enumerations import CompressionType, HashingScheme
from pulsarx.spark.commit_message import CommitMessage
from pulsarx.spark.partition_writer import write_partitions
from pulsarx.spark.write_commit import abort_write, commit_write
from pulsarx.spark.write_job import plan_write
from pulsarx.spark.written_schema import check_write_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.broker.requests.attach import AttachResult
    from pulsarx.spark.options import Options
    from pulsarx.spark.write_job import WriteJob

COMPRESSIONS = {
    "none": CompressionType.NONE,
    "lz4": CompressionType.LZ4,
    "zlib": CompressionType.ZLib,
    "zstd": CompressionType.ZSTD,
    "snappy": CompressionType.SNAPPY,
}
HASHINGS = {
    "JavaStringHash": HashingScheme.JavaStringHash,
    "Murmur3_32Hash": HashingScheme.Murmur3_32Hash,
    "BoostHash": HashingScheme.BoostHash,
}


class StagedMessage(WriterCommitMessage):
    """The message of one task: what it staged, and for which query. Pickles."""

    def __init__(self, message: CommitMessage | None, job: WriteJob) -> None:
        self.message = message  # None: the task had nothing to do
        self.job: WriteJob = job.without_topics()


def plan_job(options: Options, schema: StructType, overwrite: bool, staging: bool) -> WriteJob:
    """Refuse everything that can be wrong with a write, before it begins."""
    check_append(options, overwrite, is_stream=not staging)
    others = set(schema.names).difference(getattr(options, "columns", None) or schema.names)
    if others:
        raise ValueError(
            f"option columns is {', '.join(options.columns)}, and the DataFrame has "
            f"{', '.join(sorted(others))}, too. Leave the option away, or write these columns only"
        )
    job = plan_write(
        options.root,
        options.topic,
        application=getattr(options, "txnAppId", None),
        version=getattr(options, "txnVersion", None),
        hashing_scheme=int(HASHINGS[options.hashingScheme]),
        compression=int(COMPRESSIONS[options.compression]),
        flush=options.flush,
        null_values=options.nullValues == "allow",
        max_ledger_bytes=options.maxLedgerBytes,
        max_message_size=options.maxMessageSize,
        on_conflict=getattr(options, "txnConflict", "error"),
        create_topic=options.createTopic,
        value_format=options.valueFormat,
        value_schema=options.valueSchema,
        merge_small_ledgers=options.mergeSmallLedgers,
        staging=staging,
    )
    try:
        check_write_schema(schema, options.topic is not None, job.values)
    except BaseException:
        if staging:
            abort_write(job)
        raise
    return job


def check_append(options: Options, overwrite: bool, *, is_stream: bool) -> None:
    """OperationNotSupported: what is there is to be replaced; a stream means output mode complete,
    whose batches each are the whole table."""
    if not overwrite:
        return
    if is_stream:
        hint = (
            'Use output mode append; for a table, .outputMode("complete") with a function of '
            "foreachBatch that calls pulsarx.spark.upsert_topic(..., complete=True), which writes "
            "to folders"
        )
        raise errors.OperationNotSupported(
            detail=f"output mode complete into {options.root}: a topic is a log, and what was "
            f"published stays. {hint}"
        )
    raise errors.OperationNotSupported(
        detail=f"overwrite in {options.root}: a topic is a log, and what was published stays. Use "
        '.mode("append"); to begin anew write to another topic'
    )


def check_no_table() -> None:
    """Runs in a task, before it writes. OperationNotSupported: the write is that of saveAsTable, or
    of another call that makes a table of it.

    Spark gives a data source nothing to tell such a call from save() by. But it runs the write
    inside the execution that makes the table, and drops the table when the write fails. In a
    function of foreachBatch every write is inside the execution of the stream: nothing is told.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is None or context.getLocalProperty("sql.streaming.queryId"):
        return
    whole = context.getLocalProperty("spark.sql.execution.root.id")
    if whole and whole != context.getLocalProperty("spark.sql.execution.id"):
        raise errors.OperationNotSupported(
            detail='saveAsTable, writeTo or CREATE TABLE ... AS SELECT with format("pulsarx"): '
            "Spark loses the options of such a table, so nothing could be read from it. Nothing "
            "was written, and no table was made. Write with save(); to read by a name, CREATE "
            "TEMPORARY VIEW ... USING pulsarx OPTIONS (...)"
        )


def write_task(job: WriteJob, batches: Iterator[Any]) -> StagedMessage:
    """Runs in a worker: stage the rows of one Spark partition."""
    (message,) = write_partitions(batches, job)
    return StagedMessage(message, job)


def attach_messages(
    options: Options, job: WriteJob, messages: list[StagedMessage | None]
) -> AttachResult:
    """The commit. Once for a transaction, however often it is called."""
    told = [each.message for each in messages if each is not None and each.message is not None]
    return commit_write(job, told, options.onSmallFiles)
