"""A consumer at the other end of a connection, as the broker sees it."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.consume.entry_consumer import EntryConsumer
from pulsarx._pycore.dispatch.position_sink import SinkEvents
from pulsarx.broker.subscriptions.backlog import mark_delete_position
from pulsarx.message_id import MessageId
from pulsarx.wire.commands import CUMULATIVE, FROM_BROKER
from pulsarx.wire.message_ids import acknowledged_runs, first_in, id_data, message_id_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx.broker.ledgers.compacted_view import CompactedView
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.transactions.served_transaction import ServedTransaction
    from pulsarx.sessions.context import SessionContext

_NO_ENTRY = -1  # what is before the first entry of a ledger


class SessionConsumer(EntryConsumer):
    """One consumer of one topic. Calls of its session alone."""

    __slots__ = (
        "_events", "_has_ended", "consumer_name", "has_sought", "subscription", "to_close",
    )  # fmt: skip

    def __init__(
        self, sink: EntrySink, subscription: Subscription, keeps_messages: bool = True
    ) -> None:
        """keeps_messages: the topic does; else what is acknowledged or refused is gone anyway."""
        partition = subscription.topic.ledger.partition
        super().__init__(sink, subscription.host, partition, keeps_messages)
        self.consumer_name: Any = sink.consumer_name
        self._events: SinkEvents | None = None  # which of a Failover subscription is active
        self._has_ended = False  # it was told that nothing more comes
        self.subscription: Subscription = subscription
        self.to_close: bool = False  # the subscription was moved
        self.has_sought: bool = False  # by its client
        self.wake: Callable[[], object] = _nothing

    def begin(self, epoch: int, wake: Callable[[], object], connection: object) -> None:
        """Call wake() whenever there may be something to send. connection: the same object for all
        of one."""
        self.epoch: int = epoch
        self.wake = wake
        self.connection: object = connection
        self.watch(self.due)
        if self._events is not None:
            self._events.wake = wake

    @property
    def is_attached(self) -> bool:
        """Whether it is attached, under the name that readers have for it."""
        return self.is_open

    def follow_activity(self, sink: EntrySink) -> None:
        """Keep for `activations` when it becomes active or inactive, from the first on."""
        self._events = SinkEvents()
        sink.set_events(self._events, self.partition)

    def activations(self, once_flowed: bool) -> Iterator[bool]:
        """Whether it became active, each time since it was asked last. once_flowed: nothing before
        its first FLOW."""
        if self._events is None or (once_flowed and not self.has_flowed):
            return
        while (event := self._events.take()) is not None:
            yield event[0]

    def has_just_ended(self) -> bool:
        """Whether its topic is terminated and it was sent all that there is for it; once."""
        if self._has_ended or not self.subscription.topic.ledger.is_terminated or self.is_due:
            return False
        self._has_ended = self.awaits_more() or self.subscription.backlog()[1] == 0
        return self._has_ended

    def begin_anew(self) -> None:
        """The subscription was moved: have the client subscribe again. In any thread."""
        self.to_close = True
        self.wake()

    def fall_behind(self, is_behind: bool) -> None:
        """The subscription is moved, or was not after all: whether what was sent is not
        acknowledged any more. In any thread."""
        with self.acknowledging:
            self.is_behind: bool = is_behind or self.to_close

    @property
    def ledger(self) -> LedgerList | CompactedView:
        return self.subscription.positions

    def mark_delete(self) -> MessageId:
        """The last message up to which all is acknowledged."""
        ledgers = self.subscription.topic.ledger
        place = mark_delete_position(self.subscription.mark_delete(), ledgers, exact=True)
        return MessageId(self.partition, *place)

    def statistics(self) -> dict[str, Any]:
        """The statistics that CONSUMER_STATS_RESPONSE tells."""
        found = self.subscription.statistics()
        mine = next(
            (each for each in found["consumers"] if each["consumer_name"] == self.consumer_name),
            None,
        )
        told = {"type": found["type"], "backlog": found["msg_backlog"]}
        told["consumer_name"] = self.consumer_name
        if mine is not None:
            told["available_permits"] = max(mine["available_permits"], 0)
            told["unacked_messages"] = mine["unacked_messages"]
            told["blocked"] = mine["blocked_consumer_on_unacked_msgs"]
        return told

    def send_due(self, consumer_id: int, context: SessionContext) -> None:
        """See AnyConsumer."""
        while others := self.send_entries(context.output, consumer_id):
            for ledger_id, entry_id, entry, count, ack_set, _, _ in others:
                context.tell(
                    "MESSAGE",
                    entry,
                    consumer_id=consumer_id,
                    message_id=id_data(MessageId(self.partition, ledger_id, entry_id)),
                    redelivery_count=count or None,
                    ack_set=ack_set or (),
                    consumer_epoch=self.epoch or None,
                )

    def tell_news(self, consumer_id: int, context: SessionContext, was_due: bool) -> None:
        """See AnyConsumer."""
        for is_active in self.activations(context.listens_late):
            context.tell("ACTIVE_CONSUMER_CHANGE", consumer_id=consumer_id, is_active=is_active)
        if was_due and context.knows_ends and self.has_just_ended():
            context.tell("REACHED_END_OF_TOPIC", consumer_id=consumer_id)

    def end_deliveries(self) -> None:
        """See AnyConsumer. Its client waits for no next owner."""

    def close_quietly(self, consumer_id: int, context: SessionContext) -> None:
        """See AnyConsumer. The client is to subscribe again."""
        # The URLs spare a client a pause of 100 ms, and a LOOKUP; but that says where clients go
        # that ask by the name of a listener. One in C++ that sought needs the pause: the thread
        # that called seek may see the answer late, and then empties the queue, into which messages
        # come as soon as the consumer is there again.
        at_once = self.to_close and not self.has_sought and not context.by_name
        context.tell(
            "CLOSE_CONSUMER",
            consumer_id=consumer_id,
            request_id=FROM_BROKER,
            service_url=context.service_url if at_once else None,
            service_url_tls=context.service_url_tls if at_once else None,
        )

    def acknowledge_entries(self, places: list[tuple[int, int]]) -> None:
        """Whole entries, by (ledger id, entry id). As acknowledge_all."""
        if not self.keeps_messages:
            return
        runs = []
        for place in places:
            found = self.take_sent(*place)
            if found is None:
                target = MessageId(self.partition, *place)
                found = self.ledger.locate_for_acknowledgement(target)
            runs.append(found)
        with self.acknowledging:
            self._require_unmoved()
            self.acknowledge_many(_Runs(runs))

    def acknowledge_all(
        self,
        kind: int,
        ids: list[dict[str, Any]],
        transaction: ServedTransaction | None = None,
    ) -> None:
        """NotAllowedError: the topic never had such a message. AlreadyClosed: the subscription was
        moved. TransactionConflict, NotAllowedError: nothing of it is acknowledged in the
        transaction. One that keeps no messages takes any, and is in no transaction."""
        if not self.keeps_messages:
            if transaction is not None:
                raise errors.NotAllowedError(
                    detail=f"acknowledge in transaction {transaction} on "
                    f"{self.subscription.topic.name}: the topic is not persistent"
                )
            return
        runs: list[tuple[int, int, int]] = []
        if kind != CUMULATIVE:
            for each in ids:
                found = list(self._acknowledged_runs(each))
                if transaction is not None and not found:
                    raise errors.TransactionConflict(
                        detail=f"acknowledge {each['ledger_id']}:{each['entry_id']} in transaction "
                        f"{transaction}: it is acknowledged already, and trimmed"
                    )
                runs += found
        with self.acknowledging:
            self._require_unmoved()
            if kind != CUMULATIVE:
                self.acknowledge_many(_Runs(runs), transaction)
                if transaction is not None:
                    transaction.acknowledged(self.subscription, runs)
                return
            for each in ids:
                target = _last_acknowledged(each)
                if target is not None:
                    self.acknowledge_cumulative(target, transaction)
                    if transaction is not None:
                        transaction.acknowledged(self.subscription, [])

    def _require_unmoved(self) -> None:
        if self.is_behind:
            raise errors.AlreadyClosed(
                detail=f"consumer {self.consumer_name}: its subscription was moved"
            )

    def _acknowledged_runs(self, data: dict[str, Any]) -> Iterator[tuple[int, int, int]]:
        """(ledger id, first message, messages) that an id acknowledges: the whole entry, or those
        of a batch whose bits are not set."""
        ledger_id, first, count = self.ledger.locate_for_acknowledgement(message_id_of(data, -1))
        for index, size in acknowledged_runs(data["ack_set"], count):
            yield ledger_id, first + index, size

    def redeliver(self, ids: list[dict[str, Any]], epoch: int) -> None:
        """Have messages delivered again at once; no ids: all that the consumer was given."""
        self.epoch = max(self.epoch, epoch)
        if not self.keeps_messages:
            return
        if ids:
            self.redeliver_many_at_once(map(message_id_of, ids))
        else:
            self.redeliver_unacknowledged()

    def position_of(self, data: dict[str, Any]) -> Position:
        return position_of(self.ledger, data)

    def leave(self) -> None:
        """Detach: messages that are not acknowledged go to the next consumer."""
        try:
            self.unwatch(self.due)  # where it has others told, of whom one may raise
        finally:
            if self.shut():
                self.subscription.detach(self.receiver)


class _Runs:
    """Acknowledged runs of messages, in the form that receive_arrow gives them."""

    __slots__ = ("_runs",)

    def __init__(self, runs: list[tuple[int, int, int]]) -> None:
        self._runs = runs

    def runs(self, _: object) -> list[tuple[int, int, int]]:
        return self._runs


def _last_acknowledged(data: dict[str, Any]) -> MessageId | None:
    """The last message that a cumulative acknowledgement takes; None: none in this ledger."""
    if not data["ack_set"]:
        target = message_id_of(data, -1)
        return target if target.entry_id() > _NO_ENTRY else None
    first_open = first_in(data["ack_set"])
    if first_open > 0:
        return message_id_of(data, first_open - 1)
    return (
        message_id_of({**data, "entry_id": data["entry_id"] - 1}, -1) if data["entry_id"] else None
    )


def position_of(ledger: LedgerList | CompactedView, data: dict[str, Any]) -> Position:
    """The position to begin at for an id: its entry, or in a batch at the first message whose bit
    is set."""
    index = first_in(data["ack_set"]) if data["ack_set"] else -1
    return ledger.position_of(message_id_of(data, index), True)


def _nothing() -> None:
    pass
