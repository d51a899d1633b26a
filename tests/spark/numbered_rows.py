"""Rows whose values are numbers, written by format("pulsarx-dying-batch"), and whether each of them
is there once. Imported by drivers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from spark_steps import messages

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


def make_old(folder: Path, names: list[str]) -> None:
    """As if nobody had touched these staged files, and the areas they are in, for years."""
    for path in [folder / "staging" / name for name in names]:
        os.utime(path, (1, 1))
        os.utime(path.parent, (1, 1))
