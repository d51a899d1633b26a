"""Makes file operations fail by plan. For tests; one plan at a time in a process.

with fault_plan() as plan:
    plan.fail("flush", call=2)              # the second flush from here on answers EIO
    plan.fail("allocate", error=errno.ENOSPC, sticky=True)
    plan.stall("flush")                     # the next flush waits for plan.release()
    plan.kill("link")                       # the process is killed in front of the next link
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from pulsarx._pycore.ground import file_system


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
        """The call-th next `op` (write, flush, allocate, rename, ...) answers error; sticky: all
        later ones too.

        late: the operation is carried out and refused all the same.
        """
        kind = "late_error" if late else "error"
        file_system.faults_add(op, call, kind=kind, error=error, sticky=sticky)

    def short_write(self, call: int = 1, *, error: int = errno.EIO) -> None:
        """The call-th next write stores half of its bytes, then answers error."""
        file_system.faults_add("write", call, kind="short", error=error)

    def stall(self, op: str, call: int = 1, *, sticky: bool = False) -> None:
        """The call-th next `op` waits for release(), then runs."""
        file_system.faults_add(op, call, kind="stall", sticky=sticky)

    def kill(self, op: str, call: int = 1) -> None:
        """The process is killed in front of the call-th next `op`, as by kill -9: also where the
        interpreter's lock is held."""
        file_system.faults_add(op, call, kind="kill")

    def release(self) -> None:
        """Let all stalled operations go on; later ones are not stalled."""
        file_system.faults_release()

    def calls(self, op: str) -> int:
        """Count how often op was called since the plan began."""
        return int(file_system.faults_calls(op))

    def stalled(self) -> int:
        """Count the operations that wait for release()."""
        return int(file_system.faults_stalled())


@contextmanager
def fault_plan() -> Iterator[FaultPlan]:
    """Make a plan that is in force within the block, empty at first."""
    file_system.faults_install()
    try:
        yield FaultPlan()
    finally:
        file_system.faults_remove()
