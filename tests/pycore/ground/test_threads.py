"""Facts about the threads that PulsarX starts for itself."""

from __future__ import annotations

import pytest
from child_process import ChildProcess

LATE = """
import atexit, os, threading
def who_runs():
    names = [each.name for each in threading.enumerate()]
    os.write(1, b"begun" if "late-1" in names else b"not begun")
atexit.register(who_runs)  # first: it is called last
import pulsarx.clock
from pulsarx._pycore.ground.work_pool import WorkPool
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # no thread begins while this one runs
WorkPool(1, "late").grow()
"""


@pytest.mark.parametrize("turn", range(5))
def test_a_thread_that_was_just_started_begins_before_the_interpreter_ends(turn: int) -> None:
    """It took a state that was freed by then: `pulsarx serve` ended with SIGSEGV, once in a
    thousand interrupts on a busy machine."""
    with ChildProcess(LATE) as child:
        assert child.end() == ["begun"]
