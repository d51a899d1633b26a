"""WriteTransaction: writes to several topics that are there together, once, or none of them."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from spark_steps import make_topics
from topic_contents import messages_of, staged, values_of

import pulsarx
from pulsarx import errors
from pulsarx._pycore.ground import file_system

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from pulsarx.spark import WriteTransaction, plan_write, write_partitions
from pulsarx.spark.write_commit import StagedWrite, commit_writes
from pulsarx.spark.write_job import WriteJob, application_for

RECORD = json.dumps(
    {"type": "record", "name": "Sale", "fields": [{"name": "price", "type": "int"}]}
)


def test_a_batch_is_in_all_topics_once(spark: Any, folder: Path) -> None:
    """With topics that it makes, schemas of two of them, and a table; in a repeated batch too."""
    make_topics(folder, "rows", "totals")

    def write(frame: Any, batch: int, **options: Any) -> Any:
        named = {"application": "shop", "version": batch, **options}
        with WriteTransaction(folder, **named) as transaction:
            transaction.write_topic(frame.selectExpr("string(price) AS value"), "rows")
            avro: dict[str, Any] = {"value_format": "avro", "value_schema": RECORD}
            for topic in ("dear", "cheap"):
                transaction.write_topic(frame, topic, create_topic=True, **avro)
            totals = frame.groupBy().sum("price").toDF("value")
            transaction.upsert_topic(
                totals.selectExpr("'all' AS __key", "string(value) AS value"), "totals"
            )
            transaction.save_rdd(spark.sparkContext.parallelize([b"done"], 1), "rows")
            assert values_of(folder, "rows") == seen
        return transaction.result

    seen: list[bytes] = []
    prices = spark.createDataFrame([(7,), (5,)], "price int").coalesce(1)
    results = [write(prices, 0)]
    seen = values_of(folder, "rows")
    results.append(write(prices, 0))
    assert [each.already for each in results] == [False, True]
    assert results[0].message_count == 2 + 2 + 2 + 1 + 1
    assert values_of(folder, "rows") == seen == [b"7", b"5", b"done"]
    assert values_of(folder, "dear") == values_of(folder, "cheap")
    with pulsarx.Client(folder) as client:
        assert client.create_table_view("totals").get("all") == b"12"
        for topic in ("dear", "cheap"):
            assert client.admin.schemas.get_schema_info(topic).schema_type().name == "AVRO"
    others = spark.createDataFrame([(7,), (6,)], "price int").coalesce(1)
    with pytest.raises(errors.NotAllowedError, match="not the same"):
        write(others, 0)
    assert write(others, 0, on_conflict="ignore").already
    assert not write(others, 1).already
    seen = values_of(folder, "rows")
    assert seen == [b"7", b"5", b"done", b"7", b"6", b"done"]
    with pytest.raises(errors.NotAllowedError, match="must ascend"):
        write(prices, 0)
    assert values_of(folder, "rows") == seen and not staged(folder)


def test_a_batch_of_which_a_write_fails_is_in_no_topic(spark: Any, folder: Path) -> None:
    make_topics(folder, "a", "b")
    frame = spark.createDataFrame([("1",)], "value string")

    def begin() -> WriteTransaction:
        return WriteTransaction(folder, application="job", version=0)

    with pytest.raises(errors.TopicNotFound), begin() as transaction:
        transaction.write_topic(frame, "a")
        transaction.write_topic(frame, "missing")
    assert not staged(folder)
    with pytest.raises(errors.TransactionHasOperationFailed, match="missing"):  # noqa: SIM117
        with begin() as transaction:
            transaction.write_topic(frame, "a")
            with pytest.raises(errors.TopicNotFound):
                transaction.write_topic(frame, "missing")
    with pytest.raises(LookupError), begin() as transaction:
        transaction.write_topic(frame, "a")
        raise LookupError
    assert values_of(folder, "a") == [] and not staged(folder)
    with pytest.raises(errors.InvalidTxnStatusError, match="has ended"):
        transaction.write_topic(frame, "a")
    with begin() as transaction:
        for name in ("root", "version", "on_conflict"):
            with pytest.raises(TypeError, match=f"no argument {name}"):
                transaction.write_topic(frame, "a", **{name: 1})
        transaction.write_topic(frame, "a")
        transaction.write_topic(frame, "b")
    assert values_of(folder, "a") == values_of(folder, "b") == [b"1"]


# Without Spark, as what is tested is the commit ---------------------------------------------------


def staged_writes(folder: Path, version: int) -> tuple[WriteJob, list[StagedWrite]]:
    """A message for a, and one for b."""
    found = []
    for topic in "ab":
        job = plan_write(folder, topic, application="job", version=version)
        found.append(StagedWrite(job, write_partitions([b"%d" % version], job)))
    name = application_for("job", "several topics")
    return job.of_batch(job.name, name, version, "error"), found


@pytest.mark.parametrize("kind", ["here", "guest", "read_only"])
@pytest.mark.parametrize("order", ["ab", "ba"])
def test_readers_see_all_topics_at_one_moment(folder: Path, kind: str, order: str) -> None:
    """Whoever has received a batch from one topic finds it in the other."""
    count = 20
    make_topics(folder, "a", "b")
    with pulsarx.Client(folder, durability="os") as client:

        def look(reading: pulsarx.Client) -> None:
            first, second = (
                reading.create_reader(topic, pulsarx.MessageId.earliest) for topic in order
            )
            for version in range(count):
                assert first.read_next(60_000).data() == b"%d" % version
                assert second.has_message_available()
                assert second.read_next(0).data() == b"%d" % version

        failed: list[BaseException] = []

        def look_here() -> None:
            try:
                look(client)
            except BaseException as error:
                failed.append(error)

        child, thread = 0, threading.Thread(target=look_here)
        if kind == "here":
            thread.start()
        else:
            child = os.fork()
            if child == 0:
                try:
                    look(pulsarx.Client(folder, read_only=kind == "read_only"))
                    os._exit(0)
                finally:
                    os._exit(1)
        for version in range(count):
            commit_writes(*staged_writes(folder, version))
        if child:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        else:
            thread.join()
    assert not failed


@pytest.mark.parametrize("operation", ["write", "flush", "link", "unlink"])
def test_a_killed_driver_leaves_all_or_nothing(folder: Path, operation: str) -> None:
    """And the same again completes it."""
    make_topics(folder, "a", "b")
    call = kills = 0
    status = -1
    while status != 0:
        call += 1
        version = call
        child = os.fork()
        if child == 0:
            try:
                job, writes = staged_writes(folder, version)
                file_system.faults_install()
                file_system.faults_add(operation, call, kind="kill")
                commit_writes(job, writes)
                os._exit(0)
            finally:
                os._exit(1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, -signal.SIGKILL)
        kills += status != 0
        found = [values_of(folder, topic) for topic in "ab"]
        assert found[0] == found[1]
        assert found[0] in (numbers_to(version), numbers_to(version - 1))
        commit_writes(*staged_writes(folder, version))
        assert [values_of(folder, topic) for topic in "ab"] == [numbers_to(version)] * 2
    assert kills > 0
    assert len(messages_of(folder, "a")) == call


def numbers_to(last: int) -> list[bytes]:
    return [b"%d" % number for number in range(1, last + 1)]
