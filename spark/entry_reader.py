"""Reads ranges of entries of a cluster's topics through the official client. Runs in workers.

The client does not tell why an entry does not come: retention removed it, it is the cluster's own
(a marker, an aborted transaction), part of a message in chunks, encrypted, of a transaction that is
open, or the brokers are slow. So the admin API is asked for each one that is missing, and only what
nobody can read is passed over. What is there and does not come is an error, whatever
failOnDataLoss says: it is not lost.
"""

from __future__ import annotations

import logging

import pyarrow as pa

from pulsarx import errors
from pulsarx.message_id import MessageId
from pulsarx.spark.cluster_access import topic_path
from pulsarx.spark.topic_columns import read_schema
from pulsarx.spark.value_format import arrow_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from pulsarx.spark.cluster_access import ClusterAccess
    from pulsarx.spark.entry_range import EntryRange
    from pulsarx.spark.value_format import ValueFormat

ROWS_MAX = 8192
BYTES_MAX = 8 << 20  # of values, about
STALL_MS = 30_000  # without a message although there are some

_COLUMNS: dict[str, Callable[[Any, Any, EntryRange], Any]] = {
    "value": lambda message, place, planned: None if message.has_null_value() else message.data(),
    "__key": lambda message, place, planned: message.partition_key().encode() or None,
    "__topic": lambda message, place, planned: planned.topic,
    "__messageId": lambda message, place, planned: place.serialize(),
    "__publishTime": lambda message, place, planned: message.publish_timestamp() * 1000,
    "__eventTime": lambda message, place, planned: message.event_timestamp() * 1000 or None,
    "__messageProperties": lambda message, place, planned: list(message.properties().items()),
    "__partition": lambda message, place, planned: planned.partition,
    "__ledgerId": lambda message, place, planned: place.ledger_id(),
    "__entryId": lambda message, place, planned: place.entry_id(),
    "__batchIndex": lambda message, place, planned: place.batch_index(),
    "__producerName": lambda message, place, planned: message.producer_name(),
    "__orderingKey": lambda message, place, planned: message.ordering_key().encode() or None,
    "__schemaVersion": lambda message, place, planned: _version(message.int_schema_version()),
}
_LOST, _LATE = "lost", "late"  # why an entry did not come
_UNREAD = "which a job does not read from a cluster; begin behind it, or use a consumer"
NOT_TOLD = ("__sequenceId", "__keyBytes")


def _version(number: int) -> int | None:
    return None if number < 0 else number


def check_columns(columns: tuple[str, ...]) -> None:
    """OperationNotSupported: the official client does not tell one of them."""
    for name in columns:
        if name in NOT_TOLD:
            raise errors.OperationNotSupported(
                detail=f"column {name} of a cluster: the official client does not tell it. "
                f"Columns: {', '.join(_COLUMNS)}"
            )


def read_entries(
    access: ClusterAccess,
    ranges: list[EntryRange],
    fail_on_data_loss: bool,
    values: ValueFormat | None,
) -> Iterator[pa.RecordBatch]:
    """The messages of ranges as Arrow record batches, in order."""
    client = access.client()
    try:
        for planned in ranges:
            yield from _RangeReader(access, client, planned, fail_on_data_loss, values).batches()
    finally:
        client.close()


