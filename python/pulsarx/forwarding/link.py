"""Forwards one topic or partition, in a thread of its own: again and again, until it is stopped or
a message comes that cannot be forwarded."""

from __future__ import annotations

import logging

from pulsarx import errors
from pulsarx._pycore.ground.locks import Event, Lock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.clock import system_clock
from pulsarx.enumerations import BatchingType
from pulsarx.forwarding.target import BYTES_MAX, MESSAGES_MAX, Batch, MissingInBatch
from pulsarx.ground.attempt import attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, Protocol

    from pulsarx.enumerations import CompressionType
    from pulsarx.forwarding.target import Row

    class Host(Protocol):
        """The forwarder, as a link sees it."""

        source: Any
        target: Any
        subscription: str
        compression_type: CompressionType
        batching_type: BatchingType
        at_least_once: bool

        def admit(self, topic: str) -> bool: ...
        def forget(self, topic: str) -> None: ...
        def producer_name(self, topic: str) -> str: ...
        def note_fault(self, topic: str, text: str) -> None: ...


logger: logging.Logger = logging.getLogger("pulsarx.forwarding")

_METADATA_MAX = 64  # bytes of a message besides its value, keys and properties, about
_PROPERTY_MAX = 16  # bytes of a property besides name and value
_ALONE = 1  # bytes of a batch at most, so that each message is one
_PAUSE_SECONDS, _PAUSE_SECONDS_MAX = 0.1, 10.0
# For the batch on its way, when it is to stop; where the target is away for a moment.
_LEAVING_LOOKS, _AWAY_LOOKS, _LEAVING_SECONDS = 50, 3, 0.1
# With these the next attempt would end as this one did.
_FINAL = (
    errors.MessageTooBig,
    errors.IncompatibleSchema,
    errors.OperationNotSupported,
    errors.InvalidConfiguration,
    errors.InvalidMessage,
    errors.InvalidTopicName,
    errors.TopicTerminated,
    errors.NotAllowedError,
    errors.CryptoError,
    errors.CorruptDataError,
    errors.DataLossError,
    ValueError,
    TypeError,
)
FORWARDING, WAITING, STOPPED = "forwarding", "waiting", "stopped"


class _Left(Exception):
    """It was asked to stop."""


class _TryParts(Exception):
    """The target takes a batch not as it is, and may take parts of it."""

    def __init__(self, size_max: int, last: int) -> None:
        """last: the sequence id of the last message of the batch."""
        super().__init__()
        self.size_max = size_max
        self.last = last


class Gone(Exception):
    """The source topic was deleted."""


