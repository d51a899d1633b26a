"""Makes columns of values, in the task that reads them: bytes become Arrow, and no Java parses.

JSON goes by pyarrow's reader (tables.json_columns), Avro natively (tables.avro_columns), what has a
primitive schema value by value.
"""

from __future__ import annotations

import pyarrow as pa

from pulsarx import errors
from pulsarx.message_id import MessageId
from pulsarx.schema.auto_consume import reader_of
from pulsarx.spark.row_filter import filtered
from pulsarx.spark.topic_columns import MESSAGE_ID, VALUE
from pulsarx.spark.value_choice import DROP_MALFORMED, FAIL_FAST
from pulsarx.spark.value_format import SCHEMA_VERSION, ValueFormat
from pulsarx.tables.avro_columns import AvroDecoder
from pulsarx.tables.json_columns import JsonDecoder, table_of
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pulsarx.broker.scan.ledger_range import LedgerRange
    from pulsarx.schema.schema import SchemaInfo
    from pulsarx.spark.row_filter import RowFilter
    from pulsarx.tables.json_columns import Flaws


class ValueDecoder:
    """Decodes the batches of one ledger range, in order. One thread at a time."""

    def __init__(
        self,
        values: ValueFormat,
        planned: LedgerRange,
        where: Sequence[RowFilter] = (),
        selector: str | None = None,
    ) -> None:
        """where, selector: what chose the rows of the batches among those of the range."""
        self._selector = selector
        self._where = where
        self._format = values
        self._planned = planned
        self._row_count = 0
        self._topic = TopicName.of(planned.topic).partitioned_name
        self._decode: Callable[[pa.Array, pa.RecordBatch], tuple[pa.Table, Flaws]]
        if values.kind == "JSON":
            self._decode = JsonDecoder(values.fields, rules=values.rules).decode
        elif values.kind == "STRING":
            self._decode = self._texts
        elif values.kind == "AVRO":
            assert values.reader is not None
            self._avro = AvroDecoder(values.fields, values.reader, self._writer_of)
            self._decode = self._records
        else:
            assert values.reader is not None
            self._read = reader_of(values.reader)
            self._decode = self._one_by_one

    def columns(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns that the format has. ValueError: a value that cannot be decoded, in mode
        FAILFAST; names topic, message and value."""
        values = self._format
        flaws: Flaws = {}
        found: dict[str, pa.Array] = dict(zip(batch.schema.names, batch.columns))
        if values.fields.names:
            payloads = found.pop(VALUE)
            table, flaws = self._decode(payloads, batch)
            for name in table.column_names:
                column = table[name]
                found[name] = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
            if flaws and values.mode == FAIL_FAST:
                row = min(flaws)
                self._refuse(row, flaws[row], payloads[row].as_py())
            if values.corrupt in values.columns:
                found[values.corrupt] = _only(payloads, flaws, values.corrupt_type)
        self._row_count += batch.num_rows
        required = {each.name for each in values.fields if not each.nullable}
        made = pa.RecordBatch.from_arrays(
            [found[name] for name in values.columns],
            schema=pa.schema(
                [pa.field(name, found[name].type, name not in required) for name in values.columns]
            ),
        )
        if flaws and values.mode == DROP_MALFORMED:
            good = pa.array([row not in flaws for row in range(made.num_rows)])
            made = made.filter(good)
        return made

    def _refuse(self, row: int, why: str, payload: bytes) -> None:
        raise ValueError(
            f"message {self._id_of(self._row_count + row)} of {self._planned.topic} cannot be "
            f"decoded as {self._format.kind}: {why}. Its value is {errors.shown(payload)}. "
            "mode PERMISSIVE gives a row of what can be decoded of such a message, DROPMALFORMED "
            "none"
        )

    def _id_of(self, number: int) -> MessageId:
        """The id of a row of the range, which is read again for that, as usually nobody asks."""
        from pulsarx.broker.scan.read_range import read_range

        columns = dict.fromkeys([MESSAGE_ID, *(each.column for each in self._where)])
        for each in read_range(self._planned, [*columns], selector=self._selector):
            batch = filtered(pa.record_batch(each), self._where)
            if number < batch.num_rows:
                return MessageId.deserialize(batch.column(0)[number].as_py())
            number -= batch.num_rows
        raise AssertionError(number)

    def _texts(self, payloads: pa.Array, batch: pa.RecordBatch) -> tuple[pa.Table, Flaws]:
        (field,) = self._format.fields
        flaws: Flaws = {}
        try:
            return pa.table([payloads.cast(field.type)], [field.name]), flaws
        except pa.ArrowException:
            texts: list[str | None] = []
            for row, payload in enumerate(payloads.to_pylist()):
                try:
                    texts.append(None if payload is None else payload.decode())
                except UnicodeError as error:
                    texts.append(None)
                    flaws[row] = str(error)
            return pa.table([pa.array(texts, field.type)], [field.name]), flaws

    # Avro and others ------------------------------------------------------------------------------

    def _records(self, payloads: pa.Array, batch: pa.RecordBatch) -> tuple[pa.Table, Flaws]:
        return self._avro.decode(payloads, batch.column(SCHEMA_VERSION))

    def _writer_of(self, version: int | None) -> SchemaInfo | None:
        """version: of the schema that a message was written with; None: with none."""
        if version is None:
            return None
        writer = self._format.writers.get(self._topic, {}).get(version)
        if writer is None:
            raise ValueError(f"the topic has no version {version} of a schema")
        return writer

    def _one_by_one(self, payloads: pa.Array, batch: pa.RecordBatch) -> tuple[pa.Table, Flaws]:
        fields = self._format.fields
        (name,) = fields.names
        versions = batch.column(SCHEMA_VERSION).to_pylist()
        rows: list[dict[str, Any] | None] = []
        flaws: Flaws = {}
        for row, payload in enumerate(payloads.to_pylist()):
            if payload is None:
                rows.append(None)
                continue
            try:
                self._writer_of(versions[row])
                rows.append({name: self._read(payload)})
            except Exception as error:
                rows.append(None)
                flaws[row] = str(error)
        return table_of(rows, fields, fields, flaws), flaws


def _only(payloads: pa.Array, rows: Flaws, kind: str) -> pa.Array:
    """These rows of the payloads, and null for the others."""
    wanted = pa.string() if kind == "string" else pa.binary()
    if not rows:
        return pa.nulls(len(payloads), wanted)
    taken = pa.array([row if row in rows else None for row in range(len(payloads))], pa.int64())
    found = payloads.take(taken)
    try:
        return found.cast(wanted)
    except pa.ArrowInvalid:
        texts = [None if each is None else each.decode("utf-8", "replace")
                 for each in found.to_pylist()]  # fmt: skip
        return pa.array(texts, wanted)
