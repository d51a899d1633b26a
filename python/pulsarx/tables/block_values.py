"""Values of messages as columns, by the schemas of their topics or as they are found. For the calls
that read topics as tables.

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

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from pulsarx import errors
from pulsarx._pycore.arrow.json_lines import json_lines
from pulsarx._pycore.ground.job_queue import JobQueue
from pulsarx.enumerations import SchemaType
from pulsarx.schema.auto_consume import AutoConsumeSchema
from pulsarx.schema.definition import Record, plain_values
from pulsarx.schema.schema import Schema, SchemaInfo
from pulsarx.tables.selection import Block
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from pulsarx.tables.avro_columns import AvroDecoder

AHEAD = 2  # blocks that are parsed at once
AT_ONCE = 8  # messages that are read before their size is looked at
DEPTH_MAX = 100  # of columns whose types are found in the messages
_MESSAGE_ID = pa.struct(
    [
        pa.field("ledger_id", pa.int64(), False),
        pa.field("entry_id", pa.int64(), False),
        pa.field("partition", pa.int32(), False),
        pa.field("batch_index", pa.int32(), False),
    ]
)
METADATA_TYPES = {
    "message_id": _MESSAGE_ID,
    "key": pa.string(),
    "publish_time": pa.timestamp("ms", "UTC"),
    "event_time": pa.timestamp("ms", "UTC"),
    "properties": pa.map_(pa.string(), pa.string()),
    "topic": pa.string(),
}
_TYPES = {**METADATA_TYPES, "value": pa.binary()}


# Taking blocks ------------------------------------------------------------------------------------


def _columns_of(reader: Any, topic: str, rows: int, size: int) -> Block:
    return Block(topic, reader._core.receive_arrow_block(rows, 1000, size, False).to_arrow())


def _columns_of_one_schema(reader: Any, topic: str, rows: int, size: int) -> Block:
    found = reader._core.receive_arrow_block(rows, 1000, size, True)
    return Block(topic, found.to_arrow(), version=found.schema_version)


def _messages_of(reader: Any, topic: str, rows: int, size: int) -> Block:
    messages: list[Any] = []
    while len(messages) < rows and size > 0 and (not messages or reader.has_message_available()):
        found = reader.read_many(min(rows - len(messages), AT_ONCE), 1000)
        if not found:
            break  # the dispatch rate holds them back
        messages += found
        size -= sum([len(message.data()) for message in found])
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


class Refused(Exception):
    """The fast way does not take it."""


class _TableJob:
    """The table of a block, made in a thread."""

    def __init__(self, thread: JobQueue, block: Block, make: Callable[[Block], pa.Table]) -> None:
        self._thread = thread
        self._block = block
        self._make = make
        self._made: pa.Table | BaseException
        thread.post(self)

    def __call__(self) -> None:
        try:
            self._made = self._make(self._block)
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

    take: Callable[[Any, str, int, int], Block] = staticmethod(_columns_of)
    reader_schema = None

    def __init__(self, columns: pa.Schema | None) -> None:
        self.columns = columns

    def tables(
        self, blocks: Iterable[Block], wanted: list[str] | None
    ) -> Iterator[tuple[Block, pa.Table]]:
        """Each block with the columns of its values; a tombstone has nulls. wanted: the columns
        that are parsed, None: all, and no other field may be there."""
        if self.columns is None:
            yield from self._found(blocks, wanted)
            return
        columns = of_names(self.columns, wanted)
        # pyarrow's reader of JSON knows no maps.
        parser = _Parser(columns, wanted is None, not any(_has_map(each.type) for each in columns))
        # The next blocks are read and made lines of while pyarrow parses the one before.
        threads = deque(JobQueue("pulsarx-table") for _ in range(AHEAD))
        waiting: deque[_TableJob] = deque()
        try:
            for block in blocks:
                if len(waiting) == AHEAD:
                    yield waiting.popleft().result()
                waiting.append(_TableJob(threads[0], block, parser.table))
                threads.rotate()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for thread in threads:
                thread.close()

    def find(self, blocks: Iterable[Block]) -> None:
        """Find the columns that the messages have, one block after the other."""
        inference = _Inference()
        for block in blocks:
            inference.add(block)
        self.columns = inference.columns

    def _found(
        self, blocks: Iterable[Block], wanted: list[str] | None
    ) -> Iterator[tuple[Block, pa.Table]]:
        """Find the columns, and keep all tables that have them already."""
        inference = _Inference()
        kept = [(block, inference.add(block)) for block in blocks]
        self.columns = inference.columns
        parser = _Parser(self.columns, True, True)
        for block, table in kept:
            if table is None or table.schema != self.columns:
                table = parser.table(block)
            else:
                table = _scattered(block, table)
            names = table.column_names if wanted is None else wanted
            yield block, table.select([each for each in names if each in table.column_names])


class _Parser:
    """Parses blocks of JSON objects into columns. Any thread may call."""

    def __init__(self, columns: pa.Schema, is_all: bool, is_fast: bool) -> None:
        """is_all: no other field may be there. is_fast: pyarrow's reader has all the types."""
        self._columns = columns
        self._is_all = is_all
        self._is_fast = is_fast
        self._check = record_checker(columns, "")

    def table(self, block: Block) -> pa.Table:
        if self._is_fast:
            try:
                found = _parsed(*_lines(block.present()), self._columns, self._is_all)
                return _scattered(block, found)
            except Refused:
                pass
        rows = [
            (row, _fitting(self._check, value, block, row)) for row, value in self._objects(block)
        ]
        return _scattered(block, _table_of(rows, block, self._columns))

    def _objects(self, block: Block) -> Iterator[tuple[int, Any]]:
        if self._is_all:
            yield from _objects(block)
            return
        names = self._columns.names
        for row, value in _objects(block):
            yield row, {name: value[name] for name in names if name in value}


