"""A Python program in a process of its own, talked to over pipes."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pytest

import pulsarx
from pulsarx.clock import Deadline

PATIENCE_SECONDS = 60.0  # a child that hangs fails; one on a busy machine does not
PACKAGE_PARENT = str(Path(pulsarx.__file__).parent.parent)
# Says on its standard error where it is, when it is asked to.
TELL_STACKS = "import faulthandler, signal\nfaulthandler.register(signal.SIGQUIT)\n"
LAST_WORDS_MS = 10_000  # which are said at once, but for a busy machine
_running: weakref.WeakSet[ChildProcess] = weakref.WeakSet()


def running() -> list[ChildProcess]:
    """Those that were not ended yet, for the report of a failure."""
    return sorted((each for each in _running if not each.is_over), key=lambda each: each.pid)


class ChildProcess:
    """Runs program with arguments in sys.argv[1:]; killed when the block ends."""

    def __init__(self, program: str, *arguments: object) -> None:
        environment = dict(os.environ, PYTHONPATH=PACKAGE_PARENT, PYTHONUNBUFFERED="1")
        self._process = subprocess.Popen(
            [sys.executable, "-c", TELL_STACKS + program, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        self._unread = b""
        self._last_words = b""
        self.is_over = False
        _running.add(self)

    @property
    def pid(self) -> int:
        return self._process.pid

    def _output(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def line(self) -> str:
        """The next line the program printed."""
        while b"\n" not in self._unread:
            data = _read_some(self._output(), PATIENCE_SECONDS * 1000)
            if not data:
                raise AssertionError(f"the child said no line: {self._unread!r} {self._stop()}")
            self._unread += data
        found, _, self._unread = self._unread.partition(b"\n")
        return found.decode()

    def rest(self) -> list[str]:
        """All lines the program printed until it ended."""
        while data := _read_some(self._output(), PATIENCE_SECONDS * 1000):
            self._unread += data
        if data is None:
            raise AssertionError(f"the child did not end: {self._stop()}")
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
        errors = self._errors()
        assert code == 0, errors
        assert "Traceback" not in errors, errors
        return lines

    def last_words(self) -> str:
        """How it is, what it said that nobody has read, and where its threads are."""
        assert self._process.stderr is not None
        status = self._process.poll()
        if status is None and not self._is_stopped():
            self._process.send_signal(signal.SIGQUIT)
        deadline = Deadline(LAST_WORDS_MS)
        while data := _read_some(self._process.stderr.fileno(), deadline.remaining_ms()):
            self._last_words += data
            if self._last_words.endswith(b" in <module>\n"):
                break  # of the main thread, which is the last one
        while data := _read_some(self._output(), 0):
            self._unread += data
        how = "lives" if status is None else f"ended with {status}"
        said = f"process {self.pid} {how}; nobody has read {self._unread!r}; it has said:\n"
        return said + self._last_words.decode(errors="replace")

    def _is_stopped(self) -> bool:
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def _errors(self) -> str:
        assert self._process.stderr is not None
        return (self._last_words + self._process.stderr.read()).decode(errors="replace")

    def _stop(self) -> str:
        found = self.last_words()
        self._process.kill()
        return found + self._errors()

    def __enter__(self) -> ChildProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, pytest.skip.Exception):
            error.add_note(self.last_words())
        self.is_over = True
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


def _read_some(file: int, timeout_ms: float | None) -> bytes | None:
    """What there is to read; empty: the end; None: nothing came in time."""
    waits = select.poll()  # select() takes no number from 1024 on
    waits.register(file, select.POLLIN)
    return os.read(file, 65536) if waits.poll(timeout_ms) else None


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
