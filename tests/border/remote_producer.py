"""A producer whose broker is at the other end of a connection: batches here, is stored there."""

from __future__ import annotations

from pulsarx import errors
from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx._pycore.ground.owner_link import OwnerLink
from pulsarx._pycore.publish.connection_publisher import ConnectionPublisher
from pulsarx._pycore.publish.producer_core import ProducerCore
from pulsarx._pycore.wire.hot_commands import send_encode
from pulsarx.compression import compress
from pulsarx.ground.closing import Closing
from pulsarx.producing.producer_schema import check_producer_schema
from pulsarx.producing.topic_producer import TopicProducer
from pulsarx.schema.schema import BytesSchema, declared_info
from pulsarx.wire.message_ids import places_in
from pulsarx.wire.schemas import schema_values
from pulsarx.wire.server_errors import error_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from client_connection import ClientConnection

    from pulsarx.clock import Clock
    from pulsarx.options.members import ProducerOptions
    from pulsarx.producing.producer_creation import Steps
    from pulsarx.schema.schema import Schema, SchemaInfo
    from pulsarx.topic_name import TopicName


CLOSED_THERE = "the producer was closed by the broker: its topic was deleted, or the broker closes"


class RemoteProducer(TopicProducer):
    """A Producer whose entries go over a connection. Any thread may call."""

    def __init__(
        self,
        connection: ClientConnection,
        entry: ProducerEntry,
        values: dict[str, Any],
        topic: TopicName,
        options: ProducerOptions,
        clock: Clock,
    ) -> None:
        """values: what the broker answered when it had registered it."""
        self._entry = entry
        publisher = ConnectionPublisher(connection.completions, topic.partition_index, send_encode)
        publisher.resume(OwnerLink(-1, connection._write), entry.number, [])
        entry.publisher = publisher
        if not entry.is_there():  # it was closed before it could be told
            publisher.lost(errors.AlreadyClosed(detail=CLOSED_THERE))
        self._name = values["producer_name"]
        self._closing = Closing()
        ProducerCore.__init__(
            self,
            publisher,
            options,
            self._name,
            str(topic),
            clock,
            compress,
            connection.message_size_max,
            connection.background,
        )
        self._connection = connection
        if options.schema_info is not None:
            version = values["schema_version"] or None
            self.encode_by(options.schema, options.schema_is_bytes, version)

    def use_schema(self, schema: Schema[Any]) -> None:
        check_producer_schema(schema)
        info = declared_info(schema)
        self.require_open()
        version = None
        if info is not None:
            values = control_plane.perform(self._register, (info,))
            version = values["schema_version"] or None
        self.encode_by(schema, type(schema) is BytesSchema, version)

    def _register(self, info: SchemaInfo) -> dict[str, Any]:
        return self._connection.request(
            "GET_OR_CREATE_SCHEMA", topic=self.topic_name, schema=schema_values(info)
        )

    @property
    def is_open(self) -> bool:
        return ProducerCore.is_open.__get__(self) and self._entry.is_there()

    def _take_leave(self) -> None:
        self.let_go()
        try:
            self.shut()
        except errors.AlreadyClosed:
            pass  # by its connection, or the broker
        finally:
            self._entry.leave()


def remote_producer_steps(
    connection: ClientConnection, topic: TopicName, options: ProducerOptions, clock: Clock
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
            schema=None if options.schema_info is None else schema_values(options.schema_info),
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
    made = RemoteProducer(connection, entry, values, topic, options, clock)
    made.resume_after(values["last_sequence_id"])
    return made


class ProducerEntry:
    """What a connection knows of a producer, which it does not keep alive."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.publisher: ConnectionPublisher | None = None
        self.number = connection.add_producer(self)

    def told(self, name: str, values: dict[str, Any], _: bytes) -> None:
        publisher = self.publisher
        if name == "CLOSE_PRODUCER":
            self.close()  # first: what is sent from now on is refused
            self.lost(errors.AlreadyClosed(detail=CLOSED_THERE))
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
            if isinstance(error, errors.ProducerFenced):
                publisher.fence(values["message"])
            publisher.failed(values["sequence_id"], error)

    def lost(self, error: Exception) -> None:
        if self.publisher is not None:
            self.publisher.lost(error)

    def is_there(self) -> bool:
        """Whether neither its user nor the broker closed it."""
        return self._connection.has_producer(self.number)

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
