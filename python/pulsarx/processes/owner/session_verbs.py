"""Operations that guests ask for over a connection: processes of this machine, which read the
ledgers of the folder themselves."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground import owner_link
from pulsarx._pycore.ground.due_ids import DueIds
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.ground.attempt import attempt
from pulsarx.processes.owner.consumer import (
    GuestConsumer,
    attach_guest,
    place_now,
    record_acknowledgement,
)
from pulsarx.processes.owner.transactions import GuestTransactions
from pulsarx.processes.owner.watches import GuestTopicsWatch, GuestWatch
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.sessions.consumers import SessionConsumers
    from pulsarx.sessions.context import SessionContext
    from pulsarx.sessions.producers import SessionProducers

    Values = dict[str, Any]


class SessionGuests:
    """Calls of one session alone."""

    def __init__(
        self, context: SessionContext, consumers: SessionConsumers, producers: SessionProducers
    ) -> None:
        """consumers, producers: those of the session, to which those of guests belong."""
        self._producers = producers
        self._context = context
        self._server = context.server
        self._write, self._wake = context.write, context.wake
        self._consumers = consumers
        self._arrivals = context.broker.runtime.arrivals
        # Of topics that a guest reads itself, and of which there are.
        self._due = DueIds(self._wake)
        self._watches: dict[int, GuestWatch | GuestTopicsWatch] = {}
        self._transactions = GuestTransactions(context, consumers)
        producers.transaction_of = self._transactions.of
        self.verbs: dict[str, Callable[[Values], Any]] = {
            "guest.subscribe": self._subscribe,
            "guest.seek": self._seek,
            "guest.require_last": self._require_last,
            "guest.unsubscribe": self._unsubscribe,
            "guest.leave": self._leave,
            "guest.acknowledge": self._acknowledge,
            "guest.written": self._written,
            "guest.record": self._record,
            "guest.take_back": self._take_back,
            "guest.take_back_topics": self._take_back_topics,
            "guest.watch": self._watch,
            "guest.unwatch": self._unwatch,
            "guest.watch_topics": self._watch_topics,
            "guest.arrived": self._has_arrived,
            "guest.is_idle": self._is_idle,
            **self._transactions.verbs,
        }

    def deliver(self) -> None:
        """Send the news of what is watched."""
        for number in self._due.take(self._watches):
            watch = self._watches.get(number)
            if watch is None or not watch.is_due:
                continue
            if not self._context.has_room():
                self._due.keep(number)
                continue
            self._write(watch.news())
            if watch.is_over:
                self._watches.pop(number).close()

    def leave(self) -> list[Callable[[], object]]:
        """The steps that end all watches and transactions, each to be taken though one before it
        fails."""
        steps: list[Callable[[], object]] = [each.close for each in self._watches.values()]
        steps += self._transactions.leave()
        self._watches = {}
        return steps

    def _guest(self, arguments: Values) -> GuestConsumer:
        found = self._consumers.find(arguments["consumer_id"])
        if not isinstance(found, GuestConsumer) or not found.is_open:
            raise errors.AlreadyClosed(detail="the consumer was closed")
        return found

    def link(self, values: Values) -> None:
        if values["kind"] == owner_link.SEQUENCE_NOTED:
            self._producers.sequence_noted(values["consumer_id"])
            return
        if values["kind"] == owner_link.SENT_AT:
            self._producers.sent_at(values["consumer_id"], *values["numbers"][:2])
            return
        if values["kind"] == owner_link.GIVEN_UP:
            self._producers.give_up(values["consumer_id"], values["numbers"][0])
            return
        consumer = self._consumers.find(values["consumer_id"])
        if isinstance(consumer, GuestConsumer) and consumer.is_open:
            consumer.told(values["kind"], values["numbers"])

    def _subscribe(self, arguments: Values) -> Any:
        consumer_id = arguments["consumer_id"]
        if not (arguments["goes_on"] or self._arrivals.is_over):
            self._arrivals.look()
            return {"is_early": True}  # first those that were there
        topic = self._context.kept_topic(arguments["topic"])
        # One that is late has lost its place to those that got messages meanwhile.
        place = None if self._arrivals.is_over else arguments.get("place")
        try:
            consumer, answer = attach_guest(topic, arguments, place)
        except TopicGone:
            return {"is_gone": True}
        try:
            self._consumers.add(consumer_id, consumer, consumer.take_link)
            marking = self._consumers.marking(consumer_id)
            consumer.open_to(consumer_id, marking, self._write, self._context.link)
            if not self._arrivals.is_over:
                self._arrivals.tell(self._wake)
        except BaseException:
            # Its process brings it again, and this one would be in its way.
            attempt(partial(self._consumers.drop, consumer_id))
            if consumer.is_open:
                attempt(consumer.leave)
            if answer["made_subscription"]:
                attempt(partial(topic.take_back, consumer.subscription))
            raise
        return answer

    def _seek(self, arguments: Values) -> None:
        ledger_id, ordinal = arguments["position"]
        subscription = self._guest(arguments).subscription

        def find() -> Position:
            reads_compacted = subscription.reads_compacted
            return place_now(subscription.topic.ledger, (ledger_id, ordinal), reads_compacted)

        self._server.seek(subscription, find)
        self._consumers.due_of(subscription)
        self._consumers.deliver()  # what it is told of it goes before the answer

    def _require_last(self, arguments: Values) -> None:
        consumer = self._guest(arguments)
        consumer.subscription.require_last(consumer.receiver)

    def _acknowledge(self, arguments: Values) -> None:
        """Acknowledge in a transaction."""
        consumer = self._guest(arguments)
        transaction = self._transactions.require(arguments["number"])
        if arguments["through"] is not None:
            consumer.acknowledge_through_in(transaction, *arguments["through"])
        else:
            consumer.acknowledge_in(transaction, [tuple(each) for each in arguments["runs"]])
        consumer.due()  # it may have room for others

    def _written(self, arguments: Values) -> list[list[int]]:
        """How far ledgers are written that readers do not see all of: see OpenTransactions."""
        transactions = self._context.kept_topic(arguments["topic"]).ledger.tail.transactions
        written: list[list[int]] = [] if transactions is None else transactions.written()
        return written

    def _unsubscribe(self, arguments: Values) -> None:
        consumer = self._guest(arguments)
        consumer.subscription.unsubscribe(consumer.receiver)
        self._consumers.drop(arguments["consumer_id"])

    def _leave(self, arguments: Values) -> None:
        self._consumers.drop(arguments["consumer_id"])

    def _record(self, arguments: Values) -> None:
        """Record what a consumer acknowledged that is not attached any more."""
        topic = self._context.kept_topic(arguments["topic"])
        subscription = topic.subscriptions.get(arguments["subscription"])
        if subscription is not None:
            for each in arguments["acknowledgements"]:
                record_acknowledgement(subscription, *each)

    def _watch(self, arguments: Values) -> None:
        topic = self._context.kept_topic(arguments["topic"])
        number = arguments["number"]
        self._watches[number] = GuestWatch(topic, number, self._due.marking(number))
        self._due.mark(number)

    def _watch_topics(self, arguments: Values) -> None:
        number = arguments["number"]
        marking = self._due.marking(number)
        self._watches[number] = GuestTopicsWatch(self._context.broker, number, marking)
        self._due.mark(number)

    def _unwatch(self, arguments: Values) -> None:
        watch = self._watches.pop(arguments["number"], None)
        if watch is not None:
            watch.close()

    def _is_idle(self, arguments: Values) -> bool:
        """TopicNotFound: it is not there, or was unloaded just now."""
        topic = self._context.topic(TopicName.of(arguments["topic"]), create=False)
        try:
            return topic.is_idle()
        except TopicGone as error:
            raise errors.TopicNotFound(detail=errors.detail_of(error)) from error

    def _has_arrived(self, arguments: Values) -> None:
        """A process that was a guest of the last owner has brought all it had there."""
        self._arrivals.has_arrived(arguments["pid"])

    def _take_back(self, arguments: Values) -> None:
        topic = self._context.kept_topic(arguments["topic"])
        subscription = topic.subscriptions.get(arguments["subscription"])
        if subscription is not None:
            topic.take_back(subscription)

    def _take_back_topics(self, arguments: Values) -> None:
        """Delete topics that were made for a call of the guest, which failed."""
        self._context.broker.topics.take_back(map(TopicName.of, arguments["topics"]))
