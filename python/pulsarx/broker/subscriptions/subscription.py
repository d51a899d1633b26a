"""A subscription: its cursor, its dispatcher, its consumers.

state         holds                                          left by
IDLE          no consumer; a durable cursor holds ledgers    attach, remove
ATTACHED      consumers of one type                          detach of the last, remove
REMOVED       the cursor is deleted                          -

The type is undefined without consumers: the first to come decides it. A durable and a non-durable
subscription of one name have nothing to do with each other.
"""

from __future__ import annotations

import weakref
from collections import deque
from contextlib import nullcontext
from functools import partial

from pulsarx import errors
from pulsarx._pycore.consume.consumer_core import ConsumerCore
from pulsarx._pycore.consume.consumer_host import ConsumerHost
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
from pulsarx._pycore.dispatch.transaction_steps import (
    abort_transaction,
    apply_acks,
    commit_transaction,
    open_transaction,
    reopen_transaction,
    take_up_acks,
    transaction_acks,
    transaction_through,
)
from pulsarx._pycore.ground.when_forgotten import PostLater
from pulsarx._pycore.message.entry_view import EntryContext
from pulsarx.broker.catalogue import changes
from pulsarx.broker.ledgers.compacted_view import CompactedView
from pulsarx.broker.ledgers.ledger_gone import LedgerAway, LedgerTrimmed
from pulsarx.broker.policies.message_policies import is_exempt_subscription
from pulsarx.broker.subscriptions.backlog import (
    backlog_extent,
    count_backlog,
    entries_before,
    hidden_before,
    mark_delete_position,
)
from pulsarx.broker.subscriptions.counted_losses import CountedLosses
from pulsarx.broker.subscriptions.dispatchers import (
    SELECTOR_NAMES,
    SINGLE_ACTIVE,
    dispatch_kind,
    make_dispatcher,
)
from pulsarx.broker.subscriptions.selectors import check_agrees, filter_of
from pulsarx.broker.subscriptions.topic_cursors import (
    add_survivors,
    delete_tracker,
    sync_tracker,
)
from pulsarx.compression import decompress
from pulsarx.enumerations import KeySharedMode
from pulsarx.schema.writer_schemas import WriterSchemas

_BEHIND_ALL = (1 << 64) - 1  # no ledger has this id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from pulsarx._pycore.dispatch.entry_sink import Dispatcher, EntrySink
    from pulsarx._pycore.ground.interval_job import IntervalJob
    from pulsarx.broker.catalogue.records import LedgerRecord, SubscriptionRecord
    from pulsarx.broker.faces import SubscriptionHost
    from pulsarx.broker.ledgers.aborted_messages import Run
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position
    from pulsarx.broker.policies.message_policies import MessagePolicies
    from pulsarx.broker.runtime import BrokerRuntime
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest

    MakeConsumer = Callable[[EntrySink, "Subscription"], Any]