class _RangeReader:
    def __init__(
        self,
        access: ClusterAccess,
        client: Any,
        planned: EntryRange,
        fail_on_data_loss: bool,
        values: ValueFormat | None,
    ) -> None:
        self._access = access
        self._client = client
        self._planned = planned
        self._fail = fail_on_data_loss
        self._schema = arrow_schema(read_schema(planned.columns))
        self._makers = [_COLUMNS[name] for name in planned.columns]
        self._rows: list[list[Any]] = []
        self._size = 0
        self._decoder = None if values is None else _decoder(values, planned)
        self._ids: list[MessageId] = []
        self._is_stalled = False  # nothing came, though there is more
        self._is_past = False  # what is behind the range came

    def batches(self) -> Iterator[pa.RecordBatch]:
        planned = self._planned
        expected = planned.first[0]
        missing: list[int] = []  # in front of one that came
        for message, place in self._messages():
            entry = place.entry_id()
            missing += range(expected, entry)
            expected = entry + 1
            published = message.publish_timestamp()
            if planned.from_ms is not None and published < planned.from_ms:
                continue
            if planned.until_ms is not None and published >= planned.until_ms:
                continue
            self._rows.append([make(message, place, planned) for make in self._makers])
            self._ids.append(place)
            self._size += message.size()
            if len(self._rows) == ROWS_MAX or self._size >= BYTES_MAX:
                yield self._batch()
        awaited = planned.end_entry if self._is_past else expected
        self._explain([*missing, *range(expected, planned.end_entry)], awaited)
        if self._rows:
            yield self._batch()

    def _messages(self) -> Iterator[tuple[Any, MessageId]]:
        """Yield the messages of the range that come."""
        planned = self._planned
        start = MessageId(planned.partition, planned.ledger_id, planned.first[0], -1)
        reader = self._client.create_reader(planned.topic, start, start_message_id_inclusive=True)
        try:
            while True:
                try:
                    message = _next(reader)
                except errors.Timeout:
                    self._is_stalled = True
                    return
                if message is None:
                    return
                place = message.message_id()
                spot = place.entry_id(), max(place.batch_index(), 0)
                if place.ledger_id() < planned.ledger_id:
                    continue
                if place.ledger_id() > planned.ledger_id or spot >= planned.end:
                    self._is_past = True
                    return
                if spot < planned.first:
                    continue
                yield message, place
        finally:
            reader.close()

    def _batch(self) -> pa.RecordBatch:
        columns = [
            pa.array(values, field.type) for values, field in zip(zip(*self._rows), self._schema)
        ]
        found = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        if self._decoder is not None:
            self._decoder.ids = self._ids
            found = self._decoder.columns(found)
        self._rows, self._ids, self._size = [], [], 0
        return found

    # What does not come ---------------------------------------------------------------------------

    def _explain(self, missing: list[int], awaited: int) -> None:
        """Raises unless nobody could read them, or loss is no error. awaited: the first that may
        still come; the client gets them in order."""
        admin = self._access.admin()
        lost: list[int] = []
        for entry in missing:
            reason = self._reason(admin, entry, entry >= awaited)
            place = f"{self._planned.topic}: entry {self._planned.ledger_id}:{entry}"
            if reason == _LOST:
                lost.append(entry)
            elif reason == _LATE:
                raise errors.Timeout(
                    detail=f"{place} is there, and did not come within {STALL_MS} ms: the brokers "
                    "may be busy, or moving the topic. Nothing is lost; try again"
                )
            elif reason:
                raise errors.OperationNotSupported(detail=f"{place} {reason}")
        if not lost:
            return
        text = (
            f"{self._planned.topic}: {len(lost)} entries of ledger {self._planned.ledger_id} that "
            f"were planned did not come, the first is {lost[0]}"
        )
        if self._fail:
            raise errors.DataLossError(
                detail=f"{text}. Retention may have removed them; option failOnDataLoss false goes "
                "on"
            )
        logging.getLogger("pulsarx.spark").warning("failOnDataLoss is off: %s", text)

    def _reason(self, admin: Any, entry: int, is_awaited: bool) -> str:
        """Empty: nobody gets it."""
        ledger = self._planned.ledger_id
        path = f"{topic_path(self._planned.topic)}/ledger/{ledger}/entry/{entry}"
        try:
            headers = admin.ask("GET", path).headers
        except errors.TopicNotFound:
            return _LOST
        named = {name.lower().removeprefix("x-pulsar-"): value for name, value in headers.items()}
        if "chunk-id" in named or "num-chunks-from-msg" in named:
            return f"is part of a message in chunks, {_UNREAD}"
        if named.get("is-encrypted", "").lower() == "true":
            return f"is encrypted, {_UNREAD}"
        if "marker-type" in named or named.get("txn-aborted", "").lower() == "true":
            return ""
        if named.get("txn-uncommitted", "").lower() == "true":
            return "waits for a transaction that is open; try again when it has ended"
        if "txnid-least-bits" in named and "txn-aborted" not in named and not self._is_stalled:
            return ""  # older brokers do not tell what became of the transaction
        # One in front of a message that came is not late: the brokers keep it back, as filters do.
        return _LATE if is_awaited else _LOST


def _next(reader: Any) -> Any:
    """None: there is no message left. Timeout: none came for long, and there are some."""
    try:
        return reader.read_next(0)
    except errors.Timeout:
        pass
    try:
        if not reader.has_message_available():
            return None
    except errors.BrokerMetadataError:
        return None  # as brokers tell that the last message was removed
    return reader.read_next(STALL_MS)


def _decoder(values: ValueFormat, planned: EntryRange) -> Any:
    from typing import cast

    from pulsarx.spark.value_decoder import ValueDecoder

    class ClusterDecoder(ValueDecoder):
        """Names messages by the ids that came with them."""

        ids: list[MessageId]

        def _id_of(self, number: int) -> MessageId:
            return self.ids[number - self._row_count]

    return ClusterDecoder(values, cast("Any", planned))
