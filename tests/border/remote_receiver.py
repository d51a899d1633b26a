"""The receiving part of consumers and readers whose broker is at the other end of a connection."""

from __future__ import annotations

from collections import deque
from pathlib import Path

from compiled_modules import compiled_module

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.locks import Condition
from pulsarx._pycore.message.entry_view import EntryContext
from pulsarx.clock import Deadline
from pulsarx.compression import decompress
from pulsarx.enumerations import SchemaType
from pulsarx.message_id import MessageId
from pulsarx.wire import commands
from pulsarx.wire.message_ids import ack_set_of, id_data, message_id_of
from pulsarx.wire.schemas import schema_of, schema_values
from pulsarx.wire.server_errors import message_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from client_connection import ClientConnection

    from pulsarx._pycore.message.message import Message
    from pulsarx.schema.schema import Schema, SchemaInfo
    from pulsarx.topic_name import TopicName

_arriving = compiled_module(Path(__file__).parent / "entry_messages.pyx")
ArrivingChunks = _arriving.ArrivingChunks
entry_message_count = _arriving.entry_message_count
entry_messages = _arriving.entry_messages
LATEST_LEDGER_ID = (1 << 63) - 1


class _Origin:
    """What the entries of one receiver say they are of. It does not refer to that."""

    __slots__ = ("partition",)

    def __init__(self, partition: int) -> None:
        self.partition = partition


