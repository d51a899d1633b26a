"""Programs that a test waits for and kills: drivers of Spark, owners of a folder."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from dying_batch import wait_for

HERE = Path(__file__).resolve().parent
_SHOWN = 5000  # bytes of what a program has said, where a test waited in vain


class Program(subprocess.Popen[bytes]):
    """A Python of its own, and what it says."""

    def __init__(self, said: BinaryIO, *arguments: Any) -> None:
        self._said = said
        command = [sys.executable, *map(str, arguments)]
        super().__init__(command, start_new_session=True, stdout=said, stderr=said, cwd=HERE)

    def wait_for(self, path: Path) -> None:
        """Until it has made a file."""
        with contextlib.suppress(TimeoutError):
            wait_for(path, lambda: self.poll() is None)
        assert path.exists(), f"no {path.name}; ended with {self.poll()}\n{self.last_words()}"

    def last_words(self) -> str:
        size = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(size - _SHOWN, 0))
        return self._said.read().decode(errors="replace")


@contextlib.contextmanager
def program(*arguments: Any) -> Iterator[Program]:
    """It is killed at the end, with the Java it has started. Workers follow: they hang up when Java
    is gone."""
    with tempfile.TemporaryFile() as said:
        child = Program(said, *arguments)
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
