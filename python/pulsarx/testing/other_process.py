"""Another process on the folder of a test, which is killed when the test says so. For tests of
programs that share a folder with others: owner and guests take over from each other."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import contextmanager
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from pulsarx import errors
from pulsarx._pycore.ground import file_system
from pulsarx._pycore.ground.locks import Lock
from pulsarx._pycore.ground.threads import OwnThread
from pulsarx.client import Client
from pulsarx.clock import Deadline
from pulsarx.testing.faults import FaultPlan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# What a child has to know before it can load this module, and a function of the test.
_PROGRAM = """
import pickle, sys
sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[1]))
from pulsarx.testing.other_process import run_child
run_child(int(sys.argv[2]))
"""
_ANSWER_SECONDS = 60.0  # a child that hangs fails; one on a busy machine does not


class OtherProcess:
    """A process with a client of a folder, for whoever made it; see other_process."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes], link: Connection) -> None:
        """Use `other_process`.

        Args:
            folder: The folder.
            process: The process, which has begun.
            link: The connection to it.
        """
        self.folder = folder
        self._process = process
        self._link = link
        self._outcome: tuple[str, Any] | None = None  # of its work; None: it told of none

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def kill(self, op: str | None = None, call: int = 1) -> None:
        """Kill the process as by kill -9: at once, or in front of an operation on files.

        Args:
            op: Such as write, flush, rename, link: see FaultPlan.fail; None: it is dead when this
                returns.
            call: Which one from here on, from 1.

        Raises:
            ValueError: There is no such operation.
            RuntimeError: The process has ended, and was to be killed in front of an operation.
        """
        if op is not None:
            try:
                self._ask(("kill", op, call))
            except EOFError:
                raise RuntimeError(
                    f"kill process {self.pid} on {self.folder}: it has ended"
                ) from None
            return
        self._process.kill()
        self._process.wait()

    def close(self, timeout_seconds: float = 10.0) -> Any:
        """Let the process close its client and end, when its work is done.

        Args:
            timeout_seconds: Seconds of real time.

        Returns:
            What its work returned; None where it has none or was killed.

        Raises:
            Timeout: It has not ended by then.
            RuntimeError: It ended by itself before its work was done.
        """
        try:
            self._ask(("close",))
        except EOFError:
            pass  # it has ended
        return self.wait(timeout_seconds)

    def wait(self, timeout_seconds: float = 10.0) -> Any:
        """Wait until the process has ended: it was killed, or its work is done. What its work
        raised is raised here.

        Args:
            timeout_seconds: Seconds of real time.

        Returns:
            What its work returned; None where it has none or was killed.

        Raises:
            Timeout: It has not ended by then.
            RuntimeError: It ended by itself before its work was done.
        """
        deadline = Deadline(timeout_seconds * 1000)
        try:
            while self._link.poll(_seconds(deadline)):
                self._keep(*self._link.recv())
        except (EOFError, OSError):
            pass  # it has ended, or is about to
        try:
            self._process.wait(_seconds(deadline))
        except subprocess.TimeoutExpired:
            raise errors.Timeout(
                detail=f"wait for process {self.pid} on {self.folder}: it has not ended after "
                f"{timeout_seconds:g} s"
            ) from None
        if self._outcome is None:
            if self._process.returncode == -signal.SIGKILL:
                return None
            raise RuntimeError(
                f"process {self.pid} on {self.folder} ended with {self._process.returncode} before "
                "its work was done"
            )
        kind, value = self._outcome
        if kind == "raised":
            raise value
        return value

    def _ask(self, request: tuple[Any, ...]) -> None:
        """Have a request carried out. EOFError: the process has ended."""
        try:
            self._link.send(request)
        except OSError:
            raise EOFError from None
        kind, value = self._answer()
        if kind == "raised":
            raise value

    def _answer(self) -> tuple[str, Any]:
        """The answer to a request; what its work came to is kept."""
        while True:
            if not self._link.poll(_ANSWER_SECONDS):
                raise errors.Timeout(
                    detail=f"process {self.pid} on {self.folder}: no answer after "
                    f"{_ANSWER_SECONDS:g} s"
                )
            try:
                kind, value = self._link.recv()
            except OSError:
                raise EOFError from None
            if not self._keep(kind, value):
                return kind, value

    def _keep(self, kind: str, value: Any) -> bool:
        """Whether it is what its work came to."""
        if kind.startswith("work "):
            self._outcome = kind.removeprefix("work "), value
            return True
        return False


