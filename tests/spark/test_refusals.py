"""format("pulsarx"): what cannot be is refused when the query is planned, and the text says what
to change. Asks the data source as Spark does, without a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pulsarx
from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from pyspark.sql.types import (
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)
from spark_steps import PREFIX, make_topics, send, values

from pulsarx.spark.data_source import PulsarxDataSource
from pulsarx.spark.options import OPTIONS, read_options
from pulsarx.spark.stream_offsets import of_spark
from pulsarx.spark.topic_plan import plan_topic
from pulsarx.spark.topic_tables import tables_version
from pulsarx.spark.write_job import plan_write
from pulsarx.testing import inspect


@pytest.fixture
def topic(folder: Path) -> Path:
    """A folder with the topic t and three messages, and the topic p with two partitions."""
    with pulsarx.Client(folder, durability="os") as client:
        client.admin.topics.create_partitioned_topic("p", 2)
        send(client, "t", [b"1", b"2", b"3"])
    return folder


def source(folder: Path, **options: str) -> PulsarxDataSource:
    return PulsarxDataSource({"root": str(folder), **options})


def plan_read(folder: Path, **options: str) -> list[Any]:
    """As Spark plans a batch."""
    made = source(folder, **options)
    return list(made.reader(made.schema()).partitions())


def columns(**kinds: Any) -> StructType:
    return StructType([StructField(name, kind, True) for name, kind in kinds.items()])


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"topik": "t"}, "no option topik; did you mean topic"),
        ({"topic": "t", "path": "/x"}, "option root"),
        ({"topic": "t", "service.url": "x"}, "option root"),
        ({"topic": "t", "service.url": "/x"}, "root is given twice, once as service.url"),
        (
            {"topic": "t", "pulsar.client.authParams": "token:x"},
            "option authParams is for a cluster",
        ),
        ({"topic": "tt"}, "did you mean persistent://public/default/t"),
        ({"topic": "non-persistent://public/default/t"}, "keeps no messages"),
        ({"topicsPattern": "non-persistent://.*"}, "no topic in"),
        ({"topic": "t", "topics": "t"}, "topic and topics"),
        ({}, "none of them"),
        ({"topics": ","}, "names nothing"),
        ({"topic": "t", "TOPIC": "u"}, "twice"),
        ({"topic": "t", "columns": "values"}, "did you mean 'value'"),
        ({"topic": "t", "minPartitions": "0"}, "from 1 up"),
        ({"topic": "t", "maxBytesPerPartition": "lots"}, "64m"),
        ({"topic": "t", "failOnDataLoss": "maybe"}, "true or false"),
        ({"topic": "t", "startingOffsets": "somewhere"}, "must be earliest, latest, or offsets"),
        ({"topic": "t", "startingOffsets": "{somewhere"}, "offsets are JSON"),
        ({"topic": "t", "qqqq": "1"}, r"no option qqqq\. Options"),
        ({"topic": "t", "startingOffsets": '{"u": [1, 2]}'}, "other topics"),
        ({"topic": "t", "startingOffsets": '{"t": [999, 2]}'}, "999"),
        ({"topic": "t", "startingOffsets": "latest"}, "leaves nothing to read"),
        ({"topic": "t", "endingOffsets": "earliest"}, "leaves nothing to read"),
        (
            {"topic": "t", "startingOffsets": '{"t": "latest"}', "endingOffsets": '{"t": [0, 0]}'},
            "behind",
        ),
        ({"topic": "t", "startingOffsets": "{}"}, "JSON by topic"),
        ({"topic": "t", "startingOffsets": '{"t": "latest", "t": "earliest"}'}, "there twice"),
        ({"topic": "t", "startingOffsets": '{"t": {"one": "latest"}}'}, "no number of a partition"),
        ({"topic": "t", "startingOffsets": '{"t": {"3": "latest"}}'}, "other topics"),
        ({"topic": "t", "startingOffsets": '{"t": 7}'}, "offset 7 of"),
        ({"topic": "p", "startingOffsets": '{"p": [1, 1]}'}, "2 partitions; give each its own"),
        ({"topic": "p", "endingOffsets": '{"p": {"1": "latest"}}'}, "do not name .*p-partition-0"),
        ({"topic": "t", "startingOffsetsByTimestamp": '{"u": 5}'}, "other topics"),
        ({"topic": "t", "startingOffsetsByTimestamp": "5"}, "JSON by topic"),
        ({"topic": "t", "startingOffsetsByTimestamp": '{"t": "noon"}'}, "zone"),
        ({"topic": "t", "startingTime": '{"t": 5}'}, "OffsetsByTimestamp"),
        ({"topic": "t", "startingTimestamp": "9", "endingTimestamp": "9"}, "not before"),
        ({"topic": "t", "startingTimestamp": "1" + "0" * 19}, "from 0 up"),
        ({"topic": "t", "endingOffsetsByTimestamp": '{"t": 5}', "endingTime": "5"}, "not both"),
        ({"topic": "t", "valueFormat": "auto"}, "one of raw, string, json"),
        ({"topic": "t", "valueFormat": "json"}, "needs the columns of the value"),
        ({"topic": "t", "valueFormat": "avro"}, "valueSchema"),
        ({"topic": "t", "valueFormat": "schema"}, "has no schema"),
        ({"topic": "t", "valueFormat": "string", "valueSchema": "{}"}, "json or avro"),
        ({"topic": "t", "mode": "PERMISSIVE"}, "raw decodes none"),
        ({"topic": "t", "columns": "__redeliveryCount"}, "nobody redelivers"),
        ({"topic": "t", "waitForTopic": "true"}, "readStream only"),
        ({"topic": "t", "leaseSeconds": "2592001"}, "30 days"),
        ({"topic": "t", "maxBytesPerPartition": "1bb"}, "64m"),
        ({"topic": "t", "paths": '["a"]'}, "option root"),
        ({"topic": "t", "minOffsetsPerTrigger": "5"}, "minMessagesPerTrigger"),
        ({"topic": "t", "maxMessagesPerTrigger": "5", "topik": "t"}, "mean topic"),
        ({"topic": "somewhere-else"}, r"is not in .*, where for instance \S*p, \S*t is"),
        ({"topic": "t", "startingTimestamp": "2026-01-01"}, "zone"),
        ({"topic": "t", "startingTimestamp": "5", "startingOffsets": "latest"}, "not both"),
        ({"topic": "t", "maxBytesPerTrigger": "1m"}, "readStream"),
        ({"topic": "t", "compression": "lz4"}, "write"),
        ({"topic": "t", "root": "/nonexistent/folder"}, "/nonexistent/folder"),
        ({"topic": "t", "root": "/usr"}, "not a PulsarX data directory"),
        ({"topic": "t", "root": "memory:"}, "folder"),
        ({"topic": "t", "root": "data"}, "absolute path"),
        ({"topicsPattern": "["}, "regular expression"),
        ({"topicsPattern": " "}, "empty"),
        ({"topicsPattern": "nothing-.*"}, "nothing-"),
    ],
)
def test_a_read_that_cannot_be_is_refused(topic: Path, options: dict[str, str], text: str) -> None:
    with pytest.raises((ValueError, errors.PulsarException), match=text):
        plan_read(topic, **options)


def test_a_read_without_a_root_is_refused() -> None:
    """Whether it is for a stream is not known yet: it used to say read."""
    with pytest.raises(ValueError, match=r"^format\(\"pulsarx\"\): option root is missing"):
        PulsarxDataSource({"topic": "t"}).schema()


@pytest.mark.parametrize(
    ("schema", "options", "text"),
    [
        (
            columns(value=StringType()),
            {"topic": "non-persistent://public/default/t"},
            "keeps no messages",
        ),
        (columns(id=LongType()), {"topic": "t"}, "no column 'value'"),
        (columns(value=LongType()), {"topic": "t"}, "binary or string"),
        (columns(value=StringType(), __kei=StringType()), {"topic": "t"}, "mean '__key'"),
        (
            columns(value=StringType(), __messageProperties=MapType(StringType(), LongType())),
            {"topic": "t"},
            "map<string,string>",
        ),
        (columns(value=StringType()), {}, "no topic"),
        (columns(value=StringType()), {"topic": "u"}, "public/default/u"),
        (columns(value=StringType()), {"topic": "t", "startingOffsets": "latest"}, "read"),
        (columns(value=StringType()), {"topic": "t", "txnAppId": "a"}, "txnVersion"),
        (columns(value=StringType()), {"topic": "t", "compression": "zip"}, "one of none"),
        (columns(value=StringType()), {"topic": "t", "hashingScheme": "md5"}, "Murmur3"),
    ],
)
def test_a_write_that_cannot_be_is_refused(
    topic: Path, schema: StructType, options: dict[str, str], text: str
) -> None:
    with pytest.raises((ValueError, errors.PulsarException), match=text):
        source(topic, **options).writer(schema, False)
    assert values(topic, "t") == [b"1", b"2", b"3"]
    assert not list((topic / "staging").glob("*"))


@pytest.mark.parametrize(
    ("root", "says"), [(None, "root is None; give the path"), ("", "root is empty; give the path")]
)
def test_a_function_without_a_root_is_refused(root: Any, says: str) -> None:
    """It was Python's own TypeError, which names no argument."""
    for call in (plan_topic, plan_write, tables_version):
        with pytest.raises((TypeError, ValueError), match=says):
            call(root) if call is tables_version else call(root, "t")


