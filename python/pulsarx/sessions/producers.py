"""The producers at the other end of a connection: made, fed, and closed."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground import owner_link
from pulsarx._pycore.ground.due_ids import DueIds
from pulsarx._pycore.publish.entry_answers import EntriesInFlight
from pulsarx.access.access import Access
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.topics.waiting_producer import WaitingProducer
from pulsarx.broker.transactions.served_transaction import ServedTransaction
from pulsarx.enumerations import ProducerAccessMode
from pulsarx.ground.attempt import attempt
from pulsarx.letters.letter_topic import subscribe_initially
from pulsarx.message_id import MessageId
from pulsarx.producing.producer_schema import check_producer, version_bytes
from pulsarx.sessions.client_proof import subscribing
from pulsarx.sessions.context import error_of_gone
from pulsarx.sessions.producer import SessionProducer
from pulsarx.sessions.schema_answers import declared_schema
from pulsarx.topic_name import (
    TopicName,
    check_is_for_users,
    check_member_name,
    check_subscription_name,
)
from pulsarx.wire import commands
from pulsarx.wire.message_ids import ack_set_of, id_data
from pulsarx.wire.protobuf import WireError
from pulsarx.wire.server_errors import CHECKSUM, NOT_ALLOWED, code_of, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.ledger.open_transactions import TransactionCore
    from pulsarx._pycore.wire.command_takers import SendTaker
    from pulsarx.broker.topics.any_topic import AnyTopic
    from pulsarx.sessions.context import SessionContext
    from pulsarx.sessions.topic_answers import Require

    Values = dict[str, Any]
    Waiting = tuple[Values, AnyTopic, WaitingProducer, Callable[[str], SessionProducer]]

IN_FLIGHT_MAX = 16 << 20  # bytes of entries that are not answered yet, of all producers


class SessionProducers:
    """Calls of one session alone."""

    def __init__(
        self,
        context: SessionContext,
        require: Require,
        sends: dict[int, Callable[[int, bytes], object] | SendTaker],
        transaction_of: Callable[[Values], ServedTransaction | None],
        are_guests: bool,
    ) -> None:
        """require: as ClientProof has it. sends: what is told of a SEND in its everyday form; see
        FrameCutter. transaction_of: see SessionTransactions. are_guests: they are of another
        process of this machine, which shares the folder."""
        self._sends = sends
        # Of a SEND; None: it is of none. A guest's are others.
        self.transaction_of: Callable[[Values], TransactionCore | None] = transaction_of
        self._are_guests = are_guests
        self._context = context
        self._broker, self._server = context.broker, context.server
        self._write, self._wake = context.write, context.wake
        self._tell, self._answer, self._refuse = context.tell, context.answer, context.refuse
        self._require = require
        self._producers: dict[int, SessionProducer] = {}
        self._waiting: dict[int, Waiting] = {}
        # Producers that the broker shut, and why they cannot come again, until they hear of it.
        self._shut: dict[int, Exception | None] = {}
        # Whom a publish rate lets go on, whom the broker shut, and whose turn may have come.
        self._late, self._closed = DueIds(self._wake), DueIds(self._wake)
        self._turns = DueIds(self._wake)
        # More is not to be read while it is full. When it is not any more, wake is called.
        self.in_flight: EntriesInFlight = EntriesInFlight(IN_FLIGHT_MAX, self._wake)

    def deliver(self) -> None:
        """Tell producers that it is their turn, say which the broker shut, and publish what waited
        for a publish rate."""
        if self._turns.are_any:
            self._tell_turns()
        if self._closed.are_any:
            self._tell_shut()
        if not self._late.are_any:
            return
        for producer_id in self._late.take(self._producers):
            producer = self._producers.get(producer_id)
            if producer is not None:
                producer.go_on()

    def close_forbidden(self) -> None:
        """Close those that may not publish any more. They are refused when they come again."""
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

    def give_up_places(self) -> list[Callable[[], object]]:
        """The steps after which none of them waits for its turn any more."""
        steps = self._withdrawals()
        self._waiting = {}
        return steps

    def _withdrawals(self) -> list[Callable[[], object]]:
        waiting = self._waiting.values()
        return [partial(topic.producers.withdraw, place) for _, topic, place, _make in waiting]

    def leave(self) -> list[Callable[[], object]]:
        """The steps that close them all, each to be taken though one before it fails."""
        steps = self._withdrawals()
        steps += [each.close for each in self._producers.values()]
        # Behind what may have no memory: it can be called again.
        self._waiting, self._producers = {}, {}
        self._sends.clear()
        self._shut.clear()
        return steps

    def begin(self, values: Values) -> None:
        producer_id = values["producer_id"]
        failure = self._shut.pop(producer_id, None)
        try:
            if failure is not None:
                raise failure
            check_member_name("producer", values["producer_name"] or "")
            self._require(Access.require_produce, values["topic"])
            if values["initial_subscription"]:
                check = subscribing(values["initial_subscription"])
                self._require(check, values["topic"])
            name = TopicName.of(values["topic"])
            self._replace_producer(producer_id, name, values)
            check_is_for_users(name)
            mode = values["access_mode"]
            if mode not in ProducerAccessMode.__members__.values():
                raise errors.OperationNotSupported(detail=f"access mode {mode} of a producer")
            check_producer(self._broker, name, declared_schema(values))
            with self._broker.topics.taking_back():
                self._make(name, values)
        except Exception as error:
            self._refuse(values, error)

    def _make(self, name: TopicName, values: Values) -> None:
        """Make a producer, or let it wait for its turn."""
        while True:
            topic = self._context.topic(name)
            try:
                self._make_on(topic, values)
                return
            except TopicGone:
                continue  # it was unloaded just after it was found

    def _make_on(self, topic: AnyTopic, values: Values) -> None:
        """TopicGone: the topic was deleted, or unloaded."""
        producer_id = values["producer_id"]
        topic.check_may_publish()

        def make(name: str) -> SessionProducer:
            tell = partial(self._tell_sequence, producer_id) if self._are_guests else None
            made = SessionProducer(
                topic,
                name,
                self._server.completions,
                self,
                tell,
            )
            made.context, made.epoch = self._context, values["epoch"]
            made.answer_over(self.in_flight, producer_id, self._context.output)
            if self._are_guests:
                made.publisher.came_over = self._context.link
                made.tell_fenced = partial(self._tell_fenced, producer_id)
                made.went_on_from(values["published_sequence_id"])
            made.described = {
                "metadata": {each["key"]: each["value"] for each in values["metadata"]},
                "client_version": self._context.client_version.replace(" ", "-"),
            }
            return made

        made = self._add_producer(topic, make, values)
        try:
            # Before anything is published. One of a topic that keeps nothing would have nothing,
            # and go at once.
            if values["initial_subscription"] and topic.keeps_messages:
                name = check_subscription_name(values["initial_subscription"])
                subscribe_initially(self._broker, topic.name, name)
        except BaseException:
            if isinstance(made, WaitingProducer):
                topic.producers.withdraw(made)
            else:
                attempt(made.close)
            raise
        if isinstance(made, WaitingProducer):
            self._waiting[producer_id] = (values, topic, made, make)
            self._tell_producer(values, made.name, ready=False)
            made.watcher = self._turns.marking(producer_id)
            made.watcher()  # for what has changed meanwhile
        else:
            self._has_come(values, topic, made)

    def _replace_producer(self, producer_id: int, name: TopicName, values: Values) -> None:
        """Close the producer that this one takes the place of. ProducerBusy: it does not."""
        old = self._producers.get(producer_id)
        is_same = (
            old is not None and old.name == values["producer_name"] and name.full == old.topic.name
        )
        if old is not None and is_same and values["epoch"] > old.epoch:
            del self._producers[producer_id], self._sends[producer_id]
            old.close()
            old.give_up_answers()
        elif old is not None or producer_id in self._waiting:
            raise errors.ProducerBusy(
                detail=f"this connection has a producer {producer_id} already"
            )

    def _add_producer(
        self, topic: AnyTopic, make: Callable[[str], SessionProducer], values: Values
    ) -> SessionProducer | WaitingProducer:
        name, mode = values["producer_name"] or None, values["access_mode"]

        def add() -> SessionProducer | WaitingProducer:
            named = self._producers.values() if name else ()  # a new name has nothing kept
            kept_for = (each for each in named if each.name == name)
            found: SessionProducer | WaitingProducer = topic.producers.add(
                name,
                make,
                mode,
                epoch=values["topic_epoch"],
                owner=next(filter(topic.producers.is_kept_for, kept_for), None),
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
        """Raises what refuses its schema; then it was closed."""
        info, version = declared_schema(values), None
        if info is not None:
            try:
                version = self._broker.schemas.register_producer(topic.topic_name, info)
            except BaseException:
                attempt(made.close)
                raise
        self._producers[values["producer_id"]] = made
        sequence_id = made.known_sequence_id()
        if self._are_guests and not made.tells_duplicates:
            sequence_id = owner_link.NOT_DEDUPLICATED
        self._sends[values["producer_id"]] = made.take if self._are_guests else made
        self._tell_producer(
            values,
            made.name,
            version=version,
            last_sequence_id=sequence_id,
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
        for producer_id in self._turns.take(self._waiting):
            found = self._waiting.get(producer_id)
            if found is None or found[2].is_waiting:
                continue
            values, topic, waiting, make = self._waiting.pop(producer_id)
            try:
                self._has_come(values, topic, topic.producers.promoted(waiting, make))
            except Exception as error:
                self._refuse(values, error)

    def _tell_shut(self) -> None:
        """Say which producers the broker shut: what they send is not answered any more."""
        for producer_id in self._closed.take(self._producers):
            producer = self._producers.get(producer_id)
            if producer is not None and not producer.is_open:
                self._shut_there(producer_id, producer, error_of_gone(producer.topic))

    def _shut_there(
        self, producer_id: int, producer: SessionProducer, why: Exception | None
    ) -> None:
        """Close a producer, and have its client make it again, which is refused with `why`."""
        del self._producers[producer_id], self._sends[producer_id]
        attempt(producer.close)
        producer.give_up_answers()
        self._shut[producer_id] = why
        self._tell("CLOSE_PRODUCER", producer_id=producer_id, request_id=commands.FROM_BROKER)

    def send(self, values: Values, entry: bytes) -> None:
        producer_id, sequence_id = values["producer_id"], values["sequence_id"]
        producer = self._producers.get(producer_id)
        if producer_id in self._shut:
            return  # it was sent before its client had heard of it
        if producer is None:
            raise WireError(f"SEND for unknown producer {producer_id}")
        answer = producer.begin_answer(sequence_id, len(entry))
        try:
            # Its ids say whose it is, whatever its metadata say: Go's are without, or another's.
            transaction = self.transaction_of(values)
            if isinstance(transaction, ServedTransaction):
                entry = transaction.joining_entry(producer.topic.name, entry)
        except Exception as error:
            producer.refuse(answer, error)
        else:
            producer.publish_next(entry, answer, transaction)

    def tell_otherwise(
        self,
        producer: SessionProducer,
        sequence_id: int,
        error: Exception | None,
        message_id: MessageId | None,
        kept: list[int] | None,
    ) -> None:
        """See ProducerSession."""
        ids: Values = {"producer_id": producer.producer_id, "sequence_id": sequence_id}
        if message_id is not None:
            place = message_id.partition(), message_id.ledger_id(), message_id.entry_id()
            was_new = ack_set_of(kept) if kept and self._context.knows_kept else None
            self._tell("SEND_RECEIPT", **ids, message_id=id_data(MessageId(*place), was_new))
        elif isinstance(error, errors.TopicTerminated) and self._context.closes_at_ends:
            # As Pulsar: the client makes its producer again, is refused, and fails what it
            # sent. That of Go heeds nothing else.
            producer.is_open = False
            self.was_shut(producer)
        elif error is not None:
            code = self._code_of_refusal(producer, error)
            self._tell("SEND_ERROR", **ids, error=code, message=message_of(error))

    def was_shut(self, producer: SessionProducer) -> None:
        """See ProducerSession."""
        self._closed.mark(producer.producer_id)

    def is_late(self, producer: SessionProducer) -> None:
        """See ProducerSession."""
        self._late.mark(producer.producer_id)

    def _tell_sequence(self, producer_id: int, sequence_id: int) -> None:
        """In any thread."""
        self._write(owner_link.frame(owner_link.SEQUENCE, producer_id, sequence_id + 1))

    def _tell_fenced(self, producer_id: int, error: Exception) -> None:
        """In any thread."""
        self._tell(
            "CLOSE_PRODUCER",
            producer_id=producer_id,
            request_id=commands.FROM_BROKER,
            fenced_as=code_of(error),
            fenced_by=message_of(error),
        )

    def sequence_noted(self, producer_id: int) -> None:
        """A guest has taken note of what it was told so."""
        producer = self._producers.get(producer_id)
        if producer is not None:
            producer.sequence_noted()

    def sent_at(self, producer_id: int, sent_ms: int, timeout_ms: int) -> None:
        """When a guest has sent what follows, and how long that may take."""
        producer = self._producers.get(producer_id)
        if producer is not None:
            producer.sent_at(sent_ms, timeout_ms)

    def give_up(self, producer_id: int, count: int) -> None:
        """So many entries, of those that a guest has sent, have timed out there."""
        producer = self._producers.get(producer_id)
        if producer is not None:
            producer.give_up(count)

    def _code_of_refusal(self, producer: SessionProducer, error: Exception) -> int:
        """The code with which the client gives up one message, and goes on. Clients in C++ know one
        alone: for any other they connect anew and send the message again, for ever."""
        code = code_of(error)
        if isinstance(error, (errors.TransactionNotFound, errors.InvalidTxnStatusError)) and (
            not self._are_guests
        ):
            code = NOT_ALLOWED  # for any other that of Java connects anew, and sends it again
        if code != NOT_ALLOWED or not self._context.client_version.startswith("Pulsar-CPP"):
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

    def end(self, values: Values) -> None:
        waiting = self._waiting.pop(values["producer_id"], None)
        if waiting is not None:
            waiting[1].producers.withdraw(waiting[2])
        failure = self._shut.pop(values["producer_id"], None)
        if failure is not None and self._are_guests:
            # Those come again by another id, which would make a topic anew that keeps nothing.
            self._refuse(values, failure)
            return
        producer = self._producers.pop(values["producer_id"], None)
        self._sends.pop(values["producer_id"], None)
        self._answer(values, producer.close if producer is not None else _nothing)
        if producer is not None:
            producer.give_up_answers()


def _nothing() -> None:
    pass


def _succeeds(values: Values, old: SessionProducer) -> bool:
    """Whether a producer of the same name is the same one, come again. A generated name is known to
    its producer alone."""
    is_lost = old.context is not None and old.context.is_lost
    return is_lost or (not values["user_provided_name"] and values["epoch"] > old.epoch)
