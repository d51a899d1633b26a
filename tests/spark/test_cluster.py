"""format("pulsarx") on a cluster, in batches: read by ranges of entries and written through the
official client."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")
pytest.importorskip("_pulsar", reason="no official client: pip install 'pulsarx[pulsar]'")

import pyarrow as pa
from cluster_steps import PREFIX, ServedCluster, served_cluster
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

import pulsarx.spark
from pulsarx import MessageId, errors
from pulsarx.admin.http_channel import HttpChannel, Reply
from pulsarx.cluster.cluster_producer import ClusterProducer
from pulsarx.cluster.cluster_reader import ClusterReader
from pulsarx.results import Result
from pulsarx.schema import AvroSchema, Long, Record, String
from pulsarx.spark import confirmed_producer
from pulsarx.spark.cluster_writer import ClusterTaskWriter
from pulsarx.spark.data_source import PulsarxDataSource

pytestmark = pytest.mark.standard
_INT = IntegerType()
cluster = pytest.fixture(served_cluster)


def _source(cluster: ServedCluster, topic: str, **options: Any) -> PulsarxDataSource:
    texts = {k: each if isinstance(each, str) else json.dumps(each) for k, each in options.items()}
    return PulsarxDataSource({**cluster.options, "topic": topic, **texts})


class _Frame:
    """What Spark makes of the format, in this process: planned now, read by `rows`."""

    def __init__(self, cluster: ServedCluster, topic: str, **options: Any) -> None:
        source = _source(cluster, topic, **options)
        self._reader = source.reader(source.schema())

    def tasks(self) -> list[list[dict[str, Any]]]:
        return [
            [row for batch in self._reader.read(each) for row in batch.to_pylist()]
            for each in self._reader.partitions()
        ]

    def rows(self) -> list[dict[str, Any]]:
        return [row for task in self.tasks() for row in task]


def _values(frame: _Frame) -> list[bytes]:
    return [row["value"] for row in frame.rows()]


def _write(cluster: ServedCluster, topic: str, rows: pa.RecordBatch, **options: str) -> None:
    schema = _strings(*rows.schema.names)
    if "__keyBytes" in rows.schema.names:
        schema["__keyBytes"].dataType = BinaryType()
    _source(cluster, topic, **options).writer(schema, False).write(iter([rows]))


def _strings(*names: str) -> StructType:
    return StructType([StructField(name, StringType()) for name in names])


def _numbers(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


# Reading ------------------------------------------------------------------------------------------


def test_every_column_comes_as_it_was_published(spark: Any, cluster: ServedCluster) -> None:
    cluster.publish("t", 20)
    frame = cluster.read(spark, "t", minPartitions="2")
    rows = frame.selectExpr("*", "unix_millis(__eventTime) AS event_ms").collect()
    assert [bytes(row["value"]) for row in rows] == _numbers(*range(20))
    assert [bytes(row["__key"]) for row in rows] == [b"k%d" % (number % 5) for number in range(20)]
    assert {row["__topic"] for row in rows} == {PREFIX + "t"}
    assert [row["event_ms"] for row in rows] == [1_700_000_000_000 + n for n in range(20)]
    assert [row["__messageProperties"] for row in rows] == [{"number": str(n)} for n in range(20)]
    ids = [MessageId.deserialize(bytes(row["__messageId"])) for row in rows]
    assert [each.batch_index() for each in ids] == [n % 7 for n in range(20)]


def test_urls_may_be_named_as_the_pulsar_connector_names_them(cluster: ServedCluster) -> None:
    """Its programs change the format alone."""
    cluster.publish("t", 20)
    named = {
        "service.url": cluster.options["root"],
        "admin.url": cluster.options["adminUrl"],
        "topic": "t",
    }
    source = PulsarxDataSource({**named, "columns": "value"})
    reader = source.reader(source.schema())
    found = [
        row for part in reader.partitions() for each in reader.read(part) for row in each["value"]
    ]
    assert [row.as_py() for row in found] == _numbers(*range(20))
    rows = pa.record_batch([pa.array(["20"])], ["value"])
    PulsarxDataSource(named).writer(_strings("value"), False).write(iter([rows]))
    assert cluster.contents("t")[20:] == [b"20"]


def test_places_and_writers_are_columns(cluster: ServedCluster) -> None:
    cluster.publish("t", 20)
    columns = "__partition, __ledgerId, __entryId, __batchIndex, __producerName, __schemaVersion"
    rows = _Frame(cluster, "t", columns=columns).rows()
    assert [(row["__entryId"], row["__batchIndex"]) for row in rows] == [
        (n // 7, n % 7) for n in range(20)
    ]
    assert {(row["__partition"], row["__schemaVersion"]) for row in rows} == {(-1, None)}
    assert all(row["__producerName"] and row["__ledgerId"] for row in rows)


def test_a_frame_is_of_what_was_there_when_it_was_made(cluster: ServedCluster) -> None:
    cluster.publish("t", 10)
    frame = _Frame(cluster, "t", columns="value")
    cluster.publish("t", 5, first=10)
    assert _values(frame) == _numbers(*range(10))


def test_tasks_read_ranges_of_entries_over_ledgers(cluster: ServedCluster) -> None:
    cluster.publish("t", 60, batch=4)
    cluster.new_ledger("t")
    cluster.publish("t", 30, first=60, batch=4)
    frame = _Frame(cluster, "t", minPartitions="5", columns="value")
    found = [[int(row["value"]) for row in task] for task in frame.tasks()]
    assert [number for task in found for number in task] == list(range(90))
    assert len(found) >= 5 and all(found)


def test_partitions_and_topics_of_a_pattern_are_read(cluster: ServedCluster) -> None:
    cluster.admin.topics.create_partitioned_topic("many", 3)
    cluster.publish("many", 30)
    cluster.publish("one", 5, first=30)
    source = PulsarxDataSource({**cluster.options, "topicsPattern": "many|one"})
    reader = source.reader(source.schema())
    rows = [
        row
        for task in reader.partitions()
        for batch in reader.read(task)
        for row in batch.to_pylist()
    ]
    assert sorted(int(row["value"]) for row in rows) == list(range(35))
    assert len({row["__topic"] for row in rows}) > 2


def test_places_inside_of_batches_and_times_bound_a_frame(cluster: ServedCluster) -> None:
    cluster.publish("t", 20)
    (ledger,) = {row["__ledgerId"] for row in _Frame(cluster, "t", columns="__ledgerId").rows()}
    start, end = f"{ledger}:1:-1:2", f"{ledger}:2:-1:3"
    frame = _Frame(cluster, "t", startingOffsets={"t": start}, endingOffsets={"t": end})
    assert _values(frame) == _numbers(*range(9, 17))
    behind = _Frame(cluster, "t", startingOffsets={"t": [ledger, 2]})
    assert _values(behind) == _numbers(*range(14, 20))
    times = _Frame(cluster, "t", columns="__publishTime").rows()
    last = max(row["__publishTime"] for row in times)
    later = str(round(last.timestamp() * 1000) + 1)
    assert _values(_Frame(cluster, "t", startingTimestamp=later)) == []
    assert len(_values(_Frame(cluster, "t", endingTimestamp=later))) == 20


class _Order(pulsarx.schema.Record):
    price = pulsarx.schema.Integer(required=True)


def test_values_become_columns(cluster: ServedCluster) -> None:
    schema = pulsarx.schema.JsonSchema(_Order)
    producer = cluster.client.create_producer("orders", schema=schema)
    for price in (7, 5):
        producer.send(_Order(price=price))
    frame = _Frame(cluster, "orders", valueFormat="schema", columns="price")
    assert frame.rows() == [{"price": 7}, {"price": 5}]
    place = cluster.client.create_producer("raw").send(b"no json")
    given = StructType([StructField("price", IntegerType())]).json()
    broken = _Frame(cluster, "raw", valueFormat="json", valueSchema=given, columns="price")
    with pytest.raises(ValueError, match=re.escape(f"message {place} of {PREFIX}raw cannot be")):
        broken.rows()


def test_messages_in_chunks_are_refused_and_not_left_out(cluster: ServedCluster) -> None:
    producer = cluster.client.create_producer("t", chunking_enabled=True, batching_enabled=False)
    producer.send(b"x" * (6 << 20))
    frame = _Frame(cluster, "t")
    with pytest.raises(errors.PulsarException, match=r"in chunks|entries of ledger .* did not"):
        frame.rows()


def test_messages_that_were_removed_are_told(cluster: ServedCluster) -> None:
    cluster.publish("t", 20)
    frame = _Frame(cluster, "t", columns="value")
    whole = _Frame(cluster, "t", columns="value", failOnDataLoss="false")
    tasks = frame._reader.partitions()
    cluster.remove_messages("t")
    with pytest.raises(errors.DataLossError, match="failOnDataLoss"):
        frame.rows()
    with pytest.raises(errors.DataLossError, match="that were planned did not come"):
        list(frame._reader.read(tasks[0]))
    assert whole.rows() == []


def _read_next_until(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers get so many messages, and then none in time."""
    real = ClusterReader.read_next
    left = [count]

    def read_next(reader: Any, *arguments: Any) -> Any:
        if not left[0]:
            raise errors.Timeout(detail="no message came")
        found = real(reader, *arguments)
        left[0] -= 1
        return found

    monkeypatch.setattr(ClusterReader, "read_next", read_next)


