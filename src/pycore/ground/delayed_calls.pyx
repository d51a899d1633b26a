"""Operations on files that wait on a clock which a test advances. For tests; needs the GIL."""

from libc.stdint cimport INT64_MAX, int64_t

from pulsarx._core.file_faults cimport *
from pulsarx._pycore.ground.clock_core cimport ManualClockCore

from pulsarx._pycore.ground.file_system import faults_op

cdef list CLOCKS = []                    # that calls may look at, at any time: kept for ever


def delay_call(op: str, call: int, delay_ms: int, clock: ManualClockCore | None = None, *,
               sticky: bool = False) -> None:
    """The call-th next call of op waits so long before it runs, on this clock; None: in real time.
    In force like what faults_add adds."""
    cdef ManualClockCore on = clock
    cdef const int64_t* now_ms = NULL
    if on is not None:
        if not has_delays(on):
            CLOCKS.append(on)
        now_ms = &on.now_value_ms
    if file_faults_delay(faults_op(op), call, sticky, delay_ms, now_ms) != 0:
        raise ValueError(f"more than {<int>FAULT_RULES_MAX} faults")


def has_delays(ManualClockCore clock not None) -> bool:
    """Whether calls may wait on this clock."""
    return any(each is clock for each in CLOCKS)


def delayed_until_ms(ManualClockCore clock not None) -> int | None:
    """When the first of the calls that wait on this clock goes on; None: none waits."""
    cdef int64_t due_ms = file_faults_due(&clock.now_value_ms)
    return None if due_ms == INT64_MAX else due_ms
