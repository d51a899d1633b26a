"""A client of Spark Connect that writes a topic and reads it, in a process of its own: Spark is
either with a context or with Connect in one process.

    python tests/spark/connect_steps.py FOLDER
"""

from __future__ import annotations

import os
import sys
from typing import Any

from pyspark.sql import SparkSession
from spark_steps import SMALL_JAVA

import pulsarx.spark
from pulsarx.spark.java_runtime import find_java


def main(folder: str) -> None:
    os.environ |= {"JAVA_HOME": find_java(), "PYSPARK_PYTHON": sys.executable}
    builder = (
        SparkSession.builder.remote("local[2]")
        .config("spark.driver.extraJavaOptions", SMALL_JAVA)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
    )
    spark: Any = builder.getOrCreate()
    try:
        for line in seen(spark, folder):
            print(line)
    finally:
        spark.stop()


def seen(spark: Any, folder: str) -> list[str]:
    assert "connect" in type(spark).__module__
    rows = spark.range(0, 30, 1, 2).selectExpr("string(id) AS value")
    options = {"root": folder, "topic": "t"}
    rows.write.format("pulsarx").mode("append").options(**options, createTopic="true").save()
    pulsarx.spark.write_topic(rows, "t", root=folder)
    frame = spark.read.format("pulsarx").options(**options, columns="value").load()
    read = pulsarx.spark.read_topic(spark, "t", root=folder, columns="value")
    return [
        f"{name} {sorted(int(bytes(row[0])) for row in each.collect())}"
        for name, each in (("format", frame), ("read_topic", read))
    ]


if __name__ == "__main__":
    main(sys.argv[1])
