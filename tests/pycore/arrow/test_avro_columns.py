"""Avro as columns: the native reader makes what fastavro makes, of good values and of any bytes."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import json
import math
import random
from typing import Any

import pytest

pytest.importorskip("fastavro", reason="no fastavro: pip install 'pulsarx[avro]'")
pa = pytest.importorskip("pyarrow", reason="no PyArrow: pip install 'pulsarx[arrow]'")

from seeds import seeds  # noqa: E402

from pulsarx._pycore.arrow.avro_reader import NODE_LONG, AvroReader  # noqa: E402
from pulsarx.schema import AvroSchema  # noqa: E402
from pulsarx.tables.avro_columns import AvroDecoder  # noqa: E402
from pulsarx.tables.value_types import record_schema  # noqa: E402

PRIMITIVES = ["boolean", "int", "long", "float", "double", "bytes", "string"]
LOGICAL = [
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "time-micros"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "long", "logicalType": "timestamp-micros"},
    {"type": "long", "logicalType": "local-timestamp-millis"},
    {"type": "long", "logicalType": "local-timestamp-micros"},
    {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
    {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10},
]
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Definitions:
    """Draws definitions, other versions of them, and values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def name(self) -> str:
        self.names += 1
        return f"n{self.names}"

    def record(self, depth: int) -> dict[str, Any]:
        fields: list[dict[str, Any]] = []
        for _ in range(self.random.randrange(1, 6)):
            fields.append({"name": self.name(), "type": self.type(depth)})
            if isinstance(fields[-1]["type"], list):
                fields[-1]["default"] = None
        return {"type": "record", "name": self.name(), "fields": fields}

    def type(self, depth: int) -> Any:
        draw = self.random.random()
        if draw < 0.25:
            return ["null", self.plain(depth)]
        return self.plain(depth)

    def plain(self, depth: int) -> Any:
        draw = self.random.random()
        if draw < 0.5 or depth == 0:
            return self.random.choice(PRIMITIVES)
        if draw < 0.65:
            return dict(self.random.choice(LOGICAL))
        if draw < 0.72:
            symbols = [f"S{number}" for number in range(self.random.randrange(1, 5))]
            return {"type": "enum", "name": self.name(), "symbols": symbols}
        if draw < 0.76:
            return {"type": "fixed", "name": self.name(), "size": self.random.randrange(1, 9)}
        if draw < 0.79:
            return {
                "type": "fixed", "name": self.name(), "size": 8,
                "logicalType": "decimal", "precision": 12, "scale": 3,
            }  # fmt: skip
        if draw < 0.87:
            return {"type": "array", "items": self.type(depth - 1)}
        if draw < 0.92:
            return {"type": "map", "values": self.type(depth - 1)}
        return self.record(depth - 1)

    def later(self, definition: dict[str, Any]) -> dict[str, Any]:
        """A version that readers may have."""
        found = copy.deepcopy(definition)
        self.change(found)
        return found

    def change(self, record: dict[str, Any]) -> None:
        fields = record["fields"]
        if self.random.random() < 0.3 and len(fields) > 1:
            fields.pop(self.random.randrange(len(fields)))
        if self.random.random() < 0.3:
            self.random.shuffle(fields)
        for field in fields:
            kind = field["type"]
            if kind == "int" and self.random.random() < 0.5:
                field["type"] = self.random.choice(["long", "double", "float"])
            elif kind == "float" and self.random.random() < 0.5:
                field["type"] = "double"
            elif isinstance(kind, str) and self.random.random() < 0.2:
                field["type"] = self.random.choice([["null", kind], [kind, "null"]])
            elif isinstance(kind, list) and self.random.random() < 0.1:
                field["type"] = kind[1]
                field.pop("default", None)
            elif isinstance(kind, dict) and kind["type"] == "record":
                self.change(kind)
            elif isinstance(kind, dict) and kind["type"] == "enum":
                kind["symbols"] = self.random.sample(kind["symbols"], len(kind["symbols"]))
                kind["symbols"].append("LATER")
                if self.random.random() < 0.3:
                    kind["symbols"].pop(0)
        for _ in range(self.random.randrange(3)):
            kind, default = self.random.choice(
                [("int", 7), ("long", 1 << 40), ("double", 1.5), ("string", "ü"), ("boolean", True),
                 (["null", "string"], None), ({"type": "array", "items": "int"}, []),
                 ({"type": "map", "values": "int"}, {}), (["null", {"type": "array",
                 "items": "int"}], None), ("float", 0.5), ({"type": "array", "items": "int"}, [1])]
            )  # fmt: skip
            fields.append({"name": self.name(), "type": kind, "default": default})

    def value(self, kind: Any) -> Any:
        draw = self.random
        if isinstance(kind, list):
            branch = next(each for each in kind if each != "null")
            return None if "null" in kind and draw.random() < 0.4 else self.value(branch)
        name = kind["type"] if isinstance(kind, dict) else kind
        if isinstance(kind, dict) and "logicalType" in kind:
            return self.logical(kind)
        if name == "record":
            return {each["name"]: self.value(each["type"]) for each in kind["fields"]}
        if name == "array":
            return [self.value(kind["items"]) for _ in range(draw.choice([0, 1, 2, 3, 40]))]
        if name == "map":
            count = draw.choice([0, 1, 2, 3, 30])
            return {self.text(): self.value(kind["values"]) for _ in range(count)}
        if name == "enum":
            return draw.choice(kind["symbols"])
        if name == "fixed":
            return draw.randbytes(kind["size"])
        return {
            "boolean": lambda: draw.random() < 0.5,
            "int": lambda: draw.choice([0, -1, 5, 2**31 - 1, -(2**31), draw.randrange(1000)]),
            "long": lambda: draw.choice([0, -1, 2**63 - 1, -(2**63), 2**53 + 1]),
            "float": lambda: draw.choice([0.0, -0.0, 1.5, math.inf, 3.4e38]),
            "double": lambda: draw.choice([0.1, -0.0, 1e308, -math.inf, draw.random()]),
            "bytes": lambda: draw.randbytes(draw.randrange(40)),
            "string": self.text,
        }[name]()

    def text(self) -> str:
        return "".join(self.random.choices("aé水🐟\0z", k=self.random.choice([0, 1, 5, 20])))

    def logical(self, kind: dict[str, Any]) -> Any:
        draw = self.random
        name = kind["logicalType"]
        if name == "date":
            return dt.date.fromordinal(draw.randrange(1, dt.date.max.toordinal() + 1))
        if name == "time-micros":
            return (EPOCH + dt.timedelta(microseconds=draw.randrange(86_400_000_000))).time()
        if name == "decimal":
            digits = draw.randrange(10 ** draw.randrange(1, kind["precision"] + 1))
            context = decimal.Context(prec=50)
            number = context.create_decimal(digits).scaleb(-kind["scale"], context)
            return draw.choice([number, context.minus(number)])
        step = 1000 if name.endswith("millis") else 1
        time = EPOCH + dt.timedelta(microseconds=draw.randrange(-(10**15), 10**16) // step * step)
        return time.replace(tzinfo=None) if name.startswith("local") else time

    def broken(self, payload: bytes) -> bytes:
        found = bytearray(payload)
        for _ in range(self.random.randrange(1, 4)):
            at = self.random.randrange(len(found) + 1)
            draw = self.random.random()
            if draw < 0.4 and at < len(found):
                found[at] = self.random.randrange(256)
            elif draw < 0.6:
                del found[at:]
            elif draw < 0.8:
                found[at:at] = self.random.choice(
                    [b"\xff" * 9 + b"\x01", b"\xff" * 11, b"\x80\x00", b"\x01", b"\xfe\xff\xff\x7f"]
                )
            else:
                found[at:at] = self.random.randbytes(self.random.randrange(1, 5))
        return bytes(found)


def column_type(kind: Any) -> Any:
    """As Spark has it."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, column_type(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field("element", column_type(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(pa.string(), column_type(kind.item_type))
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_time(kind):
        return pa.time64("ns")
    return kind


def columns_of(schema: AvroSchema, names: list[str] | None = None) -> Any:
    found = record_schema(schema.schema_info())
    return pa.schema(
        [pa.field(each.name, column_type(each.type)) for each in found
         if names is None or each.name in names]
    )  # fmt: skip


def both(fields: Any, reader: AvroSchema, writers: dict[int | None, Any]) -> list[AvroDecoder]:
    info = reader.schema_info()
    return [AvroDecoder(fields, info, writers.__getitem__, natively=each) for each in (True, False)]


def check_same(
    decoders: list[AvroDecoder], payloads: list[bytes | None], versions: list[int | None]
) -> tuple[Any, dict[int, str]]:
    """What both make of it. The payloads are a slice, as those of a batch may be."""
    column = pa.array([b"before", None, *payloads], pa.binary()).slice(2)
    numbers = pa.array(versions, pa.int64())
    (native, native_flaws), (other, other_flaws) = (
        each.decode(column, numbers) for each in decoders
    )
    native.validate(full=True)
    assert spoken(native_flaws) == spoken(other_flaws)
    # As texts: a NaN is one, and the sign of a zero counts.
    assert native.schema == other.schema
    assert repr(native.to_pylist()) == repr(other.to_pylist())
    return native, native_flaws


def spoken(flaws: dict[int, str]) -> dict[int, str]:
    """Without the places of objects in memory."""
    return {row: why.split(" from <")[0] for row, why in flaws.items()}


@pytest.mark.parametrize("seed", seeds(40))
def test_native_columns_are_those_of_fastavro(seed):
    draw = Definitions(seed)
    definition = draw.record(3)
    schema = AvroSchema(None, definition)
    names = [each["name"] for each in definition["fields"]]
    fields = columns_of(schema, draw.random.sample(names, draw.random.randrange(1, len(names) + 1)))
    payloads: list[bytes | None] = [schema.encode(draw.value(definition)) for _ in range(60)]
    payloads[7] = None
    decoders = both(fields, schema, {None: None})
    assert decoders[0].is_native(None) and not decoders[1].is_native(None)
    found, flaws = check_same(decoders, payloads, [None] * 60)
    assert not flaws and found.num_rows == 60
    # Any bytes: the same rows are refused, with the same reason.
    hostile = [each if each is None else draw.broken(each) for each in payloads]
    hostile += [draw.random.randbytes(draw.random.randrange(30)) for _ in range(60)]
    _, flaws = check_same(decoders, hostile, [None] * len(hostile))
    assert flaws


@pytest.mark.parametrize("seed", seeds(60))
def test_versions_are_resolved_as_fastavro_resolves_them(seed):
    draw = Definitions(seed)
    first = draw.record(2)
    later = draw.later(first)
    wanted = AvroSchema(None, later)
    writers = {1: AvroSchema(None, first), 2: wanted, 3: AvroSchema(None, draw.later(first))}
    infos = {version: each.schema_info() for version, each in writers.items()}
    names = [each["name"] for each in later["fields"]]
    fields = columns_of(wanted, draw.random.sample(names, max(len(names) // 2, 1)))
    payloads: list[bytes | None] = []
    versions: list[int | None] = []
    for _ in range(60):
        version = draw.random.choice([1, 1, 1, 2, 3])
        definition = json.loads(infos[version].schema())
        payload = writers[version].encode(draw.value(definition))
        if draw.random.random() < 0.2:
            # Only cut: fastavro passes over as many items as a broken count says, however few
            # bytes there are.
            payload = payload[: draw.random.randrange(len(payload) + 1)]
        payloads.append(payload)
        versions.append(version)
    check_same(both(fields, wanted, infos | {None: None}), payloads, versions)


def record(*fields: tuple[Any, ...]) -> dict[str, Any]:
    described = [dict(zip(("name", "type", "default"), each)) for each in fields]
    return {"type": "record", "name": "R", "fields": described}


@pytest.mark.parametrize(
    "written, wanted",
    [
        (record(("a", "int"), ("b", "string")), record(("b", "string"), ("a", "long"))),
        (record(("a", "int"), ("b", "string")), record(("b", "string"))),
        (record(("a", "int")), record(("a", "int"), ("s", "string", "x"), ("d", "double", 1))),
        (record(("a", "int")), record(("a", ["null", "double"]), ("l", ["null", "long"], None))),
        (record(("a", ["null", "int"])), record(("a", ["long", "null"]))),
        (
            record(("a", {"type": "array", "items": "int"}), ("b", record(("c", "int")))),
            record(("a", {"type": "array", "items": "long"}), ("m", ["null", "string"], None)),
        ),
    ],
)
def test_usual_changes_of_a_schema_are_read_natively(written, wanted):
    if len(written["fields"]) > 1 and isinstance(written["fields"][1]["type"], dict):
        written["fields"][1]["type"]["name"] = "Inner"
    old, new = AvroSchema(None, written), AvroSchema(None, wanted)
    decoders = both(columns_of(new), new, {1: old.schema_info()})
    assert decoders[0].is_native(1)
    draw = Definitions(1)
    payloads: list[bytes | None] = [old.encode(draw.value(written)) for _ in range(20)]
    _, flaws = check_same(decoders, payloads, [1] * 20)
    assert not flaws


def test_what_has_no_program_is_read_by_fastavro():
    old = AvroSchema(None, record(("a", "int"), ("b", ["null", "int", "string"])))
    new = AvroSchema(None, record(("a", "float"), ("l", {"type": "array", "items": "int"}, [1])))
    decoders = both(columns_of(new), new, {1: old.schema_info(), 2: new.schema_info()})
    assert not decoders[0].is_native(1) and decoders[0].is_native(2)
    payloads = [old.encode({"a": 3, "b": "x"}), new.encode({"a": 0.5, "l": [2]}), None, b"\x80"]
    found, flaws = check_same(decoders, payloads, [1, 2, 1, 2])
    assert found.to_pylist()[:2] == [{"a": 3.0, "l": [1]}, {"a": 0.5, "l": [2]}]
    assert list(flaws) == [3]


def test_what_native_code_refuses_and_fastavro_takes_is_there():
    """A key that comes twice, a union's index from its end, another true."""
    definition = record(("m", {"type": "map", "values": "int"}), ("u", ["null", "int"]),
                        ("b", "boolean"))  # fmt: skip
    schema = AvroSchema(None, definition)
    good = schema.encode({"m": {"k": 1}, "u": 4, "b": True})
    twice = b"\x04\x02k\x02\x02k\x04\x00" + b"\x00" + b"\x01"
    from_end = b"\x00" + b"\x01\x08" + b"\x07"
    found, flaws = check_same(
        both(columns_of(schema), schema, {None: None}), [good, twice, from_end, b""], [None] * 4
    )
    assert list(flaws) == [3]
    assert found.to_pylist()[1]["m"] == [("k", 2)] and found.to_pylist()[2]["b"] is True


def test_blocks_with_their_size_and_many_keys_are_read():
    definition = record(("l", {"type": "array", "items": "long"}),
                        ("m", {"type": "map", "values": "int"}))  # fmt: skip
    schema = AvroSchema(None, definition)
    sized = b"\x03\x04\x02\x04" + b"\x02\x06" + b"\x00" + b"\x00"
    many = schema.encode({"l": [], "m": {f"key {number}": number for number in range(300)}})
    decoders = both(columns_of(schema), schema, {None: None})
    found, flaws = check_same(decoders, [sized, many], [None, None])
    assert not flaws and found.to_pylist()[0]["l"] == [1, 2, 3]
    assert len(found.to_pylist()[1]["m"]) == 300


def test_a_version_that_is_not_there_is_said_of_its_rows():
    def writer_of(version: int | None) -> Any:
        if version is None:
            return None
        raise ValueError(f"no version {version}")

    schema = AvroSchema(None, record(("a", "int")))
    decoder = AvroDecoder(columns_of(schema), schema.schema_info(), writer_of)
    found, flaws = decoder.decode(pa.array([b"\x02", b"\x04"]), pa.array([None, 9]))
    assert found.to_pylist() == [{"a": 1}, {"a": None}] and flaws == {1: "no version 9"}


def test_the_reader_refuses_columns_that_are_not_whole_and_programs_that_do_not_fit():
    reader = AvroReader([(2, ())], (0,))
    node = (NODE_LONG, 0, 0, False, (), ())
    program = reader.add_program([(11, -1, 0, False, (1,), ()), node])
    offsets = pa.array([b"\x02"]).buffers()[1]
    assert reader.read(offsets, b"\x02", None, 0, 1, program)[1] == []
    with pytest.raises(ValueError, match="rows from"):
        reader.read(offsets, b"\x02", None, 0, 100, program)
    with pytest.raises(ValueError, match="of 0 bytes"):
        reader.read(offsets, b"", None, 0, 1, program)
    with pytest.raises(ValueError, match="no program"):
        reader.read(offsets, b"\x02", None, 0, 1, 7)
    with pytest.raises(ValueError, match="numbers of programs"):
        reader.read(offsets, b"\x02", None, 0, 1, b"\x09")
    with pytest.raises(ValueError, match="into a column of kind"):
        AvroReader([(6, ())], (0,)).add_program([node])
    with pytest.raises(ValueError, match="is not in"):
        reader.add_program([(11, -1, 0, False, (0,), ())])
