"""Spark's standalone cluster and PulsarX: `python examples/spark_cluster.py [FOLDER]`.

Starts a master and two workers on this machine, each on an address of its own of the loopback, and
submits three jobs. Each writes a topic and reads it, by tasks of both workers:

  1. into a folder that driver and workers have under the same path, as on a shared mount
  2. into one that the driver has and the workers have not; it is told, and nothing is written
  3. into that folder over pulsar://, where `pulsarx serve` serves it

Says which commands it runs, so that they can be typed on real hosts (docs/spark-cluster.md). Ends
with 1 when a job did something else. Needs the extras spark, pulsar and serve of PulsarX, and Java.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pulsarx

if TYPE_CHECKING:
    import pyarrow as pa

HOST = "127.0.0.1"  # of the master and the driver
WORKERS = ("127.0.0.2", "127.0.0.3")
ROWS = 2000
TOPIC = "numbers"
SECONDS_MAX = 180  # until a process is ready
# Both executors are there before the first task begins, so that both get some.
SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.sql.shuffle.partitions": "4",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


# The job ------------------------------------------------------------------------------------------


def places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In the tasks: the folder that this executor works in, and the sum of its numbers."""
    import pyarrow as pa

    numbers = [int(each.as_py()) for batch in batches for each in batch["value"]]
    found = {"place": [os.getcwd()], "rows": [len(numbers)], "total": [sum(numbers)]}
    yield pa.RecordBatch.from_pydict(found)


def job(options: dict[str, str]) -> None:
    """The driver, which spark-submit runs."""
    spark: Any = pulsarx.spark.session("spark_cluster")
    rows = spark.range(ROWS, numPartitions=4).selectExpr(
        "CAST(id AS string) AS value", "CAST(id % 7 AS string) AS __key"
    )
    written = {"topic": TOPIC, "createTopic": "true"}
    rows.write.format("pulsarx").options(**options, **written).mode("append").save()

    frame = spark.read.format("pulsarx").options(
        **options, topic=TOPIC, columns="value", minPartitions="4"
    )
    schema = "place string, rows long, total long"
    found = frame.load().mapInArrow(places, schema).collect()
    told = {
        "rows": sum(row["rows"] for row in found),
        "total": sum(row["total"] for row in found),
        "executors": len({row["place"] for row in found}),
    }
    print(json.dumps(told), flush=True)
    spark.stop()


# The cluster --------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def spark_environment() -> dict[str, str]:
    """Also what Spark's workers start executors with: a daemon has an environment of its own."""
    import pyspark

    from pulsarx.spark.java_runtime import find_java
    from pulsarx.spark.small_java import home_for_spark

    given = {name: each for name, each in os.environ.items() if not name.startswith("SPARK_")}
    return given | {
        "JAVA_HOME": home_for_spark(find_java()),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }


