"""A table of file operations that fails by plan, for tests. It wraps the system's; at most one is
in force.

A rule names an operation (FileOp), which call of it from now on (1: the next one), and what
happens to it.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef enum FaultLimits:
    FAULT_RULES_MAX = 32
    FAULT_DELAYED_MAX = 64        # calls that wait on a clock at once; others do not wait

cdef enum FaultKind:
    FAULT_ERROR = 1               # the call does nothing and answers error
    FAULT_SHORT = 2               # write: half of it is written, then error
    FAULT_STALL = 3               # the call waits for file_faults_release, then runs
    FAULT_LATE_ERROR = 4          # the call runs, then answers error
    FAULT_KILL = 5                # the process is killed in front of the call, as by kill -9
    FAULT_DELAY = 6               # the call waits so long or for file_faults_release, then runs

cdef void file_faults_install() noexcept nogil
"""From now on calls go through the plan, which is empty; counts start at zero."""

cdef void file_faults_remove() noexcept nogil
"""Go back to the system's calls; calls that stall are released."""

cdef int file_faults_add(uint32_t op, uint32_t kind, uint64_t call, bint sticky,
                         int error) noexcept nogil
"""sticky: this call and all later ones. STATUS_OUT_OF_RANGE: too many rules or no such
operation."""

cdef int file_faults_delay(uint32_t op, uint64_t call, bint sticky, uint64_t delay_ms,
                           const int64_t* now_ms) noexcept nogil
"""Like file_faults_add, of a delay. now_ms: milliseconds of a clock that a test advances, there as
long as calls stall; NULL: real time."""

cdef int64_t file_faults_due(const int64_t* now_ms) noexcept nogil
"""When the first of the calls that are delayed on this clock is due, later than now; INT64_MAX:
none is."""

cdef void file_faults_release() noexcept nogil
"""Release the calls that stall or are delayed, now and from here on."""

cdef uint64_t file_faults_calls(uint32_t op) noexcept nogil
cdef uint32_t file_faults_stalled() noexcept nogil
"""How many calls wait, to be released or until their delay is over."""
