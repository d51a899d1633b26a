"""JSON that is odd: each value becomes what from_json makes of it, or there is a reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import odd_values
import pytest

import pulsarx
from pulsarx import errors
from pulsarx.spark import read_topic

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

import pyarrow as pa

# Spark makes and compiles code for each of their queries.
pytestmark = pytest.mark.standard

ZONE = "Europe/Paris"
CORRUPT = "_corrupt_record"
OPTIONS_SCHEMA = (
    "i int, l bigint, d double, s string, st struct<a: int>, at timestamp, ntz timestamp_ntz, "
    "day date"
)


def publish(folder: Path, topic: str, values: Iterable[bytes]) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer(
            topic, batching_enabled=True, batching_max_messages=50, block_if_queue_full=True
        )
        for value in values:
            producer.send_async(value, None)
        producer.flush()


def ddl(columns: dict[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def plain(kind: pa.DataType) -> pa.DataType:
    """The type with numbers for times, of which Python has few, and bytes for texts."""
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_date(kind):
        return pa.int32()
    if pa.types.is_string(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(plain(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(plain(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(pa.binary(), plain(kind.item_type))
    return kind


def rows_of(frame: Any) -> list[dict[str, Any]]:
    table = frame.toArrow()
    rows: list[dict[str, Any]] = table.cast(
        pa.schema([each.with_type(plain(each.type)) for each in table.schema])
    ).to_pylist()
    return rows


def spark_rows(spark: Any, folder: Path, topic: str, schema: str, options: Any) -> list[Any]:
    """What from_json makes of the messages of a topic."""
    from pyspark.sql import functions as f

    raw = read_topic(spark, topic, root=folder, columns="value")
    whole = f"{schema}, {CORRUPT} string"
    row = f.from_json(f.col("value").cast("string"), whole, options).alias("row")
    found = raw.select(row).select(f.col("row").isNull().alias("none"), "row.*")
    return rows_of(found)


def our_rows(spark: Any, folder: Path, topic: str, schema: str, **options: str) -> list[Any]:
    source = spark.read.format("pulsarx").options(root=str(folder), topic=topic, mode="PERMISSIVE")
    source = source.options(valueFormat="json", **options)
    return rows_of(source.schema(f"{schema}, {CORRUPT} string").load())


def values_of(row: dict[str, Any]) -> str:
    """All of a row but the malformed text, of which only is told whether there is one."""
    there = {name: value for name, value in row.items() if value is not None and name != "none"}
    is_malformed = there.pop(CORRUPT, None) is not None
    return f"{there}{' malformed' if is_malformed else ''}"


@pytest.mark.parametrize("reader", odd_values.SCHEMAS)
def test_odd_values_are_those_of_from_json_or_have_a_reason(spark, folder, reader):
    """By the native reader, by PyArrow's, and value by value."""
    columns = odd_values.SCHEMAS[reader]
    documents = odd_values.documents(columns)
    publish(folder, "t", documents)
    expected = spark_rows(spark, folder, "t", ddl(columns), {"timeZone": ZONE})
    found = our_rows(spark, folder, "t", ddl(columns), timeZone=ZONE)
    assert len(found) == len(expected) == len(documents) > 1500
    for document, row in zip(documents, found):
        # from_json has a mark for bytes that are none.
        text = document.decode("utf-8", "replace").encode()
        assert row[CORRUPT] in (None, text)
    differ = {
        document
        for document, ours, theirs in zip(documents, found, expected)
        if values_of(ours) != values_of(theirs)
    }
    reasons = {each for several in odd_values.DIFFERENCES.values() for each in several}
    assert differ == reasons.intersection(documents), (
        differ - reasons,
        reasons.intersection(documents) - differ,
    )


def test_each_difference_stands_in_the_guide():
    guide = Path(pulsarx.spark.__file__).resolve().with_name("README.md")
    for reason in odd_values.DIFFERENCES | odd_values.FORMAT_DIFFERENCES:
        assert f"* {reason};\n" in guide.read_text(encoding="utf-8")


@pytest.mark.parametrize("reader", ["native", "arrow"])
def test_a_value_is_the_same_alone_and_beside_others(spark, reader):
    """The fast readers take what is alone; PyArrow's made another number of a decimal that did not
    fit, and took -NaN."""
    from pyspark.sql.types import StructType

    from pulsarx.spark.value_format import arrow_schema
    from pulsarx.tables.json_columns import JsonDecoder

    columns = odd_values.SCHEMAS[reader]
    decoder = JsonDecoder(arrow_schema(StructType.fromDDL(ddl(columns))))
    documents = odd_values.documents(columns)
    table, flaws = decoder.decode(pa.array(documents, pa.binary()))
    table = table.cast(pa.schema([each.with_type(plain(each.type)) for each in table.schema]))
    rows = list(map(repr, table.to_pylist()))
    for number, document in enumerate(documents):
        alone, flaw = decoder.decode(pa.array([document], pa.binary()))
        alone = alone.cast(table.schema)
        assert (repr(alone.to_pylist()[0]), bool(flaw)) == (rows[number], number in flaws), document


