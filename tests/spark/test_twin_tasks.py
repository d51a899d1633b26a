"""What a task writes is there once, though Spark tries it beside itself or on another executor."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from driver_process import HERE, program
from numbered_rows import KEYS, check_numbers, make_old
from prepared_python import PreparedPython
from spark_steps import make_topics, messages, staged, values

from pulsarx.broker.staging.staging import collect_staging
from pulsarx.spark import commit_write, plan_write, write_partitions

HOUR_MS = 3600 * 1000


def test_only_what_the_faster_twin_wrote_is_attached(
    worker_python: PreparedPython, folder: Path, tmp_path: Path
) -> None:
    """Two workers on two addresses, a slow task is tried beside itself, and the slow one goes on
    behind commit and clean-up. Then an executor is lost, and with it what others have shuffled."""
    make_topics(folder, "pieces", "slow", "executor")
    with program(HERE / "cluster_jobs.py", folder, tmp_path) as child:
        child.wait_for(tmp_path / "done")
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
