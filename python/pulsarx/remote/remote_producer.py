"""A producer whose broker is at the other end of a connection: batches here, is stored there."""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.publish.connection_publisher import ConnectionPublisher
from pulsarx._pycore.publish.producer_core import ProducerCore
from pulsarx.closing import Closing
from pulsarx.compression import compress
from pulsarx.producer import Producer
from pulsarx.wire.server_errors import error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pulsarx.clock import Clock
    from pulsarx.options.base import ProducerOptions
    from pulsarx.producing.producer_creation import Steps
    from pulsarx.remote.connection import Connection
    from pulsarx.topic_name import TopicName


class RemoteProducer(Producer):
    """A Producer whose entries go over a connection. Any thread may call."""

    def __init__(
        self,
        connection: Connection,
        entry: ProducerEntry,
        name: str,
        topic: TopicName,
        options: ProducerOptions,
        clock: Clock,
    ) -> None:
        """entry, name: as the broker has registered it."""
        self._entry = entry
        entry.publisher = ConnectionPublisher(
            partial(_send, connection, entry.number), connection.completions, topic.partition_index
        )
        self._name = name
        self._closing = Closing()
        ProducerCore.__init__(
            self,
            entry.publisher,
            options,
            self._name,
            str(topic),
            clock,
            compress,
            connection.message_size_max,
            connection.background,
        )

    def _take_leave(self) -> None:
        try:
            self.shut()
        except errors.AlreadyClosed:
            pass  # by its connection
        finally:
            self._entry.leave()


def remote_producer_steps(
    connection: Connection, topic: TopicName, options: ProducerOptions, clock: Clock
) -> Steps:
    """Register a producer with the broker. ProducerBusy: the name is taken on this topic."""
    entry = ProducerEntry(connection)
    try:
        values = connection.request(
            "PRODUCER",
            topic=str(topic),
            producer_id=entry.number,
            producer_name=options.producer_name,
            user_provided_name=options.producer_name is not None,
            metadata=[
                {"key": key, "value": value} for key, value in (options.properties or {}).items()
            ],
            access_mode=int(options.access_mode) or None,
        )
    except BaseException:
        entry.close()
        raise
    turn = values.get("turn")
    if turn is not None:
        try:
            yield turn
            values = turn.wait()
        except BaseException:
            entry.leave()
            raise
    made = RemoteProducer(connection, entry, values["producer_name"], topic, options, clock)
    made.resume_after(values["last_sequence_id"])
    return made


def _send(
    connection: Connection, number: int, sequence_id: int, message_count: int, entry: bytes
) -> None:
    connection.post(
        "SEND", entry, producer_id=number, sequence_id=sequence_id, num_messages=message_count
    )


class ProducerEntry:
    """What a connection knows of a producer, which it does not keep alive."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.publisher: ConnectionPublisher | None = None
        self.number = connection.add_producer(self)

    def told(self, name: str, values: dict[str, Any], _: bytes) -> None:
        publisher = self.publisher
        if publisher is None:
            return
        if name == "SEND_RECEIPT":
            place = values["message_id"]
            publisher.confirmed(values["sequence_id"], place["ledger_id"], place["entry_id"])
        elif name == "SEND_ERROR":
            error = error_of(values["error"], values["message"])
            if isinstance(error, errors.ProducerFenced):
                publisher.fence(values["message"])
            publisher.failed(values["sequence_id"], error)
        else:
            self.lost(errors.ConnectError("the broker closed the producer"))

    def lost(self, error: Exception) -> None:
        if self.publisher is not None:
            self.publisher.lost(error)

    def leave(self) -> None:
        """Tell the broker, and forget it."""
        try:
            self._connection.request("CLOSE_PRODUCER", producer_id=self.number)
        except (errors.AlreadyClosed, errors.ConnectError):
            pass  # the connection has ended, and the producer with it
        finally:
            self.close()

    def close(self) -> None:
        self._connection.forget_producer(self.number)