class RemoteReceiver:
    """Receives from one topic. Any thread may call.

    The broker sends as many messages as it has permits for; what is not received yet waits here. A
    call that finds nothing asks the broker whether there is anything before it says so.
    """

    def __init__(
        self,
        connection: ClientConnection,
        topic: TopicName,
        schema: Schema[Any],
        queue_size: int,
        request: dict[str, Any],
    ) -> None:
        """request: the fields of SUBSCRIBE that say which subscription, and how."""
        info = schema.schema_info()
        if info.schema_type() not in (SchemaType.BYTES, SchemaType.NONE):
            request = {**request, "schema": schema_values(info)}
        self._connection = connection
        self._topic_name = topic
        self._queue_size = queue_size
        self._request = request
        origin = _Origin(topic.partition_index)
        schemas = RemoteSchemas(connection, str(topic))
        self._context = EntryContext(str(topic), schema, origin, decompress, schemas)
        self._decompressed_size_max = max(connection.message_size_max, 1 << 27)
        self._chunks = ArrivingChunks()  # of the thread that reads the connection
        self._changed = Condition()  # of what follows
        self._queue: deque[Message | Exception] = deque()
        self._taken = 0  # messages the broker has not been given permits back for
        self._permits = 0  # without a queue: that the broker has left; a batch may take more
        self._epoch = 0
        self._attaching = False
        self._failure: Exception | None = None
        self._open = True
        self._watchers: list[Callable[[], object]] = []
        self._number = connection.add_consumer(self)

    # The broker -----------------------------------------------------------------------------------

    def attach(self) -> None:
        """Subscribe. Raises what the broker answers."""
        try:
            self._connection.request(
                "SUBSCRIBE",
                topic=str(self._topic_name),
                consumer_id=self._number,
                consumer_epoch=self._epoch,
                **self._request,
            )
        except BaseException:
            self._open = False
            self._connection.forget_consumer(self._number)
            raise
        self._give_permits(self._queue_size)

    def _attach_again(self) -> None:
        """The broker closed the consumer, because its subscription was moved for one; or the topic
        was deleted, which is the answer then; in the
        thread that reads the connection, lock held."""
        self._clear()
        # Where to begin is what the broker was told by the seek.
        again = {key: value for key, value in self._request.items() if key != "start_message_id"}
        self._connection.request_later(
            "SUBSCRIBE",
            self._attached,
            topic=str(self._topic_name),
            consumer_id=self._number,
            consumer_epoch=self._epoch,
            **again,
        )
        self._give_permits(self._queue_size)

    def _attached(self, failure: Exception | None) -> None:
        if isinstance(failure, errors.TopicNotFound):
            failure = errors.AlreadyClosed(detail=message_of(failure))  # as in the broker's process
        with self._changed:
            self._attaching = False
            self._failure = failure
            self._changed.notify_all()
        self._notify()

    def _give_permits(self, count: int) -> None:
        if count:
            self._connection.post("FLOW", consumer_id=self._number, permits=count)

    def told(self, name: str, values: dict[str, Any], entry: bytes) -> None:
        if name == "CLOSE_CONSUMER":
            # With the lock, so that the SUBSCRIBE goes before the CLOSE_CONSUMER of `shut`.
            with self._changed:
                if self._open:
                    self._attaching = True
                    self._attach_again()
                self._changed.notify_all()
            self._notify()
        elif name == "ACTIVE_CONSUMER_CHANGE":
            self._activity_changed(values["is_active"])
        elif values["consumer_epoch"] < self._epoch:
            self._pass_over(values, entry)  # it comes again
        else:
            self._arrived(values, entry)

    def _activity_changed(self, is_active: bool) -> None:
        """It is the active consumer of a Failover subscription, or is not."""

    def _arrived(self, values: dict[str, Any], entry: bytes) -> None:
        place, ack_set = values["message_id"], values["ack_set"] or None
        found: list[Any] = []
        taken_out: list[MessageId] = []
        # Those, too, that the ack set leaves out, and chunks of a message that is not whole yet.
        count = entry_message_count(entry)
        try:
            found, taken_out = entry_messages(
                self._context, place["ledger_id"], place["entry_id"], entry,
                values["redelivery_count"], ack_set, self._decompressed_size_max, self._chunks,
            )  # fmt: skip
        except Exception as error:  # damaged, or out of memory: told to the caller that receives
            found = [error]
        if taken_out:
            ids = [self._individually(each) for each in taken_out]
            self._connection.post(
                "ACK", consumer_id=self._number, ack_type=commands.INDIVIDUAL, message_ids=ids
            )
        with self._changed:
            self._permits -= count
            self._queue.extend(found)
            self._taken += count - len(found)
            self._changed.notify_all()
        self._notify()

    def _pass_over(self, values: dict[str, Any], entry: bytes) -> None:
        """A message that was sent before the broker heard that it is to come again."""
        count = entry_message_count(entry)
        with self._changed:
            self._permits -= count
            self._taken += count
            self._changed.notify_all()
        self._return_permits()
        if not self._queue_size:
            self._notify()  # the permit went with it: another one is to be asked for

    def lost(self, error: Exception) -> None:
        with self._changed:
            self._failure = error
            self._changed.notify_all()
        self._notify()

    def _notify(self) -> None:
        for notify in list(self._watchers):
            notify()

    def watch(self, notify: Callable[[], object]) -> None:
        """See Consumer.watch. As long as it is watched the connection keeps it."""
        self._watchers.append(notify)
        self._connection.keep_consumer(self._number, self)

    def unwatch(self, notify: Callable[[], object]) -> None:
        if notify in self._watchers:
            self._watchers.remove(notify)
        if not self._watchers:
            self._connection.keep_consumer(self._number, None)

    def _clear(self) -> None:
        """Forget what waits here; lock held. Its permits are new ones of a new consumer."""
        self._queue.clear()
        self._taken = 0
        self._permits = 0

    def _begin_epoch(self) -> int:
        """What waits here comes again, and so does what is on its way."""
        with self._changed:
            self._epoch += 1
            self._taken += len(self._queue)
            self._queue.clear()
            return self._epoch

    # Receiving ------------------------------------------------------------------------------------

    def receive(self, timeout_millis: int | None = None) -> Message:
        """See Consumer.receive."""
        self.require_open()
        if timeout_millis is not None and self._queue_size == 0:
            raise errors.InvalidConfiguration(
                detail="receive with a timeout needs a receiver queue"
            )
        deadline = _deadline_of(timeout_millis)
        message = self._take()
        while message is None:
            if not self.wait_for_message(deadline):
                message = self.take_now()
                break
            message = self._take()
        if message is None:
            raise errors.Timeout(
                detail=f"no message on {self._topic_name} within {timeout_millis} ms"
            )
        return message

    def take_now(self) -> Message | None:
        """The next message, None when there is none."""
        self.require_open()
        message = self._take()
        if message is None:
            self._settle()
            message = self._take()
        return message

    def receive_many(self, max_messages: int, timeout_millis: int | None = None) -> list[Message]:
        """See Consumer.receive_many."""
        if max_messages < 1:
            raise ValueError(f"max_messages is {max_messages}; it must be at least 1")
        self.require_open()
        found: list[Message] = []
        deadline = _deadline_of(timeout_millis)
        while True:
            try:
                while len(found) < max_messages:
                    message = self.take_now()
                    if message is None:
                        break
                    found.append(message)
            except errors.CorruptDataError as error:
                if not found:
                    raise
                import logging

                logging.getLogger("pulsarx").error(
                    "%s: %s", self._topic_name, errors.detail_of(error)
                )
            if found or not self.wait_for_message(deadline):
                return found

    def receive_arrow(self, max_messages: int, timeout_millis: int | None = None) -> Any:
        raise not_over_a_connection("receive_arrow")

    def has_message(self) -> bool:
        """Tell whether receive would return at once."""
        self.require_open()
        if not self._queue:
            self._settle()
        return bool(self._queue)

    def give_back(self, messages: list[Message]) -> None:
        """Messages that were taken, in this order, and shown to nobody."""
        with self._changed:
            self._queue.extendleft(reversed(messages))
            self._taken = max(0, self._taken - len(messages))

    def wait_for_message(self, deadline: Deadline) -> bool:
        """Sleep until something has come; False when the deadline has passed."""
        with self._changed:
            while self._open and not self._queue and self._failure is None:
                self._ask()  # each time: what was asked for may have been passed over
                seconds = deadline.remaining_seconds()
                if seconds is not None and seconds <= 0:
                    return False
                self._changed.wait(seconds)
        self.require_open()
        return True

    def _take(self) -> Message | None:
        with self._changed:
            if not self._queue:
                return None
            found = self._queue.popleft()
            self._taken += 1
        self._return_permits()
        if isinstance(found, Exception):
            raise found
        return found

    def _return_permits(self) -> None:
        with self._changed:
            if not self._queue_size or 2 * self._taken < self._queue_size:
                return
            # With the lock: they are not for the consumer that the next CLOSE_CONSUMER begins.
            count, self._taken = self._taken, 0
            self._give_permits(count)

    def _ask(self) -> None:
        """Without a queue, have one message on its way."""
        if self._queue_size:
            return
        with self._changed:
            if self._permits <= 0 and not self._queue:
                # A batch took more than the one that was asked for.
                count, self._permits = 1 - self._permits, 1
                self._give_permits(count)

    def _settle(self) -> None:
        """Return when everything that the broker has for this consumer, as far as there is room, is
        here."""
        while True:
            self._ask()
            with self._changed:
                if self._queue_size:
                    count, self._taken = self._taken, 0
                    self._give_permits(count)
            self._connection.settle()
            while self._attaching:
                with self._changed:
                    if self._attaching and self._failure is None:
                        self._changed.wait(self._connection.timeout_seconds)
                self.require_open()
                self._connection.settle()
            if self._queue_size or self._queue or self._permits > 0:
                return  # else what was asked for was passed over

    # Acknowledging --------------------------------------------------------------------------------

    def acknowledge(self, message: Message | MessageId) -> None:
        """See Consumer.acknowledge. A MessageId in a batch must say how large that is."""
        self.require_open()
        self._acknowledge([self._individually(self._id_of(message))])

    def acknowledge_many(self, messages: Iterable[Message | MessageId]) -> None:
        """See Consumer.acknowledge_many."""
        self.require_open()
        ids = [self._individually(self._id_of(each)) for each in messages]
        if ids:
            self._acknowledge(ids)

    def acknowledge_cumulative(self, message: Message | MessageId) -> None:
        """See Consumer.acknowledge_cumulative."""
        self.require_open()
        if self._request["type"] in (commands.SHARED, commands.KEY_SHARED):
            raise errors.CumulativeAcknowledgementNotAllowedError(
                detail=f"acknowledge cumulatively on {self._topic_name}: several consumers share "
                "the subscription; acknowledge messages one by one, or a list of them"
            )
        target = self._id_of(message)
        behind = _behind(target.batch_index(), _batch_size_of(target))
        self._acknowledge([id_data(target, behind)], commands.CUMULATIVE)

    def _individually(self, target: MessageId) -> dict[str, Any]:
        size = _batch_size_of(target)
        others = [each for each in range(size) if each != target.batch_index()]
        return id_data(target, ack_set_of(others) if size > 1 else None)

    def _acknowledge(self, ids: list[dict[str, Any]], kind: int = commands.INDIVIDUAL) -> None:
        self._connection.request("ACK", consumer_id=self._number, ack_type=kind, message_ids=ids)

    def _id_of(self, message: Message | MessageId | object) -> MessageId:
        if isinstance(message, MessageId):
            return message
        identify = getattr(message, "message_id", None)
        if identify is None:
            raise TypeError(
                f"a Message or a MessageId is acknowledged, not a {type(message).__name__}"
            )
        if message.topic_name() != str(self._topic_name):  # type: ignore[attr-defined]
            raise errors.NotAllowedError(
                detail=f"acknowledge {message!r}: it is not of topic {self._topic_name}"
            )
        found: MessageId = identify()
        return found

    def redeliver(self, ids: list[MessageId]) -> None:
        """Have messages delivered again at once; no ids: everything that was sent and is not
        acknowledged. An Exclusive or Failover consumer gets everything in any case, in order."""
        self.require_open()
        if self._request["type"] in (commands.EXCLUSIVE, commands.FAILOVER):
            ids = []
        epoch = self._epoch if ids else self._begin_epoch()
        self._connection.post(
            "REDELIVER_UNACKNOWLEDGED",
            consumer_id=self._number,
            message_ids=[id_data(each) for each in ids],
            consumer_epoch=epoch,
        )
        self._return_permits()

    # The subscription -----------------------------------------------------------------------------

    def last_message_id(self) -> MessageId:
        """Id of the last message of the topic; (-1,-1,-1,-1) when it has none."""
        self.require_open()
        values = self._connection.request("GET_LAST_MESSAGE_ID", consumer_id=self._number)
        return message_id_of(values["message_id"])

    def seek_to(self, target: dict[str, Any]) -> None:
        """target: a field of SEEK, of seek_fields."""
        self.require_open()
        self._connection.request("SEEK", consumer_id=self._number, **target)
        self._settle()

    def unsubscribe_there(self) -> None:
        """Delete the subscription, and this consumer with it."""
        self._connection.request("UNSUBSCRIBE", consumer_id=self._number)
        with self._changed:
            self._open = False
            self._changed.notify_all()
        self._notify()
        self._connection.forget_consumer(self._number)

    def shut(self) -> bool:
        """Leave the subscription, and wake those who wait; False when it was shut already."""
        with self._changed:
            if not self._open:
                return False
            self._open = False
            self._changed.notify_all()
        self._notify()
        try:
            self._connection.request("CLOSE_CONSUMER", consumer_id=self._number)
        except (errors.AlreadyClosed, errors.ConnectError):
            pass  # the connection has ended, and the consumer with it
        finally:
            self._connection.forget_consumer(self._number)
        return True

    @property
    def is_open(self) -> bool:
        return self._open and self._failure is None and not self.is_forked

    @property
    def is_forked(self) -> bool:
        return self._connection.is_forked

    def require_open(self) -> None:
        """AlreadyClosed (ForkedError in a forked child) unless it is open; ConnectError when the
        connection has ended."""
        if self.is_forked:
            raise errors.ForkedError(
                detail="the client was opened before this process was forked; open one of its own"
            )
        if not self._open:
            raise errors.AlreadyClosed(detail=f"consumer or reader on {self._topic_name}")
        if self._failure is not None:
            raise errors.again(self._failure)


