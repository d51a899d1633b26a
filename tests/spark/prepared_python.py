"""The Python of Spark's workers, forked from one that has imported what they need. Spark starts one
for each kind of planning, each daemon of workers and each stream, and each takes two seconds to
compile PySpark out of its archive and to import pandas.

`PreparedPython` leaves a program that Spark takes for Python. It hands what it was started with to
a server, which forks, and it ends as that child does:

    python prepared_python.py SOCKET      the server on an open socket; ends with its input

What no child of the server can be, is a Python of its own.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

HASH_SEED = "0"  # PySpark gives it to its workers
PID_DIGITS = 10
_SET_NAME = 15  # of prctl
IMPORTED = [
    "pandas",
    "pyarrow.pandas_compat",
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.python_streaming_sink_runner",
    "pyspark.sql.worker.write_into_data_source",
    "pyspark_pulsarx",
    "pulsarx.spark.batch_reader",
    "pulsarx.spark.batch_writer",
    "pulsarx.spark.data_source",
    "pulsarx.spark.row_batches",
    "pulsarx.spark.stream_reader",
    "pulsarx.spark.stream_writer",
]
# It is started as often as Python would be: without `site`, and with little of the library.
CLIENT = """\
import _socket, array, json, os, signal, sys

PYTHON, ADDRESS, HASH_SEED, PID_DIGITS = {settings}

def start_python():
    os.execv(PYTHON, [PYTHON, *sys.argv[1:]])

if sys.argv[1:2] != ["-m"] or os.environ.get("PYTHONHASHSEED", HASH_SEED) != HASH_SEED:
    start_python()
server = _socket.socket(_socket.AF_UNIX)
try:
    server.connect(ADDRESS)
except OSError:
    start_python()
signals = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
files = array.array("i", [0, 1, 2])
server.sendmsg([b" "], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, files)])
asked = [sys.argv[2:], os.getcwd(), os.getpid(), dict(os.environ)]
server.sendall(json.dumps(asked).encode() + b"\\n")
child = int(server.recv(PID_DIGITS))
for number in signals:
    signal.signal(number, lambda number, _: os.kill(child, number))
signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
os._exit(int(server.recv(100)))
"""


class PreparedPython:
    """As a context manager: Sessions of this process, and of those that it starts, begin their
    workers by it."""

    def __init__(self) -> None:
        # The address of a socket is short, and the folders of tests may be deep.
        self._folder = tempfile.TemporaryDirectory(prefix="spark-python-")
        client, program = (Path(self._folder.name, name) for name in ("client.py", "python"))
        address = str(client.with_name("server"))
        settings = (sys.executable, address, HASH_SEED, PID_DIGITS)
        client.write_text(CLIENT.format(settings=settings))
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -IS '{client}' \"$@\"\n")
        program.chmod(0o755)
        self.program = str(program)
        environment = {
            "PYTHONHASHSEED": HASH_SEED,
            # Only a process without threads can be forked safely: pandas and Arrow start some.
            "OPENBLAS_NUM_THREADS": "1",
            "JE_ARROW_MALLOC_CONF": "background_thread:false",
        }
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(100)
            self._server = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                env=os.environ | environment,
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                process_group=0,
            )

    def __enter__(self) -> PreparedPython:
        # The driver's for planning, the other one for tasks.
        self._before = {
            name: os.environ.get(name) for name in ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
        }
        os.environ |= dict.fromkeys(self._before, self.program)
        return self

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()
        self._folder.cleanup()


class Server:
    """Forks a child for each client, and tells the client how that child has ended."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno())
        self._clients: dict[int, socket.socket] = {}  # by the process of the child
        self._selector = selectors.DefaultSelector()
        for each in (0, self._listener, self._woken):
            self._selector.register(each, selectors.EVENT_READ)

    def serve(self) -> list[Any] | None:
        """What a client asks for, in the child for it; None in the server, at its end."""
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    return None
                elif key.fileobj is self._woken:
                    self._woken.recv(1000)
                    self._tell_ends()
                elif key.fileobj is self._listener:
                    asked = self._fork(self._listener.accept()[0])
                    if asked is not None:
                        return asked
                else:
                    self._end_without_client(key.data)

    def _fork(self, client: socket.socket) -> list[Any] | None:
        try:
            _, files, _, _ = socket.recv_fds(client, 1, 3)
            with client.makefile("rb") as lines:
                asked: list[Any] = json.loads(lines.readline())
        except (OSError, ValueError):  # killed before it had asked
            client.close()
            return None
        child = os.fork()
        if not child:
            self._leave(client)
            for index, file in enumerate(files):
                os.dup2(file, index)
        for file in files:
            os.close(file)
        if not child:
            return asked
        self._clients[child] = client
        self._selector.register(client, selectors.EVENT_READ, child)
        with contextlib.suppress(OSError):  # killed, as will be noticed
            client.sendall(b"%*d" % (PID_DIGITS, child))
        return None

    def _leave(self, client: socket.socket) -> None:
        """In a child: nothing of the server is left."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (self._listener, self._woken, self._waker, client, *self._clients.values()):
            each.close()

    def _tell_ends(self) -> None:
        while True:
            try:
                child, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not child:
                return
            code = os.waitstatus_to_exitcode(status)
            client = self._forget(child)
            if client is not None:
                with contextlib.suppress(OSError):
                    client.sendall(b"%d" % (code if code >= 0 else 128 - code))
                client.close()

    def _end_without_client(self, child: int) -> None:
        """It was killed, with the process group that both would be in; a daemon leaves that."""
        client = self._forget(child)
        if client is not None:
            client.close()
            if os.getpgid(child) != child:
                os.kill(child, signal.SIGKILL)

    def _forget(self, child: int) -> socket.socket | None:
        client = self._clients.pop(child, None)
        if client is not None:
            self._selector.unregister(client)
        return client


def become(
    library: list[str], arguments: list[str], folder: str, client: int, environment: dict[str, str]
) -> NoReturn:
    """What the parent of the client wanted: `python -m` and these arguments."""
    os.environ.clear()
    os.environ.update(environment, PREPARED_FOR=str(client))
    ctypes.CDLL(None).prctl(_SET_NAME, b"for %d" % client, 0, 0, 0)  # for spark_processes
    time.tzset()
    os.chdir(folder)
    # Not PySpark's archives, whose contents Python lists anew for every task.
    told = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [folder, *(path for path in told if not path.endswith(".zip")), *library]
    sys.argv[:] = arguments
    sys.modules.pop(arguments[0], None)  # runpy warns of a module that is there already
    code = 0
    try:
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    # As at the end of Python, which would also take all modules apart, and so copy their memory.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def main(listener: socket.socket) -> None:
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    library = [path for path in sys.path[1:] if path not in given]
    for name in IMPORTED:
        importlib.import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, "an import has started a thread"
    gc.collect()
    gc.freeze()  # children share it, as long as they do not write to it
    asked = Server(listener).serve()
    if asked is not None:
        become(library, *asked)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