def test_options_are_those_of_from_json_or_have_a_reason(spark, folder):
    from functools import reduce

    from pyspark.sql import functions as f

    expected, found = [], []
    for number, (options, documents) in enumerate(odd_values.OPTION_SETS):
        publish(folder, f"t{number}", documents)
        raw = read_topic(spark, f"t{number}", root=folder, columns="value")
        given = {"timeZone": "UTC", **options}
        row = f.from_json(
            f.col("value").cast("string"), f"{OPTIONS_SCHEMA}, {CORRUPT} string", given
        )
        expected.append(raw.select(f.lit(number).alias("number"), row.alias("row")))
        frame = read_topic(
            spark,
            f"t{number}",
            root=folder,
            columns=[each.split()[0] for each in OPTIONS_SCHEMA.split(", ")] + [CORRUPT],
            schema=f"{OPTIONS_SCHEMA}, {CORRUPT} string",
            mode="PERMISSIVE",
            json_options=options,
        )
        found.append(frame.select(f.lit(number).alias("number"), f.struct("*").alias("row")))
    pairs = zip(
        rows_of(reduce(lambda one, other: one.union(other), expected).select("number", "row.*")),
        rows_of(reduce(lambda one, other: one.union(other), found).select("number", "row.*")),
        strict=True,
    )
    documents = [each for _, several in odd_values.OPTION_SETS for each in several]
    reasons = {each for several in odd_values.FORMAT_DIFFERENCES.values() for each in several}
    differ = [
        (odd_values.OPTION_SETS[theirs["number"]][0], document, values_of(theirs), values_of(ours))
        for document, (theirs, ours) in zip(documents, pairs, strict=True)
        if values_of(theirs) != values_of(ours)
    ]
    wrong = [each for each in differ if each[1] not in reasons]
    assert not wrong, "\n".join(map(str, wrong))
    assert reasons == {document for _, document, _, _ in differ}


def test_each_option_of_from_json_is_taken_or_refused_by_name(spark):
    """Those that Spark says of itself."""
    from pulsarx.spark.options import BATCH, read_options

    scala = spark._jvm.org.apache.spark.sql.catalyst.json.JSONOptions
    names = scala.getAllOptions().mkString(",").split(",")
    assert {"mode", "allowComments", "multiLine"} < set(names)
    values = {"mode": "PERMISSIVE", "locale": "en-US", "timeZone": "UTC"}
    values["columnNameOfCorruptRecord"] = "bad"
    base = {"root": "/data", "topic": "t", "valueFormat": "json", "mode": "PERMISSIVE"}
    refused = []
    for name in names:
        value = "yyyy" if name.endswith("Format") else values.get(name, "true")
        try:
            read_options({**base, name: value}, BATCH)
        except ValueError as error:
            refused.append(name)
            assert f"no option {name}. " in str(error) or "compression is for write" in str(error)
    assert sorted(refused) == [
        "charset", "compression", "dropFieldIfAllNull", "encoding", "explodeEmbeddedArray",
        "ignoreNullFields", "inferTimestamp", "lineSep", "multiLine", "prefersDecimal", "pretty",
        "primitivesAsString", "samplingRatio", "singleVariantColumn", "sortKeys", "timeFormat",
        "useUnsafeRow", "writeNonAsciiCharacterAsCodePoint",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"allowComments": "yes"}, "allowComments is 'yes': it must be true or false"),
        ({"allowcomments": "true", "valueFormat": "string"}, "allowComments is about JSON"),
        ({"locale": "de-DE"}, "locale is 'de-DE': names of months .* en-US"),
        ({"timestampNTZFormat": "QQ"}, "timestampNTZFormat .* letters QQ"),
        ({"columnNameOfCorruptRecord": "bad"}, "columnNameOfCorruptRecord needs mode PERMISSIVE"),
        ({"primitivesAsString": "true"}, "no option primitivesAsString. No schema is inferred"),
        ({"multiLine": "true"}, "no option multiLine. Each message is one document"),
        ({"encoding": "UTF-16"}, "no option encoding. JSON is UTF-8"),
    ],
)
def test_an_option_that_is_not_like_that_says_so(options, text):
    from pulsarx.spark.options import BATCH, read_options

    base = {"root": "/data", "topic": "t", "valueFormat": "json"}
    with pytest.raises(ValueError, match=text):
        read_options({**base, **options}, BATCH)


def test_json_options_are_checked_as_those_of_the_format(folder):
    publish(folder, "t", [b"{}"])
    for options, text in (
        ({"allowComment": True}, "json_options has no allowComment. It has timeZone, "),
        ({"multiLine": True}, "json_options has no multiLine. Each message is one document"),
        ({"allowComments": 1}, "allowComments is 1: it must be true or false"),
        ({"columnNameOfCorruptRecord": "bad"}, "needs mode PERMISSIVE"),
        ({"timeZone": "UTC"}, "timeZone is given twice"),
    ):
        with pytest.raises(ValueError, match=text):
            read_topic(
                None, "t", root=folder, schema="i int", time_zone="UTC", json_options=options
            )


