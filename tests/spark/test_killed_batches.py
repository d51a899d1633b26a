"""What a batch write attaches is there once, whoever is killed, doubled, too late or elsewhere."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from dying_batch import BATCH_POINTS, DyingBatchSource, wait_for
from spark_steps import SMALL_JAVA, make_topics, messages, staged, values

from pulsarx.broker.staging.staging import collect_staging
from pulsarx.spark import commit_write, plan_write, write_partitions

HERE = Path(__file__).parent
HOUR_MS = 3600 * 1000
COUNT = 100
KEYS = 5


def write_numbers(spark: Any, folder: Path, marker: Path, point: str, **options: str) -> None:
    """Two Spark partitions of numbers, in order; 7 is the version that is written."""
    frame = spark.range(0, COUNT, numPartitions=2).selectExpr(
        "CAST(id AS string) AS value", f"CAST(id % {KEYS} AS string) AS __key"
    )
    given = {"root": str(folder), "topic": "t", "dieAt": point, "marker": str(marker)}
    named = {"txnAppId": "nightly", "txnVersion": "7", **given, **options}
    frame.write.format("pulsarx-dying-batch").options(**named).mode("append").save()


def check_numbers(folder: Path, topic: str, partitions: int = 0, count: int = COUNT) -> None:
    """Each once, those of a key in order."""
    found = messages(folder, topic, partitions)
    assert sorted(int(value) for _, value in found) == list(range(count))
    for key in {key for key, _ in found}:
        mine = [int(value) for each, value in found if each == key]
        assert mine == sorted(mine), f"key {key} is out of order"


@contextlib.contextmanager
def program(*arguments: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A Python of its own; killed at the end, with the Java it has started."""
    child = subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=HERE,
        env={**os.environ, "JAVA_TOOL_OPTIONS": SMALL_JAVA},
    )
    try:
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def wait_beside(child: subprocess.Popen[bytes], path: Path) -> None:
    """Until the child has made a file."""
    with contextlib.suppress(TimeoutError):
        wait_for(path, lambda: child.poll() is None)
    assert path.exists(), f"the program ended with {child.poll()}"


@pytest.mark.parametrize("point", BATCH_POINTS)
def test_a_batch_may_die_anywhere(spark: Any, folder: Path, tmp_path: Path, point: str) -> None:
    """A Python worker in the middle of its rows or behind them; the commit at every step. Then the
    job is run again, and again."""
    make_topics(folder, "t", partitions=2)
    spark.dataSource.register(DyingBatchSource)
    marker = tmp_path / "died"
    if point in ("midway", "worker"):
        write_numbers(spark, folder, marker, point)  # the task is tried again within the job
    else:
        with pytest.raises(Exception, match=r"crashed|exited|dies behind its commit"):
            write_numbers(spark, folder, marker, point)
        found = sorted(int(value) for value in values(folder, "t", 2))
        assert found == (list(range(COUNT)) if point in ("between", "after", "raise") else [])
        write_numbers(spark, folder, marker, point)
    assert marker.exists()
    check_numbers(folder, "t", 2)
    write_numbers(spark, folder, marker, point)
    check_numbers(folder, "t", 2)
    left = staged(folder)
    if left:  # the list of what was to be attached, by a process that died with it
        assert point in ("linked", "between") and left == [f"{left[0].split('/')[0]}/files.json"]
        make_old(folder, left)
        assert len(collect_staging(folder, HOUR_MS)) == 1


def make_old(folder: Path, names: list[str]) -> None:
    """As if nobody had touched these staged files, and the areas they are in, for years."""
    for path in [folder / "staging" / name for name in names]:
        os.utime(path, (1, 1))
        os.utime(path.parent, (1, 1))


DRIVER = """
import sys
from pathlib import Path
import pulsarx.spark
from dying_batch import DyingBatchSource
from test_killed_batches import write_numbers

spark = pulsarx.spark.session("killed", "local[1]")
spark.dataSource.register(DyingBatchSource)
write_numbers(spark, Path(sys.argv[1]), Path(sys.argv[2]), "wait")
"""


