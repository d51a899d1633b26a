"""Facts about what texts and numbers of JSON stand for in columns of other types, as Spark's
from_json has it."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pulsarx.tables.json_columns import JsonDecoder
from pulsarx.tables.json_rules import JsonRules
from pulsarx.tables.json_times import JsonTimes
from pulsarx.tables.json_values import JsonRows

ZONED = pa.timestamp("us", "UTC")
PLAIN = pa.timestamp("us")
NOON = datetime(2013, 1, 31, 10, 0, tzinfo=UTC)
REFUSED = "refused"


def read(kind: pa.DataType, value: str, times: JsonTimes | None = None) -> Any:
    """Alone, and beside values that the fast ways take."""
    fields = pa.schema([("x", kind)])
    decoder = JsonDecoder(fields, rules=JsonRules(times=times))
    payload = f'{{"x":{value}}}'.encode()
    table, flaws = decoder.decode(pa.array([payload], pa.binary()))
    many, more = decoder.decode(pa.array([b'{"x":null}', payload, b"{}"] * 40, pa.binary()))
    assert many.column(0)[1].equals(table.column(0)[0]) or isinstance(table[0][0].as_py(), float)
    assert set(more) == ({row for row in range(120) if row % 3 == 1} if flaws else set())
    assert many.schema == fields
    return REFUSED if flaws else table.column(0)[0].as_py()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2013-01-31T10:00:00Z", NOON),
        ("2013-01-31T10:00:00.123456789Z", NOON.replace(microsecond=123456)),
        ("2013-01-31T10:00:00.999999999Z", NOON.replace(microsecond=999999)),
        ("2013-01-31 10:00:00", NOON),
        ("2013-01-31T10:00", NOON),
        ("2013-1-31 10:0:0", NOON),
        ("2013-01-31", NOON.replace(hour=0)),
        ("2013-01-31T11:00:00+01:00", NOON),
        ("2013-01-31T11:00:00.5+0100", NOON.replace(microsecond=500_000)),
        ("2013-01-31T11:00:00 Europe/Paris", NOON),
        ("2013-01-31T25:00:00", REFUSED),
        ("2013-02-30 10:00:00", REFUSED),
        ("2013-01-31T10:00:00 Nowhere/Town", REFUSED),
        ("soon", REFUSED),
        ("", REFUSED),
    ],
)
def test_texts_are_timestamps_with_or_without_a_zone(text: str, expected: Any) -> None:
    assert read(ZONED, f'"{text}"') == expected


def test_times_that_name_no_zone_are_made_at_once_where_it_is_utc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each was read by Python, fifty times slower."""
    fields = pa.schema([("x", ZONED), ("deep", pa.struct([("at", pa.list_(ZONED))]))])
    payload = b'{"x":"2013-01-31 10:00:00","deep":{"at":["2013-01-31T10:00:00",null]}}'
    alone: list[bytes] = []
    row = JsonRows.row
    monkeypatch.setattr(JsonRows, "row", lambda rows, each: alone.append(each) or row(rows, each))
    payloads = pa.array([payload, b"{}"] * 100, pa.binary())
    for times, count in ((None, 0), (JsonTimes("UTC"), 0), (JsonTimes("+00:01"), 200)):
        alone.clear()
        table, flaws = JsonDecoder(fields, rules=JsonRules(times=times)).decode(payloads)
        assert not flaws and len(alone) == count
        if not count:
            assert table.slice(198, 1).to_pylist() == [{"x": NOON, "deep": {"at": [NOON, None]}}]


def test_times_without_a_zone_are_of_the_zone_that_is_given() -> None:
    times = JsonTimes("America/New_York")
    assert read(ZONED, '"2013-01-31 05:00:00"', times) == NOON
    assert read(ZONED, '"2013-01-31T10:00:00Z"', times) == NOON
    # As Java has it: what a change of the clock skips is later, what it repeats is the first.
    assert read(ZONED, '"2024-03-10 02:30:00"', times) == datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
    assert read(ZONED, '"2024-11-03 01:30:00"', times) == datetime(2024, 11, 3, 5, 30, tzinfo=UTC)


def test_timestamps_without_zones_name_none() -> None:
    plain = datetime(2013, 1, 31, 10, 0, 0, 123456)
    assert read(PLAIN, '"2013-01-31 10:00:00.123456789"', JsonTimes("Asia/Tokyo")) == plain
    assert read(PLAIN, '"2013-01-31 10:00:00Z"') == REFUSED
    assert read(PLAIN, "1359626400") == REFUSED


