"""A consumer of a subscription that is in the process that owns the folder, as this process sees
it: what the owner is asked for, and what it says."""

from __future__ import annotations

import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.dispatch.guest_dispatcher import GuestDispatcher
from pulsarx._pycore.dispatch.subscription_core import SubscriptionCore
from pulsarx._pycore.ground import owner_link
from pulsarx._pycore.ground.locks import Event
from pulsarx.broker.ledgers.compacted_view import CompactedView
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.clock import Deadline
from pulsarx.enumerations import ConsumerType, KeySharedMode
from pulsarx.ground.attempt import attempt
from pulsarx.ground.call_timeout import call_timeout, within
from pulsarx.processes.guest.attached_consumer import AttachedConsumer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.consume.consumer_core import ConsumerCore
    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx._pycore.ground.clock_core import ClockCore
    from pulsarx._pycore.ground.weak_list import WeakList
    from pulsarx._pycore.ledger.compacted_ledger import CompactedLedger
    from pulsarx._pycore.ledger.ledger_tail import LedgerTail
    from pulsarx.broker.faces import FolderView
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger
    from pulsarx.broker.schemas.registry import SchemaRegistry
    from pulsarx.broker.subscriptions.subscribe_request import SubscribeRequest
    from pulsarx.broker.transactions.broker_transaction import BrokerTransaction
    from pulsarx.options.consumer_policies import KeySharedPolicy
    from pulsarx.processes.guest.connection import Connection
    from pulsarx.topic_name import TopicName

    class GuestTopic(Protocol):
        """A topic of the owner's, as its subscriptions see it here."""

        name: str
        topic_name: TopicName
        ledger: ReadOnlyLedger
        consumer_tail: LedgerTail  # what its consumers sleep on
        decompressed_size_max: int
        broker: FolderView
        clock: ClockCore
        members: WeakList  # what goes on with the next owner

        @property
        def connection(self) -> Connection: ...
        def bring(self, subscription: GuestSubscription) -> None:
            """Have it resume at the owner there is now."""

        def unserved(self) -> str:
            """That there is no owner which does what it is asked, and what it is."""

        @property
        def schemas(self) -> SchemaRegistry: ...


_LOOK_SECONDS = 0.01
_LOOKS_MAX = 10  # at ledgers that change


def subscribe_there(
    topic: GuestTopic, request: SubscribeRequest, make: Callable[[Any, Any], ConsumerCore]
) -> ConsumerCore:
    """Attach a consumer to a subscription, which the owner makes when it does not exist. A call of
    the control plane.

    TopicGone: the topic was deleted since it was found. Raises what the owner raises.
    """
    subscription = GuestSubscription(topic, request)
    return subscription.attach(request, make)


