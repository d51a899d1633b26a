"""The producers of this process on a topic whose owner is another one."""

from __future__ import annotations

import weakref
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground import owner_link
from pulsarx._pycore.ground.locks import Event, Lock, RLock
from pulsarx._pycore.publish.connection_publisher import ConnectionPublisher
from pulsarx._pycore.publish.stored_entries import stored_entries
from pulsarx._pycore.wire.hot_commands import send_encode
from pulsarx.broker.ledgers.read_only_ledger import ReadOnlyLedger, WrittenLedger
from pulsarx.broker.topics.topic_gone import TopicGone
from pulsarx.broker.topics.waiting_producer import ENDED, PROMOTED, WaitingProducer
from pulsarx.clock import Deadline
from pulsarx.ground.attempt import attempt
from pulsarx.message_id import MessageId
from pulsarx.processes.guest.connection import AGAIN_MS, Refusals
from pulsarx.wire.message_ids import places_in
from pulsarx.wire.server_errors import error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.broker.ledgers.ledger_list import Position
    from pulsarx.processes.guest.connection import Answer
    from pulsarx.processes.guest.host import ProducersTopic
    from pulsarx.processes.guest.owner_connection import GuestConnection

    Values = dict[str, Any]

# Errors of one message that are those of all that follow.
_ENDS = (errors.ProducerFenced, errors.ProducerBlockedQuotaExceededException)
_HELD_MS = 100  # between two looks whether there is room
_AGAIN_SECONDS = 0.02  # while the owner has not noticed yet that the last connection ended


class GuestProducers:
    """Stands where a ProducerRegistry does. Any thread may call."""

    def __init__(self, topic: ProducersTopic) -> None:
        self._topic = topic
        self._lock = Lock()  # of what follows
        self._members: dict[str, GuestProducer] = {}

    def add(
        self,
        name: str | None,
        make: Callable[[str], Any],
        access_mode: int,
        *,
        epoch: int | None = None,
        owner: object = None,
    ) -> Any:
        """The new producer, or its place in the owner's queue. TopicGone: the topic was deleted
        since it was found. Raises what the owner refuses it with."""
        self._wait_for_forgotten()
        try:
            member = GuestProducer(self._topic, name, access_mode, epoch)
        except errors.PulsarException as error:
            # The owner knows the name alone, and speaks of another topic that has it, or of none.
            if isinstance(error, (errors.Timeout, errors.ConnectError)) or not self._has_gone():
                raise
            raise TopicGone(detail=f"{self._topic.name}: it was deleted") from error
        if member.waiting is not None:
            return member.waiting
        return self._make(member, make)

    def _has_gone(self) -> bool:
        """Whether the topic was deleted since it was found."""
        host = self._topic.host
        host.refresh()
        record = host.catalogue.state.topics.get(self._topic.name)
        return (0 if record is None else record.topic_id) != self._topic.topic_id

    def _wait_for_forgotten(self) -> None:
        """Return when those that their users dropped are closed, so that their names are free."""
        with self._lock:
            members = list(self._members.values())
        if any(each.is_forgotten for each in members):
            host = self._topic.host
            host.background.wait(Deadline(host.timeout_seconds * 1000))

    def promoted(self, waiting: WaitingProducer, make: Callable[[str], Any]) -> Any:
        """The producer whose turn has come."""
        assert isinstance(waiting, GuestWaiting)
        if waiting.failure is not None:
            raise waiting.failure
        return self._make(waiting.member, make)

    def withdraw(self, waiting: WaitingProducer) -> None:
        """Its caller waits no longer, or has the producer. Idempotent."""
        assert isinstance(waiting, GuestWaiting)
        if waiting.state != ENDED:
            waiting.change(ENDED, waiting.failure)  # for a caller whose client was closed
        if not waiting.member.is_made:
            waiting.member.leave()

    def _make(self, member: GuestProducer, make: Callable[[str], Any]) -> Any:
        with self._lock:
            self._members[member.name] = member
        try:
            return make(member.name)
        except BaseException:
            self.remove(member.name, None)
            raise

    def coming(self, name: str) -> GuestProducer:
        """The one that is being made."""
        with self._lock:
            return self._members[name]

    def remove(self, name: str, producer: object) -> None:
        """Its user has closed it."""
        with self._lock:
            member = self._members.get(name)
            if member is None or (producer is not None and not member.is_of(producer)):
                return
            del self._members[name]
        member.leave()

    def release(self, owner: object) -> None:
        """Nothing is reserved by guests."""


