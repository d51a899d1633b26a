"""A producer: what `Client.create_producer` returns.

TopicProducer publishes to one topic, PartitionedProducer to the partitions of one; here is what
they share, with the type of what they send.
"""

from __future__ import annotations

from pulsarx import errors
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
        *,
        transaction: Any = None,
    ) -> MessageId:
        """Publish one message and wait until it is as durable as the client was opened for.

        An open batch goes out with it at once. Concurrent calls share one flush. From within
        another call of this producer in the same thread (a finalizer, a signal handler) it cannot
        wait: the message goes out behind that call, its id is not known, and what it fails with is
        told by the next flush.

        Args:
            content: The value, as the schema takes it: bytes without one. None is a message without
                a value.
            properties: Names and values of the application.
            partition_key: Selects the partition and, on Key_Shared, the consumer; compaction keeps
                the last message of each.
            ordering_key: Selects the consumer on Key_Shared in place of the key.
            sequence_id: Its number, with which deduplication knows it again; None: the next one.
            replication_clusters: Kept with the message, and without effect.
            disable_replication: Kept with the message, and without effect.
            event_timestamp: Its time for the application, in milliseconds since 1970.
            deliver_at: The time before which Shared and Key_Shared subscriptions do not get it, in
                milliseconds since 1970.
            deliver_after: How much later than now they get it.
            transaction: What it belongs to: it is seen when that is committed. None: it counts by
                itself.

        Returns:
            The id of the message; (-1,-1,-1,-1) of one that deduplication has not stored again.

        Raises:
            MessageTooBig: It is larger than max_message_size; nothing was stored.
            StorageFullError: There is no room; nothing was stored.
            LedgerPoisonedError: A flush failed: it may be stored or not, and the topic takes no
                more until the folder is closed and opened again.
            Timeout: It was not durable within send_timeout_millis; it may be stored all the same.
            ProducerQueueIsFull: max_pending_messages are on their way, and block_if_queue_full is
                off.
            MemoryBufferIsFull: memory_limit_bytes of the client are on their way, and
                block_if_queue_full is off.
            ProducerFenced: Another producer has taken the topic to itself.
            TopicTerminated: The topic takes no more messages.
            ProducerBlockedQuotaExceededException: The backlog is above its quota, whose policy
                refuses messages.
            NotAllowedError: deliver_at or deliver_after are further ahead than the topic allows; or
                a transaction is given, and the topic keeps no messages or is in another folder.
            CryptoError: It cannot be encrypted.
            TypeError: The schema does not take the content.
            ValueError: An argument is of the wrong type, or the schema refuses the value.
            InvalidTxnStatusError: The transaction has ended.
            InterruptedByKeyboard: Ctrl-C was pressed; the message may be stored.
            AlreadyClosed: The producer is closed, as by the deletion of its topic.

        Durability:
            When it returns the message is on the device with durability `sync`, and written with
            `interval` and `os`: a kill does not lose it. In a transaction it is written, and
            on the device when that is committed at the latest.

        Example:
            message_id = producer.send(b"one", {"source": "shop"}, partition_key="ada")
            print(message_id.to_text())
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
        *,
        transaction: Any = None,
    ) -> None:
        """Publish one message without waiting until it is durable.

        Args:
            content: The value, as the schema takes it: bytes without one. None is a message without
                a value.
            callback: Called with a Result and the message id in a thread of the library when the
                message is durable, or with the reason and None when it failed, in the order of
                sending. None: nobody is told; flush and close raise what failed.
            properties: Names and values of the application.
            partition_key: Selects the partition and, on Key_Shared, the consumer; compaction keeps
                the last message of each.
            ordering_key: Selects the consumer on Key_Shared in place of the key.
            sequence_id: Its number, with which deduplication knows it again; None: the next one.
            replication_clusters: Kept with the message, and without effect.
            disable_replication: Kept with the message, and without effect.
            event_timestamp: Its time for the application, in milliseconds since 1970.
            deliver_at: The time before which Shared and Key_Shared subscriptions do not get it, in
                milliseconds since 1970.
            deliver_after: How much later than now they get it.
            transaction: What it belongs to: it is seen when that is committed. None: it counts by
                itself.

        Raises:
            ProducerQueueIsFull: max_pending_messages are on their way, and block_if_queue_full is
                off. With a callback it is told, as are the next five.
            MemoryBufferIsFull: memory_limit_bytes of the client are on their way, and
                block_if_queue_full is off.
            MessageTooBig: It is larger than max_message_size.
            ProducerFenced: Another producer has taken the topic to itself.
            TopicTerminated: The topic takes no more messages.
            AlreadyClosed: The producer is closed.
            TypeError: The schema does not take the content, or callback cannot be called.
            ValueError: An argument is of the wrong type, or the schema refuses the value.

        Durability:
            As after send when the callback is told `Result.Ok`, or flush returns. Until then a kill
            may lose it; close, and the end of the interpreter, send it.

        Example:
            def stored(result, message_id):
                print(result, message_id)

            producer.send_async(b"one", stored, partition_key="ada")
            producer.flush()
        """
        raise NotImplementedError

    @in_subclass
    def send_many(
        self,
        payloads: Iterable[T | None],
        *,
        keys: Sequence[str | None] | None = None,
        properties: Sequence[dict[str, str] | None] | None = None,
        event_timestamps: Sequence[int | None] | None = None,
        transaction: Any = None,
    ) -> list[MessageId]:
        """Publish a list of messages in order. They form batches, batching enabled or not; of
        partitions, those without a key go round in runs of batching_max_messages.

        Args:
            payloads: The values, as send takes them; None is a message without one.
            keys: A list as long, None where a message has none; None: no message has one.
            properties: As keys, of the properties.
            event_timestamps: As keys, of the event times in milliseconds since 1970.
            transaction: What all of them belong to; None: they count by themselves.

        Returns:
            The ids, in the order of the payloads.

        Raises:
            MessageTooBig: A message is too large. What came before it is published; a note says how
                many, as with the next ones.
            StorageFullError: There is no room.
            LedgerPoisonedError: As send.
            Timeout: As send.
            TypeError: The schema does not take a value.
            ValueError: A list is not as long as payloads, or the schema refuses a value.
            AlreadyClosed: The producer is closed.

        Durability:
            All messages are as durable as after send when it returns.

        Example:
            ids = producer.send_many([b"one", b"two"], keys=["ada", "bob"])
            assert len(ids) == 2
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
        """Publish each row of a table in order, on a partitioned topic in that of each partition.
        Rows always form batches; other threads may publish between two record batches.

        Args:
            data: Anything with __arrow_c_stream__ or __arrow_c_array__ (PyArrow, Polars, DuckDB,
                ...).
            value: The column of the values: binary or string as the schema would have encoded it,
                null for a message without a value.
            key: The column of the keys: binary or string, null or empty for none.
            properties: The column of the properties: map of strings.
            event_time: The column of the event times: timestamp, or int64 milliseconds since 1970.

        Returns:
            The id of the last message; None when there is no row.

        Raises:
            TypeError: A column is of an unfit type; nothing was published.
            ValueError: There is no such column, nothing was published; or a row is bad, and those
                before it are published, as a note says.
            MessageTooBig: A row is too large; those before it are published, as a note says.
            StorageFullError: There is no room; rows before are published, as a note says.
            OperationNotSupported: The producer has interceptors or a message_router.
            AlreadyClosed: The producer is closed.

        Durability:
            All rows are as durable as after send when it returns.
        """
        raise NotImplementedError

    @in_subclass
    def send_columns(
        self, value: Any, *, key: Any = None, properties: Any = None, event_timestamp: Any = None
    ) -> MessageId | None:
        """Publish each element of NumPy arrays in order, as send_arrow; without PyArrow.

        Args:
            value: bytes or str (dtypes S, U, StringDType or object, None in it for a message
                without a value), void, or rows of uint8.
            key: str or bytes; empty or None: no key.
            properties: Dicts of str, or None, as `to_numpy` gives them.
            event_timestamp: datetime64, NaT for none, or integers: milliseconds since 1970.

        Returns:
            The id of the last message; None when there is none.

        Raises:
            TypeError: An array is of an unfit type; nothing was published.
            ValueError: An array has another length or several dimensions, nothing was published.
            MessageTooBig: As send_arrow.
            StorageFullError: As send_arrow.
            OperationNotSupported: As send_arrow.
            AlreadyClosed: The producer is closed.

        Durability:
            As send_arrow.
        """
        raise NotImplementedError

    @in_subclass
    def use_schema(self, schema: Schema[Any]) -> None:
        """Encode what is sent from now on by another schema, which the topic must accept after the
        one before.

        Open batches go out first, so that each has one schema. Messages of several schemas are told
        apart by `Message.schema_version()`.

        Args:
            schema: The new one.

        Raises:
            IncompatibleSchema: The topic refuses it; nothing changes.
            ValueError: It is malformed, or no schema to write with; nothing changes.
            AlreadyClosed: The producer is closed.

        Durability:
            The schema is on the device when this returns.
        """
        raise NotImplementedError

    def new_message(self) -> TypedMessageBuilder:
        """Return a message builder: its methods set the fields, its `send` publishes."""
        from pulsarx.producing.message_builder import TypedMessageBuilder

        return TypedMessageBuilder(self)

    @in_subclass
    def flush(self) -> None:
        """Send the open batches and wait until all messages sent are durable. Their callbacks have
        run then, too.

        Raises:
            LedgerPoisonedError: A flush failed, so what is on disk is unknown.
            StorageFullError: A message that was sent before was not stored.
            Timeout: A message was not durable within send_timeout_millis.
            InterruptedByKeyboard: Ctrl-C was pressed.
            AlreadyClosed: The producer is closed.

        Durability:
            Everything that was sent before is as durable as after send when it returns.

        Example:
            for number in range(100):
                producer.send_async(b"%d" % number, None)
            producer.flush()
        """
        raise NotImplementedError

    def cancel(self, message_id: MessageId) -> list[str]:
        """Cancel a delayed message before it is due, for each subscription that has not got it: it
        counts as acknowledged, and is not delivered after the call.

        Args:
            message_id: What send returned. The id of a batch means all its messages.

        Returns:
            The subscriptions for which it was cancelled. For the others it is too late; those that
            are created later are not meant.

        Raises:
            NotAllowedError: It is due, delivered or acknowledged already, for every subscription;
                it was published without a delay; or there is no such message.
            OperationNotSupported: The topic is non-persistent, or of a cluster.
            AlreadyClosed: The producer is closed.

        Durability:
            It is on the device when this returns.

        Example:
            from datetime import timedelta

            reminder = producer.send(b"pay", deliver_after=timedelta(days=3))
            producer.cancel(reminder)
        """
        if self.owner is None or not self.is_connected():
            raise errors.AlreadyClosed(detail=f"cancel {message_id}: the producer is closed")
        arguments = {"topic": self.topic(), "message_id": message_id.to_text()}
        found: list[str] = self.owner.ask("topics.cancel_message", arguments)
        return found

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
        """Send the open batches, wait until they are durable and unregister.

        Raises:
            AlreadyClosed: A second call, unless the first was interrupted or the client closed it.
            LedgerPoisonedError: A flush failed, so what is on disk is unknown.
            StorageFullError: What was open was not stored.

        Durability:
            Everything that was sent is as durable as after send when it returns.

        Example:
            producer.send_async(b"one", None)
            producer.close()
        """
        raise NotImplementedError

    def let_go(self) -> None:
        """Live no longer than its user wants: it was closed, or fenced."""
        if self.owner is not None:
            self.owner.let_go(self)

    def close_with_client(self) -> None:
        """Close it like close, when the client closes. A call of the control plane."""
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