class _Inference:
    """Finds the columns of JSON objects: those of all blocks that were added."""

    def __init__(self) -> None:
        self.columns = pa.schema([])

    def add(self, block: Block) -> pa.Table | None:
        """Return the block as a table without its tombstones; None: the fast way does not take it.
        ValueError names a message that does not go with those before."""
        try:
            lines = _lines(block.present())
            table = _parsed(*lines, None)
            _check_depth(table.schema.types, block)
            columns = pa.schema([each.with_type(without_times(each.type)) for each in table.schema])
            if columns != table.schema:  # texts that look like times are texts
                table = _parsed(*lines, columns)
        except Refused:
            table, columns = None, _columns_found(block)
        try:
            self.columns = _joined(self.columns, columns)
        except pa.ArrowException as error:
            raise self._conflict(block) or error from error
        return table

    def _conflict(self, block: Block) -> ValueError | None:
        """Say which message does not go with those before."""
        columns = self.columns
        for row, value in _objects(block):
            try:
                columns = _joined(columns, _columns_of_objects([value]))
            except pa.ArrowException as error:
                return ValueError(
                    f"{block.name(row)} does not go with those before: {error}; give schema="
                )
        return None


def _joined(left: pa.Schema, right: pa.Schema) -> pa.Schema:
    return pa.unify_schemas([left, right], promote_options="permissive")


def of_names(columns: pa.Schema, names: list[str] | None) -> pa.Schema:
    """Columns by their names; those that are not there are left out."""
    if names is None:
        return columns
    return pa.schema([columns.field(each) for each in names if each in columns.names])


def _has_map(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_map(each.type) for each in kind)
    if pa.types.is_list(kind):
        return _has_map(kind.value_type)
    return bool(pa.types.is_map(kind))


def _lines(values: pa.Array) -> tuple[bytes, int, int]:
    """The payloads as lines, how many, and the longest. Refused: one is no JSON object."""
    if not len(values):
        return b"", 0, 0
    _, offsets, data = values.buffers()
    lines, taken, longest, _ = json_lines(offsets, data or b"", values.offset, len(values))
    if taken < len(values):
        raise Refused
    return lines, taken, longest


def _parsed(
    lines: bytes, count: int, longest: int, columns: pa.Schema | None, is_all: bool = True
) -> pa.Table:
    if not count:
        return (columns or pa.schema([])).empty_table()
    behaviour = "infer" if columns is None else "error" if is_all else "ignore"
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
        raise Refused from error
    # Beyond 2^53 a double may stand for an integer that it is not.
    if found.num_rows != count or any(map(has_large_number, found.columns)):
        raise Refused
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


def _columns_found(block: Block) -> pa.Schema:
    """Have pyarrow find the columns of the values. ValueError names a message that does not go with
    those before."""
    rows = list(_objects(block))
    values = [value for _, value in rows]

    def fails(count: int) -> Exception | None:
        try:
            pa.array(values[:count])
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            return error
        return None

    if fails(len(values)) is None:
        found = _columns_of_objects(values)
        _check_depth(found.types, block)
        return found
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        if fails(middle) is None:
            good = middle
        else:
            bad = middle
    row, _ = rows[bad - 1]
    raise ValueError(f"{block.name(row)} does not go with those before: {fails(bad)}; give schema=")


def _columns_of_objects(values: list[Any]) -> pa.Schema:
    kind = pa.array(values, None).type
    return pa.schema(list(kind) if pa.types.is_struct(kind) else [])


def _check_depth(kinds: list[pa.DataType], block: Block) -> None:
    """ValueError names a message whose lists and objects lie too deep in each other."""
    if not _is_deeper(kinds, DEPTH_MAX, lambda kind: [each.type for each in _fields(kind)]):
        return
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

    take: Callable[[Any, str, int, int], Block] = staticmethod(_messages_of)

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

    def tables(
        self, blocks: Iterable[Block], wanted: list[str] | None
    ) -> Iterator[tuple[Block, pa.Table]]:
        """Like JsonValues.tables; all fields are decoded."""
        columns = of_names(self.columns, wanted)
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
            yield block, _scattered(block, _table_of(rows, block, columns))


