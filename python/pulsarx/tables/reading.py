"""`Client.read_table`: the messages of a topic as an Arrow table with a column for each field.

JSON goes the fast way: the payloads of many entries, one a line, to pyarrow's reader of JSON. What
it refuses is read value by value, which knows more (maps) and names the message that does not fit.
Avro is read natively (avro_columns), and all of it once more value by value where that refuses one;
other schemas are read value by value.
"""

from __future__ import annotations

import json
import math
import operator
from collections import deque
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from pulsarx import errors
from pulsarx._pycore.arrow.json_lines import json_lines
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx.enumerations import SchemaType
from pulsarx.message_id import MessageId
from pulsarx.options.argument_check import is_whole_number
from pulsarx.schema.auto_consume import AutoConsumeSchema
from pulsarx.schema.definition import Record, plain_values
from pulsarx.schema.schema import Schema, SchemaInfo
from pulsarx.tables.progress import progress_of
from pulsarx.tables.value_types import (
    PRIMITIVES,
    Unfit,
    checker,
    has_large_number,
    merged,
    record_checker,
    record_schema,
    without_times,
)
from pulsarx.topic_name import TopicName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pulsarx.tables.avro_columns import AvroDecoder

ROWS = 1 << 16  # of a block
AHEAD = 2  # blocks that are parsed at once
DEPTH_MAX = 100  # of columns whose types are found in the messages
METADATA = ("message_id", "key", "publish_time", "event_time", "properties")
_MESSAGE_ID = pa.struct(
    [
        pa.field("ledger_id", pa.int64(), False),
        pa.field("entry_id", pa.int64(), False),
        pa.field("partition", pa.int32(), False),
        pa.field("batch_index", pa.int32(), False),
    ]
)
_TYPES = {
    "message_id": _MESSAGE_ID,
    "key": pa.string(),
    "value": pa.binary(),
    "publish_time": pa.timestamp("ms", "UTC"),
    "event_time": pa.timestamp("ms", "UTC"),
    "properties": pa.map_(pa.string(), pa.string()),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Block:
    """Messages of one topic, as columns; messages: the same as objects, where they are needed.
    version: of the schema that they all were written with, b"" for none, where that is."""

    def __init__(
        self,
        topic: str,
        table: pa.Table,
        messages: list[Any] | None = None,
        version: bytes | None = None,
    ) -> None:
        self.topic = topic
        self.table = table
        self.messages = messages
        self.version = version

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, rows: Any) -> Block:
        """rows: numbers of rows, as an array."""
        messages = self.messages
        if messages is not None:
            messages = [messages[row] for row in rows.to_pylist()]
        return Block(self.topic, self.table.take(rows), messages, self.version)

    def tail(self, count: int) -> Block:
        first = max(len(self) - count, 0)
        messages = None if self.messages is None else self.messages[first:]
        return Block(self.topic, self.table.slice(first), messages, self.version)

    def values(self) -> pa.Array:
        """The payloads, in one piece."""
        values = self.table["value"]
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()

    def present(self) -> pa.Array:
        """The values, without those of tombstones."""
        values = self.values()
        return values.drop_null() if values.null_count else values

    def name(self, row: int) -> str:
        """Return how errors call the message of a row."""
        message_id = MessageId.from_row(self.table["message_id"][row])
        return f"message {message_id} of {self.topic}"