def _seconds(deadline: Deadline) -> float:
    return (deadline.remaining_ms() or 0) / 1000


@contextmanager
def other_process(
    folder: str | os.PathLike[str],
    work: Callable[[Client], object] | None = None,
    *,
    kill_at: tuple[str, int] | None = None,
    **options: Any,
) -> Iterator[OtherProcess]:
    """Have another process open a folder: it owns the folder, or is a guest of who has it open. The
    process is killed at the end of the block, unless it has ended.

    Args:
        folder: A folder, or the place of a new one.
        work: Called there with the client; the client is closed and the process ends when it
            returns. A function of a module: it is found there by its name. None: the client stays
            open until `close` or `kill`.
        kill_at: An operation on files and which call of it, from 1, counted from when work begins:
            the process is killed in front of it. See FaultPlan.kill.
        **options: Arguments of its Client, such as durability.

    Yields:
        The process, whose client is open.

    Raises:
        ValueError: work is a function of a program, which another process cannot find, or kill_at
            names no operation.

    Example:
        from pulsarx.testing import other_process, published

        with other_process("shop") as owner, pulsarx.Client("shop") as guest:
            producer = guest.create_producer("orders")
            producer.send(b"one")
            owner.kill()
            producer.send(b"two")  # the guest owns the folder now
            published(guest, "orders", b"one", b"two", only=True)
    """
    place = Path(folder).absolute()
    task = (str(place), options, kill_at, _module_of(work), pickle.dumps(work))
    file_system.hold_low_descriptors()
    link, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, pickle.dumps(sys.path).hex(), str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    other = OtherProcess(place, process, link)
    try:
        try:
            other._ask(task)
        except EOFError:
            status = process.wait()
            if kill_at is None or status != -signal.SIGKILL:
                raise RuntimeError(f"the process on {place} ended with {status}") from None
        yield other
    finally:
        other.kill()
        link.close()


def _module_of(work: Callable[[Client], object] | None) -> tuple[str, str | None]:
    """The name of the module a function is of, and the file; "": there is none."""
    function = getattr(work, "func", work)  # of a functools.partial
    name = getattr(function, "__module__", "") or ""
    if name == "__main__":
        raise ValueError(
            "work: a function of a module, so that another process can find it, not of the program "
            "itself"
        )
    return name, getattr(sys.modules.get(name), "__file__", None)


# In the child -------------------------------------------------------------------------------------


def run_child(descriptor: int) -> None:
    """Do what the parent wants.

    Args:
        descriptor: The descriptor of the connection to it.
    """
    link = Connection(descriptor)
    sending = Lock()

    def tell(kind: str, value: object = None) -> None:
        with sending:
            _tell(link, kind, value)

    folder, options, kill_at, module, pickled = link.recv()
    plan = FaultPlan()
    try:
        _load(*module)
        work = pickle.loads(pickled)
        client = Client(folder, **options)
        file_system.faults_install()
        if kill_at is not None:
            plan.kill(*kill_at)
    except Exception as error:
        tell("raised", error)
        return
    tell("done")

    def follow() -> None:
        try:
            while True:
                name, *arguments = link.recv()
                if name == "close":
                    tell("done")
                    return
                try:
                    plan.kill(*arguments)
                except ValueError as error:
                    tell("raised", error)
                else:
                    tell("done")
        except (EOFError, OSError):
            os._exit(1)  # the parent is gone, and nobody is left to say when this ends

    closing = OwnThread(follow, "pulsarx-test")
    closing.start()
    kind = "work returned"
    value: object = None
    try:
        if work is None:
            closing.join()
        else:
            value = work(client)
    except BaseException as error:
        kind, value = "work raised", error
    try:
        client.close()
    except Exception as error:
        if kind == "work returned":
            kind, value = "work raised", error
    tell(kind, value)


def _load(name: str, file: str | None) -> None:
    """Load a module by its name, or by its file where it lies in no folder that Python looks in."""
    from importlib import import_module
    from importlib.util import module_from_spec, spec_from_file_location

    if not name or name in sys.modules:
        return
    try:
        import_module(name)
    except ModuleNotFoundError:
        spec = spec_from_file_location(name, file) if file else None
        if spec is None or spec.loader is None:
            raise
        module = module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)


def _tell(link: Connection, kind: str, value: object) -> None:
    """Send something, or in words where it cannot be pickled and read again."""
    try:
        pickle.loads(pickle.dumps(value))
    except Exception:
        said = repr(value)
        value = RuntimeError(said) if isinstance(value, BaseException) else said
    link.send((kind, value))
