"""The broker of one data directory in this process: its topics, threads and clocks. Shared by all
clients of the folder.

state    holds                                         left by
OPEN     clients hold references                       release of the last one, process exit, fork
CLOSED   ledgers sealed, lock given back               -
FORKED   a child's copy: every call raises             -
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable

from pulsarx import errors
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.cursor.cursor_store import CursorStore
from pulsarx._pycore.ground.file_system import FileSystem
from pulsarx._pycore.ledger.published_ends import PublishedEnds
from pulsarx.broker.background import Background
from pulsarx.broker.catalogue.catalogue import Catalogue
from pulsarx.broker.catalogue.kept_log import keep_log, take_log
from pulsarx.broker.completions import Completions
from pulsarx.broker.control.control_socket import ControlSocket
from pulsarx.broker.folder.cursor_listing import CursorListing
from pulsarx.broker.folder.data_directory import DataDirectory
from pulsarx.broker.folder.memory_directory import MemoryDirectory
from pulsarx.broker.policies.retention import RetentionPolicy
from pulsarx.broker.topics.partitioned_topic import (
    PartitionedTopic,
    check_is_whole,
    check_may_be_created,
    check_partition_count,
    creation,
    growth,
    partition_count_of,
)
from pulsarx.broker.topics.topic import Topic
from pulsarx.clock import system_clock
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from pulsarx.broker.catalogue.state import SubscriptionRecord, TopicRecord
    from pulsarx.broker_options import BrokerOptions
    from pulsarx.clock import Clock, Timer
    from pulsarx.randomness import Randomness

    Answer = TypeVar("Answer")


class BrokerSettings:
    """What all clients of one folder must agree on. A value."""

    __slots__ = ("clock", "durability", "flush_interval_ms", "options", "randomness")

    def __init__(
        self,
        clock: Clock,
        randomness: Randomness,
        durability: str,
        flush_interval_ms: int,
        options: BrokerOptions,
    ) -> None:
        self.clock = clock
        self.randomness = randomness
        self.durability = durability
        self.flush_interval_ms = flush_interval_ms
        self.options = options

    def differences(self, other: BrokerSettings) -> list[str]:
        """Names of what they do not agree on."""
        return [name for name in self.__slots__ if getattr(self, name) != getattr(other, name)]


class Broker:
    """Any thread may call."""

    read_only = False

    def __init__(
        self, location: str | None, settings: BrokerSettings, *, brief: bool = False
    ) -> None:
        """location: a folder, None for memory. brief: for one request; who wants the folder waits,
        and nobody asks it for anything."""
        self.settings = settings
        self.clock = settings.clock
        self.randomness = settings.randomness
        self.durability = settings.durability
        self.options = settings.options
        self.decompressed_size_max = max(settings.options.max_message_size, 1 << 27)
        self.lock = threading.RLock()
        self.topics: dict[str, Topic] = {}
        self._partitioned: dict[str, PartitionedTopic] = {}
        self.reference_count = 0
        self.state = "OPEN"
        self._producer_count = 0
        self._flush_timers: set[Timer] = set()
        self.files = FileSystem()
        log = None
        if location is None:
            self.directory: DataDirectory | MemoryDirectory = MemoryDirectory(
                now_ms=self.clock.now_ms()
            )
        else:
            self.directory = DataDirectory.open(
                location, files=self.files, now_ms=self.clock.now_ms(), brief=brief
            )
            log = take_log(self.directory) if brief else None
            self._cursor_listing = CursorListing(self.files, f"{self.directory.path}/cursors")
        try:
            self.catalogue = Catalogue.open(self.directory, log=log)
            if any(topic.ledgers for topic in self.catalogue.state.topics.values()):
                self.directory.check_mounted()
            ends_path = self.directory.ends_path
            epoch = self.catalogue.epoch
            self.ends = (
                PublishedEnds.memory(epoch)
                if ends_path is None
                else PublishedEnds.create(ends_path, epoch)
            )
            self._forget_ends()
        except BaseException:
            self.directory.close()
            raise
        self.background = Background("pulsarx-background")
        self.completions = Completions()
        self.attach_lock = threading.Lock()
        self.control: ControlSocket | None = None
        if location is not None and not brief:
            self.control = ControlSocket.open(self, self.directory.path)
        if self.control is not None:
            self.directory.announce(self.catalogue.epoch, self.control.address)

    def _forget_ends(self) -> None:
        """Of what dead owners published, keep the ends of ledgers that are to be recovered."""
        left = self.ends.left_ids()
        topics = self.catalogue.state.topics.values() if left else ()
        unsealed = {
            ledger.ledger_id
            for topic in topics
            for ledger in topic.ledgers
            if ledger.state == "open"
        }
        for ledger_id in left:
            if ledger_id not in unsealed:
                self.ends.forget_left(ledger_id)

    def after_flush_interval(self, flush: Callable[[], None]) -> None:
        """Call flush when the flush interval (real time) is over."""

        def due() -> None:
            self._flush_timers.discard(timer)
            flush()

        timer = system_clock().call_after(self.settings.flush_interval_ms, due)
        self._flush_timers.add(timer)
        if not timer.is_waiting():
            self._flush_timers.discard(timer)

    def next_producer_name(self) -> str:
        """As Pulsar standalone names them: cluster, instance, number. Unique within an epoch of the
        folder."""
        with self.lock:
            self._producer_count += 1
            return f"standalone-{self.catalogue.epoch}-{self._producer_count - 1}"

    # Topics ---------------------------------------------------------------------------------------

    def lookup(self, name: TopicName, *, create: bool = True) -> Topic | PartitionedTopic:
        """The topic of this name, with partitions or without, made when it is missing and allowed
        to be."""
        self.check_open()
        with self.lock:
            if str(name) not in self.catalogue.state.topics:
                self._create_topic(name, create)
            if partition_count_of(self.catalogue.state, name):
                return self.partitioned_topic(name)
            return self.topic(name, create=create)

    def topic(self, name: TopicName, *, create: bool = True) -> Topic:
        """The topic of this name that holds messages itself, made when it is missing and allowed
        to be. OperationNotSupported: it has partitions."""
        self.check_open()  # before the lock: in a forked child nobody would ever release it
        with self.lock:
            self.check_open()
            full = str(name)
            found = self.topics.get(full)
            if found is not None:
                return found
            record = self.catalogue.state.topics.get(full)
            if record is None:
                record = self._create_topic(name, create)
            check_is_whole(self.catalogue.state, name)
            try:
                self.topics[full] = Topic(self, record)
            except BaseException:
                if not isinstance(self.directory, MemoryDirectory):
                    self._cursor_listing.list_again()
                raise
            return self.topics[full]

    def _create_topic(self, name: TopicName, create: bool) -> TopicRecord:
        """As the options say that a topic is to be, which somebody names."""
        self._check_namespace(name)
        check_may_be_created(self.catalogue.state, name)
        if not create or not self.options.allow_auto_topic_creation:
            raise errors.TopicNotFound(
                f"{name}, and allow_auto_topic_creation is off" if create else str(name)
            )
        kind = self.options.allow_auto_topic_creation_type
        if kind == "partitioned" and name.partition_index < 0:
            self.create_partitioned_topic(name, self.options.default_num_partitions)
        else:
            self.create_non_partitioned_topic(name)
        return self.catalogue.state.topics[str(name)]

    def _check_namespace(self, name: TopicName) -> None:
        if name.domain != "persistent":
            raise errors.OperationNotSupported(
                f"{name}: non-persistent topics are not there in this version"
            )
        if name.namespace_name not in self.catalogue.state.namespaces:
            raise errors.TopicNotFound(f"{name}: there is no namespace {name.namespace_name}")

    def create_non_partitioned_topic(self, name: TopicName) -> None:
        """NotAllowedError: it exists. TopicNotFound: its topic has no such partition."""
        self._check_namespace(name)
        with self.lock:
            if str(name) in self.catalogue.state.topics:
                raise errors.NotAllowedError(f"create {name}: it exists already")
            check_may_be_created(self.catalogue.state, name)
            head = {"op": "create_topic", "topic": str(name)}
            self.catalogue.commit([{**head, "topic_id": self.catalogue.allocate_id()}])

    # Partitioned topics ---------------------------------------------------------------------------

    def partitioned_topic(self, name: TopicName) -> PartitionedTopic:
        """TopicNotFound: there is no topic of this name, or it has no partitions."""
        with self.lock:
            record = self.catalogue.state.topics.get(str(name))
            if record is None or not record.partition_count:
                raise errors.TopicNotFound(f"there is no partitioned topic {name}")
            found = self._partitioned.get(record.name)
            if found is None:
                found = self._partitioned[record.name] = PartitionedTopic(self, record)
            return found

    def create_partitioned_topic(self, name: TopicName, partition_count: int) -> None:
        """Create it with its partitions, all or nothing. NotAllowedError: it exists."""
        check_partition_count(partition_count, name)
        self._check_namespace(name)
        with self.lock:
            self.catalogue.commit(creation(self, name, partition_count))

    def update_partitioned_topic(self, name: TopicName, partition_count: int) -> None:
        """Give it more partitions. NotAllowedError: they would become fewer."""
        check_partition_count(partition_count, name)
        topic = self.partitioned_topic(name)
        first = topic.partition(0)
        # The first lock keeps the subscriptions as they are; it always comes before the broker's.
        with first.lock, self.lock:
            record = self.catalogue.state.topics[topic.name]
            operations = growth(self, record, partition_count)
            if partition_count == record.partition_count:
                return
            self.catalogue.commit(operations)
        topic.has_grown(partition_count)

    def check_subscription_creation(self, topic: str, name: str) -> None:
        if not self.options.allow_auto_subscription_creation:
            raise errors.SubscriptionNotFound(
                f"subscription {name} of {topic}, and allow_auto_subscription_creation is off"
            )

    @property
    def keeps_cursors(self) -> bool:
        """Whether subscriptions have files."""
        return not isinstance(self.directory, MemoryDirectory)

    def open_tracker(self, record: SubscriptionRecord) -> AckTracker:
        """The cursor of a subscription as it was left; one without a file is not kept yet."""
        if isinstance(self.directory, MemoryDirectory):
            return AckTracker(None)
        names = self._cursor_listing.take(record.cursor_id)
        tracker = AckTracker(self._cursor_store(record.cursor_id, names))
        for text in tracker.damage:
            import logging

            logging.getLogger("pulsarx").error("subscription %s: %s", record.name, text)
        return tracker

    def allocate_cursor_id(self) -> int:
        """A fresh id, of which no cursor file is left."""
        cursor_id = self.catalogue.allocate_id()
        if not isinstance(self.directory, MemoryDirectory):
            for name in self._cursor_listing.take(cursor_id):
                # Its owner died before the catalogue knew it, so the id is given out again. Unless
                # there is another owner by now, on a file system whose locks do not hold.
                self.catalogue.refresh()
                self.directory.set_aside(f"{self.directory.path}/cursors/{name}")
        return cursor_id

    def new_tracker(self, cursor_id: int) -> AckTracker:
        """The cursor of an id that allocate_cursor_id gave, without a file yet."""
        if isinstance(self.directory, MemoryDirectory):
            return AckTracker(None)
        return AckTracker(self._cursor_store(cursor_id, []))

    def _cursor_store(self, cursor_id: int, names: list[str]) -> CursorStore:
        prefix = f"{self.directory.path}/cursors/{cursor_id}"
        folder_id = bytes.fromhex(self.directory.folder_id)
        identity = cursor_id.to_bytes(8, "little") + folder_id[:8]
        return CursorStore(self.files, prefix, identity, names)

    def retention_of(self, topic: str) -> tuple[RetentionPolicy, bool]:
        """The retention policy in force on a topic and whether it was set explicitly."""
        return self.retention_in("/".join(topic.split("://", 1)[1].split("/")[:2]))

    def retention_in(self, namespace: str) -> tuple[RetentionPolicy, bool]:
        """The retention policy of a namespace and whether it was set explicitly."""
        policies = self.catalogue.state.namespaces.get(namespace)
        if policies is None:
            raise errors.TopicNotFound(f"there is no namespace {namespace}")
        found = policies.get("retention")
        if found is not None:
            return RetentionPolicy(found["time_minutes"], found["size_mb"]), True
        options = self.options
        policy = RetentionPolicy(
            options.default_retention_time_in_minutes, options.default_retention_size_in_mb
        )
        return policy, not policy.keeps_nothing

    def set_retention(self, namespace: str, policy: RetentionPolicy) -> None:
        if namespace not in self.catalogue.state.namespaces:
            raise errors.TopicNotFound(f"there is no namespace {namespace}")
        value = {"time_minutes": policy.time_minutes, "size_mb": policy.size_mb}
        self.catalogue.commit(
            [
                {
                    "op": "set_namespace_policy",
                    "namespace": namespace,
                    "policy": "retention",
                    "value": value,
                }
            ]
        )
        for topic in list(self.topics.values()):
            if topic.name.split("://", 1)[1].startswith(namespace + "/"):
                topic.trim()

    # Life -----------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """The owner's catalogue is always up to date."""

    def refresh_if_changed(self) -> int:
        """The number of the last commit."""
        return int(self.catalogue.state.number)

    def check_open(self) -> None:
        if self.state == "FORKED":
            raise errors.ForkedError(
                "the client was opened before this process was forked; open one of its own"
            )
        if self.state != "OPEN":
            raise errors.AlreadyClosed("client")

    def close(self) -> None:
        """Send open batches, seal ledgers, write the catalogue, give the lock back. Idempotent."""
        with self.lock:
            if self.state != "OPEN":
                return
            self.state = "CLOSED"
            topics = list(self.topics.values())
        failure: Exception | None = None
        if self.control is not None:
            # Finishes what it is doing, with the topics still open.
            failure = attempt(self.control.close)
        for producer in [each for topic in topics for each in topic.producers()]:
            error = attempt(producer.shut)
            # One that was forgotten may be closed in the background at the same time.
            if not isinstance(error, errors.AlreadyClosed):
                failure = error or failure
        for step in (self.completions.close, self.background.close):
            failure = attempt(step) or failure
        while self._flush_timers:
            self._flush_timers.pop().cancel()  # what they would flush is flushed by closing
        for topic in topics:
            failure = attempt(topic.close) or failure
        for step in (self.catalogue.close, self.directory.close):
            failure = attempt(step) or failure
        self.ends.close_file()
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """In a forked child: every call raises, nothing is touched."""
        self.state = "FORKED"
        if self.control is not None:
            self.control.abandon()
        for topic in list(self.topics.values()):
            topic.abandon()


