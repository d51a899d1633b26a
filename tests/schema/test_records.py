"""Facts about records: what the official client makes of the same classes, and what it does not."""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import fastavro
import pytest
import record_classes
from record_classes import (
    ArraysOfEnumerations,
    Base,
    Child,
    Color,
    Defaults,
    Fruit,
    Inner,
    Nested,
    Plain,
)

import pulsarx
from pulsarx.schema import (
    Array,
    AvroSchema,
    Bytes,
    CustomEnum,
    Integer,
    JsonSchema,
    Map,
    ProtobufNativeSchema,
    Record,
    String,
)

OFFICIAL = json.loads((Path(__file__).parent / "official_client.json").read_text())
# The official client's definition of these is none of Avro, and a broker refuses it: `"items":
# "enum"`.
MENDED = ("ArraysOfEnumerations",)


@pytest.mark.parametrize("record_cls", record_classes.CLASSES)
def test_the_definition_is_the_official_clients_to_the_letter(record_cls: type[Record]) -> None:
    expected = OFFICIAL["definitions"][record_cls.__name__]
    if record_cls.__name__ in MENDED:
        assert '"enum"' in expected and json.loads(expected) != record_cls.schema()
        expected = expected.replace(
            '"enum"', '{"type": "enum", "name": "Color", "symbols": ["red", "green", "blue"]}', 1
        ).replace('"values": "enum"', '"values": "Color"')
        expected = json.dumps(json.loads(expected), indent=True)
    assert JsonSchema(record_cls).schema_info().schema() == expected
    assert AvroSchema(record_cls).schema_info().schema() == expected


# A bytes field of the official client takes any object at all, and then cannot be encoded.
TAKES_ANYTHING = {("Plain", "g"), ("Defaults", "g")}


def test_fields_take_and_refuse_what_the_official_clients_do_with_its_words() -> None:
    wrong = []
    for class_name, field, text, refusal in OFFICIAL["messages"]:
        if (class_name, field) in TAKES_ANYTHING:
            continue
        record = getattr(record_classes, class_name)()
        value = eval(text, vars(record_classes))
        said = None
        try:
            setattr(record, field, value)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said != refusal:
            wrong.append((class_name, field, text, refusal, said))
    assert not wrong


@pytest.mark.parametrize("name", record_classes.RECORDS)
def test_a_record_is_encoded_as_the_official_client_does(name: str) -> None:
    expected = OFFICIAL["encoded"][name]
    record = record_classes.RECORDS[name]()
    as_json, as_avro = JsonSchema(type(record)), AvroSchema(type(record))
    assert json.loads(as_json.encode(record)) == expected["json"]
    assert as_avro.encode(record).hex() == expected["avro"]
    assert as_json.decode(as_json.encode(record)) == record
    assert as_avro.decode(as_avro.encode(record)) == record


def test_a_protobuf_definition_is_the_official_clients() -> None:
    from google.protobuf import struct_pb2, timestamp_pb2

    for record_cls in (timestamp_pb2.Timestamp, struct_pb2.Struct):
        expected = OFFICIAL["protobuf"][record_cls.__name__]
        assert ProtobufNativeSchema(record_cls).schema_info().schema() == expected


# Beside the official client -----------------------------------------------------------------------


def test_records_do_not_share_what_they_were_not_given() -> None:
    """In the official client one record's list, dict and inner record were all records'."""

    class Sharing(Record):
        inner = Inner()
        given = Inner(default=Inner(x="q"))
        items = Array(String(), default=["a"])
        named = Map(String(), default={"a": "b"})

    one, other = Sharing(), Sharing()
    one.inner.x = "changed"
    one.given.x = "changed"
    one.items.append("changed")
    one.named["c"] = "changed"
    assert (other.inner.x, other.given.x, other.items, other.named) == (
        None,
        "q",
        ["a"],
        {"a": "b"},
    )


def test_enumerations_in_arrays_and_maps_travel() -> None:
    """The official client's definition of them was refused by Avro and by brokers."""
    record = ArraysOfEnumerations(g=[Color.red, Color.blue], h={"x": Color.green})
    for schema in (
        JsonSchema(ArraysOfEnumerations),
        AvroSchema(ArraysOfEnumerations),
    ):
        assert schema.decode(schema.encode(record)) == record
    for wrong in (["purple"], [9], [None], [Fruit.apple]):
        with pytest.raises(TypeError, match="Array field g items should all be of type enum"):
            record.g = wrong