def _deadline_of(timeout_millis: int | None) -> Deadline:
    if timeout_millis is not None and not isinstance(timeout_millis, int):
        raise ValueError(
            "Argument timeout_millis is expected to be of type 'int' "
            f"and not '{type(timeout_millis).__name__}'"
        )
    return Deadline(timeout_millis)


def seek_fields(target: MessageId | int, inclusive: bool) -> dict[str, Any]:
    """How SEEK, and the start of a reader, say where to: at an id, or behind it, or at a time."""
    if not isinstance(target, MessageId):
        return {"publish_time": max(0, min(target, (1 << 63) - 1))}
    return {"message_id": start_data(target, inclusive)}


def start_data(target: MessageId, inclusive: bool) -> dict[str, Any]:
    """Where to begin for an id. The broker begins at what it is told: behind a message of a batch
    is the next one of it, behind an entry the next entry."""
    if target.ledger_id() < 0 or target.ledger_id() == LATEST_LEDGER_ID:
        return id_data(MessageId(-1, target.ledger_id(), target.entry_id()))
    first_chunk = target.first_chunk_message_id()
    if inclusive and first_chunk is not None:
        target = first_chunk
    index = target.batch_index()
    if index >= 0:
        # Of the batch only this matters: the first bit that is set, wherever it ends.
        first = index if inclusive else index + 1
        return id_data(target, ack_set_of([first]))
    entry_id = target.entry_id() + (0 if inclusive else 1)
    return id_data(MessageId(target.partition(), target.ledger_id(), entry_id))