def attempt(step: Callable[[], object]) -> Exception | None:
    """Run one step of closing; the next ones are tried even when it fails."""
    try:
        step()
    except Exception as error:
        return error
    return None


_registry: dict[str, Broker] = {}
# Reentrant: a forgotten client may be finalized, and release its broker, in the middle of acquire.
_registry_lock = threading.RLock()


def acquire(key: str, location: str | None, settings: BrokerSettings) -> Broker:
    """The broker of a folder (key: its real path) or of a memory name; opened by the first
    client."""
    closing = _registry.get(key)
    if closing is not None:
        closing.background.wait()  # for what was forgotten and is being closed there
    with _registry_lock:
        found = _registry.get(key)
        if found is None:
            found = _registry[key] = Broker(location, settings)
        elif settings.differences(found.settings):
            raise errors.InvalidConfiguration(
                f"{key} is open in this process with another "
                f"{', another '.join(settings.differences(found.settings))}; "
                "clients of one folder share one broker and must agree"
            )
        found.reference_count += 1
        return found


def release(key: str, broker: Broker) -> None:
    """Give a reference back; the last one closes the broker."""
    with _registry_lock:
        broker.reference_count -= 1
        if broker.reference_count > 0 or broker.state != "OPEN":
            return
        # Closed under the lock, so that a client opening the folder now waits for the seal instead
        # of failing.
        try:
            broker.close()
        finally:
            _registry.pop(key, None)