class Selection:
    """Chooses the messages that are wanted. A value."""

    def __init__(self, start: Any, end: Any, last: int | None, tombstones: str) -> None:
        if last is not None and (type(last) is not int or last < 1):
            raise ValueError(f"last is {last!r}; it must be an int of at least 1, or None")
        if tombstones not in ("raise", "null", "skip"):
            raise ValueError(f"tombstones is {tombstones!r}; it must be raise, null or skip")
        self.start_ms = _milliseconds(start, "start")
        self.end_ms = _milliseconds(end, "end")
        self.last = last
        self.tombstones = tombstones

    def of(self, block: Block) -> Block:
        """The messages of the times that are wanted, and without tombstones where these are not."""
        masks = []
        if self.start_ms is not None or self.end_ms is not None:
            times = block.table["publish_time"].cast(pa.int64())
            if self.start_ms is not None:
                masks.append(pc.greater_equal(times, self.start_ms))
            if self.end_ms is not None:
                masks.append(pc.less(times, self.end_ms))
        if self.tombstones == "skip" and block.table["value"].null_count:
            masks.append(pc.is_valid(block.table["value"]))
        if not masks:
            return block
        wanted = masks[0]
        for mask in masks[1:]:
            wanted = pc.and_(wanted, mask)
        return block.take(pc.indices_nonzero(wanted))

    def of_all(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Choose from the blocks of several partitions, one behind the other."""
        chosen = (block for block in map(self.of, blocks) if len(block))
        return chosen if self.last is None else iter(self._last_of(chosen, self.last))

    def _last_of(self, blocks: Iterator[Block], count: int) -> list[Block]:
        """The last ones: of each partition, then of all by their publish times."""
        tails: dict[str, deque[Block]] = {}
        for block in blocks:
            tail = tails.setdefault(block.topic, deque())
            tail.append(block)
            while _count(tail) - len(tail[0]) >= count:
                tail.popleft()
        found: list[Block] = []
        for tail in tails.values():
            spare = _count(tail) - count
            if spare > 0:
                tail[0] = tail[0].tail(len(tail[0]) - spare)
            found += tail
        if len(tails) < 2 or _count(found) <= count:
            return found
        return _latest(found, count)


def _count(blocks: Iterable[Block]) -> int:
    return sum([len(block) for block in blocks])


def _latest(blocks: list[Block], count: int) -> list[Block]:
    times = pa.concat_arrays(
        [block.table["publish_time"].combine_chunks().cast(pa.int64()) for block in blocks]
    )
    wanted = pc.sort_indices(times)[len(times) - count :].to_numpy()
    found, first = [], 0
    for block in blocks:
        rows = wanted[(wanted >= first) & (wanted < first + len(block))] - first
        rows.sort()
        if len(rows):
            found.append(block.take(pa.array(rows)))
        first += len(block)
    return found


def _milliseconds(time: Any, name: str) -> int | None:
    if time is None or is_whole_number(time):
        return time
    if not isinstance(time, datetime):
        raise ValueError(f"{name} must be a datetime or milliseconds since 1970, not {time!r:.80}")
    if time.tzinfo is None:
        raise ValueError(f"{name} is {time}, which has no time zone")
    # Upwards: a time between two milliseconds is before the later one.
    return -((_EPOCH - time) // timedelta(milliseconds=1))


# Reading ------------------------------------------------------------------------------------------


class Source:
    """The partitions of a topic, as they are when this is made."""

    def __init__(self, client: Any, topic: str, crypto_key_reader: Any, progress: Any) -> None:
        """TopicNotFound: there is no such topic. It is not created."""
        self._client = client
        self._crypto_key_reader = crypto_key_reader
        self._progress = progress
        self.topic = str(TopicName.of(topic))
        if not TopicName.of(topic).persistent:
            raise errors.NotAllowedError(
                detail=f"{self.topic} is non-persistent: it keeps no messages"
            )
        self._partitions: list[str] = client.get_topic_partitions(topic)
        admin = client.admin
        self._total = sum(admin.topics.stats(each)["messages"] for each in self._partitions)
        self.schemas: list[SchemaInfo] = admin.schemas.get_all_schemas(topic)
        self._done = 0

    def schemas_by_version(self) -> dict[bytes, SchemaInfo]:
        """The schemas by their versions, in the bytes by which messages name them."""
        return {(each.version() or 0).to_bytes(8, "big"): each for each in self.schemas}

    def blocks(
        self, take: Callable[[Any, str], Block], schema: Schema[Any] | None
    ) -> Iterator[Block]:
        """All messages. take: the next block of a reader, one of the three below. schema: how
        messages decode their values."""
        self._done = 0
        options = {} if schema is None else {"schema": schema}
        for name in self._partitions:
            with self._client.create_reader(
                name, MessageId.earliest, crypto_key_reader=self._crypto_key_reader, **options
            ) as reader:
                last = reader.get_last_message_id()
                if last != MessageId.earliest:
                    end = (last.ledger_id(), last.entry_id(), last.batch_index())
                    yield from self._read(name, reader, end, take)
        self._progress(self._done, self._done)

    def _read(
        self, name: str, reader: Any, end: tuple[int, ...], take: Callable[[Any, str], Block]
    ) -> Iterator[Block]:
        while reader.has_message_available():
            block = take(reader, name)
            if not len(block):
                continue  # the dispatch rate holds them back
            last = block.table["message_id"][len(block) - 1].as_py()
            at = (last["ledger_id"], last["entry_id"], last["batch_index"])
            if at > end:
                block = block.take(_up_to(block.table["message_id"].combine_chunks(), end))
            self._done += len(block)
            if self._done < self._total:
                self._progress(self._done, self._total)
            yield block
            if at >= end:
                return


def _up_to(ids: Any, end: tuple[int, ...]) -> Any:
    """The rows of ids up to an entry, of which end is the last message."""
    ledgers, entries = ids.field("ledger_id"), ids.field("entry_id")
    here = pc.and_(pc.equal(ledgers, end[0]), pc.less_equal(entries, end[1]))
    return pc.indices_nonzero(pc.or_(pc.less(ledgers, end[0]), here))


def _columns_of(reader: Any, topic: str) -> Block:
    return Block(topic, reader.read_arrow(ROWS, 1000).to_arrow())


def _columns_of_one_schema(reader: Any, topic: str) -> Block:
    """_Refused: the reader has no columns, as that of a cluster."""
    receive = getattr(getattr(reader, "_core", None), "receive_arrow_of_one_schema", None)
    if receive is None:
        raise _Refused
    found = receive(ROWS, 1000)
    return Block(topic, found.to_arrow(), version=found.schema_version)


def _messages_of(reader: Any, topic: str) -> Block:
    messages = reader.read_many(ROWS, 1000)
    ids = [message.message_id() for message in messages]
    columns = {
        "message_id": [
            {
                "ledger_id": each.ledger_id(),
                "entry_id": each.entry_id(),
                "partition": each.partition(),
                "batch_index": each.batch_index(),
            }
            for each in ids
        ],
        "key": [_text(m.partition_key()) if m.has_key() else None for m in messages],
        "value": [None if m.has_null_value() else b"" for m in messages],
        "publish_time": [m.publish_timestamp() for m in messages],
        # As in received columns: a time of 0 is none, and one beyond 2^63 no column can hold.
        "event_time": [t if 0 < (t := m.event_timestamp()) < 1 << 63 else None for m in messages],
        "properties": [[(_text(k), _text(v)) for k, v in m.properties().items()] for m in messages],
    }
    return Block(
        topic,
        pa.table({name: pa.array(each, _TYPES[name]) for name, each in columns.items()}),
        messages,
    )


def _text(text: str) -> str:
    """Make text as received columns hold it: what is not UTF-8 is U+FFFD."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


# Values -------------------------------------------------------------------------------------------


class _Refused(Exception):
    """The fast way does not take it."""


class _TableJob:
    """The table of a block, made in a thread."""

    def __init__(
        self,
        thread: JobQueue,
        block: Block,
        make: Callable[[Block, pa.Schema, Any], pa.Table],
        columns: pa.Schema,
        check: Any,
    ) -> None:
        self._thread = thread
        self._block = block
        self._make = make
        self._arguments = (columns, check)
        self._made: pa.Table | BaseException
        thread.post(self)

    def __call__(self) -> None:
        try:
            self._made = self._make(self._block, *self._arguments)
        except BaseException as error:
            self._made = error

    def result(self) -> tuple[Block, pa.Table]:
        """Wait for the block and its table; raises what making them raised."""
        self._thread.wait()
        if isinstance(self._made, BaseException):
            raise self._made
        return self._block, self._made


class JsonValues:
    """Columns of payloads that are JSON objects. columns: None, to find them in the messages."""

    take = staticmethod(_columns_of)
    reader_schema = None

    def __init__(self, columns: pa.Schema | None) -> None:
        self.columns = columns
        # pyarrow's reader of JSON knows no maps.
        self._fast = columns is None or not any(_has_map(each.type) for each in columns)

    def tables(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, pa.Table]]:
        """Each block with the columns of its values; a tombstone has nulls."""
        columns = self.columns
        if columns is None:
            kept = list(blocks)
            columns, found = self._inferred(kept)
            if found is not None:
                yield from found
                return
            blocks = iter(kept)
        check = record_checker(columns, "")
        # The next blocks are read and made lines of while pyarrow parses the one before.
        threads = deque(JobQueue("pulsarx-table") for _ in range(AHEAD))
        waiting: deque[_TableJob] = deque()
        try:
            for block in blocks:
                if len(waiting) == AHEAD:
                    yield waiting.popleft().result()
                waiting.append(_TableJob(threads[0], block, self._table, columns, check))
                threads.rotate()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for thread in threads:
                thread.close()

    def _table(self, block: Block, columns: pa.Schema, check: Any) -> pa.Table:
        if self._fast:
            try:
                return _scattered(block, _parsed(*_lines(block.present()), columns))
            except _Refused:
                pass
        rows = [(row, _fitting(check, value, block, row)) for row, value in _objects(block)]
        return _scattered(block, _table_of(rows, block, columns))

    def _inferred(
        self, blocks: list[Block]
    ) -> tuple[pa.Schema, list[tuple[Block, pa.Table]] | None]:
        """The columns that the messages have, and the tables, where the fast way gave them."""
        try:
            pieces = [_lines(block.present()) for block in blocks]
            lines = b"".join([piece[0] for piece in pieces])
            count = sum([piece[1] for piece in pieces])
            longest = max([piece[2] for piece in pieces], default=0)
            whole = _parsed(lines, count, longest, None)
            _check_depth(whole.schema.types, blocks)
            columns = pa.schema([each.with_type(without_times(each.type)) for each in whole.schema])
            if columns != whole.schema:  # texts that look like times are texts
                whole = _parsed(lines, count, longest, columns)
        except _Refused:
            self._fast = False
            return _columns_found(blocks), None
        found, first = [], 0
        for block, piece in zip(blocks, pieces):
            found.append((block, _scattered(block, whole.slice(first, piece[1]))))
            first += piece[1]
        return columns, found


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_map(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _has_map(kind.value_type)
    return bool(pa.types.is_map(kind))


def _lines(values: pa.Array) -> tuple[bytes, int, int]:
    """The payloads as lines, how many, and the longest. _Refused: one is no JSON object."""
    if not len(values):
        return b"", 0, 0
    _, offsets, data = values.buffers()
    lines, taken, longest = json_lines(offsets, data or b"", values.offset, len(values))
    if taken < len(values):
        raise _Refused
    return lines, taken, longest


def _parsed(lines: bytes, count: int, longest: int, columns: pa.Schema | None) -> pa.Table:
    if not count:
        return (columns or pa.schema([])).empty_table()
    behaviour = "infer" if columns is None else "error"
    try:
        found = arrow_json.read_json(
            pa.py_buffer(lines),
            # A line must fit into a block.
            read_options=arrow_json.ReadOptions(block_size=max(1 << 20, longest + 2)),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=columns, unexpected_field_behavior=behaviour
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        raise _Refused from error
    # Beyond 2^53 a double may stand for an integer that it is not.
    if found.num_rows != count or any(map(has_large_number, found.columns)):
        raise _Refused
    return found


def _scattered(block: Block, table: pa.Table) -> pa.Table:
    """The table with a row of nulls for each tombstone."""
    if not block.table["value"].null_count:
        return table
    valid = pc.is_valid(block.table["value"].combine_chunks())
    rows = pc.subtract(pc.cumulative_sum(pc.cast(valid, pa.int64())), 1)
    nullable = pa.schema([each.with_nullable(True) for each in table.schema])
    if not table.num_rows:
        return pa.table([pa.nulls(len(valid), each.type) for each in nullable], schema=nullable)
    return table.cast(nullable).take(pc.if_else(valid, rows, None))


def _objects(block: Block) -> Iterator[tuple[int, Any]]:
    """(row, object) of each payload; ValueError names a message that is none."""
    for row, payload in enumerate(block.values().to_pylist()):
        if payload is None:
            continue
        try:
            value = json.loads(
                payload.decode("utf-8"), object_pairs_hook=_distinct, parse_float=_double
            )
        except Unfit as error:
            raise ValueError(f"{block.name(row)}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{block.name(row)} is no JSON: {error}") from error
        if not isinstance(value, dict):
            raise ValueError(f"{block.name(row)} is no JSON object: {value!r:.80}")
        yield row, value


def _double(text: str) -> float:
    """The value of a number with a point or an exponent. Unfit: it would become infinite."""
    found = float(text)
    if math.isinf(found):
        raise Unfit(f"the number {text:.80} is beyond a double")
    return found


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r} is there twice")
    return found


def _columns_found(blocks: list[Block]) -> pa.Schema:
    """Have pyarrow find the columns of the values. ValueError names a message that does not go with
    those before."""
    rows = [(block, row, value) for block in blocks for row, value in _objects(block)]
    values = [value for _, _, value in rows]

    def fails(count: int) -> Exception | None:
        try:
            pa.array(values[:count])
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            return error
        return None

    failure = fails(len(values))
    if failure is None:
        kind = pa.array(values, None).type
        _check_depth([kind], blocks)
        return pa.schema(list(kind) if pa.types.is_struct(kind) else [])
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fails(middle) is None:
            good = middle
        else:
            bad = middle
    block, row, _ = rows[bad - 1]
    raise ValueError(f"{block.name(row)} does not go with those before: {fails(bad)}; give schema=")


def _check_depth(kinds: list[pa.DataType], blocks: list[Block]) -> None:
    """ValueError names a message whose lists and objects lie too deep in each other."""
    if not _is_deeper(kinds, DEPTH_MAX, lambda kind: [each.type for each in _fields(kind)]):
        return
    for block in blocks:
        for row, value in _objects(block):
            if _is_deeper([value], DEPTH_MAX, _values_in):
                raise ValueError(
                    f"{block.name(row)}: lists and objects are nested deeper than {DEPTH_MAX}"
                )


def _is_deeper(roots: list[Any], depth: int, below: Callable[[Any], Iterable[Any]]) -> bool:
    level = roots
    for _ in range(depth):
        level = [each for one in level for each in below(one)]
        if not level:
            return False
    return True


def _fields(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)]


