"""One Spark session for all tests: starting one takes seconds. Skipped without PySpark or Java."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prepared_python import PreparedPython
from spark_steps import SMALL_JAVA

import pulsarx
from pulsarx.spark.java_runtime import JavaNotFoundError, find_java

HERE = Path(__file__).resolve().parent
TREE = str(Path(pulsarx.__file__).parents[1])


@pytest.fixture(scope="session")
def worker_python() -> Iterator[PreparedPython]:
    """What sessions of this process, and of those that it starts, have for their workers. They find
    PulsarX as this process does, and the modules of the tests."""
    pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")
    try:
        find_java()
    except JavaNotFoundError as error:
        pytest.skip(str(error))
    paths = [TREE, str(HERE), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        with PreparedPython() as python:
            yield python


@pytest.fixture(scope="session")
def spark(worker_python: PreparedPython, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """local[2], a failed task is tried three times."""
    import pulsarx.spark

    session = pulsarx.spark.session(
        "pulsarx-tests",
        "local[2,3]",
        {
            "spark.driver.extraJavaOptions": SMALL_JAVA,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.sql.session.timeZone": "Asia/Kolkata",  # times must not depend on it
        },
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def publish(folder: Path) -> Callable[..., None]:
    """Publishes numbered messages to a topic of the folder, by an owner that is gone then."""

    def send(topic: str, count: int, *, first: int = 0, partitions: int = 0) -> None:
        with pulsarx.Client(folder, durability="os") as client:
            if partitions:
                client.admin.topics.create_partitioned_topic(topic, partitions)
            producer = client.create_producer(
                topic, batching_enabled=True, batching_max_messages=7, block_if_queue_full=True
            )
            for number in range(first, first + count):
                producer.send_async(
                    b"%d" % number,
                    None,
                    partition_key=f"k{number % 5}",
                    properties={"number": str(number)},
                    event_timestamp=1_700_000_000_000 + number,
                )
            producer.flush()

    return send