def lend(key: str) -> Broker | None:
    """The broker of this process for a key, if it is open, to be given back with `release`."""
    if key not in _registry:
        return None
    with _registry_lock:
        found = _registry.get(key)
        if found is None or found.state != "OPEN":
            return None
        found.reference_count += 1
        return found


def own_briefly(
    key: str, location: str, settings: BrokerSettings, work: Callable[[Broker], Answer]
) -> Answer | None:
    """Own a folder for one piece of work; None: this process owns it by now. Clients of it that
    open meanwhile in this process wait."""
    with _registry_lock:
        if key in _registry:
            return None
        broker = _registry[key] = Broker(location, settings, brief=True)
        broker.reference_count = 1
        try:
            return work(broker)
        finally:
            failure = attempt(lambda: release(key, broker))
            if failure is not None:  # it does not undo what was done
                _report_closing(key, failure)
            log = broker.catalogue.part_with_log()
            if log is not None:
                keep_log(broker.directory, log)


def find(key: str) -> Broker | None:
    """The broker of this process for a key, if it is open."""
    return _registry.get(key)


def _close_all() -> None:
    for key, broker in list(_registry.items()):
        error = attempt(broker.close)
        _registry.pop(key, None)
        if error is not None:
            _report_closing(key, error)


def _report_closing(key: str, failure: Exception) -> None:
    import logging

    logging.getLogger("pulsarx").error("closing %s failed: %s", key, failure)


def _abandon_all() -> None:
    global _registry_lock
    _registry_lock = threading.RLock()
    for broker in _registry.values():
        broker.abandon()
    _registry.clear()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_abandon_all)