def test_an_enumeration_is_read_back_by_its_value() -> None:
    """The official client wrote the value of a member and looked for its name."""

    class Basket(Record):
        fruit = CustomEnum(Fruit)

    schema = JsonSchema(Basket)
    assert schema.encode(Basket(fruit=Fruit.pear)) == b'{"fruit":"a pear"}'
    assert schema.decode(b'{"fruit":"a pear"}').fruit is Fruit.pear
    assert schema.decode(b'{"fruit":"pear"}').fruit is Fruit.pear


def test_records_at_any_depth_are_records_again() -> None:
    record = record_classes.RECORDS["deep"]()
    for schema in (JsonSchema(type(record)), AvroSchema(type(record))):
        read = schema.decode(schema.encode(record))
        assert read.a[0]["m"][0].z.x == "ü"


def test_a_bytes_field_refuses_what_is_neither_bytes_nor_str() -> None:
    for wrong in (1, 1.5, [], {}, object(), Inner()):
        with pytest.raises(TypeError, match=r"Invalid type .* for field 'g'"):
            Plain(g=wrong)
    assert Plain(g="ä").g == "ä".encode()


def test_records_of_different_classes_are_not_equal() -> None:
    assert Plain(a="x") == Plain(a="x") and Plain(a="x") != Plain(a="y")
    assert Plain() != Inner() and Plain() != 5
    with pytest.raises(TypeError, match="unhashable"):
        hash(Plain())


def test_fields_of_a_base_are_not_inherited_as_in_the_official_client() -> None:
    assert list(Child._fields) == ["c", "a"] and list(Base._fields) == ["a", "b"]
    with pytest.raises(AttributeError, match="Cannot set undeclared field b on record"):
        Child().b = 5


def test_records_are_copied_pickled_and_shown() -> None:
    record = Nested(i=Inner(x="1"), j=Inner(y=2))
    assert copy.deepcopy(record) == record
    assert pickle.loads(pickle.dumps(record)) == record
    assert repr(record.j) == "Inner(x=None, y=2)" and str(record.j) == "{'x': None, 'y': 2}"


def test_what_is_no_field_is_refused_where_it_is_written() -> None:
    for wrong in (lambda: Array(String), lambda: Map(5), lambda: Array("x")):
        with pytest.raises(TypeError, match="is not a Record or a Field"):
            wrong()
    for bad in (str, 5, Color.red):
        with pytest.raises(TypeError, match="is not a valid Enum type"):
            CustomEnum(bad)  # type: ignore[arg-type]
    for refused in (lambda: Integer(default="x"), lambda: Array(Integer(), default=["x"])):
        with pytest.raises(TypeError, match="default"):
            refused()


def test_a_default_in_a_definition_is_json() -> None:
    class Described(Record):
        data = Bytes(default=b"\xff", required_default=True)
        color = CustomEnum(Color, default=Color.green, required_default=True)
        inner = Inner(default=Inner(x="q"), required_default=True)

    defaults = [field["default"] for field in Described.schema()["fields"]]
    assert defaults == ["ÿ", "green", {"x": "q", "y": None}]


# Decoding -----------------------------------------------------------------------------------------


