"""The target of one topic or partition: stores batches, each as one entry, one at a time.

What deduplication tells is the highest sequence id that is stored, and not what is missing in
front of it. The official client may fail one entry and store the next, so an entry is sent when
the one before is confirmed. Meanwhile the messages of the next one are added to the client's batch,
which is sent by a flush and at no other time: that is where the time goes, and so nothing is lost
by it as long as an answer takes no longer.

All messages of a batch for a cluster have the id of its last one, for the client tells the broker
that of the first alone. That a batch was sent whole is told by the index of its last message.
"""

from __future__ import annotations

from functools import partial

from pulsarx import errors
from pulsarx._pycore.publish.outgoing_message import BytesKey
from pulsarx.cluster import official
from pulsarx.cluster.handle import native_of
from pulsarx.forwarding.passed_schema import passed_schema
from pulsarx.results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.client import Client
    from pulsarx.enumerations import CompressionType
    from pulsarx.schema.schema import SchemaInfo

    # A message, its key, its ordering key and its properties.
    Row = tuple[Any, str | None, str, dict[str, str]]

MESSAGES_MAX = 2000  # of a batch
BYTES_MAX = 1 << 20  # of a batch
_NEVER_MS = (1 << 31) - 1
_OPTIONS: dict[str, Any] = {
    "batching_enabled": True,
    "batching_max_messages": MESSAGES_MAX + 1,
    "batching_max_allowed_size_in_bytes": (1 << 31) - 1,
    "batching_max_publish_delay_ms": _NEVER_MS,
    "send_timeout_millis": 0,
    # No limit: a batch that is too large does not give back its places in the client's queue.
    "max_pending_messages": 0,
}
_NO_BYTES_KEY = (
    "its key is bytes, and the official client sends text alone; it would be another key at the "
    "target"
)


class Batch:
    """Messages that are stored as one entry. sequence_ids: of each."""

    __slots__ = (
        "answer", "deliver_at", "first", "rows", "schema_version", "sequence_ids", "size",
    )  # fmt: skip

    def __init__(self, first: Any, schema_version: int, deliver_at: int) -> None:
        """deliver_at: 0, or that of its only message."""
        self.first: Any = first
        self.rows: list[Row] = []
        self.sequence_ids: list[int] = []
        self.schema_version: int = schema_version
        self.deliver_at: int = deliver_at
        self.size: int = 0
        # What the official client said: the result, and the index of the last message.
        self.answer: tuple[Any, int] | None = None

    @property
    def last(self) -> Any:
        """The last message."""
        return self.rows[-1][0]

    def add(self, row: Row, sequence_id: int, size: int) -> None:
        self.rows.append(row)
        self.sequence_ids.append(sequence_id)
        self.size += size

    def drop_to(self, sequence_id: int) -> None:
        """Leave out what is stored."""
        left = sum(1 for each in self.sequence_ids if each <= sequence_id)
        self.rows = self.rows[left:]
        self.sequence_ids = self.sequence_ids[left:]

    def __str__(self) -> str:
        first, last = self.first.message_id(), self.last.message_id()
        count = len(self.rows)
        return f"message {first}" if count == 1 else f"messages {first} to {last}"


class MissingInBatch(errors.DataLossError):
    """A target has stored the end of a batch alone."""