@pytest.mark.parametrize("fails", ["true", "false"])
def test_what_does_not_come_in_time_is_an_error_and_not_lost(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """failOnDataLoss false passed over entries that brokers had, and did not send in time."""
    cluster.publish("t", 20, batch=2)
    frame = _Frame(cluster, "t", columns="value", failOnDataLoss=fails)
    with monkeypatch.context() as patch:
        _read_next_until(8, patch)
        with pytest.raises(errors.Timeout) as raised:
            frame.rows()
    assert re.search(r"entry \d+:4 is there, and did not come", raised.value.detail)
    assert _values(frame) == _numbers(*range(20))


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"X-Pulsar-txnid-least-bits": "7", "X-Pulsar-txn-aborted": "false"}, "is there, and did"),
        ({"X-Pulsar-txnid-least-bits": "7"}, "is there, and did"),
        ({"X-Pulsar-txnid-least-bits": "7", "X-Pulsar-txn-aborted": "true"}, ""),
        ({"X-Pulsar-marker-type": "10"}, ""),
        ({"X-Pulsar-txn-uncommitted": "true"}, "a transaction that is open"),
        ({"X-Pulsar-Is-Encrypted": "true"}, "is encrypted"),
        ({"X-Pulsar-chunk-id": "0"}, "in chunks"),
    ],
)
def test_only_what_nobody_can_read_is_passed_over(
    cluster: ServedCluster,
    monkeypatch: pytest.MonkeyPatch,
    headers: dict[str, str],
    says: str,
) -> None:
    """Messages of transactions that were open, or committed and slow to come, were passed over."""
    cluster.publish("t", 4, batch=2)
    frame = _Frame(cluster, "t", columns="value")
    ask = HttpChannel.ask

    def answer(channel: HttpChannel, method: str, path: str, *more: Any, **query: Any) -> Reply:
        return (
            Reply(b"", headers) if "/entry/" in path else ask(channel, method, path, *more, **query)
        )

    monkeypatch.setattr(HttpChannel, "ask", answer)
    _read_next_until(2, monkeypatch)
    if not says:
        assert _values(frame) == [b"0", b"1"]
        return
    with pytest.raises(errors.PulsarException) as raised:
        frame.rows()
    assert says in raised.value.detail


