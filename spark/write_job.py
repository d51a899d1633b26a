"""WriteJob: what the tasks of one write must know, and the planning of it on the driver. Imports
no Spark."""

from __future__ import annotations

import os
import uuid

from pulsarx import errors
from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.requests.attach import Transaction
from pulsarx.broker.requests.owner_request import check_owner
from pulsarx.broker.schemas.registry import closed_error
from pulsarx.broker.staging.partition_choice import partitions_of_keys
from pulsarx.broker.staging.sealed_writer import MESSAGE_SIZE_MAX
from pulsarx.broker.staging.staged_file import STAGING_NAME
from pulsarx.broker.staging.staging import folder_id_of, make_staging
from pulsarx.compression import compress
from pulsarx.enumerations import CompressionType, HashingScheme
from pulsarx.options.argument_check import INT64_MAX, is_whole_number
from pulsarx.spark.cluster_url import folder_path
from pulsarx.spark.topic_columns import nearest
from pulsarx.spark.written_values import WrittenValues, plan_values
from pulsarx.topic_name import TopicName, check_keeps_messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_TOPIC_MARK = " > "


class WriteJob:
    """A write on its way. A value that pickles: it travels to the tasks."""

    __slots__ = (
        "root", "folder_id", "name", "topic", "partition_counts", "application", "version",
        "hashing_scheme", "compression", "flush", "null_values", "max_ledger_bytes",
        "max_message_size", "on_conflict", "new_partitions", "values", "closed_topics",
        "merge_small_ledgers", "needs_key",
    )  # fmt: skip

    def __init__(
        self,
        root: str,
        folder_id: str,
        name: str,
        topic: str | None,
        partition_counts: dict[str, int],
        application: str,
        version: int,
        hashing_scheme: int,
        compression: int,
        flush: bool,
        null_values: bool,
        max_ledger_bytes: int,
        max_message_size: int,
        on_conflict: str,
        new_partitions: int,
        values: WrittenValues | None,
        closed_topics: frozenset[str],
        merge_small_ledgers: bool,
        needs_key: bool = False,
    ) -> None:
        self.root: str = root  # of the data directory, on every host
        self.folder_id: str = folder_id
        self.name: str = name  # of its staging area
        self.topic: str | None = topic  # in full; None: the column __topic says it
        self.partition_counts: dict[str, int] = partition_counts  # by topic, 0: it has none
        self.application: str = application
        self.version: int = version
        self.hashing_scheme: int = hashing_scheme
        self.compression: int = compression
        self.flush: bool = flush
        self.null_values: bool = null_values
        self.max_ledger_bytes: int = max_ledger_bytes
        self.max_message_size: int = max_message_size
        # About a version that was written before: error, ignore; "": its versions are Spark's.
        self.on_conflict: str = on_conflict
        # The commit makes the topic with so many, 0: without any; -1: it is there.
        self.new_partitions: int = new_partitions
        self.values: WrittenValues | None = (
            values  # what columns become; None: column value is the payload
        )
        # Topics that refuse payloads of no schema, where the column __topic chooses.
        self.closed_topics: frozenset[str] = closed_topics
        self.merge_small_ledgers: bool = (
            merge_small_ledgers  # now and then, where there are versions
        )
        self.needs_key: bool = needs_key  # rows without one are refused: the topic is a table

    @property
    def transaction(self) -> Transaction:
        return Transaction(self.application, self.version)

    def of_batch(self, name: str, application: str, version: int, on_conflict: str) -> WriteJob:
        """The same for another transaction, with a staging area of its own."""
        values = {each: getattr(self, each) for each in self.__slots__}
        values |= {"name": name, "application": application, "version": version}
        return WriteJob(**values | {"on_conflict": on_conflict})

    def without_topics(self) -> WriteJob:
        """Copy the job with what is enough for the commit; there may be many topics."""
        found = self.of_batch(self.name, self.application, self.version, self.on_conflict)
        found.partition_counts = {}
        found.closed_topics = frozenset()
        return found

    @property
    def staging(self) -> str:
        """The folder where its tasks put what they write."""
        return f"{self.root}/{STAGING_NAME}/{self.name}"

    def full_name(self, topic: str) -> str:
        """TopicNotFound: there was none when the job was planned. IncompatibleSchema: it refuses
        payloads of no schema."""
        name = check_keeps_messages(TopicName.of(topic))
        if name.full not in self.partition_counts:
            raise _unknown(name.full, self.partition_counts, self.root)
        if self.closed_topics and name.partitioned_name in self.closed_topics:
            raise closed_error(name.full)
        return name.full

    def check_host(self) -> None:
        """FolderError: this host does not have the folder where the driver made the staging area;
        says what it has instead."""
        if os.path.isdir(self.staging):
            return
        try:
            found = folder_id_of(self.root)
            there = (
                f"that id, too, so it is a copy, or the job is over and its {STAGING_NAME} gone"
                if found == self.folder_id
                else f"id {found}"
            )
        except errors.PulsarException as error:
            there = f"none ({error})"
        raise errors.FolderError(
            detail=f"write {self.staging} on {os.uname().nodename}: there is no such folder. The "
            f"driver made it in the data directory with id {self.folder_id}; under {self.root} "
            f"this host has {there}. Mount the same path on the driver and every executor"
        )

    def __reduce__(self) -> tuple[type[WriteJob], tuple[Any, ...]]:
        return WriteJob, tuple(getattr(self, name) for name in self.__slots__)

    def __repr__(self) -> str:
        return f"WriteJob({self.root!r}, {self.topic!r}, {self.application!r}, {self.version})"


