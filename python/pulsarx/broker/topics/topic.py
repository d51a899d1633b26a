"""One topic of an owned data directory: its ledgers, its producers, its subscriptions."""

from __future__ import annotations

import threading
import weakref

from pulsarx import errors
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx.broker.ledgers.managed_ledger import ManagedLedger
from pulsarx.broker.policies.retention import RetentionPolicy, removable
from pulsarx.broker.subscriptions.subscription import Subscription, discard, sync_tracker
from pulsarx.broker.topics.reader_cursor import ReaderCursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.publish.producer_core import ProducerCore
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.catalogue.state import SubscriptionRecord, TopicRecord
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.subscriptions.subscription import MakeConsumer
    from pulsarx.clock import Timer


class Topic:
    """Any thread may call; lock orders who comes and goes. Hot calls do not pass here."""

    def __init__(self, broker: Broker, record: TopicRecord) -> None:
        self.broker = broker
        self.name: str = record.name
        self.lock = threading.RLock()
        self.decompressed_size_max = broker.decompressed_size_max
        self.subscriptions: dict[str, Subscription] = {}
        self._non_durable: dict[str, Subscription] = {}
        self._producers: dict[str, weakref.ref[ProducerCore]] = {}
        self._reader_cursors: weakref.WeakSet[ReaderCursor] | None = None  # made with the first
        self._trim_timer: Timer | None = None
        self.ledger = ManagedLedger(broker, self.name, self._ledger_changed)
        for each in record.subscriptions.values():
            tracker = self._open_tracker(each)
            self.subscriptions[each.name] = Subscription(self, each.name, each, tracker)

    # Producers ------------------------------------------------------------------------------------

    def add_producer(self, name: str | None, make: Callable[[str], ProducerCore]) -> ProducerCore:
        """Register a producer under its name, or a generated one."""
        if name is not None and self._is_forgotten(name):
            self.broker.background.wait()  # it is being closed there
        with self.lock:
            if name is None:
                name = self.broker.next_producer_name()
            existing = self._producers.get(name)
            found = existing() if existing is not None else None
            if found is not None and found.is_open:
                raise errors.ProducerBusy(
                    f"a producer named {name} is already on {self.name}; close it or choose "
                    f"another name"
                )
            producer = make(name)
            self._producers[name] = weakref.ref(producer)
            return producer

    def _is_forgotten(self, name: str) -> bool:
        reference = self._producers.get(name)
        found = reference() if reference is not None else None
        return found is not None and getattr(found, "is_forgotten", False)

    def remove_producer(self, name: str, producer: ProducerCore) -> None:
        """Give the name back, unless another producer has it by now."""
        with self.lock:
            existing = self._producers.get(name)
            if existing is not None and existing() in (producer, None):
                del self._producers[name]

    def producers(self) -> list[ProducerCore]:
        with self.lock:
            found = [reference() for reference in self._producers.values()]
        return [each for each in found if each is not None and each.is_open]

    def arm_batch(self, producer: ProducerCore, due_ms: int) -> Timer:
        """Call producer.batch_due at due_ms, if it still lives then."""
        reference = weakref.ref(producer)

        def due() -> None:
            found = reference()
            if found is not None:
                found.batch_due()

        return self.broker.clock.call_at(due_ms, due)

    # Subscriptions --------------------------------------------------------------------------------

    def subscribe(self, request: SubscribeRequest, make: MakeConsumer) -> ConsumerCore:
        """Attach a consumer to a subscription, which is made when it does not exist."""
        with self.lock:
            self.broker.check_open()  # closed meanwhile: nobody would close this consumer
            name = request.subscription_name
            if request.durable:
                subscription = self.subscriptions.get(name)
                if subscription is None:
                    self.broker.check_subscription_creation(self.name, name)
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
                if request.made_subscription:
                    self.take_back(subscription)
                raise
        subscription.dispatcher.settled()
        return consumer

    def _create_non_durable(self, name: str, position: Position) -> Subscription:
        """A subscription that nothing on disk knows and that holds no ledger."""
        tracker = AckTracker(None)
        sync_tracker(tracker, self, name)
        place = self._existing(position)
        if place is not None and place[0] in tracker.ledger_ids:
            tracker.reset(*place)
        made = self._non_durable[name] = Subscription(self, name, None, tracker)
        made.ledger_changed(0)  # as in create_subscription
        return made

    def take_back(self, subscription: Subscription) -> None:
        """Made by a consumer that was then refused: it goes, unless others use it by now."""
        with self.lock:
            made = self.subscriptions.get(subscription.name) is subscription
            if made and not subscription.consumers():
                self.unsubscribe(subscription.name)

    def drop_non_durable(self, subscription: Subscription) -> None:
        """Its last consumer has left."""
        with self.lock:
            if self._non_durable.get(subscription.name) is subscription:
                del self._non_durable[subscription.name]
                subscription.remove()

    def all_subscriptions(self) -> list[Subscription]:
        return [*self.subscriptions.values(), *self._non_durable.values()]

    def create_subscription(
        self, name: str, position: Position, type_name: str = "Exclusive"
    ) -> Subscription:
        """Make a durable subscription that begins at a position. Durable on return."""
        with self.lock:
            ledger_id, ordinal = position
            cursor_id = self.broker.allocate_cursor_id()
            creation: dict[str, Any] = {
                "op": "create_subscription",
                "topic": self.name,
                "name": name,
            }
            creation |= {"cursor_id": cursor_id, "created_ms": self.broker.clock.now_ms()}
            creation |= {"type": type_name}
            creation |= {"initial_ledger_id": ledger_id or -1, "initial_message": ordinal}
            # Before the catalogue names it, so that one that is not there later was lost.
            tracker = self._new_tracker(cursor_id, name, position)
            try:
                self.broker.catalogue.commit([creation])
            except BaseException:
                if not self.broker.catalogue.outcome_unknown:
                    discard(tracker, self.name, name)
                raise
            record = self.broker.catalogue.state.topics[self.name].subscriptions[name]
            made = Subscription(self, name, record, tracker)
            self.subscriptions[name] = made
            # A ledger that came since the tracker was made was told to the others only.
            made.ledger_changed(0)
            return made

    def _new_tracker(self, cursor_id: int, name: str, position: Position) -> AckTracker:
        """A cursor that begins at a position, durable."""
        tracker = self.broker.new_tracker(cursor_id)
        sync_tracker(tracker, self, name)
        place = self._existing(position)  # its ledger may have gone since it was found
        if place is not None and place[0] in tracker.ledger_ids:
            tracker.reset(*place)
        else:
            tracker.fold()
        return tracker

    def _open_tracker(self, record: SubscriptionRecord) -> AckTracker:
        """The cursor as it was left; one without a file begins where the catalogue says."""
        tracker = self.broker.open_tracker(record)
        if sync_tracker(tracker, self, record.name) and tracker.is_kept:
            try:
                tracker.fold()
            except errors.StorageError:
                pass  # what was clamped is clamped and said again by the next owner
        if not tracker.is_kept:
            position = self._initial_position(record)
            if not tracker.damage:
                self._tell_missing_cursor(record, position)
            if position is None:
                tracker.fold()
            else:
                tracker.reset(*position)
        return tracker

    def _tell_missing_cursor(self, record: SubscriptionRecord, position: Position | None) -> None:
        """Cursor files are made before the catalogue names them, those of partitions that a topic
        grew by with the first look at the partition: before its first ledger."""
        topic = self.broker.catalogue.state.topics[self.name]
        if not self.broker.keeps_cursors or not (topic.ledgers or topic.removed_ledger_id):
            return
        place, again = "the first message", self.ledger.message_count()
        if position is not None:
            place = f"message {position[1]} of ledger {position[0]}, where it was made"
            again = self.ledger.message_count_from(position)
        import logging

        logging.getLogger("pulsarx").error(
            "%s: the cursor file %s of subscription %s is missing: it begins anew with %s, and up "
            "to %d messages are delivered again that it had acknowledged",
            self.name, self.broker.directory.cursor_path(record.cursor_id, 1), record.name, place,
            again,
        )  # fmt: skip

    def _initial_position(self, record: SubscriptionRecord) -> Position | None:
        """Where a subscription without a cursor file begins; None: with the first message. A
        position that a power cut took is clamped to what survived, which the log says."""
        wanted = record.initial_ledger_id, record.initial_message
        position = self._existing(wanted)
        if position is None or position == wanted:
            return position
        # A ledger in front of the first one was trimmed: nothing is wrong with that.
        if wanted[0] >= self.ledger.first_position()[0]:
            import logging

            logging.getLogger("pulsarx").warning(
                "%s: subscription %s was made at message %d of ledger %d, which did not survive; "
                "it begins at message %d of ledger %d",
                self.name, record.name, wanted[1], wanted[0], position[1], position[0],
            )  # fmt: skip
        return position

    def _existing(self, position: Position) -> Position | None:
        """The position, or the next one that the topic has; None: it has none, or position is in
        front of all ledgers."""
        ledger_id, message = position
        ledgers = self.ledger.ledgers()
        if ledger_id <= 0 or not ledgers:
            return None
        found = next((each for each in ledgers if each.ledger_id >= ledger_id), ledgers[-1])
        if found.ledger_id > ledger_id:
            return found.ledger_id, 0
        if found.ledger_id < ledger_id:
            return found.ledger_id, self.ledger.messages_in(found.ledger_id)
        return ledger_id, min(message, found.message_count) if found.state == "sealed" else message

    def unsubscribe(self, name: str) -> None:
        """Delete a subscription; its messages are no longer held for it."""
        with self.lock:
            subscription = self.subscriptions.get(name)
            if subscription is None:
                raise errors.SubscriptionNotFound(f"subscription {name} of {self.name}")
            self.broker.catalogue.commit(
                [{"op": "remove_subscription", "topic": self.name, "name": name}]
            )
            del self.subscriptions[name]
            subscription.remove()
        self.trim()

    def reader_cursor(self, schema: object) -> ReaderCursor:
        made = ReaderCursor(self, schema)
        with self.lock:
            if self._reader_cursors is None:
                self._reader_cursors = weakref.WeakSet()
            self._reader_cursors.add(made)
        return made

    # Ledgers --------------------------------------------------------------------------------------

    def _ledger_changed(self, ledger_id: int) -> None:
        for subscription in self.all_subscriptions():
            subscription.ledger_changed(ledger_id)
        self.trim_soon()

    def expect_ledgers(self, ledger_ids: list[int]) -> None:
        """Tell the subscriptions of ledgers that are about to come with messages in them."""
        for subscription in self.all_subscriptions():
            subscription.expect_ledgers(ledger_ids)

    def ledgers_came(self, ledger_ids: list[int], came: bool) -> None:
        """They did; or they never will."""
        if not came:
            for subscription in self.all_subscriptions():
                subscription.expect_no_more(ledger_ids)
        if ledger_ids:
            self._ledger_changed(ledger_ids[-1])
        self.ledger.tail.wake()

    def retention(self) -> tuple[RetentionPolicy, bool]:
        """The policy in force, and whether somebody set it."""
        return self.broker.retention_of(self.name)

    def trim_soon(self) -> None:
        """Trim in the background."""
        self.broker.background.put(self.trim)

    def trim(self) -> list[int]:
        """Remove the ledgers nobody needs any more; returns their ids."""
        self.ledger.seal_again()
        with self.lock:
            policy, explicit = self.retention()
            subscriptions = list(self.subscriptions.values())
            # A topic nobody ever subscribed to keeps its messages unless a policy says otherwise: a
            # log written today
            # and read tomorrow is an ordinary use in process.
            if not subscriptions and not explicit:
                return []
            held_from = min((each.mark_delete()[0] for each in subscriptions), default=1 << 63)
            now_ms = self.broker.clock.now_ms()
            leased_from, leased_ms = self.broker.catalogue.state.leased_from(self.name, now_ms)
            held_from = min(held_from, leased_from)
            removed = removable(self.ledger.ledgers(), held_from, policy, now_ms)
            if removed:
                removed = self.ledger.remove(removed)
            if removed:
                for subscription in self.all_subscriptions():
                    subscription.ledger_changed(removed[-1])
            self._arm_trim(policy, leased_ms)
            return removed

    def _arm_trim(self, policy: RetentionPolicy, leased_ms: int) -> None:
        """Look again after the retention interval while a time limit may expire something, or a
        lease does."""
        sealed = any(each.state == "sealed" for each in self.ledger.ledgers())
        if self._trim_timer is None and sealed and (policy.time_minutes > 0 or leased_ms):
            interval_ms = self.broker.options.retention_check_interval_in_seconds * 1000

            def due() -> None:
                self._trim_timer = None
                self.trim()

            self._trim_timer = self.broker.clock.call_at(
                self.broker.clock.now_ms() + interval_ms, due
            )

    def publisher_count(self) -> int:
        return len(self.producers())

    def subscription_statistics(self) -> dict[str, dict[str, Any]]:
        """By name; `name (non-durable)` where a durable one has the name too."""
        for each in self.all_subscriptions():
            each.detach_forgotten()
        found = {}
        for name, each in [*sorted(self.subscriptions.items()), *sorted(self._non_durable.items())]:
            try:
                figures = each.statistics()
            except errors.AlreadyClosed:
                if not each.removed:
                    raise
                continue  # unsubscribed meanwhile
            found[name if name not in found else f"{name} (non-durable)"] = figures
        return found

    def close(self) -> None:
        """Send open batches, write positions, seal the ledger."""
        # Not under the lock: callbacks of what is still on its way may want it.
        for producer in self.producers():
            producer.shut()
        with self.lock:
            for subscription in self.all_subscriptions():
                subscription.close()
            if self._trim_timer is not None:
                self._trim_timer.cancel()
        self.ledger.close()

    def abandon(self) -> None:
        """In a forked child: refuse further calls, touch nothing."""
        for reference in list(self._producers.values()):
            producer = reference()
            if producer is not None:
                producer.abandon()
        for subscription in self.all_subscriptions():
            subscription.abandon()
        for cursor in list(self._reader_cursors or ()):
            cursor.abandon()
        self.ledger.abandon()
