"""Drivers in processes of their own: what their sessions are told and leave. Killed with their Java
and their workers, what they were to write is there once when it is written again, also beside an
owner that lives in another process."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from driver_process import HERE, Program, program
from dying_batch import DyingBatchSource
from living_owner import COPY, KEYS, QUERIES, leave
from numbered_rows import check_numbers, make_old, write_numbers
from other_driver import WRITES
from seeds import new_seed, scaled
from spark_steps import make_topics, messages, staged, values
from topic_contents import messages_of

from pulsarx.broker.read_only_broker import ReadOnlyBroker
from pulsarx.broker.staging.staging import collect_staging

HOUR_MS = 3600 * 1000


class Owner:
    """The living owner of a folder; what the queries of drivers wrote beside it."""

    def __init__(self, folder: Path, notes: Path, owner: Program) -> None:
        self.folder = folder
        self.notes = notes
        self._owner = owner
        owner.wait_for(notes / "lives")

    def check_streams(self, spark: Any, checkpoints: Path) -> None:
        """No more is published, the queries are run to the end, and the owner ends."""
        leave(self.notes / "stop", True)
        self._owner.wait_for(self.notes / "count")
        for start in QUERIES.values():
            query = start(spark, self.folder, checkpoints, availableNow=True)
            assert query.awaitTermination(300)
        leave(self.notes / "end", True)
        self._owner.wait_for(self.notes / "found")
        self._owner.wait()
        count = json.loads((self.notes / "count").read_text())
        received = json.loads((self.notes / "found").read_text())
        assert sorted(number for _, number in received) == list(range(count))
        for key in map(str, range(KEYS)):
            mine = [number for each, number in received if each == key]
            assert mine == list(range(int(key), count, KEYS)), f"key {key} is out of order"
        copied = [int(each.data()) for each in messages_of(self.folder, COPY)]
        assert sorted(copied) == list(range(count))
        with pulsarx.Client(self.folder) as client:
            table = {key: int(value) for key, value in client.create_table_view("counts").items()}
        assert table == {str(key): len(range(key, count, KEYS)) for key in range(KEYS)}


@pytest.fixture(scope="module")
def owner(worker_python: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owner]:
    folder, notes = tmp_path_factory.mktemp("owned") / "data", tmp_path_factory.mktemp("notes")
    with program(HERE / "living_owner.py", folder, notes) as child:
        yield Owner(folder, notes, child)


@dataclass
class Killed:
    """What other_driver has left that was killed in its writes."""

    other: Path
    checkpoints: Path
    notes: Path

    @property
    def session(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.notes / "session").read_text())
        return found


@pytest.fixture(scope="module")
def killed(owner: Owner, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    scratch = tmp_path_factory.mktemp("mit Umlaut ü")
    made = Killed(scratch / "data", scratch / "checkpoints", scratch / "notes")
    made.notes.mkdir()
    make_topics(made.other, "t", partitions=2)
    with pulsarx.Client(made.other) as client:
        client.subscribe("read", "s").close()
        client.create_producer("read").send_many([b"one", b"two"])
    driver = Path(shutil.copy(HERE / "other_driver.py", scratch / "auch mit ü.py"))
    (scratch / "spark-defaults.conf").write_text("spark.ui.enabled true\nspark.ui.port 0\n")
    arguments = "--conf spark.python.unix.domain.socket.enabled=false --master local[1]"
    places = (owner.folder, made.other, made.checkpoints, made.notes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONF_DIR", str(scratch))
        patch.setenv("PYSPARK_SUBMIT_ARGS", f"{arguments} pyspark-shell")
        with program(driver, *places) as child:
            for name in ("session", *WRITES):
                child.wait_for(made.notes / name)
    return made


# Alive --------------------------------------------------------------------------------------------


def test_what_spark_is_told_otherwise_wins(killed: Killed) -> None:
    """Its Java hears it when it starts."""
    assert killed.session["told"] == {
        "python.unix.domain.socket.enabled": "false",
        "ui.enabled": "true",
        "ui.showConsoleProgress": "false",
        "master": "local[1]",
        "java": "1",
    }


def test_workers_run_the_python_of_the_driver(killed: Killed) -> None:
    found = killed.session["python"]
    assert [os.path.realpath(path) for path in found] == [os.path.realpath(sys.executable)]


def test_a_session_that_is_stopped_leaves_nothing_to_read(killed: Killed) -> None:
    """Its leases are given back without its end."""
    found = killed.session
    assert (found["rows"], found["kept"], found["kept when stopped"]) == (2, 1, 0)
    broker = ReadOnlyBroker(str(killed.other))
    assert not broker.catalogue.state.leases
    broker.close()


# Killed -------------------------------------------------------------------------------------------


def test_a_batch_of_a_driver_that_is_killed_before_its_commit_is_run_again(
    spark: Any, killed: Killed
) -> None:
    """When everything is staged."""
    folder, marker = killed.other, killed.notes / "batch"
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


def test_streams_of_a_driver_that_is_killed_behind_their_commits_go_on_beside_a_living_owner(
    spark: Any, killed: Killed, owner: Owner
) -> None:
    """The owner publishes what they read, consumes what they write, and merges its ledgers."""
    for name in QUERIES:
        assert messages(owner.folder, name), f"{name} was killed before its commit"
        assert not list((killed.checkpoints / name / "commits").glob("0"))
    owner.check_streams(spark, killed.checkpoints)


DRIVER = """
import sys
from pathlib import Path
from living_owner import QUERIES
from spark_steps import small_session

folder, checkpoints = map(Path, sys.argv[1:3])
spark = small_session("killed", "local[1]")
for query in [QUERIES[name](spark, folder, checkpoints) for name in sys.argv[3:]]:
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


@pytest.mark.long
def test_drivers_may_be_killed_at_any_time_beside_a_living_owner(
    spark: Any, folder: Path, tmp_path: Path
) -> None:
    """As above, where nobody chose the moment."""
    draw = random.Random(new_seed())
    checkpoints, notes = tmp_path / "checkpoints", tmp_path / "notes"
    notes.mkdir()
    with program(HERE / "living_owner.py", folder, notes) as child:
        owner = Owner(folder, notes, child)
        turns = [["counts"], ["copy"], ["copy"], ["counts"], ["copy"], [*QUERIES]]
        for turn in range(scaled(5)):
            kill_one(folder, checkpoints, turns[turn % len(turns)], draw)
        owner.check_streams(spark, checkpoints)
