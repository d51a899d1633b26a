"""A client whose broker is at the other end of a connection."""

from __future__ import annotations

from remote_consumer import RemoteConsumer
from remote_producer import remote_producer_steps
from remote_receiver import (
    RemoteReceiver,
    not_over_a_connection,
    seek_fields,
    start_data,
)

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.open_state import OpenState
from pulsarx._pycore.ground.when_forgotten import WhenForgotten
from pulsarx.client import Client
from pulsarx.clock import ManualClock, system_clock
from pulsarx.enumerations import ConsumerCryptoFailureAction
from pulsarx.ground.attempt import attempt
from pulsarx.ground.client_owner import give_back, take_back
from pulsarx.producing.producer_creation import ProducerCreation
from pulsarx.randomness import Randomness
from pulsarx.reader import Reader
from pulsarx.topic_name import TopicName
from pulsarx.wire import commands

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from client_connection import ClientConnection

    from pulsarx.admin import Admin
    from pulsarx.consumer import Consumer
    from pulsarx.listening.listener_pool import ListenerPool
    from pulsarx.message_id import MessageId
    from pulsarx.options.base import ClientOptions
    from pulsarx.options.members import ConsumerOptions, ProducerOptions, ReaderOptions

    Connect = Callable[[ClientOptions], ClientConnection]


class RemoteClient(Client):
    """A Client that speaks to its broker over a connection. Any thread may use it.

    Not supported yet, and refused: partitioned topics, several topics, dead and retry letters, the
    acknowledgement timeout, consumer events, columns.
    """

    def __init__(self, *arguments: Any, connect: Connect, **options: Any) -> None:
        """connect: makes the connection, which is closed with the client. The rest is Client's."""
        self._connect = connect
        super().__init__(*arguments, **options)

    def _open(self, options: ClientOptions) -> None:
        self._state = OpenState("client")
        self._clock = options.clock or system_clock()
        self._randomness = options.randomness or Randomness()
        self._connection = self._connect(options)
        self._connection.open()
        forgotten = WhenForgotten(control_plane.post, Hang(self._connection, self._pool))
        connected: Any = Connected(self._connection)
        self._owner.opened(connected, forgotten)
        if isinstance(options.clock, ManualClock):
            for each in (
                self._pool,
                self._connection.completions.jobs,
                self._connection.completions.timeouts,
                self._connection.background,
            ):
                options.clock.settles(each)

    def _create_producer(self, options: ProducerOptions) -> Any:
        if options.interceptors is not None:
            raise not_over_a_connection("interceptors")
        if options.encrypts:
            raise not_over_a_connection("encryption")
        self._limit_memory(options)
        topic = self._topic(options.topic)
        steps = remote_producer_steps(self._connection, topic, options, self._clock)
        return self._owner.advance(ProducerCreation(steps, control_plane.post))

    def _subscribe(self, options: ConsumerOptions) -> Consumer:
        _refuse_what_is_missing(options)
        topic = self._topic(str(options.topic))
        self._consumer_count += 1
        name = options.consumer_name or f"{self._consumer_count:x}-{self._randomness.token(5)}"
        consumer = RemoteConsumer(self._connection, topic, options, name, self._pool, self._clock)
        consumer.attach()
        return self._take_over(consumer, take_back)

    def _create_reader(self, options: ReaderOptions) -> Reader:
        if options.is_read_compacted:
            raise not_over_a_connection("reading a compacted topic")
        if _decrypts(options):
            raise not_over_a_connection("encryption")
        topic = self._topic(options.topic)
        prefix = options.subscription_role_prefix or "reader"
        receiver = RemoteReceiver(
            self._connection,
            topic,
            options.schema,
            options.receiver_queue_size,
            {
                "subscription": f"{prefix}-{self._randomness.token(10)}",
                "type": commands.EXCLUSIVE,
                "durable": False,
                "start_message_id": start_data(
                    options.start_message_id, options.start_message_id_inclusive
                ),
                "subscription_properties": [
                    {"key": "jms.selector", "value": each} for each in [options.selector] if each
                ],
            },
        )
        receiver.attach()
        cursor: Any = RemoteCursor(str(topic), receiver)
        core: Any = receiver
        reader = Reader(core, cursor, str(topic), options, self._pool)
        return self._take_over(reader, give_back)

    def _topic(self, name: str) -> TopicName:
        """OperationNotSupported: it has partitions."""
        topic = TopicName.of(name)
        self._connection.background.wait()  # for what was forgotten and is being closed there
        if self._partition_count(topic, create=True):
            raise not_over_a_connection(f"the partitioned topic {topic}")
        return topic

    def _partition_count(self, topic: TopicName, create: bool) -> int:
        values = self._connection.request(
            "PARTITIONED_METADATA", topic=str(topic), auto_creation_enabled=create
        )
        return int(values["partitions"])

    def _topic_partitions(self, name: TopicName) -> list[str]:
        try:
            count = self._partition_count(name, create=False)
        except errors.TopicNotFound:
            count = 0
        return [str(name.partition(index)) for index in range(count)] or [str(name)]

    @property
    def admin(self) -> Admin:
        from pulsarx.admin import Admin

        self._require_open()
        return Admin(ConnectionChannel(self, self._connection))

    def _take_leave(self) -> None:
        failure = self._close_members()
        self._owner.forgotten.cancel()
        failure = attempt(Hang(self._connection, self._pool)) or failure
        if failure is not None:
            raise failure