def plan_write(
    root: str | os.PathLike[str],
    topic: str | None = None,
    *,
    application: str | None = None,
    version: int | None = None,
    hashing_scheme: HashingScheme | int = HashingScheme.JavaStringHash,
    compression: CompressionType | int = CompressionType.NONE,
    flush: bool = True,
    null_values: bool = False,
    max_ledger_bytes: int = 1 << 30,
    max_message_size: int = MESSAGE_SIZE_MAX,
    on_conflict: str = "error",
    create_topic: bool | None = None,
    value_format: str = "raw",
    value_schema: str | None = None,
    merge_small_ledgers: bool = True,
    staging: bool = True,
) -> WriteJob:
    """Check where a write goes to and make its staging area. Runs on the driver.

    Writes of one application to a topic have ascending versions, and what was written once is not
    written again. To another topic it is another write; all topics of __topic are one.

    Args:
        root: The data directory.
        topic: A name; None: the column __topic names it, row by row. It must exist, unless it is
            named here and the commit may create it.
        application: The name of what writes, with a version. None: a write by itself, which is
            repeated when it is called again.
        version: The number of the write; None as application.
        hashing_scheme: How a key selects its partition.
        compression: How payloads are compressed.
        flush: Tasks put their files on the device before they report; without it a power cut may
            take what was committed.
        null_values: Whether rows without a value are messages or an error.
        max_ledger_bytes: Bytes after which a task begins the next ledger.
        max_message_size: Bytes of a message at most: that of the topic's broker, if it is not the
            default.
        on_conflict: `error`: NotAllowedError when the version was written with other messages, or a
            later one was; `ignore`: it counts as written in both cases, and is not compared.
        create_topic: Whether the commit may create it, with the partitions of its namespace's
            policy auto_topic_creation, or none; None: if there is such a policy, and it allows
            that.
        value_format: `raw`: column value is the payload; `string`, `json`, `avro`, `schema`: what
            columns become, see written_values.
        value_schema: With avro the definition as JSON, which the commit registers on the topic if
            it is new.
        merge_small_ledgers: Whether ledgers of less than 1 MiB are merged into few files after
            every hundredth version, and a version of a hundred files.
        staging: False: only check, as each micro-batch of a stream does.

    Returns:
        The job, for tasks and commit_write.

    Raises:
        TopicNotFound: There is no such topic, and the commit may not create it.
        ValueError: An argument is wrong; the text says what to change.
        FolderError: There is no such folder.
        IncompatibleSchema: The topic refuses the schema, or rows without one.
        FolderOwnedError: The owner of the folder cannot be reached.
    """
    if (application is None) != (version is None):
        raise ValueError("application and version belong together: give both or neither")
    check_flag("flush", flush)
    check_flag("null_values", null_values)
    check_flag("merge_small_ledgers", merge_small_ledgers)
    _check_limit("max_ledger_bytes", max_ledger_bytes, 1 << 62)
    _check_limit("max_message_size", max_message_size, 1 << 29)
    _check_kinds(hashing_scheme, compression)
    if on_conflict not in ("error", "ignore"):
        raise ValueError(f"on_conflict is {on_conflict!r:.100}; it must be 'error' or 'ignore'")
    path = folder_path(root)
    name = f"spark-{uuid.uuid4().hex}"
    if create_topic and topic is None:
        raise ValueError("create_topic needs a topic; those of the column __topic must be there")
    topic, folder_id, counts, new_partitions = _look(path, topic, create_topic, keep=not staging)
    values = _values(path, topic, value_format, value_schema, new_partitions >= 0)
    closed = _closed_topics(path) if topic is None else frozenset()
    transaction = Transaction(name, 0)
    if application is not None and version is not None:
        transaction = _transaction(application, version, topic)
    if staging:
        check_owner(path)  # better than when all is written
        make_staging(path, name)
    return WriteJob(
        path,
        folder_id,
        name,
        topic,
        counts,
        transaction.application,
        transaction.batch_id,
        int(hashing_scheme),
        int(compression),
        flush,
        null_values,
        max_ledger_bytes,
        max_message_size,
        "" if application is None else on_conflict,
        new_partitions,
        values,
        closed,
        merge_small_ledgers,
    )


def check_flag(name: str, value: bool) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r:.100}; it must be True or False")