def _batch_size_of(target: MessageId) -> int:
    """The number of messages of the batch that an id is in; 0: it is in none."""
    if target.batch_index() < 0:
        return 0
    if target.batch_size() <= 0:
        raise errors.OperationNotSupported(
            detail=f"acknowledge {target} over a connection: the id does not say how large its "
            "batch is; use the id of a message that was received"
        )
    return target.batch_size()


def _behind(batch_index: int, batch_size: int) -> list[int]:
    """The ack set of what lies behind a message in a batch; empty for the last one."""
    return ack_set_of(list(range(batch_index + 1, batch_size)))


def not_over_a_connection(what: str) -> errors.PulsarException:
    return errors.OperationNotSupported(detail=f"{what} is not supported yet over a connection")


class RemoteSchemas:
    """Asks the broker for the schemas that messages of a topic were written with. Any thread may
    call, but the one that reads the connection."""

    def __init__(self, connection: ClientConnection, topic: str) -> None:
        self._connection = connection
        self._topic = topic

    def __call__(self, version: int) -> SchemaInfo | None:
        """None: the topic does not have it."""
        if version < 0:
            return None
        return control_plane.perform(self._ask, (version,))

    def _ask(self, version: int) -> SchemaInfo | None:
        try:
            values = self._connection.request(
                "GET_SCHEMA", topic=self._topic, schema_version=version.to_bytes(8, "big")
            )
        except errors.TopicNotFound:
            return None
        return schema_of(values["schema"], version)
