"""One connection at the client's end: requests and their answers, and what the broker sends."""

from __future__ import annotations

import json
import os
import weakref
from collections import deque
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.failure_log import log_failure
from pulsarx._pycore.ground.latch import Latch
from pulsarx._pycore.ground.locks import Condition, Event
from pulsarx._pycore.ground.when_forgotten import PostLater
from pulsarx.clock import Deadline
from pulsarx.ground.attempt import attempt
from pulsarx.wire import commands
from pulsarx.wire.frames import FrameReader, frame_encode
from pulsarx.wire.protobuf import WireError
from pulsarx.wire.server_errors import error_named, error_of, message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pulsarx._pycore.dispatch.guest_dispatcher import GuestDispatcher
    from pulsarx._pycore.ground.job_queue import JobQueue
    from pulsarx._pycore.ground.owner_link import OwnerLink
    from pulsarx._pycore.publish.completion_queue import CompletionQueue

    Values = dict[str, Any]

    class Member(Protocol):
        """A producer or consumer, as its connection sees it. Called by the thread that reads the
        connection, so it only enqueues."""

        def told(self, name: str, values: Values, entry: bytes) -> object: ...
        def lost(self, error: Exception) -> object: ...


CLIENT_VERSION = "PulsarX"
MESSAGE_SIZE_MAX = 5 << 20  # Pulsar's default, until the broker has said
AGAIN_MS = 1000  # until a member is brought once more to an owner that refused it
UNCLEAR_MAX = 30  # how often it is brought with an error of which it is not known if it passes
_PASSING = (
    errors.BrokerPersistenceError,
    errors.ConnectError,  # what its folder, or the way to it, is refused with
    MemoryError,
)
# An answer has these for damage and bugs, too, and for an owner without memory.
_UNCLEAR = (errors.BrokerMetadataError, errors.UnknownError)
_STAYING = (
    errors.CatalogueError,
    errors.ChecksumError,
    errors.DataLossError,
    errors.InternalError,
)
_LOOK_SECONDS = 0.01
_LEAVING_MS = 1000  # an owner that closes hangs up when it has answered
_OF_PRODUCERS = frozenset({"SEND_RECEIPT", "SEND_ERROR", "CLOSE_PRODUCER"})
_OF_CONSUMERS = frozenset({"MESSAGE", "CLOSE_CONSUMER", "ACTIVE_CONSUMER_CHANGE", "LINK"})


class Refusals:
    """Tells whether a member comes once more to an owner that refused it. Of one thread."""

    __slots__ = ("_connection", "_count")

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self._count = 0  # of those there that may stay

    def passes(self, error: BaseException, connection: Connection) -> bool:
        """Whether the owner may take a little later whom it refuses with this error: the device
        refused, there was no room, no memory. Damage and bugs stay."""
        if isinstance(error, _STAYING):
            return False
        if not isinstance(error, _UNCLEAR):
            return isinstance(error, _PASSING)
        if connection is not self._connection:
            self._connection, self._count = connection, 0
        self._count += 1
        return self._count < UNCLEAR_MAX

    def end(self) -> None:
        """It was taken."""
        self._connection, self._count = None, 0


class Answer:
    """The answer that a caller waits for, or is called with. A caller that is interrupted leaves it
    behind."""

    __slots__ = ("_callback", "came", "failure", "values")

    def __init__(self, callback: Callable[[Exception | None], object] | None = None) -> None:
        """callback: is told the failure, or None, in the thread that reads the connection."""
        self.came: Latch = Latch()
        self._callback = callback
        self.values: Values = {}
        self.failure: Exception | None = None

    def give(self, values: Values, failure: Exception | None = None) -> None:
        self.values, self.failure = values, failure
        self.came.set()
        if self._callback is not None:
            self._callback(failure)

    def wait(self, what: str = "", timeout_seconds: float | None = None) -> Values:
        """timeout_seconds None: however long it takes."""
        if not self.came.wait(timeout_seconds):
            raise errors.Timeout(detail=f"{what}: no answer within {timeout_seconds:g} s")
        if self.failure is not None:
            raise errors.again(self.failure)
        return self.values