class AvroValues:
    """Columns of records, natively, as DecodedValues makes them; Refused where it may know better:
    of what is damaged, of versions that are not listed, of types that have no native column."""

    take: Callable[[Any, str, int, int], Block] = staticmethod(_columns_of_one_schema)
    reader_schema = None

    def __init__(
        self,
        schemas: list[SchemaInfo],
        reader: SchemaInfo | None,
        columns: pa.Schema,
        slow: DecodedValues,
    ) -> None:
        """reader: what all values are resolved to; None: each stays as it was written."""
        self.columns = columns
        self.slow = slow
        self._reader = reader
        self._writers = _by_version(schemas)

    def tables(
        self, blocks: Iterable[Block], wanted: list[str] | None
    ) -> Iterator[tuple[Block, pa.Table]]:
        """Like JsonValues.tables; what is not wanted is passed over."""
        columns = of_names(self.columns, wanted)
        decoders: dict[bytes, AvroDecoder] = {}
        for block in blocks:
            payloads = block.present()
            table = columns.empty_table()
            if len(payloads):  # else tombstones, which may have no version
                assert block.version is not None
                if block.version not in decoders:
                    decoders[block.version] = self._decoder_of(block.version, columns)
                decoder = decoders[block.version]
                table, flaws = decoder.decode(payloads, pa.nulls(len(payloads), pa.int64()))
                if flaws:
                    raise Refused
            yield block, _scattered(block, _fitted(table, columns))

    def _decoder_of(self, version: bytes, columns: pa.Schema) -> AvroDecoder:
        from pulsarx.tables.avro_columns import AvroDecoder
        from pulsarx.tables.built_columns import built_schema

        writer = self._writers.get(version)
        if self._reader is not None:
            decoder = AvroDecoder(built_schema(columns), self._reader, lambda _: writer)
        elif writer is not None:
            written = of_names(record_schema(writer), columns.names)
            decoder = AvroDecoder(built_schema(written), writer, lambda _: None)
        else:
            raise Refused
        if not decoder.is_native(None):
            raise Refused
        return decoder


def _fitted(table: pa.Table, columns: pa.Schema) -> pa.Table:
    """The table with the columns of all versions. Refused: a value does not go there."""
    found = []
    for field in columns:
        if field.name not in table.column_names:
            found.append(pa.nulls(table.num_rows, field.type))
            continue
        try:
            found.append(table[field.name].cast(field.type))
        except pa.ArrowException as error:
            raise Refused from error
    return pa.table(found, schema=columns)


def values_of(schemas: list[SchemaInfo], schema: Any) -> JsonValues | AvroValues | DecodedValues:
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
        return _of_schema(schemas, info, None, _decoding_by(schema, schemas), [info])
    if schema is not None:
        raise ValueError(
            "schema must be a schema of PulsarX, a Record class, a pyarrow.Schema or None, "
            f"not {schema!r:.80}"
        )
    if not schemas:
        return JsonValues(None)
    value_of = operator.methodcaller("value")
    return _of_schema(schemas, None, AutoConsumeSchema(), value_of, schemas)


def _by_version(schemas: list[SchemaInfo]) -> dict[bytes, SchemaInfo]:
    """The schemas by their versions, in the bytes by which messages name them."""
    return {(each.version() or 0).to_bytes(8, "big"): each for each in schemas}


def _decoding_by(schema: Schema[Any], schemas: list[SchemaInfo]) -> Callable[[Any], Any]:
    """Make the decoder by a schema that the topic need not have: a reader would bring it to the
    topic."""
    writers = {version.decode("latin-1"): info for version, info in _by_version(schemas).items()}
    decoders: dict[str, Callable[[bytes], Any]] = {}

    def value_of(message: Any) -> Any:
        version = message.schema_version()
        if version not in decoders:
            decoders[version] = schema.decoder(writers.get(version))
        return decoders[version](message.data())

    return value_of


def _of_schema(
    schemas: list[SchemaInfo],
    reader: SchemaInfo | None,
    reader_schema: Schema[Any] | None,
    value_of: Callable[[Any], Any],
    infos: list[SchemaInfo],
) -> JsonValues | AvroValues | DecodedValues:
    kinds = {info.schema_type() for info in infos}
    kind = infos[-1].schema_type()
    if kinds <= {SchemaType.JSON} or kinds <= {SchemaType.AVRO}:
        columns = merged((f"version {info.version()}", record_schema(info)) for info in infos)
        if kind == SchemaType.JSON:
            return JsonValues(columns)
        slow = DecodedValues(reader_schema, value_of, columns, is_record=True)
        return AvroValues(schemas, reader, columns, slow)
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