def _values_in(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _fitting(check: Any, value: Any, block: Block, row: int) -> Any:
    try:
        return check(value)
    except (Unfit, UnicodeError) as error:
        raise ValueError(f"{block.name(row)}: {error}") from error


def _table_of(rows: list[tuple[int, Any]], block: Block, columns: pa.Schema) -> pa.Table:
    """rows: (row of the block, checked values by name)."""
    arrays = []
    for field in columns:
        values = [value[field.name] for _, value in rows]
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise _named(error, rows, block, field) from error
    return pa.table(arrays, schema=columns)


def _named(error: Exception, rows: list[tuple[int, Any]], block: Block, field: Any) -> Exception:
    for row, value in rows:
        try:
            pa.array([value[field.name]], field.type)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as reason:
            return ValueError(f"{block.name(row)}: {field.name}: {reason}")
    return error


class DecodedValues:
    """Columns of values that a schema decodes, one by one."""

    take = staticmethod(_messages_of)

    def __init__(
        self,
        reader_schema: Schema[Any] | None,
        value_of: Callable[[Any], Any],
        columns: pa.Schema,
        is_record: bool,
    ) -> None:
        self.reader_schema = reader_schema
        self._value_of = value_of
        self.columns = columns
        if is_record:
            self._check = record_checker(columns, "")
        else:
            check = checker(columns.field("value").type, "value", False)
            self._check = lambda value: {"value": check(value)}

    def tables(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, pa.Table]]:
        for block in blocks:
            rows = []
            for row, message in enumerate(block.messages or ()):
                if message.has_null_value():
                    continue
                try:
                    value = plain_values(self._value_of(message))
                except errors.PulsarException:
                    raise
                except Exception as error:
                    raise ValueError(f"{block.name(row)}: {error}") from error
                rows.append((row, _fitting(self._check, value, block, row)))
            yield block, _scattered(block, _table_of(rows, block, self.columns))


