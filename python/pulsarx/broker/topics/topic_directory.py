"""The topics of an owned folder by name: finds them, opens them, creates them."""

from __future__ import annotations

import threading
from contextlib import ExitStack, contextmanager
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.file_system import may_exist
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.catalogue import changes
from pulsarx.broker.policies.creation import topic_creation
from pulsarx.broker.policies.limits import MAX_TOPICS
from pulsarx.broker.topics.compaction_monitor import CompactionMonitor
from pulsarx.broker.topics.deduplication import forget_snapshot, snapshot_path
from pulsarx.broker.topics.inactivity import Inactivity
from pulsarx.broker.topics.partitioned_topic import (
    PartitionedTopic,
    check_is_whole,
    check_may_be_created,
    check_partition_count,
    creation,
    growth,
    partition_count_of,
    partition_names,
)
from pulsarx.broker.topics.policy_checks import PolicyChecks, tell
from pulsarx.broker.topics.topic import Topic
from pulsarx.broker.topics.topic_deletion import TopicDeletion, topics_of_namespace
from pulsarx.ground.attempt import attempt
from pulsarx.topic_name import TopicName, check_may_be_made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pulsarx.broker.catalogue.draft import Operation
    from pulsarx.broker.catalogue.records import TopicRecord
    from pulsarx.broker.catalogue.state import CatalogueState
    from pulsarx.broker.offload.offload_monitor import OffloadMonitor
    from pulsarx.broker.policies.creation import TopicCreation
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.topics.any_topic import AnyTopic


