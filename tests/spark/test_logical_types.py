"""Avro's logical types as columns: what from_avro of Spark makes of them, or what differs, and why.
The values are those of spark-avro 4.2, which PySpark has not with it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from test_odd_values import plain, publish

import pulsarx
from pulsarx import errors
from pulsarx.spark import read_topic

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

import pyarrow as pa

# Spark makes and compiles code for each of their queries.
pytestmark = pytest.mark.standard

MALFORMED = "malformed"


def number(value: int) -> bytes:
    rest = value * 2 if value >= 0 else -value * 2 - 1
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def octets(value: bytes) -> bytes:
    return number(len(value)) + value


def unscaled(value: int, size: int = 0) -> bytes:
    return value.to_bytes(size or value.bit_length() // 8 + 1, "big", signed=True)


def logical(base: str, name: str, **others: Any) -> dict[str, Any]:
    return {"type": base, "logicalType": name, **others}


def fixed(size: int, name: str, **others: Any) -> dict[str, Any]:
    return {"type": "fixed", "name": f"F{size}", "size": size, "logicalType": name, **others}


NOON_MS = 1359626400123
NINES = 10**38 - 1
# By the type of the column in Spark: the definition, values as they are written, and what they are.
TYPES: list[tuple[str, Any, list[tuple[bytes, Any]]]] = [
    ("date", logical("int", "date"),
     [(number(each), each) for each in (0, 15736, -1, -719162, 2932896, -141428, -141427)]),
    ("time(6)", logical("long", "time-micros"),
     [(number(each), each * 1000) for each in (0, 1, 86399999999)]),
    ("timestamp", logical("long", "timestamp-millis"),
     [(number(each), each * 1000) for each in (0, -1, NOON_MS, 253402300799999, -62135596800000)]),
    ("timestamp", logical("long", "timestamp-micros"),
     [(number(each), each) for each in (0, -1, NOON_MS * 1000 + 456)]),
    ("timestamp_ntz", logical("long", "local-timestamp-millis"),
     [(number(each), each * 1000) for each in (0, -1, NOON_MS)]),
    ("timestamp_ntz", logical("long", "local-timestamp-micros"),
     [(number(each), each) for each in (0, -1, NOON_MS * 1000 + 456)]),
    ("decimal(9,2)", logical("bytes", "decimal", precision=9, scale=2),
     [(octets(unscaled(each)), Decimal(each).scaleb(-2)) for each in (110, -110, 0, 999999999)]
     + [(octets(unscaled(each)), MALFORMED) for each in (1000000000, -1000000000, 10**40)]
     + [(octets(bytes(20) + b"\x01"), Decimal("0.01"))]
     + [(octets(b"\xff\xff\xff"), Decimal("-0.01"))]),
    ("decimal(9,2)", fixed(5, "decimal", precision=9, scale=2),
     [(unscaled(each, 5), Decimal(each).scaleb(-2)) for each in (110, -110, 999999999)]
     + [(unscaled(1000000000, 5), MALFORMED), (b"\xff" * 5, Decimal("-0.01"))]),
    ("decimal(4,0)", logical("bytes", "decimal", precision=4),
     [(octets(unscaled(12)), Decimal(12)), (octets(unscaled(10000)), MALFORMED)]),
    ("decimal(38,18)", logical("bytes", "decimal", precision=38, scale=18),
     [(octets(unscaled(each)), Decimal(f"{each}E-18")) for each in (NINES, -NINES)]
     + [(octets(unscaled(NINES + 1)), MALFORMED)]),
    ("string", logical("string", "uuid"),
     [(octets(each), each) for each in (b"00000000-0000-0000-0000-000000000007", b"none", b"")]),
    ("binary", fixed(16, "uuid"), [(bytes(15) + b"\x07", bytes(15) + b"\x07")]),
    ("binary", fixed(12, "duration"), [(bytes(range(12)), bytes(range(12)))]),
    ("int", logical("int", "no-such"), [(number(7), 7)]),
    ("int", logical("int", "decimal", precision=4, scale=1), [(number(5), 5)]),
    ("int", logical("int", "timestamp-millis"), [(number(5), 5)]),
    ("binary", logical("bytes", "big-decimal"), [(octets(b"\x02\x01"), b"\x02\x01")]),
    ("array<date>", {"type": "array", "items": logical("int", "date")},
     [(number(2) + number(1) + number(-1) + number(0), [1, -1])]),
    ("map<string,decimal(5,1)>",
     {"type": "map", "values": logical("bytes", "decimal", precision=5, scale=1)},
     [(number(1) + octets(b"k") + octets(unscaled(15)) + number(0), [(b"k", Decimal("1.5"))])]),
    # What from_avro has otherwise.
    ("time(6)", logical("int", "time-millis"),  # an int there
     [(number(each), each * 1_000_000) for each in (0, 1, 86399999)]
     + [(number(86400000), MALFORMED)]),
    ("date", logical("int", "date"),  # a year that Python has not is one there
     [(number(each), MALFORMED) for each in (2932897, -719163, 2147483647)]),
    ("timestamp", logical("long", "timestamp-micros"),
     [(number(each), MALFORMED) for each in (253402300800000000, (1 << 63) - 1, -1 << 63)]),
    ("time(6)", logical("long", "time-micros"),  # midnight there
     [(number(86400000000), MALFORMED)]),
    ("string", logical("string", "uuid"), [(octets(b"\xff"), MALFORMED)]),  # those bytes there
]  # fmt: skip


def test_logical_types_are_the_columns_of_from_avro(spark, folder):
    fields = [
        {"name": f"x{place}", "type": ["null", each]} for place, (_, each, _) in enumerate(TYPES)
    ]
    definition = json.dumps({"type": "record", "name": "R", "fields": fields})
    cases = [(place, *case) for place, (_, _, several) in enumerate(TYPES) for case in several]
    publish(
        folder,
        "t",
        [
            bytes(place) + b"\x02" + value + bytes(len(TYPES) - 1 - place)
            for place, value, _ in cases
        ],
    )
    frame = read_topic(
        spark, "t", root=folder, schema=definition, value_format="avro", mode="PERMISSIVE"
    )
    names = [each["name"] for each in fields]
    assert [frame.schema[name].dataType.simpleString() for name in names] == [
        kind for kind, _, _ in TYPES
    ]
    table = frame.select(*names, "_corrupt_record").toArrow()
    rows = table.cast(
        pa.schema([each.with_type(plain(each.type)) for each in table.schema])
    ).to_pylist()
    for row, (place, value, expected) in zip(rows, cases, strict=True):
        there = {name: each for name, each in row.items() if each is not None}
        is_malformed = there.pop("_corrupt_record", None) is not None
        if expected == MALFORMED:
            assert is_malformed and not there, (TYPES[place], value)
        else:
            assert (there, is_malformed) == ({f"x{place}": expected}, False), (TYPES[place], value)


def test_a_decimal_of_too_many_digits_is_refused_by_name(folder):
    with pulsarx.Client(folder) as client:
        client.create_producer("t").send(b"")
    many = {"name": "x", "type": logical("bytes", "decimal", precision=50, scale=9)}
    definition = json.dumps({"type": "record", "name": "R", "fields": [many]})
    with pytest.raises(errors.OperationNotSupported, match=r"R\.x: a decimal of 50 digits"):
        read_topic(None, "t", root=folder, schema=definition, value_format="avro")