def test_what_brokers_keep_back_is_data_loss(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.publish("t", 6, batch=2)
    real = ClusterReader.read_next

    def read_next(reader: Any, *arguments: Any) -> Any:
        found = real(reader, *arguments)
        while found.message_id().entry_id() == 1:
            found = real(reader, *arguments)
        return found

    monkeypatch.setattr(ClusterReader, "read_next", read_next)
    with pytest.raises(errors.DataLossError, match=r"1 entries of ledger .* the first is 1"):
        _Frame(cluster, "t", columns="value").rows()
    found = _values(_Frame(cluster, "t", columns="value", failOnDataLoss="false"))
    assert found == _numbers(0, 1, 4, 5)


# Writing ------------------------------------------------------------------------------------------


def test_rows_are_sent_with_all_they_have(spark: Any, cluster: ServedCluster) -> None:
    cluster.admin.topics.create_partitioned_topic("t", 2)
    rows = [(f"{n}", f"k{n % 3}", 1_700_000_000_000 + n, {"n": str(n)}) for n in range(30)]
    schema = "value string, __key string, __eventTime long, __messageProperties map<string,string>"
    cluster.write(spark.createDataFrame(rows, schema).coalesce(1), "t", compression="lz4")
    found = _Frame(cluster, "t").rows()
    by_key: dict[bytes, list[int]] = {}
    for row in found:
        by_key.setdefault(row["__key"], []).append(int(row["value"]))
    assert by_key == {b"k%d" % k: [n for n in range(30) if n % 3 == k] for k in range(3)}
    assert {(row["value"].decode(), row["__messageProperties"][0]) for row in found} == {
        (str(n), ("n", str(n))) for n in range(30)
    }
    assert sorted(round(row["__eventTime"].timestamp() * 1000) for row in found) == [
        1_700_000_000_000 + n for n in range(30)
    ]
    # Where producers of a folder, and Java's, put a key: by its String.hashCode.
    for digit in b"012":
        places = {row["__topic"][-1] for row in found if row["__key"] == b"k%c" % digit}
        assert places == {str((31 * ord("k") + digit) % 2)}


def test_columns_become_values_that_the_brokers_know_the_schema_of(cluster: ServedCluster) -> None:
    class Order(Record):
        price = Long(required=True)
        customer = String()

    schema = AvroSchema(Order)
    definition = schema.schema_info().schema()
    admin = cluster.admin
    for topic in ("json", "avro"):
        admin.topics.create_non_partitioned_topic(topic)
    rows = pa.record_batch({"price": [1, 2], "customer": ["a", None], "__orderingKey": ["o", "p"]})
    frame = StructType([StructField("price", LongType()), *_strings("customer", "__orderingKey")])

    def write(topic: str, **options: str) -> None:
        _source(cluster, topic, **options).writer(frame, False).write(iter([rows]))

    write("json", valueFormat="json")
    assert cluster.contents("json") == [
        b'{"price":1,"customer":"a"}',
        b'{"price":2,"customer":null}',
    ]
    write("avro", valueFormat="avro", valueSchema=definition)
    assert len(admin.schemas.get_all_schemas("avro")) == 1
    write("avro", valueFormat="schema")
    assert len(admin.schemas.get_all_schemas("avro")) == 1
    reader = cluster.client.create_reader("avro", MessageId.earliest, schema=schema)
    found = [reader.read_next(60_000) for _ in range(4)]
    assert [each.value().price for each in found] == [1, 2, 1, 2]
    assert [each.ordering_key() for each in found] == ["o", "p"] * 2
    with pytest.raises(ValueError, match="json has no schema"):
        write("json", valueFormat="schema")
    other = definition.replace('"long"', '"string"')
    assert other != definition
    with pytest.raises(errors.IncompatibleSchema, match="topic's last schema, by the strategy"):
        _planned(cluster, "writer", topic="avro", valueFormat="avro", valueSchema=other)


def test_a_definition_that_no_producer_may_bring_is_refused_before_its_topic_is_created(
    cluster: ServedCluster,
) -> None:
    """Tasks told it, and a topic without a row stayed."""

    class Order(Record):
        price = Long()

    info = AvroSchema(Order).schema_info()
    namespaces = cluster.admin.namespaces
    namespaces.set_is_allow_auto_update_schema("public/default", False)
    schema = StructType([StructField("price", LongType())])
    given = {"valueFormat": "avro", "valueSchema": info.schema(), "createTopic": "true"}
    rows = pa.RecordBatch.from_pydict({"price": [1]})
    try:
        with pytest.raises(errors.IncompatibleSchema, match="is_allow_auto_update_schema of publ"):
            writer = _source(cluster, "new", **given).writer(schema, False)
            writer.write(iter([rows]))
        assert _topics(cluster) == []
        cluster.admin.topics.create_non_partitioned_topic("new")
        cluster.admin.schemas.create_schema("new", info)
        _source(cluster, "new", **given).writer(schema, False).write(iter([rows]))
    finally:
        namespaces.set_is_allow_auto_update_schema("public/default", True)
    assert len(cluster.contents("new")) == 1


def test_the_column_names_topics_and_missing_ones_are_refused(cluster: ServedCluster) -> None:
    for name in ("a", "b"):
        cluster.admin.topics.create_non_partitioned_topic(name)
    source = PulsarxDataSource(cluster.options)
    writer = source.writer(_strings("value", "__topic"), False)
    rows = pa.RecordBatch.from_pydict({"value": ["1", "2"], "__topic": ["a", "b"]})
    writer.write(iter([rows]))
    assert [cluster.contents(name) for name in ("a", "b")] == [[b"1"], [b"2"]]
    nowhere = pa.RecordBatch.from_pydict({"value": ["1"], "__topic": ["nowhere"]})
    with pytest.raises(errors.TopicNotFound, match=r"row 0 .*nowhere is not in pulsar://"):
        writer.write(iter([nowhere]))
    values = pa.RecordBatch.from_pydict({"value": ["1", "2"]})
    with pytest.raises(errors.TopicNotFound, match="createTopic true creates it"):
        _write(cluster, "nowhere", values, createTopic="false")
    _write(cluster, "made", values, createTopic="true")
    assert cluster.contents("made") == [b"1", b"2"]


def _topics(cluster: ServedCluster) -> list[str]:
    found = cluster.admin.topics.get_list("public/default")
    return [name.removeprefix(PREFIX) for name in found]


def _new(cluster: ServedCluster, **options: str) -> Any:
    """The writer of a topic that is not there, planned."""
    schema = _strings("value", "__key")
    return _source(cluster, "new", createTopic="true", **options).writer(schema, False)


@pytest.mark.parametrize("once", [{}, {"txnAppId": "a", "txnVersion": "1"}])
def test_a_topic_is_created_with_its_first_row(
    cluster: ServedCluster, once: dict[str, str]
) -> None:
    """An empty one stayed where rows were refused."""
    if once:
        with pytest.raises(errors.OperationNotSupported, match=r"new is not there yet, and public"):
            _new(cluster, **once)
        cluster.admin.namespaces.set_deduplication("public/default", True)
    writer = _new(cluster, **once)
    flaw = pa.RecordBatch.from_pydict({"value": ["1", None], "__key": ["a", "b"]})
    with pytest.raises(ValueError, match="row 1 of Spark partition 0: the value is null"):
        writer.write(iter([flaw]))
    with pytest.raises(errors.MessageTooBig, match="row 0 of Spark partition 0"):
        _new(cluster, maxMessageSize="1", **once).write(
            iter([pa.RecordBatch.from_pydict({"value": ["12"]})])
        )
    assert _topics(cluster) == []
    rows = pa.RecordBatch.from_pydict({"value": ["1", "2"], "__key": ["a", "b"]})
    sent = [writer.write(iter([rows]))]
    writer.commit(sent)
    assert cluster.contents("new") == [b"1", b"2"]


def test_a_job_without_rows_creates_its_topic_as_its_namespace_has_it(
    cluster: ServedCluster,
) -> None:
    namespaces = cluster.admin.namespaces
    namespaces.set_auto_topic_creation("public/default", True, "partitioned", 3)
    writer = _new(cluster)
    assert _topics(cluster) == []
    writer.commit([writer.write(iter(()))])
    assert cluster.client.get_topic_partitions("new") == [
        f"{PREFIX}new-partition-{number}" for number in range(3)
    ]


def test_a_topic_that_another_created_meanwhile_takes_the_rows_or_refuses_them(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.RecordBatch.from_pydict({"value": ["1", "2"], "__key": ["a", "b"]})
    first, second = _new(cluster), _new(cluster)
    first.write(iter([rows]))
    second.write(iter([rows]))
    assert cluster.contents("new") == [b"1", b"2"] * 2
    cluster.admin.topics.delete("new", force=True)
    late = _new(cluster)
    cluster.admin.topics.create_partitioned_topic("new", 2)
    ask, slow = HttpChannel.ask, [2]

    def answer(channel: HttpChannel, method: str, path: str, *more: Any, **query: Any) -> Reply:
        """Where it is only begun to be made it is refused, and not found."""
        if method == "GET" and path.endswith("/new/partitions") and slow[0]:
            slow[0] -= 1
            raise errors.TopicNotFound(detail=path)
        return ask(channel, method, path, *more, **query)

    monkeypatch.setattr(HttpChannel, "ask", answer)
    with pytest.raises(errors.NotAllowedError, match="2 partitions where 0 were planned"):
        late.write(iter([rows]))


def test_a_version_is_sent_once(cluster: ServedCluster) -> None:
    cluster.admin.topics.create_non_partitioned_topic("t")
    rows = pa.RecordBatch.from_pydict({"value": [str(n) for n in range(50)]})
    done = {"txnAppId": "job", "txnVersion": "7"}
    with pytest.raises(errors.OperationNotSupported, match="deduplication is Disabled"):
        _write(cluster, "t", rows, **done)
    cluster.deduplicate("t")
    for _ in range(2):
        _write(cluster, "t", rows, **done)
    assert cluster.contents("t") == _numbers(*range(50))
    # All of it is one entry: what brokers know of it, one sequence id, is that of its last row.
    places = _Frame(cluster, "t", columns="__entryId, __batchIndex").rows()
    assert [tuple(row.values()) for row in places] == [(0, number) for number in range(50)]
    _write(cluster, "t", rows, txnAppId="job", txnVersion="8")
    assert len(cluster.contents("t")) == 100
    with pytest.raises(errors.NotAllowedError, match="has written version 8 of the application"):
        _write(cluster, "t", rows, **done)
    assert len(cluster.contents("t")) == 100


def test_attempts_that_die_at_any_row_leave_each_row_once(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmed_producer, "ROWS_MAX", 3)
    cluster.admin.topics.create_partitioned_topic("t", 2)
    cluster.deduplicate("t")
    values = [b"%d" % n for n in range(40)]
    keys = [b"k%d" % (n % 5) for n in range(40)]
    rows = pa.RecordBatch.from_pydict({"value": values, "__key": keys})
    job = _planned(cluster, "writer", txnAppId="a", txnVersion="1").job
    for sent in (0, 1, 17, 17, 39, 40):
        attempt = ClusterTaskWriter(job, 3)
        attempt.add(rows.slice(0, sent))
        attempt.abort()  # what is on its way may be stored, or not
    slow = ClusterTaskWriter(job, 3)
    slow.add(rows.slice(0, 20))
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


def _one_task(cluster: ServedCluster, values: list[bytes], **columns: Any) -> None:
    """One attempt of a Spark partition whose rows are published once."""
    options = {"txnAppId": "a", "txnVersion": "1", "maxMessageSize": "10m"}
    job = _planned(cluster, "writer", **options).job
    with ClusterTaskWriter(job, 0) as attempt:
        attempt.add(pa.RecordBatch.from_pydict({"value": values, **columns}))
        assert attempt.send_rest() == len(values)


def test_other_rows_under_a_version_are_refused(cluster: ServedCluster) -> None:
    """They were taken for stored, and were nowhere."""
    cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    _one_task(cluster, [b"a", b"b", b"c"])
    for values, row in (([b"a", b"x", b"c"], 2), ([b"b", b"a", b"c"], 2), ([b"x"] * 4, 2)):
        with pytest.raises(errors.NotAllowedError) as raised:
            _one_task(cluster, values)
        assert raised.value.detail.startswith(f"row {row} of Spark partition 0: other rows are")
    keyed = {"__key": ["k", None, None]}
    with pytest.raises(errors.NotAllowedError, match="other rows are stored"):
        _one_task(cluster, [b"a", b"b", b"c"], **keyed)
    with pytest.raises(errors.NotAllowedError, match=r"has 2 rows for \S*t, and 3 are stored"):
        _one_task(cluster, [b"a", b"b"])
    _one_task(cluster, [b"a", b"b", b"c"])
    assert cluster.contents("t") == [b"a", b"b", b"c"]


def test_rows_go_on_behind_those_of_an_attempt_that_died_whatever_they_are(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmed_producer, "ROWS_MAX", 2)
    cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    columns = {
        "value": pa.array([b"a", None, b"", b"d", b"e"], pa.binary()),
        "__key": pa.array(["k", None, "l", "k", "k"]),
        "__orderingKey": pa.array([None, "o", None, None, None]),
        "__eventTime": pa.array([1, None, 2, 3, 4], pa.int64()),
        "__messageProperties": pa.array(
            [[("p", "1"), ("q", "2")], None, [], [("p", "")], None], pa.map_("string", "string")
        ),
    }
    rows = pa.RecordBatch.from_pydict(columns)
    for sent in (3, 5, 5):
        options = {"txnAppId": "a", "txnVersion": "1", "nullValues": "allow"}
        attempt = ClusterTaskWriter(_planned(cluster, "writer", **options).job, 0)
        attempt.add(rows.slice(0, sent))
        if sent == 5:
            attempt.send_rest()
        else:
            attempt.abort()
    assert [row["value"] for row in _Frame(cluster, "t").rows()] == [b"a", None, b"", b"d", b"e"]


def test_more_rows_than_a_sequence_id_counts_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmed_producer, "_ROW_MAX", 2)
    sent, details = confirmed_producer.SentRows(7), {"properties": None, "partition_key": None}
    ids = [sent.next_id(b"", details) for _ in range(2)]
    assert [each >> 32 for each in ids] == [7, 7] and ids[0] < ids[1]
    with pytest.raises(ValueError, match="has at most 2 rows for a topic partition"):
        sent.next_id(b"", details)


def test_a_row_that_brokers_do_not_take_fails_every_attempt(cluster: ServedCluster) -> None:
    """The rows behind it were stored, and the next attempt took it for stored, too: it was lost."""
    cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    values = [b"a", b"b" * 6_000_000, b"c", b"d"]
    for _ in range(3):
        with pytest.raises(errors.MessageTooBig) as raised:
            _one_task(cluster, values)
        assert raised.value.detail.startswith("row 1 of Spark partition 0: ")
        assert cluster.contents("t") == [b"a"]
    properties = [None, [("p", "x" * 6_000_000)], None, None]
    kind = pa.map_(pa.string(), pa.string())
    with pytest.raises(errors.MessageTooBig) as raised:
        _one_task(cluster, [b"a", b"b", b"c", b"d"], __messageProperties=pa.array(properties, kind))
    assert raised.value.detail.startswith("row 1 of Spark partition 0: ")
    assert cluster.contents("t") == [b"a"]
    _one_task(cluster, [b"a", b"b", b"c", b"d"])
    assert cluster.contents("t") == [b"a", b"b", b"c", b"d"]


@pytest.mark.parametrize("rows_max", [1, 4, 1000])
def test_a_message_that_fails_alone_leaves_no_hole(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch, rows_max: int
) -> None:
    """The client stores what is behind a message that fails: the next attempt took the row for
    stored, too."""
    cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    monkeypatch.setattr(confirmed_producer, "ROWS_MAX", rows_max)
    real = ClusterProducer.send_async
    failures = 2

    def send_async(producer: Any, content: Any, callback: Any, **more: Any) -> None:
        nonlocal failures
        if content == b"5" and failures:
            failures -= 1
            if callback is None:
                producer._untold.append(errors.ChecksumError(detail="damaged on its way"))
            else:
                callback(Result.ChecksumError, None)
            return
        real(producer, content, callback, **more)

    monkeypatch.setattr(ClusterProducer, "send_async", send_async)
    for _ in range(2):
        with pytest.raises(errors.ChecksumError):
            _one_task(cluster, _numbers(*range(10)))
        assert cluster.contents("t") == _numbers(*range(5 // rows_max * rows_max))
    _one_task(cluster, _numbers(*range(10)))
    assert cluster.contents("t") == _numbers(*range(10))


def test_a_part_of_a_batch_is_never_sent(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    real = ClusterProducer.send_async

    def send_async(producer: Any, content: Any, *more: Any, **details: Any) -> None:
        if content == b"5":
            raise KeyboardInterrupt
        real(producer, content, *more, **details)

    with monkeypatch.context() as patch:
        patch.setattr(ClusterProducer, "send_async", send_async)
        with pytest.raises(KeyboardInterrupt):
            _one_task(cluster, _numbers(*range(10)))
    assert cluster.contents("t") == []
    _one_task(cluster, _numbers(*range(10)))
    assert cluster.contents("t") == _numbers(*range(10))


def test_delayed_rows_and_batches_that_brokers_do_not_take_are_sent_one_by_one(
    cluster: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confirmed_producer, "BYTES_MAX", 9 << 20)
    cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    values = [b"%d" % number * 3_000_000 for number in range(4)]
    for _ in range(2):
        _one_task(cluster, values[:2])
    assert cluster.contents("t") == values[:2]
    for _ in range(2):  # a row of the batch is stored, and the others would fit
        _one_task(cluster, [*values[:3], b"3"])
    assert cluster.contents("t") == [*values[:3], b"3"]
    cluster.admin.topics.create_non_partitioned_topic("delayed")
    cluster.deduplicate("delayed")
    times = pa.array([None, 1_000, None, None, 2_000], pa.int64())
    for _ in range(2):
        rows = pa.RecordBatch.from_pydict({"value": list("abcde"), "__deliverAt": times})
        schema = StructType([*_strings("value"), StructField("__deliverAt", LongType())])
        source = _source(cluster, "delayed", txnAppId="a", txnVersion="1")
        source.writer(schema, False).write(iter([rows]))
    places = _Frame(cluster, "delayed", columns="value, __entryId").rows()
    assert [(row["value"], row["__entryId"]) for row in places] == [
        (b"a", 0), (b"b", 1), (b"c", 2), (b"d", 2), (b"e", 3)
    ]  # fmt: skip


def test_a_flush_returns_behind_the_callbacks_of_what_was_sent(cluster: ServedCluster) -> None:
    """The official client forgets a message before its thread calls the callback: a flush in
    between took rows for lost, and what failed for stored."""
    begun, may_end, ended = threading.Event(), threading.Event(), threading.Event()

    def slow(*_: object) -> None:
        begun.set()
        may_end.wait()
        ended.set()

    with pulsarx.Client(cluster.options["root"]) as client:
        producer = client.create_producer("t")
        producer.send_async(b"a", slow)
        assert begun.wait(30)
        end = threading.Timer(0.2, may_end.set)
        end.start()
        producer.flush()
        assert ended.is_set()
        end.join()


def test_batches_are_no_larger_than_messages_may_be(cluster: ServedCluster) -> None:
    cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    rows = pa.RecordBatch.from_pydict({"value": ["x" * 100] * 20, "__key": ["k"] * 20})
    _write(cluster, "t", rows, maxMessageSize="1000", txnAppId="a", txnVersion="1")
    places = _Frame(cluster, "t", columns="__entryId").rows()
    assert [row["__entryId"] for row in places] == [number // 6 for number in range(20)]


def test_entries_of_key_based_batches_have_one_key(cluster: ServedCluster) -> None:
    keys = ["a", "a", "b", "a", None, None]
    rows = pa.RecordBatch.from_pydict({"value": list("123456"), "__key": keys})
    once = {"txnAppId": "a", "txnVersion": "1"}
    for topic, options in {"some": {}, "confirmed": once}.items():
        cluster.admin.topics.create_non_partitioned_topic(topic)
        cluster.deduplicate(topic)
        _write(cluster, topic, rows, batchingType="KeyBased", **options)
        found = _Frame(cluster, topic, columns="value, __key, __entryId").rows()
        by_entry: dict[int, set[bytes | None]] = {}
        for row in found:
            by_entry.setdefault(row["__entryId"], set()).add(row["__key"])
        assert all(len(of_entry) == 1 for of_entry in by_entry.values()), topic
        assert sorted(row["value"] for row in found) == _numbers(*range(1, 7))
    assert [row["value"] for row in found] == _numbers(*range(1, 7))
    assert [row["__entryId"] for row in found] == [0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize("partitions", [0, 3])
@pytest.mark.parametrize("number", [0, 7, 8, 1000])
def test_a_version_before_the_last_is_refused_before_anything_is_sent(
    cluster: ServedCluster, partitions: int, number: int
) -> None:
    """Spark partitions that the version before had not, or without rows, wrote theirs; later, only
    those behind the eighth."""
    if partitions:
        cluster.admin.topics.create_partitioned_topic("t", partitions)
    else:
        cluster.admin.topics.create_non_partitioned_topic("t")
    cluster.deduplicate("t")
    rows = pa.RecordBatch.from_pydict({"value": ["1", "2"]})
    later = _planned(cluster, "writer", txnAppId="job", txnVersion="5").job
    with ClusterTaskWriter(later, number) as task:
        task.add(rows)
        task.send_rest()
    if number > 7:
        cluster.snapshot("t")
    with pytest.raises(errors.NotAllowedError, match="has written version 5 of the application"):
        _planned(cluster, "writer", txnAppId="job", txnVersion="4")
    for version in ("5", "6"):
        _planned(cluster, "writer", txnAppId="job", txnVersion=version)


def test_where_rows_name_topics_tasks_refuse_a_version_before_the_last(
    cluster: ServedCluster,
) -> None:
    for name in ("a", "b"):
        cluster.admin.topics.create_non_partitioned_topic(name)
        cluster.deduplicate(name)
    rows = pa.RecordBatch.from_pydict({"value": ["1", "2"], "__topic": ["a", "b"]})

    def write(version: str) -> None:
        source = PulsarxDataSource({**cluster.options, "txnAppId": "j", "txnVersion": version})
        source.writer(_strings("value", "__topic"), False).write(iter([rows]))

    write("5")
    with pytest.raises(errors.NotAllowedError, match="has written version 5 of the application"):
        write("4")
    assert [cluster.contents(name) for name in ("a", "b")] == [[b"1"], [b"2"]]
    # A Spark partition that version 5 had not.
    job = _planned(cluster, "writer", topic="a", txnAppId="j", txnVersion="5").job
    job.topic, job.epoch = None, 4
    cluster.snapshot("a")
    before = cluster.contents("a")
    with ClusterTaskWriter(job, 77) as other, pytest.raises(errors.NotAllowedError, match="j-0 "):
        other.add(rows)
        other.send_rest()
    assert cluster.contents("a") == before


def test_a_row_that_no_message_can_be_is_named(cluster: ServedCluster) -> None:
    cluster.admin.topics.create_non_partitioned_topic("t")
    rows = pa.RecordBatch.from_pydict({"value": ["1", None]})
    with pytest.raises(ValueError, match="row 1 of Spark partition 0: the value is null"):
        _write(cluster, "t", rows)
    _write(cluster, "t", rows, nullValues="allow")
    assert [row["value"] for row in _Frame(cluster, "t").rows()][-1] is None
    large = pa.RecordBatch.from_pydict({"value": ["12345"]})
    with pytest.raises(errors.MessageTooBig, match=r"row 0 of Spark partition 0: .* has 5 bytes"):
        _write(cluster, "t", large, maxMessageSize="4")
    keyed = pa.RecordBatch.from_pydict({"value": ["1", "2"], "__keyBytes": [None, b"k"]})
    with pytest.raises(errors.OperationNotSupported, match=r"row 1 of Spark .*sends keys of text"):
        _write(cluster, "t", keyed)


def test_ordering_keys_and_partitions_are_written(cluster: ServedCluster) -> None:
    cluster.admin.topics.create_partitioned_topic("t", 3)
    rows = pa.RecordBatch.from_pydict(
        {"value": ["1", "2"], "__orderingKey": ["x", None], "__partition": pa.array([2, 0], "i4")}
    )
    schema = StructType([*_strings("value", "__orderingKey"), StructField("__partition", _INT)])
    _source(cluster, "t").writer(schema, False).write(iter([rows]))
    found = _Frame(cluster, "t", columns="value, __orderingKey, __partition").rows()
    assert [tuple(row.values()) for row in found] == [(b"2", None, 0), (b"1", b"x", 2)]


# What cannot be -----------------------------------------------------------------------------------


def _planned(cluster: ServedCluster, kind: str, **options: str) -> Any:
    """What Spark has planned, in this process."""
    source = PulsarxDataSource({**cluster.options, "topic": "t", **options})
    schema: Any = source.schema() if kind == "reader" else _strings("value")
    return source.reader(schema) if kind == "reader" else source.writer(schema, False)


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("reader", {"adminUrl": " "}, "option adminUrl"),
        ("reader", {"adminUrl": "127.0.0.1:8080"}, "write http://host:port"),
        ("reader", {"leaseSeconds": "5"}, "leaseSeconds does not work on a cluster"),
        ("reader", {"maxRecordsPerPartition": "5"}, "use maxBytesPerPartition"),
        ("reader", {"filterPushdown": "true"}, "leave filters to Spark"),
        ("reader", {"where": "__partition = 0"}, "leave filters to Spark"),
        ("reader", {"sealedOnly": "true"}, "sealedOnly does not work"),
        ("reader", {"columns": "value, __sequenceId"}, "the official client does not tell it"),
        ("reader", {"topic": "nowhere"}, "nowhere is not in pulsar://"),
        ("reader", {"startingOffsets": '{"t": [999999999, 1]}'}, "behind the last message"),
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


def test_functions_of_folders_and_options_of_clusters_are_kept_apart() -> None:
    url = "pulsar://127.0.0.1:6650"
    with pytest.raises(errors.OperationNotSupported, match="the files of a folder"):
        pulsarx.spark.read_topic(None, "t", root=url)
    with pytest.raises(errors.OperationNotSupported, match="the files of a folder"):
        pulsarx.spark.plan_write(url, "t")
    with pytest.raises(Exception, match="option adminUrl is for a cluster"):
        PulsarxDataSource({"root": "/x", "topic": "t", "adminUrl": "http://h:1"}).schema()
    with pytest.raises(Exception, match="a cluster needs option adminUrl, too"):
        PulsarxDataSource({"root": url, "topic": "t"}).schema()
