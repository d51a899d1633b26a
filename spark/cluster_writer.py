"""The writers of format("pulsarx") for a cluster: tasks send through the official client, and
nothing is left for the driver to commit.

What is sent is published at once, and stays when the job fails. A task that is tried again sends
anew: at least once. With option deduplicate (streams), or with txnAppId and txnVersion, the cluster
knows what it has: each Spark partition is a producer by the name of the query or application, and
sequence ids say batch or version, and row. Then a task goes on behind the last row that is stored,
and ConfirmedProducer sees to it that none in front of it is missing, nor another one. That is
exactly once where a repeated task computes the same rows in the same order; see spark/README.md.

A topic that is not there is made with the first row that is sent, so a job whose rows are refused
leaves none.
"""

from __future__ import annotations

import contextlib

from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event
from pulsarx.clock import Deadline
from pulsarx.spark.cluster_access import ClusterAccess, partition_count, topic_path
from pulsarx.spark.cluster_topics import ClusterSchemas
from pulsarx.spark.confirmed_producer import (
    EPOCH_SHIFT,
    ConfirmedProducer,
    SentRows,
    written_with_others,
)
from pulsarx.spark.confirmed_producer import OPTIONS as CONFIRMED
from pulsarx.spark.stage_job import COMPRESSIONS, HASHINGS, check_append, check_no_table
from pulsarx.spark.stream_batch import batch_of_task
from pulsarx.spark.task_writer import EVENT_TIME, KEY, PROPERTIES, VALUE, TaskWriter
from pulsarx.spark.topic_columns import DELIVER_AT, KEY_BYTES, ORDERING_KEY
from pulsarx.spark.value_choice import SCHEMA
from pulsarx.spark.written_schema import check_write_schema
from pulsarx.spark.written_values import WrittenValues, check_choice, check_encodes, given_schema
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql.types import StructType

    from pulsarx.client import Client
    from pulsarx.spark.options import Options

_OPEN_MAX = 200  # producers of a task
_BUSY_MS = 60_000  # for the attempt before to be gone
_MADE_MS = 10_000  # for a topic that another one has begun to make
_ASKED_MAX = 8  # Spark partitions, which may have had no rows


class ClusterJob:
    """A write on its way. A value that pickles: it travels to the tasks."""

    def __init__(
        self, options: Options, topic: str | None, counts: dict[str, int], is_new: bool = False
    ) -> None:
        self.access: ClusterAccess = ClusterAccess.of(options)
        self.topic = topic  # in full; None: the column __topic says it
        self.partition_counts = counts  # by topic, 0: it has none
        self.is_new: bool = is_new  # the topic is to be made with its first row
        self.hashing_scheme: int = int(HASHINGS[options.hashingScheme])
        self.compression: int = int(COMPRESSIONS[options.compression])
        self.is_key_based: bool = options.batchingType == "KeyBased"
        self.null_values: bool = options.nullValues == "allow"
        self.max_message_size: int = int(options.maxMessageSize)
        self.on_conflict = ""  # rows are not compared
        self.needs_key = False  # no table is written
        self.values: WrittenValues | None = None  # as of WriteJob
        # Names of producers, and what their messages are of; "": nothing is told apart.
        self.producer = ""
        self.epoch = 0

    def full_name(self, topic: str) -> str:
        """TopicNotFound: there is none."""
        name = str(check_keeps_messages(TopicName.of(topic)))
        if name not in self.partition_counts:
            self.partition_counts[name] = _count_of(self.access, name)
        return name

    def create_topic(self) -> None:
        """Make the topic as it was planned, once. NotAllowedError: it was made meanwhile, with
        other partitions."""
        if not self.is_new or self.topic is None:
            return
        admin, count = self.access.admin(), self.partition_counts[self.topic]
        try:
            if count:
                admin.ask("PUT", f"{topic_path(self.topic)}/partitions", count)
            else:
                admin.ask("PUT", topic_path(self.topic))
        except errors.NotAllowedError:  # 409: another task, or somebody else, was faster
            found = _count_made(self.access, self.topic)
            if found != count:
                raise errors.NotAllowedError(
                    detail=f"{self.topic} was created while rows were written to it, with {found} "
                    f"partitions where {count} were planned (0: none). Nothing of this task was "
                    "sent; write again"
                ) from None
        self.is_new = False


