"""A topic of an owned data directory: its ledgers, its producers, its subscriptions."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.dispatch.position_sink import PositionSink
from pulsarx._pycore.ground.weak_list import WeakList
from pulsarx.broker.catalogue import changes
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.broker.policies.creation import check_subscription_creation
from pulsarx.broker.topics.backlog_limits import BacklogLimits
from pulsarx.broker.topics.broker_topic import BrokerTopic
from pulsarx.broker.topics.compaction import TopicCompaction
from pulsarx.broker.topics.policy_effects import KeptPolicyEffects
from pulsarx.broker.topics.subscription_limits import check_subscription_limit
from pulsarx.broker.topics.trimming import Trimming
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.cursor.ack_tracker import AckTracker
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx._pycore.publish.entry_publisher import EntryPublisher
    from pulsarx.broker.catalogue.records import SubscriptionRecord, TopicRecord
    from pulsarx.broker.ledgers.aborted_messages import Run
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.offload.topic_offload import TopicOffload
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.subscriptions.subscription import MakeConsumer, Subscription
    from pulsarx.broker.subscriptions.topic_cursors import TopicCursors
    from pulsarx.broker.topics.deduplication import Deduplication
    from pulsarx.broker.topics.reader_cursor import ReaderCursor
    from pulsarx.broker.topics.topic_transactions import TopicTransactions
    from pulsarx.topic_name import TopicName


class Topic(BrokerTopic):
    """Opens ledgers and cursors, attaches producers and consumers; its lock orders that. Calls of
    the control plane; hot calls do not come here."""

    __slots__ = (
        "_expected",
        "_is_over",
        "_non_durable",
        "_reader_cursors",
        "deduplication",
        "parts",
        "subscriptions",
    )
    keeps_messages = True
    is_partitioned = False
    effects: KeptPolicyEffects
    ledger: ManagedLedger

    def __init__(
        self,
        runtime: BrokerRuntime,
        name: TopicName,
        record: TopicRecord,
        last_active_ms: int | None = None,
    ) -> None:
        """last_active_ms: when it was used last; None: now."""
        policies = runtime.policies.of_topic(name)
        super().__init__(runtime, name, record.topic_id, last_active_ms, policies)
        self.subscriptions: dict[str, Subscription] = {}
        self._non_durable: dict[str, Subscription] = {}
        self._reader_cursors: WeakList | None = None  # made with the first
        self._expected: Sequence[int] = ()  # ledgers that are being attached
        self.parts: dict[str, Any] = {}  # those of _PARTS that were asked for
        self._is_over = False  # closed or deleted
        # Told apart, and not stored again, are messages that are sent again; None: they are not.
        self.deduplication: Deduplication | None = None
        self.ledger = ManagedLedger(runtime, name, self._ledger_changed)
        try:
            self.effects = KeptPolicyEffects(self, policies.messages)
            self.effects.begin_deduplication(policies.deduplication)
            for each in record.subscriptions.values():
                tracker = self.cursors().open(each)
                made = self._subscription(each.name, each, tracker)
                made.last_active_ms = self.last_active_ms
                self.subscriptions[each.name] = made
                _catch_up(self, made)
        except BaseException:
            self.ledger.let_go()
            raise
        self.ledger.passed_over = partial(_pass_over, self)
        if self.subscriptions and not self.ledger.has_begun:
            self.ledger.before_first = self.keep_cursors

    # Parts ----------------------------------------------------------------------------------------

    def _part(self, name: str) -> Any:
        """A part of _PARTS, made if it was not asked for before; one that does nothing where the
        topic is over."""
        found = self.parts.get(name)
        if found is None:
            made = _PARTS[name](self)
            with self.runtime.parts_lock:
                found = self.parts.setdefault(name, made)
            if found is made and self._is_over:
                found.stop()
        return found

    def _stop(self, name: str) -> None:
        """End what a part does, if it was made."""
        part = self.parts.get(name)
        if part is not None:
            part.stop()

    @property
    def compaction(self) -> TopicCompaction:
        found: TopicCompaction = self._part("compaction")
        return found

    @property
    def transactions(self) -> TopicTransactions:
        found: TopicTransactions = self._part("transactions")
        return found

    @property
    def offload(self) -> TopicOffload:
        found: TopicOffload = self._part("offload")
        return found

    @property
    def trimming(self) -> Trimming:
        found: Trimming = self._part("trimming")
        return found

    @property
    def backlog_limits(self) -> BacklogLimits:
        found: BacklogLimits = self._part("backlog_limits")
        return found

    def require_kept(self, action: str) -> Topic:
        """Itself, which keeps messages; OperationNotSupported: it does not."""
        return self

    def check_may_publish(self) -> None:
        """TopicTerminated: it takes no more messages. ProducerBlockedQuotaExceededError and
        ...Exception: its backlog is larger than its quota."""
        self.touch()
        if self.ledger.is_terminated:
            raise errors.TopicTerminated(
                detail=f"{self.name} is terminated and takes no more messages"
            )
        self.effects.check_room()

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
        """The publisher for the producer of a name. send_timeout_ms: how long a message may wait
        for the disk; 0 and less: for ever."""
        from pulsarx._pycore.publish.entry_publisher import LedgerPublisher

        runtime = self.runtime
        return LedgerPublisher(
            self.name,
            self.ledger.tail,
            runtime.completions,
            runtime.durability_code,
            clock=runtime.clock,
            send_timeout_ms=send_timeout_ms,
            stamp_clock=runtime.stamp_clock,
        )

    def publisher_for(self, completions: CompletionQueue) -> EntryPublisher:
        """The publisher for a producer whose callbacks run there. No send times out."""
        from pulsarx._pycore.publish.entry_publisher import LedgerPublisher

        runtime = self.runtime
        return LedgerPublisher(
            self.name,
            self.ledger.tail,
            completions,
            runtime.durability_code,
            stamp_clock=runtime.stamp_clock,
        )

    def is_idle(self) -> bool:
        """Whether nobody uses it, as of any topic, and it never had an entry."""
        with self.lock:
            return super().is_idle() and not (
                self.runtime.catalogue.state.topics[self.name].removed_ledger_id
                or self.ledger.entry_count()
            )

    # Subscriptions --------------------------------------------------------------------------------

    def _subscription(
        self, name: str, record: SubscriptionRecord | None, tracker: AckTracker
    ) -> Subscription:
        from pulsarx.broker.subscriptions.subscription import Subscription

        made = Subscription(self, name, record, tracker)
        self.effects.admit_subscription(made)
        return made

    def subscribe(self, request: SubscribeRequest, make: MakeConsumer) -> ConsumerCore:
        """Attach a consumer to a subscription, which is made when it does not exist."""
        if not (self.runtime.awaits_nobody or request.sink is PositionSink):
            self.runtime.arrivals.wait()  # the session of a guest does not
        with self.lock:
            self.runtime.state.require_open()  # else this consumer would never be closed
            self.check_not_gone()
            self.touch()
            self.check_consumer(request)
            self.effects.admit_consumer(request)
            name = request.subscription_name
            if request.durable:
                subscription = self.subscriptions.get(name)
                if subscription is None:
                    self.check_subscription_creation(name)
                    subscription = self.create_subscription(
                        name, request.start(), request.type_name, request.subscription_properties
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

    def check_subscription_creation(self, name: str) -> None:
        """SubscriptionNotFound: a consumer may not create what it names."""
        check_subscription_creation(self.runtime, self.topic_name, name)

    def check_room_for(self, name: str) -> None:
        """NotAllowedError: it has as many subscriptions as it may."""
        count = len(self.all_subscriptions())
        check_subscription_limit(self.limits, self.name, name, count)

    def _create_non_durable(self, name: str, position: Position) -> Subscription:
        """A subscription that nothing on disk knows and that holds no ledger."""
        self.check_room_for(name)
        tracker = self.cursors().create_non_durable(name, position)
        made = self._non_durable[name] = self._subscription(name, None, tracker)
        # A ledger that came since its tracker was made was told to the others only.
        made.ledger_changed()
        made.expect_ledgers(self._expected)
        _catch_up(self, made)
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
        self,
        name: str,
        position: Position,
        type_name: str = "Exclusive",
        properties: dict[str, str] | None = None,
    ) -> Subscription:
        """Make a durable subscription that begins at a position. Durable on return."""
        from pulsarx.broker.subscriptions.subscription_changes import create_subscriptions

        with self.lock:
            self.check_not_gone()
            places = [(self, position)]
            catalogue = self.runtime.catalogue
            return create_subscriptions(catalogue, places, name, type_name, properties)[0]

    def admit(self, name: str, record: SubscriptionRecord, tracker: AckTracker) -> Subscription:
        """A durable subscription that the catalogue names by now. With the lock."""
        made = self.subscriptions[name] = self._subscription(name, record, tracker)
        self.touch()
        made.ledger_changed()
        made.expect_ledgers(self._expected)
        _catch_up(self, made)
        return made

    def keep_cursors(self) -> None:
        """Each subscription has a cursor file from here on, so that one that is missing later was
        lost."""
        for each in self.durable_subscriptions():
            each.keep()

    def cursors(self) -> TopicCursors:
        """The maker and opener of its subscriptions' cursors."""
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
        self,
        schema: object,
        read_compacted: bool = False,
        decryption: object = None,
        selector: str = "",
    ) -> ReaderCursor:
        from pulsarx.broker.topics.reader_cursor import ReaderCursor

        made = ReaderCursor(self, schema, read_compacted, decryption, selector)
        with self.lock:
            self.check_not_gone()
            self.touch()
            self.effects.limit_dispatch(made.dispatcher.core)
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
        self._expected = ledger_ids  # first: a subscription that is made now looks here
        for subscription in self.all_subscriptions():
            subscription.expect_ledgers(ledger_ids)

    def ledgers_came(self, ledger_ids: list[int], came: bool) -> None:
        """Tell the subscriptions that expected ledgers have come, or never will."""
        self._expected = ()
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
        """The device is full."""
        self.trimming.make_room()

    def trim(self) -> list[int]:
        """Remove ledgers that are not needed any more; returns their ids."""
        return self.trimming.run()

    # Compaction -----------------------------------------------------------------------------------

    def has_been_compacted(self) -> None:
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
        trimming: Trimming | None = self.parts.get("trimming")
        return (0, 0) if trimming is None else trimming.held_by_leases

    @property
    def offload_failed_ms(self) -> int:
        offload: TopicOffload | None = self.parts.get("offload")
        return 0 if offload is None else offload.failed_ms

    @property
    def compaction_failed_ms(self) -> int:
        compaction: TopicCompaction | None = self.parts.get("compaction")
        return 0 if compaction is None else compaction.failed_ms

    # Deduplication --------------------------------------------------------------------------------

    def producer_left(self, name: str, producer: Any) -> None:
        super().producer_left(name, producer)
        if self.deduplication is not None:
            self.deduplication.left(name)

    def before_trimming(self, ledger_ids: list[int]) -> None:
        if self.deduplication is not None:
            self.deduplication.before_trimming(ledger_ids)

    @property
    def deduplication_status(self) -> str:
        return "Disabled" if self.deduplication is None else "Enabled"

    # Statistics -----------------------------------------------------------------------------------

    def publisher_statistics(self) -> list[dict[str, Any]]:
        return self.producers.statistics()

    def published_since_opened(self) -> tuple[int, int]:
        """Messages, and bytes of their entries."""
        return self.ledger.published_since_opened()

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

    # Readers --------------------------------------------------------------------------------------

    def readers(self) -> list[ReaderCursor]:
        """The readers that are attached."""
        return [each for each in self._cursors_of_readers() if each.is_attached]

    def _cursors_of_readers(self) -> list[ReaderCursor]:
        return [] if self._reader_cursors is None else self._reader_cursors.members()

    def reader_statistics(self) -> dict[str, dict[str, Any]]:
        """The figures of the readers of this process, by the names that their subscriptions have in
        Pulsar."""
        now_ms = self.runtime.clock.now_ms()
        found = {}
        for each in self.readers():
            each.shown_name = each.shown_name or f"reader-{self.runtime.randomness.token(5)}"
            found[each.shown_name] = each.statistics(self.ledger, now_ms)
        return found

    # Deleting -------------------------------------------------------------------------------------

    def end(self) -> bool:
        """It is deleted: close what is attached and remove its cursors. False: a file of one
        stays."""
        self._is_over = True
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers.end():
            attempt(producer.shut)  # what it had not sent its callbacks and senders are told
        self._stop("compaction")
        offload: TopicOffload | None = self.parts.get("offload")
        if offload is not None:
            offload.stop_soon()
        with self.lock:
            self._stop("trimming")
            for cursor in self._cursors_of_readers():
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
        behind it. What is published meanwhile stays. NotAllowedError: transactions are open."""
        self.transactions.check_none("truncate")
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
        self._is_over = True
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers.open_producers():
            producer.shut()
        self._stop("compaction")
        self._stop("offload")
        with self.lock:
            for subscription in self.all_subscriptions():
                subscription.close()
            for cursor in self._cursors_of_readers():
                cursor.end()  # what it has mapped stayed until the collector came
            self._stop("trimming")
        try:
            if self.deduplication is not None:
                self.deduplication.close()
        finally:
            self.ledger.close()

    def abandon(self) -> None:
        """In a forked child: refuse further calls, touch nothing."""
        super().abandon()
        for cursor in self._cursors_of_readers():
            cursor.abandon()
        self.ledger.abandon()


def _new_trimming(topic: Topic) -> Trimming:
    return Trimming(
        topic.topic_name,
        topic.runtime,
        topic.ledger,
        topic.lock,
        topic.durable_subscriptions,
        topic.all_subscriptions,
        topic.before_trimming,
        topic.compaction,
    )


def _new_compaction(topic: Topic) -> TopicCompaction:
    return TopicCompaction(
        topic.runtime, topic.ledger, topic.lock, topic.has_been_compacted, topic.trim_soon
    )


def _new_offload(topic: Topic) -> TopicOffload:
    from pulsarx.broker.offload.topic_offload import TopicOffload

    return TopicOffload(topic.runtime, topic.ledger)


def _new_transactions(topic: Topic) -> TopicTransactions:
    from pulsarx.broker.topics.topic_transactions import TopicTransactions

    return TopicTransactions(
        topic.runtime,
        topic.ledger,
        topic.lock,
        topic.all_subscriptions,
        topic.trim_soon,
        lambda: topic.trimming.no_longer_held(),
    )


def _catch_up(topic: Topic, subscription: Subscription) -> None:
    if topic.runtime.catalogue.state.next_transaction:  # else there never was a transaction
        topic.transactions.catch_up(subscription)


def _pass_over(topic: Topic, runs: list[Run]) -> None:
    topic.transactions.pass_over(runs)


def _new_backlog_limits(topic: Topic) -> BacklogLimits:
    return BacklogLimits(topic.name, topic.runtime, topic.ledger, topic.durable_subscriptions)


# Made when they are asked for: a folder may have thousands of topics that are idle.
_PARTS: dict[str, Callable[[Topic], Any]] = {
    "backlog_limits": _new_backlog_limits,
    "compaction": _new_compaction,
    "offload": _new_offload,
    "transactions": _new_transactions,
    "trimming": _new_trimming,
}