class Connection:
    """Any thread may call; one thread reads the connection and calls received and lost."""

    # What comes with the id of a request.
    ANSWERS = frozenset(
        {"SUCCESS", "ERROR", "PRODUCER_SUCCESS", "PARTITIONED_METADATA_RESPONSE", "VERB_RESPONSE"}
    )
    link: OwnerLink

    def __init__(
        self,
        write: Callable[[bytes], object],
        hang_up: Callable[[], object],
        timeout_seconds: Callable[[], float],
        completions: CompletionQueue,
        background: JobQueue,
    ) -> None:
        """write: sends bytes, in the order of the calls, without waiting. hang_up: ends the
        connection. timeout_seconds: tells how long a request waits for its answer, for clients
        that share the connection. completions, background: of others, who close them."""
        self._timeout_seconds = timeout_seconds
        self.completions = completions
        self.background = background
        self._write = write
        self._hang_up = hang_up
        self._reader = FrameReader(MESSAGE_SIZE_MAX)
        self._process = os.getpid()
        self._lock = Condition()  # of what follows, and of the order of what is written
        self._ids = 0
        self._requests: dict[int, Answer] = {}
        self._pings: deque[Answer] = deque()
        self._leaving: set[Answer] = set()  # asked for by what leaves
        self._leaving_until: dict[float, Deadline] = {}  # those wait, by their timeout
        self._connected = Answer()
        self._producers: dict[int, Member] = {}
        self._consumers: dict[int, weakref.ref[Member]] = {}
        self._failure: Exception | None = None

    @property
    def timeout_seconds(self) -> float:
        """How long a request of this thread waits for its answer."""
        return self._timeout_seconds()

    @property
    def is_forked(self) -> bool:
        return os.getpid() != self._process

    @property
    def is_lost(self) -> bool:
        """Whether it has ended."""
        return self._failure is not None

    def has_left(self) -> bool:
        """Whether the other end has gone, or goes: what it refuses now is for the next owner."""
        deadline = Deadline(_LEAVING_MS)
        while not self.is_lost and not deadline.expired():
            Event().wait(_LOOK_SECONDS)
        return self.is_lost

    # Towards the broker ---------------------------------------------------------------------------

    def open(self) -> None:
        """Greet the broker."""
        self.post(
            "CONNECT",
            client_version=CLIENT_VERSION,
            protocol_version=commands.PROTOCOL_VERSION,
        )
        self._connected.wait("connect", self.timeout_seconds)

    def post(self, name: str, entry: bytes | None = None, **values: Any) -> None:
        """Send a command that has no answer. ConnectError: the connection has ended."""
        frame = frame_encode(name, values, entry)
        with self._lock:
            self._require_open()
            self._write(frame)

    def request(self, name: str, **values: Any) -> Values:
        """Send a command and wait for its answer. Raises what the broker answers."""
        answer = Answer()
        request_id = self._ask(name, answer, values)
        try:
            return answer.wait(name, self.timeout_seconds)
        finally:
            with self._lock:
                if self._requests.get(request_id) is answer:
                    del self._requests[request_id]

    def request_later(
        self, name: str, answered: Callable[[Exception | None], object], **values: Any
    ) -> None:
        """Send a request without waiting; answered(failure or None) is called by the thread that
        reads the connection."""
        self._ask(name, Answer(answered), values)

    def _ask(self, name: str, answer: Answer, values: Values) -> int:
        with self._lock:
            self._require_open()
            self._ids += 1
            frame = frame_encode(name, {"request_id": self._ids, **values})
            self._requests[self._ids] = answer
            self._write(frame)
            return self._ids

    def settle(self) -> None:
        """Return when the broker has done all that was sent, and what it sent because of that, or
        had to send anyway, has come."""
        answer = Answer()
        self._ping(answer)
        answer.wait("PING", self.timeout_seconds)

    def _ping(self, answer: Answer) -> None:
        frame = frame_encode("PING", {})
        with self._lock:
            self._require_open()
            self._pings.append(answer)
            self._write(frame)

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        """A verb of the broker. Raises what that raises."""
        return _result(self.request("VERB", verb=verb, arguments=_text(arguments)))

    # What leaves: all that ask at a time wait until the first of them has waited long enough, so
    # that whoever closes many things beside a broker that does not answer waits once.

    def request_to_leave(self, name: str, **values: Any) -> Values:
        """Like `request`, waiting together with all that leave at a time."""
        return self._ask_to_leave(name, lambda answer: self._ask(name, answer, values))

    def settle_to_leave(self) -> None:
        """Like `settle`, waiting together with all that leave at a time."""
        self._ask_to_leave("PING", self._ping)

    def perform_to_leave(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Like `perform`, waiting together with all that leave at a time."""
        return _result(self.request_to_leave("VERB", verb=verb, arguments=_text(arguments)))

    def _ask_to_leave(self, what: str, ask: Callable[[Answer], object]) -> Values:
        answer = Answer(lambda _: self._leaving.discard(answer))
        with self._lock:
            seconds = self.timeout_seconds
            if not self._leaving:
                self._leaving_until.clear()
            self._leaving.add(answer)
            deadline = self._leaving_until.get(seconds)
            if deadline is None:
                deadline = self._leaving_until[seconds] = Deadline(int(seconds * 1000))
        try:
            ask(answer)
        except BaseException:
            self._leaving.discard(answer)
            raise
        return answer.wait(what, deadline.remaining_seconds())

    def leave_later(self, consumer_id: int) -> None:
        """Have the owner of a folder close a consumer, when it comes to that."""
        arguments = f'{{"consumer_id": {consumer_id}}}'
        try:
            self.request_later("VERB", _nothing, verb="guest.leave", arguments=arguments)
        except (errors.AlreadyClosed, errors.ConnectError):
            pass  # it ended with its connection

    def _require_open(self) -> None:
        if self._failure is not None:
            raise errors.again(self._failure)

    # From the broker ------------------------------------------------------------------------------

    def received(self, data: bytes | memoryview) -> None:
        """Do what came; the memory may be used again on return. WireError: it breaks the protocol,
        or is not what a member can take; the connection is to be closed, and those who wait were
        told."""
        name = "command"
        try:
            for name, values, entry in self._reader.feed(data):
                self._do(name, values, entry)
        except WireError as error:
            self.lost(errors.ConnectError(detail=f"the broker broke the protocol: {error}"))
            raise
        except Exception as error:
            if self._failure is not None:
                return  # closed meanwhile: nothing can be sent, and nobody waits
            what = f"a {name} that cannot be taken: {message_of(error)}"
            self.lost(errors.ConnectError(detail=f"the broker broke the protocol: {what}"))
            raise WireError(what) from error

    def _do(self, name: str, values: Values, entry: bytes) -> None:
        if name in self.ANSWERS:
            self._answered(name, values)
        elif name in _OF_PRODUCERS or name in _OF_CONSUMERS:
            member = self._member(name, values)
            if member is not None:  # else it was closed meanwhile
                member.told(name, values, entry)
        elif name == "CONNECTED":
            self._reader = self._next_reader(values)
            self._connected.give(values)
        elif name == "PING":
            self.post("PONG")
        elif name == "PONG":
            with self._lock:
                answer = self._pings.popleft() if self._pings else None
            if answer is not None:
                answer.give(values)
        else:
            raise WireError(f"a {name}, which no broker sends")

    def _member(self, name: str, values: Values) -> Member | None:
        with self._lock:
            if name in _OF_PRODUCERS:
                return self._producers.get(values["producer_id"])
            number = values["consumer_id"]  # of a LINK: also that of a producer
            reference = self._consumers.get(number)
            if reference is None:
                return self._producers.get(number)
        return reference()

    def _next_reader(self, values: Values) -> FrameReader:
        return FrameReader(max(values["max_message_size"] or 0, MESSAGE_SIZE_MAX))

    def _answered(self, name: str, values: Values) -> None:
        failure: Exception | None = None
        if name == "VERB_RESPONSE" and values["error"]:
            failure = _failure_of_verb(values)
        elif name == "ERROR" or (name != "VERB_RESPONSE" and values.get("error") is not None):
            failure = error_of(values["error"], values["message"] or "")
        with self._lock:
            answer = self._requests.pop(values["request_id"], None)
            if answer is not None and name == "PRODUCER_SUCCESS" and not values["producer_ready"]:
                # It waits for its turn, and is answered once more.
                values["turn"] = self._requests[values["request_id"]] = Answer()
        if answer is not None:  # else its caller has gone
            answer.give(values, failure)

    def lost(self, error: Exception) -> None:
        """The connection has ended: whoever waits is told. Idempotent."""
        with self._lock:
            if self._failure is not None:
                return
            waiting = [*self._requests.values(), *self._pings, self._connected]
            consumers = [reference() for reference in self._consumers.values()]
            members = [*self._producers.values(), *(each for each in consumers if each)]
            steps: list[Callable[[], object]] = [
                *(partial(each.give, {}, error) for each in waiting),
                *(partial(each.lost, error) for each in members),
            ]
            self._failure = error  # last: nobody tells them who finds that it is lost
        for step in steps:
            failure = attempt(step)
            if failure is not None:
                log_failure("pulsarx", failure, "a connection was lost: %s", step)

    def close(self) -> None:
        """No member is left, and nothing more is sent."""
        self.lost(errors.AlreadyClosed(detail="connection"))
        self._hang_up()

    # Members --------------------------------------------------------------------------------------

    def add_producer(self, member: Member) -> int:
        """The id of a new producer, which is kept."""
        with self._lock:
            self._ids += 1
            self._producers[self._ids] = member
            return self._ids

    def tell_of_receipts(self, number: int, confirmed: Callable[[int, int, int], object]) -> None:
        """Have receipts of a producer told there at once, as long as it is not forgotten."""
        with self._lock:
            if number in self._producers:
                self._reader.cutter.receipts[number] = confirmed

    def tell_of_runs(self, number: int, dispatcher: GuestDispatcher) -> None:
        """Have what the owner sends a consumer arrive there at once, as long as it is not
        forgotten."""
        with self._lock:
            if number in self._consumers:
                self._reader.cutter.runs[number] = weakref.ref(dispatcher)

    def forget_producer(self, number: int) -> None:
        with self._lock:
            self._producers.pop(number, None)
            self._reader.cutter.receipts.pop(number, None)

    def add_consumer(self, member: Member) -> int:
        """The id of a new consumer. One that nobody refers to any more is closed."""
        with self._lock:
            self._ids += 1
            close = partial(_close_forgotten, weakref.ref(self), self._ids)
            later = PostLater(self.background.post, close)
            self._consumers[self._ids] = weakref.ref(member, later)
            return self._ids

    def forget_consumer(self, number: int) -> None:
        with self._lock:
            self._consumers.pop(number, None)
            self._reader.cutter.runs.pop(number, None)


def _close_forgotten(reference: weakref.ref[Connection], number: int) -> None:
    """A job of the background."""
    connection = reference()
    if connection is None or connection.is_forked or number not in connection._consumers:
        return
    connection.forget_consumer(number)
    try:
        connection.request("CLOSE_CONSUMER", consumer_id=number)
    except (errors.AlreadyClosed, errors.ConnectError):
        pass  # with its connection


def _nothing(_: Exception | None) -> None:
    pass


def _text(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, separators=(",", ":"))


def _result(values: Values) -> Any:
    return json.loads(values["result"])


def _failure_of_verb(values: Values) -> Exception:
    attributes = json.loads(values["attributes"] or "{}")
    return error_named(values["error"], values["message"] or "", attributes)