def test_a_driver_that_is_killed_before_its_commit_is_run_again(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """Driver, Java and workers at once, when everything is staged."""
    make_topics(folder, "t", partitions=2)
    marker = tmp_path / "waits"
    with program("-c", DRIVER, folder, marker) as child:
        wait_beside(child, marker)
    left = staged(folder)
    assert left and values(folder, "t", 2) == []
    spark.dataSource.register(DyingBatchSource)
    write_numbers(spark, folder, marker, "wait")
    write_numbers(spark, folder, marker, "wait")
    check_numbers(folder, "t", 2)
    # What the dead one left concerns nobody, and goes when it is old.
    assert staged(folder) == left
    assert collect_staging(folder, HOUR_MS) == []
    make_old(folder, left)
    assert len(collect_staging(folder, HOUR_MS)) == len(left)
    assert not staged(folder)
    check_numbers(folder, "t", 2)


def test_only_what_the_faster_twin_wrote_is_attached(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """Two workers on two addresses, a slow task is tried beside itself, and the slow one goes on
    behind commit and clean-up. Then an executor is lost, and with it what others have shuffled."""
    make_topics(folder, "pieces", "slow", "executor")
    with program(HERE / "cluster_jobs.py", folder, tmp_path) as child:
        wait_beside(child, tmp_path / "done")
    assert "there is no such folder" in (tmp_path / "pieces.late").read_text()
    assert '"message_count": 200' in (tmp_path / "slow.late").read_text()
    assert (tmp_path / "executor").exists()

    def check() -> None:
        assert [int(value) for value in values(folder, "pieces")] == list(range(200))
        check_numbers(folder, "slow", count=400)
        found = messages(folder, "executor")
        assert sorted(int(value) for _, value in found) == list(range(400))
        for key in map(str, range(KEYS)):  # sorted as texts
            mine = [value for each, value in found if each == key]
            assert len(mine) == 80 and mine == sorted(mine)

    check()
    (late,) = staged(folder)
    job = plan_write(folder, "slow")
    (other,) = write_partitions([b"of a job that goes on"], job)
    assert collect_staging(folder, HOUR_MS) == []
    make_old(folder, [late])
    assert collect_staging(folder, HOUR_MS) == [str(folder / "staging" / late)]
    check()
    assert commit_write(job, [other]).message_count == 1


# Hosts without the folder -------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs /proc/self/cwd")
@pytest.mark.parametrize("kind", ["nothing", "other", "copy", "staged"])
def test_a_host_with_a_folder_of_its_own_attaches_nothing(
    spark: Any, folder: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same path is elsewhere for one process: it leads over its working directory."""
    make_topics(folder, "t")
    private = tmp_path / "private"
    private.mkdir()
    elsewhere = private / folder.name
    if kind == "other":
        make_topics(elsewhere, "t")
    elif kind == "copy":
        shutil.copytree(folder, elsewhere)
    job = plan_write(folder, "t")
    if kind == "staged":
        shutil.copytree(folder, elsewhere)
    monkeypatch.chdir(folder.parent)
    job.root = f"/proc/self/cwd/{folder.name}"

    def stage(rows: Any) -> Any:
        from pyspark import TaskContext

        before = os.getcwd()
        os.chdir(private if TaskContext.get().partitionId() else folder.parent)
        try:
            yield from list(write_partitions(rows, job))
        finally:
            os.chdir(before)

    rdd = spark.sparkContext.parallelize([b"%d" % number for number in range(10)], 2)
    if kind == "staged":  # nothing that the task could notice
        told = rdd.mapPartitions(stage).collect()
        with pytest.raises(errors.StorageError) as caught:
            commit_write(job, told)
        text = str(caught.value)
        assert "there is no such file" in text and "Nothing was attached" in text
        assert f"written on host {os.uname().nodename} as {job.staging}/" in text
    else:
        with pytest.raises(Exception, match="FolderError") as caught:
            rdd.mapPartitions(stage).collect()
        text = str(caught.value)
        assert f"write {job.staging} on {os.uname().nodename}: there is no such folder" in text
        assert f"in the data directory with id {job.folder_id}" in text
        said = {"nothing": "has none (", "copy": "has that id, too", "other": "this host has id "}
        assert said[kind] in text and "Mount the same path" in text
        if kind == "other":
            assert f"has id {plan_write(elsewhere, 't').folder_id}" in text
    assert values(folder, "t") == []
