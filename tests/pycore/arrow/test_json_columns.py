"""JSON as columns: the native reader makes what pyarrow's reader and Python's json make, of good
objects and of any bytes."""

from __future__ import annotations

import datetime
import json
import random
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="no PyArrow: pip install 'pulsarx[arrow]'")

from seeds import seeds  # noqa: E402

from pulsarx._pycore.arrow.json_reader import JsonReader  # noqa: E402
from pulsarx.tables.json_columns import JsonDecoder  # noqa: E402
from pulsarx.tables.json_rules import JsonRules  # noqa: E402
from pulsarx.tables.json_values import JsonRows  # noqa: E402

PLACE = pa.struct([("x", pa.float64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
FIELDS = pa.schema(
    [
        ("n", pa.int32()),
        ("long", pa.int64()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("raw", pa.binary()),
        ("yes", pa.bool_()),
        ("place", PLACE),
        ("numbers", pa.list_(pa.int64())),
        ("places", pa.list_(PLACE)),
        ("ü", pa.string()),
    ]
)
_NUMBERS = (
    "0 -0 1 -1 7 2147483647 2147483648 -2147483648 -2147483649 9223372036854775807 "
    "9223372036854775808 123456789012345678 1234567890123456789 12345678901234567890123 1.0 -0.0 "
    "0.5 0.1 1e5 1E+5 1e-5 1.5e300 1e308 1e309 1e400 5e-324 1e-400 2.2250738585072014e-308 4.35 "
    "0.30000000000000004 123456789.123456789 9007199254740993 9007199254740992.5 8.5e22 1e23 3e22 "
    "01 1. +1 .5 - 1e 1e+ --1 0x1 NaN Infinity 1_0 1,5"
)
NUMBERS = _NUMBERS.split()
STRINGS = [
    '""', '"plain"', '"é水🐟"', r'"\u00e9"', r'"\ud83d\ude00"', r'"\ud83d"', r'"\ude00"',
    r'"\ud83dx"', r'"\u0000"', r'"\"\\\/\b\f\n\r\t"', r'"\x"', '"tab\there"', '"open', r'"\u12"',
    r'"\u12g4"', r'"\\"', '"line\nbreak"', '"\x7f"',
]  # fmt: skip


class Objects:
    """Draws the texts of objects."""

    def __init__(self, seed: int, odd: float) -> None:
        """odd: how likely a value is of another type than its field."""
        self.random = random.Random(seed)
        self.odd = odd

    def space(self) -> str:
        return self.random.choice(["", "", "", " ", "\n", "\t \r\n"])

    def object(self, fields: Any, depth: int = 0) -> str:
        draw = self.random
        chosen = [each for each in fields if draw.random() < 0.8]
        if draw.random() < 0.5:
            draw.shuffle(chosen)
        pairs = [(json.dumps(each.name, ensure_ascii=draw.random() < self.odd),
                  self.value(each.type, depth)) for each in chosen]  # fmt: skip
        if draw.random() < 0.4:
            other = self.anything(depth) if self.odd else '{"a":[true,-1.5e3,"\\n",{}]}'
            pairs.insert(draw.randrange(len(pairs) + 1), ('"other"', other))
        if pairs and draw.random() < self.odd / 4:
            pairs.append(draw.choice(pairs))
        inside = ",".join(
            f"{self.space()}{name}{self.space()}:{self.space()}{value}{self.space()}"
            for name, value in pairs
        )
        return f"{{{self.space() if not pairs else ''}{inside}}}"

    def value(self, kind: Any, depth: int) -> str:
        draw = self.random
        if draw.random() < self.odd:
            return self.anything(depth)
        if draw.random() < 0.15:
            return "null"
        if pa.types.is_struct(kind):
            return self.object(list(kind), depth + 1)
        if pa.types.is_list(kind):
            items = [self.value(kind.value_type, depth + 1) for _ in range(draw.randrange(4))]
            return f"[{self.space()}{','.join(items)}]"
        if pa.types.is_integer(kind):
            return str(draw.choice([0, 1, -1, 2**31 - 1, draw.randrange(10**6)]))
        if pa.types.is_floating(kind):
            # What a Python float says of itself has 17 digits.
            return draw.choice(["1", "-2.5", repr(draw.random()), repr(draw.random() * 1e200)])
        if pa.types.is_boolean(kind):
            return draw.choice(["true", "false"])
        return json.dumps(
            "".join(draw.choices('aé水🐟"\\/\n', k=draw.randrange(8))),
            ensure_ascii=draw.random() < 0.5,
        )

    def anything(self, depth: int) -> str:
        draw = self.random
        kind = draw.random()
        if kind < 0.4:
            return draw.choice(NUMBERS)
        if kind < 0.7:
            return draw.choice(STRINGS)
        if kind < 0.8 or depth > 3:
            return draw.choice(["true", "false", "null", "nul", "True", "[]", "{}", "[,]", "{,}"])
        if kind < 0.9:
            return f"[{','.join(self.anything(depth + 1) for _ in range(draw.randrange(3)))}]"
        return self.object(list(FIELDS)[:3], depth + 1)

    def broken(self, payload: bytes) -> bytes:
        found = bytearray(payload)
        for _ in range(self.random.randrange(1, 3)):
            at = self.random.randrange(len(found) + 1)
            draw = self.random.random()
            if draw < 0.4 and at < len(found):
                found[at] = self.random.choice(b'{}[]:,"\\0 1\xff\x00\xc3ten')
            elif draw < 0.6:
                del found[at:]
            elif draw < 0.8:
                del found[at : at + 1]
            else:
                found[at:at] = self.random.choice([b"{", b"}", b",", b'"', b" ", b"\xed\xa0\x80"])
        return bytes(found)


def alone(decoder: JsonDecoder, payload: bytes | None) -> tuple[str, dict[int, str]]:
    table, flaws = decoder.decode(pa.array([payload], pa.binary()))
    table.validate(full=True)
    return repr(table.to_pylist()), flaws


def check_same(payloads: list[bytes | None], fields: Any = FIELDS) -> int:
    """How many were decoded. Each alone, for what pyarrow takes depends on those beside it."""
    native, other = (JsonDecoder(fields, natively=each) for each in (True, False))
    for payload in payloads:
        assert alone(native, payload) == alone(other, payload), payload
    # All together it is the same again. The column is a slice, as that of a batch may be.
    whole, flaws = native.decode(pa.array([b"{}", None, *payloads], pa.binary()).slice(2))
    whole.validate(full=True)
    assert whole.schema == fields
    return whole.num_rows - len(flaws)


@pytest.mark.parametrize("seed", seeds(10))
def test_native_columns_are_those_of_other_readers(seed):
    draw = Objects(seed, 0.0)
    payloads: list[bytes | None] = [draw.object(FIELDS).encode() for _ in range(60)]
    payloads[7] = None
    assert check_same(payloads) == len(payloads)


@pytest.mark.parametrize("seed", seeds(15))
def test_odd_and_broken_objects_are_what_other_readers_say(seed):
    draw = Objects(seed, 0.12)
    payloads: list[bytes | None] = [draw.object(FIELDS).encode() for _ in range(60)]
    payloads += [draw.broken(Objects(seed, 0.0).object(FIELDS).encode()) for _ in range(40)]
    check_same(payloads)


@pytest.mark.parametrize("place", ["x", "other"])
def test_every_number_and_string_alone(place):
    check_same([f'{{"{place}":{each}}}'.encode() for each in (*NUMBERS, *STRINGS)])
    check_same([f'{{"n":{each},"long":{each},"s":{each}}}'.encode() for each in NUMBERS[:30]])
    check_same([f'{{"s":{each},"raw":{each}}}'.encode() for each in STRINGS])


def test_few_fields_of_many_and_deep_ones():
    few = pa.schema([("s", pa.string())])
    deep = b'{"o":' + b"[" * 200 + b"]" * 200 + b',"s":"x"}'
    deeper = b'{"o":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    plain = b'{"a":{"b":[1,{"c":"}"}]},"s":"x","z":-1.5e3}'
    assert check_same([plain, deep, deeper, b"", b" {} ", b"null", b"{}{}", b"\xef\xbb\xbf{}"], few)


def test_times_and_what_is_not_built_go_the_other_way():
    times = pa.schema([("at", pa.timestamp("us", "UTC")), ("on", pa.date32())])
    good = b'{"at":"2026-01-31T12:00:00Z","on":"2026-01-31"}'
    table, flaws = JsonDecoder(times).decode(pa.array([good, b'{"at":"soon"}', None]))
    assert list(flaws) == [1]
    assert [each.value for each in table["at"]][1:] == [None, None]
    check_same([good, b'{"at":"soon"}', b'{"at":null}'], times)
    other = pa.schema([("m", pa.map_(pa.string(), pa.int32())), ("f", pa.float32())])
    assert check_same([b'{"m":{"a":1},"f":0.1}', b'{"m":[]}'], other) == 1


def stays(is_optional: bool, with_maps: bool) -> Any:
    """Columns with times below structs. The native reader builds them where all may be null."""
    stay = pa.struct([pa.field("on", pa.date32(), is_optional), ("at", pa.timestamp("us", "UTC"))])
    fields = [
        ("stay", stay),
        ("stays", pa.list_(stay)),
        ("deep", pa.struct([("stay", stay), ("hours", pa.list_(pa.timestamp("us")))])),
        ("n", pa.int64()),
    ]
    if with_maps:
        fields.append(("m", pa.map_(pa.string(), stay)))
        fields.append(("days", pa.map_(pa.string(), pa.list_(pa.date32()))))
    return pa.schema(fields)


@pytest.mark.parametrize("with_maps", [False, True])
@pytest.mark.parametrize("is_optional", [False, True])
def test_what_lies_below_a_null_struct_is_no_time(is_optional, with_maps):
    """Read value by value, a struct that was null or missing ended all in a bare ArrowInvalid: what
    lies below it was an empty text to Arrow's cast."""
    stay = b'{"on":"2026-01-31","at":"2026-01-31T12:00:00Z"}'
    good = [
        b'{"stay":%s,"stays":[%s,null],"deep":{"stay":%s,"hours":["2026-01-31T12:00:00",null]}}'
        % (stay, stay, stay),
        b'{"stay":null,"stays":null,"deep":{"stay":null}}',
        b"{}",
        None,
        b'{"stay":%s,"stays":[null],"n":1.0}' % stay,  # by pyarrow and Python alone
    ]
    fields = stays(is_optional, with_maps)
    bad = [b'{"stay":{"on":"soon"}}', b'{"stay":{"on":true}}']
    bad += [b'{"n":"one"}', b'{"stays":[{"on":""}]}']
    assert check_same([*good, *bad], fields) == len(good) - 1  # 1.0 is no integer to either
    table, flaws = JsonDecoder(fields).decode(pa.array([*good, *bad], pa.binary()))
    assert sorted(flaws) == [4, 5, 6, 7, 8]
    rows = table.to_pylist()
    day = datetime.date(2026, 1, 31)
    noon = datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)
    there = {"on": day, "at": noon}
    assert (rows[0]["stay"], rows[0]["stays"]) == (there, [there, None])
    assert rows[0]["deep"] == {"stay": there, "hours": [noon.replace(tzinfo=None), None]}
    assert (rows[1]["deep"], rows[2]["deep"]) == ({"stay": None, "hours": None}, None)


def test_maps_of_times_are_made_of_texts():
    """Every value of such a column was malformed: the way value by value wanted times of JSON."""
    fields = stays(is_optional=False, with_maps=True)
    day = b'"2026-01-31"'
    stay = b'{"on":%s,"at":null}' % day
    values = [
        b'{"m":{"a":%s,"b":null},"days":{"x":[%s,null],"y":null,"z":[]}}' % (stay, day),
        b'{"m":{},"days":null}',
        b'{"m":{"a":{"on":"soon"}}}',
        b'{"days":{"x":["soon"]}}',
    ]
    assert check_same(list(values), fields) == 2
    table, flaws = JsonDecoder(fields).decode(pa.array(values, pa.binary()))
    assert sorted(flaws) == [2, 3]
    day_there = datetime.date(2026, 1, 31)
    row = table.slice(0, 1).to_pylist()[0]
    assert row["m"] == [("a", {"on": day_there, "at": None}), ("b", None)]
    assert row["days"] == [("x", [day_there, None]), ("y", None), ("z", [])]


def test_a_text_that_is_no_time_is_told_by_its_column():
    """It was told without one."""
    inner = pa.struct([pa.field("at", pa.timestamp("us", "UTC"))])
    fields = pa.schema(
        {"day": pa.date32(), "in": inner, "all": pa.list_(pa.date32()), "n": pa.int64()}
    )
    payloads = [
        b'{"day": "2026-01-02"}', b'{"day": "2026-13-01"}', b'{"in": {"at": "noon"}}',
        b'{"all": ["2026-01-02", "?"]}', b'{"n": "one"}',
    ]  # fmt: skip
    _, flaws = JsonDecoder(fields).decode(pa.array(payloads))
    for row, path in {
        1: "day: ",
        2: "in.at: ",
        3: "all[]: ",
        4: "n: 'one' is no bigint",
    }.items():
        assert flaws.pop(row).startswith(path)
    assert not flaws


WIDE = pa.schema(
    [
        *FIELDS,
        ("dec", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("plain", pa.timestamp("us")),
        ("day", pa.date32()),
        ("tiny", pa.int8()),
        ("f", pa.float32()),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("texts", pa.map_(pa.string(), pa.string())),
        ("deep", pa.struct([("m", pa.map_(pa.string(), PLACE)), ("l", pa.list_(pa.date32()))])),
    ]
)
HOSTILE = [
    b'{"dec":1e999999999}', b'{"dec":"1e1000000"}', b'{"dec":1e-1000000}', b'{"f":1e-400000}',
    b'{"day":"%s"}' % (b"9" * 5000), b'{"at":"2013-01-31T10:00:00.%sZ"}' % (b"1" * 5000),
    b'{"s":' + b"[" * 900 + b"]" * 900 + b"}", b'{"n":' + b"9" * 900 + b"}",
    b'{"at":"999999-12-31T23:59:59Z","day":"9999999-12-31"}', b'{"day":"-2147483648"}',
    b'{"at":"0000-01-01 00:00:00 Europe/Paris"}', b'{"s":"\\ud800"}', b'{"m":{"\\udfff":1}}',
]  # fmt: skip


class WideObjects(Objects):
    def value(self, kind: Any, depth: int) -> str:
        if pa.types.is_map(kind):
            names = self.random.choices(["a", "b", ""], k=self.random.randrange(3))
            quote = self.random.choice(['"', '"', "'"])
            items = [f"{quote}{each}{quote}:{self.value(kind.item_type, depth + 1)}"
                     for each in names]  # fmt: skip
            return f"{{{','.join(items)}}}"
        if pa.types.is_decimal(kind) and self.random.random() > self.odd:
            return self.random.choice(["1", "1.5", "-0.25", '"1.50"', "0", "1e2"])
        if pa.types.is_temporal(kind) and self.random.random() > self.odd:
            return self.random.choice(
                ['"2013-01-31"', '"2013-01-31T10:00:00"', '"2013-01-31 10:00:00.5"', "7", '"x"']
            )
        return super().value(kind, depth)


@pytest.mark.parametrize("seed", seeds(10))
def test_both_ways_of_reading_value_by_value_make_the_same(seed):
    """Whatever stands there, a row is made, or what is wrong with it is said."""
    rows = JsonRows(WIDE, JsonRules())
    draw = WideObjects(seed, 0.05)
    fields = list(WIDE)
    payloads = [draw.object(draw.random.sample(fields, 4)).encode() for _ in range(80)]
    payloads += [draw.broken(draw.object(draw.random.sample(fields, 4)).encode())
                 for _ in range(40)]  # fmt: skip
    same = 0
    for payload in [*payloads, *HOSTILE]:
        try:
            text = payload.decode()
            expected = rows._of_python(text)
        except (ValueError, RecursionError, OverflowError):
            continue
        assert repr(rows._of_tokens(text)) == repr(expected), text
        same += 1
    assert same > 10
    table, flaws = JsonDecoder(WIDE).decode(pa.array([*payloads, *HOSTILE], pa.binary()))
    table.validate(full=True)
    assert table.num_rows == len(payloads) + len(HOSTILE) and len(flaws) > 20


def test_the_reader_refuses_columns_that_it_does_not_build():
    with pytest.raises(ValueError, match="of kind 3"):
        JsonReader([(3, ())], (0,), [b"f"])
    with pytest.raises(ValueError, match="names for"):
        JsonReader([(1, ())], (0,), [])


def test_odd_words_are_odd_in_fields_that_are_passed_over(monkeypatch):
    """PyArrow's reader, which takes them, passed over them in good rows."""
    fields = pa.schema([("a", pa.float32())])
    odd = [b'{"a":1.5,"zz":-NaN}', b'{"a":2.5,"zz":{"q":[Inf]}}', b'{"a":3.5,"zz":[0,-Inf]}']
    known = [b'{"a":1.5,"zz":NaN}', b'{"a":NaN}', b'{"zz":[Infinity,{"q":-Infinity}]}']
    texts = [b'{"a":1.5,"zz":"-NaN"}', rb'{"a":1.5,"zz":"\", NaN","Inf":[1E5]}']
    alone: list[bytes] = []
    row = JsonRows.row
    monkeypatch.setattr(JsonRows, "row", lambda rows, each: alone.append(each) or row(rows, each))
    for rules, wrong in (
        (JsonRules(), odd),
        (JsonRules(allow_non_numeric_numbers=False), odd + known),
    ):
        decoder = JsonDecoder(fields, rules=rules)
        for payload in odd + known + texts:
            alone.clear()
            _, flaws = decoder.decode(pa.array([payload], pa.binary()))
            assert (bool(flaws), bool(alone)) == (payload in wrong, payload in wrong), payload


def test_zeros_below_zero_are_read_at_once(monkeypatch):
    """Each made its whole batch be read again in halves, down to some rows by Python."""
    fields = pa.schema([("a", pa.float32()), ("deep", pa.list_(pa.struct([("x", pa.float64())])))])
    payloads = [b'{"a":-0.0}', b'{"deep":[{"x":-1e-400}]}', b'{"a":1.5,"s":"-0.5"}'] * 50
    alone: list[bytes] = []
    row = JsonRows.row
    monkeypatch.setattr(JsonRows, "row", lambda rows, each: alone.append(each) or row(rows, each))
    table, flaws = JsonDecoder(fields).decode(pa.array(payloads, pa.binary()))
    assert not flaws and not alone
    assert str(table["a"][0].as_py()) == str(table["deep"][1].as_py()[0]["x"]) == "-0.0"
    # -0 is an integer, which is not below zero; pyarrow's reader makes it so.
    table, _ = JsonDecoder(fields).decode(pa.array([b'{"a":-0}', b'{"a":-0.0}'], pa.binary()))
    assert list(map(str, table["a"].to_pylist())) == ["0.0", "-0.0"] and len(alone) == 2
