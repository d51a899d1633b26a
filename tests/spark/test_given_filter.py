"""Option `where`: what it may say, and what is skipped for it. Without a session."""

from __future__ import annotations

import datetime as dt
import operator as op
import random
import re
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

import pyspark_pulsarx
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType
from seeds import seeds
from spark_steps import PREFIX, send

from pulsarx.spark import plan_topic, read_partitions
from pulsarx.spark.given_filter import filters_of

VALUE = StructType([StructField("value", BinaryType(), True)])


@pytest.mark.parametrize(
    ("text", "flaw"),
    [
        ("", "a column is expected, and there is the end"),
        ("__key", "one of =, <, <=, >, >=, IN, IS is expected, and there is the end"),
        ("__key = ", "a number, 'text' or X'bytes' is expected, and there is the end"),
        ("__key = ada", "and there is 'ada'"),
        ("__key = 'ada' OR __key = 'bob'", "AND or the end is expected, and there is 'OR'"),
        ("__key = 'ada' AND", "a column is expected"),
        ("__key = 'it's'", "AND or the end is expected, and there is 's'"),
        ("__key = 'ada' -- __partition = 1", "'-- __partition = 1' cannot be read"),
        ("key = 'ada'", "'key' is no column of messages to compare; did you mean '__key'?"),
        ("value = 'ada'", "'value' is no column of messages to compare"),
        ("__key > 'ada'", "__key is binary, which cannot be compared like that"),
        ("__key = 7", "__key is binary"),
        ("__partition = 'one'", "__partition is int"),
        ("__partition = 2147483648", "__partition is int"),
        ("__partition = 1x", "'1x' cannot be read"),
        ("__partition IN ()", "a number, 'text' or X'bytes' is expected, and there is ')'"),
        ("__partition IN (1", ", or ) is expected, and there is the end"),
        ("__partition IN 1", "( is expected, and there is '1'"),
        ("__key IS 'ada'", "NULL is expected"),
        ("__messageProperties = 'a'", "__messageProperties is map<string,string>"),
        ("__publishTime > '2026-01-31'", "'2026-01-31' is no time"),
        ("__publishTime > 999999999999999", "is no time between the years 1 and 9999"),
        ("__key = X'6'", "is expected, and there is 'X'"),
    ],
)
def test_what_is_no_filter_is_refused(text: str, flaw: str) -> None:
    with pytest.raises(ValueError, match=re.escape(flaw)):
        filters_of(text)


def test_a_refused_filter_is_told_by_its_option(folder: Path) -> None:
    options = {"root": str(folder), "topic": "t", "where": "__keys = 'a'"}
    with pytest.raises(ValueError, match=r"option where is .*'__keys' is no column"):
        pyspark_pulsarx.DefaultSource(options).schema()


def test_none_is_no_filter_where_ranges_are_read_either(folder: Path) -> None:
    with pulsarx.Client(folder, durability="os") as client:
        send(client, "t", [b"1", b"2"])
    groups = plan_topic(folder, "t", columns="value", where=None)
    batches = [batch for group in groups for batch in read_partitions(group, where=None)]
    assert sum(batch.num_rows for batch in batches) == 2


def test_a_value_that_cannot_be_decoded_is_told_with_its_own_id(folder: Path) -> None:
    """The message was counted among those that were chosen, and looked up among all."""
    with pulsarx.Client(folder, durability="os") as client:
        producer = client.create_producer("t")
        keys = ("a", "b", "a", "b")
        values = (b"{}", b"{}", b"{}", b"{")
        ids = [
            producer.send(value, partition_key=key) for value, key in zip(values, keys, strict=True)
        ]
    options = {"root": str(folder), "topic": "t", "valueFormat": "json", "where": "__key = 'b'"}
    schema = StructType([StructField("n", IntegerType(), True)])
    reader: Any = pyspark_pulsarx.DefaultSource(options).reader(schema)
    with pytest.raises(ValueError, match=re.escape(f"message {ids[3]} of {PREFIX}t cannot")):
        for part in reader.partitions():
            list(reader.read(part))


