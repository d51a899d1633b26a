"""write_topic, save_rdd and write_partitions: what tasks write, attached once, all or none."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from topic_contents import messages_of, numbers_by_key, partitions_of, staged, values_of

import pulsarx
from pulsarx.enumerations import CompressionType, HashingScheme
from pulsarx.spark import (
    abort_write,
    commit_write,
    message_accumulator,
    message_batches,
    plan_write,
    read_topic,
    save_rdd,
    write_partitions,
    write_topic,
)
from pulsarx.spark.commit_message import CommitMessage
from pulsarx.spark.write_commit import find_commit


@pytest.fixture
def topics(folder):
    """Makes the folder with a topic `plain` and one of three partitions, `keyed`."""
    with pulsarx.Client(folder) as client:
        client.admin.topics.create_non_partitioned_topic("plain")
        client.admin.topics.create_partitioned_topic("keyed", 3)


def frame_of(spark, count, partitions=4):
    """Numbered messages of seven keys, in order over the Spark partitions."""
    return spark.range(0, count, 1, partitions).selectExpr(
        "cast(id as string) as value",
        "concat('k', id % 7) as __key",
        "timestamp_millis(1700000000000 + id) as __eventTime",
        "map('number', cast(id as string)) as __messageProperties",
    )


def test_messages_arrive_whole_and_in_order(spark, folder, topics):
    result = write_topic(frame_of(spark, 5000), "plain", root=folder)
    assert (result.already, result.ledger_count, result.message_count) == (False, 4, 5000)
    found = messages_of(folder, "plain")
    assert [int(message.data()) for message in found] == list(range(5000))
    for number in (0, 1249, 1250, 4999):
        message = found[number]
        assert message.partition_key() == f"k{number % 7}"
        assert message.event_timestamp() == 1_700_000_000_000 + number
        assert message.properties() == {"number": str(number)}
    assert staged(folder) == []


@pytest.mark.parametrize("scheme", [HashingScheme.JavaStringHash, HashingScheme.Murmur3_32Hash])
def test_keys_go_where_producers_send_them(spark, folder, topics, scheme):
    """Each key in order, in the partition that a producer of this scheme chooses."""
    with pulsarx.Client(folder) as client:
        producer = client.create_producer("keyed", hashing_scheme=scheme)
        chosen = {f"k{n}": producer.send(b"0", partition_key=f"k{n}").partition() for n in range(7)}
    write_topic(
        frame_of(spark, 3000).where("value != '0'"),
        "keyed",
        root=folder,
        hashing_scheme=scheme,
        compression=CompressionType.LZ4,
    )
    for index, messages in enumerate(partitions_of(folder, "keyed", 3)):
        for key, found in numbers_by_key(messages).items():
            assert chosen[key] == index
            residue = int(key[1:])
            first = residue or 7
            assert found == [0, *range(first, 3000, 7)]


def test_rows_without_a_key_spread(spark, folder, topics):
    frame = spark.range(0, 9000, 1, 2).selectExpr("cast(cast(id as string) as binary) as value")
    write_topic(frame, "keyed", root=folder)
    counts = [len(messages) for messages in partitions_of(folder, "keyed", 3)]
    assert sum(counts) == 9000
    assert min(counts) >= 2000


def test_the_column_topic_chooses_the_topic(spark, folder, topics):
    frame = frame_of(spark, 600).selectExpr(
        "value", "__key", "if(cast(value as int) % 2 = 0, 'plain', 'keyed') as __topic"
    )
    write_topic(frame, root=folder)
    assert [int(value) for value in values_of(folder, "plain")] == list(range(0, 600, 2))
    odd = [int(m.data()) for messages in partitions_of(folder, "keyed", 3) for m in messages]
    assert sorted(odd) == list(range(1, 600, 2))


def test_a_topic_is_copied_as_it_was_read(spark, folder, publish, topics):
    publish("numbers", 700)
    write_topic(read_topic(spark, "numbers", root=folder), "plain", root=folder)
    one, other = messages_of(folder, "numbers"), messages_of(folder, "plain")
    assert len(one) == 700
    for left, right in zip(one, other, strict=True):
        assert (left.data(), left.partition_key()) == (right.data(), right.partition_key())
        assert left.properties() == right.properties()
        assert left.event_timestamp() == right.event_timestamp()


def test_a_failing_task_is_tried_again_and_writes_once(spark, folder, topics):
    """Also when it fails after it has sealed its file."""

    def fail_late(parts):
        from pyspark import TaskContext

        found = list(write_partitions(parts, job))
        if TaskContext.get().attemptNumber() < 2:
            raise RuntimeError("planted")
        return iter(found)

    def fail_between(batches):
        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            if number and TaskContext.get().attemptNumber() < 2:
                raise RuntimeError("planted")
            yield batch.slice(0, 100)
            yield batch.slice(100)

    job = plan_write(folder, "plain")
    rdd = spark.sparkContext.parallelize([b"%d" % n for n in range(100)], 2)
    messages = rdd.mapPartitions(fail_late).collect()
    assert len(staged(folder)) == 6  # of three attempts each
    commit_write(job, messages)
    frame = frame_of(spark, 1000, 2).mapInArrow(fail_between, frame_of(spark, 1).schema)
    write_topic(frame, "plain", root=folder)
    assert [int(value) for value in values_of(folder, "plain")] == [*range(100), *range(1000)]
    assert staged(folder) == []


def test_a_killed_worker_is_replaced_and_writes_once(spark, folder, topics):
    """Killed with half a file written, and with a whole one that nobody was told of."""

    def die_first(parts):
        from pyspark import TaskContext

        context = TaskContext.get()
        found = []
        for number, part in enumerate(parts):
            found.append(part)
            if number == 20 and context.partitionId() == 0 and context.attemptNumber() == 0:
                list(write_partitions(found, job))
                os.kill(os.getpid(), signal.SIGKILL)
        return write_partitions(die_between(found, context), job)

    def die_between(rows, context):
        for number, row in enumerate(rows):
            if number == 20 and context.partitionId() == 1 and context.attemptNumber() == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            yield pa.RecordBatch.from_pydict({"value": [row]})

    job = plan_write(folder, "plain")
    rdd = spark.sparkContext.parallelize([b"%d" % n for n in range(100)], 2)
    commit_write(job, rdd.mapPartitions(die_first).collect())
    assert [int(value) for value in values_of(folder, "plain")] == list(range(100))
    assert staged(folder) == []


def test_two_jobs_at_once_write_one_topic(spark, folder, topics):
    """Each of them whole and in order, whichever is first."""

    def write(first):
        frame = spark.range(first, first + 300, 1, 2).selectExpr("cast(id as string) as value")
        return write_topic(frame, "plain", root=folder)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(write, (0, 300)))
    assert [result.message_count for result in results] == [300, 300]
    found = [int(value) for value in values_of(folder, "plain")]
    assert found in ([*range(600)], [*range(300, 600), *range(300)])


def test_the_same_write_again_is_attached_once(spark, folder, topics):
    frame = frame_of(spark, 500, 2)
    named = {"root": folder, "application": "nightly", "version": 7}
    first = write_topic(frame, "plain", **named)
    again = write_topic(frame, "plain", **named)
    assert (first.already, again.already) == (False, True)
    assert again == first
    # A driver that died between writing and knowing that it was attached.
    job = plan_write(folder, "plain", application="nightly", version=7)
    found = frame.repartition(3).mapInArrow(
        lambda batches: message_batches(write_partitions(batches, job)), "message string"
    )
    assert commit_write(job, [CommitMessage.of_text(row[0]) for row in found.collect()]).already
    with pytest.raises(pulsarx.NotAllowedError, match="not the same"):
        save_rdd(spark.sparkContext.parallelize([b"another"], 1), "plain", **named)
    assert len(values_of(folder, "plain")) == 500
    write_topic(frame, "plain", **{**named, "version": 8})
    assert len(values_of(folder, "plain")) == 1000
    assert staged(folder) == []


def test_a_job_that_fails_for_good_leaves_nothing(spark, folder, topics):
    def fail_one(parts):
        from pyspark import TaskContext

        if TaskContext.get().partitionId() == 1:
            raise RuntimeError("planted")
        return parts

    rdd = spark.sparkContext.parallelize([b"%d" % n for n in range(100)], 2)
    with pytest.raises(Exception, match="planted"):
        save_rdd(rdd.mapPartitions(fail_one), "plain", root=folder)
    assert values_of(folder, "plain") == []
    assert staged(folder) == []


def test_a_row_of_an_rdd_is_named_by_its_spark_partition(spark, folder, topics):
    rdd = spark.sparkContext.parallelize([b"a", b"b", b"c", {"value": b"d", "zz": 1}], 2)
    with pytest.raises(Exception, match="row 1 of Spark partition 1 has 'zz', which is no column"):
        save_rdd(rdd, "plain", root=folder)
    assert values_of(folder, "plain") == []


def test_small_ledgers_are_merged_after_every_hundredth_version(folder, topics):
    """Streams that write in foreachBatch left a file for each task of each batch for ever."""

    def write(version, **options):
        job = plan_write(folder, "plain", application="a", version=version, **options)
        message = next(write_partitions([b"%d" % version], job))
        commit_write(job, [message])
        return len(list((folder / "ledgers").rglob("*.ledger")))

    assert [write(version) for version in range(97, 101)] == [1, 2, 1, 2]
    assert [write(each, merge_small_ledgers=False) for each in (199, 299)] == [3, 4]
    assert write(399) == 2  # what was merged is not merged again
    expected = [*range(97, 101), 199, 299, 399]
    assert [int(value) for value in values_of(folder, "plain")] == expected
    # A write by itself has no versions.
    for _ in range(2):
        job = plan_write(folder, "plain")
        commit_write(job, write_partitions([b"alone"], job))
    assert len(list((folder / "ledgers").rglob("*.ledger"))) == 4


def test_aborting_after_the_commit_takes_nothing_away(folder, topics):
    job = plan_write(folder, "plain")
    commit_write(job, write_partitions([b"one", b"two"], job))
    abort_write(job)
    assert values_of(folder, "plain") == [b"one", b"two"]
    done = find_commit(job)
    assert done is not None
    assert done.message_count == 2


def test_files_come_in_the_order_of_spark_partitions(folder, topics):
    job = plan_write(folder, "plain", max_ledger_bytes=1)

    def batch(number):
        return pa.RecordBatch.from_pydict({"value": [b"%d" % number] * 1500})

    messages = []
    for partition_id in (2, 0, 1):  # as tasks happen to end
        numbers = (2 * partition_id, 2 * partition_id + 1)
        message = next(write_partitions(map(batch, numbers), job))
        message.partition_id = partition_id
        assert len(message.files) == 2
        messages.append(CommitMessage.of_text(message.text()))
    commit_write(job, messages)
    values = [int(value) for value in values_of(folder, "plain")]
    assert values == [number for number in range(6) for _ in range(1500)]


def test_an_rdd_of_rows_is_saved(spark, folder, topics):
    from pyspark.sql import Row

    rows = [
        b"bytes",
        "text",
        ("key", b"pair"),
        {"value": b"dict", "__eventTime": 1_700_000_000_123, "__messageProperties": {"a": "b"}},
        Row(value=b"row", __key="k"),
    ]
    result = save_rdd(spark.sparkContext.parallelize(rows, 1), "plain", root=folder)
    assert result.message_count == 5
    found = messages_of(folder, "plain")
    assert [message.data() for message in found] == [b"bytes", b"text", b"pair", b"dict", b"row"]
    assert [message.partition_key() for message in found] == ["", "", "key", "", "k"]
    assert found[3].event_timestamp() == 1_700_000_000_123
    assert found[3].properties() == {"a": "b"}


def test_write_partitions_in_foreach_and_in_map_in_arrow(spark, folder, topics):
    job = plan_write(folder, "plain")
    messages = message_accumulator(spark)

    def write_each(rows):
        return write_partitions(rows, job, messages=messages)

    spark.sparkContext.parallelize([b"%d" % n for n in range(100)], 2).foreachPartition(write_each)
    commit_write(job, messages.value)
    second = plan_write(folder, "plain")

    def write_batches(batches):
        return message_batches(write_partitions(batches, second))

    texts = frame_of(spark, 100, 2).mapInArrow(write_batches, "message string").collect()
    commit_write(second, [CommitMessage.of_text(row[0]) for row in texts])
    assert [int(value) for value in values_of(folder, "plain")] == [*range(100), *range(100)]


def test_a_live_owner_sees_the_commit_and_goes_on(spark, folder):
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("plain")
        consumer = client.subscribe("plain", "s")
        producer.send(b"before")
        write_topic(frame_of(spark, 200, 2), "plain", root=folder)
        producer.send(b"after")
        found = [consumer.receive(timeout_millis=60_000) for _ in range(202)]
        values = [message.data() for message in found]
        assert values[0] == b"before"
        assert [int(value) for value in values[1:-1]] == list(range(200))
        assert values[-1] == b"after"


def test_an_executor_without_the_folder_says_host_and_path(spark, folder, topics):
    job = plan_write(folder, "plain")
    os.rename(folder, folder.with_name("elsewhere"))
    rdd = spark.sparkContext.parallelize([b"one"], 1)
    with pytest.raises(Exception, match="FolderError") as caught:
        rdd.mapPartitions(lambda rows: write_partitions(rows, job)).collect()
    text = str(caught.value)
    assert f"write {job.staging} on {os.uname().nodename}: there is no such folder" in text
    assert "Mount the same path on the driver and every executor" in text
    os.rename(folder.with_name("elsewhere"), folder)
    assert values_of(folder, "plain") == []


def test_bad_input_is_refused_before_anything_runs(spark, folder, topics):
    frame = frame_of(spark, 10)
    with pytest.raises(ValueError, match="has a column 'carrier'"):
        write_topic(frame.selectExpr("value", "'AA' as carrier"), "plain", root=folder)
    with pytest.raises(ValueError, match="no column 'value'"):
        write_topic(frame.select("__key"), "plain", root=folder)
    with pytest.raises(ValueError, match="no topic to write to"):
        write_topic(frame, root=folder)
    with pytest.raises(ValueError, match="column value is int; it must be binary or string"):
        write_topic(frame.selectExpr("cast(value as int) as value"), "plain", root=folder)
    with pytest.raises(pulsarx.TopicNotFound, match=r"did you mean .*plain.*createTopic"):
        write_topic(frame, "plan", root=folder)
    with pytest.raises(ValueError, match="belong together"):
        write_topic(frame, "plain", root=folder, application="a")
    with pytest.raises(pulsarx.errors.FolderError):
        write_topic(frame, "plain", root=folder.with_name("nothing"))
    with pytest.raises(Exception, match="no value"):
        write_topic(frame.selectExpr("cast(null as string) as value"), "plain", root=folder)
    assert values_of(folder, "plain") == []
    assert staged(folder) == []


def test_many_small_ledgers_are_remarked_on(spark, folder, topics):
    with pytest.warns(UserWarning, match=r"18 ledgers of \d+ bytes on average"):
        save_rdd(spark.sparkContext.parallelize([b"x"] * 18, 18), "plain", root=folder)