class AvroValues:
    """Columns of records, natively, as DecodedValues makes them; _Refused where it may know better:
    of what is damaged, of versions that are not listed, of types that have no native column."""

    take = staticmethod(_columns_of_one_schema)
    reader_schema = None

    def __init__(
        self, source: Source, reader: SchemaInfo | None, columns: pa.Schema, slow: DecodedValues
    ) -> None:
        """reader: what all values are resolved to; None: each stays as it was written."""
        self.columns = columns
        self.slow = slow
        self._reader = reader
        self._writers = source.schemas_by_version()
        self._decoders: dict[bytes, AvroDecoder] = {}

    def tables(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, pa.Table]]:
        for block in blocks:
            payloads = block.present()
            table = self.columns.empty_table()
            if len(payloads):  # else tombstones, which may have no version
                assert block.version is not None
                if block.version not in self._decoders:
                    self._decoders[block.version] = self._decoder_of(block.version)
                decoder = self._decoders[block.version]
                table, flaws = decoder.decode(payloads, pa.nulls(len(payloads), pa.int64()))
                if flaws:
                    raise _Refused
            yield block, _scattered(block, self._fitted(table))

    def _decoder_of(self, version: bytes) -> AvroDecoder:
        from pulsarx.tables.avro_columns import AvroDecoder
        from pulsarx.tables.built_columns import built_schema

        writer = self._writers.get(version)
        if self._reader is not None:
            decoder = AvroDecoder(built_schema(self.columns), self._reader, lambda _: writer)
        elif writer is not None:
            decoder = AvroDecoder(built_schema(record_schema(writer)), writer, lambda _: None)
        else:
            raise _Refused
        if not decoder.is_native(None):
            raise _Refused
        return decoder

    def _fitted(self, table: pa.Table) -> pa.Table:
        """The table with the columns of all versions."""
        found = []
        for field in self.columns:
            if field.name not in table.column_names:
                found.append(pa.nulls(table.num_rows, field.type))
                continue
            try:
                found.append(table[field.name].cast(field.type))
            except pa.ArrowException as error:
                raise _Refused from error
        return pa.table(found, schema=self.columns)