class Subscription:
    """A subscription of a topic. Any thread may call; topic.lock orders attaching and leaving."""

    __slots__ = (
        "__weakref__", "_consumers", "_detaching", "_forgotten", "_had_type", "_kind",
        "_partition_index", "_places", "_read_any", "_selector_error", "core", "dispatcher",
        "flush", "host", "last_active_ms", "name", "properties", "record", "removed", "runtime",
        "topic", "tracker",
    )  # fmt: skip

    def __init__(
        self,
        topic: SubscriptionHost,
        name: str,
        record: SubscriptionRecord | None,
        tracker: AckTracker,
    ) -> None:
        """record: None for a non-durable one."""
        self.topic: SubscriptionHost = topic
        runtime = topic.runtime
        self.runtime: BrokerRuntime = runtime
        self.last_active_ms: int = runtime.clock.now_ms()
        self.record: SubscriptionRecord | None = record
        self.properties: dict[str, str] = {}
        self._selector_error: errors.PulsarException | None = None
        self.name: str = name
        self.tracker: Any = tracker
        self.flush: IntervalJob = runtime.after_flush_interval(tracker.flush)
        losses = CountedLosses(name, runtime.background, self.flush, topic.trim)
        losses.runtime = runtime
        losses.owner = weakref.ref(self)
        self.core: Any = SubscriptionCore(tracker, runtime.clock, losses)
        if record is not None and record.properties:
            self.use_properties(record.properties)
        self.host: ConsumerHost = self._make_host(topic.ledger)
        self._kind: tuple[Any, ...] = ("Exclusive",)
        self._had_type = False  # no consumer came yet
        self._partition_index = topic.topic_name.partition_index
        self.dispatcher: Any = self._make_dispatcher()
        self.core.start()
        self.dispatcher.deadlines_due()  # deadlines that fell due while the topic was closed
        self._consumers: dict[EntrySink, weakref.ref[ConsumerCore]] = {}
        # In which order they came; those of a dead owner's guests that go on keep theirs.
        self._places: dict[EntrySink, int] = {}
        self._forgotten: deque[EntrySink] = deque()  # those whose consumer is gone
        self._detaching: Callable[[], object] | None = None  # the job that detaches them
        self._read_any: set[EntrySink] = set()  # of them, those that read any schema
        self.removed: bool = False

    def _make_host(self, positions: Any) -> ConsumerHost:
        return ConsumerHost(positions, self.runtime.background, self.topic.trim, self.flush)

    @property
    def durable(self) -> bool:
        return self.record is not None

    def use_record(self, record: SubscriptionRecord) -> None:
        """The catalogue has other properties for it."""
        self.record = record
        self.use_properties(record.properties)

    def use_properties(self, properties: dict[str, str]) -> None:
        """Select messages as they say from now on."""
        self.properties = properties
        self._selector_error = None
        try:
            self.core.set_filter(filter_of(properties))
        except errors.InvalidConfiguration as error:
            # They were checked before they were kept, by a version that knew more.
            self._selector_error = error

    def touch(self) -> None:
        """It is used now."""
        self.last_active_ms = self.runtime.clock.now_ms()

    def is_idle_for(self, idle_ms: int) -> bool:
        """Whether it has no consumer, and nobody used it for so long."""
        self.detach_forgotten()
        if self.consumers():
            self.touch()
        return self.runtime.clock.now_ms() - self.last_active_ms >= idle_ms

    @property
    def reads_compacted(self) -> bool:
        """Whether its consumers get what compaction left."""
        return len(self._kind) == 2

    @property
    def positions(self) -> LedgerList | CompactedView:
        """The positions of ids and times, for its consumers."""
        return CompactedView(self.topic.ledger) if self.reads_compacted else self.topic.ledger

    # Consumers ------------------------------------------------------------------------------------

    def consumers(self) -> list[ConsumerCore]:
        """The attached consumers, in the order they came."""
        found = [reference() for reference in list(self._consumers.values())]
        return [each for each in found if each is not None and each.is_open]

    def attach(self, request: SubscribeRequest, make: MakeConsumer) -> ConsumerCore:
        """Make one more consumer. A refused one leaves no trace.

        ConsumerBusy: others are attached that are of another type, or it is Exclusive.
        ConsumerAssignError: sticky ranges that overlap with another's.
        """
        self.detach_forgotten()
        self.touch()
        self._check_limit()
        self._check_properties(request)
        self._take_type(request)
        self._had_type = True
        context = EntryContext(
            self.topic.name,
            request.schema,
            self.topic.ledger.tail,
            decompress,
            # Who reads over a network decodes itself.
            None if request.schema is None else WriterSchemas(self.topic),
            request.decryption,
        )
        receiver = request.sink(self.dispatcher, context, request.consumer_name, request.settings)
        consumer: ConsumerCore = make(receiver, self)
        if self._detaching is None:
            self._detaching = partial(detach_those_of, weakref.ref(self))
        post = self.runtime.background.post
        later = PostLater(post, self._detaching, self._forgotten, receiver)
        reference = weakref.ref(consumer, later)
        place = request.place
        before = None
        has_joined = False
        if place is None:
            place = 1 + max(self._places.values(), default=-1)
        elif self._kind[0] in SINGLE_ACTIVE:
            before = sum(each < place for each in self._places.values())
        try:  # all that `detach` looks for first: what has joined can leave
            self._places[receiver] = place
            self._consumers[receiver] = reference
            if getattr(request.schema, "reads_any", False):
                self._read_any.add(receiver)
            if not self.properties:  # what joins is pushed messages at once
                self.core.set_filter(filter_of(request.subscription_properties))
            if self._kind[0] == "Key_Shared":
                self.dispatcher.join(receiver, sticky_ranges(request))
            elif before is not None:
                self.dispatcher.join(receiver, None, before)
            else:
                self.dispatcher.join(receiver)
            has_joined = True
            self._take_properties(request.subscription_properties)
        except BaseException:
            if has_joined:
                self.dispatcher.leave(receiver)
            if not self.properties:
                self.core.set_filter(None)
            self._consumers.pop(receiver, None)
            self._places.pop(receiver, None)
            self._read_any.discard(receiver)
            raise
        request.place = place
        return consumer

    def has_typed_consumer(self) -> bool:
        """Whether a consumer is attached that wants one kind of payloads, be it bytes."""
        self.detach_forgotten()
        return any(each not in self._read_any for each in self._consumers)

    def _check_properties(self, request: SubscribeRequest) -> None:
        """NotAllowedError: the consumer wants another selector than there is. InvalidConfiguration:
        one cannot be understood."""
        if self._selector_error is not None:
            raise self._selector_error
        if not self.properties:
            filter_of(request.subscription_properties)
            return
        check_agrees(self.topic.name, self.properties, request)

    def _take_properties(self, given: dict[str, str]) -> None:
        """Keep what a consumer gives, where there are no properties yet. Durable on return."""
        if not given or self.properties:
            return
        if not self.durable:
            self.use_properties(given)
            return
        catalogue = self.runtime.catalogue
        catalogue.commit([changes.set_subscription_properties(self.topic.name, self.name, given)])
        self.use_record(catalogue.state.topics[self.topic.name].subscriptions[self.name])

    def _check_limit(self) -> None:
        limits = self.runtime.policies.of_topic(self.topic.topic_name).messages.limits
        limit = limits.max_consumers_per_subscription
        if limit and len(self._consumers) >= limit:
            raise errors.ConsumerBusy(
                detail=f"subscription {self.name} of {self.topic.name} has {limit} consumers, "
                "which is max_consumers_per_subscription"
            )

    def _take_type(self, request: SubscribeRequest) -> None:
        options = self.runtime.options
        wanted = dispatch_kind(request, options.subscription_key_shared_use_consistent_hashing)
        if wanted == self._kind and (self._consumers or wanted[0] in SINGLE_ACTIVE):
            return
        if self._consumers:
            raise errors.ConsumerBusy(
                detail=f"subscription {self.name} of {self.topic.name} is {described(self._kind)} "
                f"and has {len(self._consumers)} consumers; a consumer of {described(wanted)} can "
                "attach when they have left"
            )
        self._kind = wanted
        self.dispatcher = self._make_dispatcher()
        self.host = self._make_host(self.positions)

    def _make_dispatcher(self) -> Dispatcher:
        made = make_dispatcher(
            self.core, self.topic.ledger, self.topic.topic_name, self.runtime, self._kind,
            self._partition_index,
        )  # fmt: skip
        # It has read what is kept; whether anything will be acknowledged is not known.
        self.core.locked(self.tracker.rest)
        return made

    def detach_forgotten(self) -> None:
        """Detach consumers that were forgotten; a non-durable subscription may go with them."""
        while self._forgotten:
            try:
                receiver = self._forgotten.popleft()
            except IndexError:  # another thread does it
                return
            self.detach(receiver)

    def detach(self, receiver: EntrySink) -> None:
        """A consumer is gone: what it did not acknowledge goes to the others, or the next one."""
        with self.topic.lock:
            if self._consumers.pop(receiver, None) is None:
                return
            self._read_any.discard(receiver)
            self._places.pop(receiver, None)
            self.touch()
            self.topic.touch()
            try:
                if not self.removed:
                    receiver.dispatcher.leave(receiver)
                if not self._consumers and not self.durable:
                    self.topic.drop_non_durable(self)
                elif not self._consumers and not self.removed:
                    self.core.locked(self.tracker.rest)
            finally:  # the others are told, whatever failed of its leave
                receiver.dispatcher.settled()
        self.topic.trim()

    # Positions ------------------------------------------------------------------------------------

    def seek(self, find: Callable[[], Position]) -> None:
        """Move to the position found: everything before counts as acknowledged, everything from it
        on as not. Durable on return."""
        with self.topic.lock:  # so that the position is not trimmed before it is taken
            position = find()
            self.touch()
            self.ledger_changed()  # it may be in a ledger that came a moment ago
            if self.reads_compacted:
                add = partial(add_survivors, self.tracker, self.topic.ledger, position)
                self.core.locked(add)
            try:
                with self._forgetting_transactions():
                    if self.topic.ledger.ledgers() or position[0] in self.tracker.ledger_ids:
                        self.dispatcher.reset(*position)
                    else:  # nothing was published that could count as acknowledged
                        self.dispatcher.move(*position)
                aborted = self.topic.ledger.aborted.all_passed()
                if aborted:
                    self.pass_aborted(aborted)
            finally:  # a seek that failed begins to read anew as well
                self.dispatcher.settled()
                self.topic.ledger.tail.wake()

    def _forgetting_transactions(self) -> AbstractContextManager[None]:
        """Acknowledgements of transactions are not applied again behind a seek."""
        if not self.runtime.catalogue.state.next_transaction:
            return nullcontext()  # there never was one
        return self.runtime.transactions.moving(self)

    def acknowledge_before(self, position: Position, *, expired: bool = False) -> bool:
        """Acknowledge everything before the position, durably; False: it was before. Consumers that
        have some of it in their queues do not receive it.

        expired: it is too old, and counted as that. NotAllowedError: a position the topic has not.
        """
        ledger_id, ordinal = position
        record = self.topic.ledger.record()
        if self.removed or record is None:
            raise errors.missing_subscription(self.name, self.topic.name)
        # Messages that retention removed need no acknowledgement.
        gone = (record.removed_ledger_id, record.removed_messages)
        if position <= self.mark_delete() or position <= gone:
            return False
        if not 0 <= ordinal <= self.topic.ledger.messages_in(ledger_id):
            raise errors.NotAllowedError(
                detail=f"{self.topic.name} has no message {ordinal} in ledger {ledger_id}"
            )

        if expired:
            hidden, entries = (
                self.core.locked(partial(count, position, self.tracker, self.topic.ledger))
                for count in (hidden_before, entries_before)
            )
            moved = bool(self.dispatcher.expire_before(ledger_id, ordinal, hidden, entries))
        else:
            self.touch()
            moved = bool(self.dispatcher.acknowledge_before(ledger_id, ordinal))
        self.tracker.flush()
        return moved

    def pass_aborted(self, runs: list[Run]) -> None:
        """Acknowledge messages of aborted transactions, which no reader sees: ledger id, first, and
        behind the last, of each run."""
        self.ledger_changed()  # one of them may have come a moment ago

        def acknowledge() -> None:
            if self.tracker.closed:
                return
            known = set(self.tracker.ledger_ids)
            for ledger_id, first, end in runs:
                if ledger_id in known:
                    self.dispatcher.acknowledge_between(ledger_id, first, end)

        self.core.locked(acknowledge)
        self.dispatcher.settled()
        self.flush.arm()

    def expire(self, before_ms: int) -> bool:
        """Acknowledge what was published before a time, up to the first entry that was not; False:
        nothing was."""
        if is_exempt_subscription(self.name):
            return False
        position = self._end_of_old(before_ms)
        if not position[0]:
            return False
        self.ledger_changed()  # it may be in a ledger that came a moment ago
        return self.acknowledge_before(position, expired=True)

    def _end_of_old(self, before_ms: int) -> Position:
        ledgers = self.topic.ledger
        first_ledger, first_message = self.mark_delete()
        found = (0, 0)
        for ledger in ledgers.ledgers():
            if ledger.ledger_id < first_ledger:
                continue
            start = first_message if ledger.ledger_id == first_ledger else 0
            messages = ledgers.published_counts(ledger)[1]
            if start >= messages:
                continue
            try:
                if ledger.state == "sealed" and ledger.last_publish_ms < before_ms:
                    span = ledgers.span_at_hand(ledger)
                else:
                    span = ledgers.span(ledger)
                ordinal, stopped = span.file.end_of_old(before_ms, start, span.end)
            except LedgerTrimmed:
                continue
            except LedgerAway:  # and old as a whole
                ordinal, stopped = messages, False
            except errors.CorruptDataError:
                # Nothing of it can be read. Who reads it is told, unless it is old as a whole.
                if ledger.state != "sealed" or ledger.last_publish_ms >= before_ms:
                    break
                ordinal, stopped = messages, False
            if ordinal > start:
                found = (ledger.ledger_id, ordinal)
            # What came since was not looked at.
            if stopped or ordinal < messages:
                break
        return found

    def use_policies(self, policies: MessagePolicies) -> None:
        """Have them be in force, for the consumers that are there too."""
        exempt = is_exempt_subscription(self.name)
        self.core.set_message_ttl(0 if exempt else policies.ttl_seconds * 1000)
        delayed = policies.delayed_delivery
        self.dispatcher.set_delayed_delivery(delayed.active, delayed.early_ms)
        limits = policies.limits
        self.dispatcher.set_unacknowledged_limits(
            limits.max_unacked_messages_per_consumer, limits.max_unacked_messages_per_subscription
        )

    def position_behind(self, count: int) -> Position:
        """The position that has so many messages before it that are not acknowledged; the end of
        the topic where it has fewer."""
        ledgers = self.topic.ledger

        def find() -> Position:
            left = count
            known = set(self.tracker.ledger_ids)
            at, _ = self.tracker.mark_delete()
            for ledger in ledgers.ledgers():
                if ledger.ledger_id < at or ledger.ledger_id not in known:
                    continue
                end = ledgers.published_counts(ledger)[1]
                found = self.tracker.unacknowledged_end(ledger.ledger_id, left, end)
                if found >= 0:
                    return ledger.ledger_id, found
                left += found + 1
            return ledgers.end_position()

        position: Position = self.core.locked(find)
        return position

    def position_behind_entries(self, count: int) -> Position:
        """Like position_behind, but counts entries that hold such a message."""
        ledgers = self.topic.ledger
        left = count
        for ledger in ledgers.ledgers():
            place = self._place_behind_entries(ledger, left)
            if place[0]:
                return place
            left -= place[1]
        return ledgers.end_position()

    def _place_behind_entries(self, ledger: LedgerRecord, count: int) -> Position:
        """The position in this ledger; (0, entries that hold one): it has fewer."""
        found = 0
        at = 0
        try:
            span = self.topic.ledger.span(ledger)
            messages = self.topic.ledger.published_counts(ledger)[1]
            while True:
                look = partial(
                    self.tracker.next_unacknowledged_message, ledger.ledger_id, at, messages
                )
                at = self.core.locked(look)
                if at >= messages:
                    return (0, found)
                frame = span.file.frame(span.file.find_message(at, span.end), span.end)
                if frame is None:
                    return (0, found)
                if found == count:
                    return (ledger.ledger_id, at)
                at = frame["first_message"] + frame["message_count"]
                found += 1
        except (LedgerTrimmed, errors.CorruptDataError):
            return (0, found)

    def ledger_changed(self) -> None:
        """A ledger was added, sealed or removed."""

        def change() -> None:
            if not self.tracker.closed:  # unsubscribed meanwhile
                sync_tracker(self.tracker, self.topic.ledger, self.name)
                known = self.tracker.ledger_ids
                if known:
                    self.dispatcher.forget_before(known[0])
                ledger = self.topic.ledger
                if not ledger.catalogue.state.offloads:  # else it tells what to fetch ahead
                    listed = ledger.ledgers()
                    self.dispatcher.leave_gone(listed[0].ledger_id if listed else _BEHIND_ALL)

        self.core.locked(change)
        self.topic.ledger.tail.wake()  # what was trimmed away may have kept others waiting

    def keep(self) -> None:
        """Give its cursor a file, unless it has one. Durable on return."""
        if self.tracker.is_kept or not self.runtime.keeps_cursors:
            return

        def write() -> None:
            if not self.tracker.closed and not self.tracker.is_kept:
                self.tracker.fold()

        self.core.locked(write)

    def expect_ledgers(self, ledger_ids: Sequence[int]) -> None:
        """Add ledgers that are about to be attached: their messages may be acknowledged at once."""

        def add() -> None:
            for ledger_id in () if self.tracker.closed else ledger_ids:
                self.tracker.add_ledger(ledger_id)

        self.core.locked(add)

    def expect_no_more(self, ledger_ids: list[int]) -> None:
        """Forget expected ledgers, which were not attached after all."""

        def end() -> None:
            known = () if self.tracker.closed else set(self.tracker.ledger_ids)
            for ledger_id in known and known.intersection(ledger_ids):
                self.tracker.seal_ledger(ledger_id, 0)

        self.core.locked(end)

    def mark_delete(self) -> Position:
        """The first message that is not acknowledged."""
        position: Position = self.core.locked(self.tracker.mark_delete)
        return position

    def backlog(self) -> tuple[int, int]:
        """(entries, messages): messages that are not acknowledged, and entries that hold one."""
        count = partial(count_backlog, self.tracker, self.topic.ledger)
        found: tuple[int, int] = self.core.locked(count)
        return found

    def statistics(self) -> dict[str, Any]:
        """Statistics like Pulsar's of subscriptions, in snake_case. Key_Shared: which keys are held
        back, by whom, since when. last_type: also when its consumers have left."""
        entries, messages = self.backlog()
        found: dict[str, Any] = {
            "type": self._kind[0] if self._consumers else "",
            "last_type": self._kind[0] if self._had_type else "",
            "is_durable": self.durable,
            "msg_backlog": messages,
            "backlog_entries": entries,
            "mark_delete_position": mark_delete_position(self.mark_delete(), self.topic.ledger),
        }
        now_ms = self.runtime.clock.now_ms()
        found |= backlog_extent(self.mark_delete(), self.topic.ledger, now_ms)
        held = self.topic.ledger.tail.transactions
        if held is not None:  # as in Pulsar, what waits for open transactions is in the backlog
            found["msg_backlog"] += held.held_messages()
            found["backlog_size"] += held.held_size()
        found |= self.dispatcher.statistics()
        found["msg_out_counter"] = self.core.given_messages
        found["bytes_out_counter"] = self.core.given_size
        found["msg_delayed"] = self.dispatcher.delayed_messages()
        expired = ("total_expired", "msg_rate_expired", "expired_entries", "entry_rate_expired")
        found |= zip(expired, self.core.expiry_statistics(), strict=True)
        found |= self.core.throttle_statistics()
        found |= self.filter_statistics()
        return found

    def filter_statistics(self) -> dict[str, Any]:
        """The properties of the subscription, and how many messages its selector let pass, those
        that came again included, and how many it did not."""
        counts = self.core.filter_statistics()
        found: dict[str, Any] = {"subscription_properties": dict(self.properties)}
        names = ("filter_accepted_msg_count", "filter_rejected_msg_count")
        return found | dict(zip(names, counts, strict=True))

    # Transactions ---------------------------------------------------------------------------------

    def transaction_acks(self, transaction: object) -> dict[str, Any]:
        """The acknowledgements that a transaction has pending here, for a record: "individual", a
        list of [ledger id, first ordinal, count], and "cumulative", [ledger id, ordinal of the
        first message that is not], or None. The transaction adds none here from now on."""
        found: dict[str, Any] = transaction_acks(self.core, transaction)
        return found

    def open_transaction(self) -> object:
        """A transaction that has acknowledgements pending here; None: none has."""
        return open_transaction(self.core)

    def commit_transaction(self, transaction: object) -> None:
        """Acknowledge what the transaction did, in one step. Nothing when it did nothing here, and
        when the subscription is closed or removed. What it raises leaves the rest pending: it may
        be called again."""
        if commit_transaction(self.core, transaction):
            self._acknowledged()

    def abort_transaction(self, transaction: object) -> None:
        """Have what the transaction acknowledged delivered again, counted; like commit_transaction.
        Shared and Key_Shared: to any consumer. Exclusive and Failover: in order, before anything
        else, as far as it was delivered; to a consumer of another process with all behind it."""
        abort_transaction(self.core, transaction)

    def reopen_transaction(self, transaction: object) -> None:
        """Nothing came of its end: it may acknowledge more here."""
        reopen_transaction(self.core, transaction)

    def transaction_through(self, transaction: object) -> list[int] | None:
        """The value that `cumulative` of transaction_acks has now; the transaction may add
        more."""
        found: list[int] | None = transaction_through(self.core, transaction)
        return found

    def take_up_acks(
        self, transaction: object, individual: list[list[int]], cumulative: list[int] | None
    ) -> None:
        """Have acknowledgements of a transaction pending that the owner before has left open, in
        the form of transaction_acks, before anything is delivered."""
        take_up_acks(self.core, transaction, individual, cumulative)

    def apply_acks(self, data: dict[str, Any]) -> None:
        """Acknowledge what transaction_acks answered: of a record that may be applied already."""
        apply_acks(self.core, data)
        self._acknowledged()

    def _acknowledged(self) -> None:
        """Many messages were acknowledged, by no consumer."""
        self.touch()
        self.flush.arm()
        self.runtime.background.post(self.topic.trim)

    # Life -----------------------------------------------------------------------------------------

    def require_last(self, receiver: EntrySink) -> None:
        """BrokerMetadataError: other consumers are attached, so this one may not unsubscribe."""
        with self.topic.lock:
            self.detach_forgotten()
            others = len(self._consumers.keys() - {receiver})
        if others:
            raise errors.BrokerMetadataError(
                detail=f"unsubscribe {self.name} of {self.topic.name}: {others} other consumers "
                "are attached; close them first"
            )

    def unsubscribe(self, receiver: EntrySink) -> None:
        """A consumer deletes the subscription. See require_last."""
        with self.topic.lock:
            self.require_last(receiver)
            if self.durable:
                self.topic.unsubscribe(self.name)
            else:
                self.topic.drop_non_durable(self)

    def remove(self) -> bool:
        """Unsubscribe: the position is gone, messages are no longer held for it. False: a file
        stays, which the log says."""
        self.removed = True
        self.flush.close()
        self.core.stop()
        for consumer in self.consumers():
            consumer.shut()
        self.dispatcher.release()
        delete = partial(delete_tracker, self.tracker, self.topic.name, self.name)
        return bool(self.core.locked(delete))

    def close(self) -> None:
        self.flush.close()
        self.core.stop()
        for consumer in self.consumers():
            consumer.shut()
        self.dispatcher.release()
        if not self.removed:
            if self.tracker.dirty:
                self.tracker.flush()
            self.core.close()

    def abandon(self) -> None:
        """In a forked child: touch nothing."""
        self.removed = True
        for reference in list(self._consumers.values()):
            consumer = reference()
            if consumer is not None:
                consumer.abandon()
        self.tracker.abandon()


def detach_those_of(reference: weakref.ref[Subscription]) -> None:
    """Detach consumers that were forgotten; a job of the background."""
    found = reference()
    # In a forked child nothing of it may be touched.
    if found is not None and found.runtime.state.is_open:
        found.detach_forgotten()


def sticky_ranges(request: SubscribeRequest) -> list[tuple[int, int]] | None:
    """First and last slot of each range a consumer asks for; None: the mapping decides."""
    policy = request.key_shared
    if policy is None or policy.get_key_shared_mode() != KeySharedMode.Sticky:
        return None
    return policy.get_sticky_ranges()


def described(kind: tuple[Any, ...]) -> str:
    """A type of subscription in words."""
    if len(kind) == 1:
        return str(kind[0])
    if len(kind) == 2:
        return f"{kind[0]} with is_read_compacted"
    _, selector, out_of_order = kind
    mapping = SELECTOR_NAMES[selector]
    return f"Key_Shared ({mapping}{', out of order' if out_of_order else ''})"
