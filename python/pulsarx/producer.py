"""A producer: what `Client.create_producer` returns.

TopicProducer publishes to one topic, PartitionedProducer to the partitions of one; here is what
they share, with the type of what they send.
"""

from __future__ import annotations

from pulsarx._pycore.ground.control_plane import control_plane
from pulsarx.ground.replaced_calls import in_subclass, replaceable
from pulsarx.schema.schema import T, Typed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import timedelta
    from typing import Any, Self

    from pulsarx.ground.owner import MemberOwner
    from pulsarx.message_id import MessageId
    from pulsarx.producing.message_builder import TypedMessageBuilder
    from pulsarx.schema.schema import Schema


@replaceable
class Producer(Typed[T]):
    """Publishes messages to one topic, or to the partitions of one. Any thread may call.

    A producer that is garbage-collected sends what it holds and unregisters, as `close()` does. One
    that has its topic to itself lives as long as its client, until it is closed.
    """

    owner: MemberOwner | None = None
    is_let_go = False  # its client keeps it no more

    @in_subclass
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
    ) -> MessageId:
        """Publish one message and return its MessageId once it is as durable as the client was
        opened for. None is a message without a value.

        An open batch goes out with it at once. Concurrent calls share one flush.
        Raises MessageTooBig, StorageFullError (nothing was stored), LedgerPoisonedError,
        AlreadyClosed.
        """
        raise NotImplementedError

    @in_subclass
    def send_async(
        self,
        content: T | None,
        callback: Callable[[Any, Any], object] | None,
        properties: dict[str, str] | None = None,
        partition_key: str | None = None,
        ordering_key: str | None = None,
        sequence_id: int | None = None,
        replication_clusters: list[str] | None = None,
        disable_replication: bool = False,
        event_timestamp: int | None = None,
        deliver_at: int | None = None,
        deliver_after: timedelta | None = None,
    ) -> None:
        """Publish one message without waiting; callback(result, message id) is called when it is
        durable, or with None for the id when it failed. With a callback a failure is reported to it
        and not raised; without one, an error found at once is raised."""
        raise NotImplementedError

    @in_subclass
    def send_many(
        self,
        payloads: Iterable[T | None],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
    ) -> list[MessageId]:
        """Publish a list of messages in order; returns their MessageIds when all are durable, as
        send. They form batches, batching enabled or not.

        keys, properties, event_timestamps: None, or a list as long, None where one has none. An
        error leaves published what came before, and says how many.
        """
        raise NotImplementedError

    @in_subclass
    def send_arrow(
        self,
        data: Any,
        value: str = "value",
        *,
        key: str | None = None,
        properties: str | None = None,
        event_time: str | None = None,
    ) -> MessageId | None:
        """Publish each row of a table in order; returns the MessageId of the last when all are as
        durable as after send, None when there is no row. Rows always form batches.

        data: anything with __arrow_c_stream__ or __arrow_c_array__ (PyArrow, Polars, DuckDB, ...).
        value, key, properties, event_time: names of columns. value: binary or string as the schema
        would have encoded it, null for a message without a value. key: binary or string, null or
        empty for none. event_time: timestamp, or int64 milliseconds. properties: map of strings.
        TypeError, ValueError: an unfit column, nothing was published. A bad row, MessageTooBig or a
        full disk leaves published what came before; a note of the error says how many rows.
        """
        raise NotImplementedError

    @in_subclass
    def send_columns(
        self, value: Any, *, key: Any = None, properties: Any = None, event_timestamp: Any = None
    ) -> MessageId | None:
        """Publish each element of NumPy arrays in order, as send_arrow; without PyArrow.

        value: bytes or str (dtypes S, U, StringDType or object, None in it for a message without a
        value), void, or rows of uint8. key: str or bytes; empty or None: no key. properties: dicts
        of str, or None, as `to_numpy` gives them. event_timestamp: datetime64, NaT for none, or
        integers: milliseconds since 1970. TypeError, ValueError: an unfit array, nothing was
        published.
        """
        raise NotImplementedError

    @in_subclass
    def use_schema(self, schema: Schema[Any]) -> None:
        """Encode what is sent from now on by another schema, which the topic must accept after the
        one before. Open batches go out first, so that each has one schema. Messages of several
        schemas are told apart by `Message.schema_version()`.

        IncompatibleSchema: the topic refuses it; ValueError: it is malformed. Nothing changes.
        """
        raise NotImplementedError

    def new_message(self) -> TypedMessageBuilder:
        """Return a message builder: its methods set the fields, its `send` publishes."""
        from pulsarx.producing.message_builder import TypedMessageBuilder

        return TypedMessageBuilder(self)

    @in_subclass
    def flush(self) -> None:
        """Send the open batches and wait until all messages sent are durable; raises when one
        failed."""
        raise NotImplementedError

    @in_subclass
    def topic(self) -> str:
        """Return the full name of the topic."""
        raise NotImplementedError

    @in_subclass
    def producer_name(self) -> str:
        """Return the given name, or the generated one: the same on every partition."""
        raise NotImplementedError

    @in_subclass
    def last_sequence_id(self) -> int:
        """Return the sequence id of the last confirmed message; on a partitioned topic the highest;
        -1 when none was."""
        raise NotImplementedError

    @in_subclass
    def is_connected(self) -> bool:
        """Tell whether the producer can still be used."""
        raise NotImplementedError

    @in_subclass
    def close(self) -> None:
        """Send the open batches, wait until they are durable and unregister. A second call raises
        AlreadyClosed, unless the first was interrupted or the client closed it."""
        raise NotImplementedError

    def let_go(self) -> None:
        """Live no longer than its user wants: it was closed, or fenced."""
        if self.owner is not None:
            self.owner.let_go(self)

    def close_with_client(self) -> None:
        """Like close, when the client closes. A call of the control plane."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_connected():
            self.close()

    def _repr_html_(self) -> str:
        """Show the producer in a notebook."""
        control_plane.load("pulsarx.tables.notebook")
        from pulsarx.tables.notebook import facts_html

        facts = {
            "topic": self.topic(),
            "name": self.producer_name(),
            "last sequence id": self.last_sequence_id(),
            "open": self.is_connected(),
        }
        return facts_html("Producer", facts)
