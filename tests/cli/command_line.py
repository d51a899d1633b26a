"""Runs the command line: in this process, in one of its own, and on a pseudo-terminal."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from pulsarx.cli.root import root

TIMEOUT = 120  # seconds, for a machine that is busy
PROGRAM = [sys.executable, "-m", "pulsarx"]

OWNING = """
import sys, pulsarx
for line in sys.stdin:
    what, _, told = line.rstrip("\\n").partition(" ")
    if what == "own":
        client = pulsarx.Client(told)
        client.subscribe("orders", "billing")
        producer = client.create_producer("orders")
    elif what == "send":
        producer.send(told.encode())
    else:
        client.close()
    print("done", flush=True)
"""


def invoke(folder: Path | str, *arguments: str, stdin: Any = None) -> Result:
    """In this process."""
    return CliRunner().invoke(root, ["--url", str(folder), *arguments], input=stdin)


def rows(result: Result | subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """The JSON lines of a command that did not fail."""
    status = result.exit_code if isinstance(result, Result) else result.returncode
    assert status == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def process(folder: Path | str, *arguments: str, stdin: str = "") -> Any:
    """In a process of its own, with pipes."""
    return subprocess.run(
        [*PROGRAM, *arguments],
        env=_environment(folder),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def start(folder: Path | str, *arguments: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def on_terminal(
    folder: Path | str,
    *arguments: str,
    stdout: Any = None,
    columns: int = 160,
    until: str = "",
    times: int = 1,
    by: signal.Signals = signal.SIGINT,
) -> tuple[int, str]:
    """Exit status, and all that the terminal got. stdout: a file instead of the terminal. until:
    Ctrl-C, or another signal, comes when that was shown so many times."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    environment = {**_environment(folder), "TERM": "xterm-256color"}
    running = subprocess.Popen(
        [*PROGRAM, *arguments],
        env=environment,
        stdin=slave,
        stdout=slave if stdout is None else stdout,
        stderr=slave,
    )
    os.close(slave)
    got = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not part:
            break
        got += part
        if until and got.count(until.encode()) >= times:
            running.send_signal(by)
            until = ""
    os.close(master)
    return running.wait(TIMEOUT), got.decode()


def _environment(folder: Path | str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS")
    }
    return {**kept, "PULSARX_URL": str(folder)}


class OwningProcess:
    """A process that owns one folder after the other; as a context manager."""

    def __enter__(self) -> OwningProcess:
        pipe = subprocess.PIPE
        command = [sys.executable, "-c", OWNING]
        self._running = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        self.pid = self._running.pid
        return self

    def ask(self, what: str, told: str = "") -> None:
        """Have it done."""
        assert self._running.stdin is not None and self._running.stdout is not None
        self._running.stdin.write(f"{what} {told}\n")
        self._running.stdin.flush()
        assert self._running.stdout.readline() == "done\n"

    def __exit__(self, *_: object) -> None:
        self._running.communicate(timeout=TIMEOUT)


class Owner:
    """A process that owns a folder, with a consumer of orders/billing, and publishes to orders."""

    def __init__(self, process: OwningProcess, folder: Path) -> None:
        self._process = process
        self._owns = True
        self.pid = process.pid
        process.ask("own", str(folder))

    def send(self, text: str) -> None:
        self._process.ask("send", text)

    def end(self) -> None:
        """It gives the folder back."""
        if self._owns:
            self._process.ask("close")
        self._owns = False
