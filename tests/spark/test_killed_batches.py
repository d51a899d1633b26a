"""What a batch write attaches is there once, whoever is killed or elsewhere."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pulsarx import errors

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from dying_batch import BATCH_POINTS, DyingBatchSource
from dying_plan import PLAN_POINTS, DyingPlanSource
from numbered_rows import COUNT, check_numbers, make_old, write_numbers
from spark_steps import make_topics, staged, values

from pulsarx.broker.staging.staging import collect_staging
from pulsarx.spark import commit_write, plan_write, write_partitions

HOUR_MS = 3600 * 1000


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


@pytest.mark.parametrize("point", PLAN_POINTS)
def test_a_call_whose_planning_dies_fails_and_may_be_made_again(
    spark: Any, folder: Path, tmp_path: Path, point: str
) -> None:
    """As the guide says: Spark asks for a plan once, and tries tasks alone again."""
    make_topics(folder, "t")
    spark.dataSource.register(DyingPlanSource)
    options = {"root": str(folder), "topic": "t", "dieAt": point, "marker": str(tmp_path / "died")}

    def save() -> None:
        rows = spark.range(0, COUNT, numPartitions=2).selectExpr("CAST(id AS string) AS value")
        writer = rows.write.format("pulsarx-dying-plan").options(**options)
        writer.options(txnAppId="nightly", txnVersion="7").mode("append").save()

    def load() -> list[int]:
        frame = spark.read.format("pulsarx-dying-plan").options(**options, columns="value").load()
        return sorted(int(row["value"]) for row in frame.collect())

    call = save if point == "writer" else load
    if call is load:
        save()
    with pytest.raises(Exception, match=r"crashed|exited|Broken pipe|closed"):
        call()
    assert (tmp_path / "died").exists()
    call()
    save()
    assert load() == list(range(COUNT))
    assert not staged(folder)


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
