"""Drivers that are killed at random, with their Java and their workers, beside an owner that lives
in another process: what their queries write is there once."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from living_owner import COPY, KEYS, QUERIES, leave, start_query
from seeds import new_seed, scaled
from test_killed_batches import HERE, program, wait_beside
from topic_contents import messages_of

DRIVER = """
import sys
from pathlib import Path
import pulsarx.spark
from living_owner import start_query

folder, checkpoints = map(Path, sys.argv[1:3])
spark = pulsarx.spark.session("killed", "local[1]", {"spark.sql.shuffle.partitions": "1"})
for query in [start_query(spark, folder, checkpoints, name) for name in sys.argv[3:]]:
    query.awaitTermination()
"""


def planned_batches(checkpoints: Path) -> int:
    """Of all queries; each batch is noted before it runs."""
    return sum(path.name.isdigit() for path in checkpoints.glob("*/offsets/*"))


def kill_one(folder: Path, checkpoints: Path, queries: list[str], draw: random.Random) -> None:
    """Some batches after its start, at any moment of one."""
    wanted = planned_batches(checkpoints) + draw.randint(1, 4)
    patience = threading.Event()
    with program("-c", DRIVER, folder, checkpoints, *queries) as child:
        for _ in range(20_000):
            if planned_batches(checkpoints) >= wanted or child.poll() is not None:
                break
            patience.wait(0.01)
        patience.wait(draw.random() * 0.5)
        assert child.poll() is None, "the driver ended by itself"
        assert planned_batches(checkpoints) >= wanted, "the driver did not get on"


def test_drivers_may_be_killed_at_any_time_beside_a_living_owner(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """The owner publishes what they read, consumes what they write, and merges its ledgers."""
    draw = random.Random(new_seed())
    checkpoints, notes = tmp_path / "checkpoints", tmp_path / "notes"
    notes.mkdir()
    with program(HERE / "living_owner.py", folder, notes) as owner:
        wait_beside(owner, notes / "lives")
        turns = [["counts"], ["copy"], ["copy"], ["counts"], ["copy"], [*QUERIES]]
        for turn in range(scaled(5)):
            kill_one(folder, checkpoints, turns[turn % len(turns)], draw)
        leave(notes / "stop", True)
        wait_beside(owner, notes / "count")
        for name in QUERIES:
            query = start_query(spark, folder, checkpoints, name, availableNow=True)
            assert query.awaitTermination(300)
        leave(notes / "end", True)
        wait_beside(owner, notes / "found")
        owner.wait()
    count = json.loads((notes / "count").read_text())
    received = json.loads((notes / "found").read_text())
    assert sorted(number for _, number in received) == list(range(count))
    for key in map(str, range(KEYS)):
        mine = [number for each, number in received if each == key]
        assert mine == list(range(int(key), count, KEYS)), f"key {key} is out of order"
    assert sorted(int(each.data()) for each in messages_of(folder, COPY)) == list(range(count))
    with pulsarx.Client(folder) as client:
        table = {key: int(value) for key, value in client.create_table_view("counts").items()}
    assert table == {str(key): len(range(key, count, KEYS)) for key in range(KEYS)}
