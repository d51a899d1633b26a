"""Decodes a column of Avro into columns of its fields, by the versions of a schema. For Spark's
tasks and for `read_table`.

The fast way is native (`_pycore/arrow/avro_reader`): of each version that values were written with
a program is made, which also resolves it into the wanted one. What has no program (unions of more
than null and a type, aliases, promotions to float and between bytes and string, defaults that are
no plain value, records in themselves), and each value that a program refuses, is read by fastavro,
which so has the last word.
"""

from __future__ import annotations

import json
import struct

import pyarrow as pa
import pyarrow.compute as pc

from pulsarx._pycore.arrow import avro_reader as native
from pulsarx.schema.avro_schema import AvroSchema, parsed
from pulsarx.tables.built_columns import DEPTH_MAX, BuiltColumn, BuiltEntries, NotNative
from pulsarx.tables.json_columns import table_of
from pulsarx.tables.value_types import LOGICAL_TYPES, checker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pulsarx._pycore.arrow.avro_reader import Node
    from pulsarx.schema.schema import SchemaInfo
    from pulsarx.tables.json_columns import Flaws

_NO_PROGRAM = 255
_PRIMITIVES = {
    "boolean": (native.NODE_BOOLEAN, (pa.bool_(),)),
    "int": (native.NODE_INT, (pa.int32(), pa.int64(), pa.float64())),
    "long": (native.NODE_LONG, (pa.int64(), pa.float64())),
    "float": (native.NODE_FLOAT, (pa.float32(), pa.float64())),
    "double": (native.NODE_DOUBLE, (pa.float64(),)),
    "bytes": (native.NODE_BYTES, (pa.binary(),)),
    "string": (native.NODE_STRING, (pa.string(),)),
}
_PROMOTIONS = {("int", "long"), ("int", "double"), ("long", "double"), ("float", "double")}
# By the unit of their column: what a value is multiplied by.
_TIMES = {"time-millis": {"us": 1000, "ns": 1_000_000}, "time-micros": {"us": 1, "ns": 1000}}
_TIMESTAMPS = {
    "timestamp-millis": (False, pa.timestamp("us", "UTC")),
    "timestamp-micros": (True, pa.timestamp("us", "UTC")),
    "local-timestamp-millis": (False, pa.timestamp("us")),
    "local-timestamp-micros": (True, pa.timestamp("us")),
}


