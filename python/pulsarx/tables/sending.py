"""`Client.send_rows`: publishes records, dicts, data frames and Arrow tables, row by row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

from pulsarx import errors
from pulsarx.ground.extras import optional_module
from pulsarx.options.argument_check import is_whole_number
from pulsarx.schema.definition import Record
from pulsarx.schema.schema import Schema, SchemaInfo
from pulsarx.tables.progress import progress_of
from pulsarx.tables.row_encoding import (
    EncodedSchema,
    as_json,
    check_json_types,
    python_rows,
    record_encoder,
    row_encoder,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pulsarx.message_id import MessageId

ROWS = 10_000  # that are encoded before they are published
INFER = "infer"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def send_rows(
    client: Any,
    topic: str,
    rows: Any,
    columns: Iterable[str] | None,
    schema: Any,
    key: str | None,
    event_time: str | None,
    properties: str | None,
    progress: Any,
) -> MessageId | None:
    for name, given in (("key", key), ("event_time", event_time), ("properties", properties)):
        if given is not None and not isinstance(given, str):
            raise ValueError(f"{name} must be the name of a column, not {given!r:.80}")
    show = progress_of(progress, "rows")
    if isinstance(columns, str):
        raise ValueError("columns is a str; give a list of names")
    chosen = None if columns is None else list(columns)
    source = _Rows(rows, chosen, (key, event_time, properties))
    encoder = _encoder_of(client, topic, schema, source)
    sent, last = 0, None
    with encoder.producer(client, topic) as producer:
        while chunk := list(islice(source.rows, ROWS)):
            try:
                last = _send(producer, encoder.encode, chunk, sent, chosen, key, event_time,
                             properties)  # fmt: skip
            except Exception as error:
                error.add_note(f"{sent} rows were published before these {len(chunk)}")
                raise
            sent += len(chunk)
            if sent != source.count:
                show(sent, source.count)
    show(sent, sent)
    return last


def _send(
    producer: Any,
    encode: Callable[[Any], bytes],
    chunk: list[Any],
    first: int,
    columns: list[str] | None,
    key: str | None,
    event_time: str | None,
    properties: str | None,
) -> MessageId:
    payloads, keys, times, described = [], [], [], []
    for number, row in enumerate(chunk, first):
        try:
            values = row.__dict__ if isinstance(row, Record) else row
            keys.append(None if key is None else _key_of(values, key))
            times.append(None if event_time is None else _time_of(values, event_time))
            described.append(None if properties is None else _properties_of(values, properties))
            if columns is not None:
                row = {name: values[name] for name in columns if name in values}
            payloads.append(encode(row))
        except (ValueError, TypeError, RecursionError) as error:
            kind = ValueError if isinstance(error, UnicodeError) else type(error)
            raise kind(f"row {number}: {error}") from error
    ids = producer.send_many(
        payloads,
        keys=None if key is None else keys,
        properties=None if properties is None else described,
        event_timestamps=None if event_time is None else times,
    )
    found: MessageId = ids[-1]
    return found


# Rows ---------------------------------------------------------------------------------------------


class _Rows:
    """The rows that were given, whatever they are given as: dicts, or records of one class."""

    def __init__(
        self, given: Any, columns: list[str] | None, roles: tuple[str | None, ...]
    ) -> None:
        """columns: of the value. roles: the names of columns for something else."""
        self.record_cls: type[Record] | None = None
        self.types: Any = None  # of Arrow columns that go into the value
        self._columns = columns
        self.count: int | None = len(given) if hasattr(given, "__len__") else None
        if isinstance(given, dict | str | bytes):
            raise ValueError(f"rows must be a list of rows or a table, not {type(given).__name__}")
        if (
            _is_frame(given)
            or hasattr(given, "__arrow_c_stream__")
            or (hasattr(given, "__arrow_c_array__"))
        ):
            self.rows = self._of_arrow(given, columns, roles)
            return
        rows = iter(given)
        beginning = list(islice(rows, 1))
        if beginning and isinstance(beginning[0], Record):
            self.record_cls = type(beginning[0])
        self.rows = self._checked(beginning, rows)

    def chosen_of(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The columns of rows that go into the value."""
        if self._columns is None:
            return rows
        return [{name: row[name] for name in self._columns if name in row} for row in rows]

    def _checked(self, beginning: list[Any], rest: Iterator[Any]) -> Iterator[Any]:
        number = 0
        for source in (beginning, rest):
            for row in source:
                fits = (
                    isinstance(row, dict)
                    if self.record_cls is None
                    else type(row) is self.record_cls
                )
                if not fits:
                    expected = "dict" if self.record_cls is None else self.record_cls.__name__
                    raise TypeError(
                        f"row {number} is of {type(row).__name__}, those before of {expected}"
                        if number
                        else f"row 0 is neither a dict nor a Record: {row!r:.80}"
                    )
                yield row
                number += 1

    def _of_arrow(
        self, given: Any, columns: list[str] | None, roles: tuple[str | None, ...]
    ) -> Iterator[Any]:
        pa = optional_module("pyarrow", "arrow", "send_rows of a table")
        if _is_frame(given):
            _check_index(given)
            given = pa.Table.from_pandas(given, preserve_index=False)
        if hasattr(given, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(given)
        else:
            batch = pa.record_batch(given)
            reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
        names = reader.schema.names
        if len(set(names)) < len(names):
            raise ValueError(f"rows have a column twice: {names!r:.200}")
        for name in (*(columns or ()), *roles):
            if name is not None and name not in names:
                raise ValueError(f"rows have no column {name!r}; they have {', '.join(names)}")
        kept = names if columns is None else columns
        self.types = pa.schema([reader.schema.field(name) for name in kept])
        needed = [*kept, *(name for name in roles if name is not None)]
        return _rows_of(reader, list(dict.fromkeys(needed)))


def _rows_of(reader: Any, names: list[str]) -> Iterator[dict[str, Any]]:
    first = 0
    for batch in reader:
        batch = batch.select(names)
        for start in range(0, batch.num_rows, ROWS):
            part = batch.slice(start, ROWS)
            yield from python_rows(part, first)
            first += part.num_rows


def _is_frame(given: Any) -> bool:
    kind = type(given)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def _check_index(frame: Any) -> None:
    index = frame.index
    if index.name is not None or not (
        type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1
    ):
        raise ValueError(
            "rows have an index, which no message would hold: make columns of it with "
            "reset_index(), or leave it out with reset_index(drop=True)"
        )


# Encoding -----------------------------------------------------------------------------------------


class _Encoder:
    """encode: a row as a payload. info: the schema it is of; None: of none."""

    def __init__(self, encode: Callable[[Any], bytes], info: SchemaInfo | None) -> None:
        self.encode = encode
        self._info = info

    def producer(self, client: Any, topic: str) -> Any:
        options = {} if self._info is None else {"schema": EncodedSchema(self._info)}
        return client.create_producer(topic, block_if_queue_full=True, **options)


def _encoder_of(client: Any, topic: str, schema: Any, source: _Rows) -> _Encoder:
    if schema == INFER and source.record_cls is None:
        return _inferred(source)
    if (isinstance(schema, type) and issubclass(schema, Record)) or (
        schema in (None, INFER) and source.record_cls is not None
    ):
        from pulsarx.schema.json_schema import JsonSchema

        record_cls: Any = schema if isinstance(schema, type) else source.record_cls
        schema = JsonSchema(record_cls)
    if schema is not None and not isinstance(schema, Schema):
        raise ValueError(
            f"schema must be a schema of PulsarX, a Record class, {INFER!r} or None, not "
            f"{schema!r:.80}"
        )
    if schema is not None and source.record_cls is not None:
        return _Encoder(record_encoder(schema), schema.schema_info())
    info = _last_schema(client, topic) if schema is None else schema.schema_info()
    if info is None:
        try:
            check_json_types(source.types)
        except ValueError as error:
            if _has_messages(client, topic):
                error.add_note(
                    f"{topic} has messages without a schema, beside which none is made up: "
                    f"schema={INFER!r} makes one all the same"
                )
                raise
            return _inferred(source)
        return _Encoder(as_json, None)
    return _Encoder(row_encoder(info, _record_class(schema)), info)


def _inferred(source: _Rows) -> _Encoder:
    """By the types of the columns. ImportError: fastavro is missing."""
    optional_module("pyarrow", "arrow", f"send_rows(schema={INFER!r})")
    from pulsarx.tables.row_schema import columns_of, schema_of

    columns = source.types
    if columns is None:
        rows = list(source.rows)
        source.rows = iter(rows)
        if not rows:
            return _Encoder(as_json, None)
        columns = columns_of(source.chosen_of(rows))
    info = schema_of(columns)
    return _Encoder(row_encoder(info), info)


def _has_messages(client: Any, topic: str) -> bool:
    try:
        parts = client.get_topic_partitions(topic)
        return any(client.admin.topics.stats(each)["messages"] for each in parts)
    except errors.TopicNotFound:
        return False


def _record_class(schema: Schema[Any] | None) -> type[Record] | None:
    found = None if schema is None else schema._record_cls
    return found if isinstance(found, type) and issubclass(found, Record) else None


def _last_schema(client: Any, topic: str) -> SchemaInfo | None:
    try:
        found = client.admin.schemas.get_all_schemas(topic)
    except errors.TopicNotFound:
        return None
    return found[-1] if found else None


# What else a message has --------------------------------------------------------------------------


def _of_row(values: dict[str, Any], name: str) -> Any:
    if name not in values:
        raise ValueError(f"there is no {name!r}")
    return values[name]


def _key_of(values: dict[str, Any], name: str) -> str | None:
    found: str | None = _of_row(values, name)
    if found is not None and not isinstance(found, str):
        raise TypeError(f"the key {name} must be a str, not {found!r:.80}")
    if found is not None and not found.isascii():
        found.encode()  # raises what is no Unicode
    return found


def _time_of(values: dict[str, Any], name: str) -> int | None:
    found: Any = _of_row(values, name)
    if isinstance(found, datetime):
        if found.tzinfo is None:
            raise ValueError(f"the event time {name} has no time zone: {found}")
        time_ms, rest = divmod(found - _EPOCH, timedelta(milliseconds=1))
        if rest:
            raise ValueError(f"the event time {name} is finer than a millisecond: {found}")
        found = time_ms
    if found is not None and not is_whole_number(found):
        raise TypeError(f"the event time {name} must be a datetime or an int, not {found!r:.80}")
    if found is not None and found < 1:
        raise ValueError(f"the event time {name} must be after 1970: {found}")
    return found


def _properties_of(values: dict[str, Any], name: str) -> dict[str, str] | None:
    found = _of_row(values, name)
    if found is not None and not isinstance(found, dict):
        raise TypeError(f"the properties {name} must be a dict, not {found!r:.80}")
    for text in () if found is None else (*found, *found.values()):
        if isinstance(text, str) and not text.isascii():
            text.encode()  # as a key
    return found
