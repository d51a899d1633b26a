"""Makes file operations fail by plan. For tests; one plan at a time in a process.

with fault_plan() as plan:
    plan.fail("flush", call=2)              # the second flush from here on answers EIO
    plan.fail("allocate", error=errno.ENOSPC, sticky=True)
    plan.stall("flush")                     # the next flush waits for plan.release()
    plan.delay("flush", seconds=5)          # the next flush takes five seconds longer
    plan.kill("link")                       # the process is killed in front of the next link
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from pulsarx._pycore.ground import file_system
from pulsarx._pycore.ground.delayed_calls import delay_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pulsarx.clock import ManualClock


class FaultPlan:
    """The faults in force. Any thread may add to it while others work."""

    def fail(
        self,
        op: str,
        call: int = 1,
        *,
        error: int = errno.EIO,
        sticky: bool = False,
        late: bool = False,
    ) -> None:
        """Let the call-th next operation be refused.

        Args:
            op: Such as write, flush, allocate, rename, link.
            call: Which one from here on, from 1.
            error: An errno.
            sticky: All later ones too.
            late: The operation is carried out and refused all the same.

        Raises:
            ValueError: There is no such operation.
        """
        kind = "late_error" if late else "error"
        file_system.faults_add(op, call, kind=kind, error=error, sticky=sticky)

    def short_write(self, call: int = 1, *, error: int = errno.EIO) -> None:
        """Let the call-th next write store half of its bytes, then be refused.

        Args:
            call: Which one from here on, from 1.
            error: An errno.
        """
        file_system.faults_add("write", call, kind="short", error=error)

    def stall(self, op: str, call: int = 1, *, sticky: bool = False) -> None:
        """Let the call-th next operation wait for release(), then run.

        Args:
            op: As fail.
            call: Which one from here on, from 1.
            sticky: All later ones too.

        Raises:
            ValueError: There is no such operation.
        """
        file_system.faults_add(op, call, kind="stall", sticky=sticky)

    def delay(
        self,
        op: str,
        call: int = 1,
        *,
        seconds: float,
        clock: ManualClock | None = None,
        sticky: bool = False,
    ) -> None:
        """Let the call-th next operation take longer: it waits, then runs.

        Args:
            op: As fail.
            call: Which one from here on, from 1.
            seconds: Seconds that it waits, from when it is called; release() ends that earlier.
            clock: The clock it waits on, which the test advances, in another thread than the one
                that waits for the operation; None: real time.
            sticky: All later ones too.

        Raises:
            ValueError: There is no such operation, or seconds is negative.
        """
        if not seconds >= 0:
            raise ValueError(f"seconds: 0 or more, not {seconds}")
        delay_call(op, call, round(seconds * 1000), clock, sticky=sticky)

    def kill(self, op: str, call: int = 1) -> None:
        """Kill the process in front of the call-th next operation, as by kill -9: also where the
        interpreter's lock is held.

        Args:
            op: As fail.
            call: Which one from here on, from 1.

        Raises:
            ValueError: There is no such operation.
        """
        file_system.faults_add(op, call, kind="kill")

    def release(self) -> None:
        """Let all operations go on that are stalled or delayed; later ones are not."""
        file_system.faults_release()

    def calls(self, op: str) -> int:
        """Count how often an operation was called since the plan began.

        Args:
            op: As fail.

        Raises:
            KeyError: There is no such operation.
        """
        return int(file_system.faults_calls(op))

    def stalled(self) -> int:
        """Count the operations that wait: for release(), or until their delay is over."""
        return int(file_system.faults_stalled())


_taken: list[str] = []  # who decides what becomes of operations on files


@contextmanager
def taking_operations(name: str) -> Iterator[None]:
    """Let nobody else of this module's kind decide within the block.

    Args:
        name: Who does.

    Raises:
        RuntimeError: Another one does.
    """
    if _taken:
        raise RuntimeError(f"{name}: {_taken[0]} is in force, and there is one at a time")
    _taken.append(name)
    try:
        yield
    finally:
        _taken.clear()


@contextmanager
def fault_plan() -> Iterator[FaultPlan]:
    """Make a plan that is in force within the block, empty at first.

    Yields:
        The plan.

    Raises:
        RuntimeError: Another plan of faults or crashes is in force.

    Example:
        import errno

        from pulsarx.testing import fault_plan

        with pulsarx.Client("faulty") as client, fault_plan() as plan:
            producer = client.create_producer("orders")
            plan.fail("write", error=errno.ENOSPC)
            try:
                producer.send(b"one")
            except pulsarx.StorageFullError as error:
                print(error)
    """
    with taking_operations("fault_plan"):
        file_system.faults_install()
        try:
            yield FaultPlan()
        finally:
            file_system.faults_remove()
