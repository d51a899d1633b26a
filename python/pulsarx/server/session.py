"""One connection at the broker's end: commands become calls of the broker, and entries commands.

state    understands            left by
NEW      CONNECT                CONNECT, where it proves who the client is
OPEN     every other command    close, what breaks the protocol
CLOSED   nothing                -
"""

from __future__ import annotations

import threading
from functools import partial

from pulsarx import errors
from pulsarx._pycore.dispatch.connection_sink import ConnectionSink
from pulsarx._pycore.wire.hot_commands import message_encode, receipt_encode
from pulsarx.access.access import Access
from pulsarx.access.identity import Identity
from pulsarx.broker.ledgers.compacted_view import CompactedView
from pulsarx.broker.subscriptions.subscribe_request import ReceiverSettings, SubscribeRequest
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.topics.waiting_producer import WaitingProducer
from pulsarx.closing import attempt
from pulsarx.consuming.consumer_schema import ConsumerSchema
from pulsarx.enumerations import ConsumerType, KeySharedMode, ProducerAccessMode, SchemaType
from pulsarx.letters.letter_topic import subscribe_initially
from pulsarx.message_id import MessageId
from pulsarx.options.consumer_policies import ConsumerKeySharedPolicy
from pulsarx.producing.producer_schema import check_producer, version_bytes
from pulsarx.schema.auto_consume import AutoConsumeSchema
from pulsarx.server.guest_consumer import (
    GuestConsumer,
    attach_guest,
    record_acknowledgement,
)
from pulsarx.server.guest_watch import GuestWatch
from pulsarx.server.schema_answers import SchemaAnswers, declared_schema
from pulsarx.server.session_consumer import SessionConsumer, position_of
from pulsarx.server.session_producer import SessionProducer
from pulsarx.server.topic_answers import TopicAnswers, no_transactions
from pulsarx.server.topic_list_watch import TopicListWatches
from pulsarx.topic_name import TopicName, check_is_for_users, check_subscription_name
from pulsarx.wire import commands
from pulsarx.wire.frames import FrameReader, frame_encode, frame_size_max
from pulsarx.wire.message_ids import id_data
from pulsarx.wire.protobuf import WireError
from pulsarx.wire.schemas import schema_of
from pulsarx.wire.server_errors import CHECKSUM, NOT_ALLOWED, code_of, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from typing import Any, NoReturn, Protocol

    from pulsarx._pycore.dispatch.entry_sink import EntrySink
    from pulsarx._pycore.publish.completion_queue import CompletionQueue
    from pulsarx.broker.broker import Broker
    from pulsarx.broker.faces import SubscriptionHost
    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.broker.subscriptions.subscription import Subscription
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.broker.topics.topic import Topic
    from pulsarx.options.consumer_policies import KeySharedPolicy

    Values = dict[str, Any]
    Waiting = tuple[Values, AnyTopic, WaitingProducer, Callable[[str], SessionProducer]]

    class SessionHost(Protocol):
        """The server of a session, as the session sees it."""

        broker: Broker
        verbs: bool
        access: Access | None
        completions: CompletionQueue

        def seek(self, subscription: Subscription, find: Callable[[], Position]) -> None:
            """Move a subscription, and close its consumers."""

        def take_sought(self, session: Any, topic: str, subscription: str) -> Position | None:
            """The position to which a non-durable subscription was moved before a consumer of the
            session was closed for it."""

        def forget_session(self, session: Any) -> None: ...


SERVER_VERSION = "PulsarX"
GREETING_SIZE_MAX = 16 << 10  # bytes of a frame, until CONNECT has come
IN_FLIGHT_MAX = 16 << 20  # bytes of entries that are not answered yet, of all producers
# Of transactions, which are refused: what answers them.
_TRANSACTIONS = {
    "NEW_TXN": "NEW_TXN_RESPONSE",
    "ADD_PARTITION_TO_TXN": "ADD_PARTITION_TO_TXN_RESPONSE",
    "ADD_SUBSCRIPTION_TO_TXN": "ADD_SUBSCRIPTION_TO_TXN_RESPONSE",
    "END_TXN": "END_TXN_RESPONSE",
    "TC_CLIENT_CONNECT_REQUEST": "TC_CLIENT_CONNECT_RESPONSE",
}
READS_ANY = AutoConsumeSchema()
# Clients that do not know REACHED_END_OF_TOPIC: they connect anew, and would be told again.
_WITHOUT_ENDS = ("Pulsar-CPP", "Pulsar-Go", "PulsarX")
# Clients that give permits for messages that an ack set leaves out. That of Java did, up to 4.0.
_GIVE_FOR_LEFT_OUT = ("Pulsar-CPP", "Pulsar-Go", "PulsarX")
ACTIVITY_SINCE = 12  # version of the protocol that has ACTIVE_CONSUMER_CHANGE
_TYPES = {
    commands.EXCLUSIVE: ConsumerType.Exclusive,
    commands.SHARED: ConsumerType.Shared,
    commands.FAILOVER: ConsumerType.Failover,
    commands.KEY_SHARED: ConsumerType.KeyShared,
}


