"""A Python program in a process of its own, talked to over pipes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pulsarx

PATIENCE_SECONDS = 60.0  # a child that hangs fails; one on a busy machine does not
# A test run started in the background of a shell inherits deaf ears for it.
HEAR_CTRL_C = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
PACKAGE_PARENT = str(Path(pulsarx.__file__).parent.parent)


class ChildProcess:
    """Runs program with arguments in sys.argv[1:]; killed when the block ends."""

    def __init__(self, program: str, *arguments: object) -> None:
        environment = dict(os.environ, PYTHONPATH=PACKAGE_PARENT, PYTHONUNBUFFERED="1")
        self._process = subprocess.Popen(
            [sys.executable, "-c", HEAR_CTRL_C + program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self._unread = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def _output(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def _says_something(self) -> bool:
        """Wait for output, or its end."""
        waits = select.poll()  # select() takes no number from 1024 on
        waits.register(self._output(), select.POLLIN)
        return bool(waits.poll(PATIENCE_SECONDS * 1000))

    def line(self) -> str:
        """The next line the program printed."""
        while b"\n" not in self._unread:
            data = os.read(self._output(), 65536) if self._says_something() else b""
            if not data:
                raise AssertionError(f"the child said no line: {self._unread!r} {self._stop()}")
            self._unread += data
        found, _, self._unread = self._unread.partition(b"\n")
        return found.decode()

    def rest(self) -> list[str]:
        """All lines the program printed until it ended."""
        while True:
            if not self._says_something():
                raise AssertionError(f"the child did not end: {self._stop()}")
            data = os.read(self._output(), 65536)
            if not data:
                break
            self._unread += data
        whole, self._unread = self._unread, b""
        return whole.decode().splitlines()

    def tell(self, line: str = "") -> None:
        """Write a line to its input."""
        assert self._process.stdin is not None
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Returns when the process is stopped, if that is asked for."""
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def kill(self) -> None:
        """As the operating system does it: no handler runs."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> list[str]:
        """Wait until it ended well; what it printed."""
        lines = self.rest()
        code = self._process.wait(PATIENCE_SECONDS)
        assert self._process.stderr is not None
        errors = self._process.stderr.read().decode()
        assert code == 0, errors
        assert "Traceback" not in errors, errors
        return lines

    def _stop(self) -> str:
        self._process.kill()
        _, errors = self._process.communicate()
        return str(errors.decode())

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


def run_program(program: str, *arguments: object) -> list[str]:
    """Run a program to its good end; the lines it printed."""
    with ChildProcess(program, *arguments) as child:
        return child.end()


def let_all_read(folder: Path) -> None:
    """Nobody but its owner may write to the folder, everybody may read it."""
    for path in folder.parents:
        if "pytest" in str(path):
            path.chmod(0o755)
    for path in [folder, *folder.rglob("*")]:
        with suppress(FileNotFoundError):  # an owner may have finished with it
            path.chmod(0o755 if path.is_dir() else 0o644)
