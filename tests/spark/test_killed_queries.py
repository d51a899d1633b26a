"""A query, or a batch job, that is killed a hundred times has written each message once, whatever
was killed: its source, its driver, its tasks, its commits, the owner of the folder. Into a folder,
and into a cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from driver_process import HERE, program
from killed_queries import ROLES
from seeds import new_seed, scaled

# The official client takes seconds to find a server again that was killed.
SLOW = ("served-owner",)
SIZED = [pytest.param(each, marks=[pytest.mark.long] if each in SLOW else []) for each in ROLES]


@pytest.mark.parametrize("role", SIZED)
def test_whatever_is_killed_each_message_is_there_once(tmp_path: Path, role: str) -> None:
    """Without Java: by the micro-batches that test_micro_batches compares with Spark's."""
    name = HERE / "killed_queries.py"
    with program(name, tmp_path / "data", role, new_seed(), scaled(40)) as child:
        status = child.wait()
        assert status == 0, child.last_words()