class AvroDecoder:
    """Payloads that are Avro records, as columns of fields of the reader's definition. One thread
    at a time."""

    def __init__(
        self,
        fields: pa.Schema,
        reader: SchemaInfo,
        writer_of: Callable[[int | None], SchemaInfo | None],
        *,
        natively: bool = True,
    ) -> None:
        """writer_of: the schema of a version, None: the reader's. ValueError: there is none.
        natively: False, to have all read by fastavro."""
        self._fields = fields
        self._definition = reader.schema()
        self._schema = AvroSchema(None, json.loads(self._definition))
        self._writer_of = writer_of
        self._check = _record_check(fields)
        self._decoders: dict[int | None, Callable[[bytes], Any]] = {}
        self._programs: dict[int | None, int] = {}
        self._columns: list[BuiltColumn] = []
        self._reader: native.AvroReader | None = None
        if natively:
            try:
                built: list[tuple[int, tuple[int, ...]]] = []
                self._columns = [BuiltColumn(each, built) for each in fields]
                tops = tuple(each.number for each in self._columns)
                self._reader = native.AvroReader(built, tops)
            except NotNative:
                pass

    def is_native(self, version: int | None) -> bool:
        """Whether values of a version are read natively."""
        return self._reader is not None and self._program_of(version) != _NO_PROGRAM

    def decode(self, payloads: pa.Array, versions: pa.Array) -> tuple[pa.Table, Flaws]:
        """versions: of the schema that each was written with, null: with none."""
        try:
            found = None if self._reader is None else self._natively(payloads, versions)
        except OverflowError:
            found = None
        if found is None:
            return self._slowly(payloads, versions)
        table, refused = found
        if not refused:
            return table, {}
        rows = pa.array(refused, pa.int64())
        others, flaws = self._slowly(payloads.take(rows), versions.take(rows))
        if len(flaws) < len(refused):
            places = list(range(len(payloads)))
            for at, row in enumerate(refused):
                places[row] = len(payloads) + at
            table = pa.concat_tables([table, others]).take(pa.array(places, pa.int64()))
        return table, {refused[row]: why for row, why in flaws.items()}

    # The native way -------------------------------------------------------------------------------

    def _natively(
        self, payloads: pa.Array, versions: pa.Array
    ) -> tuple[pa.Table, list[int]] | None:
        """The columns, and the rows that were refused; None: no version has a program."""
        assert self._reader is not None
        if not len(payloads):
            return self._fields.empty_table(), []
        codes = versions.dictionary_encode(null_encoding="encode")
        numbers = [self._program_of(each) for each in codes.dictionary.to_pylist()]
        if all(each == _NO_PROGRAM for each in numbers):
            return None
        programs: int | bytes = numbers[0]
        if len(numbers) > 1:
            each_row = pc.take(pa.array(numbers, pa.uint8()), codes.indices)
            programs = each_row.buffers()[1].to_pybytes()[: len(payloads)]
        validity, offsets, data = payloads.buffers()
        built, refused = self._reader.read(
            offsets, data or b"", validity, payloads.offset, len(payloads), programs
        )
        return pa.table([each.array(built) for each in self._columns], self._fields), refused

    def _program_of(self, version: int | None) -> int:
        found = self._programs.get(version)
        if found is None:
            try:
                found = self._add_program(version)
            except (NotNative, ValueError, LookupError, TypeError, OverflowError):
                found = _NO_PROGRAM
            self._programs[version] = found
        return found

    def _add_program(self, version: int | None) -> int:
        assert self._reader is not None
        writer = self._writer_of(version)
        wanted = parsed(json.loads(self._definition))
        if writer is None or writer.schema() == self._definition:
            program = _Program(self._columns, wanted, None)
        elif writer.schema_type() != self._schema.schema_info().schema_type():
            raise NotNative
        else:
            program = _Program(self._columns, parsed(json.loads(writer.schema())), wanted)
        return self._reader.add_program(program.nodes)

    # By fastavro ----------------------------------------------------------------------------------

    def _slowly(self, payloads: pa.Array, versions: pa.Array) -> tuple[pa.Table, Flaws]:
        rows: list[dict[str, Any] | None] = []
        flaws: Flaws = {}
        for row, (payload, version) in enumerate(zip(payloads.to_pylist(), versions.to_pylist())):
            if payload is None:
                rows.append(None)
                continue
            try:
                rows.append(self._check(self._decoder_of(version)(payload)))
            except Exception as error:
                rows.append(None)
                flaws[row] = str(error)
        return table_of(rows, self._fields, self._fields, flaws), flaws

    def _decoder_of(self, version: int | None) -> Callable[[bytes], Any]:
        found = self._decoders.get(version)
        if found is None:
            found = self._decoders[version] = self._schema.decoder(self._writer_of(version))
        return found


def _record_check(fields: pa.Schema) -> Callable[[Any], dict[str, Any]]:
    """A function that checks the fields of a dict, and leaves out those that are not wanted."""
    checks = {each.name: checker(each.type, each.name) for each in fields}

    def check(value: dict[str, Any]) -> dict[str, Any]:
        return {name: check_field(value[name]) for name, check_field in checks.items()}

    return check


# Programs -----------------------------------------------------------------------------------------