def test_numbers_are_seconds_and_days_since_1970() -> None:
    assert read(ZONED, "1359626400") == NOON
    assert read(ZONED, "-1") == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
    assert read(ZONED, "9223372036855") == REFUSED
    assert read(ZONED, "1.5") == REFUSED
    assert read(ZONED, "true") == REFUSED
    assert read(pa.date32(), "15736") == date(2013, 1, 31)
    assert read(pa.date32(), "1e3") == REFUSED


@pytest.mark.parametrize("text", ["2013-01-31", "2013-1-31", "2013-01-31T10:00:00Z"])
def test_texts_are_dates(text: str) -> None:
    assert read(pa.date32(), f'"{text}"') == date(2013, 1, 31)


def test_a_format_is_the_only_one() -> None:
    times = JsonTimes("+01:00", "dd/MM/yyyy 'at' HH:mm[:ss[.SSS]]", "d MMM yyyy")
    assert read(ZONED, '"31/01/2013 at 11:00"', times) == NOON
    wanted = NOON.replace(second=1, microsecond=250_000)
    assert read(ZONED, '"31/01/2013 at 11:00:01.250"', times) == wanted
    assert read(ZONED, '"2013-01-31T10:00:00Z"', times) == REFUSED
    assert read(ZONED, '"31/02/2013 at 11:00"', times) == REFUSED
    assert read(pa.date32(), '"31 Jan 2013"', times) == date(2013, 1, 31)
    assert read(pa.date32(), '"2013-01-31"', times) == REFUSED
    noon = JsonTimes(timestamp_format="d MMMM yyyy hh:mm a XXX")
    assert read(ZONED, '"31 January 2013 12:00 PM +02:00"', noon) == NOON


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("HH:mm a", "10:00 AM", NOON),
        ("HH:mm a", "10:00 PM", REFUSED),
        ("HH:mm a", "22:00 AM", REFUSED),
        ("HH:mm a", "22:00 PM", NOON.replace(hour=22)),
        ("a", "am", NOON.replace(hour=0)),
        ("a", "pm", NOON.replace(hour=12)),
        ("HH hh", "22 10", NOON.replace(hour=22)),
        ("HH hh", "22 11", REFUSED),
        ("HH hh a", "22 10 PM", NOON.replace(hour=22)),
        ("HH:ss hh a", "22:00 10 AM", REFUSED),
        ("hh:mm", "12:00", NOON.replace(hour=0)),
        ("hh:mm", "00:00", REFUSED),
    ],
)
def test_hours_of_a_format_agree(pattern: str, text: str, expected: Any) -> None:
    """The half of the day was passed over beside hours of the whole day, and where it was alone."""
    pattern, text = f"yyyy-MM-dd {pattern}", f'"2013-01-31 {text}"'
    assert read(ZONED, text, JsonTimes(timestamp_format=pattern)) == expected
    day = REFUSED if expected == REFUSED else expected.date()
    assert read(pa.date32(), text, JsonTimes(date_format=pattern)) == day


