"""Body of mutex.pxd: waiting, and waking who waits."""

from libc.stdint cimport int64_t, uint32_t

from pulsarx._core.wait_event cimport (
    wait_event_enter, wait_event_leave, wait_event_sleep, wait_event_wake_one,
)

cdef enum:
    # A given mutex is taken within that, unless it was given to threads of the process that this
    # one was forked from.
    GIVEN_NS = 50000000


cdef int mutex_wait(OwnedMutex* self) noexcept:
    cdef bint slept = False
    cdef int64_t most_ns
    cdef uint32_t seen
    self.waiting += 1
    while self.owner != 0 and not (slept and self.owner == MUTEX_GIVEN):
        # The thread that gave it back has the GIL, and may take it again and again before this one
        # gets that.
        if slept:
            self.passed_over = True
        most_ns = GIVEN_NS if self.owner == MUTEX_GIVEN else -1
        seen = wait_event_enter(&self.freed)
        with nogil:
            wait_event_sleep(&self.freed, seen, most_ns)
        wait_event_leave(&self.freed)
        slept = True
    self.waiting -= 1
    return 0


cdef void mutex_pass_on(OwnedMutex* self) noexcept:
    if self.passed_over:
        self.passed_over = False
        self.owner = MUTEX_GIVEN
    wait_event_wake_one(&self.freed)
