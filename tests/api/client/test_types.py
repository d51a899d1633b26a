"""What type checkers make of programs that use the library, and what the classes are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pulsarx
from pulsarx import MessageId

PROGRAM = Path(__file__).with_name("typed_program.py")
TREE = Path(pulsarx.__file__).parent.parent


def check(*arguments: str | Path) -> tuple[int, str]:
    """mypy, as a user without options of ours runs it."""
    cache = TREE.parent / "mypy-of-users"
    # What is installed is read, and not complained about: PySpark may be missing.
    options = ("--strict", "--config-file=", "--python-version=3.11", f"--cache-dir={cache}",
               "--follow-imports=silent")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(TREE)},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.standard
def test_mypy_knows_the_types_of_a_program(tmp_path: Path) -> None:
    """It used to know no exception, nor the contents of a consumer in a `with`."""
    pytest.importorskip("mypy", reason="it comes with the extra lint")
    code, told = check(PROGRAM)
    assert code == 0, told
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        """
import pulsarx

def send(producer: pulsarx.Producer[bytes]) -> None:
    producer.send("text")
    producer.sent(b"x")
    pulsarx.NotThere
    pulsarx.aio.Clint
    pulsarx.testing.FaultPlan().nothing
    with pulsarx.Client("memory:").subscribe("t", "s") as consumer:
        consumer.receive().data() + 1
"""
    )
    code, told = check(wrong)
    lines = [line.split(":")[1] for line in told.splitlines() if ": error:" in line]
    assert (code, lines) == (1, ["5", "6", "7", "8", "9", "11"]), told


def test_that_program_runs() -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_everything_that_is_made_is_of_the_public_classes(memory_client: pulsarx.Client) -> None:
    """A partitioned producer used to be of a class of its own."""
    client = memory_client
    client.admin.topics.create_partitioned_topic("p", 2)
    intercepted = {"interceptors": [pulsarx.ProducerInterceptor()]}
    for topic in ("t", "p"):
        assert isinstance(client.create_producer(topic), pulsarx.Producer)
        assert isinstance(client.create_producer(topic, **intercepted), pulsarx.Producer)
        assert isinstance(client.create_reader(topic, MessageId.earliest), pulsarx.Reader)
        with client.subscribe(topic, "s") as consumer:
            assert isinstance(consumer, pulsarx.Consumer)
    with client.subscribe(["t", "p"], "s") as consumer:
        assert isinstance(consumer, pulsarx.Consumer)
