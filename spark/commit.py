"""Writers' two ends: what tasks tell the driver, and how the driver makes it part of the topics.

  a job                     transaction                     repeated
  batch, txnAppId given     (txnAppId, txnVersion)          by whoever runs the job again
  batch                     (spark-job-<uuid>, 0)           never
  stream                    (spark-query-<query id>, batch) by Spark, after any failure

One commit of the catalogue for all topics and partitions, once a transaction.
"""

from __future__ import annotations

from pyspark.sql.datasource import WriterCommitMessage

from pulsarx import errors
from pulsarx.broker.attach import Transaction, attach
from pulsarx.broker.foreign_broker import ForeignBroker
from pulsarx.broker.partitioned_topic import partition_count_of
from pulsarx.spark.row_codec import RowColumns
from pulsarx.spark.staged_rows import StagedRows, WritePlan, remove_staged, unknown_topic
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pyspark.sql.types import StructType

    from pulsarx.broker.attach import AttachResult
    from pulsarx.broker.staged_file import StagedFile
    from pulsarx.spark.options import Options

SMALL_BYTES = 1 << 20
_SMALL_FILES_MIN = 16  # a few small ones are nobody's trouble


class StagedMessage(WriterCommitMessage):  # type: ignore[misc]
    """What one task staged. Pickles."""

    def __init__(self, partition_id: int, query_id: str, files: list[dict[str, Any]]) -> None:
        self.partition_id = partition_id
        self.query_id = query_id  # of the stream; empty in a batch
        self.files = files


def plan_write(options: Options, schema: StructType, overwrite: bool) -> WritePlan:
    """Everything that can be wrong with a write, told before it begins."""
    if overwrite:
        raise errors.OperationNotSupported(
            f"overwrite in {options.root}: a topic is a log, and what was published stays. Use "
            '.mode("append"); to begin anew write to another topic, or delete this one first'
        )
    columns = RowColumns(schema, options.topic is not None)
    broker = ForeignBroker(options.root)
    try:
        state = broker.catalogue.state
        folder_id = broker.directory.folder_id
        if options.topic is None:
            topics = {name: record.partition_count for name, record in state.topics.items()}
            return WritePlan(options, columns, folder_id, topics, None)
        name = TopicName.of(options.topic)
        full = str(name)
        if full not in state.topics:
            known = {each: 0 for each in state.topics}
            raise unknown_topic(full, known, options.root)
        topics = {full: partition_count_of(state, name)}
        return WritePlan(options, columns, folder_id, topics, full)
    finally:
        broker.close()


def write_task(plan: WritePlan, job: str, batches: Iterator[Any], query_id: str) -> StagedMessage:
    """Runs in a worker: stage the rows of one Spark partition."""
    import uuid

    from pyspark import TaskContext

    context = TaskContext.get()
    partition_id = context.partitionId() if context is not None else 0
    attempt = context.taskAttemptId() if context is not None else 0
    name = f"{partition_id:05d}-{attempt}-{uuid.uuid4().hex}"
    staged = StagedRows(plan, job, name, partition_id)
    try:
        for batch in batches:
            staged.write(batch)
        files = staged.seal()
    except BaseException:
        staged.abort()
        raise
    return StagedMessage(partition_id, query_id, [each.document() for each in files])


def staged_files(messages: list[Any]) -> list[StagedFile]:
    """In the order they come in their topics: by Spark partition, then as written."""
    from pulsarx.broker.staged_file import StagedFile

    told = [each for each in messages if isinstance(each, StagedMessage)]
    told.sort(key=lambda each: each.partition_id)
    found = [StagedFile.of_document(file) for each in told for file in each.files]
    return sorted(found, key=lambda file: file.topic)


def attach_messages(
    options: Options, transaction: Transaction, messages: list[Any]
) -> AttachResult:
    """The commit. Once for a transaction, however often it is called."""
    files = staged_files(messages)
    check_small(options, files)
    result = attach(options.root, transaction, files)
    if result.already:
        remove_staged(options.root, files)
    return result


def check_small(options: Options, files: list[StagedFile]) -> None:
    """A word of advice when ledgers get small, or an error: nothing is attached then."""
    if options.onSmallFiles == "ignore" or len(files) < _SMALL_FILES_MIN:
        return
    size = sum(file.size for file in files)
    if size >= len(files) * SMALL_BYTES:
        return
    text = (
        f"{len(files)} ledgers of {size // len(files)} bytes on average are written to "
        f"{options.root}; each costs a file and a line of the catalogue. Write from fewer Spark "
        "partitions: .coalesce(n), or .repartition(n, '__key') for topics with partitions; in a "
        "stream use a longer trigger. onSmallFiles=ignore turns this off"
    )
    if options.onSmallFiles == "error":
        raise errors.NotAllowedError(text + ". Nothing was attached")
    import warnings

    warnings.warn(text, stacklevel=2)


def abort_messages(options: Options, messages: list[Any]) -> None:
    """Take away what was staged. Harmless behind a commit: attached ledgers have other names."""
    remove_staged(options.root, staged_files(messages))