class _Program:
    """The nodes that read what was written by a definition, as fastavro keeps it, into columns."""

    def __init__(self, columns: list[BuiltColumn], written: Any, wanted: Any) -> None:
        """wanted: the definition to resolve into; None: the same. NotNative."""
        self.nodes: list[Node] = []
        self._written: dict[str, Any] = {}
        self._wanted: dict[str, Any] = {}
        by_name = {each.name: each for each in columns}
        if not isinstance(written, dict) or written["type"] != "record":
            raise NotNative
        if wanted is not None:
            _check_same(written, wanted, ("record",))
        self._record(written, wanted, -1, by_name, False, 0)

    def _open(self) -> int:
        self.nodes.append((native.NODE_NULL, -1, 0, False, (), ()))
        return len(self.nodes) - 1

    def _close(
        self,
        at: int,
        operation: int,
        column: BuiltColumn | None,
        number: int = 0,
        flag: bool = False,
        children: tuple[int, ...] = (),
        texts: tuple[bytes | None, ...] = (),
    ) -> int:
        place = -1 if column is None else column.number
        self.nodes[at] = (operation, place, number, flag, children, texts)
        return at

    def _add(
        self, written: Any, wanted: Any, column: BuiltColumn | None, passed_over: bool, depth: int
    ) -> int:
        """The number of the node of a value. wanted None: there is nothing to resolve.
        passed_over: the wanted definition has no such field, and fastavro looks at nothing in it.
        """
        if depth > DEPTH_MAX:
            raise NotNative
        if isinstance(written, list):
            return self._union(written, wanted, column, passed_over, depth)
        if isinstance(wanted, list):
            wanted = "null" if written == "null" and "null" in wanted else _other_of(wanted)
        if isinstance(written, str) and written not in _PRIMITIVES and written != "null":
            # A name: fastavro knows it on both sides if it is a name on both.
            if wanted is not None and wanted != written:
                raise NotNative
            wanted = None if wanted is None else self._wanted[written]
            written = self._written[written]
        if isinstance(wanted, str) and wanted not in _PRIMITIVES and wanted != "null":
            raise NotNative
        kind = written["type"] if isinstance(written, dict) else written
        if not isinstance(kind, str):
            raise NotNative
        if kind == "null":
            return self._null(wanted, column)
        if kind == "record":
            return self._nested_record(written, wanted, column, passed_over, depth)
        if kind in ("array", "map"):
            return self._items(kind, written, wanted, column, passed_over, depth)
        if kind in ("enum", "fixed"):
            return self._named(kind, written, wanted, column, passed_over)
        return self._primitive(kind, written, wanted, column, passed_over)

    def _null(self, wanted: Any, column: BuiltColumn | None) -> int:
        if wanted not in (None, "null"):
            raise NotNative
        operation = native.NODE_NULL if column is None else native.NODE_CONSTANT
        return self._close(self._open(), operation, column, 1)

    def _union(
        self,
        written: list[Any],
        wanted: Any,
        column: BuiltColumn | None,
        passed_over: bool,
        depth: int,
    ) -> int:
        other = _other_of(written)
        null = written.index("null")
        refuses = wanted is not None and not isinstance(wanted, list)
        at = self._open()
        child = self._add(
            other,
            _other_of(wanted) if isinstance(wanted, list) else wanted,
            column,
            passed_over,
            depth + 1,
        )
        return self._close(at, native.NODE_OPTIONAL, column, null, refuses, (child,))

    def _nested_record(
        self, written: Any, wanted: Any, column: BuiltColumn | None, passed_over: bool, depth: int
    ) -> int:
        _check_same(written, wanted, ("record",))
        number, children = -1, {}
        if column is not None:
            if not pa.types.is_struct(column.type):
                raise NotNative
            number = column.number
            children = {each.name: each for each in column.children}
        return self._record(written, wanted, number, children, passed_over, depth)

    def _record(
        self,
        written: Any,
        wanted: Any,
        column: int,
        columns: dict[str, BuiltColumn],
        passed_over: bool,
        depth: int,
    ) -> int:
        """columns: those of the fields."""
        at = self._open()
        fields = None if wanted is None else {each["name"]: each for each in wanted["fields"]}
        if fields is not None and any("aliases" in each for each in fields.values()):
            raise NotNative
        children, missing = [], dict(columns)
        for each in written["fields"]:
            name = each["name"]
            own = missing.pop(name, None)
            if fields is None:
                children.append(self._add(each["type"], None, own, passed_over, depth + 1))
            elif name in fields:
                children.append(
                    self._add(each["type"], fields.pop(name)["type"], own, False, depth + 1)
                )
            else:
                children.append(self._add(each["type"], None, None, True, depth + 1))
        for name, field in (fields or {}).items():
            if "default" not in field:
                raise NotNative
            if name in missing:
                children.append(self._constant(field["default"], missing.pop(name)))
        if missing:
            raise NotNative
        self._keep(written, wanted)
        self.nodes[at] = (native.NODE_RECORD, column, 0, False, tuple(children), ())
        return at

    def _items(
        self,
        kind: str,
        written: Any,
        wanted: Any,
        column: BuiltColumn | None,
        passed_over: bool,
        depth: int,
    ) -> int:
        name = "items" if kind == "array" else "values"
        if wanted is not None and (not isinstance(wanted, dict) or wanted["type"] != kind):
            raise NotNative
        is_of_kind = pa.types.is_list if kind == "array" else pa.types.is_map
        if column is not None and not is_of_kind(column.type):
            raise NotNative
        at = self._open()
        child = self._add(
            written[name],
            None if wanted is None else wanted[name],
            _item_of(column),
            passed_over,
            depth + 1,
        )
        if kind == "array" and not self._takes_bytes(child):
            raise NotNative  # as many items as one likes, out of nothing
        operation = native.NODE_ARRAY if kind == "array" else native.NODE_MAP
        return self._close(at, operation, column, 0, not passed_over, (child,))

    def _takes_bytes(self, at: int) -> bool:
        operation, _, number, _, children, _ = self.nodes[at]
        if operation in (native.NODE_NULL, native.NODE_CONSTANT):
            return False
        if operation == native.NODE_FIXED:
            return number > 0
        if operation in (native.NODE_RECORD, native.NODE_DECIMAL) and (
            children or operation == native.NODE_RECORD
        ):
            return any(self._takes_bytes(each) for each in children)
        return True

    def _named(
        self, kind: str, written: Any, wanted: Any, column: BuiltColumn | None, passed_over: bool
    ) -> int:
        _check_same(written, wanted, (kind,))
        self._keep(written, wanted)
        at = self._open()
        if kind == "enum":
            _expect(column, (pa.string(),))
            known = None if wanted is None else set(wanted["symbols"])
            texts = tuple(
                each.encode() if known is None or each in known else None
                for each in written["symbols"]
            )
            return self._close(at, native.NODE_ENUM, column, texts=texts)
        size = written["size"]
        if wanted is not None and wanted["size"] != size:
            raise NotNative
        logical = _logical_of(written, wanted, passed_over)
        if logical is None:
            _expect(column, (pa.binary(),))
            return self._close(at, native.NODE_FIXED, column, size)
        if logical != "decimal":
            raise NotNative
        fixed = self._close(self._open(), native.NODE_FIXED, None, size)
        return self._close(
            at, native.NODE_DECIMAL, column, _precision(written, column), children=(fixed,)
        )

    def _primitive(
        self, kind: str, written: Any, wanted: Any, column: BuiltColumn | None, passed_over: bool
    ) -> int:
        if kind not in _PRIMITIVES:
            raise NotNative
        at = self._open()
        wanted_kind = wanted["type"] if isinstance(wanted, dict) else wanted
        logical = _logical_of(written, wanted, passed_over)
        if wanted is not None and wanted_kind != kind:
            if logical is not None or (kind, wanted_kind) not in _PROMOTIONS:
                raise NotNative
        if logical is None:
            operation, kinds = _PRIMITIVES[kind]
            _expect(column, kinds)
            return self._close(at, operation, column)
        if (kind, logical) == ("int", "date"):
            _expect(column, (pa.date32(),))
            return self._close(at, native.NODE_DATE, column)
        if (kind, logical) == ("bytes", "decimal"):
            return self._close(at, native.NODE_DECIMAL, column, _precision(written, column))
        if (kind, logical) in (("int", "time-millis"), ("long", "time-micros")):
            unit = "us" if column is None else getattr(column.type, "unit", "")
            _expect(column, (pa.time64("us"), pa.time64("ns")))
            factor = _TIMES[logical][unit]
            return self._close(at, native.NODE_TIME, column, factor, kind == "long")
        if kind == "long" and logical in _TIMESTAMPS:
            in_micros, expected = _TIMESTAMPS[logical]
            _expect(column, (expected,))
            return self._close(at, native.NODE_TIMESTAMP, column, 0, in_micros)
        raise NotNative

    def _constant(self, default: Any, column: BuiltColumn) -> int:
        """The value of a field that was not written."""
        kind = column.type
        try:
            value = checker(kind, column.name)(default)
            pa.array([value], kind)
        except (ValueError, TypeError, OverflowError, pa.ArrowException) as error:
            raise NotNative from error
        at = self._open()
        if value is None:
            return self._close(at, native.NODE_CONSTANT, column, 1)
        if (pa.types.is_list(kind) or pa.types.is_map(kind)) and not value:
            return self._close(at, native.NODE_CONSTANT, column, 0)
        if kind in (pa.int32(), pa.int64(), pa.bool_()):
            return self._close(at, native.NODE_CONSTANT, column, int(value), True)
        if kind == pa.float64():
            texts: tuple[bytes, ...] = (struct.pack("<d", value),)
        elif kind in (pa.string(), pa.binary()):
            texts = (value.encode() if isinstance(value, str) else value,)
        else:
            raise NotNative
        return self._close(at, native.NODE_CONSTANT, column, texts=texts)

    def _keep(self, written: Any, wanted: Any) -> None:
        """A named type, which may be referred to from now on."""
        self._written[written["name"]] = written
        if wanted is not None:
            self._wanted[wanted["name"]] = wanted