class Link:
    """From one topic or partition to one. Made, started and stopped by the forwarder."""

    def __init__(self, host: Host, topic: str, target_topic: str, is_followed: bool) -> None:
        """is_followed: it was found by a pattern, and is not made where it was deleted."""
        self._host = host
        self.topic = topic
        self.target_topic = target_topic
        self._is_followed = is_followed
        self._wake = Event()
        self._stopping = False
        self._lock = Lock()  # of the figures
        self._state = WAITING
        self._forwarded = 0
        self._error: str | None = None
        self._bytes_max = BYTES_MAX
        self._parts_to = -1  # the last sequence id of a batch that goes in parts
        self._source: Any = None
        self._target: Any = None
        self._version = -1  # of the schema of the target's producer
        self._seen = -1  # the sequence id that the session has come to in the source
        self._sent = -1  # and in the target
        self._pending: Batch | None = None  # on its way
        self._is_verified = False  # that the target tells what it has
        self.is_gone: bool = False
        self.ended: Event = Event()
        self._thread = OwnThread(self._run, f"forward {topic}")

    def start(self) -> None:
        self._thread.start()

    def ask_to_stop(self) -> None:
        self._stopping = True
        self._wake.set()

    def join(self) -> None:
        self._thread.join()

    def status(self) -> dict[str, Any]:
        target = self._target
        with self._lock:
            state = self._state
            is_away = target is not None and not target.is_connected
            if state == FORWARDING and (self._stopping or is_away):
                state = WAITING
            return {
                "target": self.target_topic,
                "state": state,
                "forwarded": self._forwarded,
                "last_error": self._error,
            }

    @property
    def is_stopped(self) -> bool:
        """Whether it ended by an error."""
        return self._state == STOPPED

    # Its thread -----------------------------------------------------------------------------------

    def _run(self) -> None:
        pause = _PAUSE_SECONDS
        try:
            while not self._stopping:
                before = self._forwarded
                failure = self._session()
                if failure is None or self._stopping:
                    return
                if self._forwarded > before:
                    pause = _PAUSE_SECONDS
                if isinstance(failure, _TryParts):
                    self._bytes_max, self._parts_to = failure.size_max, failure.last
                    continue
                if not self._goes_on(failure):
                    return
                # Whatever the target is now, it may have been deleted, and is made anew.
                self._host.forget(self.topic)
                self._wait(pause)
                pause = min(pause * 2, _PAUSE_SECONDS_MAX)
        finally:
            self.ended.set()

    def _wait(self, seconds: float) -> None:
        self._wake.clear()
        if not self._stopping:
            self._wake.wait(seconds)

    def _goes_on(self, failure: BaseException) -> bool:
        """Whether to try again after a failure, which is noted."""
        if isinstance(failure, Gone):
            self.is_gone = True
            logger.info("%s: the topic was deleted", self.topic)
            return False
        text = f"{type(failure).__name__}: {errors.detail_of(failure)}"
        is_final = isinstance(failure, _FINAL) and not isinstance(failure, errors.ConnectError)
        is_final = is_final or not isinstance(failure, Exception)
        with self._lock:
            is_new, self._error = text != self._error, text
            self._state = STOPPED if is_final else WAITING
        if is_final:
            logger.error("%s: forwarding of this topic has stopped: %s", self.topic, text)
        elif is_new:
            logger.warning("%s: forwarding is tried again: %s", self.topic, text)
        return not is_final

    def _session(self) -> BaseException | None:
        """Forward until something fails, which is returned. None: it is to stop."""
        try:
            self._open()
            with self._lock:
                self._state = FORWARDING
            self._forward()
            return None
        except _Left:
            return None
        except MissingInBatch as error:
            text = errors.detail_of(error)
            return attempt(lambda: self._host.note_fault(self.topic, text)) or error
        except BaseException as error:
            return error
        finally:
            # The producer first: what it may still send is to be told by the next one.
            target, self._target = self._target, None
            source, self._source = self._source, None
            self._pending = None
            for each in (target and target.discard, source and source.close):
                if each is not None:
                    attempt(each)

    def _open(self) -> None:
        host = self._host
        if self._is_followed and not host.source.is_there(_whole(self.topic)):
            raise Gone
        # First of all, for what is published from now on is kept for it.
        self._source = host.source.open_source(
            host.source.client, self.topic, host.subscription, self._wake.set
        )
        self._seen = self._sent = -1
        self._is_verified = host.admit(self.topic) or host.at_least_once

    def _forward(self) -> None:
        while not self._stopping:
            self._wake.clear()
            messages = self._source.take(MESSAGES_MAX)
            if not messages:
                if self._pending is not None:
                    self._settle()
                elif not self._stopping:
                    self._wake.wait()
                continue
            before = self._seen
            try:
                for batch in self._batches(messages):
                    self._send(batch)
            except (errors.PulsarException, _TryParts, ValueError, TypeError):
                self._settle()  # what is on its way in front of that
                raise
            if self._seen == before:  # all came once more, as after a lost connection
                self._settle()
                self._source.acknowledge(messages[-1])
        self._settle()

    def _batches(self, messages: list[Any]) -> Iterator[Batch]:
        """Split what follows one another where it cannot be one entry."""
        source, is_by_key = self._source, self._host.batching_type == BatchingType.KeyBased
        batch: Batch | None = None
        key, now_ms = "", system_clock().now_ms()
        for message in messages:
            try:
                sequence_id = source.sequence_of(message)
                _check_is_plain(message)
            except errors.OperationNotSupported:
                if batch is not None:
                    yield batch
                raise
            if sequence_id <= self._seen:
                continue
            deliver_at = source.deliver_at(message)
            if deliver_at <= now_ms:
                deliver_at = 0
            row = (message, source.key_of(message), message.ordering_key(), message.properties())
            version, size = message.int_schema_version(), _size_of(row)
            own_key = (row[2] or row[1] or "") if is_by_key else ""
            if (
                batch is None
                or deliver_at
                or batch.deliver_at
                or version != batch.schema_version
                or own_key != key
                or batch.size + size > self._bytes_max
                or not self._is_verified
            ):
                if batch is not None:
                    yield batch
                batch, key = Batch(message, version, deliver_at), own_key
            batch.add(row, sequence_id, size)
            self._seen = sequence_id
        if batch is not None:
            yield batch

    def _send(self, batch: Batch) -> None:
        if self._stopping:
            self._settle()
            raise _Left
        if self._target is None or batch.schema_version != self._version:
            self._settle()
            try:
                self._open_target(batch.schema_version)
            except errors.IncompatibleSchema as error:
                raise _named(batch, error) from error
        target = self._target
        last = batch.last
        if batch.sequence_ids[0] <= self._sent:
            # An attempt before has stored it, and did not acknowledge it.
            self._settle()
            batch.drop_to(self._sent)
            if not batch.rows:
                self._source.acknowledge(last)
                return
        try:
            if batch.deliver_at:
                self._settle()
            target.add(batch)
            self._settle()
            target.flush()
        except (errors.PulsarException, ValueError, TypeError) as error:
            raise _named(batch, error) from error
        self._pending, self._sent = batch, batch.sequence_ids[-1]
        if not self._is_verified:
            self._verify(batch)

    def _settle(self) -> None:
        """Wait until the batch on its way is stored, and acknowledge it. _Left: it is to stop, and
        there is no answer."""
        batch, target = self._pending, self._target
        if batch is None:
            return
        looks = 0
        while not target.is_answered(batch):
            self._wake.clear()
            if target.is_answered(batch):
                break
            if self._stopping:
                looks += 1
                if looks > (_LEAVING_LOOKS if target.is_connected else _AWAY_LOOKS):
                    raise _Left
            self._wake.wait(_LEAVING_SECONDS if self._stopping else None)
        self._pending = None
        try:
            target.confirm(batch)
        except errors.PulsarException as error:
            raise _named(batch, error) from error
        with self._lock:  # first, so that what has no lag is counted
            self._forwarded += len(batch.rows)
            self._error = None
        # A target that refused a batch for its size takes none of that size the next time either.
        if self._bytes_max == _ALONE and batch.sequence_ids[-1] >= self._parts_to:
            self._bytes_max = BYTES_MAX
        self._source.acknowledge(batch.last)

    def _open_target(self, version: int) -> None:
        """The target of a schema version of the source; -1: of none."""
        host = self._host
        target, self._target = self._target, None
        if target is not None:
            target.discard()
        schema = None if version < 0 else host.source.schema_of(self.topic, version)
        self._target = host.target.open_target(
            host.target.client,
            self.target_topic,
            host.producer_name(self.topic),
            schema,
            host.compression_type,
            self._wake.set,
        )
        self._version = version
        self._sent = max(self._sent, self._target.stored)
        self._is_verified = self._is_verified or self._target.stored >= 0

    def _verify(self, batch: Batch) -> None:
        """Ask a target that has told nothing whether it knows of the first message."""
        self._settle()
        self._open_target(self._version)
        if self._target.stored < batch.sequence_ids[-1]:
            raise errors.NotAllowedError(
                detail=f"the target {self.target_topic} does not deduplicate, so that messages "
                "might be stored twice: enable deduplication for it, give admin_url (--admin-url) "
                "to have it enabled, or choose at_least_once (--at-least-once)"
            )
        self._is_verified = True