def _count_of(access: ClusterAccess, topic: str) -> int:
    found = partition_count(access.admin(), topic)
    if found is None:
        raise errors.TopicNotFound(detail=f"{topic} is not in {access.service_url}")
    return found


def _count_made(access: ClusterAccess, topic: str) -> int:
    """The partitions of a topic that is being made. TopicNotFound: it does not come."""
    until, pause = Deadline(_MADE_MS), Event()
    while (found := partition_count(access.admin(), topic)) is None:
        if until.expired():
            return _count_of(access, topic)
        pause.wait(0.1)
    return found


def plan_cluster_job(
    options: Options, schema: StructType, overwrite: bool, *, is_stream: bool
) -> ClusterJob:
    """Refuse everything that can be wrong with a write, before it begins."""
    from pulsarx.cluster import official

    official.native()
    check_append(options, overwrite, is_stream=is_stream)
    others = set(schema.names).difference(getattr(options, "columns", None) or schema.names)
    if others:
        raise ValueError(
            f"option columns is {', '.join(options.columns)}, and the DataFrame has "
            f"{', '.join(sorted(others))}, too. Leave the option away, or write these columns only"
        )
    values = _plan_values(options)
    check_write_schema(schema, options.topic is not None, values)
    if options.topic is None:
        job = ClusterJob(options, None, {})
        job.values = values
        return job
    topic = str(check_keeps_messages(TopicName.of(options.topic)))
    access = ClusterAccess.of(options)
    count = partition_count(access.admin(), topic)
    is_new = count is None
    if count is None:
        count = _planned_count(access, topic, options.createTopic)
    job = ClusterJob(options, topic, {topic: count}, is_new)
    job.values = values
    return job


def _plan_values(options: Options) -> WrittenValues | None:
    """Like written_values.plan_values; the brokers register a definition, when a task makes its
    producer."""
    found, definition = options.valueFormat, options.valueSchema
    check_choice(found, definition)
    if found == "raw":
        return None
    if found in ("string", "json"):
        return WrittenValues(found)
    if options.topic is None:
        raise ValueError(f"valueFormat {found} needs option topic: the schema is that of one topic")
    schemas, name = ClusterSchemas(ClusterAccess.of(options).admin()), TopicName.of(options.topic)
    if found == SCHEMA:
        versions = schemas.versions(name)
        if not versions:
            raise ValueError(f"valueFormat schema: {options.topic} has no schema. Register one")
        values = WrittenValues(found, versions[-1])
        check_encodes(values)
        return values
    info = given_schema(definition)
    values = WrittenValues(found, info)
    check_encodes(values)
    schemas.check(name, info)
    return values


def _planned_count(access: ClusterAccess, topic: str, create: bool | None) -> int:
    """The partitions of a topic that is to be made, as its namespace has it. TopicNotFound: it is
    not to be made."""
    admin = access.admin()
    name = TopicName.of(topic)
    policy = admin.json(f"/namespaces/{name.namespace_name}/autoTopicCreation") or {}
    if not (policy.get("allowAutoTopicCreation", False) if create is None else create):
        raise errors.TopicNotFound(
            detail=f"{topic} is not in {access.service_url}; option createTopic true creates it"
        )
    is_whole = name.partition_index < 0 and policy.get("topicType") == "partitioned"
    return int(policy.get("defaultNumPartitions") or 0) if is_whole else 0


def _check_deduplication(job: ClusterJob) -> None:
    """OperationNotSupported: the topic of a job would store twice what is sent twice."""
    if job.topic is None or not job.producer:
        return
    if job.is_new:
        _check_namespace(job.access, job.topic)
        return
    for each in _parts_of(job):
        _check_topic(job.access, each)


def _parts_of(job: ClusterJob) -> list[str]:
    """Return the names that producers for the topic of a job are made for."""
    assert job.topic is not None
    name = TopicName.of(job.topic)
    count = job.partition_counts[job.topic]
    return [str(name.partition(at)) for at in range(count)] or [job.topic]


