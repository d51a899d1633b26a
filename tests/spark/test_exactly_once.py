"""What a job writes is in its topics once, wherever it dies and however often it is repeated.
Counts, contents and the order of each key are checked."""

from __future__ import annotations

import itertools
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from driver_process import program
from dying_source import BEFORE, BEHIND, IN_TASK, DyingSource
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import BinaryType, StructField, StructType
from spark_steps import (
    catalogue_number,
    ledger_count,
    make_topics,
    messages,
    read,
    run_stream,
    staged,
    values,
    write,
)

from pulsarx.spark.data_source import PulsarxDataSource

VALUES = StructType([StructField("value", BinaryType(), True)])
KEYS = 5


def in_two_sizes(points: tuple[str, ...], standard: set[str]) -> list[Any]:
    """Points of a death: some are tried before anything lands, the others in the long run."""
    long = [pytest.mark.long]
    return [pytest.param(each, marks=[] if each in standard else long) for each in points]


def numbered(spark: Any, *bounds: int) -> Any:
    """One Spark partition of values and keys, in order."""
    frame = spark.range(*bounds, numPartitions=1)
    return frame.selectExpr("CAST(id AS string) AS value", f"CAST(id % {KEYS} AS string) AS __key")


def check_once(folder: Path, topic: str, count: int, partitions: int = 0) -> None:
    """0 .. count - 1 once each, ascending for each key."""
    found = messages(folder, topic, partitions)
    assert sorted(int(value) for _, value in found) == list(range(count))
    for key in {key for key, _ in found}:
        mine = [int(value) for each, value in found if each == key]
        assert mine == sorted(mine), f"key {key} is out of order"


@pytest.fixture
def source(folder: Path) -> Path:
    """The topic `in` of 60 numbered messages with keys, and the sink `out` of two partitions."""
    make_topics(folder, "in")
    make_topics(folder, "out", partitions=2)
    publish(folder, 0, 60)
    return folder


def publish(folder: Path, *bounds: int) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("in", batching_enabled=True, batching_max_messages=7)
        for number in range(*bounds):
            producer.send_async(b"%d" % number, None, partition_key=str(number % KEYS))
        producer.close()


# Batches ------------------------------------------------------------------------------------------


def stage(folder: Path, *rows: bytes, **options: str) -> tuple[Any, list[Any]]:
    """A batch writer and the message of one task, without a session."""
    import pyarrow as pa

    made = PulsarxDataSource({"root": str(folder), "topic": "t", **options})
    writer = made.writer(VALUES, False)
    batch = pa.record_batch([pa.array(rows, pa.binary())], ["value"])
    return writer, [writer.write(iter([batch]))]


def test_committing_twice_attaches_once_and_an_abort_behind_it_is_harmless(folder: Path) -> None:
    make_topics(folder, "t")
    writer, told = stage(folder, b"0", b"1")
    writer.commit(told)
    writer.commit(told)
    writer.abort(told)
    assert values(folder, "t") == [b"0", b"1"]
    assert ledger_count(folder, "t") == 1


def test_what_is_aborted_is_gone_and_messages_of_failed_tasks_may_be_missing(folder: Path) -> None:
    make_topics(folder, "t")
    writer, told = stage(folder, b"0")
    assert staged(folder)
    writer.abort([*told, None])
    writer.abort([None])
    assert values(folder, "t") == [] and not staged(folder)


@pytest.mark.filterwarnings("ignore:version 1 of 'job")
def test_a_version_of_an_application_is_written_once(folder: Path) -> None:
    make_topics(folder, "t")
    for version in ("1", "1", "2", "1", "2"):
        ignored = {"txnConflict": "ignore"} if version == "1" else {}
        writer, told = stage(
            folder, version.encode(), txnAppId="job", txnVersion=version, **ignored
        )
        writer.commit(told)
    with pytest.raises(pulsarx.NotAllowedError, match="version 2 was before"):
        stage(folder, b"1", txnAppId="job", txnVersion="1")
    writer, told = stage(folder, b"another", txnAppId="job", txnVersion="2")
    with pytest.raises(pulsarx.NotAllowedError, match="not the same"):
        writer.commit(told)
    # Both planned before either was committed.
    first, second = (stage(folder, b"3", txnAppId="job", txnVersion="3") for _ in range(2))
    for writer, told in (first, second):
        writer.commit(told)
    assert values(folder, "t") == [b"1", b"2", b"3"]
    assert not staged(folder)


