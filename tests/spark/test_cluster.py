"""format("pulsarx") on a cluster, in batches: read by ranges of entries and written through the
official client."""

from __future__ import annotations

import datetime
import threading
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")
pytest.importorskip("_pulsar", reason="no official client: pip install 'pulsarx[pulsar]'")

import pyarrow as pa
from cluster_steps import PREFIX, ServedCluster, served_cluster
from pyspark.sql.types import StructType

import pulsarx.spark
from pulsarx import MessageId, errors
from pulsarx.spark.cluster_writer import ClusterTaskWriter
from pulsarx.spark.data_source import PulsarxDataSource

pytestmark = pytest.mark.standard
cluster = pytest.fixture(served_cluster)


def _values(frame: Any) -> list[bytes]:
    return [bytes(row["value"]) for row in frame.select("value").collect()]


def _numbers(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


# Reading ------------------------------------------------------------------------------------------


def test_every_column_comes_as_it_was_published(spark: Any, cluster: ServedCluster) -> None:
    cluster.publish("t", 20)
    frame = cluster.read(spark, "t")
    rows = frame.selectExpr("*", "unix_millis(__eventTime) AS event_ms").collect()
    assert [bytes(row["value"]) for row in rows] == _numbers(*range(20))
    assert [bytes(row["__key"]) for row in rows] == [b"k%d" % (number % 5) for number in range(20)]
    assert {row["__topic"] for row in rows} == {PREFIX + "t"}
    assert [row["event_ms"] for row in rows] == [1_700_000_000_000 + n for n in range(20)]
    assert [row["__messageProperties"] for row in rows] == [{"number": str(n)} for n in range(20)]
    ids = [MessageId.deserialize(bytes(row["__messageId"])) for row in rows]
    assert [each.batch_index() for each in ids] == [n % 7 for n in range(20)]
    columns = "__partition, __ledgerId, __entryId, __batchIndex, __producerName, __schemaVersion"
    found = cluster.read(spark, "t", columns=columns).collect()
    assert [row["__entryId"] for row in found] == [n // 7 for n in range(20)]
    assert {(row["__partition"], row["__schemaVersion"]) for row in found} == {(-1, None)}


def test_a_frame_is_of_what_was_there_when_it_was_made(spark: Any, cluster: ServedCluster) -> None:
    cluster.publish("t", 10)
    frame = cluster.read(spark, "t", columns="value")
    cluster.publish("t", 5, first=10)
    assert _values(frame) == _numbers(*range(10))


def test_tasks_read_ranges_of_entries_over_ledgers(spark: Any, cluster: ServedCluster) -> None:
    cluster.publish("t", 60, batch=4)
    cluster.new_ledger("t")
    cluster.publish("t", 30, first=60, batch=4)
    frame = cluster.read(spark, "t", minPartitions=5, columns="value")
    assert frame.rdd.getNumPartitions() >= 5
    assert _values(frame) == _numbers(*range(90))


def test_partitions_and_several_topics_are_read(spark: Any, cluster: ServedCluster) -> None:
    cluster.client.admin.topics.create_partitioned_topic("many", 3)
    cluster.publish("many", 30)
    cluster.publish("one", 5, first=30)
    named = {**cluster.options, "topicsPattern": "many|one"}
    frame = spark.read.format("pulsarx").options(**named).load()
    assert sorted(map(int, _values(frame))) == list(range(35))
    assert len({row[0] for row in frame.select("__topic").collect()}) > 2


def test_places_inside_of_batches_and_times_bound_a_frame(
    spark: Any, cluster: ServedCluster
) -> None:
    cluster.publish("t", 20)
    (ledger,) = {row[0] for row in cluster.read(spark, "t", columns="__ledgerId").collect()}
    start, end = f"{ledger}:1:-1:2", f"{ledger}:2:-1:3"
    frame = cluster.read(spark, "t", startingOffsets={"t": start}, endingOffsets={"t": end})
    assert _values(frame) == _numbers(*range(9, 17))
    assert _values(cluster.read(spark, "t", startingOffsets={"t": [ledger, 2]})) == _numbers(
        *range(14, 20)
    )
    times = cluster.read(spark, "t", columns="__publishTime").collect()
    last = max(row[0] for row in times).astimezone(datetime.UTC)
    behind = round(last.timestamp() * 1000) + 1
    assert _values(cluster.read(spark, "t", startingTimestamp=behind)) == []
    assert len(_values(cluster.read(spark, "t", endingTimestamp=behind))) == 20


def test_values_become_columns(spark: Any, cluster: ServedCluster) -> None:
    schema = pulsarx.schema.JsonSchema(_Order)
    producer = cluster.client.create_producer("orders", schema=schema)
    for price in (7, 5):
        producer.send(_Order(price=price))
    frame = cluster.read(spark, "orders", valueFormat="schema", columns="price")
    assert [row["price"] for row in frame.collect()] == [7, 5]
    cluster.client.create_producer("orders raw").send(b"no json")
    broken = (
        spark.read.format("pulsarx")
        .options(**cluster.options, topic="orders raw", valueFormat="json")
        .schema("price int")
        .load()
    )
    with pytest.raises(Exception, match="cannot be decoded as JSON"):
        broken.collect()


class _Order(pulsarx.schema.Record):
    price = pulsarx.schema.Integer(required=True)


def test_messages_in_chunks_are_refused_and_not_left_out(
    spark: Any, cluster: ServedCluster
) -> None:
    producer = cluster.client.create_producer("t", chunking_enabled=True, batching_enabled=False)
    producer.send(b"x" * (6 << 20))
    with pytest.raises(Exception, match=r"t: entry .* in chunks|entries of ledger .* did not come"):
        cluster.read(spark, "t").collect()


def test_messages_that_were_removed_are_told(spark: Any, cluster: ServedCluster) -> None:
    cluster.publish("t", 20)
    frame = cluster.read(spark, "t", columns="value")
    cluster.client.admin.topics.truncate("t")
    with pytest.raises(Exception, match="failOnDataLoss"):
        frame.collect()


# Writing ------------------------------------------------------------------------------------------


def test_rows_are_sent_with_all_they_have(spark: Any, cluster: ServedCluster) -> None:
    cluster.client.admin.topics.create_partitioned_topic("t", 2)
    rows = [(f"{n}", f"k{n % 3}", 1_700_000_000_000 + n, {"n": str(n)}) for n in range(30)]
    schema = "value string, __key string, __eventTime long, __messageProperties map<string,string>"
    cluster.write(spark.createDataFrame(rows, schema).coalesce(1), "t", compression="lz4")
    found = cluster.read(spark, "t").collect()
    by_key: dict[str, list[int]] = {}
    for row in found:
        by_key.setdefault(bytes(row["__key"]).decode(), []).append(int(bytes(row["value"])))
    assert by_key == {f"k{k}": [n for n in range(30) if n % 3 == k] for k in range(3)}
    assert {(bytes(r["value"]).decode(), r["__messageProperties"]["n"]) for r in found} == {
        (str(n), str(n)) for n in range(30)
    }
    # Where a producer of the topic puts a key.
    producer = cluster.client.create_producer("t")
    place = producer.send(b"one more", partition_key="k1").partition()
    assert {row["__topic"][-1] for row in found if bytes(row["__key"]) == b"k1"} == {str(place)}


def test_the_column_names_topics_and_missing_ones_are_refused(
    spark: Any, cluster: ServedCluster
) -> None:
    for name in ("a", "b"):
        cluster.client.admin.topics.create_non_partitioned_topic(name)
    rows = spark.createDataFrame([("1", "a"), ("2", "b")], "value string, __topic string")
    cluster.write(rows)
    assert [cluster.contents(name) for name in ("a", "b")] == [[b"1"], [b"2"]]
    with pytest.raises(Exception, match="nowhere is not in pulsar://"):
        cluster.write(spark.createDataFrame([("1", "nowhere")], rows.schema))
    with pytest.raises(Exception, match="createTopic true creates it"):
        cluster.write(rows.select("value"), "nowhere", createTopic="false")
    cluster.write(rows.select("value"), "made", createTopic="true")
    assert sorted(cluster.contents("made")) == [b"1", b"2"]


def test_a_version_is_sent_once_and_goes_on_where_it_broke_off(
    spark: Any, cluster: ServedCluster
) -> None:
    topics = cluster.client.admin.topics
    topics.create_non_partitioned_topic("t")
    rows = spark.range(0, 50, 1, 2).selectExpr("string(id) AS value")
    done = {"txnAppId": "job", "txnVersion": "7"}
    with pytest.raises(Exception, match="deduplication is Disabled"):
        cluster.write(rows, "t", **done)
    topics.set_deduplication("t", True)
    # What a task has left that died behind ten of its rows.
    broken = rows.where("id < 10").coalesce(1)
    cluster.write(broken, "t", **done)
    for _ in range(2):
        cluster.write(rows, "t", **done)
    assert sorted(map(int, cluster.contents("t"))) == list(range(50))
    # Brokers of Pulsar are told one sequence id an entry: in batches some would be sent again.
    alone = cluster.read(spark, "t", columns="__batchIndex").distinct().collect()
    assert [row[0] for row in alone] == [-1]
    cluster.write(rows, "t", txnAppId="job", txnVersion="8")
    assert len(cluster.contents("t")) == 100
    with pytest.raises(Exception, match="has written version 8 of the application, and this"):
        cluster.write(rows, "t", **done)
    assert len(cluster.contents("t")) == 100


def test_attempts_that_die_at_any_row_leave_each_row_once(
    spark: Any, cluster: ServedCluster
) -> None:
    topics = cluster.client.admin.topics
    topics.create_partitioned_topic("t", 2)
    topics.set_deduplication("t", True)
    values = [b"%d" % n for n in range(40)]
    keys = [b"k%d" % (n % 5) for n in range(40)]
    rows = pa.RecordBatch.from_pydict({"value": values, "__key": keys})
    job = _planned(cluster, "writer", txnAppId="a", txnVersion="1").job
    for sent in (0, 1, 17, 17, 39, 40):
        attempt = ClusterTaskWriter(job, 3)
        attempt.add(rows.slice(0, sent))
        attempt.abort()  # what is on its way may be stored, or not
    slow = ClusterTaskWriter(job, 3)
    slow.add(rows.slice(0, 5))
    end = threading.Timer(0.5, slow.abort)  # the next attempt waits until this one is gone
    end.start()
    last = ClusterTaskWriter(job, 3)
    last.add(rows)
    assert last.send_rest() == 40
    end.join()
    found = [cluster.contents(f"t-partition-{number}") for number in range(2)]
    assert sorted(found[0] + found[1], key=int) == values
    for each in found:
        assert each == sorted(each, key=int)


def test_a_row_that_no_message_can_be_is_named(spark: Any, cluster: ServedCluster) -> None:
    cluster.client.admin.topics.create_non_partitioned_topic("t")
    rows = spark.createDataFrame([("1",), (None,)], "value string").coalesce(1)
    with pytest.raises(Exception, match="row 1 of Spark partition 0: the value is null"):
        cluster.write(rows, "t")
    cluster.write(rows, "t", nullValues="allow")
    large = spark.createDataFrame([("12345",)], "value string").coalesce(1)
    with pytest.raises(Exception, match="row 0 of Spark partition 0: the value has 5 bytes"):
        cluster.write(large, "t", maxMessageSize="4")


# What cannot be -----------------------------------------------------------------------------------


def _planned(cluster: ServedCluster, kind: str, **options: str) -> Any:
    """What Spark has planned, in this process."""
    source = PulsarxDataSource({**cluster.options, "topic": "t", **options})
    schema: Any = source.schema() if kind == "reader" else StructType.fromDDL("value string")
    return source.reader(schema) if kind == "reader" else source.writer(schema, False)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("reader", {"adminUrl": " "}, "option adminUrl"),
        ("reader", {"adminUrl": "127.0.0.1:8080"}, "write http://host:port"),
        ("reader", {"leaseSeconds": "5"}, "leaseSeconds does not work on a cluster"),
        ("reader", {"maxRecordsPerPartition": "5"}, "use maxBytesPerPartition"),
        ("reader", {"filterPushdown": "true"}, "leave filters to Spark"),
        ("reader", {"sealedOnly": "true"}, "sealedOnly does not work"),
        ("reader", {"columns": "value, __sequenceId"}, "the official client does not tell it"),
        ("reader", {"topic": "nowhere"}, "nowhere is not in pulsar://"),
        ("reader", {"startingOffsets": '{"t": [999, 1]}'}, "behind the last message"),
        ("reader", {"startingOffsets": '{"u": "earliest"}'}, "u, which is not read"),
        ("reader", {"adminUrl": "http://127.0.0.1:1"}, "Connection refused"),
        ("writer", {"flush": "false"}, "flush does not work on a cluster: the brokers"),
        ("writer", {"maxLedgerBytes": "5m"}, "maxLedgerBytes does not work"),
        ("writer", {"txnAppId": "a", "txnVersion": str(1 << 31)}, "txnVersion on a cluster is at"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_planned(
    cluster: ServedCluster, kind: str, options: dict[str, str], says: str
) -> None:
    cluster.publish("t", 1)
    with pytest.raises((ValueError, errors.PulsarException), match=says):
        _planned(cluster, kind, **options)


def test_functions_of_folders_and_options_of_clusters_are_kept_apart(spark: Any) -> None:
    url = "pulsar://127.0.0.1:6650"
    with pytest.raises(errors.OperationNotSupported, match="the files of a folder"):
        pulsarx.spark.read_topic(spark, "t", root=url)
    with pytest.raises(errors.OperationNotSupported, match="the files of a folder"):
        pulsarx.spark.plan_write(url, "t")
    with pytest.raises(Exception, match="option adminUrl is for a cluster"):
        spark.read.format("pulsarx").options(root="/x", topic="t", adminUrl="http://h:1").load()
    with pytest.raises(Exception, match="a cluster needs option adminUrl, too"):
        spark.read.format("pulsarx").options(root=url, topic="t").load()
