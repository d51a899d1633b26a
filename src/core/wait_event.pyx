"""The futex behind WaitEvent. Not FUTEX_PRIVATE: the word may lie in a mapping shared with other
processes."""

from libc.errno cimport EAGAIN, EINTR, ETIMEDOUT, errno
from libc.limits cimport INT_MAX
from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint32_t, uint64_t, uintptr_t

from pulsarx._core.atomic cimport atomic_add_u32, atomic_fence, atomic_load_u32, atomic_sub_u32
from pulsarx._core.status cimport STATUS_INTERRUPTED, STATUS_OK, STATUS_TIMEOUT

cdef extern from *:
    """
    #include <linux/futex.h>
    #include <sys/syscall.h>
    #include <time.h>
    #include <unistd.h>
    static long futex_wait(uint32_t *word, uint32_t seen, const struct timespec *timeout) {
        return syscall(SYS_futex, word, FUTEX_WAIT, seen, timeout, NULL, 0);
    }
    static long futex_wake(uint32_t *word, int count) {
        return syscall(SYS_futex, word, FUTEX_WAKE, count, NULL, NULL, 0);
    }
    /* Of Linux 5.16: headers may be older than the kernel. */
    struct futex_wait_one { uint64_t seen; uint64_t word; uint32_t flags; uint32_t unused; };
    static long futex_wait_any(struct futex_wait_one *all, unsigned count, long long until_ns) {
        struct timespec until = {until_ns / 1000000000, until_ns % 1000000000};
        int monotonic = 1;
        return syscall(449, all, count, 0, until_ns < 0 ? NULL : &until, monotonic);
    }
    """
    struct futex_wait_one:
        uint64_t seen
        uint64_t word
        uint32_t flags
        uint32_t unused
    long futex_wait_any(futex_wait_one* all, unsigned count, long long until_ns) nogil
    struct timespec:
        long tv_sec
        long tv_nsec
    long futex_wait(uint32_t* word, uint32_t seen, const timespec* timeout) nogil
    long futex_wake(uint32_t* word, int count) nogil


cdef enum:
    FUTEX_OF_32_BITS = 2             # and not private


cdef uint32_t wait_event_enter(WaitEvent* self) noexcept nogil:
    atomic_add_u32(&self.waiters, 1)
    return atomic_load_u32(&self.event)


cdef void wait_event_leave(WaitEvent* self) noexcept nogil:
    atomic_sub_u32(&self.waiters, 1)


cdef int wait_event_sleep(WaitEvent* self, uint32_t seen, int64_t timeout_ns) noexcept nogil:
    cdef timespec timeout
    cdef long answer
    if timeout_ns < 0:
        answer = futex_wait(&self.event, seen, NULL)
    else:
        timeout.tv_sec = timeout_ns // 1000000000
        timeout.tv_nsec = timeout_ns % 1000000000
        answer = futex_wait(&self.event, seen, &timeout)
    if answer == 0:
        return STATUS_OK
    if errno == ETIMEDOUT:
        return STATUS_TIMEOUT
    if errno == EINTR:
        return STATUS_INTERRUPTED
    return STATUS_OK


cdef int wait_events_sleep(WaitEvent** events, const uint32_t* seen, uint32_t count,
                           int64_t until_ns) noexcept nogil:
    cdef futex_wait_one all[WAIT_EVENTS_MAX]
    cdef uint32_t at
    count = min(count, <uint32_t>WAIT_EVENTS_MAX)
    for at in range(count):
        all[at].seen = seen[at]
        all[at].word = <uint64_t><uintptr_t>&events[at].event
        all[at].flags = FUTEX_OF_32_BITS
        all[at].unused = 0
    if futex_wait_any(all, count, until_ns) >= 0 or errno == EAGAIN:
        return STATUS_OK
    if errno == ETIMEDOUT:
        return STATUS_TIMEOUT
    if errno == EINTR:
        return STATUS_INTERRUPTED
    return wait_event_sleep(events[0], seen[0], WAIT_EVENTS_POLL_NS)


cdef void wait_event_wake(WaitEvent* self) noexcept nogil:
    wake(self, INT_MAX)


cdef void wait_event_wake_one(WaitEvent* self) noexcept nogil:
    wake(self, 1)


cdef inline void wake(WaitEvent* self, int count) noexcept nogil:
    # The fence orders the caller's change before the look at waiters; enter's increment is one as
    # well.
    atomic_fence()
    if atomic_load_u32(&self.waiters) == 0:
        return
    atomic_add_u32(&self.event, 1)
    futex_wake(&self.event, count)