def test_json_without_a_field_has_its_default_and_unknown_ones_are_passed_over() -> None:
    read = JsonSchema(Defaults).decode(b'{"b": 9, "unknown": [1]}')
    assert (read.a, read.b, read.f, read.g) == ("x", 9, True, b"ab")


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (b"", ValueError, "Expecting value"),
        (b"\xff", ValueError, "invalid start byte"),
        (b"{", ValueError, "Expecting property name"),
        (b"5", TypeError, "an object is expected, not 5"),
        (b"[]", TypeError, "an object is expected"),
        (b"null", TypeError, "an object is expected"),
        (b'{"a": 5}', TypeError, "for field 'a'. Expected a string"),
        (b'{"b": "x"}', TypeError, "for field 'b'. Expected: int"),
        (b'{"f": 1}', TypeError, "for field 'f'. Expected: bool"),
        (b'{"g": 1}', TypeError, "for field 'g'"),
        (b'{"h": 1}', TypeError, "Field h is set to be None"),
    ],
)
def test_wrong_json_is_refused(data: bytes, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        JsonSchema(Plain).decode(data)


def test_wrong_json_inside_is_refused() -> None:
    for data in (b'{"i": 5, "j": {}}', b'{"i": {"x": 5}, "j": {}}', b'{"j": null}', b'{"j": [1]}'):
        with pytest.raises(TypeError, match="Invalid type"):
            JsonSchema(Nested).decode(data)


def test_every_truncation_of_avro_is_refused_and_so_is_what_is_left_over() -> None:
    """The official client passed over what was left."""
    record = record_classes.RECORDS["everything given"]()
    schema = AvroSchema(Plain)
    data = schema.encode(record)
    for size in range(len(data)):
        with pytest.raises(ValueError, match=f"decode {size} bytes of Avro as Plain"):
            schema.decode(data[:size])
    with pytest.raises(ValueError, match="2 bytes are left"):
        schema.decode(data + b"zz")


def test_a_value_out_of_bounds_is_refused_by_avro() -> None:
    with pytest.raises(ValueError, match=r"."):
        AvroSchema(Plain).encode(Plain(c=2**63))


DEEP = """
from pulsarx.schema import AvroSchema, SchemaInfo, SchemaType
import json, sys
definition = {"type": "record", "name": "a.Node", "fields": [
    {"name": "next", "type": ["null", {
        "type": "array", "items": {"type": "map", "values": "Node"}}]}
]}
schema = AvroSchema(None, definition)
read = AvroSchema(None, {**definition, "doc": "another"}).decoder(schema.schema_info())
value = {"next": None}
for _ in range(5):
    value = {"next": [{"a": value}]}
assert schema.decode(schema.encode(value)) == read(schema.encode(value)) == value
data = b"\x02\x02\x02\x02a" * 100_000
for each in (schema.decode, read):
    try:
        each(data)
    except ValueError as error:
        assert "recursion" in str(error), error
    else:
        sys.exit(1)
sys.stdout.write("refused")
"""


def test_data_nested_without_end_is_refused() -> None:
    """A message of some kilobytes for a definition that refers to itself ended the process: the
    native reader of fastavro went down until the stack was full."""
    environment = dict(os.environ, PYTHONPATH=str(Path(pulsarx.__file__).parent.parent))
    done = subprocess.run(
        [sys.executable, "-c", DEEP], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "refused"), done.stderr


@pytest.mark.parametrize(
    "items", ["boolean", "float", "double", {"type": "fixed", "name": "F", "size": 4}]
)
def test_items_of_a_removed_field_end_with_the_bytes(items: Any) -> None:
    """Used to be passed over as often as the bytes say, 2^62 times here, though there are none."""
    nested = {"type": "record", "name": "N", "fields": [{"name": "x", "type": items}]}
    kept = {"name": "b", "type": "int"}
    for each in (items, nested):
        removed = {"name": "a", "type": {"type": "array", "items": each}}
        old = AvroSchema(None, {"type": "record", "name": "R", "fields": [removed, kept]})
        new = AvroSchema(None, {"type": "record", "name": "R", "fields": [kept]})
        read = new.decoder(old.schema_info())
        with pytest.raises(ValueError, match="decode 11 bytes of Avro"):
            read(b"\x80" * 9 + b"\x01" + b"\x00")
        data = old.encode({"a": [], "b": 7})
        assert read(data) == {"b": 7}


@pytest.mark.parametrize(
    "items",
    [
        "null",
        {"type": "null"},
        {"type": "fixed", "name": "F", "size": 0},
        {"type": "record", "name": "E", "fields": []},
        {"type": "record", "name": "E", "fields": [{"name": "a", "type": "null"}]},
    ],
)
def test_arrays_of_items_without_bytes_are_not_read(items: Any) -> None:
    """Three bytes took memory and time for as many items as they said."""
    fields = [{"name": "first", "type": ["null", items]}, {"name": "a", "type": "int"}]
    named = items if isinstance(items, str) else items.get("name", items)
    array = {"name": "rest", "type": {"type": "array", "items": named}}
    record = {"type": "record", "name": "R", "fields": [*fields, array]}
    schema = AvroSchema(None, record)
    read = AvroSchema(None, {**record, "fields": fields}).decoder(schema.schema_info())
    data = b"\0\0" + b"\x80\x01\0"  # 64 items
    for each in (schema.decode, read):
        with pytest.raises(ValueError, match="items take no bytes"):
            each(data)
    plain = AvroSchema(None, {**record, "fields": fields})
    assert plain.decode(b"\0\0") == {"first": None, "a": 0}


def test_values_of_another_class_are_refused() -> None:
    for schema in (JsonSchema(Plain), AvroSchema(Plain)):
        for wrong in (Inner(), {"a": "x"}, None, "x"):
            with pytest.raises(TypeError, match=r"expected type is .*Plain"):
                schema.encode(wrong)


def test_what_is_no_class_of_records_has_no_schema() -> None:
    for wrong in (dict, None, 5, Plain.a):
        for make in (JsonSchema, AvroSchema):
            if make is AvroSchema and wrong is None:
                continue
            with pytest.raises(TypeError, match="takes a class of records"):
                make(wrong)


class Event(dict[str, Any]):
    """No Record; it describes itself."""

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {"type": "record", "name": "E", "fields": [{"name": "id", "type": "long"}]}


class Point:
    def __init__(self, id: int, color: Any = None) -> None:
        self.id, self.color = id, color

    @classmethod
    def schema(cls) -> dict[str, Any]:
        return {
            "type": "record",
            "name": "P",
            "fields": [{"name": "id", "type": "long"}, {"name": "color", "type": "string"}],
        }


def test_a_class_that_describes_itself_is_taken_for_a_record() -> None:
    """As by the official client, which asks for schema() and the attributes, and for no more."""

    class OfDicts(AvroSchema):
        def encode(self, obj: Any) -> bytes:
            self._validate_object_type(obj)
            buffer = io.BytesIO()
            fastavro.schemaless_writer(buffer, self._schema, obj)
            return buffer.getvalue()

    of_dicts = OfDicts(Event)
    assert of_dicts.encode(Event(id=7)) == b"\x0e"
    found = of_dicts.decode(b"\x0e")
    assert isinstance(found, Event) and found == {"id": 7}
    for schema in (AvroSchema(Point), JsonSchema(Point)):
        made = schema.decode(schema.encode(Point(5, "red")))
        assert isinstance(made, Point) and vars(made) == {"id": 5, "color": "red"}
        with pytest.raises(TypeError, match=r"expected type is .*Point"):
            schema.encode(Event(id=7))
    assert JsonSchema(Point).encode(Point(5, Color.green)) == b'{"id":5,"color":2}'
    assert AvroSchema(Point).encode(Point(5, Color.red)) == b"\x0a\x06red"


def test_a_definition_may_stand_for_a_class() -> None:
    definition = {"type": "record", "name": "X", "fields": [{"name": "a", "type": "int"}]}
    schema = AvroSchema(None, definition)
    assert schema.encode({"a": 5}) == b"\x0a" and schema.decode(b"\x0a") == {"a": 5}
    assert json.loads(schema.schema_info().schema()) == definition
    with pytest.raises(ValueError, match="record data should be dict type"):
        schema.encode("x")
    with pytest.raises((ValueError, TypeError), match="a"):
        schema.encode({"a": "x"})
    with pytest.raises(AssertionError, match="shouldn't be both None"):
        AvroSchema(None)
    with pytest.raises(ValueError, match="no definition of Avro"):
        AvroSchema(None, {"type": "record", "name": "X", "fields": [{"name": "a"}]})


def test_encode_dict_makes_plain_values_of_records_at_any_depth() -> None:
    found = AvroSchema(Nested).encode_dict(
        {"a": Inner(x="1"), "b": {"c": [Inner(y=2)]}, "d": Color.red, "e": 5}
    )
    assert found == {
        "a": {"x": "1", "y": None},
        "b": {"c": [{"x": None, "y": 2}]},
        "d": "red",
        "e": 5,
    }


def test_threads_that_make_schemas_of_one_class_at_once_agree() -> None:
    class Fresh(Record):
        a = String()
        b = Array(Inner())

    start = threading.Barrier(8)
    found: list[Any] = []

    def work() -> None:
        start.wait()
        schema = JsonSchema(Fresh)
        found.append(schema.decode(schema.encode(Fresh(a="x", b=[Inner(y=1)]))))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [Fresh(a="x", b=[Inner(y=1)])] * 8


def test_record_itself_holds_nothing():
    """Record(a=1) used to be an empty record, where the official client raises."""
    with pytest.raises(AttributeError, match="derive a class"):
        Record(a=1)
