"""A consumer in another process of the machine, which reads the ledgers itself, as the broker sees
it."""

from __future__ import annotations

import logging
from collections import deque

from pulsarx import errors
from pulsarx._pycore.consume.position_consumer import PositionConsumer
from pulsarx._pycore.dispatch.position_sink import PositionSink, SinkEvents
from pulsarx._pycore.ground import owner_link
from pulsarx.broker.subscriptions.subscribe_request import ReceiverSettings, SubscribeRequest
from pulsarx.enumerations import ConsumerType, KeySharedMode
from pulsarx.options.consumer_policies import ConsumerKeySharedPolicy
from pulsarx.schema.auto_consume import AutoConsumeSchema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx._pycore.ground.owner_link import OwnerLink
    from pulsarx.broker.ledgers.ledger_list import LedgerList, Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.options.consumer_policies import KeySharedPolicy
    from pulsarx.sessions.context import SessionContext

_AGAIN_MS = 1000  # between two tries to record an acknowledgement
_READS_ANY = AutoConsumeSchema()
_RECORDED_KINDS = (owner_link.ACKNOWLEDGE, owner_link.ACKNOWLEDGE_THROUGH, owner_link.EXPIRED)
_log = logging.getLogger("pulsarx")


class GuestConsumer(PositionConsumer):
    """One consumer of one topic. Calls of its session alone."""

    to_close = False

    def __init__(self, sink: EntrySink, subscription: Subscription) -> None:
        super().__init__(sink, subscription.host)
        self.consumer_name: Any = sink.consumer_name
        self.subscription = subscription
        self._arrivals = subscription.runtime.arrivals
        self._is_to_record = False
        self._acts: dict[int, Callable[..., object]] = {
            owner_link.ACKNOWLEDGE: lambda a, b, c, _: self.acknowledge_run(a, b, c),
            owner_link.ACKNOWLEDGE_THROUGH: lambda a, b, _, __: self.acknowledge_before(a, b),
            owner_link.EXPIRED: lambda a, b, c, _: self.expire_run(a, b, c),
            owner_link.NACK: self.refuse_run,
            owner_link.GIVE_BACK: lambda a, b, c, _: self.take_back(a, b, c),
            owner_link.FLOW: lambda a, _, __, ___: self.flow(a),
            owner_link.REWIND: self.rewind,
            owner_link.RESET_DONE: lambda a, _, __, ___: self.let_go(a),
        }
        # Those that could not be recorded, and what came behind them: it is tried again.
        self._unrecorded: deque[tuple[int, tuple[int, int, int, int]]] = deque()

    def open_to(
        self,
        consumer_id: int,
        wake: Callable[[], object],
        write: Callable[[bytes], object],
        link: OwnerLink | None,
    ) -> None:
        """Call wake() whenever there may be something to send by write(). consumer_id: as its
        process knows it. link: what sends by itself, once it is let; None: there is none."""
        self.begin(consumer_id, wake, write, link)

    def send_due(self, consumer_id: int, context: SessionContext) -> None:
        """See AnyConsumer. Nothing, until all guests of the last owner have come: it is woken
        then."""
        if not self._arrivals.is_over:
            self.is_due = True
            return
        self.send_by_link()
        self.deliver(context.has_room)

    def tell_news(self, consumer_id: int, context: SessionContext, was_due: bool) -> None:
        """See AnyConsumer: that what it acknowledged is recorded."""
        if receipt := self.receipt():
            context.write(receipt)

    def end_deliveries(self) -> None:
        """See AnyConsumer."""
        self.end()

    def close_quietly(self, consumer_id: int, context: SessionContext) -> None:
        """See AnyConsumer. Where the whole broker closes, its guests see the connection end, and go
        on elsewhere."""
        if context.broker.state.is_open:
            context.write(owner_link.frame(owner_link.CLOSED, consumer_id))

    def deliver(self, has_room: Callable[[], bool]) -> None:
        """Send the frames that there are to send, as far as permits go and has_room says."""
        self.is_due = False
        if self._is_to_record:
            self._is_to_record = False
            self._record()
        while self.is_open:
            if not has_room():
                self.is_due: bool = True
                return
            if not self.send_positions():
                return

    def told(self, kind: int, numbers: tuple[int, int, int, int]) -> None:
        """Do what a frame asks for. What cannot be done is in the log: nobody waits for it."""
        if kind in _RECORDED_KINDS:
            self._unrecorded.append((kind, numbers))
            self.has_unrecorded = True
            if len(self._unrecorded) == 1:
                self._record()
            self.due()  # so that its process hears that they are recorded
            return
        try:
            self._acts[kind](*numbers)
        except errors.AlreadyClosed:
            return  # the next deliver says so
        except Exception as error:
            self._log_failure(error)
        self.due()

    def _log_failure(self, error: Exception) -> None:
        _log.error(
            "consumer %s of subscription %s of %s in another process: %s",
            self.consumer_name,
            self.subscription.name,
            self.subscription.topic.name,
            errors.detail_of(error),
        )

    def _record(self) -> None:
        """Record what was acknowledged, in order. Where the disk is full that stays, and is tried
        again; its process keeps it, too."""
        self.is_recording: bool = True
        try:
            self._record_some()
        finally:
            self.is_recording = False

    def _record_some(self) -> None:
        while self._unrecorded:
            kind, numbers = self._unrecorded[0]
            try:
                self._acts[kind](*numbers)
            except errors.AlreadyClosed:
                return
            except errors.StorageError as error:
                self._log_failure(error)
                self.subscription.runtime.clock.call_after(_AGAIN_MS, self._record_again)
                return
            except Exception as error:
                self._log_failure(error)
            self._unrecorded.popleft()
            self.recorded: int = self.recorded + 1
        self.has_unrecorded: bool = False

    def _record_again(self) -> None:
        """In the clock's thread."""
        self._is_to_record = True
        self.due()

    def leave(self) -> None:
        """Detach: messages that are not acknowledged go to the next consumer."""
        self.end()
        self._record()
        if self.shut():
            self.subscription.detach(self.receiver)


