"""`python -m pulsarx serve`, as a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pulsarx

pytestmark = pytest.mark.standard
PATIENCE_SECONDS = 60.0


class Command:
    """The command, as it runs."""

    def __init__(self, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(Path(pulsarx.__file__).parent.parent)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pulsarx", "serve", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def url(self) -> str:
        """What it says when it listens."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.fullmatch(r".+ is served at (pulsar://127\.0\.0\.1:\d+)\n", line)
        assert found, line + self.ended()[1]
        return found[1]

    def ended(self) -> tuple[int, str]:
        """Its exit status and what it complained about, when it has ended."""
        _, said = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, said


@pytest.fixture
def run() -> Iterator[Any]:
    made: list[Command] = []

    def start(*arguments: str) -> Command:
        made.append(Command(*arguments))
        return made[-1]

    yield start
    for each in made:
        each.process.kill()
        each.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_folder_is_served_until_a_signal_comes(tmp_path: Path, run: Any, number: int) -> None:
    pulsar: Any = pytest.importorskip("pulsar")
    command = run(str(tmp_path), "--port=0")
    client = pulsar.Client(command.url(), logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    consumer = client.subscribe("t", "s")
    producer = client.create_producer("t")
    for text in (b"a", b"b", b"c"):
        producer.send(text)
    first = consumer.receive(60_000)
    consumer.acknowledge(first)
    consumer.close()
    command.process.send_signal(number)
    assert command.ended() == (0, "")
    client.close()
    with pulsarx.Client(str(tmp_path)) as after:
        again = after.subscribe("t", "s")
        assert [again.receive(60_000).data() for _ in range(2)] == [b"b", b"c"]


def test_it_owns_the_folder(tmp_path: Path, run: Any) -> None:
    command = run(str(tmp_path), "--port", "0")
    command.url()
    status, said = run(str(tmp_path), "--port=0").ended()
    assert status == 1
    assert str(command.process.pid) in said


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ((), "which folder"),
        (("a", "b"), "which folder"),
        (("a", "--port"), "needs a value"),
        (("a", "--port=x"), "0 to 65535"),
        (("a", "--port=70000"), "0 to 65535"),
        (("a", "--tls"), "no option --tls"),
        (("memory:", "--host=0.0.0.0", "--port=0"), "anonymous"),
    ],
)
def test_what_cannot_be_understood_or_is_refused(
    run: Any, arguments: tuple[str, ...], complaint: str
) -> None:
    status, said = run(*arguments).ended()
    assert status == 2
    assert complaint in said