@pytest.mark.parametrize(
    "kind",
    [
        "interval",
        "interval year to month",
        "interval day to second",
        "variant",
        "map<int, int>",
        "time(6)",
        "char(3)",
        "varchar(3)",
    ],
)
def test_types_that_json_is_not_read_as_are_refused_by_name(folder, kind, spark):
    publish(folder, "t", [b"{}"])
    with pytest.raises(errors.OperationNotSupported, match=r"column x\S*: JSON is not read as"):
        read_topic(spark, "t", root=folder, schema=f"x struct<y: array<{kind}>>")


MALFORMED = {
    b'{"i":1,"st":{"a":1,"s":2},"lst":[{"a":1},{"a":"x"}]}': "lst[].a: 'x' is no int",
    b'{"i":1,"at":"soon"}': "at: 'soon' is no timestamp",
    b'{"i":1,"l":2.5}': "l: 2.5 is no bigint",
    b'{"i":1,"s":"x" "l":2}': "where a comma is expected, at character 16",
    b"[1]": "it is no JSON object: '[1]'",
    b'{"i":""}': "i: an empty text is no int",
    b'{"i":1,"day":"2013-02-30"}': "day: '2013-02-30' is no date",
}


def test_modes_are_those_of_from_json(spark, folder):
    """DROPMALFORMED is no mode of from_json; here there is no row."""
    schema = ddl(odd_values.NATIVE)
    reasons = {each for several in odd_values.DIFFERENCES.values() for each in several}
    documents = [each for each in odd_values.documents(odd_values.NATIVE) if each not in reasons]
    publish(folder, "t", documents)
    kept = our_rows(spark, folder, "t", schema)
    good = [each for each, row in zip(documents, kept) if row[CORRUPT] is None]
    assert 500 < len(good) < len(documents) - 500
    dropped = read_topic(spark, "t", root=folder, schema=schema, mode="DROPMALFORMED")
    names = list(odd_values.NATIVE)
    assert [values_of(row) for row in rows_of(dropped.select(names))] == [
        values_of(row) for row in kept if row[CORRUPT] is None
    ]
    publish(folder, "good", good)
    whole = read_topic(spark, "good", root=folder, schema=schema).select(names)
    assert len(rows_of(whole)) == len(good)
    expected = spark_rows(spark, folder, "good", schema, {"mode": "FAILFAST"})
    assert len(expected) == len(good)


def test_a_malformed_value_is_told_by_message_field_and_value(spark, folder):
    from pyspark.sql import functions as f

    publish(folder, "t", MALFORMED)
    with pulsarx.Client(folder, read_only=True) as client:
        reader = client.create_reader("t", pulsarx.MessageId.earliest)
        ids = [str(reader.read_next(60_000).message_id()) for _ in MALFORMED]
    schema = ddl(odd_values.NATIVE)
    raw = read_topic(spark, "t", root=folder, columns="value, __sequenceId")
    row = f.from_json(f.col("value").cast("string"), schema, {"mode": "FAILFAST"})
    for number, (value, text) in enumerate(MALFORMED.items()):
        with pytest.raises(Exception, match="MALFORMED_RECORD_IN_PARSING"):
            raw.where(f"__sequenceId = {number}").select(row.alias("row")).collect()
        with pytest.raises(Exception, match="cannot be decoded as JSON") as refused:
            read_topic(
                spark, "t", root=folder, schema=schema, where=f"__sequenceId = {number}"
            ).collect()
        told = str(refused.value)
        assert f"message {ids[number]} of persistent://public/default/t" in told
        assert text in told and str(value)[2:20] in told


def test_malformed_values_are_in_the_column_that_is_named(spark, folder):
    publish(folder, "t", [b'{"i":1}', b'{"i":"x","l":7}', b"\xff", b'{"i":8/**/}'])
    for kind, expected in (("binary", b"\xff"), ("string", "\ufffd")):
        frame = read_topic(
            spark,
            "t",
            root=folder,
            schema=f"i int, l bigint, bad {kind}",
            columns="i, l, bad",
            mode="PERMISSIVE",
            json_options={"columnNameOfCorruptRecord": "bad"},
        )
        assert frame.schema["bad"].dataType.simpleString() == kind
        first, second, third, comment = frame.collect()
        assert tuple(first) == (1, None, None) and comment.i is None
        assert (second.i, second.l) == (None, 7)
        text = second.bad if kind == "string" else bytes(second.bad).decode()
        assert (text, third.bad) == ('{"i":"x","l":7}', expected)
    source = spark.read.format("pulsarx").options(root=str(folder), topic="t", valueFormat="json")
    source = source.options(
        mode="PERMISSIVE", columnNameOfCorruptRecord="bad", allowComments="true"
    )
    rows = source.schema("bad string, i int").load().collect()
    assert [row.i for row in rows] == [1, None, None, 8] and rows[1].bad == '{"i":"x","l":7}'
