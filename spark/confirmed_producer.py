"""Sends rows to a topic of a cluster so that what is stored of them is always all up to some row.

The official client may fail one message and store the next ones: it is too large, it was damaged
on its way, or all that waits fails because the producer is refused when it connects anew. Then
deduplication takes the row that is missing for a stored one, since the broker knows the highest
sequence id alone. So rows are sent in batches: each is one entry, stored as a whole or not at all,
and the next one is sent when the one before is confirmed.

A sequence id is  epoch (31 bits), row (27 bits), digest of all rows up to that one (5 bits).
It is all that a cluster keeps of a write. By the digest a repeated write is told that has other
rows; without it those would be taken for stored, and be nowhere.

All messages of a batch have the number of its last row as their sequence id: of a batch the client
tells the broker the id of the first message, or in older versions of the last.
"""

from __future__ import annotations

import zlib

from pulsarx import errors
from pulsarx.cluster import official
from pulsarx.results import Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx.message_id import MessageId

ROWS_MAX = 1000
BYTES_MAX = 128 << 10  # what a batch of the client holds
EPOCH_SHIFT = 32
_DIGEST_BITS = 5
_DIGEST_MASK = (1 << _DIGEST_BITS) - 1
_ROW_MAX = (1 << (EPOCH_SHIFT - _DIGEST_BITS)) - 1
_METADATA_MAX = 64  # bytes of a message besides its value, keys and properties, about
_NEVER_MS = (1 << 31) - 1
# How the producer is made: it sends a batch when it is flushed, and at no other time.
OPTIONS: dict[str, Any] = {
    "batching_enabled": True,
    "batching_max_messages": ROWS_MAX + 1,
    "batching_max_allowed_size_in_bytes": (1 << 31) - 1,
    "batching_max_publish_delay_ms": _NEVER_MS,
    # No limit: a batch that is too large does not give back its places in the client's queue.
    "max_pending_messages": 0,
}


class SentRows:
    """Tells how far the rows of one Spark partition in one topic have come, now and in an attempt
    before. Outlives the producers that send them. One thread."""

    __slots__ = ("_digest", "_epoch", "row", "stored", "stored_id")

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._digest = 0
        self.row: int = 0  # the last that was added; the first is 1
        self.stored: int = 0  # the last that the brokers are known to have
        self.stored_id: int = -1

    def next_id(self, payload: bytes | None, details: dict[str, Any]) -> int:
        """The sequence id of one row more. ValueError: there are too many."""
        if self.row == _ROW_MAX:
            raise ValueError(
                f"a Spark partition has at most {_ROW_MAX} rows for a topic partition where they "
                "are published once: repartition into more"
            )
        self.row += 1
        others = [each for name, each in sorted(details.items()) if name != "properties"]
        pairs = sorted((details["properties"] or {}).items())
        self._digest = zlib.crc32(repr((payload is None, others, pairs)).encode(), self._digest)
        self._digest = zlib.crc32(payload or b"", self._digest)
        return (self._epoch << EPOCH_SHIFT) | (self.row << _DIGEST_BITS) | self._own_digest()

    def _own_digest(self) -> int:
        return self._digest & _DIGEST_MASK

    def note_stored(self, sequence_id: int) -> None:
        """sequence_id: the highest that the brokers have of the producer, -1: none."""
        self.stored_id = sequence_id
        if sequence_id >> EPOCH_SHIFT == self._epoch:
            self.stored = (sequence_id & ((1 << EPOCH_SHIFT) - 1)) >> _DIGEST_BITS