def _check_namespace(access: ClusterAccess, topic: str) -> None:
    """Like _check_topic, for a topic that is not there yet."""
    admin = access.admin()
    namespace = TopicName.of(topic).namespace_name
    enabled = admin.json(f"/namespaces/{namespace}/deduplication")
    if enabled is None:
        with contextlib.suppress(errors.PulsarException):  # who asks may not be allowed to
            found = admin.json("/brokers/configuration/runtime")
            enabled = found.get("brokerDeduplicationEnabled") == "true"
    if not enabled:
        raise errors.OperationNotSupported(
            detail=f"{topic} is not there yet, and {namespace} does not enable deduplication, so "
            "nothing could be written exactly once there. Enable it with admin.namespaces."
            "set_deduplication; or create the topic, and enable it there"
        )


def _check_topic(access: ClusterAccess, topic: str) -> None:
    try:
        status = access.admin().json(f"{topic_path(topic)}/stats").get("deduplicationStatus")
    except errors.TopicNotFound:
        return  # a partition that nobody has used; looked at again when it is
    if status != "Enabled":
        raise errors.OperationNotSupported(
            detail=f"{topic}: deduplication is {status}, so nothing can be written exactly once "
            "there. Enable it: admin.topics.set_deduplication or "
            "admin.namespaces.set_deduplication; or leave deduplicate, txnAppId and txnVersion "
            "away, and write at least once"
        )


def _check_version(job: ClusterJob) -> None:
    """NotAllowedError: the topic of a job has a later version. Before anything of this one is sent.

    How many Spark partitions there were then nobody has noted. Brokers tell all producers that
    their last snapshot of a topic has, which may be two minutes old; for what came since the first
    ones are asked; each task asks for its own.
    """
    if job.topic is None or job.is_new:
        return
    topics = _parts_of(job)
    for each in topics:
        _check_snapshot(job, each)
    client = job.access.client()
    try:
        for partition_id in range(_ASKED_MAX):
            for each in topics:
                _create_named(client, job, each, partition_id).close()
    finally:
        client.close()


def _check_snapshot(job: ClusterJob, topic: str) -> None:
    """NotAllowedError: some producer of the application is known to have written a later version,
    of whichever Spark partition."""
    try:
        stats = job.access.admin().json(f"{topic_path(topic)}/internalStats")
    except errors.TopicNotFound:
        return  # a partition that nobody has used
    cursor = stats.get("cursors", {}).get("pulsar.dedup") or {}
    for name, sequence_id in (cursor.get("properties") or {}).items():
        application, _, number = name.rpartition("-")
        if application == job.producer and number.isdigit():
            _check_order(job, topic, name, int(sequence_id))


def _check_order(job: ClusterJob, topic: str, producer: str, sequence_id: int) -> None:
    version = sequence_id >> EPOCH_SHIFT
    if version > job.epoch:
        raise errors.NotAllowedError(
            detail=f"{topic}: producer {producer} has written version {version} of the "
            f"application, and this one is {job.epoch}. Versions ascend; nothing of this one was "
            "written there"
        )


def _create_named(client: Client, job: ClusterJob, topic: str, partition_id: int) -> Any:
    """The producer of a Spark partition. NotAllowedError: it has written a later version.
    OperationNotSupported: the topic would store twice what is sent twice."""
    name = f"{job.producer}-{partition_id}"
    options = _options_of(job) | CONFIRMED | {"producer_name": name}
    until = Deadline(_BUSY_MS)
    pause = Event()
    while True:
        try:
            producer: Any = client.create_producer(topic, **options)
            break
        except errors.ProducerBusy:
            # An attempt before, or a twin of this one, that is not gone yet.
            if until.expired():
                raise
            pause.wait(0.2)
    try:
        _check_topic(job.access, topic)
        _check_order(job, topic, name, producer.last_sequence_id())
        if job.topic is None:
            _check_snapshot(job, topic)  # with a topic the driver has asked
    except errors.PulsarException:
        producer.discard()
        raise
    return producer