@pytest.mark.parametrize("version", [-1, "4", True, 1 << 63, None, 1.0])
def test_a_version_that_is_none_is_refused_by_its_name(topic: Path, version: Any) -> None:
    """It was called batch_id."""
    says = "belong together" if version is None else rf"^version {version!r} must be an int from 0"
    with pytest.raises(ValueError, match=says):
        plan_write(topic, "t", application="a", version=version)
    assert not list((topic / "staging").glob("*"))


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (7, "topics is 7; give"),
        (b"t", "topics is b't'; give"),
        (["t", None], "topics has None, which is no name"),
        ([], "topics is empty"),
    ],
)
def test_topics_that_are_no_names_are_refused(topic: Path, names: Any, says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        plan_topic(topic, names)


def test_overwriting_is_refused(topic: Path) -> None:
    with pytest.raises(errors.OperationNotSupported, match="append"):
        source(topic, topic="t").writer(columns(value=BinaryType()), True)
    with pytest.raises(errors.OperationNotSupported, match=r"output mode complete .*upsert_topic"):
        source(topic, topic="t").streamWriter(columns(value=BinaryType()), True)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        (columns(value=StringType()), "cast"),
        (columns(valeu=BinaryType()), "did you mean 'value'"),
        (StructType([StructField("value", BinaryType(), False)]), "nullable"),
        (StructType([]), "no column"),
        (StructType([StructField("value", BinaryType(), True)] * 2), "named once"),
        (columns(__messageProperties=MapType(StringType(), StringType(), False)), "cast"),
    ],
)
def test_another_schema_is_refused(topic: Path, schema: StructType, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        source(topic, topic="t").reader(schema)


def test_a_schema_and_other_columns_are_refused_together(topic: Path) -> None:
    """The option was passed over in silence."""
    given = columns(value=BinaryType(), __key=BinaryType())
    source(topic, topic="t", columns="value,__key").reader(given)
    for names in ("__key,value", "value"):
        made = source(topic, topic="t", columns=names)
        with pytest.raises(ValueError, match="Give one of them"):
            made.reader(given)
        with pytest.raises(ValueError, match="Give one of them"):
            made.streamReader(given)


def test_what_create_table_makes_of_the_options_is_told() -> None:
    """Spark selects from such a table without any option."""
    for give in (
        lambda: PulsarxDataSource({}).schema(),
        lambda: PulsarxDataSource({"provider": "pulsarx", "option.root": "/x"}).schema(),
    ):
        with pytest.raises(ValueError, match="TEMPORARY VIEW"):
            give()


def test_a_stream_may_wait_for_its_topics(topic: Path) -> None:
    made = source(topic, topics="t,later", waitForTopic="true", startingOffsets="earliest")
    reader = made.streamReader(made.schema())
    start = reader.initialOffset()
    assert list(of_spark(start)) == [PREFIX + "t"]
    with pulsarx.Client(topic) as client:
        send(client, "later", [b"4", b"5"])
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert sorted(of_spark(end)) == [PREFIX + "later", PREFIX + "t"]
    parts: Any = reader.partitions(start, end)
    assert sum(each.message_count for part in parts for each in part.ranges) == 5
    reader.stop()
    for name, place in (("Offsets", -2), ("Offsets", "latest"), ("OffsetsByTimestamp", 1)):
        options = {f"starting{name}": json.dumps({"t": place, "soon": place})}
        made = source(topic, topics="t,soon", waitForTopic="true", **options)
        assert list(of_spark(made.streamReader(made.schema()).initialOffset())) == [PREFIX + "t"]
        for wrong in ({"soon": [7, 1]}, {"other": -2}):
            options = {"startingOffsets": json.dumps({"t": -2, **wrong})}
            with pytest.raises(ValueError, match="of other topics"):
                source(topic, topics="t,soon", waitForTopic="true", **options).schema()
    alone = source(topic, topic="never", waitingForNonExistedTopic="true")
    assert not of_spark(alone.streamReader(alone.schema()).initialOffset())
    with pytest.raises(errors.TopicNotFound, match="never"):
        source(topic, topic="never").schema()


def test_a_stream_starts_where_options_by_topic_say(topic: Path) -> None:
    def starts_at(**options: str) -> Any:
        made = source(topic, topic="t", **options)
        return made.streamReader(made.schema()).initialOffset()[PREFIX + "t"]

    end = starts_at()
    assert end[1] == 3
    assert starts_at(startingOffsetsByTimestamp='{"t": 0}') == [0, 0]
    assert starts_at(startingOffsetsByTimestamp='{"t": "2100-01-01T00:00:00Z"}') == end
    assert starts_at(startingOffsets='{"t": -2}') == [0, 0]
    assert starts_at(startingOffsets=json.dumps({"t": [end[0], 2]})) == [end[0], 2]


def test_what_is_still_being_written_can_be_left_out(topic: Path) -> None:
    """The first three are in a ledger that was sealed when their client closed."""

    def count(parts: Any) -> int:
        return sum(each.message_count for part in parts for each in part.ranges)

    with pulsarx.Client(topic, durability="os") as client:
        send(client, "t", [b"4", b"5"])
        assert count(plan_read(topic, topic="t")) == 5
        assert count(plan_read(topic, topic="t", sealedOnly="true")) == 3
        made = source(topic, topic="t", sealedOnly="true", startingOffsets="earliest")
        reader = made.streamReader(made.schema())
        start = reader.initialOffset()
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert count(reader.partitions(start, end)) == 3
        reader.stop()
        # Where the start is in an open ledger, nothing is there yet.
        ((*_, written), *_) = plan_topic(topic, "t")
        behind = json.dumps({"t": [written.ledger_id, 1]})
        made = source(topic, topic="t", sealedOnly="true", startingOffsets=behind)
        reader = made.streamReader(made.schema())
        start = reader.initialOffset()
        ahead = reader.latestOffset(start, reader.getDefaultReadLimit())
        assert reader.partitions(start, ahead) == []
        # A batch that was planned without the option is not cut short.
        for begin in (end, start):
            with pytest.raises(ValueError, match="the batch that is repeated"):
                reader.partitions(begin, {**ahead, PREFIX + "t": [written.ledger_id, 2]})
        reader.stop()
        groups = plan_topic(topic, "t", sealed_only=True)
        assert sum(each.message_count for group in groups for each in group) == 3


def test_a_lease_that_cannot_be_had_says_how_to_read_without(
    topic: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise errors.FolderOwnedError(detail="the owner is on another host")

    monkeypatch.setattr("pulsarx.spark.topic_plan.lease_ranges", refuse)
    with pytest.raises(errors.FolderOwnedError) as caught:
        plan_read(topic, topic="t")
    assert "leaseSeconds 0" in caught.value.__notes__[0]
    assert plan_read(topic, topic="t", leaseSeconds="0")


def test_stream_options_belong_to_streams(topic: Path) -> None:
    made = source(topic, topic="t", maxMessagesPerTrigger="5")
    schema = made.schema()
    made.streamReader(schema)
    with pytest.raises(ValueError, match="readStream only"):
        made.reader(schema)
    with pytest.raises(ValueError, match="read only"):
        source(topic, topic="t", endingOffsets="latest").streamReader(schema)
    with pytest.raises(ValueError, match="minMessagesPerTrigger"):
        source(topic, topic="t", maxTriggerDelay="5s").streamReader(schema)


def test_messages_that_retention_took_are_an_error_unless_allowed(folder: Path) -> None:
    two_a_ledger = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=2)
    with pulsarx.Client(folder, broker_options=two_a_ledger) as client:
        consumer = client.subscribe("t", "s")
        producer = client.create_producer("t")
        first = producer.send(b"0").ledger_id()
        for number in range(1, 5):
            producer.send(b"%d" % number)
        for _ in range(4):
            consumer.acknowledge(consumer.receive(60_000))
        inspect(client).settle()
    start = json.dumps({PREFIX + "t": [first, 1]})
    assert values(folder, "t") == [b"4"]
    with pytest.raises(errors.DataLossError, match="failOnDataLoss"):
        plan_read(folder, topic="t", startingOffsets=start)
    (part,) = plan_read(folder, topic="t", startingOffsets=start, failOnDataLoss="false")
    assert sum(each.message_count for each in part.ranges) == 1


def test_a_newer_format_is_refused_when_planned(topic: Path) -> None:
    from pulsarx.broker.folder.folder_marker import marker_bytes

    made = source(topic, topic="t")
    made.schema()
    (topic / "PULSARX").write_bytes(marker_bytes(99, "0" * 32))
    with pytest.raises(errors.NewerFormatError, match="99"):
        plan_read(topic, topic="t")
    with pytest.raises(errors.NewerFormatError):
        made.reader(columns(value=BinaryType())).partitions()
    with pytest.raises(errors.NewerFormatError):
        made.streamReader(columns(value=BinaryType())).initialOffset()
    (topic / "PULSARX").write_bytes(b"PulsarX folder\nformat 1\n")
    with pytest.raises(errors.PulsarException):
        plan_read(topic, topic="t")


def test_another_folder_under_the_same_path_is_refused(topic: Path, tmp_path: Path) -> None:
    """Mounted over, or put there, between planning and writing or reading."""
    import shutil

    import pyarrow as pa

    made = source(topic, topic="t")
    parts = made.reader(made.schema()).partitions()
    writer = made.streamWriter(columns(value=BinaryType()), False)
    shutil.rmtree(topic)
    make_topics(topic, "t")
    with pytest.raises(errors.FolderError):
        list(made.reader(columns(value=BinaryType())).read(parts[0]))
    batch = pa.record_batch([pa.array([b"x"])], ["value"])
    batch_writer = source(topic, topic="t").writer(columns(value=BinaryType()), False)
    message = batch_writer.write(iter([batch]))
    shutil.rmtree(topic)
    make_topics(topic, "t")
    with pytest.raises(errors.PulsarException):
        batch_writer.commit([message])
    assert values(topic, "t") == []
    assert writer is not None


def test_every_option_is_explained_and_found_in_any_case(topic: Path) -> None:
    assert all(row[4] for row in OPTIONS)
    read = read_options({"ROOT": str(topic), "Topic": "t", "FAILondataloss": "FALSE"}, "read")
    assert read.failOnDataLoss is False
    sizes = read_options({"root": "/x", "topic": "t", "maxBytesPerPartition": "64MB"}, "read")
    assert sizes.maxBytesPerPartition == 64 << 20
    stream = read_options(
        {"root": "/x", "topic": "t", "predefinedSubscription": "s", "checkpointLocation": "c"},
        "readStream",
    )
    assert stream.subscription == "s"
