"""A producer on a topic of a cluster."""

from __future__ import annotations

import threading
from collections import deque
from functools import partial

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx._pycore.publish.outgoing_message import BytesKey, BytesOrderingKey
from pulsarx.cluster import official
from pulsarx.cluster.cluster_message import ClusterMessage
from pulsarx.cluster.handle import Handle, no_columns, no_transactions
from pulsarx.ground.attempt import attempt
from pulsarx.ground.closing import Closing
from pulsarx.ground.owner import client_is_closing
from pulsarx.interceptors import OutgoingMessage
from pulsarx.listening.listener_pool import log_exception
from pulsarx.options.argument_check import check_properties, check_type, check_type_or_none
from pulsarx.producer import Producer
from pulsarx.results import Result
from pulsarx.schema.schema import T

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from typing import Any, NoReturn

    from pulsarx._pycore.ground.open_state import OpenState
    from pulsarx.message_id import MessageId
    from pulsarx.options.members import ProducerOptions

    Callback = Callable[[Any, MessageId | None], object]


class ClusterProducer(Handle, Producer[T]):
    """Publishes messages to a topic of a cluster, with or without partitions. Any thread may call.

    Calls and errors are those of Producer. Interceptors are called as there.
    """

    def __init__(self, client: Any, state: OpenState, options: ProducerOptions) -> None:
        """client: the native one. A call of the control plane."""
        self._state = state
        self._closing = Closing()
        self._where = f"producer on {options.topic}"
        self._schema = options.schema
        self._interceptors = tuple(options.interceptors or ())
        self._window = max(1, min(options.max_pending_messages or 1000, 1000))
        # Errors of messages without a callback, told by the next flush.
        self._untold: deque[Exception] = deque()
        self._unanswered = _Unanswered()
        conf = official.producer_configuration(options)
        if options.message_router is not None:
            conf.message_router(partial(_route, options.message_router))
        self._native = self._call(client.create_producer, options.topic, conf)
        self._name = str(self._native.producer_name())

    # Sending --------------------------------------------------------------------------------------

    def send(
        self,
        content: T | None,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        transaction: Any = None,
    ) -> MessageId:
        """Like Producer.send. OperationNotSupported: a transaction."""
        no_transactions(transaction)
        outgoing = self._before(
            OutgoingMessage(
                content,
                properties,
                partition_key,
                ordering_key,
                sequence_id,
                replication_clusters,
                disable_replication,
                event_timestamp,
                deliver_at,
                deliver_after,
            )
        )
        try:
            sent = official.id_of(self._open_call(self._native.send, self._build(outgoing)))
        except Exception as error:
            self._acknowledged(outgoing, None, error)
            raise
        self._acknowledged(outgoing, sent, None)
        return sent

    def send_async(
        self,
        content: T | None,
        callback: Callback | None,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
        *,
        transaction: Any = None,
    ) -> None:
        """Like Producer.send_async; the callback runs in a thread of the official client.
        OperationNotSupported: a transaction."""
        no_transactions(transaction)
        if callback is not None and not callable(callback):
            raise TypeError(
                "callback must be a function of a Result and a MessageId, or None, and not "
                f"{type(callback).__name__}"
            )
        outgoing = self._before(
            OutgoingMessage(
                content,
                properties,
                partition_key,
                ordering_key,
                sequence_id,
                replication_clusters,
                disable_replication,
                event_timestamp,
                deliver_at,
                deliver_after,
            )
        )
        answer = _Answer(self._told, outgoing, callback)
        try:
            message = self._build(outgoing)
            if callback is None or self.is_forked:
                self.require_open()  # else the callback is told
            self._unanswered.add(answer)
            self._call(self._native.send_async, message, answer)
        except BaseException as error:
            self._unanswered.remove(answer)
            if isinstance(error, Exception):
                self._acknowledged(outgoing, None, error)
            raise

    def send_many(
        self,
        payloads: Iterable[T | None],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
        transaction: Any = None,
    ) -> list[MessageId]:
        """Like Producer.send_many: returns when all are stored, raises what the first one failed
        with. OperationNotSupported: a transaction."""
        no_transactions(transaction)
        contents = list(payloads)
        columns = {"keys": keys, "properties": properties, "event_timestamps": event_timestamps}
        for name, column in columns.items():
            if column is not None and (isinstance(column, str) or len(column) != len(contents)):
                raise ValueError(
                    f"{name} must hold one element for each of {len(contents)} payloads"
                )
        self.require_open()
        wanted = _Answers(len(contents), self._window)
        for at, content in enumerate(contents):
            if not wanted.has_room():
                self._call(self._native.flush)
                wanted.wait_for_room()
            self.send_async(
                content,
                partial(wanted.take, at),
                None if properties is None else properties[at],
                None if keys is None else keys[at],
                event_timestamp=None if event_timestamps is None else event_timestamps[at],
            )
        if contents:
            self._call(self._native.flush)
        return wanted.all(self._where)

    def send_arrow(self, *_: Any, **__: Any) -> NoReturn:
        """OperationNotSupported."""
        raise no_columns("send_arrow")

    def cancel(self, message_id: MessageId) -> NoReturn:
        """OperationNotSupported."""
        raise errors.OperationNotSupported(
            detail=f"cancel {message_id} of {self.topic()}: a cluster cancels no message"
        )

    def send_columns(self, *_: Any, **__: Any) -> NoReturn:
        """OperationNotSupported."""
        raise no_columns("send_columns")

    def use_schema(self, schema: Any) -> NoReturn:
        """OperationNotSupported."""
        raise errors.OperationNotSupported(
            detail="use_schema on a cluster: the official client gives a producer one schema for "
            "its life"
        )

    def _build(self, outgoing: OutgoingMessage) -> Any:
        """The native message. ValueError, TypeError: an argument is wrong."""
        check_type_or_none(dict, outgoing.properties, "properties")
        check_properties(outgoing.properties)
        if isinstance(outgoing.partition_key, BytesKey) or isinstance(
            outgoing.ordering_key, BytesOrderingKey
        ):
            raise errors.OperationNotSupported(
                detail="a key that is bytes on a cluster: the official client takes text alone"
            )
        check_type_or_none(str, outgoing.partition_key, "partition_key")
        check_type_or_none(str, outgoing.ordering_key, "ordering_key")
        check_type_or_none(int, outgoing.sequence_id, "sequence_id")
        check_type_or_none(list, outgoing.replication_clusters, "replication_clusters")
        check_type(bool, outgoing.disable_replication, "disable_replication")
        check_type_or_none(int, outgoing.event_timestamp, "event_timestamp")
        check_type_or_none(int, outgoing.deliver_at, "deliver_at")
        builder = official.native().MessageBuilder()
        if outgoing.content is None:
            builder.set_null_value()
        else:
            payload = self._schema.encode(outgoing.content)
            check_type(bytes, payload, "data")
            builder.content(payload)
        for name, value in (outgoing.properties or {}).items():
            builder.property(name, value)
        for name in (
            "partition_key",
            "ordering_key",
            "sequence_id",
            "replication_clusters",
            "event_timestamp",
            "deliver_at",
            "deliver_after",
        ):
            value = getattr(outgoing, name)
            if value is not None:
                getattr(builder, name)(value)
        if outgoing.disable_replication:
            builder.disable_replication(True)
        return builder.build()

    def _told(self, answer: _Answer, result: Any, native_id: Any) -> None:
        """The callback of each message, in a thread of the official client."""
        try:
            self._tell(answer.outgoing, answer.callback, result, native_id)
        finally:
            self._unanswered.remove(answer)

    def _tell(
        self, outgoing: OutgoingMessage, callback: Callback | None, result: Any, native_id: Any
    ) -> None:
        ours = official.result_of(result)
        sent = official.id_of(native_id) if ours == Result.Ok else None
        error = None
        if sent is None:
            error = official.error_of(ours.name, f"send_async of {self._where}")
        self._acknowledged(outgoing, sent, error)
        if callback is not None:
            try:
                callback(ours, sent)
            except Exception:
                log_exception("%s: the callback of a message raised", self._where)
        elif error is not None:
            self._untold.append(error)

    def _before(self, outgoing: OutgoingMessage) -> OutgoingMessage:
        for each in self._interceptors:
            try:
                changed = each.before_send(self, outgoing)
            except Exception:
                log_exception("%s: before_send of %r raised", self._where, each)
            else:
                outgoing = outgoing if changed is None else changed
        return outgoing

    def _acknowledged(
        self, outgoing: OutgoingMessage, sent: MessageId | None, error: Exception | None
    ) -> None:
        for each in self._interceptors:
            try:
                each.on_send_acknowledgement(self, outgoing, sent, error)
            except Exception:
                log_exception("%s: on_send_acknowledgement of %r raised", self._where, each)

    def flush(self) -> None:
        """Wait until everything that was sent is stored and its callbacks have returned. Raises
        what a message without a callback failed with."""
        self.require_open()
        self._flush()
        self._raise_untold()

    def _flush(self) -> None:
        self._call(self._native.flush)
        # The client forgets a message before its thread calls the callback, and tells a flush that
        # comes in between that nothing is left.
        self._unanswered.wait()

    def _raise_untold(self) -> None:
        if self._untold:
            error = self._untold.popleft()
            self._untold.clear()
            raise error

    # What it is -----------------------------------------------------------------------------------

    def topic(self) -> str:
        """Full name of the topic."""
        return str(self._native.topic())

    def producer_name(self) -> str:
        """The given name, or the one that the broker generated."""
        return self._name

    def last_sequence_id(self) -> int:
        """The sequence id of the last message that was stored; -1: there is none."""
        return int(self._native.last_sequence_id())

    def is_connected(self) -> bool:
        """Tell whether it is connected to its broker."""
        return self.is_open and bool(self._native.is_connected())

    # Closing --------------------------------------------------------------------------------------

    def close(self) -> None:
        """Like Producer.close: what was sent is stored first."""
        if self.is_forked or (self._closing.told and not client_is_closing(self.owner)):
            self.require_open()
        self._closing.close(self._take_leave, self.owner)

    def discard(self) -> None:
        """Close without sending what waits to be sent. What is on its way may be stored, or not."""
        self._closing.close(self._leave_at_once, self.owner)

    def close_with_client(self) -> None:
        """Like close, when the client closes. A call of the control plane."""
        self._closing.finish(self._take_leave, self.owner)

    def _take_leave(self) -> None:
        self.let_go()
        failure = attempt(self._flush)
        failure = attempt(partial(self._call, self._native.close)) or failure
        if failure is not None:
            raise failure
        self._raise_untold()

    def _leave_at_once(self) -> None:
        self.let_go()
        self._call(self._native.close)

    def __exit__(self, *_: object) -> None:
        if self.is_open:
            self.close()

    def __repr__(self) -> str:
        return f"Producer(topic={self.topic()!r}, name={self._name!r}, open={self.is_open})"