def _options_of(job: ClusterJob) -> dict[str, Any]:
    from pulsarx.enumerations import BatchingType, CompressionType
    from pulsarx.tables.row_encoding import EncodedSchema

    found: dict[str, Any] = {"compression_type": CompressionType(job.compression)}
    if job.values is not None and job.values.info is not None:
        found["schema"] = EncodedSchema(job.values.info)
    if job.is_key_based and not job.producer:
        found["batching_type"] = BatchingType.KeyBased
    return found


class SentMessage(WriterCommitMessage):
    """The count of messages that one task has sent. Pickles."""

    def __init__(self, message_count: int) -> None:
        self.message_count = message_count


class ClusterBatchWriter(DataSourceArrowWriter):
    """Made in the driver; travels to the tasks. Pickles."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self.job: ClusterJob = plan_cluster_job(options, schema, overwrite, is_stream=False)
        if options.txnAppId is not None:
            self.job.producer = f"spark-{options.txnAppId}"
            self.job.epoch = options.txnVersion
            _check_deduplication(self.job)
            _check_version(self.job)

    def write(self, iterator: Iterator[Any]) -> SentMessage:
        from pyspark import TaskContext

        check_no_table()
        context = TaskContext.get()
        return _send(self.job, context.partitionId() if context else 0, iterator)

    def commit(self, messages: list[Any]) -> None:
        """Make the topic where there was no row; all rows are published already."""
        self.job.create_topic()

    def abort(self, messages: list[Any]) -> None:
        """Do nothing: messages that were sent are published, and stay."""


class ClusterStreamWriter(DataSourceStreamArrowWriter):
    """Spark makes one for the tasks and one more for each commit. Pickles."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        self._job = plan_cluster_job(options, schema, overwrite, is_stream=True)
        self._deduplicate = options.deduplicate
        if self._deduplicate:
            self._job.producer = "spark"
            _check_deduplication(self._job)

    def write(self, iterator: Iterator[Any]) -> SentMessage:
        query_id, batch_id, context = batch_of_task()
        if self._deduplicate:
            self._job.producer, self._job.epoch = f"spark-{query_id}", batch_id
        return _send(self._job, context.partitionId(), iterator)

    def commit(self, messages: list[Any], batchId: int) -> None:
        """Do nothing: everything is published."""

    def abort(self, messages: list[Any], batchId: int) -> None:
        """Do nothing: messages that were sent are published, and stay."""


def _send(job: ClusterJob, partition_id: int, batches: Iterator[Any]) -> SentMessage:
    writer = ClusterTaskWriter(job, partition_id)
    with writer:
        for batch in batches:
            writer.add(batch)
        return SentMessage(writer.send_rest())