def _check_is_plain(message: Any) -> None:
    """OperationNotSupported: it is encrypted."""
    if message.encryption_context() is not None:
        raise errors.OperationNotSupported(
            detail=f"message {message.message_id()} is encrypted, and the forwarder has no key"
        )


def _named(batch: Batch, error: Exception) -> Exception:
    """The same error, which says of which messages."""
    if len(batch.rows) > 1:
        if isinstance(error, errors.MessageTooBig):
            return _TryParts(max(batch.size // 2, _ALONE), batch.sequence_ids[-1])
        if isinstance(error, (errors.OperationNotSupported, ValueError, TypeError)):
            # Those in front of the one that is refused.
            return _TryParts(_ALONE, batch.sequence_ids[-1])
    detail = f"{batch}: {errors.detail_of(error)}"
    if isinstance(error, errors.PulsarException):
        try:
            made: Exception = type(error)(detail=detail)
        except TypeError:
            return error
        return made
    return ValueError(detail)


def _size_of(row: Row) -> int:
    message, key, ordering_key, properties = row
    size: int = _METADATA_MAX + message.length() + len(key or "") + len(ordering_key)
    for name, value in properties.items():
        size += _PROPERTY_MAX + len(name) + len(value)
    return size


def _whole(topic: str) -> str:
    from pulsarx.topic_name import TopicName

    return TopicName.of(topic).whole.full