def values_of(source: Source, schema: Any) -> JsonValues | AvroValues | DecodedValues:
    """Make the object that turns the values of a topic into columns. schema: as read_table takes
    it."""
    if isinstance(schema, pa.Schema):
        for field in schema:
            _check_is_of_json(field.type, field.name)
        return JsonValues(schema)
    if isinstance(schema, type) and issubclass(schema, Record):
        from pulsarx.schema.json_schema import JsonSchema

        schema = JsonSchema(schema)
    if isinstance(schema, Schema):
        info = schema.schema_info()
        return _of_schema(source, info, None, _decoding_by(schema, source), [info])
    if schema is not None:
        raise ValueError(
            "schema must be a schema of PulsarX, a Record class, a pyarrow.Schema or None, "
            f"not {schema!r:.80}"
        )
    if not source.schemas:
        return JsonValues(None)
    value_of = operator.methodcaller("value")
    return _of_schema(source, None, AutoConsumeSchema(), value_of, source.schemas)


def _decoding_by(schema: Schema[Any], source: Source) -> Callable[[Any], Any]:
    """Make the decoder by a schema that the topic need not have: a reader would bring it to the
    topic."""
    writers = {
        version.decode("latin-1"): info for version, info in source.schemas_by_version().items()
    }
    decoders: dict[str, Callable[[bytes], Any]] = {}

    def value_of(message: Any) -> Any:
        version = message.schema_version()
        if version not in decoders:
            decoders[version] = schema.decoder(writers.get(version))
        return decoders[version](message.data())

    return value_of