class GuestWaiting(WaitingProducer):
    """A place in the queue that the owner keeps."""

    __slots__ = ("member",)

    def __init__(self, member: GuestProducer) -> None:
        super().__init__(member.name, member.access_mode, None)
        self.member: GuestProducer = member


class GuestProducer:
    """A producer as the owner has registered it, and the next owner does again. Any thread may
    call; the thread that reads the connection calls told and lost."""

    def __init__(
        self, topic: ProducersTopic, name: str | None, access_mode: int, epoch: int | None
    ) -> None:
        """Register with the owner. Raises what that says."""
        self.topic = topic
        self.access_mode = access_mode
        self.is_made: bool = False
        self.waiting: GuestWaiting | None = None  # until its turn has come
        self._is_named = name is not None
        self.name: Any = name or ""
        self._lock = RLock()  # of being registered, and leaving
        self._epoch = 0  # how often it has come again
        self._topic_epoch = epoch
        self._publisher: ConnectionPublisher | None = None
        self._producer: weakref.ref[Any] | None = None
        self._has_left = False
        self._is_held = False  # by the quota of its topic
        self._refusals = Refusals()
        self._fenced: Exception | None = None  # why the owner takes nothing of it any more
        self._number = 0
        self._connection: GuestConnection
        self._last_sequence_id = -1
        self._is_compared = False  # the owner tells duplicates
        self._others_came = False  # another producer used the name, and came further
        broker = topic.host
        deadline = Deadline(broker.timeout_seconds * 1000)
        while True:
            connection = broker.live(deadline)
            try:
                self._register(connection)
                break
            except errors.ConnectError:
                if not connection.is_lost:
                    raise
            except errors.Timeout as error:
                raise broker.unanswered(f"make a producer on {topic.name}", connection) from error
        try:
            self._start = self._end_now()
        except BaseException:
            # Else it would hold its name, and its topic, as long as this process lives.
            attempt(self.leave)
            raise
        broker.producers.add(self)
        if self._connection.is_lost:
            broker.bring(self)

    def _register(self, connection: GuestConnection) -> None:
        """Have an owner know it. Raises what that refuses it with."""
        number = connection.add_producer(self)
        try:
            values = connection.request(
                "PRODUCER",
                topic=self.topic.name,
                producer_id=number,
                producer_name=self.name or None,
                user_provided_name=self._is_named,
                epoch=self._epoch or None,
                access_mode=self.access_mode or None,
                topic_epoch=self._topic_epoch,
                published_sequence_id=self._published(),
            )
            self._connection, self._number = connection, number
            self.name = values["producer_name"]
            self._take(values)
        except BaseException:
            # It may have come there all the same, for a caller that waits no longer.
            attempt(partial(connection.post_close_producer, number))
            connection.forget_producer(number)
            raise

    def _take(self, values: Values) -> None:
        turn = values.get("turn")
        if turn is None:
            self._come(values)
            return
        if self.waiting is None:
            self.waiting = GuestWaiting(self)
        turn.came.tell(partial(self._turn_came, turn))

    def _published(self) -> int | None:
        """The id of what it published last, for statistics of the owner."""
        producer = None if self._producer is None else self._producer()
        found = -1 if producer is None else producer.last_sequence_id()
        return None if found < 0 else found

    def _come(self, values: Values) -> None:
        self._topic_epoch = values["topic_epoch"]
        sequence_id = values["last_sequence_id"]
        self._is_compared = sequence_id != owner_link.NOT_DEDUPLICATED
        self._others_came = self._note_sequence(sequence_id, False)
        if self.waiting is not None:
            self.waiting.change(PROMOTED)

    def _note_sequence(self, sequence_id: int, begin: bool) -> bool:
        """The owner knows of this id under its name. begin: it tells duplicates from here on.

        Whether that is more than its producer knows."""
        self._last_sequence_id = max(self._last_sequence_id, sequence_id)
        producer = None if self._producer is None else self._producer()
        if producer is not None:
            found: bool = producer.lift_own_ids_above(sequence_id, begin)
            return found
        if begin and self._publisher is not None:
            self._publisher.begin_comparing()
        return False

    def _turn_came(self, turn: Answer) -> None:
        if turn.failure is None:
            self._come(turn.values)
        elif not isinstance(turn.failure, (errors.ConnectError, errors.AlreadyClosed)):
            assert self.waiting is not None
            self.waiting.change(ENDED, turn.failure)

    def _end_now(self) -> Position:
        """Behind what the topic has published: what it will store comes later."""
        if not self.topic.keeps_messages:
            return (0, 0)
        self.topic.host.refresh()
        ledger = ReadOnlyLedger(self.topic.host, self._record())
        found: Position = ledger.end_position()
        return found

    def _record(self) -> Any:
        record = self.topic.host.catalogue.state.topics.get(self.topic.name)
        if record is None or record.topic_id != self.topic.topic_id:
            raise errors.TopicNotFound(detail=f"{self.topic.name}: it was deleted")
        return record

    # Its parts here -------------------------------------------------------------------------------

    def publish_with(self, send_timeout_ms: int) -> ConnectionPublisher:
        """The publisher of its producer."""
        broker = self.topic.host
        with self._lock:
            made = ConnectionPublisher(
                broker.completions,
                self.topic.ledger.partition,
                send_encode,
                broker.clock,
                send_timeout_ms,
                self.topic.name,
                broker.timeout_seconds * 1000,
                broker.unserved,
            )
            made.transacts_in = broker if self.topic.keeps_messages else None
            made.resume(self._connection.link, self._number, [], None, self._is_compared)
            self._connection.tell_of_receipts(self._number, made.confirmed)
            self._publisher = made
            self.is_made = True
            return made

    def made(self, producer: Any) -> None:
        """The producer is whole."""
        self._producer = weakref.ref(producer)
        producer.resume_after(self._last_sequence_id)

    @property
    def is_forgotten(self) -> bool:
        """Whether its user has dropped it, and it is being closed."""
        if self._producer is None:
            return False
        producer = self._producer()
        return producer is None or producer.is_forgotten

    def is_of(self, producer: object) -> bool:
        return self._producer is None or self._producer() in (producer, None)

    def shut(self) -> None:
        """Send what is open, and wait until it is answered: the client is closed."""
        producer = None if self._producer is None else self._producer()
        if producer is not None:
            producer.shut()

    def abandon(self) -> None:
        """In a forked child: the connection is the parent's."""
        self._has_left = True
        producer = None if self._producer is None else self._producer()
        if producer is not None:
            producer.abandon()

    # By the thread that reads the connection ------------------------------------------------------

    def told(self, name: str, values: Values, _: bytes) -> None:
        publisher = self._publisher
        if name == "CLOSE_PRODUCER" and values["fenced_as"] is not None:
            error = error_of(values["fenced_as"], values["fenced_by"])
            self.topic.host.resume_later(partial(self._be_fenced, error))
        elif name == "CLOSE_PRODUCER":
            if publisher is not None:
                publisher.pause()
            self.topic.host.resume_later(self._come_again)
        elif name == "LINK":
            if values["kind"] == owner_link.SEQUENCE:
                sequence_id = values["numbers"][0] - 1
                self.topic.host.resume_later(partial(self._go_on_above, sequence_id))
        elif publisher is None:
            return
        elif name == "SEND_RECEIPT":
            place = values["message_id"]
            publisher.confirmed(
                values["sequence_id"],
                place["ledger_id"],
                place["entry_id"],
                places_in(place["ack_set"]) if place["ack_set"] else None,
            )
        elif name == "SEND_ERROR":
            error = error_of(values["error"], values["message"])
            if isinstance(error, errors.ProducerBlockedQuotaExceededError):
                self._hold(publisher, values["message"])
                return
            if isinstance(error, _ENDS):
                self._fenced = error
                publisher.fence(values["message"], type(error))
            publisher.failed(values["sequence_id"], error)

    def _be_fenced(self, error: Exception) -> None:
        """The owner takes nothing of it any more; what it took is answered. A job."""
        self._fenced = error
        producer = None if self._producer is None else self._producer()
        if producer is not None:
            producer.fence(errors.detail_of(error), type(error))

    def _go_on_above(self, sequence_id: int) -> None:
        """The owner is about to tell duplicates: what was numbered until now goes out first. A
        job."""
        with self._lock:
            self._is_compared = True  # first: also for a publisher that is made later
            try:
                self._note_sequence(sequence_id, True)
            except Exception:
                # What is open cannot be encoded now, as when memory is out.
                again = partial(self._go_on_above, sequence_id)
                if not self._has_left:
                    host = self.topic.host
                    host.clock.call_after(AGAIN_MS, partial(host.resume_later, again))
                raise

    def _hold(self, publisher: ConnectionPublisher, reason: str) -> None:
        """The backlog is larger than its quota: the owner takes nothing, and says so of each entry.
        Sends wait, for the send timeout at most."""
        if not self._is_held:
            self._is_held = True
            publisher.hold(f"{reason}; no room", True)
            self.topic.host.resume_later(self._come_again)

    def lost(self, _: Exception) -> None:
        """The connection has ended. What is not answered is kept for the next one."""
        if self._publisher is not None:
            self._publisher.pause()

    # Coming again ---------------------------------------------------------------------------------

    def resume(self, connection: GuestConnection) -> None:
        """Go on with the next owner. What that has stored is confirmed, the rest sent again. A
        job."""
        if connection is not self._connection:
            self._try(connection)

    def _try(self, connection: GuestConnection) -> None:
        """A job."""
        with self._lock:
            if not self._has_left and not connection.is_lost:
                self._resume(connection)

    def _come_again(self) -> None:
        """Go on with the owner there is, which has shut it. A job."""
        with self._lock:
            connection, number = self._connection, self._number
            if self._has_left or connection.is_lost:
                return  # closed, or the next connection does it
            connection.forget_producer(number)  # no answer is for the next one
            try:
                connection.request("CLOSE_PRODUCER", producer_id=number)
            except errors.ConnectError:
                return
            except errors.TopicNotFound as error:  # it was deleted, which is why
                self._give_up(connection, error)
                return
            except errors.Timeout:  # the owner is stopped: meanwhile sends wait
                self._again_soon(self._come_again)
                return
            except MemoryError:
                self._again_soon(self._come_again, AGAIN_MS)
                return
            except errors.PulsarException:
                pass  # what it could not store any more, it says of each entry; it is closed there
            self._resume(connection)

    def _again_soon(self, job: Callable[[], object], wait_ms: int = _HELD_MS) -> None:
        host = self.topic.host
        host.clock.call_after(wait_ms, partial(host.resume_later, job))

    def _resume(self, connection: GuestConnection) -> None:
        if self._fenced is not None:  # by the last owner; it is in nobody's way at the next one
            self._give_up(connection, self._fenced)
            return
        self._epoch += 1
        publisher, known = self._publisher, self._last_sequence_id
        try:
            if self.topic.keeps_messages:
                self.topic.host.refresh()
                self._record()
            self._register_again(connection)
            if publisher is not None:
                stored, unknown = self._stored(self._written(connection))
        except (
            errors.ProducerBlockedQuotaExceededError,
            errors.Timeout,
            errors.AlreadyClosed,
            errors.ServiceUnitNotReady,
        ) as error:
            # The topic has no room, or the owner is stopped, or closes and has not hung up yet:
            # meanwhile sends wait.
            if publisher is not None and isinstance(
                error, errors.ProducerBlockedQuotaExceededError
            ):
                publisher.hold(f"{errors.detail_of(error)}; no room", False)
            self._again_soon(self._next_try(connection))
        except Exception as error:
            if isinstance(error, errors.ConnectError) and connection.is_lost:
                return  # the next one does it
            if not self._refusals.passes(error, connection):
                self._give_up(connection, error)
                return
            if publisher is not None:
                publisher.hold(f"{errors.detail_of(error)}; it was so", False)
            self._again_soon(self._next_try(connection), AGAIN_MS)
        else:
            self._refusals.end()
            self._is_held = False
            if publisher is not None:
                connection.tell_of_receipts(self._number, publisher.confirmed)
                publisher.resume(
                    connection.link,
                    self._number,
                    stored,
                    unknown,
                    self._is_compared,
                    self._others_came,
                    known,
                )

    def _next_try(self, connection: GuestConnection) -> Callable[[], object]:
        """The job that tries it once more. What the owner has registered is closed first: it would
        have the name."""
        if self._connection is connection:
            return self._come_again
        return partial(self._try, connection)

    def _register_again(self, connection: GuestConnection) -> None:
        """Register again as _register does. An owner that lives may not have noticed yet that it
        was left."""
        patience = Deadline(self.topic.host.timeout_seconds * 1000)
        wait = Event()
        while True:
            try:
                self._register(connection)
                return
            except errors.ProducerBusy:
                if patience.expired() or connection.owner_pid != self._connection.owner_pid:
                    raise
            wait.wait(_AGAIN_SECONDS)

    def _written(self, connection: GuestConnection) -> list[list[int]]:
        """How far the ledgers are written behind open transactions."""
        publisher = self._publisher
        assert publisher is not None
        if not publisher.is_pending or not self.topic.keeps_messages:
            return []
        found: list[list[int]] = connection.perform("guest.written", {"topic": self.topic.name})
        return found

    def _stored(
        self, written: list[list[int]]
    ) -> tuple[list[tuple[bytes, int, int]], Exception | None]:
        """The messages that it has stored behind the last confirmed one, and an error where that
        cannot be told any more. written: see WrittenLedger."""
        publisher = self._publisher
        assert publisher is not None
        if not publisher.is_pending or not self.topic.keeps_messages:
            return [], None
        broker = self.topic.host
        broker.refresh()
        record = self._record()
        ledger = WrittenLedger(broker, record, written)  # without what is known of the last owner's
        place, last = self._start, publisher.last_confirmed
        if last is not None:
            place = (last[0], 0)
        is_whole = not record.removed_ledger_id or record.removed_ledger_id < place[0]
        if not is_whole:
            place = ledger.first_position()
        elif last is not None:
            place = ledger.position_of(MessageId(ledger.partition, *last), False)
        name = self.name.encode("utf-8", "surrogateescape")
        found, is_damaged = stored_entries(ledger.tail, self.topic.name, *place, name)
        if is_whole and not is_damaged:
            return found, None
        return found, errors.Timeout(
            detail=f"send to {self.topic.name}: its owner has gone before it answered, and what it "
            "may have stored was removed or cannot be read; the message may have been stored"
        )

    def _give_up(self, connection: GuestConnection, error: Exception) -> None:
        """The owner does not take it any more: it is fenced, its name is another's, or its topic is
        gone. What is stored is confirmed all the same."""
        if isinstance(error, errors.TopicNotFound):
            error = errors.AlreadyClosed(
                detail=f"the producer: its topic {self.topic.name} was deleted"
            )
        if self._publisher is not None:
            written: list[list[int]] = []
            try:
                written = self._written(connection)
            except errors.PulsarException:
                pass  # it closes, or has hung up
            try:
                stored, _ = self._stored(written)
            except errors.PulsarException:
                stored = []
            # Without a link: what is sent meanwhile would end the connection, as of nobody there.
            self._publisher.resume(None, self._number, stored, error)
        self.end(error)

    def end(self, error: Exception) -> None:
        """It publishes nothing any more."""
        if self.waiting is not None and not self.is_made:
            self.waiting.change(ENDED, error)
        if self._publisher is not None:
            if isinstance(error, _ENDS):
                self._publisher.fence(errors.detail_of(error), type(error))
            self._publisher.lost(error)

    # Leaving --------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Tell the owner, and forget it. Idempotent."""
        with self._lock:
            if self._has_left or not self.topic.host.state.is_open:
                return  # the end of the connection says it, once what `shut` sends is answered
            self._has_left = True
            connection, number = self._connection, self._number
        try:
            connection.request_to_leave("CLOSE_PRODUCER", producer_id=number)
        except (errors.AlreadyClosed, errors.ConnectError, errors.TopicNotFound):
            pass  # the connection has ended, or the topic was deleted, and the producer with it
        except errors.Timeout as error:
            what = f"close producer {self.name} on {self.topic.name}"
            raise self.topic.host.unanswered(what, connection) from error
        finally:
            connection.forget_producer(number)
