"""The consumers at the other end of a connection: attached, sent what there is, and closed.

Those of guests, which read the ledgers themselves, are among them.
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.dispatch.connection_sink import ConnectionSink
from pulsarx._pycore.ground.due_ids import DueIds
from pulsarx._pycore.ground.locks import Lock
from pulsarx.broker.ledgers.compacted_view import CompactedView
from pulsarx.broker.subscriptions.subscribe_request import ReceiverSettings, SubscribeRequest
from pulsarx.broker.topics.non_persistent_topic import NonPersistentTopic
from pulsarx.consuming.consumer_schema import ConsumerSchema
from pulsarx.enumerations import ConsumerType, KeySharedMode, SchemaType
from pulsarx.ground.attempt import attempt
from pulsarx.options.argument_check import INT64_MAX
from pulsarx.options.consumer_policies import ConsumerKeySharedPolicy
from pulsarx.schema.auto_consume import AutoConsumeSchema
from pulsarx.sessions.client_proof import subscribing
from pulsarx.sessions.consumer import SessionConsumer, position_of
from pulsarx.sessions.context import error_of_gone
from pulsarx.sessions.schema_answers import declared_schema
from pulsarx.topic_name import (
    TopicName,
    check_is_for_users,
    check_member_name,
    check_subscription_name,
)
from pulsarx.wire import commands
from pulsarx.wire.message_ids import id_data
from pulsarx.wire.schemas import schema_of
from pulsarx.wire.server_errors import code_of, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx._pycore.wire.command_takers import AckTaker
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.transactions.served_transaction import ServedTransaction
    from pulsarx.options.consumer_policies import KeySharedPolicy
    from pulsarx.sessions.context import SessionContext
    from pulsarx.sessions.topic_answers import Require

    Values = dict[str, Any]

    class AnyConsumer(Protocol):
        """A consumer of a session. Calls of the session alone, but for `due`."""

        is_due: bool  # there may be something to send
        subscription: Subscription

        @property
        def is_open(self) -> bool: ...
        @property
        def to_close(self) -> bool:
            """Whether its client is to subscribe again."""

        def send_due(self, consumer_id: int, context: SessionContext) -> None:
            """Send what there is to send, as far as its client gave room. AlreadyClosed: the broker
            shut it meanwhile."""

        def tell_news(self, consumer_id: int, context: SessionContext, was_due: bool) -> None:
            """Tell what is no message. was_due: it was just sent what there was."""

        def end_deliveries(self) -> None:
            """Send nothing more, where the client finds it at the next owner. It stays attached."""

        def leave(self) -> None:
            """Detach: messages that are not acknowledged go to the next consumer."""

        def close_quietly(self, consumer_id: int, context: SessionContext) -> None:
            """Tell the client, which waits for no answer, that the broker closed it."""


READS_ANY = AutoConsumeSchema()
ACTIVITY_SINCE = 12  # version of the protocol that has ACTIVE_CONSUMER_CHANGE
_TYPES = {
    commands.EXCLUSIVE: ConsumerType.Exclusive,
    commands.SHARED: ConsumerType.Shared,
    commands.FAILOVER: ConsumerType.Failover,
    commands.KEY_SHARED: ConsumerType.KeyShared,
}


class SessionConsumers:
    """Calls of one session alone; other threads may call fall_behind and close_those_of."""

    def __init__(
        self,
        context: SessionContext,
        require: Require,
        take_sought: Callable[[str, str], Position | None],
        links: dict[int, Callable[[int, int, int, int, int], object]],
        acks: dict[int, AckTaker],
        transaction_of: Callable[[Values], ServedTransaction | None],
        are_guests: bool,
    ) -> None:
        """require: as ClientProof has it. take_sought: see SessionHost, for this session. links:
        what is told of a link frame, acks: what takes ACK and FLOW; see FrameCutter.
        transaction_of: see SessionTransactions. are_guests: they are of another process of this
        machine, which shares the folder."""
        self._are_guests = are_guests
        self._transaction_of = transaction_of
        self._context = context
        self._broker, self._server = context.broker, context.server
        self._write, self._wake = context.write, context.wake
        self._tell, self._answer, self._refuse = context.tell, context.answer, context.refuse
        self._require = require
        self._take_sought = take_sought
        self._links, self._acks = links, acks
        self._consumers: dict[int, AnyConsumer] = {}
        self._due = DueIds(self._wake)
        self._failed: dict[int, Exception] = {}  # why one was closed, until its client hears of it
        self._lock = Lock()  # of the dict of consumers

    def find(self, consumer_id: int) -> AnyConsumer | None:
        return self._consumers.get(consumer_id)

    def add(self, consumer_id: int, consumer: AnyConsumer, take_link: Any = None) -> None:
        """take_link: what is told of its link frames; None: there are none."""
        with self._lock:
            self._consumers[consumer_id] = consumer
            if take_link is not None:
                self._links[consumer_id] = take_link
            elif isinstance(consumer, SessionConsumer):
                self._acks[consumer_id] = consumer

    def all_due(self) -> None:
        """There may be something to send for each."""
        for consumer_id, consumer in self._each_consumer():
            consumer.is_due = True
            self._due.keep(consumer_id)

    def due_of(self, subscription: Subscription) -> None:
        """There may be something to say to those of a subscription."""
        for consumer_id, consumer in self._each_consumer():
            if consumer.subscription is subscription:
                self._due.keep(consumer_id)

    def marking(self, consumer_id: int) -> Callable[[], None]:
        """A function that says that there is something to do for one of them."""
        return self._due.marking(consumer_id)

    def close_forbidden(self) -> None:
        """Close those that may not consume any more. They are refused when they come again."""
        for consumer_id, consumer in self._each_consumer():
            subscription = consumer.subscription
            check = subscribing(subscription.name)
            error = attempt(partial(self._require, check, subscription.topic.name))
            if isinstance(error, errors.AuthorizationError):
                self._close_there(consumer_id, consumer)

    def end_deliveries(self) -> None:
        """Send consumers of a guest nothing more. They stay attached."""
        for _, consumer in self._each_consumer():
            consumer.end_deliveries()

    def leave(self) -> list[Callable[[], object]]:
        """The steps that detach them all, each to be taken though one before it fails."""
        with self._lock:
            steps: list[Callable[[], object]] = [each.leave for each in self._consumers.values()]
            self._consumers = {}
            self._links.clear()
            self._acks.clear()
        return steps

    def deliver(self) -> None:
        """Send what consumers have room for, and say which of them the broker closed."""
        if not self._due.are_any:
            return
        for consumer_id, consumer in self._each_due():
            if consumer.to_close or not consumer.is_open:
                self._close_there(consumer_id, consumer)
                continue
            was_due = consumer.is_due
            if was_due:
                self._deliver_to(consumer_id, consumer)
                if consumer.is_due:  # there is no room for it
                    self._due.keep(consumer_id)
            consumer.tell_news(consumer_id, self._context, was_due)

    def _deliver_to(self, consumer_id: int, consumer: AnyConsumer) -> None:
        try:
            consumer.send_due(consumer_id, self._context)
        except errors.AlreadyClosed:  # the broker shut it meanwhile
            self._close_there(consumer_id, consumer)
        except Exception as error:  # its ledger cannot be read
            # A consumer has no command for an error: it hears of it when it subscribes again.
            self._failed[consumer_id] = error
            self._close_there(consumer_id, consumer)

    def _each_consumer(self) -> list[tuple[int, AnyConsumer]]:
        with self._lock:
            return list(self._consumers.items())

    def _each_due(self) -> list[tuple[int, AnyConsumer]]:
        """The consumers for which there may be something to do."""
        with self._lock:
            found = self._consumers
            due = self._due.take(found)
            return [(number, found[number]) for number in due if number in found]

    def begin(self, values: Values) -> None:
        failure = self._failed.pop(values["consumer_id"], None)
        if failure is not None:
            self._refuse(values, failure)
            return
        try:
            with self._broker.topics.taking_back():
                consumer = self._attach(values)
        except Exception as error:
            self._refuse(values, error)
            return
        if consumer is not None:
            consumer_id = values["consumer_id"]
            self.add(consumer_id, consumer)
            self._due.keep(consumer_id)
            consumer.begin(values["consumer_epoch"], self._due.marking(consumer_id), self)
        self._tell("SUCCESS", request_id=values["request_id"])

    def _attach(self, values: Values) -> SessionConsumer | None:
        """The consumer that is asked for; None: it is there already."""
        consumer_id = values["consumer_id"]
        if consumer_id in self._consumers:
            return None
        check_member_name("consumer", values["consumer_name"] or "")
        self._require(subscribing(values["subscription"]), values["topic"])
        name = check_is_for_users(TopicName.of(values["topic"]))
        info = schema_of(values["schema"])
        reads_any = info is not None and info.schema_type() == SchemaType.AUTO_CONSUME
        declared = None if reads_any else declared_schema(values)
        schema = ConsumerSchema(self._broker, [name], declared)
        topic = self._context.topic(name, values["force_topic_creation"])
        kind = _TYPES.get(values["type"])
        if kind is None:
            raise errors.OperationNotSupported(detail=f"subscription type {values['type']}")
        if values["read_compacted"] and values["type"] not in (
            commands.EXCLUSIVE,
            commands.FAILOVER,
        ):
            raise errors.NotAllowedError(
                detail="what compaction left is read by Exclusive and Failover subscriptions alone"
            )
        request = SubscribeRequest(
            check_subscription_name(values["subscription"]),
            kind,
            READS_ANY if reads_any else None,
            values["consumer_name"] or f"connection-{consumer_id}",
            self._start_of(topic, values),
            ReceiverSettings(
                priority_level=values["priority_level"],
                properties={each["key"]: each["value"] for each in values["metadata"]},
            ),
            durable=values["durable"],
            key_shared=_policy_of(values["key_shared_meta"]),
            sink=ConnectionSink,
            read_compacted=values["read_compacted"],
            subscription_properties={
                each["key"]: each["value"] for each in values["subscription_properties"]
            },
            takes_any_selector=True,  # clients subscribe again, as they did the first time
        )

        def make(sink: EntrySink, subscription: Subscription) -> SessionConsumer:
            assert isinstance(sink, ConnectionSink)
            sink.counts_left_out = self._context.gives_for_left_out
            sink.exposes = self._context.exposes
            made = SessionConsumer(sink, subscription, topic.keeps_messages)
            if kind == ConsumerType.Failover and self._context.protocol_version >= ACTIVITY_SINCE:
                made.follow_activity(sink)
            return made

        found: Any
        if values["is_reader"] and self._are_guests and isinstance(topic, NonPersistentTopic):
            found = topic.attach_reader(request, make)
        else:
            found = topic.subscribe(request, make)
        assert isinstance(found, SessionConsumer)
        try:
            schema.register()
        except BaseException:
            found.leave()
            if request.made_subscription:
                topic.take_back(found.subscription)
            raise
        return found

    def _start_of(self, topic: AnyTopic, values: Values) -> Callable[[], Position]:
        """A function that finds where a new subscription begins."""
        if not topic.keeps_messages:
            return lambda: (0, 0)
        compacted, start = values["read_compacted"], values["start_message_id"]
        ledger = CompactedView(topic.ledger) if compacted else topic.ledger
        if not values["durable"]:
            # Before what the client says: that of Go says where it began, not where it went.
            sought = self._take_sought(topic.name, values["subscription"])
            if sought is not None:
                return lambda: sought
        if start is not None:
            return lambda: position_of(ledger, start)
        if values["initial_position"] == commands.EARLIEST:
            return ledger.first_position
        return ledger.end_position

    def _consumer(self, values: Values) -> SessionConsumer:
        found = self._consumers.get(values["consumer_id"])
        if not isinstance(found, SessionConsumer):
            raise errors.AlreadyClosed(
                detail=f"consumer {values['consumer_id']} of this connection"
            )
        return found

    def flow(self, values: Values) -> None:
        consumer = self._consumers.get(values["consumer_id"])
        if isinstance(consumer, SessionConsumer) and consumer.is_open:
            # Shut by the broker meanwhile: the next deliver says so.
            attempt(lambda: consumer.flow(values["permits"]))
            consumer.has_flowed = True
            consumer.due()

    def acknowledge(self, values: Values) -> None:
        failure: Values = {}
        try:
            transaction = self._transaction_of(values)
            consumer = self._consumer(values)
            places = values.get("places")
            if places is not None:
                consumer.acknowledge_entries(places)
            else:
                consumer.acknowledge_all(values["ack_type"], values["message_ids"], transaction)
        except Exception as error:
            failure = {"error": code_of(error), "message": message_of(error)}
        if values["request_id"] is not None:
            ids = {"consumer_id": values["consumer_id"], "request_id": values["request_id"]}
            self._tell("ACK_RESPONSE", **ids, **failure)

    def redeliver(self, values: Values) -> None:
        consumer = self._consumers.get(values["consumer_id"])
        if isinstance(consumer, SessionConsumer) and consumer.is_open:
            error = attempt(
                lambda: consumer.redeliver(values["message_ids"], values["consumer_epoch"])
            )
            if error is not None:
                import logging

                logging.getLogger("pulsarx").error(
                    "messages were not redelivered: %s", errors.detail_of(error)
                )
            consumer.due()

    def seek(self, values: Values) -> None:
        def seek() -> None:
            consumer = self._consumer(values)
            target, time_ms = values["message_id"], values["publish_time"]
            if (target is None) == (time_ms is None):
                raise errors.NotAllowedError(detail="a SEEK names a message id or a time")

            def find() -> Position:
                if target is not None:
                    return consumer.position_of(target)
                return consumer.ledger.position_at_time(min(time_ms, INT64_MAX))

            consumer.has_sought = True
            if consumer.keeps_messages:
                self._server.seek(consumer.subscription, find)
            else:  # as Pulsar, which has nowhere to go; its client has thrown its queue away
                consumer.begin_anew()
            self.deliver()  # the closing of its consumers goes before the answer

        self._answer(values, seek)

    def has_those_of(self, subscription: Subscription) -> bool:
        """Tell whether this connection has consumers of a subscription that begin anew when it is
        moved."""
        return bool(self._consumers_of(subscription))

    def fall_behind(self, subscription: Subscription, is_behind: bool) -> None:
        """The subscription is moved, or was not after all: whether its consumers acknowledge
        nothing any more."""
        for consumer in self._consumers_of(subscription):
            consumer.fall_behind(is_behind)

    def close_those_of(self, subscription: Subscription) -> None:
        """The subscription was moved: its consumers begin anew."""
        for consumer in self._consumers_of(subscription):
            consumer.begin_anew()
            consumer.fall_behind(True)

    def _consumers_of(self, subscription: Subscription) -> list[SessionConsumer]:
        """The consumers that begin anew when the subscription is moved. Guests go on."""
        return [
            each
            for _, each in self._each_consumer()
            if each.subscription is subscription and isinstance(each, SessionConsumer)
        ]

    def _close_there(self, consumer_id: int, consumer: AnyConsumer) -> None:
        """Have the client subscribe again: the broker closed the consumer. A topic that was deleted
        is not made anew by that: it is refused, once."""
        with self._lock:
            self._consumers.pop(consumer_id, None)
            self._links.pop(consumer_id, None)
            self._acks.pop(consumer_id, None)
        gone = error_of_gone(consumer.subscription.topic)
        if gone is not None:
            self._failed.setdefault(consumer_id, gone)
        error = attempt(consumer.leave)
        if error is not None:
            import logging

            logging.getLogger("pulsarx").error("a consumer was closed: %s", errors.detail_of(error))
        consumer.close_quietly(consumer_id, self._context)

    def get_last_message_id(self, values: Values) -> None:
        try:
            consumer = self._consumer(values)
            found = consumer.ledger.last_message_id()
            deleted = consumer.mark_delete()
        except Exception as error:
            self._refuse(values, error)
            return
        self._tell(
            "GET_LAST_MESSAGE_ID_RESPONSE",
            request_id=values["request_id"],
            message_id=id_data(found),
            mark_delete=id_data(deleted),
        )

    def tell_statistics(self, values: Values) -> None:
        try:
            answer = self._consumer(values).statistics()
        except Exception as error:
            answer = {"error": code_of(error), "message": message_of(error)}
        self._tell("CONSUMER_STATS_RESPONSE", request_id=values["request_id"], **answer)

    def unsubscribe(self, values: Values) -> None:
        def unsubscribe() -> None:
            consumer = self._consumer(values)
            consumer.subscription.unsubscribe(consumer.receiver)
            self.drop(values["consumer_id"])

        self._answer(values, unsubscribe)

    def end(self, values: Values) -> None:
        self._answer(values, lambda: self.drop(values["consumer_id"]))

    def drop(self, consumer_id: int) -> None:
        self._failed.pop(consumer_id, None)
        with self._lock:
            consumer = self._consumers.pop(consumer_id, None)
            self._links.pop(consumer_id, None)
            self._acks.pop(consumer_id, None)
        if consumer is not None:
            consumer.leave()


def _policy_of(meta: Values | None) -> KeySharedPolicy | None:
    if meta is None:
        return None
    sticky = meta["mode"] == commands.STICKY
    ranges = [(each["start"], each["end"]) for each in meta["ranges"]] if sticky else None
    mode = KeySharedMode.Sticky if sticky else KeySharedMode.AutoSplit
    try:
        return ConsumerKeySharedPolicy(mode, meta["allow_out_of_order"], ranges).policy()
    except (ValueError, TypeError) as error:
        raise errors.InvalidConfiguration(detail=str(error)) from error
