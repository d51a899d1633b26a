"""What stands for Python where Spark starts its workers is one to whoever starts it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="no PySpark: pip install 'pulsarx[spark]'")

from prepared_python import PreparedPython

# Told what to do, and by whom it was started.
MODULE = """
import os, signal, sys
print(sys.argv[1:], os.environ.get("PREPARED_FOR"), os.getcwd(), os.environ["ASKED"], flush=True)
print(sys.stdin.readline(), end="", file=sys.stderr, flush=True)
if sys.argv[1] == "exit":
    sys.exit(int(sys.argv[2]))
if sys.argv[1] == "raise":
    raise RuntimeError("planted")
if sys.argv[1] == "wait":
    signal.pause()
os.kill(os.getpid(), signal.SIGKILL)
"""

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(worker_python: PreparedPython, tmp_path: Path) -> Start:
    (tmp_path / "planted.py").write_text(MODULE)

    def begin(*arguments: str, **environment: str) -> subprocess.Popen[str]:
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(
            [worker_python.program, *arguments],
            env={**os.environ, "ASKED": "something", **environment},
            cwd=tmp_path,
            text=True,
            **pipes,
        )

    return begin


@pytest.mark.parametrize(
    ("arguments", "code"), [(["exit", "7"], 7), (["raise"], 1), (["kill"], 128 + signal.SIGKILL)]
)
def test_it_is_forked_and_ends_as_its_module_does(
    start: Start, tmp_path: Path, arguments: list[str], code: int
) -> None:
    child = start("-m", "planted", *arguments)
    said, failed = child.communicate("a line\n")
    assert said.splitlines() == [f"{arguments} {child.pid} {tmp_path} something"]
    assert failed.startswith("a line\n") and ("RuntimeError: planted" in failed) == (code == 1)
    assert child.returncode == code


def test_a_signal_ends_its_module(start: Start) -> None:
    child = start("-m", "planted", "wait")
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None
    child.stdin.write("a line\n")
    child.stdin.flush()
    assert child.stderr.readline() == "a line\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait() == 128 + signal.SIGTERM


def test_its_module_dies_with_it(start: Start) -> None:
    """As in the process group of a driver that is killed."""
    child = start("-m", "planted", "wait")
    assert child.stdin is not None and child.stdout is not None
    child.stdout.readline()
    child.kill()
    child.wait()
    assert child.stdout.read() == ""  # nobody has the other end any more


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(["-m", "planted", "exit", "3"], {"PYTHONHASHSEED": "1"}), (["planted.py", "exit", "3"], {})],
)
def test_what_cannot_be_forked_is_a_python_of_its_own(
    start: Start, arguments: list[str], environment: dict[str, str]
) -> None:
    child = start(*arguments, **environment)
    said, _ = child.communicate("")
    assert said.startswith("['exit', '3'] None ") and child.returncode == 3


def test_workers_of_spark_are_forked_from_it(spark: Any, worker_python: PreparedPython) -> None:
    """Those of tasks. Planning has another variable."""
    found = spark.sparkContext.parallelize([1], 1).map(lambda _: os.environ.get("PREPARED_FOR"))
    assert found.collect() != [None]
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == worker_python.program