def _other_of(union: list[Any]) -> Any:
    """The type that may be null."""
    others = [each for each in union if each != "null"]
    if len(others) != 1 or len(union) != 2:
        raise NotNative
    return others[0]


def _item_of(column: BuiltColumn | None) -> BuiltColumn | None:
    if column is None:
        return None
    child = column.children[0]
    return child.children[1] if isinstance(child, BuiltEntries) else child


def _check_same(written: Any, wanted: Any, kinds: tuple[str, ...]) -> None:
    """Check that both are of one name and kind."""
    if wanted is None:
        return
    if (
        not isinstance(wanted, dict)
        or wanted["type"] not in kinds
        or written["name"] != wanted["name"]
    ):
        raise NotNative


def _logical_of(written: Any, wanted: Any, passed_over: bool) -> str | None:
    """The logical type, the same on both sides. What is passed over is read without."""
    if passed_over:
        return None
    keys = ("logicalType", "precision", "scale")
    ours, theirs = (
        [each.get(key) for key in keys] if _is_known(each) else [None] * len(keys)
        for each in (written, wanted if wanted is not None else written)
    )
    if ours[0] is None and theirs[0] is None:
        return None
    if ours != theirs:
        raise NotNative
    found: str | None = ours[0]
    return found


def _is_known(definition: Any) -> bool:
    """Whether it has a logical type that is not ignored."""
    if not isinstance(definition, dict) or not isinstance(definition["type"], str):
        return False
    return (definition["type"], definition.get("logicalType")) in LOGICAL_TYPES


def _precision(written: dict[str, Any], column: BuiltColumn | None) -> int:
    precision: int = written["precision"]
    if type(precision) is not int or not 1 <= precision <= 38:
        raise NotNative
    _expect(column, (pa.decimal128(precision, written.get("scale", 0)),))
    return precision


def _expect(column: BuiltColumn | None, kinds: tuple[pa.DataType, ...]) -> None:
    if column is not None and column.type not in kinds:
        raise NotNative