PENDING_CHUNKED = 10  # as the official client has it, and the broker
CHUNKED_EXPIRY_MS = 60_000


def _decrypts(options: ConsumerOptions | ReaderOptions) -> bool:
    """Whether encrypted messages are to be treated in another way than an error."""
    return (
        options.crypto_key_reader is not None
        or options.crypto_failure_action != ConsumerCryptoFailureAction.FAIL
    )


def _refuse_what_is_missing(options: ConsumerOptions) -> None:
    missing = {
        "several topics": not isinstance(options.topic, str),  # a list, or a pattern
        "reading a compacted topic": options.is_read_compacted,
        "retry letters": options.retry_enable,
        "dead letters": options.dead_letter_policy is not None,
        "unacked_messages_timeout_ms": bool(options.unacked_messages_timeout_ms),
        "interceptors": options.interceptors is not None,
        "encryption": _decrypts(options),
        # The broker puts messages together that are in chunks, and the protocol has no word for it.
        "max_pending_chunked_message": options.max_pending_chunked_message != PENDING_CHUNKED,
        "auto_ack_oldest_chunked_message_on_queue_full": (
            options.auto_ack_oldest_chunked_message_on_queue_full
        ),
        "expire_time_of_incomplete_chunked_message_ms": (
            options.expire_time_of_incomplete_chunked_message_ms != CHUNKED_EXPIRY_MS
        ),
    }
    for what, is_asked in missing.items():
        if is_asked:
            raise not_over_a_connection(what)


class Connected:
    """What a ClientOwner needs of the broker at the other end."""

    def __init__(self, connection: ClientConnection) -> None:
        self.runs_callbacks_here = connection.completions.jobs.runs_here


class Hang:
    """Ends the connection of a client. A job; it does not refer to the client."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, connection: ClientConnection, pool: ListenerPool) -> None:
        self._connection = connection
        self._pool = pool

    def __call__(self) -> None:
        if not self._connection.is_forked:
            self._connection.close()
            self._pool.close()


class ConnectionChannel:
    """A Channel of admin over the connection of a client, which it keeps. Any thread may call."""

    def __init__(self, client: RemoteClient, connection: ClientConnection) -> None:
        self._client = client
        self._connection = connection

    def perform(self, verb: str, arguments: dict[str, Any]) -> Any:
        self._client._require_open()
        return control_plane.perform(self._connection.perform, (verb, arguments))


class RemoteCursor:
    """What a Reader needs of its topic: where ids and times are, and moving there. A position is
    what SEEK says."""

    def __init__(self, topic: str, receiver: RemoteReceiver) -> None:
        self.name = topic
        self.topic = self  # and its ledgers
        self.positions = self
        self._receiver = receiver

    def end(self) -> None:
        """It has nothing mapped."""

    def last_message_id(self) -> MessageId:
        return self._receiver.last_message_id()

    def position_of(self, message_id: MessageId, inclusive: bool) -> dict[str, Any]:
        return seek_fields(message_id, inclusive)

    def position_at_time(self, publish_time_ms: int) -> dict[str, Any]:
        return seek_fields(publish_time_ms, True)

    def seek(self, position: dict[str, Any]) -> None:
        self._receiver.seek_to(position)
