"""`pulsarx.spark.session`: a Spark session configured for Python workers and Arrow."""

from __future__ import annotations

import importlib.util
import os
import sys

from pulsarx.spark.java_runtime import find_java
from pulsarx.spark.small_java import home_for_spark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_REDACTION = "spark.sql.redaction.options.regex"
# Measured: Unix domain sockets take 20 to 30 % off what Python workers cost.
SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.ui.enabled": "false",
    # As without it, and the secrets of a cluster, which plans of writes would show.
    _REDACTION: "(?i)url|authparams",
}
_REDACTION_OF_SPARK = "(?i)url"  # where nobody chose another
# Told to a new Java at once, which else shows progress as if on a terminal.
JAVA_SETTINGS = {"spark.ui.showConsoleProgress": "false"}
# Where driver and executors are one process no other host needs to reach it.
LOCAL_SETTINGS = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def session(
    application: str = "pulsarx",
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the running session, else a new one; the active one of this thread then. What
    spark-submit, spark-defaults.conf or conf says wins over all here; of a running session
    what conf names is changed, if Spark can, and secrets are kept out of its plans, unless a
    setting of its own says what is.

    Args:
        application: The name of the application.
        master: None: that of spark-submit or spark-defaults.conf, else local[*]. Workers run the
            driver's Python, unless PYSPARK_PYTHON is set.
        conf: Settings of Spark by name.

    Raises:
        ValueError: A session with another master is running.
        ImportError: A package is missing; the text says what to install.
        pulsarx.spark.java_runtime.JavaNotFoundError: A Java is missing, or too old.
    """
    _require("pyspark", "pyarrow", "pandas")
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    wanted = dict(conf or {})
    if master is not None:
        wanted.setdefault("spark.master", master)
    running = SparkContext._active_spark_context
    if running is not None and running._jsc is not None:
        _check_master(wanted, str(running.master))
        settings = {}
        is_new = False
    else:
        is_new = True
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
        if "PYSPARK_GATEWAY_PORT" not in os.environ:
            # Spark's launcher takes JAVA_HOME, else java on PATH, of whatever version.
            os.environ["JAVA_HOME"] = home_for_spark(find_java())
        # Only Java knows what was told to it otherwise. What is for itself must be there first.
        at_once = SparkConf().setAll([*(JAVA_SETTINGS | wanted).items()])
        SparkContext._ensure_initialized(conf=at_once)
        settings = _unless_given(SparkConf(), wanted)
    builder = SparkSession.builder.appName(application)
    for name, value in (settings | wanted).items():
        builder = builder.config(name, value)
    found = builder.getOrCreate()
    # Java finds format("pulsarx") for a write by what its own thread has: that of a thread of the
    # caller has nothing, nor has the one that an interrupt makes Py4J begin with anew.
    jvm: Any = found._jvm
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(found._jsparkSession)
    if not is_new:
        if found.conf.get(_REDACTION) == _REDACTION_OF_SPARK and _REDACTION not in wanted:
            found.conf.set(_REDACTION, SETTINGS[_REDACTION])
        _make_known(found)
    return found


def _make_known(spark: Any) -> None:
    """A session looks for formats once, by a Python of its own. If that one was killed it knows
    none from then on; a new session has not looked yet."""
    manager = spark._jsparkSession.sessionState().dataSourceManager()
    if not manager.dataSourceExists("pulsarx"):
        from pulsarx.spark.data_source import register

        register(spark)


def _require(*packages: str) -> None:
    """PySpark comes without the other two, and would miss them in the first job."""
    for name in packages:
        if importlib.util.find_spec(name) is None:
            raise ImportError(f"pulsarx.spark.session needs {name}: pip install 'pulsarx[spark]'")


def _unless_given(given: SparkConf, wanted: dict[str, str]) -> dict[str, str]:
    """The settings for a new session that were not chosen otherwise."""
    master = wanted.get("spark.master") or given.get("spark.master") or "local[*]"
    settings = SETTINGS | {"spark.master": master}
    if master.startswith("local"):
        settings |= LOCAL_SETTINGS
    return {name: value for name, value in settings.items() if not given.contains(name)}


def _check_master(wanted: dict[str, str], master: str) -> None:
    other = wanted.pop("spark.master", master)
    if other != master:
        raise ValueError(
            f"a session with master {master} is running: call its stop() to begin one with "
            f"{other}, or name no master to get it"
        )