class Settler:
    """Returns when an owner has done what it was told. Does not keep a consumer."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._timeout_seconds = call_timeout()  # of the client of the consumer

    def settle(self) -> None:
        connection = self.connection  # that may be another one when this has ended
        try:
            within(self._timeout_seconds, connection.settle)
        except errors.ConnectError:
            if not connection.is_lost:
                raise  # else the next owner has not come yet, and nothing is there


class _CompactedSource:
    """The ledger that the last compaction of a topic left, by the catalogue as it is now."""

    def __init__(self, topic: GuestTopic) -> None:
        self._topic = topic

    def compacted_ledger(self) -> CompactedLedger | None:
        self._topic.broker.refresh()
        return self._topic.ledger.compacted_ledger()

    def is_trimmed_from(self, ledger_id: int) -> bool:
        return self._topic.ledger.is_trimmed_from(ledger_id)


class GuestSubscription(AttachedConsumer):
    """The consumer of a persistent topic: the owner says what is its own, and its ledgers are read
    here."""

    def __init__(self, topic: GuestTopic, request: SubscribeRequest) -> None:
        positions = CompactedView(topic.ledger) if request.read_compacted else topic.ledger
        super().__init__(request, positions, SubscriptionCore(None, topic.clock))
        self.topic: GuestTopic = topic
        self.durable: bool = request.durable
        self._connection = topic.connection
        self._id = self._connection.add_consumer(self)
        self._arguments: dict[str, Any] = {}  # with which the owner attaches it
        self._is_attached = False
        self.settler: Settler = Settler(self._connection)
        self.dispatcher: Any = GuestDispatcher(
            self._core,
            topic.consumer_tail,
            topic.ledger.tail,
            topic.name,
            topic.decompressed_size_max,
            self._connection.link,
            self._id,
            request.type_name,
            self.settler.settle,
            _CompactedSource(topic) if request.read_compacted else None,
        )
        self.dispatcher.transact_there = weakref.WeakMethod(self._acknowledge_in)
        self._connection.tell_of_runs(self._id, self.dispatcher)
        topic.members.add(self)
        if self._connection.is_lost:
            topic.bring(self)

    def attach(
        self, request: SubscribeRequest, make: Callable[[Any, Any], ConsumerCore]
    ) -> ConsumerCore:
        """Make the consumer. A refused one leaves no trace."""
        topic = self.topic
        consumer, receiver = self._make(topic, topic.consumer_tail, request, make)
        try:
            self._arguments = self._asked(request)
            answer = self._subscribe()
            if answer.get("is_gone"):
                raise TopicGone(detail=f"{topic.name}: it was deleted, or unloaded")
        except BaseException:
            consumer.shut()
            self._end(receiver)
            self._connection.leave_later(self._id)  # an owner that did not answer may attach it yet
            raise
        request.made_subscription = answer["made_subscription"]
        return consumer

    def _subscribe(self) -> dict[str, Any]:
        """The answer of the owner that has attached the consumer. Those of a dead owner's guests
        that go on are attached first."""
        deadline = Deadline(int(self._connection.timeout_seconds * 1000))
        while True:
            with self._lock:
                connection = self._connection
                arguments = {**self._arguments, "consumer_id": self._id}
            try:
                answer: dict[str, Any] = connection.perform("guest.subscribe", arguments)
            except errors.ConnectError:
                if not connection.is_lost:
                    raise
                self._await_resumption(connection)
                continue
            if not answer.get("is_early"):
                break
            if deadline.expired():
                raise errors.Timeout(
                    detail=f"subscribe to {self.topic.name}: the owner of the folder is new, and "
                    "waits for other processes that used it"
                )
            Event().wait(_LOOK_SECONDS)
        if "made_subscription" in answer:
            with self._lock:
                self._is_attached = True
                self._arguments["place"] = answer.get("place")  # for the next owner
                if connection is self._connection:
                    self.dispatcher.begin()
                    return answer
            # The owner left meanwhile, when it was not known yet that the consumer had been there.
            self.topic.bring(self)
        return answer

    def _asked(self, request: SubscribeRequest) -> dict[str, Any]:
        settings = request.settings
        return {
            "topic": self.topic.name,
            "subscription": request.subscription_name,
            "type": request.type.name,
            "durable": request.durable,
            "consumer_name": request.consumer_name,
            "start": list(self._found(request.start)),
            "read_compacted": request.read_compacted,
            "key_shared": _policy_fields(request.key_shared),
            "reads_any": bool(getattr(request.schema, "reads_any", False)),
            "goes_on": False,
            "subscription_properties": request.subscription_properties,
            "wants_events": request.type == ConsumerType.Failover,
            "settings": {
                "receiver_queue_size": settings.receiver_queue_size,
                "priority_level": settings.priority_level,
                "properties": settings.properties,
                "chunked_pending_max": settings.chunked_pending_max,
                "acks_oldest_chunked": settings.acks_oldest_chunked,
                "chunked_expiry_ms": settings.chunked_expiry_ms,
            },
        }

    def _ask(self, verb: str, **arguments: Any) -> Any:
        """Ask the owner; once more, where it left meanwhile, when the consumer is attached to the
        next one."""
        while True:
            connection = self._connection
            try:
                return connection.perform(verb, {"consumer_id": self._id, **arguments})
            except errors.ConnectError:
                if not connection.is_lost:
                    raise
            self._await_resumption(connection)

    def _acknowledge_in(
        self,
        transaction: BrokerTransaction,
        runs: list[tuple[int, int, int]] | None,
        ledger_id: int = 0,
        end: int = 0,
    ) -> None:
        """Acknowledge messages in a transaction; runs None: everything before one of a ledger.
        Raises what the owner refuses it with."""
        transaction.require_of(self.topic.broker)
        through = None if runs is not None else [ledger_id, end]
        try:
            self._ask("guest.acknowledge", number=transaction.number, runs=runs, through=through)
        except errors.PulsarException as error:
            transaction.fail(error)  # as where it collides in one process
            raise

    def _await_resumption(self, lost: Connection) -> None:
        """Timeout: no process became the owner in time."""
        deadline = Deadline(int(lost.timeout_seconds * 1000))
        while self._connection is lost:
            if self._open_consumer() is None:
                raise errors.AlreadyClosed(detail="consumer")
            if deadline.expired():
                raise errors.Timeout(detail=f"{self.topic.name}: {self.topic.unserved()}")
            Event().wait(_LOOK_SECONDS)

    # As of a Subscription -------------------------------------------------------------------------

    def seek(self, find: Callable[[], Position]) -> None:
        """Move to the position found. What had arrived does not come any more on return."""
        self._ask("guest.seek", position=list(self._found(find)))

    def _found(self, find: Callable[[], Position]) -> Position:
        """A position that was found in the ledgers there are."""
        broker = self.topic.broker
        broker.refresh()
        for _ in range(_LOOKS_MAX):
            number = broker.catalogue.state.number
            found = find()
            broker.refresh()
            if broker.catalogue.state.number == number:
                break  # else what was trimmed meanwhile may have been compacted before
        return found

    def require_last(self, _: EntrySink) -> None:
        """BrokerMetadataError: other consumers are attached, so this one may not unsubscribe."""
        self._ask("guest.require_last")

    def unsubscribe(self, receiver: EntrySink) -> None:
        """The consumer deletes the subscription. See require_last."""
        self._ask("guest.unsubscribe")
        self._shut()
        self._end(receiver)

    def take_back(self) -> None:
        """The subscription was made for the consumer, which was refused after all: the owner
        deletes it, unless another one uses it."""
        self._ask("guest.take_back", topic=self.topic.name, subscription=self.name)

    def detach(self, receiver: EntrySink) -> None:
        """The consumer is gone: what it did not acknowledge goes to the others, or the next one."""
        try:
            self._have_recorded()
        finally:
            self._end(receiver)
            self._leave()

    def _have_recorded(self) -> None:
        """Return when what was acknowledged is recorded, be it by the next owner. Timeout: there is
        none, or it does not answer."""
        connection = self._connection
        while self.durable and (left := self.dispatcher.unrecorded()):
            try:
                if connection is self._connection and self.dispatcher.is_attached:
                    connection.settle_to_leave()
                else:
                    self._record(connection.perform_to_leave, left)
                return
            except errors.ConnectError:
                if not connection.is_lost:
                    raise
            except errors.AlreadyClosed:
                return  # the client is closed: nobody waits for another owner
            connection = self.topic.connection

    def _record(
        self, perform: Callable[[str, dict[str, Any]], Any], left: list[tuple[int, ...]]
    ) -> None:
        """Have an owner record acknowledgements of a consumer that is not attached there."""
        names = {"topic": self.topic.name, "subscription": self.name}
        perform("guest.record", {**names, "acknowledgements": left})

    def _leave(self) -> None:
        try:
            self._connection.perform_to_leave("guest.leave", {"consumer_id": self._id})
        except (errors.AlreadyClosed, errors.ConnectError):
            pass  # it ended with its connection

    def _end(self, receiver: EntrySink) -> None:
        with self._lock:
            self._has_left = True
        self._connection.forget_consumer(self._id)
        super()._end(receiver)

    # By the thread that reads the connection ------------------------------------------------------

    def told(self, _: str, values: dict[str, Any], __: bytes) -> None:
        """A link frame came for the consumer."""
        kind, numbers = values["kind"], values["numbers"]
        if kind == owner_link.RUN:
            self.dispatcher.arrive(*numbers)
            self.dispatcher.settled()
        elif kind == owner_link.CHUNK:
            self.dispatcher.chunk(*numbers[:2])
        elif kind == owner_link.RESET:
            received, permits, rewinds, moved = numbers
            self.dispatcher.reset(received, _signed(permits), rewinds, bool(moved))
        elif kind == owner_link.ACTIVE:
            self.dispatcher.became(bool(numbers[0]))
        elif kind == owner_link.RECORDED:
            self.dispatcher.recorded(numbers[0])
        elif kind == owner_link.TTL:
            self._core.set_message_ttl(numbers[0])
        elif kind == owner_link.CLOSED:
            self._shut()

    def lost(self, _: Exception) -> None:
        """The connection has ended: `resume` or `end` follows."""

    # When owners change ---------------------------------------------------------------------------

    def resume(self, connection: Connection) -> None:
        """Attach the consumer at the next owner. What it was handed and has not acknowledged stays
        with it; the rest comes again. Raises what the owner answers."""
        if self._open_consumer() is None:
            # It may just be closing. The owner shall know what it had acknowledged before this
            # process has arrived: others get messages then.
            if self.durable and not self._has_left and (left := self.dispatcher.unrecorded()):
                self._record(connection.perform, left)
            return
        try:
            self._attach_again(connection)
        except BaseException as error:
            self._refused(connection, error)
            raise
        self._refusals.end()

    def _attach_again(self, connection: Connection) -> None:
        with self._lock:
            if self._connection is connection and self.dispatcher.is_attached:
                return
        number = connection.add_consumer(self)
        try:
            self._attach_as(number, connection)
        except BaseException:
            connection.forget_consumer(number)
            attempt(partial(connection.leave_later, number))  # it may be attached all the same
            raise

    def _attach_as(self, number: int, connection: Connection) -> None:
        with self._lock:
            self.settler.connection = connection
            self.dispatcher.resume(connection.link, number)
            connection.tell_of_runs(number, self.dispatcher)
            if not self._is_attached:  # the caller of `attach` goes on with that
                self._id, self._connection = number, connection
                return
            start = self.dispatcher.first_open()
            if start is not None:
                self._arguments["start"] = list(start)
        arguments = {**self._arguments, "consumer_id": number, "goes_on": True}
        answer = connection.perform("guest.subscribe", arguments)
        if answer.get("is_gone"):
            raise errors.TopicNotFound(detail=f"{self.topic.name}: it was deleted")
        with self._lock:
            self._arguments["place"] = answer.get("place")
            has_left = self._has_left
            if not has_left:
                self.dispatcher.begin()
            self._id, self._connection = number, connection
        if has_left:  # while it was attached: it told the owner before
            self._leave()

    def _give_up(self, connection: Connection) -> None:
        if left := self.dispatcher.unrecorded():
            attempt(partial(self._record, connection.perform, left))
        super()._give_up(connection)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >> 63 else number


def _policy_fields(policy: KeySharedPolicy | None) -> dict[str, Any] | None:
    if policy is None:
        return None
    sticky = policy.get_key_shared_mode() == KeySharedMode.Sticky
    return {
        "ranges": policy.get_sticky_ranges() if sticky else None,
        "out_of_order": policy.is_allow_out_of_order_delivery(),
    }
