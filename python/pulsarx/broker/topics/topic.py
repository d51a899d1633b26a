"""A topic of an owned data directory: its ledgers, its producers, its subscriptions."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from pulsarx import errors
from pulsarx._pycore.dispatch.position_sink import PositionSink
from pulsarx._pycore.ground.locks import RLock
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.catalogue import changes
from pulsarx.broker.folder.at_once import take_at_once
from pulsarx.broker.folder.storage_errors import storage_error
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.broker.policies.creation import check_subscription_creation, check_subscription_type
from pulsarx.broker.policies.message_policies import NO_SUBSCRIPTIONS, is_exempt_subscription
from pulsarx.broker.topics.backlog_limits import BacklogLimits
from pulsarx.broker.topics.compaction import TopicCompaction
from pulsarx.broker.topics.counted_rates import TopicRates
from pulsarx.broker.topics.deduplication import Deduplication, forget_snapshot, snapshot_path
from pulsarx.broker.topics.producer_registry import ProducerRegistry
from pulsarx.broker.topics.rate_limits import RateLimits
from pulsarx.broker.topics.subscription_limits import (
    check_consumer_limit,
    check_subscription_limit,
)
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.topics.trimming import Trimming
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.cursor.ack_tracker import AckTracker
    from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx._pycore.publish.entry_publisher import EntryPublisher
    from pulsarx.broker.catalogue.catalogue import Catalogue
    from pulsarx.broker.catalogue.records import SubscriptionRecord, TopicRecord
    from pulsarx.broker.folder.file_operations import FileOperations
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.offload.topic_offload import TopicOffload
    from pulsarx.broker.policies.limits import TopicLimits
    from pulsarx.broker.policies.message_policies import InactiveTopics
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.subscriptions.subscription import MakeConsumer, Subscription
    from pulsarx.broker.subscriptions.topic_cursors import TopicCursors
    from pulsarx.broker.topics.reader_cursor import ReaderCursor
    from pulsarx.topic_name import TopicName

_NOBODY: frozenset[object] = frozenset()


class Topic:
    """Opens ledgers and cursors, attaches producers and consumers; its lock orders that. Calls of
    the control plane; hot calls do not come here."""

    __slots__ = (
        "_backlog_limits",
        "_compaction",
        "_offload",
        "_is_gone",
        "_non_durable",
        "_rate_limits",
        "rates",
        "_reader_cursors",
        "_watches",
        "_trimming",
        "decompressed_size_max",
        "deduplication",
        "last_active_ms",
        "ledger",
        "lock",
        "name",
        "policies",
        "producers",
        "runtime",
        "subscriptions",
        "topic_id",
        "topic_name",
    )
    keeps_messages = True
    is_partitioned = False

    def __init__(
        self,
        runtime: BrokerRuntime,
        name: TopicName,
        record: TopicRecord,
        last_active_ms: int | None = None,
    ) -> None:
        """last_active_ms: when it was used last; None: now."""
        self.runtime = runtime
        now_ms = runtime.clock.now_ms()
        self.last_active_ms = now_ms if last_active_ms is None else last_active_ms
        self.topic_name = name
        self.name = name.full
        self.lock = RLock()
        self.decompressed_size_max = runtime.decompressed_size_max
        self.subscriptions: dict[str, Subscription] = {}
        self._non_durable: dict[str, Subscription] = {}
        self._reader_cursors: WeakList | None = None  # made with the first
        self._watches = _NOBODY  # of other processes that read it
        self._is_gone = False
        self.rates = TopicRates(runtime.clock, self.lock)
        policies = runtime.policies.of_topic(self.name)
        self.producers = ProducerRegistry(self.name, runtime, policies)
        self.ledger = ManagedLedger(runtime, name, self._ledger_changed)
        # Made when they are asked for: a folder may have thousands of topics that are idle.
        self._compaction: TopicCompaction | None = None
        self._offload: TopicOffload | None = None
        self._trimming: Trimming | None = None
        self._backlog_limits: BacklogLimits | None = None
        self.topic_id = record.topic_id
        self.policies = policies.messages  # as they are in force
        self._rate_limits: RateLimits | None = None  # made with the first rate
        if self.policies.rates is not None:
            self._use_rates()
        # Told apart, and not stored again, are messages that are sent again; None: they are not.
        self.deduplication: Deduplication | None = None
        if policies.deduplication:
            self.deduplication = self._deduplication()
        elif runtime.keeps_sequences is not False:
            path = snapshot_path(runtime, record.topic_id)
            if path is not None:
                forget_snapshot(path, runtime)
        for each in record.subscriptions.values():
            tracker = self._cursors().open(each)
            made = self._subscription(each.name, each, tracker)
            made.last_active_ms = self.last_active_ms
            self.subscriptions[each.name] = made
        if self.subscriptions and not self.ledger.has_begun:
            self.ledger.before_first = self._keep_cursors

    @property
    def compaction(self) -> TopicCompaction:
        if self._compaction is None:
            made = TopicCompaction(
                self.runtime, self.ledger, self.lock, self._compacted, self.trim_soon
            )
            with self.runtime.parts_lock:
                self._compaction = self._compaction or made
        return self._compaction

    @property
    def offload(self) -> TopicOffload:
        if self._offload is None:
            from pulsarx.broker.offload.topic_offload import TopicOffload

            made = TopicOffload(self.runtime, self.ledger)
            with self.runtime.parts_lock:
                self._offload = self._offload or made
        return self._offload

    @property
    def trimming(self) -> Trimming:
        if self._trimming is None:
            made = Trimming(
                self.name,
                self.runtime,
                self.ledger,
                self.lock,
                self.durable_subscriptions,
                self.all_subscriptions,
                self._before_trimming,
                self.compaction,
            )
            with self.runtime.parts_lock:
                self._trimming = self._trimming or made
        return self._trimming

    @property
    def backlog_limits(self) -> BacklogLimits:
        if self._backlog_limits is None:
            made = BacklogLimits(self.name, self.runtime, self.ledger, self.durable_subscriptions)
            with self.runtime.parts_lock:
                self._backlog_limits = self._backlog_limits or made
        return self._backlog_limits

    @property
    def held_by(self) -> str | None:
        """Why a backlog quota holds its producers; None: none does."""
        return None if self._backlog_limits is None else self._backlog_limits.held_by

    @property
    def is_gone(self) -> bool:
        """Whether it was deleted, or unloaded: what has its name by now is another object."""
        return self._is_gone

    def require_kept(self, action: str) -> Topic:
        """Itself, which keeps messages; OperationNotSupported: it does not."""
        return self

    def check_not_gone(self) -> None:
        """TopicGone: it went since its caller found it."""
        if self._is_gone:
            raise TopicGone(detail=f"{self.name}: it was deleted")

    def check_may_publish(self) -> None:
        """TopicTerminated: it takes no more messages. ProducerBlockedQuotaExceededError and
        ...Exception: its backlog is larger than its quota."""
        self.touch()
        if self.ledger.is_terminated:
            raise errors.TopicTerminated(
                detail=f"{self.name} is terminated and takes no more messages"
            )
        self.check_room()

    def check_room(self) -> None:
        """ProducerBlockedQuotaExceededError and ...Exception: its backlog is larger than its
        quota."""
        if self.policies.quotas:
            self.backlog_limits.check_may_publish(self.policies.quotas)
            if self.held_by is not None:  # there is room by now
                self.check_backlog()

    def hold_chunks(self) -> None:
        """Messages in chunks are about to be stored; committed once."""
        if self.ledger.holds_chunks():
            return
        held = changes.hold_chunks(self.name)

        def operations(_: object) -> list[dict[str, Any]]:
            self.check_not_gone()
            return [held]

        self.runtime.catalogue.commit(operations)

    def publisher(self, send_timeout_ms: int = 0, name: str = "") -> EntryPublisher:
        """What the producer of a name publishes with. send_timeout_ms: how long a message may
        wait for the disk; 0 and less: for ever."""
        from pulsarx._pycore.publish.entry_publisher import LedgerPublisher

        runtime = self.runtime
        return LedgerPublisher(
            self.name,
            self.ledger.tail,
            runtime.completions,
            runtime.durability_code,
            clock=runtime.clock,
            send_timeout_ms=send_timeout_ms,
        )

    def publisher_for(self, completions: CompletionQueue) -> EntryPublisher:
        """What a producer publishes with whose callbacks run there. No send times out."""
        from pulsarx._pycore.publish.entry_publisher import LedgerPublisher

        code = self.runtime.durability_code
        return LedgerPublisher(self.name, self.ledger.tail, completions, code)

    @property
    def tail(self) -> LedgerTail:
        return self.ledger.tail

    @property
    def schemas(self) -> SchemaRegistry:
        """See SchemaRegistry."""
        return self.runtime.schemas

    def is_idle(self) -> bool:
        """Whether it has no producer and no consumer, but for those that read any schema, and never
        had an entry."""
        with self.lock:
            self.check_not_gone()
            record = self.runtime.catalogue.state.topics[self.name]
            return not (
                record.removed_ledger_id
                or self.producers.open_producers()
                or any(each.has_typed_consumer() for each in self.all_subscriptions())
                or self.ledger.entry_count()
            )

    # Subscriptions --------------------------------------------------------------------------------

    def _subscription(
        self, name: str, record: SubscriptionRecord | None, tracker: AckTracker
    ) -> Subscription:
        from pulsarx.broker.subscriptions.subscription import Subscription

        made = Subscription(self, name, record, tracker)
        if self.policies.ttl_seconds:
            made.use_policies(self.policies)
        self.limit_dispatch(made.core)
        return made

    def _use_rates(self) -> None:
        """Have the rates of the policies be in force, but for those that are there already."""
        rates = self.policies.rates
        if self._rate_limits is None and rates is not None:
            self._rate_limits = RateLimits(self.name, self.runtime, self.ledger.tail)
        if self._rate_limits is not None:
            self._rate_limits.use(rates)

    def limit_dispatch(self, core: SubscriptionCore) -> None:
        """Have the dispatch rates hold for a subscription or reader."""
        if self._rate_limits is not None:
            self._rate_limits.limit_dispatch(core)

    @property
    def publish_rate_limited_times(self) -> int:
        """How often a send waited for the publish rate."""
        return 0 if self._rate_limits is None else self._rate_limits.publish_limited_times

    def subscribe(self, request: SubscribeRequest, make: MakeConsumer) -> ConsumerCore:
        """Attach a consumer to a subscription, which is made when it does not exist."""
        if not (self.runtime.awaits_nobody or request.sink is PositionSink):
            self.runtime.arrivals.wait()  # the session of a guest does not
        with self.lock:
            self.runtime.state.require_open()  # else this consumer would never be closed
            self.check_not_gone()
            self.touch()
            check_subscription_type(self.runtime, self.name, request.type_name)
            check_consumer_limit(self.limits, self.name, self.consumer_count)
            if self._rate_limits is not None:
                self._rate_limits.admit_consumer(request)
            name = request.subscription_name
            if request.durable:
                subscription = self.subscriptions.get(name)
                if subscription is None:
                    self.check_subscription_creation(name)
                    subscription = self.create_subscription(
                        name, request.start(), request.type_name
                    )
                    request.made_subscription = True
            else:
                for each in list(self._non_durable.values()):
                    each.detach_forgotten()  # it goes with its last consumer
                subscription = self._non_durable.get(name)
                if subscription is None:
                    subscription = self._create_non_durable(name, request.start())
            try:
                consumer = subscription.attach(request, make)
            except BaseException:
                subscription.dispatcher.settled()  # those who are there read on
                if request.made_subscription:
                    self.take_back(subscription)
                raise
        subscription.dispatcher.settled()
        return consumer

    @property
    def limits(self) -> TopicLimits:
        """How many may attach, as policies say now."""
        return self.runtime.policies.of_topic(self.name).messages.limits

    def check_subscription_creation(self, name: str) -> None:
        """SubscriptionNotFound: a consumer may not create what it names."""
        check_subscription_creation(self.runtime, self.name, name)

    def _check_subscription_limit(self, name: str) -> None:
        count = len(self.all_subscriptions())
        check_subscription_limit(self.limits, self.name, name, count)

    def _create_non_durable(self, name: str, position: Position) -> Subscription:
        """A subscription that nothing on disk knows and that holds no ledger."""
        self._check_subscription_limit(name)
        tracker = self._cursors().create_non_durable(name, position)
        made = self._non_durable[name] = self._subscription(name, None, tracker)
        made.ledger_changed()  # as in create_subscription
        return made

    def take_back(self, subscription: Subscription) -> None:
        """Delete a subscription whose first consumer was refused, unless another consumer uses
        it."""
        with self.lock:
            made = not self._is_gone and (self.subscriptions.get(subscription.name) is subscription)
            if made and not subscription.consumers():
                self.unsubscribe(subscription.name)

    def drop_non_durable(self, subscription: Subscription) -> None:
        """Its last consumer has left."""
        with self.lock:
            if self._non_durable.get(subscription.name) is subscription:
                del self._non_durable[subscription.name]
                subscription.remove()

    def durable_subscriptions(self) -> list[Subscription]:
        return list(self.subscriptions.values())

    def all_subscriptions(self) -> list[Subscription]:
        return [*self.subscriptions.values(), *self._non_durable.values()]

    def create_subscription(
        self, name: str, position: Position, type_name: str = "Exclusive"
    ) -> Subscription:
        """Make a durable subscription that begins at a position. Durable on return."""
        with self.lock:
            self.check_not_gone()
            places = [(self, position)]
            return create_subscriptions(self.runtime.catalogue, places, name, type_name)[0]

    def begin_subscription(
        self, name: str, position: Position, type_name: str, files: FileOperations | None = None
    ) -> NewSubscription:
        """Begin a subscription that is not in the catalogue yet. With the lock, which is held until
        it is. files: see BrokerRuntime.new_tracker."""
        self._check_subscription_limit(name)
        ledger_id, ordinal = position
        cursor_id = self.runtime.allocate_cursor_id()
        creation = changes.create_subscription(
            self.name,
            name,
            cursor_id,
            type=type_name,
            created_ms=self.runtime.clock.now_ms(),
            initial=(ledger_id or -1, ordinal),
        )
        if self.ledger.has_begun:
            tracker, keep = self._cursors().begin(cursor_id, name, position, files)
            return NewSubscription(self, name, creation, tracker, keep)
        self.ledger.before_first = self._keep_cursors
        tracker, _ = self._cursors().begin(cursor_id, name, position)
        return NewSubscription(self, name, creation, tracker, None)

    def finish_subscription(self, new: NewSubscription) -> Subscription:
        """The catalogue names it."""
        record = self.runtime.catalogue.state.topics[self.name].subscriptions[new.name]
        made = self._subscription(new.name, record, new.tracker)
        self.subscriptions[new.name] = made
        self.touch()
        # A ledger that came since the tracker was made was told to the others only.
        made.ledger_changed()
        return made

    def _keep_cursors(self) -> None:
        """Each subscription has a cursor file from here on, so that one that is missing later was
        lost."""
        for each in self.durable_subscriptions():
            each.keep()

    def discard_subscription(self, new: NewSubscription) -> None:
        """The catalogue does not name it."""
        self._cursors().discard(new.tracker, new.name)

    def _cursors(self) -> TopicCursors:
        from pulsarx.broker.subscriptions.topic_cursors import TopicCursors

        return TopicCursors(self.name, self.runtime, self.ledger)

    def unsubscribe(self, name: str) -> None:
        """Delete a subscription; its messages are no longer held for it."""
        with self.lock:
            subscription = self.subscriptions.get(name)
            if subscription is None:
                raise errors.missing_subscription(name, self.name)
            self.runtime.catalogue.commit([changes.remove_subscription(self.name, name)])
            del self.subscriptions[name]
            subscription.remove()
            self.touch()
        self.trim()

    def reader_cursor(
        self, schema: object, read_compacted: bool = False, decryption: object = None
    ) -> ReaderCursor:
        from pulsarx.broker.topics.reader_cursor import ReaderCursor

        made = ReaderCursor(self, schema, read_compacted, decryption)
        with self.lock:
            self.check_not_gone()
            self.touch()
            self.limit_dispatch(made.dispatcher.core)
            if self._reader_cursors is None:
                self._reader_cursors = WeakList()
            self._reader_cursors.add(made)
        return made

    # Ledgers --------------------------------------------------------------------------------------

    def _ledger_changed(self, ledger_id: int) -> None:
        for subscription in self.all_subscriptions():
            subscription.ledger_changed()
        self.trim_soon()

    def expect_ledgers(self, ledger_ids: list[int]) -> None:
        """Tell the subscriptions of ledgers that are about to come with messages in them."""
        self.ledger.begin()
        for subscription in self.all_subscriptions():
            subscription.expect_ledgers(ledger_ids)

    def ledgers_came(self, ledger_ids: list[int], came: bool) -> None:
        """Tell the subscriptions that expected ledgers have come, or never will."""
        if not came:
            for subscription in self.all_subscriptions():
                subscription.expect_no_more(ledger_ids)
        if ledger_ids:
            self._ledger_changed(ledger_ids[-1])
        self.ledger.tail.wake()

    def trim_soon(self) -> None:
        """Trim in the background."""
        self.trimming.soon()

    def make_room(self) -> None:
        """The device is full: trim in the background, the open ledger, too, where everything in it
        is acknowledged."""
        if self._is_drained():
            self.ledger.end_open()
        self.trimming.make_room()

    def _is_drained(self) -> bool:
        """Whether its durable subscriptions, of which there are some, hold nothing."""
        ledgers = self.ledger.ledgers()
        subscriptions = self.durable_subscriptions()
        if not ledgers or not subscriptions:
            return False
        last = ledgers[-1]
        end = (last.ledger_id, self.ledger.published_counts(last)[1])
        try:
            return all(each.mark_delete() >= end for each in subscriptions)
        except errors.AlreadyClosed:
            return False  # it is being closed or deleted

    def trim(self) -> list[int]:
        """Remove ledgers that are not needed any more; returns their ids."""
        return self.trimming.run()

    # Compaction -----------------------------------------------------------------------------------

    def _compacted(self) -> None:
        """There is another compacted ledger, or none any more. The lock is held."""
        for subscription in self.all_subscriptions():
            subscription.ledger_changed()
        self.ledger.tail.wake()

    def offload_status(self) -> dict[str, str]:
        """The status of the last run since the topic was opened."""
        return self.offload.status()

    def compaction_status(self) -> dict[str, str]:
        return self.compaction.status()

    @property
    def held_by_leases(self) -> tuple[int, int]:
        """How many ledgers, and bytes, only leases kept when retention looked last."""
        return self.trimming.held_by_leases

    @property
    def offload_failed_ms(self) -> int:
        return 0 if self._offload is None else self._offload.failed_ms

    @property
    def compaction_failed_ms(self) -> int:
        return self.compaction.failed_ms

    # Deduplication --------------------------------------------------------------------------------

    def _deduplication(self) -> Deduplication:
        return Deduplication(
            self.runtime, self.name, self.topic_id, self.ledger, self.producers.names
        )

    def apply_policies(self) -> None:
        """Have what was set be in force, for the producers and consumers that are there too."""
        with self.lock:
            if self._is_gone:
                return
            self.policies = self.runtime.policies.of_topic(self.name).messages
            self._use_rates()
            for subscription in self.all_subscriptions():
                subscription.use_policies(self.policies)
                self.limit_dispatch(subscription.core)
            for reader in self.readers():
                self.limit_dispatch(reader.dispatcher.core)
            self.ledger.tail.wake()  # who waits for a dispatch rate
        with self.producers.unchanged() as producers:
            for producer in producers.values():
                self.instruct(producer)
        self.expire()
        self.check_backlog()
        self.trim()

    def instruct(self, producer: Any) -> None:
        """Tell a producer what the policies want of it."""
        producer.limit_delay(self.policies.delayed_delivery.delay_max_ms)
        if self._backlog_limits is not None:
            self._backlog_limits.admit(producer)
        if self._rate_limits is not None:
            self._rate_limits.limit_producer(producer)

    def apply_deduplication(self) -> None:
        """As apply_policies, of the deduplication."""
        with self.producers.unchanged() as producers:
            if self._is_gone:
                return
            wanted = self.runtime.policies.of_topic(self.name).deduplication
            if wanted == (self.deduplication is not None):
                return
            if not wanted:
                assert self.deduplication is not None
                for producer in producers.values():
                    producer.deduplicate(None)
                self.deduplication.forget()
                self.deduplication = None
                return
            made = self._deduplication()
            for name, producer in producers.items():
                producer.deduplicate(made.of(name), made.catch_up)
            self.deduplication = made

    def producer_left(self, name: str, producer: Any) -> None:
        """Its name is free again."""
        self.producers.remove(name, producer)
        self.touch()
        if self.deduplication is not None:
            self.deduplication.left(name)

    def _before_trimming(self, ledger_ids: list[int]) -> None:
        if self.deduplication is not None:
            self.deduplication.before_trimming(ledger_ids)

    @property
    def deduplication_status(self) -> str:
        return "Disabled" if self.deduplication is None else "Enabled"

    # Inactivity -----------------------------------------------------------------------------------

    def watched(self, watch: object) -> None:
        """Another process reads it, until watched_no_more."""
        with self.lock:
            self._watches |= {watch}

    def watched_no_more(self, watch: object) -> None:
        with self.lock:
            self._watches -= {watch}

    def touch(self) -> None:
        """It is used now."""
        self.last_active_ms = self.runtime.clock.now_ms()

    def is_inactive(self, policy: InactiveTopics) -> bool:
        """Whether nobody has used it for as long as the policy says, and retention keeps nothing of
        it."""
        if self._is_used(policy.mode):
            self.touch()
            return False
        idle_ms = self.runtime.clock.now_ms() - self.last_active_ms
        if idle_ms < policy.seconds * 1000:
            return False
        if not self.ledger.entry_count():
            return True
        kept_minutes = self.runtime.policies.of_topic(self.name).retention.time_minutes
        return 0 <= kept_minutes * 60_000 <= idle_ms

    def _is_used(self, mode: str) -> bool:
        for each in self.all_subscriptions():
            each.detach_forgotten()
        found = [each for each in self.all_subscriptions() if not is_exempt_subscription(each.name)]
        if self.producers.is_used() or self.readers() or self._watches:
            return True
        if mode == NO_SUBSCRIPTIONS:
            return bool(found)
        return any(each.consumers() or each.backlog()[1] for each in found)

    # Expiry and backlog ---------------------------------------------------------------------------

    def expire(self) -> None:
        """Acknowledge what is older than the messages of the topic may become, up to the first one
        that is not."""
        seconds = self.policies.ttl_seconds
        if not seconds:
            return
        before_ms = self.runtime.clock.now_ms() - seconds * 1000
        moved = False
        for subscription in self.all_subscriptions():
            with suppress(errors.SubscriptionNotFound, errors.AlreadyClosed):  # deleted meanwhile
                moved = subscription.expire(before_ms) or moved
        if moved:
            self.trim_soon()

    def check_backlog(self) -> None:
        """Do what the backlog quotas say."""
        quotas = self.policies.quotas
        if not quotas and self.held_by is None:
            return
        with suppress(errors.SubscriptionNotFound, errors.AlreadyClosed):  # deleted meanwhile
            if self.backlog_limits.check(quotas, self.producers):
                self.trim_soon()

    # Statistics -----------------------------------------------------------------------------------

    def publisher_statistics(self) -> list[dict[str, Any]]:
        return self.producers.statistics()

    def published_since_opened(self) -> tuple[int, int]:
        """Messages, and bytes of their entries."""
        return self.ledger.published_since_opened()

    @property
    def epoch(self) -> int | None:
        return self.producers.epoch

    def subscription_statistics(self) -> dict[str, dict[str, Any]]:
        """The statistics of the subscriptions by name; `name (non-durable)` where a durable one has
        the name too."""
        for each in self.all_subscriptions():
            each.detach_forgotten()
        found = {}
        for name, each in [*sorted(self.subscriptions.items()), *sorted(self._non_durable.items())]:
            try:
                figures = each.statistics()
            except errors.AlreadyClosed:
                self.check_not_gone()
                if not each.removed:
                    raise
                continue  # unsubscribed meanwhile
            found[name if name not in found else f"{name} (non-durable)"] = figures
        return found

    # Deleting -------------------------------------------------------------------------------------

    def readers(self) -> list[ReaderCursor]:
        """Those that are attached."""
        cursors = [] if self._reader_cursors is None else self._reader_cursors.members()
        return [each for each in cursors if each.is_attached]

    def reader_statistics(self) -> dict[str, dict[str, Any]]:
        """The figures of the readers of this process, by the names that their subscriptions have in
        Pulsar."""
        now_ms = self.runtime.clock.now_ms()
        found = {}
        for each in self.readers():
            each.shown_name = each.shown_name or f"reader-{self.runtime.randomness.token(5)}"
            found[each.shown_name] = each.statistics(self.ledger, now_ms)
        return found

    def consumer_count(self) -> int:
        """Consumers that are attached to any subscription, without readers."""
        for each in self.all_subscriptions():
            each.detach_forgotten()
        return sum(len(each.consumers()) for each in self.all_subscriptions())

    def close_to_newcomers(self, force: bool) -> None:
        """Nobody attaches any more: it is about to be deleted. The lock is held.

        NotAllowedError: producers, consumers or readers are attached, and it is not forced.
        """
        self.producers.close_to_newcomers(force, self.consumer_count(), len(self.readers()))
        self._is_gone = True

    def open_to_newcomers(self) -> None:
        """It was not deleted after all. The lock is held."""
        self._is_gone = False
        self.producers.open_to_newcomers()

    def end(self) -> bool:
        """It is deleted: close what is attached and remove its cursors. False: a file of one
        stays."""
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers.end():
            attempt(producer.shut)  # what it had not sent its callbacks and senders are told
        self.compaction.stop()
        if self._offload is not None:
            self._offload.stop_soon()
        with self.lock:
            self.trimming.close()
            for cursor in [] if self._reader_cursors is None else self._reader_cursors.members():
                cursor.end()
            removed = [each.remove() for each in self.all_subscriptions()]
            self.subscriptions.clear()
            self._non_durable.clear()
        if self.deduplication is not None:
            self.deduplication.forget()
        return all(removed)

    # Emptying -------------------------------------------------------------------------------------

    def truncate(self) -> list[int]:
        """Acknowledge on every subscription what is there, and remove it, whatever retention says,
        with what compaction left; the ids of the ledgers that went. A leased one stays, with those
        behind it. What is published meanwhile stays."""
        last_id = self.ledger.cut()
        self.runtime.background.wait()  # for ledgers that are just being sealed
        with self.lock:
            self.check_not_gone()
            self.compaction.forget()
            ledgers = [
                each
                for each in self.ledger.ledgers()
                if each.ledger_id <= last_id and each.state == "sealed"
            ]
            if not ledgers:
                return []
            end = (ledgers[-1].ledger_id, ledgers[-1].message_count)
            for subscription in self.all_subscriptions():
                subscription.acknowledge_before(end)
            removed = self.trimming.remove([each.ledger_id for each in ledgers])
            for subscription in self.all_subscriptions():
                subscription.ledger_changed()
        return removed

    def rest(self) -> None:
        """Seal the open ledger and write the positions down, as closing does."""
        self.ledger.cut()
        with self.lock:
            for subscription in self.subscriptions.values():
                subscription.tracker.flush()

    # Life -----------------------------------------------------------------------------------------

    def close(self) -> None:
        """Send open batches, write positions, seal the ledger."""
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers.open_producers():
            producer.shut()
        self.compaction.stop()
        if self._offload is not None:
            self._offload.stop()
        with self.lock:
            for subscription in self.all_subscriptions():
                subscription.close()
            for cursor in [] if self._reader_cursors is None else self._reader_cursors.members():
                cursor.end()  # what it has mapped stayed until the collector came
            self.trimming.close()
        try:
            if self.deduplication is not None:
                self.deduplication.close()
        finally:
            self.ledger.close()

    def abandon(self) -> None:
        """In a forked child: refuse further calls, touch nothing."""
        self.producers.abandon()
        for subscription in self.all_subscriptions():
            subscription.abandon()
        for cursor in [] if self._reader_cursors is None else self._reader_cursors.members():
            cursor.abandon()
        self.ledger.abandon()


class NewSubscription:
    """A subscription that is about to be created. A value."""

    __slots__ = ("creation", "keep", "name", "topic", "tracker")

    def __init__(
        self,
        topic: Topic,
        name: str,
        creation: dict[str, Any],
        tracker: AckTracker,
        keep: Callable[[], object] | None,
    ) -> None:
        """keep: makes the tracker durable; None: that is for later, before the first ledger."""
        self.topic = topic
        self.name = name
        self.creation = creation
        self.tracker = tracker
        self.keep = keep


def locked_in_order(topics: list[Topic]) -> ExitStack:
    """A block with the locks of topics, in the order of their names, so that no two ever wait for
    each other. TopicGone: one of them has gone."""
    with ExitStack() as stack:
        for topic in sorted(topics, key=lambda each: each.name):
            stack.enter_context(topic.lock)
            topic.check_not_gone()
        return stack.pop_all()


def delete_subscriptions(topics: list[Topic], name: str, force: bool) -> None:
    """Delete a durable subscription of all topics that have it, in one commit.

    NotAllowedError: consumers are attached, and it is not forced. SubscriptionNotFound: none has
    it."""
    with locked_in_order(topics):
        there = [topic for topic in topics if name in topic.subscriptions]
        if not there:
            raise errors.missing_subscription(name, topics[0].name)
        for topic in there:
            subscription = topic.subscriptions[name]
            subscription.detach_forgotten()
            if subscription.consumers() and not force:
                raise errors.NotAllowedError(
                    detail=f"delete subscription {name} of {topic.name}: "
                    f"{len(subscription.consumers())} consumers are attached; close them, or "
                    "delete it with force=True, which does"
                )
        commit = there[0].runtime.catalogue.commit
        commit([changes.remove_subscription(topic.name, name) for topic in there])
        for topic in there:
            topic.subscriptions.pop(name).remove()
            topic.touch()
    for topic in there:
        topic.trim_soon()


def create_subscriptions(
    catalogue: Catalogue, places: list[tuple[Topic, Position]], name: str, type_name: str
) -> list[Subscription]:
    """Make a durable subscription on each topic in one commit: all or none. With the locks of the
    topics. Durable on return."""
    new: list[NewSubscription] = []
    runtime = places[0][0].runtime
    files = runtime.files_of_new_cursors() if len(places) > 1 else None
    with ExitStack() as stack:
        if not all(topic.ledger.has_begun for topic, _ in places):
            # No first ledger comes unless all of them are there, to be given their files before.
            stack.enter_context(runtime.first_ledgers)
        try:
            for topic, position in places:
                new.append(topic.begin_subscription(name, position, type_name, files))
            # Before the catalogue names them, so that one that is not there later was lost.
            keeps = [each.keep for each in new if each.keep is not None]
            take_at_once(keeps)
            if files is not None and keeps:
                try:
                    files.flush()
                except OSError as error:
                    raise storage_error("flush the folder of cursors", error) from error
            catalogue.commit([each.creation for each in new])
        except BaseException:
            if not catalogue.outcome_unknown:
                for each in new:
                    each.topic.discard_subscription(each)
            raise
        try:
            return [each.topic.finish_subscription(each) for each in new]
        except MemoryError:  # the catalogue names them, so they must be there
            return [each.topic.finish_subscription(each) for each in new]