class FolderTarget:
    """A producer of a folder. One thread."""

    def __init__(
        self,
        client: Client,
        topic: str,
        name: str,
        schema: SchemaInfo | None,
        compression: CompressionType,
        wake: Callable[[], object],
    ) -> None:
        self._where = topic
        self._producer: Any = client.create_producer(
            topic,
            producer_name=name,
            schema=passed_schema(schema),
            compression_type=compression,
            **_OPTIONS,
        )
        self.stored: int = self._producer.last_sequence_id()

    def add(self, batch: Batch) -> None:
        send = self._producer.send_async
        for row, sequence_id in zip(batch.rows, batch.sequence_ids, strict=True):
            message, key, ordering_key, properties = row
            send(
                None if message.has_null_value() else message.data(),
                None,
                properties or None,
                key,
                ordering_key or None,
                sequence_id,
                event_timestamp=message.event_timestamp() or None,
                deliver_at=batch.deliver_at or None,
            )

    def flush(self) -> None:
        """Store what was added. Raises what it fails with."""
        self._producer.flush()

    def is_answered(self, batch: Batch) -> bool:
        return True

    def confirm(self, batch: Batch) -> None:
        """Take note that a batch is stored: flush has returned."""

    @property
    def is_connected(self) -> bool:
        return bool(self._producer.is_connected())

    def discard(self) -> None:
        """Close. What was added is stored, as far as it can be; it is not sent again."""
        self._producer.close()


class ClusterTarget:
    """A producer of a cluster. One thread; answers come in one of the official client."""

    def __init__(
        self,
        client: Client,
        topic: str,
        name: str,
        schema: SchemaInfo | None,
        compression: CompressionType,
        wake: Callable[[], object],
    ) -> None:
        """wake: called when the batch on its way is answered."""
        self._where = topic
        self._wake = wake
        self._builder = official.native().MessageBuilder
        self._producer: Any = client.create_producer(
            topic,
            producer_name=name,
            schema=passed_schema(schema),
            compression_type=compression,
            **_OPTIONS,
        )
        self._native: Any = native_of(self._producer)
        self.stored: int = self._producer.last_sequence_id()

    def is_answered(self, batch: Batch) -> bool:
        return batch.answer is not None

    def add(self, batch: Batch) -> None:
        """A delayed message is sent at once; while another batch is on its way there is none."""
        official.call(self._where, self._add, batch)

    def _add(self, batch: Batch) -> None:
        send, builder_of, last = self._native.send_async, self._builder, batch.last
        sequence_id = batch.sequence_ids[-1]
        for message, key, ordering_key, properties in batch.rows:
            builder = builder_of()
            if message.has_null_value():
                builder.set_null_value()
            else:
                builder.content(message.data())
            if key is not None:
                builder.partition_key(_text_key(key))
            for name, value in properties.items():
                builder.property(name, value)
            if ordering_key:
                builder.ordering_key(ordering_key)
            event_timestamp = message.event_timestamp()
            if event_timestamp:
                builder.event_timestamp(event_timestamp)
            if batch.deliver_at:
                builder.deliver_at(batch.deliver_at)
            builder.sequence_id(sequence_id)
            send(builder.build(), partial(self._told, batch) if message is last else None)

    def flush(self) -> None:
        """Send what was added."""
        official.call(self._where, self._native.flush_async, _ignore)

    def _told(self, batch: Batch, result: Any, native_id: Any) -> None:
        batch.answer = (result, native_id.batch_index())
        self._wake()

    def confirm(self, batch: Batch) -> None:
        """Raise what a batch failed with that is answered. MissingInBatch: not all of it was
        sent."""
        assert batch.answer is not None
        result, index = batch.answer
        found = official.result_of(result)
        if found != Result.Ok:
            raise official.error_of_result(result, f"send to {self._where}")
        count = len(batch.rows)
        if count > 1 and index != count - 1:
            raise MissingInBatch(
                detail=f"of {batch} the last {index + 1} of {count} are stored in {self._where}, "
                "and the ones before are not: the producer was refused while they were added"
            )

    @property
    def is_connected(self) -> bool:
        return bool(self._native.is_connected())

    def discard(self) -> None:
        """Close without sending what was added. What is on its way may be stored, or not."""
        self._producer.discard()


def _text_key(key: str) -> str:
    """OperationNotSupported: the official client has no such key."""
    if isinstance(key, BytesKey):
        raise errors.OperationNotSupported(detail=_NO_BYTES_KEY)
    if not key:
        raise errors.OperationNotSupported(
            detail="its key is empty, and the official client sends no such key"
        )
    return key


def _ignore(*_: object) -> None:
    """The answer to a flush; that of the batch tells more."""