def _of_schema(
    source: Source,
    reader: SchemaInfo | None,
    reader_schema: Schema[Any] | None,
    value_of: Callable[[Any], Any],
    infos: list[SchemaInfo],
) -> JsonValues | AvroValues | DecodedValues:
    kinds = {info.schema_type() for info in infos}
    kind = infos[-1].schema_type()
    if kinds <= {SchemaType.JSON} or kinds <= {SchemaType.AVRO}:
        columns = merged((info.version(), record_schema(info)) for info in infos)
        if kind == SchemaType.JSON:
            return JsonValues(columns)
        slow = DecodedValues(reader_schema, value_of, columns, is_record=True)
        return AvroValues(source, reader, columns, slow)
    if len(kinds) > 1 or kind not in PRIMITIVES:
        names = ", ".join(sorted(each.name for each in kinds))
        raise errors.OperationNotSupported(
            detail=f"a table of values of schema type {names} is not supported: give another "
            "schema=, or read them with a reader"
        )
    columns = pa.schema([pa.field("value", PRIMITIVES[kind])])
    return DecodedValues(reader_schema, value_of, columns, is_record=False)


def _check_is_of_json(kind: pa.DataType, path: str) -> None:
    if pa.types.is_struct(kind):
        for field in kind:
            _check_is_of_json(field.type, f"{path}.{field.name}")
    elif pa.types.is_list(kind):
        _check_is_of_json(kind.value_type, f"{path}[]")
    elif pa.types.is_map(kind) and kind.key_type == pa.string():
        _check_is_of_json(kind.item_type, f"{path}{{}}")
    elif not (
        pa.types.is_signed_integer(kind)
        or kind in (pa.bool_(), pa.float64(), pa.string(), pa.binary(), pa.null())
    ):
        raise errors.OperationNotSupported(
            detail=f"a column of {path}: JSON has no {kind}; read bool, int8 to int64, double, "
            "string, binary, list, struct or map of string, and cast afterwards"
        )