class ConfirmedProducer:
    """Sends the rows of one Spark partition to one topic. One thread.

    Where batches end depends on the rows alone. So an attempt repeats the batch that an attempt
    before has on its way, and the broker drops one of them.
    """

    def __init__(
        self,
        create: Callable[[], Any],
        partition_id: int,
        sent: SentRows,
        max_message_size: int,
        is_key_based: bool,
    ) -> None:
        """create: a producer of OPTIONS and a name that nobody else uses; called with the first
        batch, so that a row which is refused before leaves nothing. max_message_size: for batches,
        too. is_key_based: messages of a batch have one key."""
        self._create = create
        self._producer: Any = None
        self._bytes_max = min(BYTES_MAX, max_message_size)
        self._is_key_based = is_key_based
        self._partition_id = partition_id
        self._sent = sent
        self._rows: list[_Row] = []  # of the next batch
        self._size = 0

    def add(self, row: int, payload: bytes | None, details: dict[str, Any]) -> None:
        """Send a row with the next batch, unless an attempt before has stored it.

        row: what errors call it. details: arguments of send_async. ValueError, TypeError,
        MessageTooBig and what sending fails with name the row; nothing behind it is stored then,
        and the producer must be discarded. NotAllowedError: other rows were stored before.
        """
        size = _size_of(payload, details)
        is_alone = details["deliver_at"] is not None  # the client puts it into no batch
        is_full = len(self._rows) == ROWS_MAX or self._size + size > self._bytes_max
        if is_alone or is_full or (self._is_key_based and self._is_of_another_key(details)):
            self._send_batch()
        number = self._sent.next_id(payload, details)
        self._rows.append(_Row(row, self._sent.row, number, payload, details))
        self._size += size
        if is_alone:
            self._send_batch()

    def _is_of_another_key(self, details: dict[str, Any]) -> bool:
        """By the key that brokers dispatch an entry by."""
        return bool(self._rows) and _sticky_key(details) != _sticky_key(self._rows[-1].details)

    def finish(self) -> None:
        """Return when all rows are stored. Closes the producer."""
        self._send_batch()
        if self._producer is not None:
            self._producer.close()

    def discard(self) -> None:
        """Close the producer. What is not stored yet is not sent any more."""
        self._rows = []
        if self._producer is not None:
            self._producer.discard()

    def _send_batch(self) -> None:
        rows, self._rows, self._size = self._rows, [], 0
        if not rows:
            return
        if self._producer is None:
            self._producer = self._create()
            self._sent.note_stored(self._producer.last_sequence_id())
        sent = self._sent
        for each in rows:
            if each.number == sent.stored and each.sequence_id != sent.stored_id:
                raise written_with_others(
                    f"{self._named([each])}: other rows are stored up to this one"
                )
        new = [each for each in rows if each.number > sent.stored]
        if not new:
            return
        if len(new) == len(rows):
            try:
                self._send(rows)
                return
            except errors.MessageTooBig:
                if len(rows) == 1:
                    raise
                # The brokers take less than that, and the client has sent nothing of it.
        for each in new:
            self._send([each])

    def _send(self, rows: list[_Row]) -> None:
        """Store rows as one entry."""
        results: list[Result] = []

        def told(result: Result, _: MessageId | None) -> None:
            results.append(result)

        last = rows[-1]
        for each in rows:
            try:
                self._producer.send_async(
                    each.payload, told, sequence_id=last.sequence_id, **each.details
                )
            except (ValueError, TypeError) as error:
                error.args = (f"{self._named([each])}: {errors.detail_of(error)}",)
                raise
        failure: errors.PulsarException | None = None
        # Where some have failed already, a flush would store the others without them.
        if all(result == Result.Ok for result in results):
            try:
                self._producer.flush()
            except errors.PulsarException as error:
                failure = error
        failed = next((each for each in results if each != Result.Ok), None)
        if failed is None and failure is None and len(results) == len(rows):
            self._sent.stored, self._sent.stored_id = last.number, last.sequence_id
            return
        named = self._named(rows)
        if failed == Result.MessageTooBig:
            raise errors.MessageTooBig(
                detail=f"{named}: with key and properties it has more bytes than the brokers take "
                "in a message, by their maxMessageSize. Nothing behind it was sent"
            )
        kind = type(failure).__name__ if failed is None else failed.name
        detail = "" if failure is None else f" ({errors.detail_of(failure)})"
        raise official.error_of(
            kind, f"{named}: it is not known to be stored{detail}. Nothing behind it was sent"
        ) from failure

    def _named(self, rows: list[_Row]) -> str:
        last = f" to {rows[-1].row}" if len(rows) > 1 else ""
        plural = "s" if last else ""
        return f"row{plural} {rows[0].row}{last} of Spark partition {self._partition_id}"


def written_with_others(text: str) -> errors.NotAllowedError:
    return errors.NotAllowedError(
        detail=f"{text}: an attempt before, or an earlier write of this version (of a stream: of "
        "this batch), was of other rows, or of the same in another order. Nothing of these was "
        "sent there. Give each write its own version; where a repeated one computes something "
        "else, as from the time or a random number, write at least once (without txnAppId or "
        "deduplicate). A stream that meets this goes on with a new checkpoint, and startingOffsets "
        "behind what the topic has"
    )


def _sticky_key(details: dict[str, Any]) -> str | None:
    found: str | None = details["ordering_key"] or details["partition_key"]
    return found


def _size_of(payload: bytes | None, details: dict[str, Any]) -> int:
    key, ordering_key = details["partition_key"] or "", details["ordering_key"] or ""
    size = _METADATA_MAX + len(payload or b"") + len(key) + len(ordering_key)
    for name, value in (details["properties"] or {}).items():
        size += len(name) + len(value or "")
    return size


class _Row:
    __slots__ = ("details", "number", "payload", "row", "sequence_id")

    def __init__(
        self,
        row: int,
        number: int,
        sequence_id: int,
        payload: bytes | None,
        details: dict[str, Any],
    ) -> None:
        self.row = row  # of the Spark partition, as errors name it
        self.number = number  # in the topic
        self.sequence_id = sequence_id
        self.payload = payload
        self.details = details