class ClusterTaskWriter(TaskWriter):
    """Sends what one task was given: rows go where a task of a folder puts them, to producers in
    the place of ledgers."""

    def __init__(self, job: ClusterJob, partition_id: int) -> None:
        as_planned: Any = job  # what TaskWriter asks of a job, this one knows
        super().__init__(as_planned, partition_id, "")
        self._cluster = job
        self._client = job.access.client()
        # By the full name of the topic; the one used longest ago comes first.
        self._producers: dict[str, Any] = {}
        self._sent: dict[str, SentRows] = {}

    def _append(self, topic: str, rows: pa.RecordBatch, at: NDArray[Any]) -> None:
        # All rows are looked at before something is made for them.
        found = self._messages(rows, at)
        producer = self._producers.pop(topic, None) or self._create_producer(topic)
        self._producers[topic] = producer
        if len(self._producers) > _OPEN_MAX:
            self._finish(next(iter(self._producers)))
        is_confirmed = bool(self._cluster.producer)
        for row, (payload, details) in enumerate(found):
            try:
                if is_confirmed:
                    producer.add(self.message_count + int(at[row]), payload, details)
                else:
                    producer.send_async(payload, None, **details)
            except (ValueError, TypeError, errors.MessageTooBig) as error:
                if is_confirmed:
                    raise  # names the row
                raise self._of_row(error, int(at[row])) from None

    def _messages(
        self, rows: pa.RecordBatch, at: NDArray[Any]
    ) -> list[tuple[bytes | None, dict[str, Any]]]:
        """Payloads and arguments of send_async. Errors name the row."""
        names = rows.schema.names
        if KEY_BYTES in names:
            for row, key in enumerate(rows.column(KEY_BYTES).to_pylist()):
                if key is not None:
                    reason = f"{KEY_BYTES} is {key!r:.80}: the official client sends keys of text"
                    raise self._of_row(errors.OperationNotSupported(detail=reason), int(at[row]))
        values = rows.column(VALUE).to_pylist()
        nothing: list[Any] = [None] * len(values)
        keys = rows.column(KEY).to_pylist() if KEY in names else nothing
        times = _milliseconds(rows.column(EVENT_TIME)) if EVENT_TIME in names else nothing
        properties = rows.column(PROPERTIES).to_pylist() if PROPERTIES in names else nothing
        ordering = rows.column(ORDERING_KEY).to_pylist() if ORDERING_KEY in names else nothing
        delays = _milliseconds(rows.column(DELIVER_AT)) if DELIVER_AT in names else nothing
        found: list[tuple[bytes | None, dict[str, Any]]] = []
        for row, value in enumerate(values):
            try:
                details: dict[str, Any] = {
                    "properties": None if properties[row] is None else dict(properties[row]),
                    "partition_key": _text(keys[row]),
                    "event_timestamp": times[row],
                    "ordering_key": _text(ordering[row], ORDERING_KEY),
                    "deliver_at": delays[row],
                }
                found.append((self._payload(value), details))
            except (ValueError, TypeError, errors.MessageTooBig) as error:
                raise self._of_row(error, int(at[row])) from None
        return found

    def _payload(self, value: Any) -> bytes | None:
        if value is None:
            if not self._cluster.null_values:
                raise ValueError("the value is null; option nullValues allow sends it")
            return None
        found = value.encode() if isinstance(value, str) else bytes(value)
        if len(found) > self._cluster.max_message_size:
            raise errors.MessageTooBig(
                detail=f"the value has {len(found)} bytes, more than are allowed"
            )
        return found

    def _create_producer(self, topic: str) -> Any:
        job = self._cluster
        if not job.producer:
            job.create_topic()
            return self._client.create_producer(topic, block_if_queue_full=True, **_options_of(job))

        def create() -> Any:
            job.create_topic()
            return _create_named(self._client, job, topic, self.partition_id)

        sent = self._sent.setdefault(topic, SentRows(job.epoch))
        return ConfirmedProducer(
            create, self.partition_id, sent, job.max_message_size, job.is_key_based
        )

    def _finish(self, topic: str) -> None:
        producer = self._producers[topic]
        if isinstance(producer, ConfirmedProducer):
            producer.finish()
        else:
            producer.flush()
            producer.close()
        del self._producers[topic]

    def send_rest(self) -> int:
        """Wait until everything is stored. How many rows there were. NotAllowedError: an attempt
        before, or a write of this version, had more."""
        for topic in list(self._producers):
            self._finish(topic)
        for topic, sent in self._sent.items():
            if sent.row < sent.stored:
                raise written_with_others(
                    f"Spark partition {self.partition_id} has {sent.row} rows for {topic}, and "
                    f"{sent.stored} are stored"
                )
        self._client.close()
        return self.message_count

    def abort(self) -> None:
        """End, without waiting for what is on its way, and send nothing more: a part of a batch
        would be taken for the whole."""
        # What fails here must not hide why it was aborted.
        for producer in self._producers.values():
            with contextlib.suppress(errors.PulsarException):
                producer.discard()
        self._producers.clear()
        with contextlib.suppress(errors.PulsarException):
            self._client.shutdown()


def _text(key: Any, name: str = KEY) -> str | None:
    found: str | None
    if key is None or isinstance(key, str):
        found = key
    else:
        try:
            found = bytes(key).decode()
        except UnicodeDecodeError:
            raise ValueError(f"{name} is {key!r:.200}, which is not UTF-8") from None
    if found == "":
        raise ValueError(f"{name} is empty: the official client sends no such key; make it null")
    return found


def _milliseconds(column: pa.Array) -> list[int | None]:
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms", kind.tz), safe=False).cast(pa.int64())
    found: list[int | None] = column.to_pylist()
    return found
