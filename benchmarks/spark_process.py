"""The process with a Spark session, seen from the benchmarks: asks spark_sides.py for one side
after the other. One session a process, so each kind of socket has one."""

from __future__ import annotations

import importlib.util
import json
import os
import select
import subprocess
import sys
from pathlib import Path
from typing import Any

from fresh_process import HERE, TREE

ANSWER_SECONDS_MAX = 900


def spark_is_missing() -> str:
    """Why nothing can be measured with Spark; empty: it can."""
    for package in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed: pip install 'pulsarx[spark]'"
    sys.path.append(str(TREE))  # found there by whoever has not installed it
    from pulsarx.spark.java_runtime import JavaNotFoundError, find_java

    try:
        find_java()
    except JavaNotFoundError as error:
        return str(error)
    return ""


class SparkProcess:
    """As a context manager: the process ends with the block."""

    def __init__(self, folder: Path, sockets: str) -> None:
        """sockets: tcp, as Spark has it, or uds, Unix domain sockets."""
        self.sockets = sockets
        folder.mkdir(parents=True)
        self.log = folder / "log"
        paths = [str(TREE), str(HERE), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        environment.setdefault("PYSPARK_PYTHON", sys.executable)
        with self.log.open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(HERE / "spark_sides.py"), str(folder), sockets],
                env=environment,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def ask(self, what: str, **arguments: Any) -> Any:
        """Have a side do something, and wait for it."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        try:
            print(json.dumps([what, arguments]), file=process.stdin, flush=True)
            ready = select.select([process.stdout], [], [], ANSWER_SECONDS_MAX)[0]
            line = process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line = ""
        if not line:
            raise RuntimeError(f"{what}: no answer from Spark:\n{self.log.read_text()[-3000:]}")
        found = json.loads(line)
        if "error" in found:
            raise RuntimeError(f"{what} {arguments}:\n{found['error']}")
        return found["answer"]

    def __enter__(self) -> SparkProcess:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(60)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
