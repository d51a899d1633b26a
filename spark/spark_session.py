"""`pulsarx.spark.session`: a Spark session configured for Python workers and Arrow."""

from __future__ import annotations

import os
import sys

from pulsarx.spark.java_runtime import find_java
from pulsarx.spark.small_java import home_for_spark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

# Measured: Unix domain sockets take 20 to 30 % off what Python workers cost.
SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Where driver and executors are one process nobody else needs to reach it.
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def session(
    application: str = "pulsarx",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """The running session, else a new one. What spark-submit or conf says wins over all here.

    master: None: what spark-submit or PYSPARK_SUBMIT_ARGS says, else local[*]. Workers run the
        driver's Python, unless PYSPARK_PYTHON is set.
    JavaNotFoundError: says what to install.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        # spark-submit has started a Java, which knows what it was told; ask before the first use.
        SparkContext._ensure_initialized()
    elif SparkContext._active_spark_context is None:
        # Spark's launcher takes JAVA_HOME, else java on PATH, of whatever version.
        os.environ["JAVA_HOME"] = home_for_spark(find_java())
    given = SparkConf()
    wanted = dict(conf or {})
    if master is not None:
        wanted.setdefault("spark.master", master)
    elif "--master" not in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        wanted.setdefault("spark.master", given.get("spark.master") or "local[*]")
    settings = dict(SETTINGS)
    if wanted.get("spark.master", "").startswith("local"):
        settings |= LOCAL_SETTINGS
    settings = {name: value for name, value in settings.items() if not given.contains(name)}
    builder = SparkSession.builder.appName(application)
    for name, value in (settings | wanted).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