@pytest.mark.parametrize(
    ("letters", "text", "expected"),
    [
        *(("z", zone, REFUSED) for zone in ("EST", "MST", "AST", "IST", "BST", "SST", "EDT")),
        *(("VV", zone, REFUSED) for zone in ("EST", "pst", "+0200", "UTC+2", "GMT-0", "Nowhere/X")),
        ("VV", "Etc/GMT+5", NOON.replace(hour=15)),
        ("z", "Etc/GMT+5", REFUSED),
        *(("z", zone, NOON) for zone in ("Z", "z", "utc", "GMT", "UT")),
        *(
            (letters, zone, NOON.replace(hour=8))
            for letters in ("z", "VV", "O", "OOOO", "ZZZZ")
            for zone in ("GMT+02:00", "gmt+02:00")
        ),
        ("O", "GMT+2", NOON.replace(hour=8)),
        ("ZZZZ", "GMT+2", REFUSED),
        ("ZZZZ", "+02:00", REFUSED),
        ("z", "America/Port-au-Prince", NOON.replace(hour=15)),
    ],
)
def test_zones_of_a_format_are_offsets_and_regions(letters: str, text: str, expected: Any) -> None:
    """Short names were those of times without a format, an hour off in summer."""
    times = JsonTimes(timestamp_format=f"yyyy-MM-dd HH:mm {letters}")
    assert read(ZONED, f'"2013-01-31 10:00 {text}"', times) == expected


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("y-MM-dd", "13-01-31", date(13, 1, 31)),
        ("y-MM-dd", "2013-01-31", date(2013, 1, 31)),
        ("yyy", "013", date(13, 1, 1)),
        ("yyy", "13", REFUSED),
        ("yyyy", "02013", REFUSED),
        ("yyyy", "+02013", date(2013, 1, 1)),
        ("yyyyy", "02013", date(2013, 1, 1)),
        ("yyyyy", "2013", REFUSED),
        ("yyyy", "-0000", REFUSED),
        ("y-M-d", "2013-001-031", date(2013, 1, 31)),
        ("yyyy-MM-dd HH:mm:ss", "2013-01-31 24:00:00", REFUSED),
        ("yyyy-MM-dd z", "2013-01-31 Nowhere/Town", REFUSED),
    ],
)
def test_dates_of_a_format(pattern: str, text: str, expected: Any) -> None:
    assert read(pa.date32(), f'"{text}"', JsonTimes(date_format=pattern)) == expected


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"time_zone": "Nowhere/Town"}, "Nowhere/Town"),
        ({"timestamp_format": "yyyy-QQ"}, "letters QQ"),
        ({"timestamp_format": "EEE, d MMM yyyy"}, "letters EEE .* S a X x"),
        ({"date_format": "d MMMMM yyyy"}, "letters MMMMM"),
        ({"date_format": "yyyy[-MM"}, "cannot be read"),
    ],
)
def test_what_is_not_known_of_times_is_named(arguments: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        JsonTimes(**arguments)


def test_how_times_are_written_travels_to_tasks() -> None:
    there = pickle.loads(pickle.dumps(JsonTimes("Asia/Tokyo", "dd.MM.yyyy HH:mm")))
    assert read(ZONED, '"31.01.2013 19:00"', there) == NOON


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("1.10", "1.10"), ("1e400", "1e400"), ("12", "12"), ("true", "true"), ('"1.10"', "1.10"),
        ('{"a": [1.10, "b"], "c": null}', '{"a":[1.10,"b"],"c":null}'), ("[]", "[]"),
        ("null", None),
    ],
)  # fmt: skip
def test_a_column_of_text_has_what_stands_there(value: str, text: str | None) -> None:
    assert read(pa.string(), value) == text


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1.10", Decimal("1.10")), ("1.1", Decimal("1.10")), ('"1.10"', Decimal("1.10")),
        ("12", Decimal(12)), ("1e2", Decimal(100)), ("1.105", REFUSED), ("12345678.00", REFUSED),
        ("true", REFUSED), ('"one"', REFUSED),
        ("1234567.89", Decimal("1234567.89")),
    ],
)  # fmt: skip
def test_decimals_are_exact_or_refused(value: str, expected: Any) -> None:
    assert read(pa.decimal128(9, 2), value) == expected


@pytest.mark.parametrize(
    ("text", "expected"), [("Infinity", math.inf), ("-INF", -math.inf), ("-Infinity", -math.inf)]
)
@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_quoted_numbers_without_end_are_floats(
    kind: pa.DataType, text: str, expected: float
) -> None:
    assert read(kind, f'"{text}"') == expected
    assert math.isnan(read(kind, '"NaN"'))
    assert read(kind, '"1.5"') == REFUSED


def test_what_must_be_there_is_refused_where_it_is_not() -> None:
    """On the native way, on pyarrow's and on that of single values."""
    for others in ([], [("f", pa.float32())], [("m", pa.map_(pa.string(), pa.int64()))]):
        required = pa.field("x", pa.int64(), nullable=False)
        fields = pa.schema([required, *(pa.field(*each) for each in others)])
        payloads = [b'{"x":1}', b'{"x":null}', b"{}", b'{"x":2}', None]
        table, flaws = JsonDecoder(fields).decode(pa.array(payloads, pa.binary()))
        assert sorted(flaws) == [1, 2, 4]
        assert "required" in flaws[1] and "no value" in flaws[4]
        assert [table["x"][row].as_py() for row in (0, 3)] == [1, 2]
