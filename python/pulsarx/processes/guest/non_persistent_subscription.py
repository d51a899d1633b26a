"""A consumer of a subscription of a non-persistent topic, in a process that does not own the
folder: the owner chooses what is its own and sends that whole."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.cursor.ack_tracker import AckTracker
from pulsarx._pycore.dispatch.relayed_dispatcher import RelayedDispatcher
from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
from pulsarx._pycore.wire.hot_commands import flow_encode
from pulsarx.broker.subscriptions.non_persistent_subscription import ALL_LEDGERS
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.clock import Deadline
from pulsarx.enumerations import ConsumerType, KeySharedMode
from pulsarx.ground.attempt import attempt
from pulsarx.processes.guest.attached_consumer import AttachedConsumer
from pulsarx.wire import commands
from pulsarx.wire.schemas import schema_values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, Protocol

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx._pycore.ground.clock_core import ClockCore
    from pulsarx._pycore.ground.weak_list import WeakList
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.options.consumer_policies import KeySharedPolicy
    from pulsarx.processes.guest.host import GuestHost
    from pulsarx.processes.guest.owner_connection import GuestConnection
    from pulsarx.topic_name import TopicName

    class GuestNonPersistentTopic(Protocol):
        """A topic of the owner's, as its subscriptions see it here."""

        name: str
        topic_name: TopicName
        ledger: Any
        clock: ClockCore
        members: WeakList  # what goes on with the next owner
        decompressed_size_max: int
        host: GuestHost

        @property
        def tail(self) -> LedgerTail: ...
        @property
        def schemas(self) -> SchemaRegistry: ...
        def bring(self, subscription: GuestNonPersistentSubscription) -> None:
            """Have it resume at the owner there is now."""


_TYPES = {
    ConsumerType.Exclusive: commands.EXCLUSIVE,
    ConsumerType.Shared: commands.SHARED,
    ConsumerType.Failover: commands.FAILOVER,
    ConsumerType.KeyShared: commands.KEY_SHARED,
}