# The call -----------------------------------------------------------------------------------------


def read_table(
    client: Any,
    topic: str,
    columns: Iterable[str] | None,
    schema: Any,
    selection: Selection,
    metadata: Iterable[str],
    crypto_key_reader: Any,
    progress: Any,
) -> pa.Table:
    wanted = None if columns is None else _names(columns, "columns")
    described = _names(metadata, "metadata")
    for name in described:
        if name not in METADATA:
            raise ValueError(f"metadata has {name!r}; there are {', '.join(METADATA)}")
    source = Source(client, topic, crypto_key_reader, progress_of(progress, "messages"))
    values = values_of(source, schema)

    def tables(values: JsonValues | AvroValues | DecodedValues) -> Iterator[pa.Table]:
        blocks = selection.of_all(source.blocks(values.take, values.reader_schema))
        if selection.tombstones == "raise":
            blocks = map(_without_tombstones, blocks)
        for block, table in values.tables(blocks):
            if wanted is not None:
                _check_names(wanted, table.column_names, source.topic)
                table = table.select(wanted)
            yield _with_metadata(table, block, described)

    try:
        found = list(tables(values))
    except _Refused:
        assert isinstance(values, AvroValues)
        found = list(tables(values.slow))
    if not found:
        return _empty(values, wanted, described, source.topic)
    return pa.concat_tables([_nullable(each) for each in found])


def _names(given: Iterable[str], what: str) -> list[str]:
    if isinstance(given, str):
        raise ValueError(f"{what} is a str; give a list of names")
    found = list(given)
    if len(set(found)) < len(found):
        raise ValueError(f"{what} has a name twice: {found!r:.200}")
    return found


def _check_names(wanted: list[str], there: list[str], topic: str) -> None:
    for name in wanted:
        if name not in there:
            raise ValueError(f"{topic} has no field {name!r}; it has {', '.join(there) or 'none'}")


def _without_tombstones(block: Block) -> Block:
    values = block.table["value"]
    if values.null_count:
        row = pc.index(pc.is_null(values), True).as_py()
        raise ValueError(
            f"{block.name(row)} has no value (a tombstone); give tombstones='null' for a row of "
            "nulls, or tombstones='skip'"
        )
    return block


def _with_metadata(table: pa.Table, block: Block, names: list[str]) -> pa.Table:
    for name in names:
        if f"__{name}__" in table.column_names:
            raise ValueError(f"{block.topic} has a field __{name}__: leave {name} out of metadata")
        if not table.num_columns:
            table = pa.table({f"__{name}__": block.table[name]})
        else:
            table = table.append_column(f"__{name}__", block.table[name])
    return table


def _nullable(table: pa.Table) -> pa.Table:
    """Tables of one schema, whether they had a tombstone or not."""
    return table.cast(pa.schema([each.with_nullable(True) for each in table.schema]))


def _empty(values: Any, wanted: list[str] | None, described: list[str], topic: str) -> pa.Table:
    columns = values.columns if values.columns is not None else pa.schema([])
    if wanted is not None:
        _check_names(wanted, columns.names, topic)
        columns = pa.schema([columns.field(name) for name in wanted])
    fields = [each.with_nullable(True) for each in columns]
    fields += [pa.field(f"__{name}__", _TYPES[name]) for name in described]
    return pa.schema(fields).empty_table()