def test_ledgers_without_a_message_of_it_are_not_read(folder: Path) -> None:
    clock = pulsarx.ManualClock()
    times = []
    for number in range(3):
        times.append(clock.now_ms())
        with pulsarx.Client(folder, clock=clock, durability="os") as client:
            send(client, "t", [b"%d" % number])
        clock.advance(60)

    def found(where: str) -> tuple[int, list[int]]:
        options = {"root": str(folder), "topic": "t", "columns": "value", "where": where}
        reader: Any = pyspark_pulsarx.DefaultSource(options).reader(VALUE)
        parts = reader.partitions()
        values = [batch.column(0).to_pylist() for part in parts for batch in reader.read(part)]
        read = sum(len(part.ranges) for part in parts)
        return read, sorted(int(each) for batch in values for each in batch)

    assert found("__sequenceId >= 0") == (3, [0, 1, 2])
    assert found(f"__publishTime >= {times[1]}") == (2, [1, 2])
    assert found(f"__publishTime < {times[1]}") == (1, [0])
    assert found(f"__publishTime <= {times[1]}") == (2, [0, 1])
    assert found(f"__publishTime = {times[1]}") == (1, [1])
    assert found(f"__publishTime IN ({times[0]}, {times[1]})") == (2, [0, 1])
    assert found(f"__publishTime > {times[0]} AND __publishTime < {times[2]}") == (1, [1])
    assert found("__publishTime IS NOT NULL") == (3, [0, 1, 2])
    assert found("__publishTime IS NULL")[1] == found("__publishTime < 0")[1] == []
    between = dt.datetime.fromtimestamp(times[1] / 1000, dt.UTC) + dt.timedelta(microseconds=1)
    assert found(f"__publishTime < '{between.isoformat()}'") == (2, [0, 1])
    assert found(f"__publishTime > '{between.isoformat()}'")[1] == [2]
    assert found(f"__topic IN ('{PREFIX}t')") == (3, [0, 1, 2])
    assert found(f"__topic = '{PREFIX}other'") == (0, [])
    ids = [row for row in range(1, 20) if found(f"__ledgerId = {row}")[0]]
    assert len(ids) == 3
    there = pulsarx.MessageId(-1, ids[1], 0, -1).serialize().hex()
    assert found(f"__messageId = X'{there}'")[0] == 1


def test_of_a_ledger_that_is_over_at_a_time_only_that_part_is_planned(folder: Path) -> None:
    """All of it was read, and its messages were left out one by one."""
    clock = pulsarx.ManualClock()
    times = []
    with pulsarx.Client(folder, clock=clock, durability="os") as client:
        producer = client.create_producer("t")
        for number in range(10):
            times.append(clock.now_ms())
            producer.send(b"%d" % number)
            clock.advance(60)
        where = f"__publishTime >= {times[3]} AND __publishTime < {times[6]}"
        (group,) = plan_topic(folder, "t", columns="value", where=where)
        assert [(each.first_message, each.end_message) for each in group] == [(3, 6)]
        found = [batch["value"].to_pylist() for batch in read_partitions(group, where=where)]
    assert found == [[b"3", b"4", b"5"]]


@pytest.mark.parametrize("seed", seeds(10))
def test_times_leave_out_ranges_and_no_row(folder: Path, seed: int) -> None:
    """Messages of several producers that batch, whose times are in no order, in ledgers that are
    sealed and open; compared with the rows of a read without filters."""
    draw, clock = random.Random(seed), pulsarx.ManualClock()
    few = pulsarx.BrokerOptions(managed_ledger_max_entries_per_ledger=draw.randint(2, 5))
    with pulsarx.Client(folder, clock=clock, durability="os", broker_options=few) as client:
        producers = [
            client.create_producer(
                "t", batching_enabled=True, batching_max_messages=draw.randint(2, 4)
            )
            for _ in range(3)
        ]
        for number in range(40):
            draw.choice(producers).send_async(b"%d" % number, None)
            clock.advance(draw.choice((0, 0.001, 1)))
        for producer in producers:
            producer.flush()
        columns = "value, __publishTime"
        rows = [
            row
            for group in plan_topic(folder, "t", columns=columns)
            for batch in read_partitions(group)
            for row in batch.to_pylist()
        ]
        assert len(rows) == 40
        for _ in range(20):
            operation = draw.choice(("<", "<=", ">", ">=", "="))
            at = draw.choice(rows)["__publishTime"]
            at += dt.timedelta(microseconds=draw.choice((-1, 0, 1)))
            where = f"__publishTime {operation} '{at.isoformat()}'"
            found = [
                row
                for group in plan_topic(folder, "t", columns=columns, where=where)
                for batch in read_partitions(group, where=where)
                for row in batch.to_pylist()
            ]
            compare = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "=": "eq"}[operation]
            holds = getattr(op, compare)
            assert found == [row for row in rows if holds(row["__publishTime"], at)], where