class GuestNonPersistentSubscription(AttachedConsumer):
    """The consumer of a non-persistent topic: the owner sends what is its own whole."""

    durable = False

    def __init__(
        self, topic: GuestNonPersistentTopic, request: SubscribeRequest, *, is_reader: bool = False
    ) -> None:
        tracker = AckTracker(None)
        # Whatever is acknowledged is acknowledged already: messages have the id of no ledger.
        tracker.forget_ledgers(ALL_LEDGERS)
        super().__init__(request, topic.ledger, SubscriptionCore(tracker, topic.clock))
        self.topic: GuestNonPersistentTopic = topic
        self._asked = _subscribe_fields(topic.name, request, is_reader)
        self._connection: GuestConnection | None = None  # to the owner that has attached it
        self.dispatcher: Any = RelayedDispatcher(
            self._core,
            topic.tail,
            topic.name,
            topic.decompressed_size_max,
            request.type_name,
            flow_encode,
        )

    def attach(
        self, request: SubscribeRequest, make: Callable[[Any, Any], ConsumerCore]
    ) -> ConsumerCore:
        """Make the consumer. A refused one leaves no trace. Raises what the owner raises.
        TopicGone: the topic is not there any more; it is not made anew for whoever found it."""
        topic = self.topic
        consumer, receiver = self._make(topic, topic.tail, request, make)
        try:
            connection = self._subscribe()
        except BaseException:
            consumer.shut()
            self._end(receiver)
            raise
        topic.members.add(self)
        if connection.is_lost:
            topic.bring(self)
        return consumer

    def _subscribe(self) -> GuestConnection:
        """Attach at the owner there is; where it leaves meanwhile, at the next one."""
        host = self.topic.host
        deadline = Deadline(host.timeout_seconds * 1000)
        while True:
            connection = host.live(deadline)
            try:
                self._subscribe_at(connection, create=False)
                connection.settle()  # what is published from now on finds its permits
                return connection
            except errors.ConnectError:
                if not connection.is_lost:
                    raise
            except errors.TopicNotFound as error:
                raise TopicGone(detail=f"{self.topic.name}: it was deleted") from error
            except errors.Timeout as error:
                raise host.unanswered(f"subscribe to {self.topic.name}", connection) from error

    def _subscribe_at(self, connection: GuestConnection, *, create: bool) -> None:
        number = connection.add_consumer(self)
        try:
            connection.request(
                "SUBSCRIBE", consumer_id=number, force_topic_creation=create, **self._asked
            )
            with self._lock:
                self.dispatcher.begin(connection.link, number)
                self._connection, self._id = connection, number
        except BaseException:
            connection.forget_consumer(number)
            # It may be attached all the same, when its caller waits no longer.
            attempt(partial(connection.close_consumer_later, number))
            raise

    # As of a Subscription -------------------------------------------------------------------------

    def seek(self, find: Callable[[], Position]) -> NoReturn:
        self.positions.refuse("seek a subscription")
        raise AssertionError

    def require_last(self, _: EntrySink) -> None:
        """The owner says it when the subscription is to be deleted."""

    def unsubscribe(self, receiver: EntrySink) -> None:
        """The consumer deletes the subscription. BrokerMetadataError: other consumers are
        attached."""
        with self._lock:
            connection, number = self._connection, self._id
        if connection is not None:
            try:
                connection.request("UNSUBSCRIBE", consumer_id=number)
            except errors.ConnectError:
                if not connection.is_lost:
                    raise  # else it went with its owner
        self._shut()
        self._end(receiver)

    def take_back(self) -> None:
        """It went with its consumer."""

    def detach(self, receiver: EntrySink) -> None:
        """The consumer is gone, and with it what it has in its queue."""
        with self._lock:
            connection, number = self._connection, self._id
        self._end(receiver)
        if connection is None:
            return
        try:
            connection.request_to_leave("CLOSE_CONSUMER", consumer_id=number)
        except (errors.AlreadyClosed, errors.ConnectError):
            pass  # it ended with its connection

    def _end(self, receiver: EntrySink) -> None:
        with self._lock:
            self._has_left = True
            if self._connection is not None:
                self._connection.forget_consumer(self._id)
        super()._end(receiver)

    # By the thread that reads the connection ------------------------------------------------------

    def told(self, name: str, values: dict[str, Any], entry: bytes) -> None:
        if name == "MESSAGE":
            try:
                self.dispatcher.arrive(entry, values["ack_set"] or None)
            except (errors.CorruptDataError, MemoryError) as error:
                import logging

                logging.getLogger("pulsarx").error(
                    "%s: a message was dropped: %s", self.topic.name, errors.detail_of(error)
                )
        elif name == "ACTIVE_CONSUMER_CHANGE":
            self.dispatcher.became(bool(values["is_active"]))
        elif name == "CLOSE_CONSUMER":
            self._shut()  # the topic was deleted
            self.topic.host.topics.was_closed(self.topic.name)

    def lost(self, _: Exception) -> None:
        """The connection has ended: `resume` or `end` follows."""
        self.dispatcher.pause()

    # When owners change ---------------------------------------------------------------------------

    def resume(self, connection: GuestConnection) -> None:
        """Attach the consumer at the next owner. Raises what that answers."""
        if self._open_consumer() is None:
            return
        with self._lock:
            if self._has_left or self._connection is connection:
                return
        try:
            self._subscribe_at(connection, create=True)  # the topic went with its owner
        except BaseException as error:
            self._refused(connection, error)
            raise
        self._refusals.end()
        self._leave_again(connection)

    def _leave_again(self, connection: GuestConnection) -> None:
        """Detach the consumer again if it has left while it was being attached."""
        with self._lock:
            if not self._has_left:
                return
        connection.close_consumer_later(self._id)
        connection.forget_consumer(self._id)


def _subscribe_fields(topic: str, request: SubscribeRequest, is_reader: bool) -> dict[str, Any]:
    settings = request.settings
    found: dict[str, Any] = {
        "topic": topic,
        "subscription": request.subscription_name,
        "type": _TYPES[request.type],
        "consumer_name": request.consumer_name,
        "priority_level": settings.priority_level,
        "durable": False,
        "metadata": [
            {"key": key, "value": value} for key, value in (settings.properties or {}).items()
        ],
    }
    if request.subscription_properties:
        found["subscription_properties"] = [
            {"key": key, "value": value} for key, value in request.subscription_properties.items()
        ]
    if is_reader:
        found["is_reader"] = True
    schema: Any = request.schema
    if getattr(schema, "reads_any", False):
        found["schema"] = schema_values(schema.schema_info())
    if request.key_shared is not None:
        found["key_shared_meta"] = _policy_fields(request.key_shared)
    return found


def _policy_fields(policy: KeySharedPolicy) -> dict[str, Any]:
    sticky = policy.get_key_shared_mode() == KeySharedMode.Sticky
    return {
        "mode": commands.STICKY if sticky else commands.AUTO_SPLIT,
        "allow_out_of_order": policy.is_allow_out_of_order_delivery(),
        "ranges": [
            {"start": start, "end": end}
            for start, end in (policy.get_sticky_ranges() if sticky else [])
        ],
    }
