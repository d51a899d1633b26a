"""A driver with a cluster of its own: two workers on two addresses of the loopback, so that Spark
tries a slow task again beside itself. Run as a program by test_twin_tasks.

Master and workers live in the driver's Java, which spares three of them; executors are processes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from dying_batch import DyingBatchSource, leave, wait_for
from spark_steps import SMALL_JAVA, small_session

from pulsarx import errors
from pulsarx.spark import commit_write, plan_write, write_partitions

SETTINGS = {
    "spark.executor.extraJavaOptions": SMALL_JAVA,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "90s",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.python.task.killTimeout": "300s",  # the slower twin lives on
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.excludeOnFailure.enabled": "false",
}


def start_cluster(scratch: Path) -> str:
    """The address of its master."""
    import pyspark
    from pyspark import SparkConf, SparkContext

    from pulsarx.spark.java_runtime import find_java
    from pulsarx.spark.small_java import home_for_spark

    os.environ["JAVA_HOME"] = home_for_spark(find_java())
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = SparkConf().set("spark.driver.extraJavaOptions", SMALL_JAVA)
    SparkContext._ensure_initialized(conf=options)
    jvm = SparkContext._jvm
    deploy, conf = jvm.org.apache.spark.deploy, jvm.org.apache.spark.SparkConf()
    made = deploy.master.Master.startRpcEnvAndEndpoint("127.0.0.1", 0, 0, conf)
    address = f"spark://127.0.0.1:{made._1().address().port()}"
    masters = SparkContext._gateway.new_array(jvm.java.lang.String, 1)
    masters[0] = address
    for number in (2, 3):
        nobody = jvm.scala.Option.empty()
        deploy.worker.Worker.startRpcEnvAndEndpoint(
            f"127.0.0.{number}", 0, 0, 1, 1024, masters, str(scratch / f"worker-{number}"),
            jvm.scala.Option.apply(number), conf, nobody,
        )  # fmt: skip
    return address


def write_with_a_late_twin(spark: Any, root: Path, marker: Path) -> None:
    """write_partitions: the twin finds the staging area gone."""
    job = plan_write(root, "pieces")

    def stage(rows: Any) -> Any:
        from pyspark import TaskContext

        taken, context = list(rows), TaskContext.get()
        if context.partitionId() == 0:
            return write_partitions(taken, job)
        if context.attemptNumber():
            wait_for(f"{marker}.held")  # else the other one is stopped before it has its rows
            return write_partitions(taken, job)
        leave(f"{marker}.held")
        wait_for(f"{marker}.committed")
        try:
            found = list(write_partitions(taken, job))
        except errors.FolderError as error:
            leave(f"{marker}.late", str(error))
            raise
        return iter(found)

    rows = [b"%d" % number for number in range(200)]
    commit_write(job, spark.sparkContext.parallelize(rows, 2).mapPartitions(stage).collect())
    leave(f"{marker}.committed")
    wait_for(f"{marker}.late")


def write_by_format(spark: Any, root: Path, marker: Path, point: str) -> None:
    frame = spark.range(0, 400, numPartitions=2).selectExpr(
        "CAST(id AS string) AS value", "CAST(id % 5 AS string) AS __key"
    )
    if point == "executor":  # what others have shuffled is lost with it
        frame = frame.repartition(2, "__key").sortWithinPartitions("__key", "value")
    given = {"root": str(root), "topic": point, "dieAt": point, "marker": str(marker)}
    frame.write.format("pulsarx-dying-batch").options(**given).mode("append").save()
    if point == "slow":
        leave(f"{marker}.committed")
        wait_for(f"{marker}.late")


def main(folder: str, scratch: str) -> None:
    root, marks = Path(folder), Path(scratch)
    spark = small_session("cluster", start_cluster(marks), **SETTINGS)
    spark.dataSource.register(DyingBatchSource)
    write_with_a_late_twin(spark, root, marks / "pieces")
    write_by_format(spark, root, marks / "slow", "slow")
    write_by_format(spark, root, marks / "executor", "executor")
    leave(marks / "done")
    os._exit(0)  # nothing of the cluster needs to be put down in order


if __name__ == "__main__":
    main(*sys.argv[1:])
