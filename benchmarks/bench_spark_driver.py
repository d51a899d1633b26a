"""What the driver of a Spark job does, and what a task decodes, without a session: attaching,
planning, looking for news, and the reader of a range alone.

Run as a program, `bench_spark_driver.py <folder>` owns the folder until its input ends.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fresh_process import TREE
from measurement import Measurement, Sizes
from spark_data import PARTS, SparkData, attach_parts, make_root, plain_batches, values
from spark_process import spark_is_missing

SMALL = 10  # messages of a file that is attached or planned
FILES_AT_ONCE = 1000


@pytest.fixture(scope="module", autouse=True)
def _spark() -> None:
    missing = spark_is_missing()
    if missing:
        pytest.skip(missing)


def staged_files(root: Path, job: str, count: int, *, flush: bool) -> list[Any]:
    """Small sealed ledgers that wait to be attached to the topic `many`."""
    import pyarrow

    from pulsarx.broker.staging.sealed_writer import SealedLedgerWriter
    from pulsarx.broker.staging.staged_file import StagedFile
    from pulsarx.broker.staging.staging import folder_id_of, make_staging

    area, folder_id = make_staging(root, job), folder_id_of(root)
    batch = pyarrow.record_batch([values(SMALL, 1)], ["value"])
    files = []
    for number in range(count):
        with SealedLedgerWriter(f"{area}/{number}.ledger", folder_id) as writer:
            writer.append_arrow(batch, "value")
            sealed = writer.seal(flush=flush)
        assert sealed is not None, job
        files.append(StagedFile.of_sealed("many", sealed))
    return files


@contextmanager
def owner(root: Path) -> Iterator[None]:
    """Another process has the folder open, with a producer."""
    environment = os.environ | {"PYTHONPATH": f"{TREE}{os.pathsep}{os.environ.get('PYTHONPATH')}"}
    process = subprocess.Popen(
        [sys.executable, __file__, str(root)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n", "the owner did not start"
        yield
    finally:
        process.stdin.close()
        process.wait(60)


def bench_attach(measurement: Measurement, scratch: Path) -> None:
    attach_again_and_again(measurement, "spark_attach", scratch / "attach")


def bench_attach_owner(measurement: Measurement, scratch: Path) -> None:
    root = scratch / "attach-owner"
    make_root(root, "many")
    with owner(root):
        attach_again_and_again(measurement, "spark_attach_owner", root)


def attach_again_and_again(measurement: Measurement, row: str, root: Path) -> None:
    from pulsarx.broker.requests.attach import Transaction, attach

    if not root.exists():
        make_root(root, "many")
    sizes = measurement.sizes
    batches = iter(range(1_000_000))

    def turn() -> float:
        batch = next(batches)
        files = staged_files(root, f"job-{batch}", sizes.attached, flush=True)
        os.sync()
        began = time.perf_counter()
        result = attach(root, Transaction("benchmark", batch), files)
        took = time.perf_counter() - began
        assert (result.already, result.ledger_count) == (False, sizes.attached)
        return took * 1000

    turn()
    measurement.values(row, turn, sizes.spark_rounds, f"{sizes.attached} files of 1 KB")


def bench_merge(measurement: Measurement, scratch: Path) -> None:
    from pulsarx.admin import Admin
    from pulsarx.broker.requests.attach import Transaction, attach

    root = scratch / "merge"
    make_root(root, "many")
    sizes = measurement.sizes
    count = min(FILES_AT_ONCE, sizes.planned)
    batches = iter(range(1_000_000))

    def turn() -> float:
        batch = next(batches)
        files = staged_files(root, f"job-{batch}", count, flush=False)
        attach(root, Transaction("benchmark", batch), files)
        os.sync()
        began = time.perf_counter()
        merged = Admin.at(root).topics.merge_ledgers("many")
        took = time.perf_counter() - began
        assert merged == {"ledgers": count, "files": 1}, merged
        return took * 1000

    turn()
    measurement.values("spark_merge", turn, sizes.spark_rounds, f"{count} ledgers")


# A topic with many ledgers ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(scratch: Path, sizes: Sizes) -> Path:
    """A folder whose topic `many` has many ledgers, on disk and in the catalogue."""
    from pulsarx.broker.requests.attach import Transaction, attach

    root = scratch / "many"
    make_root(root, "many")
    for at in range(0, sizes.planned, FILES_AT_ONCE):
        count = min(FILES_AT_ONCE, sizes.planned - at)
        files = staged_files(root, f"job-{at}", count, flush=False)
        attach(root, Transaction(f"benchmark-{at}", 0), files)
    return root


def bench_plan(measurement: Measurement, many: Path) -> None:
    sizes = measurement.sizes
    leased: list[float] = []

    def timed(lease_ms: int) -> float:
        from pulsarx.spark import plan_topic

        began = time.perf_counter()
        groups = plan_topic(many, "many", columns="value", lease_ms=lease_ms)
        took = time.perf_counter() - began
        assert sum(len(group) for group in groups) == sizes.planned
        return took * 1000

    def turn() -> float:
        leased.append(timed(60_000))
        return timed(0)

    turn()
    measurement.values("spark_plan", turn, sizes.spark_rounds, f"{sizes.planned} ledgers")
    measurement.add_note(f"with a lease of them all {statistics.median(leased):.3g} ms")


def bench_latest(measurement: Measurement, many: Path) -> None:
    calls = measurement.sizes.spark_calls
    alone = latest_turn(many, calls)
    without = statistics.median(alone() for _ in range(3))
    with owner(many):
        turn = latest_turn(many, calls)
        turn()
        measurement.values("spark_latest", turn, measurement.sizes.spark_rounds)
    measurement.add_note(f"mean of {calls} calls, without an owner {without:.3g} ms")


def latest_turn(root: Path, calls: int) -> Callable[[], float]:
    """How many milliseconds a stream reader takes to see that there is nothing new."""
    from pyspark.sql.types import BinaryType, StructField, StructType

    from pulsarx.spark.data_source import PulsarxDataSource

    options = {"root": str(root), "topic": "many", "columns": "value", "startingOffsets": "latest"}
    reader = PulsarxDataSource(options).streamReader(
        StructType([StructField("value", BinaryType())])
    )
    limit = reader.getDefaultReadLimit()
    # As Spark does: a first batch without a message, and then nothing new.
    start = reader.latestOffset(reader.initialOffset(), limit)

    def turn() -> float:
        began = time.perf_counter()
        for _ in range(calls):
            found = reader.latestOffset(start, limit)
        took = time.perf_counter() - began
        assert found == start
        return took * 1000 / calls

    return turn


# Decoding -----------------------------------------------------------------------------------------


def bench_decode(measurement: Measurement, scratch: Path, sizes: Sizes) -> None:
    """Millions of rows a second: every value into a column of its own, checksums verified."""
    from pulsarx.spark import plan_topic, read_partitions

    data = SparkData(scratch / "decode", sizes.spark_messages)
    make_root(data.root, "plain")
    attach_parts(data.root, "plain", [plain_batches(data, part) for part in range(PARTS)])
    groups = plan_topic(data.root, "plain", columns="value", lease_ms=0)

    def turn() -> float:
        count = 0
        began = time.perf_counter()
        for batch in read_partitions(groups):
            count += batch.num_rows
        took = time.perf_counter() - began
        assert count == data.messages, count
        return count / took / 1e6

    try:
        turn()
        measurement.values("spark_decode", turn, sizes.spark_rounds, f"{data.messages:,} messages")
    finally:
        data.delete()


def main(root: str) -> None:
    import pulsarx

    with pulsarx.Client(root) as client:
        client.create_producer("many").send(b"the owner was here")
        print("ready", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