class TopicDirectory:
    """Finds, opens and creates topics; its lock orders that. Calls of the control plane."""

    def __init__(self, runtime: BrokerRuntime) -> None:
        self._runtime = runtime
        self._lock = RLock()
        self._topics: dict[str, AnyTopic] = {}
        self._partitioned: dict[str, PartitionedTopic] = {}
        self._followers = WeakList()  # with created(name) and deleted(name)
        self._noting = threading.local()  # created: by this thread, in taking_back
        self._inactivity = Inactivity(runtime, self)
        self._checks = PolicyChecks(runtime, self._kept_topics, self._inactivity)
        self._checks.look_for_inactive()
        runtime.make_room = self._make_room
        self.compaction_monitor: CompactionMonitor = CompactionMonitor(runtime, self._kept_topics)
        self.compaction_monitor.arm()
        self.offload_monitor: OffloadMonitor | None = self._new_offload_monitor()

    def _new_offload_monitor(self) -> OffloadMonitor | None:
        """None: there is no object store."""
        if not self._runtime.options.offload_url:
            return None
        from pulsarx.broker.offload.offload_monitor import OffloadMonitor

        made = OffloadMonitor(self._runtime, self._kept_topics)
        made.arm()
        return made

    def watch(self, follower: Any) -> None:
        """Call follower.created(name) after each creation of a topic, with or without partitions,
        before its creator goes on and without a lock; and follower.deleted(name) after each
        deletion; and follower.grown(name) after a partitioned one was given more partitions. It is
        held weakly: it may simply go."""
        with self._lock:
            self._followers.add(follower)

    def _announce(self, created: list[TopicName]) -> None:
        noted = getattr(self._noting, "created", None)
        if noted is not None:
            noted += created
        for name in created:
            if name.full not in self._topics:
                self._inactivity.note(name.full)
            for follower in self._followers.members():
                follower.created(name)

    # Finding --------------------------------------------------------------------------------------

    def lookup(self, name: TopicName, *, create: bool = True) -> AnyTopic | PartitionedTopic:
        """The topic of this name, with partitions or without, made when it is missing and allowed
        to be."""
        self._runtime.state.require_open()
        created: list[TopicName] = []
        try:
            with self._lock:
                record = self._record(name, create, created)
                if record is not None and record.partition_count:
                    return self._partitions(name, record)
                return self._open(name, record, bool(created))
        finally:
            self._announce(created)

    def topic(self, name: TopicName, *, create: bool = True) -> AnyTopic:
        """The topic of this name that holds messages itself, made when it is missing and allowed
        to be. OperationNotSupported: it has partitions."""
        self._runtime.state.require_open()
        created: list[TopicName] = []
        try:
            with self._lock:
                found = self._topics.get(name.full)
                if found is not None and name.persistent:
                    return found
                if not name.persistent:
                    self._check_non_persistent(name)
                record = self._record(name, create, created)
                if record is not None and record.partition_count:
                    check_is_whole(self._runtime.catalogue.state, name)
                return self._open(name, record, bool(created))
        finally:
            self._announce(created)

    def _record(
        self, name: TopicName, create: bool, created: list[TopicName]
    ) -> TopicRecord | None:
        """The catalogue's record of a topic, which is made when it is missing and allowed to be;
        None: it does not know it. With the lock."""
        found = self._runtime.catalogue.state.topics.get(name.full)
        if found is None and name.full not in self._runtime.volatile:
            self._create(name, create, created)
            found = self._runtime.catalogue.state.topics.get(name.full)
        return found

    def is_there(self, full_name: str) -> bool:
        """Whether there is a topic of this name, in the catalogue or not."""
        return full_name in self._runtime.catalogue.state.topics or full_name in (
            self._runtime.volatile
        )

    def _open(self, name: TopicName, record: TopicRecord | None, is_new: bool) -> AnyTopic:
        """With the lock."""
        self._runtime.state.require_open()
        full = name.full
        if not name.persistent:
            self._check_non_persistent(name)
        found = self._topics.get(full)
        if found is not None:
            return found
        active_ms = None if is_new else self._inactivity.active_ms(name)
        if not name.persistent:
            from pulsarx.broker.topics.non_persistent_topic import NonPersistentTopic

            topic_id = 0 if record is None else record.topic_id
            self._topics[full] = NonPersistentTopic(self._runtime, name, topic_id, active_ms)
            return self._topics[full]
        assert record is not None
        try:
            topic = self._topics[full] = Topic(self._runtime, name, record, active_ms)
        except BaseException:
            self._runtime.list_cursors_again()
            raise
        if topic.effects.policies.ttl_seconds:
            self._runtime.background.post(topic.effects.expire)
        self._checks.needed_by(topic)
        return topic

    def existing(self, name: TopicName) -> AnyTopic:
        """TopicNotFound: there is none, and none is made."""
        return self.topic(name, create=False)

    def open_topic(self, full_name: str) -> AnyTopic | None:
        """The topic if it is open in this process."""
        return self._topics.get(full_name)

    def open_topics(self) -> list[AnyTopic]:
        with self._lock:
            return list(self._topics.values())

    def _kept_topics(self) -> list[Topic]:
        """The open ones that keep messages, for which most policies are."""
        return [each for each in self.open_topics() if isinstance(each, Topic)]

    def _make_room(self) -> None:
        for topic in list(self._topics.values()):
            if isinstance(topic, Topic):
                self._runtime.background.post(topic.make_room)

    def partitioned_topic(self, name: TopicName) -> PartitionedTopic:
        """TopicNotFound: there is no topic of this name, or it has no partitions."""
        with self._lock:
            record = self._runtime.catalogue.state.topics.get(name.full)
            if record is None or not record.partition_count:
                raise errors.missing_topic(name, partitioned=True)
            return self._partitions(name, record)

    def _partitions(self, name: TopicName, record: TopicRecord) -> PartitionedTopic:
        """With the lock."""
        found = self._partitioned.get(record.name)
        if found is None:
            found = PartitionedTopic(name, record, self.existing)
            self._partitioned[record.name] = found
        return found

    # Creating -------------------------------------------------------------------------------------

    def partitions_if_used(self, name: TopicName) -> int:
        """How many partitions a topic has that is about to be used, 0 for none: a client asks for
        that first. One with partitions is made now, one without when it is used; what refuses that
        is raised now."""
        created: list[TopicName] = []
        try:
            with self._lock:
                if not self.is_there(name.full):
                    policy = self._may_create(name, True)
                    if policy.kind == "partitioned" and name.partition_index < 0:
                        self._create(name, True, created)
                    else:
                        self._check_topic_limit(name, 1)
                return partition_count_of(self._runtime.catalogue.state, name)
        finally:
            self._announce(created)

    def _may_create(self, name: TopicName, create: bool) -> TopicCreation:
        """How a topic is created that a client named. Raises what forbids it."""
        if create:
            check_may_be_made(name)
        self._check_namespace(name)
        if create:
            check_may_be_created(self._runtime.catalogue.state, name)
        policy = topic_creation(self._runtime, name)
        if not create or not policy.allowed:
            if not create:
                raise errors.missing_topic(name)
            raise errors.TopicNotFound(detail=f"{name}, and allow_auto_topic_creation is off")
        return policy

    def _create(self, name: TopicName, create: bool, created: list[TopicName]) -> None:
        """Create a topic that a client named, of the kind that the options say. With the lock;
        created: gets its name, to be announced without it."""
        policy = self._may_create(name, create)
        flush = self._runtime.durability == "sync"
        if policy.kind == "partitioned" and name.partition_index < 0:
            check_partition_count(policy.partitions, name)
            self._create_with_partitions(name, policy.partitions, flush)
        else:
            self._make_whole(name, flush)
        if self._runtime.durability == "interval":
            self._runtime.flush_catalogue_soon()
        created.append(name)

    def _check_non_persistent(self, name: TopicName) -> None:
        if not self._runtime.options.enable_non_persistent_topics:
            raise errors.NotAllowedError(detail=f"{name}: enable_non_persistent_topics is off")

    def _check_namespace(self, name: TopicName) -> None:
        if not name.persistent:
            self._check_non_persistent(name)
        if name.namespace_name not in self._runtime.catalogue.state.namespaces:
            raise errors.missing_namespace(name.namespace_name, f"{name}: ")

    def create_non_partitioned_topic(self, name: TopicName, *, flush: bool = True) -> None:
        """NotAllowedError: it exists, or has the name of a partition. TopicNotFound: its topic
        has no such partition. flush: see Catalogue.commit."""
        check_may_be_made(name)
        with self._lock:
            self._check_namespace(name)
            self._create_whole(name, flush)
        self._announce([name])

    def _create_whole(self, name: TopicName, flush: bool = True) -> None:
        catalogue = self._runtime.catalogue
        if self.is_there(name.full):
            raise errors.NotAllowedError(detail=f"create {name}: it exists already")
        check_may_be_made(name)
        check_may_be_created(catalogue.state, name)
        self._make_whole(name, flush)

    def _make_whole(self, name: TopicName, flush: bool) -> None:
        """Create a topic for which _create_whole has found nothing in the way."""
        self._check_topic_limit(name, 1)
        if not name.persistent:
            self._runtime.volatile[name.full] = ()
            return
        catalogue = self._runtime.catalogue
        made = changes.create_topic(name.full, catalogue.allocate_id())
        catalogue.commit([made], flush=flush)

    def _check_topic_limit(self, name: TopicName, count: int) -> None:
        """NotAllowedError: with so many topics more its namespace has too many."""
        if name.is_system:
            return
        limit = self._runtime.policies.namespace_policy(name.namespace_name, MAX_TOPICS)
        if limit is None:
            limit = self._runtime.options.max_topics_per_namespace
        if not limit:
            return
        state = self._runtime.catalogue.state
        there = sum(
            not state.topics[each].partition_count and not TopicName.of(each).is_system
            for each in topics_of_namespace(state, name.namespace_name)
        ) + len(self.volatile_topics(name.namespace_name))
        if there + count > limit:
            raise errors.NotAllowedError(
                detail=f"create {name}: {name.namespace_name} has {there} topics; with {count} "
                f"more it would have more than max_topics_per_namespace, {limit}"
            )

    def _check_partition_limit(self, name: TopicName, count: int) -> None:
        limit = self._runtime.options.max_num_partitions_per_partitioned_topic
        if 0 < limit < count:
            raise errors.NotAllowedError(
                detail=f"{name} with {count} partitions: max_num_partitions_per_partitioned_topic "
                f"is {limit}"
            )

    def create_partitioned_topic(
        self, name: TopicName, partition_count: int, *, flush: bool = True
    ) -> None:
        """Create it with its partitions, all or nothing. NotAllowedError: it exists."""
        check_partition_count(partition_count, name)
        check_may_be_made(name)
        with self._lock:
            self._check_namespace(name)
            self._create_with_partitions(name, partition_count, flush)
        self._announce([name])

    def ensure_system_topic(self, name: TopicName, partition_count: int) -> int:
        """Create a topic of the system unless it exists, with its namespace and its tenant
        (partition_count 0: without partitions); how many partitions it has."""
        with self._lock:
            catalogue = self._runtime.catalogue
            state = catalogue.state
            if name.full not in state.topics:
                operations: list[Operation] = []
                if name.tenant not in state.tenants:
                    operations.append(changes.create_tenant(name.tenant, {}))
                if name.namespace_name not in state.namespaces:
                    operations.append(changes.create_namespace(name.namespace_name))
                if partition_count:
                    operations += creation(catalogue, name, partition_count)
                else:
                    operations.append(changes.create_topic(name.full, catalogue.allocate_id()))
                catalogue.commit(operations)
            return partition_count_of(catalogue.state, name)

    def _create_with_partitions(
        self, name: TopicName, partition_count: int, flush: bool = True
    ) -> None:
        check_may_be_made(name)
        self._check_partition_limit(name, partition_count)
        if name.full in self._runtime.volatile:
            raise errors.NotAllowedError(detail=f"create {name} with partitions: it exists already")
        if name.full not in self._runtime.catalogue.state.topics:
            self._check_topic_limit(name, partition_count)
        catalogue = self._runtime.catalogue
        catalogue.commit(creation(catalogue, name, partition_count), flush=flush)

    def ensure(self, name: TopicName, partition_count: int) -> tuple[int, bool]:
        """Create the topic unless it exists (partition_count 0: without partitions): how many
        partitions it has, and whether it was created."""
        if partition_count:
            check_partition_count(partition_count, name)
        with self._lock:
            self._check_namespace(name)
            created = not self.is_there(name.full)
            if created and partition_count:
                self._create_with_partitions(name, partition_count)
            elif created:
                self._create_whole(name)
            found = partition_count_of(self._runtime.catalogue.state, name)
        if created:
            self._announce([name])
        return found, created

    # Deleting -------------------------------------------------------------------------------------

    @contextmanager
    def taking_back(self) -> Iterator[None]:
        """Delete the topics that the block created if it raises, but for those that somebody uses
        by now, or that hold something."""
        outer = getattr(self._noting, "created", None)
        created: list[TopicName] = []
        self._noting.created = created
        try:
            yield
        except BaseException:
            self._noting.created = None
            self.take_back(created)
            raise
        finally:
            self._noting.created = outer

    def take_back(self, names: Iterable[TopicName]) -> None:
        """Delete topics that were created for a call which failed, but for those that somebody uses
        by now, or that hold something. Where that fails they stay, and the log says so."""
        for name in names:
            error = attempt(partial(self._take_back, name))
            if error is not None and not isinstance(
                error, (errors.NotAllowedError, errors.TopicNotFound)
            ):
                import logging

                logging.getLogger("pulsarx").warning(
                    "%s was made for a call that failed, and stays: %s",
                    name, errors.detail_of(error),
                )  # fmt: skip

    def _take_back(self, name: TopicName) -> None:
        def select(state: CatalogueState) -> list[str]:
            if not self.is_there(name.full):
                raise errors.missing_topic(name)
            count = partition_count_of(state, name)
            return [*(partition_names(name, count) if count else ()), name.full]

        self.delete(select, False, only_untouched=True)

    def delete(
        self,
        select: Callable[[CatalogueState], list[str]],
        force: bool,
        more: Callable[[CatalogueState], list[Operation]] = lambda _: [],
        *,
        only_untouched: bool = False,
    ) -> None:
        """Delete topics with all that is in them, all or none, in one commit. Durable on return.

        select: their full names, partitions and partitioned topics alike. more: operations that
        follow in the same commit.
        NotAllowedError: a topic is in use, and force is not set, which closes its users; or
        only_untouched is, and a topic has policies, subscriptions or ledgers.
        """
        while True:
            self._runtime.state.require_open()
            names = select(self._runtime.catalogue.state)
            try:
                topics = self._opened_for_deletion(names)
            except errors.TopicNotFound:
                if select(self._runtime.catalogue.state) == names:
                    raise
                continue  # another deletion was faster
            deletion = TopicDeletion(self._runtime, names, topics, force, only_untouched)
            with ExitStack() as stack:
                # In the order of their names, so that no two ever wait for each other.
                for topic in topics:
                    stack.enter_context(topic.lock)
                stack.enter_context(self._lock)
                if select(self._runtime.catalogue.state) != names:
                    continue
                if any(self._topics.get(topic.name) is not topic for topic in topics):
                    continue
                deletion.commit([*more(self._runtime.catalogue.state), *self._events_of(names)])
                for name in names:
                    self._topics.pop(name, None)
                    self._inactivity.forget(name)
                    self._runtime.volatile.pop(name, None)
                    partitioned = self._partitioned.pop(name, None)
                    if partitioned is not None:
                        partitioned.is_deleted = True
            break
        deletion.finish()
        self._runtime.policies.tell_changes()
        for gone in map(TopicName.of, names):
            if gone.partition_index < 0:
                for follower in self._followers.members():
                    follower.deleted(gone)

    def _events_of(self, names: list[str]) -> list[Operation]:
        """That the policies of topics go with them."""
        topics = self._runtime.catalogue.state.topics
        return [
            event
            for name in names
            if name in topics and topics[name].policies
            for event in self._runtime.policies.events_of(TopicName.of(name))
        ]

    def volatile_topics(self, namespace: str) -> list[str]:
        """The non-persistent topics of a namespace that the catalogue does not know, by name."""
        head = f"non-persistent://{namespace}/"
        return sorted(name for name in list(self._runtime.volatile) if name.startswith(head))

    def _opened_for_deletion(self, names: list[str]) -> list[AnyTopic]:
        """The topics of these names that hold messages, sorted by name."""
        state = self._runtime.catalogue.state
        whole = [each for each in names if not partition_count_of(state, TopicName.of(each))]
        topics = [self.existing(TopicName.of(name)) for name in sorted(whole)]
        for topic in topics:
            topic.producers.wait_for_forgotten()
        return topics

    def unload(self, name: TopicName) -> None:
        """Seal what is open and write positions down; where nobody is attached, free its memory.
        It is opened again when it is next named. Without a folder it stays: there is nowhere to
        open it from."""
        topic = self.existing(name)
        if not topic.keeps_messages:
            return
        topic.producers.wait_for_forgotten()
        topic.rest()
        if not self._runtime.keeps_cursors:
            return
        with topic.lock, self._lock:
            if self._topics.get(topic.name) is not topic:
                return
            try:
                if self._runtime.transactions_if_any is not None and isinstance(topic, Topic):
                    topic.transactions.check_none("unload")
                topic.close_to_newcomers(False)
            except errors.NotAllowedError:
                return
            del self._topics[topic.name]
            self._inactivity.note(topic.name, topic.last_active_ms)
            topic.ledger.is_unloaded = True
            try:
                topic.close()
            finally:
                self._runtime.list_cursors_again()  # it has made files since they were listed

    # Growing --------------------------------------------------------------------------------------

    def update_partitioned_topic(self, name: TopicName, partition_count: int) -> None:
        """Give it more partitions. NotAllowedError: they would become fewer."""
        check_partition_count(partition_count, name)
        topic = self.partitioned_topic(name)
        catalogue = self._runtime.catalogue
        first = topic.partition(0)
        # The first lock keeps the subscriptions as they are; it always comes before this one.
        with first.lock, self._lock:
            if topic.is_deleted:
                raise errors.missing_topic(name, partitioned=True)
            record = catalogue.state.topics[topic.name]
            holder = topic.holder()
            remote = None if holder is not None else self._remote_holder(record)
            if partition_count > record.partition_count:
                self._check_partition_limit(name, partition_count)
                self._check_topic_limit(name, partition_count - record.partition_count)
            operations = growth(
                catalogue,
                record,
                partition_count,
                self._runtime.clock.now_ms(),
                self._runtime.allocate_cursor_id,
                holder is not None or remote is not None,
            )
            if partition_count == record.partition_count:
                return
            catalogue.commit(operations)
            if holder is not None:  # before anybody else can come
                for each in range(record.partition_count, partition_count):
                    topic.partition(each).producers.reserve(topic.holder_name, holder)
            if remote is not None:
                for each in range(record.partition_count, partition_count):
                    remote.keep(topic.partition(each).producers)
        self._inactivity.note(topic.name)
        topic.has_grown(partition_count)
        for follower in self._followers.members():
            follower.grown(name)

    def _remote_holder(self, record: TopicRecord) -> Any:
        """The part on the first partition of a producer over a connection that has all partitions
        to itself; None: there is none. The lock is held."""
        held: list[Any] = []
        for each in partition_names(TopicName.of(record.name), record.partition_count):
            topic = self._topics.get(each)
            holder: Any = None if topic is None else topic.producers.holder()
            context = getattr(holder, "context", None)
            if context is None or (
                held and (held[0].context, held[0].name) != (context, holder.name)
            ):
                return None
            held.append(holder)
        return held[0]

    def arm_compaction(self) -> None:
        """There may be a first threshold of compaction."""
        with self._lock:
            self.compaction_monitor.arm()

    def apply_message_policies(self, target: str) -> None:
        """Have the policies of a namespace, or of a topic with its partitions, be in force on the
        topics that are open. Those that are not find them when they are opened."""
        for topic in self.open_topics():
            name = topic.topic_name
            if target in (name.namespace_name, name.partitioned_name):
                # The policy is set, whatever fails of what it does at once: that is tried again.
                tell(attempt(topic.effects.apply), topic)
                if isinstance(topic, Topic):
                    self._checks.needed_by(topic)
        self._checks.look_for_inactive()

    def close_checks(self) -> None:
        """Nothing is looked at any more."""
        self._checks.close()

    def apply_policies(self) -> None:
        """Have what was set about deduplication be in force on all topics, open or not."""
        for topic in self._kept_topics():
            topic.effects.apply_deduplication()
        with self._lock:
            for record in list(self._runtime.catalogue.state.topics.values()):
                path = snapshot_path(self._runtime, record.topic_id)
                if path is None or record.name in self._topics or not may_exist(path):
                    continue
                name = TopicName.of(record.name)
                if not self._runtime.policies.of_topic(name).deduplication:
                    forget_snapshot(path, self._runtime)

    def abandon(self) -> None:
        """In a forked child; the lock may be left taken."""
        for topic in list(self._topics.values()):
            topic.abandon()