def attach_guest(
    topic: Topic, arguments: dict[str, Any], place: int | None
) -> tuple[GuestConsumer, dict[str, Any]]:
    """The consumer that is asked for, and what its process is told: whether the subscription was
    made for it, and its place there. place: that it had at the last owner."""
    settings = arguments["settings"]
    ledger_id, ordinal = arguments["start"]
    position = (ledger_id, ordinal)
    request = SubscribeRequest(
        arguments["subscription"],
        getattr(ConsumerType, arguments["type"]),
        _READS_ANY if arguments["reads_any"] else None,
        arguments["consumer_name"],
        lambda: place_now(topic.ledger, position, arguments["read_compacted"]),
        ReceiverSettings(
            receiver_queue_size=settings["receiver_queue_size"],
            priority_level=settings["priority_level"],
            properties=settings["properties"],
            chunked_pending_max=settings["chunked_pending_max"],
            acks_oldest_chunked=settings["acks_oldest_chunked"],
            chunked_expiry_ms=settings["chunked_expiry_ms"],
        ),
        durable=arguments["durable"],
        key_shared=_policy_of(arguments["key_shared"]),
        sink=PositionSink,
        read_compacted=arguments["read_compacted"],
        place=place,
        subscription_properties=arguments.get("subscription_properties"),  # not from older ones
        takes_any_selector=arguments["goes_on"],
    )

    def make(sink: EntrySink, subscription: Subscription) -> GuestConsumer:
        made = GuestConsumer(sink, subscription)
        if arguments["wants_events"]:
            sink.set_events(SinkEvents(), 0)
        return made

    found = topic.subscribe(request, make)
    assert isinstance(found, GuestConsumer)
    return found, {"made_subscription": request.made_subscription, "place": request.place}


def place_now(ledgers: LedgerList, position: Position, read_compacted: bool) -> Position:
    """The present place of a position that another process has found in the ledgers of a topic,
    some of which may be gone since. With the topic's lock."""
    if read_compacted and ledgers.compaction() is not None:
        return position  # it may be of a ledger of which only survivors are left
    return ledgers.still_there(position)


def record_acknowledgement(
    subscription: Subscription, kind: int, ledger_id: int, first: int, count: int
) -> None:
    """Acknowledge what a frame of a consumer did that has left: kind and numbers of it."""
    if kind == owner_link.ACKNOWLEDGE_THROUGH:
        subscription.acknowledge_before((ledger_id, first))
        return
    for message in range(first, first + count):
        subscription.dispatcher.acknowledge_message(ledger_id, message)


def _policy_of(given: dict[str, Any] | None) -> KeySharedPolicy | None:
    if given is None:
        return None
    mode = KeySharedMode.Sticky if given["ranges"] is not None else KeySharedMode.AutoSplit
    ranges = None if given["ranges"] is None else [tuple(each) for each in given["ranges"]]
    return ConsumerKeySharedPolicy(mode, given["out_of_order"], ranges).policy()