def _check_limit(name: str, value: int, most: int) -> None:
    if not isinstance(value, int):
        raise TypeError(f"{name} is {value!r:.100}; it must be a number of bytes")
    if not 1 <= value < most:
        raise ValueError(f"{name} is {value}; it must be from 1 to {most - 1}")


def _check_kinds(hashing_scheme: object, compression: object) -> None:
    """Refuse on the driver what no task could do, also a package that is not installed."""
    for name, value, example in (
        ("hashing_scheme", hashing_scheme, HashingScheme.Murmur3_32Hash),
        ("compression", compression, CompressionType.LZ4),
    ):
        if not isinstance(value, (type(example), int)):
            raise TypeError(f"{name} is {value!r:.100}; it must be such as {example}")
    partitions_of_keys(["key"], 1, int(hashing_scheme))  # type: ignore[call-overload]
    compress(int(compression), b"message")  # type: ignore[call-overload]


def application_for(application: str, topic: str | None) -> str:
    """The application of a write's transaction: versions of one topic do not count for another,
    and a function of foreachBatch writes several topics under one name. With topics chosen by the
    column __topic (None) one transaction covers all of them."""
    return application if topic is None else f"{application}{_TOPIC_MARK}{topic}"


def _transaction(application: str, version: int, topic: str | None) -> Transaction:
    if not is_whole_number(version) or not 0 <= version <= INT64_MAX:
        raise ValueError(
            f"version {errors.shown(version)} must be an int from 0 to 2**63 - 1; versions of an "
            "application ascend"
        )
    Transaction(application, version)  # checks the name
    return Transaction(application_for(application, topic), version)


# At most one. A thread that takes it out has it alone, and a fork finds it whole or not at all.
_kept: list[ReadOnlyBroker] = []


def _look(
    path: str, topic: str | None, create: bool | None, keep: bool
) -> tuple[str | None, str, dict[str, int], int]:
    """The topic's full name, the id of the data directory, partitions by topic, and those of a
    topic that is to be made, else -1.

    keep: for the next look in this process, which then reads what was committed since and no more.
    """
    broker = _kept_broker(path) if keep else ReadOnlyBroker(path)
    try:
        folder_id = broker.directory.folder_id
        topics = broker.catalogue.state.topics
        if topic is None:
            counts = {each: record.partition_count for each, record in topics.items()}
            return None, folder_id, counts, -1
        topic = str(check_keeps_messages(TopicName.of(topic)))
        if topic in topics:
            return topic, folder_id, {topic: topics[topic].partition_count}, -1
        count = _new_partitions(broker, TopicName.of(topic), create)
        if count < 0:
            raise _unknown(topic, topics, path)
        return topic, folder_id, {topic: count}, count
    finally:
        if keep:
            _keep(broker)
        else:
            broker.close()


def _values(
    path: str, topic: str | None, value_format: str, value_schema: str | None, is_new: bool
) -> WrittenValues | None:
    broker = _kept_broker(path)
    try:
        return plan_values(value_format, value_schema, topic, broker, is_new)
    finally:
        _keep(broker)


def _closed_topics(path: str) -> frozenset[str]:
    broker = _kept_broker(path)
    try:
        return frozenset(broker.schemas.closed_topics())
    finally:
        _keep(broker)


def _new_partitions(broker: ReadOnlyBroker, name: TopicName, create: bool | None) -> int:
    """Return how many partitions a topic gets that is created, 0: none; -1: it is not to be
    created."""
    if name.namespace_name not in broker.catalogue.state.namespaces:
        return -1
    policy: Any = broker.policies.namespace_policy(name.namespace_name, "auto_topic_creation")
    if not (policy is not None and policy["allowed"] if create is None else create):
        return -1
    if policy is None or policy["type"] != "partitioned" or name.partition_index >= 0:
        return 0
    return int(policy["partitions"])


def _kept_broker(path: str) -> ReadOnlyBroker:
    """The one that was kept, if it is of this folder still, with what was committed since."""
    try:
        broker = _kept.pop()
    except IndexError:
        return ReadOnlyBroker(path)
    directory = broker.directory
    try:
        if (
            broker.state.is_open
            and directory.path == path
            and directory.folder_id == folder_id_of(path)
        ):
            broker.refresh_if_changed()
            return broker
    except errors.PulsarException:
        pass  # such as a backup put back in its place: opening it tells what is wrong
    broker.close()
    return ReadOnlyBroker(path)


def _keep(broker: ReadOnlyBroker) -> None:
    _kept.append(broker)
    while len(_kept) > 1:
        try:
            _kept.pop(0).close()
        except IndexError:
            return  # another thread did


def _unknown(name: str, known: Any, root: str) -> errors.TopicNotFound:
    return errors.TopicNotFound(
        detail=f"{name} in {root}{nearest(name, known)} A job creates a topic with option "
        "createTopic true, argument create_topic=True, or where the namespace's policy "
        "auto_topic_creation says so; client.admin.topics does, too"
    )