def test_a_task_takes_rows_to_their_end_that_it_does_not_write_again(folder: Path) -> None:
    """It took none: in foreachBatch a query puts the state of a task away behind its last row, and
    Spark fails a query whose state is missing."""
    make_topics(folder, "t")
    named = {"txnAppId": "job", "txnVersion": "1", "txnConflict": "ignore"}
    writer, told = stage(folder, b"1", **named)
    writer.commit(told)
    made = PulsarxDataSource({"root": str(folder), "topic": "t", **named})
    rows = iter([object(), object()])
    told = [made.writer(VALUES, False).write(rows)]
    assert next(rows, None) is None
    writer.commit(told)
    assert values(folder, "t") == [b"1"] and not staged(folder)


def test_a_task_that_is_tried_again_writes_its_rows_once(spark: Any, folder: Path) -> None:
    make_topics(folder, "t", partitions=2)

    def fail_at_first(batches: Any) -> Any:
        from pyspark import TaskContext

        context = TaskContext.get()
        yield from batches
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            raise RuntimeError("the first attempt of this task")

    frame = spark.range(0, 400, numPartitions=2).selectExpr(
        "CAST(id AS string) AS value", f"CAST(id % {KEYS} AS string) AS __key"
    )
    frame = frame.mapInArrow(fail_at_first, frame.schema)
    write(frame, folder, "t", maxLedgerBytes="1k")
    check_once(folder, "t", 400, 2)
    assert not staged(folder)