class _Answer:
    """Tells the outcome of one message; the official client calls it once."""

    __slots__ = ("callback", "outgoing", "_told")

    def __init__(
        self,
        told: Callable[[_Answer, Any, Any], None],
        outgoing: OutgoingMessage,
        callback: Callback | None,
    ) -> None:
        self._told = told
        self.outgoing = outgoing
        self.callback = callback

    def __call__(self, result: Any, native_id: Any) -> None:
        self._told(self, result, native_id)


class _Unanswered:
    """Knows the messages whose callbacks have not returned yet. Any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: set[_Answer] = set()
        # Of each flush: what it waits for, and its end.
        self._waiting: list[tuple[set[_Answer], Event]] = []

    def add(self, answer: _Answer) -> None:
        with self._lock:
            self._answers.add(answer)

    def remove(self, answer: _Answer) -> None:
        """Do nothing where it is not among them."""
        with self._lock:
            self._answers.discard(answer)
            for awaited, done in self._waiting:
                awaited.discard(answer)
                if not awaited:
                    done.set()

    def wait(self) -> None:
        """Return when the callbacks of what was added before have returned."""
        with self._lock:
            if not self._answers:
                return
            waiting = (set(self._answers), Event())
            self._waiting.append(waiting)
        try:
            waiting[1].wait()
        finally:
            with self._lock:
                self._waiting.remove(waiting)


class _Answers:
    """The answers to the messages of one send_many."""

    def __init__(self, count: int, window: int) -> None:
        """window: how many may be on their way."""
        self._ids: list[MessageId | None] = [None] * count
        self._room = threading.BoundedSemaphore(window)
        self._left = count
        self._failed: Result | None = None
        self._done = Event()
        self._lock = Lock()
        if not count:
            self._done.set()

    def has_room(self) -> bool:
        return self._room.acquire(blocking=False)

    def wait_for_room(self) -> None:
        self._room.acquire()

    def take(self, at: int, result: Result, message_id: MessageId | None) -> None:
        """The callback of one message."""
        with self._lock:
            self._ids[at] = message_id
            if result != Result.Ok and self._failed is None:
                self._failed = result
            self._left -= 1
            if not self._left:
                self._done.set()
        self._room.release()

    def all(self, where: str) -> list[MessageId]:
        self._done.wait()
        if self._failed is not None:
            raise official.error_of(self._failed.name, f"send_many of {where}")
        return [each for each in self._ids if each is not None]


def _route(router: Callable[[Any, int], int], message: Any, partitions: int) -> int:
    return int(router(ClusterMessage(message, None), partitions))