class Session:
    """The thread that reads the connection calls received, deliver and close, one at a time;
    other threads may call fall_behind and close_consumers_of."""

    def __init__(
        self,
        server: SessionHost,
        write: Callable[[bytes], object],
        wake: Callable[[], object],
        has_room: Callable[[], bool],
        service_url: str | None,
        is_guest: bool = False,
    ) -> None:
        """write: sends bytes, in any thread and in the order of the calls, without waiting. wake:
        has deliver called soon; in any thread and with mutexes held, so it may only enqueue.
        has_room: whether more is to be delivered; where it is not, wake is called when there is
        room. service_url: under which the client reaches this broker. is_guest: it is of this
        machine, and reads the ledgers of the folder itself."""
        self._server = server
        self._has_room = has_room
        self._service_url = service_url
        self.service_url_tls: str | None = None  # as service_url, for clients with TLS
        # The name in the client's certificate, which was verified; asked for by CONNECT.
        self.certificate_name: Callable[[], str | None] = lambda: None
        self._access = server.access
        self._identity: Identity | None = None  # where clients are asked who they are
        self.host = ""  # the client's address
        # The CONNECT of a client whose password is being checked, and what that says.
        self._proof: tuple[Values, Future[Identity]] | None = None
        self._method = ""  # by which it has proved who it is
        self._can_refresh = False  # the client answers an AUTH_CHALLENGE
        self._is_challenged = False
        self._permissions_changed = False
        self._broker = server.broker
        self._write = write
        self._wake = wake
        self._message_size_max = self._broker.runtime.options.max_message_size
        self._reader = FrameReader(self._message_size_max)
        self._reader.frame_size_max = GREETING_SIZE_MAX
        self._producers: dict[int, SessionProducer] = {}
        self._waiting: dict[int, Waiting] = {}
        self._consumers: dict[int, SessionConsumer | GuestConsumer] = {}
        self._watches: dict[int, GuestWatch] = {}  # of topics that a guest reads itself
        self._failed: dict[int, Exception] = {}  # why a consumer was closed, until it hears of it
        # Producers that the broker shut, and why they cannot come again, until they hear of it.
        self._shut: dict[int, Exception | None] = {}
        self._some_are_shut = False
        self._lock = threading.Lock()  # of the consumers' dict, and what is in flight
        self._in_flight = 0  # bytes of entries that are not answered
        self._client_version = ""
        self._closes_at_ends = False  # producers of terminated topics
        self._protocol_version = 0
        self._knows_ends = False  # it takes REACHED_END_OF_TOPIC
        self._listens_late = False  # it knows a consumer from its first FLOW on
        self.is_connected = False
        self.is_open = True
        self.is_lost = False  # its connection has ended, and close is called soon
        broker, tell, refuse, require = self._broker, self._tell, self._refuse, self._require
        topics = TopicAnswers(broker, tell, refuse, require, self._service_urls)
        schemas = SchemaAnswers(broker, tell, require)
        self._topic_lists = TopicListWatches(broker, tell, refuse, require, wake)
        self._handlers: dict[str, Callable[[Values], None]] = {
            "PRODUCER": self._producer,
            "CLOSE_PRODUCER": self._close_producer,
            "SUBSCRIBE": self._subscribe,
            "FLOW": self._flow,
            "ACK": self._acknowledge,
            "REDELIVER_UNACKNOWLEDGED": self._redeliver,
            "SEEK": self._seek,
            "GET_LAST_MESSAGE_ID": self._get_last_message_id,
            "UNSUBSCRIBE": self._unsubscribe,
            "CLOSE_CONSUMER": self._close_consumer,
            "LOOKUP": topics.lookup,
            "PARTITIONED_METADATA": topics.partitioned_metadata,
            "GET_TOPICS_OF_NAMESPACE": topics.topics_of_namespace,
            "WATCH_TOPIC_LIST": self._topic_lists.begin,
            "WATCH_TOPIC_LIST_CLOSE": self._topic_lists.end,
            "CONSUMER_STATS": self._consumer_stats,
            "GET_SCHEMA": schemas.get,
            "GET_OR_CREATE_SCHEMA": schemas.get_or_create,
            "VERB": self._verb,
            "AUTH_RESPONSE": self._auth_response,
            "PING": self._ping,
            "PONG": self._pong,
        }
        self._arrivals = self._broker.runtime.arrivals
        if is_guest:
            self._handlers["LINK"] = self._link
            self._guest_verbs: dict[str, Callable[[Values], Any]] = {
                "guest.subscribe": self._subscribe_guest,
                "guest.seek": self._seek_guest,
                "guest.require_last": self._require_last_guest,
                "guest.unsubscribe": self._unsubscribe_guest,
                "guest.leave": self._leave_guest,
                "guest.record": self._record_of_guest,
                "guest.take_back": self._take_back_guest,
                "guest.watch": self._watch_for_guest,
                "guest.unwatch": self._unwatch_for_guest,
                "guest.arrived": self._guest_has_arrived,
            }
        else:
            self._guest_verbs = {}

    # Bytes ----------------------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        """Do what came. WireError: it breaks the protocol; the session is closed, and so should the
        connection be."""
        try:
            for name, values, entry in self._reader.feed(data):
                self._do(name, values, entry)
                if self.is_proving:
                    return  # the rest is done after it
        except WireError:
            self.close()
            raise

    def _do(self, name: str, values: Values, entry: bytes) -> None:
        if not self.is_open:
            raise WireError(f"a {name} in a session that is closed")
        if not self.is_connected:
            if name != "CONNECT":
                raise WireError(f"a {name} before CONNECT")
            self._connect(values)
        elif name == "SEND":
            self._send(values, entry)
        elif name in self._handlers:
            self._handlers[name](values)
        elif name in _TRANSACTIONS:
            self._refuse_transaction(name, values)
        else:
            raise WireError(f"a {name}, which no client sends now")

    def _tell(self, name: str, entry: bytes | None = None, **values: Any) -> None:
        self._write(frame_encode(name, values, entry))

    def _answer(self, values: Values, act: Callable[[], object]) -> None:
        """Do what a request asks for; SUCCESS, or the ERROR it failed with."""
        try:
            act()
        except Exception as error:
            self._refuse(values, error)
        else:
            self._tell("SUCCESS", request_id=values["request_id"])

    def _refuse(self, values: Values, error: Exception) -> None:
        self._tell(
            "ERROR",
            request_id=values["request_id"],
            error=code_of(error),
            message=message_of(error),
        )

    def deliver(self) -> None:
        """Send what consumers have room for, to producers that it is their turn, and say which
        consumers and producers the broker closed."""
        if self._proof is not None and self._proof[1].done():
            self._take_proof()
        if self._permissions_changed:
            self._permissions_changed = False
            self._close_forbidden()
        if self._waiting:
            self._tell_turns()
        if self._some_are_shut:
            self._some_are_shut = False
            self._tell_shut()
        for producer in list(self._producers.values()):
            producer.go_on()
        for number, watch in list(self._watches.items()):
            if watch.is_due and self._has_room():
                self._write(watch.news())
                if watch.is_over:
                    self._watches.pop(number).close()
        self._topic_lists.deliver(self._has_room)
        for consumer_id, consumer in self._each_consumer():
            if consumer.to_close or not consumer.is_open:
                self._close_there(consumer_id, consumer)
                continue
            was_due = consumer.is_due
            if was_due:
                self._deliver_to(consumer_id, consumer)
            if isinstance(consumer, GuestConsumer):
                if receipt := consumer.receipt():
                    self._write(receipt)
                continue
            for is_active in consumer.activations(self._listens_late):
                self._tell("ACTIVE_CONSUMER_CHANGE", consumer_id=consumer_id, is_active=is_active)
            if was_due and self._knows_ends and consumer.has_just_ended():
                self._tell("REACHED_END_OF_TOPIC", consumer_id=consumer_id)

    def _deliver_to(self, consumer_id: int, consumer: SessionConsumer | GuestConsumer) -> None:
        try:
            if isinstance(consumer, GuestConsumer):
                if not self._arrivals.is_over:  # it is woken then
                    consumer.is_due = True
                    return
                for frames in consumer.deliveries(self._has_room):
                    self._write(frames)
                return
            for ledger_id, entry_id, entry, count, ack_set in consumer.deliveries(self._has_room):
                if ack_set is None:
                    ids = ledger_id, entry_id, consumer.partition
                    self._write(message_encode(consumer_id, *ids, count, consumer.epoch, entry))
                    continue
                place = id_data(MessageId(consumer.partition, ledger_id, entry_id))
                self._tell(
                    "MESSAGE",
                    entry,
                    consumer_id=consumer_id,
                    message_id=place,
                    redelivery_count=count or None,
                    ack_set=ack_set,
                    consumer_epoch=consumer.epoch or None,
                )
        except errors.AlreadyClosed:  # the broker shut it meanwhile
            self._close_there(consumer_id, consumer)
        except Exception as error:  # its ledger cannot be read
            # A consumer has no command for an error: it hears of it when it subscribes again.
            self._failed[consumer_id] = error
            self._close_there(consumer_id, consumer)

    # The connection -------------------------------------------------------------------------------

    def _connect(self, values: Values) -> None:
        if self._access is not None:
            if values["original_principal"]:
                error = errors.AuthenticationError("a proxy that speaks for others is not trusted")
                self._end_unproved(error)
            found = self._proved(values["auth_method_name"], values["auth_data"])
            if not isinstance(found, Identity):
                self._proof = values, found
                found.add_done_callback(lambda _: self._wake())
                return
            self._identity = found
            self._method = values["auth_method_name"]
            features = values["feature_flags"] or {}
            self._can_refresh = features.get("supports_auth_refresh", False)
        self._welcome(values)

    @property
    def is_proving(self) -> bool:
        """Whether it is being found out who the client is, before anything else is done; wake is
        called when it is known."""
        return self._proof is not None

    def _take_proof(self) -> None:
        assert self._proof is not None
        values, proof = self._proof
        self._proof = None
        try:
            self._identity = proof.result()
        except errors.AuthenticationError as error:
            self._end_unproved(error)
        self._method = values["auth_method_name"]
        self._welcome(values)
        self.received(b"")  # what came behind it

    def _welcome(self, values: Values) -> None:
        self.is_connected = True
        self._client_version = values["client_version"]
        self._knows_ends = not self._client_version.startswith(_WITHOUT_ENDS)
        self._closes_at_ends = not self._client_version.startswith("PulsarX")
        self._listens_late = self._client_version.startswith("Pulsar-Go")
        self._protocol_version = values["protocol_version"]
        self._reader.frame_size_max = frame_size_max(self._message_size_max)
        self._tell(
            "CONNECTED",
            server_version=SERVER_VERSION,
            protocol_version=min(max(values["protocol_version"], 0), commands.PROTOCOL_VERSION),
            max_message_size=self._message_size_max,
            feature_flags={
                "supports_topic_watchers": True,
                "supports_partitions_without_auto_creation": True,
            },
        )

    # Who the client is, and what it may do --------------------------------------------------------

    def _proved(self, method: str | None, data: bytes | None) -> Identity | Future[Identity]:
        assert self._access is not None
        name = self.certificate_name()
        try:
            return self._access.authenticate(method or "", data or b"", name, self.host)
        except (errors.AuthenticationError, errors.ServiceUnitNotReady) as error:
            self._end_unproved(error)

    def _end_unproved(self, error: errors.PulsarException) -> NoReturn:
        """Tell the client, and nothing of why; that is in the log."""
        self._tell(
            "ERROR",
            request_id=commands.FROM_BROKER,
            error=code_of(error),
            message="Failed to authenticate",
        )
        raise WireError(f"it was not authenticated: {errors.detail_of(error)}")

    def check_proof(self, now_ms: int) -> bool:
        """Whether the connection may go on: a client whose proof has expired is asked for another,
        and may go on until the next check. In any thread."""
        identity = self._identity
        if identity is None or identity.expires_ms is None or now_ms < identity.expires_ms:
            return True
        if not self._can_refresh or self._is_challenged:
            return False
        self._is_challenged = True
        self._tell(
            "AUTH_CHALLENGE",
            server_version=SERVER_VERSION,
            challenge={"method": self._method, "data": b"PulsarAuthRefresh"},
            protocol_version=commands.PROTOCOL_VERSION,
        )
        return True

    def _auth_response(self, values: Values) -> None:
        if self._access is None or not self._is_challenged:
            raise WireError("an AUTH_RESPONSE that was not asked for")
        response = values["response"] or {}
        if response.get("method") != self._method:
            error = errors.AuthenticationError("the client proves who it is in another way")
            self._end_unproved(error)
        found = self._proved(self._method, response.get("data"))
        if not isinstance(found, Identity) or (
            self._identity is not None and found.role != self._identity.role
        ):
            self._end_unproved(errors.AuthenticationError("the client has become another role"))
        self._identity = found
        self._is_challenged = False

    def _require(self, check: Callable[[Access, str, str], None], name: str) -> None:
        """AuthorizationError: the client may not do it with a topic, or in a namespace."""
        if self._access is not None and self._identity is not None:
            check(self._access, self._identity.role, name)

    def check_permissions(self) -> None:
        """Roles may do more or less than before: what the client may not have any more is closed.
        In any thread."""
        self._permissions_changed = True
        self._wake()

    def _close_forbidden(self) -> None:
        """They are refused when they come again, if they may not then."""
        for producer_id, producer in list(self._producers.items()):
            name = producer.topic.name
            error = attempt(partial(self._require, Access.require_produce, name))
            if isinstance(error, errors.AuthorizationError):
                self._shut_there(producer_id, producer, None)
        for producer_id, (values, topic, waiting, _) in list(self._waiting.items()):
            error = attempt(partial(self._require, Access.require_produce, topic.name))
            if isinstance(error, errors.AuthorizationError):
                del self._waiting[producer_id]
                topic.producers.withdraw(waiting)
                self._refuse(values, error)
        for consumer_id, consumer in self._each_consumer():
            error = attempt(
                partial(self._require, Access.require_consume, consumer.subscription.topic.name)
            )
            if isinstance(error, errors.AuthorizationError):
                self._close_there(consumer_id, consumer)
        self._topic_lists.close_forbidden()

    def _ping(self, _: Values) -> None:
        # Before the answer, so that it says: nothing else is there now.
        for _number, consumer in self._each_consumer():
            consumer.is_due = True
        self.deliver()
        self._tell("PONG")

    def _pong(self, _: Values) -> None:
        pass

    def ping(self) -> None:
        """Ask whether the client is there. In any thread."""
        self._tell("PING")

    @property
    def is_full(self) -> bool:
        """Whether so much is in flight that nothing more should be read. When it is not any more,
        wake is called."""
        return self._in_flight >= IN_FLIGHT_MAX

    def _fly(self, producer: SessionProducer, size: int) -> None:
        with self._lock:
            producer.in_flight += size
            self._in_flight += size

    def _land(self, producer: SessionProducer, size: int | None = None) -> None:
        """So much is answered; None: all that the producer will ever be answered. In any thread."""
        with self._lock:
            # A producer that has left has none.
            landed = producer.in_flight if size is None else min(size, producer.in_flight)
            was_full = self.is_full
            producer.in_flight -= landed
            self._in_flight -= landed
            frees = was_full and not self.is_full
        if frees:
            self._wake()

    def close(self) -> None:
        """The connection has ended: what it had is closed. Idempotent."""
        self.is_open = False
        with self._lock:
            consumers, self._consumers = list(self._consumers.values()), {}
        waiting, self._waiting = list(self._waiting.values()), {}
        producers, self._producers = list(self._producers.values()), {}
        self._shut.clear()
        watches, self._watches = list(self._watches.values()), {}
        leaving: list[Callable[[], object]] = [
            partial(topic.producers.withdraw, place) for _, topic, place, _make in waiting
        ]
        leaving.append(self._topic_lists.close)
        leaving += [each.close for each in producers]
        leaving += [each.close for each in watches]
        leaving += [each.leave for each in consumers]
        for step in leaving:
            error = attempt(step)
            if error is not None:
                import logging

                logging.getLogger("pulsarx").error(
                    "a session was closed: %s", errors.detail_of(error)
                )
        self._server.forget_session(self)

    # Topics ---------------------------------------------------------------------------------------

    def _service_urls(self) -> tuple[str | None, str | None]:
        return self._service_url, self.service_url_tls

    def _topic(self, name: str, create: bool = True) -> AnyTopic:
        return self._broker.topic(TopicName.of(name), create=create)

    def _kept_topic(self, name: str) -> Topic:
        """Of a guest, which reads the ledgers itself."""
        return self._topic(name, create=False).require_kept("use from another process")

    def _verb(self, values: Values) -> None:
        import json

        from pulsarx.broker.verbs.table import perform

        request_id = values["request_id"]
        try:
            if not self._server.verbs:
                raise errors.OperationNotSupported("verbs over this connection")
            verb, arguments = values["verb"], json.loads(values["arguments"])
            if verb in self._guest_verbs:
                result = self._guest_verbs[verb](arguments)
            else:
                result = perform(self._broker, verb, arguments)
            answer: Values = {"result": json.dumps(result, separators=(",", ":"))}
        except (ValueError, TypeError, RecursionError) as error:
            answer = {"error": "ValueError", "message": str(error)}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": message_of(error)}
            answer["attributes"] = json.dumps(errors.attributes_of(error))
        self._tell("VERB_RESPONSE", request_id=request_id, **answer)

    def _refuse_transaction(self, name: str, values: Values) -> None:
        error = no_transactions()
        ids = {key: values.get(key) for key in ("least", "most") if values.get(key) is not None}
        self._tell(
            _TRANSACTIONS[name],
            request_id=values["request_id"],
            error=code_of(error),
            message=message_of(error),
            **ids,
        )

    # Producers ------------------------------------------------------------------------------------

    def _producer(self, values: Values) -> None:
        producer_id = values["producer_id"]
        failure = self._shut.pop(producer_id, None)
        try:
            if failure is not None:
                raise failure
            if values["transactional"]:
                raise no_transactions()
            self._require(Access.require_produce, values["topic"])
            if values["initial_subscription"]:
                self._require(Access.require_consume, values["topic"])
            self._replace_producer(producer_id, values)
            check_is_for_users(TopicName.of(values["topic"]))
            mode = values["access_mode"]
            if mode not in ProducerAccessMode.__members__.values():
                raise errors.OperationNotSupported(f"access mode {mode} of a producer")
            check_producer(self._broker, values["topic"], declared_schema(values))
            topic = self._topic(values["topic"])
            topic.check_may_publish()
            # One of a topic that keeps nothing would have nothing, and go at once.
            if values["initial_subscription"] and topic.keeps_messages:
                name = check_subscription_name(values["initial_subscription"])
                subscribe_initially(self._broker, topic.name, name)

            def make(name: str) -> SessionProducer:
                made = SessionProducer(
                    topic, name, self._server.completions, self._producer_shut, self._wake
                )
                made.session, made.epoch = self, values["epoch"]
                made.described = {
                    "metadata": {each["key"]: each["value"] for each in values["metadata"]},
                    "client_version": self._client_version.replace(" ", "-"),
                }
                return made

            made = self._add_producer(topic, make, values)
        except Exception as error:
            self._refuse(values, error)
            return
        if isinstance(made, WaitingProducer):
            self._waiting[producer_id] = (values, topic, made, make)
            self._tell_producer(values, made.name, ready=False)
            made.watcher = self._wake
            self._wake()  # for what has changed meanwhile
        else:
            self._has_come(values, topic, made)

    def _replace_producer(self, producer_id: int, values: Values) -> None:
        """Close the producer that this one takes the place of. ProducerBusy: it does not."""
        old = self._producers.get(producer_id)
        is_same = (
            old is not None
            and old.name == values["producer_name"]
            and str(TopicName.of(values["topic"])) == old.topic.name
        )
        if old is not None and is_same and values["epoch"] > old.epoch:
            del self._producers[producer_id]
            old.close()
            self._land(old)
        elif old is not None or producer_id in self._waiting:
            raise errors.ProducerBusy(f"this connection has a producer {producer_id} already")

    def _add_producer(
        self, topic: AnyTopic, make: Callable[[str], SessionProducer], values: Values
    ) -> SessionProducer | WaitingProducer:
        name, mode = values["producer_name"] or None, values["access_mode"]

        def add() -> SessionProducer | WaitingProducer:
            found: SessionProducer | WaitingProducer = topic.producers.add(
                name, make, mode, epoch=values["topic_epoch"]
            )
            return found

        try:
            return add()
        except (errors.ProducerBusy, errors.ProducerFenced):
            # A client whose connection was cut may be back before that is noticed.
            old = topic.producers.by_name().get(name) if name else None
            if not isinstance(old, SessionProducer) or not _succeeds(values, old):
                raise
            attempt(old.close)
            return add()

    def _has_come(self, values: Values, topic: AnyTopic, made: SessionProducer) -> None:
        info, version = declared_schema(values), None
        if info is not None:
            try:
                version = self._broker.schemas.register_producer(topic.name, info)
            except Exception as error:
                made.close()
                self._refuse(values, error)
                return
        self._producers[values["producer_id"]] = made
        self._tell_producer(
            values,
            made.name,
            version=version,
            last_sequence_id=made.last_sequence_id(),
            topic_epoch=topic.producers.epoch if values["access_mode"] else None,
        )

    def _tell_producer(
        self,
        values: Values,
        name: str,
        *,
        ready: bool = True,
        version: int | None = None,
        last_sequence_id: int = -1,
        topic_epoch: int | None = None,
    ) -> None:
        self._tell(
            "PRODUCER_SUCCESS",
            request_id=values["request_id"],
            producer_name=name,
            last_sequence_id=last_sequence_id,
            schema_version=version_bytes(version) or b"",
            topic_epoch=topic_epoch,
            producer_ready=ready,
        )

    def _tell_turns(self) -> None:
        """Make the producers whose turn it is."""
        for producer_id, (values, topic, waiting, make) in list(self._waiting.items()):
            if waiting.is_waiting:
                continue
            del self._waiting[producer_id]
            try:
                made = topic.producers.promoted(waiting, make)
            except Exception as error:
                self._refuse(values, error)
            else:
                self._has_come(values, topic, made)

    def _producer_shut(self) -> None:
        """In any thread."""
        self._some_are_shut = True
        self._wake()

    def _tell_shut(self) -> None:
        """Say which producers the broker shut: what they send is not answered any more."""
        for producer_id, producer in list(self._producers.items()):
            if not producer.is_open:
                self._shut_there(producer_id, producer, _gone(producer.topic))

    def _shut_there(
        self, producer_id: int, producer: SessionProducer, why: Exception | None
    ) -> None:
        """Close a producer, and have its client make it again, which is refused with `why`."""
        del self._producers[producer_id]
        attempt(producer.close)
        self._land(producer)
        self._shut[producer_id] = why
        self._tell("CLOSE_PRODUCER", producer_id=producer_id, request_id=commands.FROM_BROKER)

    def _send(self, values: Values, entry: bytes) -> None:
        producer_id, sequence_id = values["producer_id"], values["sequence_id"]
        producer = self._producers.get(producer_id)
        if producer_id in self._shut:
            return  # it was sent before its client had heard of it
        if producer is None:
            raise WireError(f"a SEND of producer {producer_id}, which there is not")

        size = len(entry)

        def told(error: Exception | None, message_id: MessageId | None) -> None:
            self._land(producer, size)
            if error is None and message_id is not None:
                place = message_id.ledger_id(), message_id.entry_id(), message_id.partition()
                self._write(receipt_encode(producer_id, sequence_id, *place))
            elif isinstance(error, errors.TopicTerminated) and self._closes_at_ends:
                # As Pulsar: the client makes its producer again, is refused, and fails what it
                # sent. That of Go heeds nothing else.
                producer.is_open = False
                self._producer_shut()
            elif error is not None:
                code = self._code_of_refusal(producer, error)
                ids = {"producer_id": producer_id, "sequence_id": sequence_id}
                self._tell("SEND_ERROR", **ids, error=code, message=message_of(error))

        self._fly(producer, size)
        if values["transaction_most"] is not None:
            self._server.completions.jobs.post(lambda: told(no_transactions(), None))
        else:
            producer.publish(entry, told)

    def _code_of_refusal(self, producer: SessionProducer, error: Exception) -> int:
        """The code with which the client gives up one message, and goes on. Clients in C++ know one
        alone: for any other they connect anew and send the message again, for ever."""
        code = code_of(error)
        if code != NOT_ALLOWED or not self._client_version.startswith("Pulsar-CPP"):
            return code
        import logging

        logging.getLogger("pulsarx").warning(
            "a message of producer %s on %s was refused, which its client is told as a checksum "
            "error: %s",
            producer.name,
            producer.topic.name,
            errors.detail_of(error),
        )
        return CHECKSUM

    def _close_producer(self, values: Values) -> None:
        waiting = self._waiting.pop(values["producer_id"], None)
        if waiting is not None:
            waiting[1].producers.withdraw(waiting[2])
        self._shut.pop(values["producer_id"], None)
        producer = self._producers.pop(values["producer_id"], None)
        self._answer(values, producer.close if producer is not None else _nothing)
        if producer is not None:
            self._land(producer)

    # Consumers ------------------------------------------------------------------------------------

    def _each_consumer(self) -> list[tuple[int, SessionConsumer | GuestConsumer]]:
        with self._lock:
            return list(self._consumers.items())

    def _subscribe(self, values: Values) -> None:
        failure = self._failed.pop(values["consumer_id"], None)
        if failure is not None:
            self._refuse(values, failure)
            return
        try:
            consumer = self._attach(values)
        except Exception as error:
            self._refuse(values, error)
            return
        if consumer is not None:
            with self._lock:
                self._consumers[values["consumer_id"]] = consumer
            consumer.begin(values["consumer_epoch"], self._wake)
        self._tell("SUCCESS", request_id=values["request_id"])

    def _attach(self, values: Values) -> SessionConsumer | None:
        """The consumer that is asked for; None: it is there already."""
        consumer_id = values["consumer_id"]
        if consumer_id in self._consumers:
            return None
        self._require(Access.require_consume, values["topic"])
        check_is_for_users(TopicName.of(values["topic"]))
        info = schema_of(values["schema"])
        reads_any = info is not None and info.schema_type() == SchemaType.AUTO_CONSUME
        declared = None if reads_any else declared_schema(values)
        schema = ConsumerSchema(self._broker, [values["topic"]], declared)
        topic = self._topic(values["topic"], values["force_topic_creation"])
        kind = _TYPES.get(values["type"])
        if kind is None:
            raise errors.OperationNotSupported(f"subscription type {values['type']}")
        if values["read_compacted"] and values["type"] not in (
            commands.EXCLUSIVE,
            commands.FAILOVER,
        ):
            raise errors.NotAllowedError(
                "what compaction left is read by Exclusive and Failover subscriptions alone"
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
        )

        def make(sink: EntrySink, subscription: Subscription) -> SessionConsumer:
            assert isinstance(sink, ConnectionSink)
            sink.counts_left_out = self._client_version.startswith(_GIVE_FOR_LEFT_OUT)
            made = SessionConsumer(sink, subscription, topic.keeps_messages)
            if kind == ConsumerType.Failover and self._protocol_version >= ACTIVITY_SINCE:
                made.follow_activity(sink)
            return made

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
        """Where a new subscription begins."""
        if not topic.keeps_messages:
            return lambda: (0, 0)
        compacted, start = values["read_compacted"], values["start_message_id"]
        ledger = CompactedView(topic.ledger) if compacted else topic.ledger
        if not values["durable"]:
            # Before what the client says: that of Go says where it began, not where it went.
            sought = self._server.take_sought(self, topic.name, values["subscription"])
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
            raise errors.AlreadyClosed(f"consumer {values['consumer_id']} of this connection")
        return found

    def _flow(self, values: Values) -> None:
        consumer = self._consumers.get(values["consumer_id"])
        if isinstance(consumer, SessionConsumer) and consumer.is_open:
            # Shut by the broker meanwhile: the next deliver says so.
            attempt(lambda: consumer.flow(values["permits"]))
            consumer.has_flowed = True
            consumer.due()

    def _acknowledge(self, values: Values) -> None:
        failure: Values = {}
        try:
            if values["transaction_most"] is not None:
                raise no_transactions()
            consumer = self._consumer(values)
            places = values.get("places")
            if places is not None:
                consumer.acknowledge_entries(places)
            else:
                consumer.acknowledge_all(values["ack_type"], values["message_ids"])
        except Exception as error:
            failure = {"error": code_of(error), "message": message_of(error)}
        if values["request_id"] is not None:
            ids = {"consumer_id": values["consumer_id"], "request_id": values["request_id"]}
            self._tell("ACK_RESPONSE", **ids, **failure)

    def _redeliver(self, values: Values) -> None:
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

    def _seek(self, values: Values) -> None:
        def seek() -> None:
            consumer = self._consumer(values)
            target, time_ms = values["message_id"], values["publish_time"]
            if (target is None) == (time_ms is None):
                raise errors.NotAllowedError("a SEEK names a message id or a time")

            def find() -> Position:
                if target is not None:
                    return consumer.position_of(target)
                return consumer.ledger.position_at_time(min(time_ms, (1 << 63) - 1))

            consumer.has_sought = True
            if consumer.keeps_messages:
                self._server.seek(consumer.subscription, find)
            else:  # as Pulsar, which has nowhere to go; its client has thrown its queue away
                consumer.to_close = True
            self.deliver()  # the closing of its consumers goes before the answer

        self._answer(values, seek)

    def has_consumers_of(self, subscription: Subscription) -> bool:
        """Tell whether this connection has consumers of a subscription that begin anew when it is
        moved."""
        return bool(self._consumers_of(subscription))

    def fall_behind(self, subscription: Subscription, is_behind: bool) -> None:
        """The subscription is moved, or was not after all: whether its consumers acknowledge
        nothing any more."""
        for consumer in self._consumers_of(subscription):
            consumer.fall_behind(is_behind)

    def close_consumers_of(self, subscription: Subscription) -> None:
        """The subscription was moved: its consumers begin anew."""
        for consumer in self._consumers_of(subscription):
            consumer.to_close = True
            consumer.fall_behind(True)
        self._wake()

    def _consumers_of(self, subscription: Subscription) -> list[SessionConsumer]:
        """Those that begin anew when it is moved. Guests go on."""
        return [
            each
            for _, each in self._each_consumer()
            if each.subscription is subscription and isinstance(each, SessionConsumer)
        ]

    def _close_there(self, consumer_id: int, consumer: SessionConsumer | GuestConsumer) -> None:
        """Have the client subscribe again: the broker closed the consumer. A topic that was deleted
        is not made anew by that: it is refused, once."""
        with self._lock:
            self._consumers.pop(consumer_id, None)
        gone = _gone(consumer.subscription.topic)
        if gone is not None:
            self._failed.setdefault(consumer_id, gone)
        error = attempt(consumer.leave)
        if error is not None:
            import logging

            logging.getLogger("pulsarx").error("a consumer was closed: %s", errors.detail_of(error))
        if isinstance(consumer, GuestConsumer):
            # Where the whole broker closes, its guests see the connection end, and go on elsewhere.
            if self._broker.state.is_open:
                self._write(consumer.farewell())
            return
        # The URLs spare a client a pause of 100 ms, and a LOOKUP. One in C++ that sought needs the
        # pause: the thread that called seek may see the answer late, and then empties the queue,
        # into which messages come as soon as the consumer is there again.
        at_once = consumer.to_close and not consumer.has_sought
        self._tell(
            "CLOSE_CONSUMER",
            consumer_id=consumer_id,
            request_id=commands.FROM_BROKER,
            service_url=self._service_url if at_once else None,
            service_url_tls=self.service_url_tls if at_once else None,
        )

    def _get_last_message_id(self, values: Values) -> None:
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

    def _consumer_stats(self, values: Values) -> None:
        try:
            answer = self._consumer(values).statistics()
        except Exception as error:
            answer = {"error": code_of(error), "message": message_of(error)}
        self._tell("CONSUMER_STATS_RESPONSE", request_id=values["request_id"], **answer)

    def _unsubscribe(self, values: Values) -> None:
        def unsubscribe() -> None:
            consumer = self._consumer(values)
            consumer.subscription.unsubscribe(consumer.receiver)
            self._drop_consumer(values["consumer_id"])

        self._answer(values, unsubscribe)

    def _close_consumer(self, values: Values) -> None:
        self._answer(values, lambda: self._drop_consumer(values["consumer_id"]))

    def _drop_consumer(self, consumer_id: int) -> None:
        self._failed.pop(consumer_id, None)
        with self._lock:
            consumer = self._consumers.pop(consumer_id, None)
        if consumer is not None:
            consumer.leave()

    # Consumers of guests --------------------------------------------------------------------------

    def _guest(self, arguments: Values) -> GuestConsumer:
        found = self._consumers.get(arguments["consumer_id"])
        if not isinstance(found, GuestConsumer) or not found.is_open:
            raise errors.AlreadyClosed("the consumer was closed")
        return found

    def _link(self, values: Values) -> None:
        consumer = self._consumers.get(values["consumer_id"])
        if isinstance(consumer, GuestConsumer) and consumer.is_open:
            consumer.told(values["kind"], values["numbers"])

    def _subscribe_guest(self, arguments: Values) -> Any:
        consumer_id = arguments["consumer_id"]
        if not (arguments["goes_on"] or self._arrivals.is_over):
            self._arrivals.look()
            return {"is_early": True}  # first those that were there
        topic = self._kept_topic(arguments["topic"])
        try:
            consumer, made_subscription = attach_guest(topic, arguments)
        except TopicGone:
            return {"is_gone": True}
        with self._lock:
            self._consumers[consumer_id] = consumer
        consumer.open_to(consumer_id, self._wake)
        if not self._arrivals.is_over:
            self._arrivals.tell(self._wake)
        return {"made_subscription": made_subscription}

    def _seek_guest(self, arguments: Values) -> None:
        ledger_id, ordinal = arguments["position"]
        self._server.seek(self._guest(arguments).subscription, lambda: (ledger_id, ordinal))
        self.deliver()  # what it is told of it goes before the answer

    def _require_last_guest(self, arguments: Values) -> None:
        consumer = self._guest(arguments)
        consumer.subscription.require_last(consumer.receiver)

    def _unsubscribe_guest(self, arguments: Values) -> None:
        consumer = self._guest(arguments)
        consumer.subscription.unsubscribe(consumer.receiver)
        self._drop_consumer(arguments["consumer_id"])

    def _leave_guest(self, arguments: Values) -> None:
        self._drop_consumer(arguments["consumer_id"])

    def _record_of_guest(self, arguments: Values) -> None:
        """Record what a consumer acknowledged that is not attached any more."""
        topic = self._kept_topic(arguments["topic"])
        subscription = topic.subscriptions.get(arguments["subscription"])
        if subscription is not None:
            for each in arguments["acknowledgements"]:
                record_acknowledgement(subscription, *each)

    def _watch_for_guest(self, arguments: Values) -> None:
        topic = self._kept_topic(arguments["topic"])
        number = arguments["number"]
        self._watches[number] = GuestWatch(topic, number, self._wake)
        self._wake()

    def _unwatch_for_guest(self, arguments: Values) -> None:
        watch = self._watches.pop(arguments["number"], None)
        if watch is not None:
            watch.close()

    def _guest_has_arrived(self, arguments: Values) -> None:
        """A process that was a guest of the last owner has brought all it had there."""
        self._arrivals.has_arrived(arguments["pid"])

    def _take_back_guest(self, arguments: Values) -> None:
        topic = self._kept_topic(arguments["topic"])
        subscription = topic.subscriptions.get(arguments["subscription"])
        if subscription is not None:
            topic.take_back(subscription)


def _policy_of(meta: Values | None) -> KeySharedPolicy | None:
    if meta is None:
        return None
    sticky = meta["mode"] == commands.STICKY
    ranges = [(each["start"], each["end"]) for each in meta["ranges"]] if sticky else None
    mode = KeySharedMode.Sticky if sticky else KeySharedMode.AutoSplit
    try:
        return ConsumerKeySharedPolicy(mode, meta["allow_out_of_order"], ranges).policy()
    except (ValueError, TypeError) as error:
        raise errors.InvalidConfiguration(str(error)) from error


def _gone(topic: SubscriptionHost) -> Exception | None:
    """TopicNotFound, where the topic was deleted."""
    return errors.TopicNotFound(f"{topic.name}: it was deleted") if topic.is_gone else None


def _nothing() -> None:
    pass


def _succeeds(values: Values, old: SessionProducer) -> bool:
    """Whether a producer of the same name is the same one, come again. A generated name is known to
    its producer alone."""
    return old.session.is_lost or (not values["user_provided_name"] and values["epoch"] > old.epoch)