def test_two_jobs_at_once_are_both_whole(spark: Any, folder: Path) -> None:
    make_topics(folder, "t", partitions=2)
    failures: list[BaseException] = []

    def job(*bounds: int) -> None:
        try:
            # Spark finds Python sources by the active session, which a new thread has not.
            spark._jvm.org.apache.spark.sql.SparkSession.setActiveSession(spark._jsparkSession)
            write(numbered(spark, *bounds), folder, "t")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=job, args=(n * 100, n * 100 + 100)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, str(failures[0].__cause__ or failures[0])
    found = messages(folder, "t", 2)
    assert sorted(int(value) for _, value in found) == list(range(200))
    for job_number in range(2):
        for key in {key for key, _ in found}:
            mine = [int(value) for each, value in found if each == key]
            mine = [number for number in mine if number // 100 == job_number]
            assert mine == sorted(mine)


def test_a_living_owner_produces_and_consumes_meanwhile(spark: Any, folder: Path) -> None:
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("t")
        consumer = client.subscribe("t", "s")
        over = threading.Event()
        sent = 0

        def produce() -> None:
            nonlocal sent
            while not over.is_set():
                producer.send(b"own %d" % sent)
                sent += 1
                over.wait(0.01)

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            for start in (0, 100):
                write(numbered(spark, start, start + 100), folder, "t")
        finally:
            over.set()
            thread.join()
        # Before they are acknowledged: what everybody has acknowledged is trimmed.
        assert read(spark, folder, "t", columns="value").count() == sent + 200
        found = []
        while len(found) < sent + 200:
            message = consumer.receive(60_000)
            consumer.acknowledge(message)
            found.append(message.data())
        own = [value for value in found if value.startswith(b"own")]
        assert own == [b"own %d" % number for number in range(sent)]
        assert [int(v) for v in found if not v.startswith(b"own")] == list(range(200))


# Streams ------------------------------------------------------------------------------------------


def test_a_stream_that_is_started_again_goes_on(spark: Any, source: Path, tmp_path: Path) -> None:
    run_stream(spark, source, "in", "out", tmp_path / "c")
    check_once(source, "out", 60, 2)
    publish(source, 60, 90)
    run_stream(spark, source, "in", "out", tmp_path / "c")
    check_once(source, "out", 90, 2)
    assert not staged(source)


def test_a_batch_whose_note_is_lost_is_not_attached_again(
    spark: Any, source: Path, tmp_path: Path
) -> None:
    run_stream(spark, source, "in", "out", tmp_path / "c", maxMessagesPerTrigger="40")
    commits = tmp_path / "c" / "commits"
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    assert newest == 1
    for path in (commits / str(newest), commits / f".{newest}.crc"):
        path.unlink(missing_ok=True)
    before = ledger_count(source, "out-partition-0")
    publish(source, 60, 70)
    run_stream(spark, source, "in", "out", tmp_path / "c", maxMessagesPerTrigger="40")
    check_once(source, "out", 70, 2)
    assert ledger_count(source, "out-partition-0") <= before + 1
    assert not staged(source)


def test_a_copy_of_a_checkpoint_goes_on_into_another_topic(
    spark: Any, source: Path, tmp_path: Path
) -> None:
    """What it read then counted as written, for the batches have the numbers of the first query's;
    none of it was in either topic. Back in its own topic a copy repeats nothing."""
    make_topics(source, "other", partitions=2)
    run_stream(spark, source, "in", "out", tmp_path / "c", maxMessagesPerTrigger="40")
    for name in ("other", "out"):
        shutil.copytree(tmp_path / "c", tmp_path / name)
        for path in (tmp_path / name / "commits").glob("*1*"):
            path.unlink()  # the last batch is repeated
    run_stream(spark, source, "in", "out", tmp_path / "out", maxMessagesPerTrigger="40")
    check_once(source, "out", 60, 2)
    publish(source, 60, 90)
    run_stream(spark, source, "in", "out", tmp_path / "c", maxMessagesPerTrigger="40")
    check_once(source, "out", 90, 2)
    run_stream(spark, source, "in", "other", tmp_path / "other", maxMessagesPerTrigger="40")
    found = sorted(int(value) for value in values(source, "other", 2))
    first = found[0]
    assert 30 <= first <= 40  # entries are read as a whole
    assert found == list(range(first, 90))
    assert not staged(source)


def test_a_checkpoint_that_was_put_back_loses_and_doubles_nothing(
    spark: Any, source: Path, tmp_path: Path
) -> None:
    """One batch behind it is completed where it takes up the same, and else refused."""

    def run(name: str) -> None:
        run_stream(spark, source, "in", "out", tmp_path / name, maxMessagesPerTrigger="40")

    run("c")
    for name in ("same", "other"):
        shutil.copytree(tmp_path / "c", tmp_path / name)
    publish(source, 60, 80)
    run("c")
    run("same")
    check_once(source, "out", 80, 2)
    publish(source, 80, 90)
    with pytest.raises(StreamingQueryException, match="put back from an older copy"):
        run("other")
    check_once(source, "out", 80, 2)
    run("same")
    run("c")  # the same batch as the one before, of the other copy
    check_once(source, "out", 90, 2)
    assert not staged(source)


def test_a_batch_is_recognised_under_a_later_version_of_its_topics_schema(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """Killed before its commit was noted, a stream could not go on for ever, if a producer brought
    a field more meanwhile: the version made other bytes of the same rows."""
    from pulsarx.schema import AvroSchema, Long, Record, String

    def register(**fields: Any) -> None:
        kind = type("Number", (Record,), fields)
        with pulsarx.Client(folder, durability="os") as client:
            client.admin.schemas.create_schema("out", AvroSchema(kind).schema_info())

    def run() -> None:
        source = spark.readStream.schema("n bigint").format("pulsarx")
        given = {"root": str(folder), "topic": "in", "startingOffsets": "earliest"}
        frame = source.options(**given, valueFormat="json").load()
        sink = frame.writeStream.format("pulsarx").options(root=str(folder), topic="out")
        sink = sink.options(valueFormat="schema", checkpointLocation=str(tmp_path / "c"))
        assert sink.trigger(availableNow=True).start().awaitTermination(200)

    def publish(*numbers: int) -> None:
        with pulsarx.Client(folder, durability="os") as client:
            client.create_producer("in").send_many([b'{"n": %d}' % each for each in numbers])

    make_topics(folder, "in", "out")
    register(n=Long())
    publish(1, 2, 3)
    run()
    for path in (tmp_path / "c" / "commits").iterdir():
        path.unlink()
    register(n=Long(), note=String(required_default=True))
    publish(4)
    run()
    with pulsarx.Client(folder, read_only=True) as client:
        assert client.read_table("out")["n"].to_pylist() == [1, 2, 3, 4]


def test_a_batch_without_rows_leaves_nothing(spark: Any, folder: Path, tmp_path: Path) -> None:
    """And one that Spark has noted the end of only is begun again where it began."""
    make_topics(folder, "in", "out")
    publish(folder, 0, 5)
    before = catalogue_number(folder)
    run_stream(spark, folder, "in", "out", tmp_path / "c", startingOffsets="latest")
    assert not list(folder.glob("staging/*")) and catalogue_number(folder) == before
    for path in (tmp_path / "c" / "commits").iterdir():
        path.unlink()
    publish(folder, 5, 9)
    run_stream(spark, folder, "in", "out", tmp_path / "c", startingOffsets="latest")
    assert values(folder, "out") == [b"5", b"6", b"7", b"8"]


# Several tasks a batch, whose order is that of the messages.
SMALL = {"maxMessagesPerTrigger": "40", "maxRecordsPerPartition": "10"}


SINK_POINTS = IN_TASK + BEFORE + BEHIND


@pytest.mark.parametrize(
    "point", in_two_sizes(SINK_POINTS, {"worker", "linked", "between", "raise"})
)
def test_a_sink_may_die_anywhere(spark: Any, source: Path, tmp_path: Path, point: str) -> None:
    spark.dataSource.register(DyingSource)
    dying = {"dieAt": point, "marker": str(tmp_path / "died")}

    def run() -> None:
        run_stream(
            spark, source, "in", "out", tmp_path / "c",
            sink_format="pulsarx-dying", sink_options=dying, **SMALL,
        )  # fmt: skip

    if point in IN_TASK:
        run()  # the task is tried again within the query
    else:
        with pytest.raises(StreamingQueryException):
            run()
        found = [int(value) for value in values(source, "out", 2)]
        assert sorted(found) == (list(range(35)) if point in BEHIND else [])
        assert (tmp_path / "died-aborted").exists()  # also behind a commit
        run()
    assert (tmp_path / "died").exists()
    check_once(source, "out", 60, 2)


@pytest.mark.parametrize("point", in_two_sizes(("before", "after", "raise"), {"after"}))
def test_a_sink_may_die_beside_a_living_owner(
    spark: Any, source: Path, tmp_path: Path, point: str
) -> None:
    """The owner publishes what the stream reads, and consumes what it writes."""
    spark.dataSource.register(DyingSource)
    dying = {"dieAt": point, "marker": str(tmp_path / "died")}
    with pulsarx.Client(source, durability="os") as client:
        consumer = client.subscribe("out", "s")
        producer = client.create_producer("in", batching_enabled=True, batching_max_messages=7)
        over, numbers = threading.Event(), itertools.count(60)

        def produce() -> None:
            while not over.is_set() and (number := next(numbers)) < 200:
                producer.send(b"%d" % number, partition_key=str(number % KEYS))
                over.wait(0.01)

        def run() -> None:
            run_stream(
                spark, source, "in", "out", tmp_path / "c",
                sink_format="pulsarx-dying", sink_options=dying, **SMALL,
            )  # fmt: skip

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            with pytest.raises(StreamingQueryException):
                run()
            run()
        finally:
            over.set()
            thread.join()
        producer.flush()
        run()  # and the rest
        count = min(next(numbers), 200)
        found: dict[str | None, list[int]] = {}
        for _ in range(count):
            message = consumer.receive(60_000)
            found.setdefault(message.partition_key(), []).append(int(message.data()))
        with pytest.raises(pulsarx.Timeout):
            consumer.receive(0)
        for key, mine in found.items():
            assert mine == list(range(int(str(key)), count, KEYS))
        assert sum(map(len, found.values())) == count


DRIVER = """
import sys
from pathlib import Path
from dying_source import DyingSource
from spark_steps import run_stream, small_session

folder, checkpoint, marker = map(Path, sys.argv[1:4])
spark = small_session("killed", "local[1]")
spark.dataSource.register(DyingSource)
run_stream(
    spark, folder, "in", "out", checkpoint, sink_format="pulsarx-dying",
    sink_options={"dieAt": sys.argv[4], "wait": "yes", "marker": str(marker)},
    maxMessagesPerTrigger="40", maxRecordsPerPartition="10",
)
"""


# Before anything lands a driver is killed by `test_other_drivers`.
@pytest.mark.parametrize("point", in_two_sizes(("linked", "between", "after"), set()))
def test_a_driver_may_be_killed_anywhere(
    spark: Any, source: Path, tmp_path: Path, point: str
) -> None:
    """Driver, its Java and all workers at once, with nothing noted by Spark."""
    marker = tmp_path / "there"
    with program("-c", DRIVER, source, tmp_path / "c", marker, point) as driver:
        driver.wait_for(marker)
    found = [int(value) for value in values(source, "out", 2)]
    assert sorted(found) == (list(range(35)) if point in BEHIND else [])
    assert not list((tmp_path / "c" / "commits").glob("0"))
    run_stream(spark, source, "in", "out", tmp_path / "c", **SMALL)
    check_once(source, "out", 60, 2)