class Machine:
    """What runs here; all of it ends with the block."""

    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.environment = spark_environment()
        self._stack = ExitStack()
        self._spark = Path(self.environment["SPARK_HOME"], "bin")

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, name: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        say(shlex.join(command))
        log = self._stack.enter_context((self.scratch / f"{name}.log").open("wb"))
        child = subprocess.Popen(
            command,
            env=self.environment | environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        self._stack.callback(end, child)
        return child

    def cluster(self) -> str:
        """The address of a master that has both workers."""
        spark_class = str(self._spark / "spark-class")
        port, web = free_port(), free_port()
        master = ["--host", HOST, "--port", str(port), "--webui-port", str(web)]
        self.start("master", spark_class, "org.apache.spark.deploy.master.Master", *master)
        address = f"spark://{HOST}:{port}"
        for number, host in enumerate(WORKERS):
            place = str(self.scratch / f"work-{number}")
            named = ["--host", host, "--cores", "1", "--memory", "512m", "--webui-port", "0"]
            named += ["--work-dir", place, address]
            worker = "org.apache.spark.deploy.worker.Worker"
            self.start(f"worker-{number}", spark_class, worker, *named, SPARK_LOCAL_IP=host)
        wait_for(f"{len(WORKERS)} workers", lambda: workers_of(web) == len(WORKERS))
        return address

    def submit(self, master: str, cwd: Path, **options: str) -> subprocess.CompletedProcess[str]:
        """The driver is on this host (deploy mode client)."""
        settings = [
            word for name, each in SETTINGS.items() for word in ("--conf", f"{name}={each}")
        ]
        script = [str(Path(__file__).resolve()), "job", json.dumps(options)]
        command = [str(self._spark / "spark-submit"), "--master", master]
        say(shlex.join([*command, "...", *script]))
        return subprocess.run(
            [*command, *settings, *script],
            cwd=cwd,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    @contextmanager
    def served(self, folder: Path) -> Iterator[dict[str, str]]:
        """The options by which it is reached."""
        port, http = str(free_port()), str(free_port())
        serve = [sys.executable, "-m", "pulsarx", "serve", str(folder), "--port", port]
        child = self.start("serve", *serve, "--http-port", http)
        log = self.scratch / "serve.log"
        wait_for("the server", lambda: b"administered" in log.read_bytes())
        try:
            yield {"root": f"pulsar://{HOST}:{port}", "adminUrl": f"http://{HOST}:{http}"}
        finally:
            end(child)


def workers_of(web: int) -> int:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{web}/json/", timeout=10) as answer:
            return int(json.load(answer)["aliveworkers"])
    except OSError:
        return 0  # it does not listen yet


def wait_for(what: str, holds: Any) -> None:
    ends = time.monotonic() + SECONDS_MAX
    while not holds():
        if time.monotonic() > ends:
            raise TimeoutError(f"waited {SECONDS_MAX} s for {what}")
        time.sleep(0.1)


def end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(30)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def say(text: str) -> None:
    print(text, flush=True)


# What the jobs do ---------------------------------------------------------------------------------


def is_right(run: subprocess.CompletedProcess[str]) -> bool:
    """Every row was read once, by tasks of both workers."""
    told = [line for line in run.stdout.splitlines() if line.startswith("{")]
    say(f"    {told[-1] if told else run.stderr[-3000:]}")
    wanted = {"rows": ROWS, "total": ROWS * (ROWS - 1) // 2, "executors": len(WORKERS)}
    return bool(told) and json.loads(told[-1]) == wanted


def is_refused(run: subprocess.CompletedProcess[str]) -> bool:
    """The host and the path are told."""
    told = run.stdout + run.stderr
    lines = [line.strip() for line in told.splitlines() if "FolderError: " in line]
    say(f"    {lines[0][:400] if lines else told[-3000:]}")
    return run.returncode != 0 and bool(lines)


def count(folder: Path) -> int:
    with pulsarx.Client(folder, read_only=True) as client:
        if not client.admin.topics.get_list():
            return 0
        reader = client.create_reader(TOPIC, pulsarx.MessageId.earliest)
        found = 0
        while some := reader.read_many(1000, 0):
            found += len(some)
        return found


def main(scratch: Path) -> int:
    shared, private = scratch / "shared", scratch / "private"
    for folder in (shared, private):
        pulsarx.Client(folder).close()
    failed: list[str] = []

    def check(holds: bool, what: str) -> None:
        say(f"    {'right' if holds else 'WRONG'}: {what}\n")
        if not holds:
            failed.append(what)

    with Machine(scratch) as machine:
        master = machine.cluster()
        say("\n1. The folder is on every host under the same path.")
        check(is_right(machine.submit(master, scratch, root=str(shared))), "written and read")
        check(count(shared) == ROWS, f"plain Python finds {ROWS} messages")

        # A path over the working directory, which executors have another one of.
        root = f"/proc/self/cwd/{private.name}"
        say("2. The driver alone has the folder.")
        check(is_refused(machine.submit(master, scratch, root=root)), "the job fails and says so")
        check(count(private) == 0, "nothing was written")

        say("3. The workers reach it over pulsar://.")
        with machine.served(private) as options:
            check(is_right(machine.submit(master, scratch, **options)), "written and read")
        check(count(private) == ROWS, f"plain Python finds {ROWS} messages")
    say("All is right." if not failed else f"WRONG: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    import pulsarx.spark

    if sys.argv[1:2] == ["job"]:
        job(json.loads(sys.argv[2]))
    elif len(sys.argv) > 1:
        given = Path(sys.argv[1]).resolve()
        given.mkdir(parents=True, exist_ok=True)
        sys.exit(main(given))
    else:
        with tempfile.TemporaryDirectory(prefix="spark-cluster-") as made:
            sys.exit(main(Path(made)))
