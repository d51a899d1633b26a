"""The mutexes of producers and dispatchers, taken by code that holds the GIL. For all of pycore.

A rule keeps GIL and mutexes free of deadlock: no thread sleeps on a mutex with the GIL in hand. So
the holder of a mutex can always get the GIL back, and may call Python.

What Python calls may come back here: a signal handler, a schema, a finalizer that uses the object
whose mutex its thread holds. That would wait for itself; a send is kept until the call has gone on
(`mutex_enter`), everything else raises NotAllowedError. A call that was handed over to a control
thread waits for what a signal handler of its caller has taken since, for that is given back.

The mutexes of the core itself (a ledger's append and flush mutex) are another kind: they are taken
and given back inside one nogil block and never by these functions. Their holder needs no GIL, so
core functions may wait for them with the GIL in hand.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.ground.acting_for cimport acting_for, acting_since, hand_overs

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() noexcept

cdef enum:
    MUTEX_GIVEN = 1                  # as an owner: whoever waits has it, and nobody who comes


cdef struct OwnedMutex:
    # The GIL guards all of it: taking and giving back are a load and a store, where a mutex of the
    # system takes two atomic instructions and two calls, an eighth of receiving a message.
    unsigned long owner              # the thread that holds it; 0: none
    uint64_t taken_at                # hand_overs when that took it
    uint32_t waiting                 # threads that wait for it
    bint passed_over                 # one of them was woken and came too late: it is the next
    WaitEvent freed                  # it was given back


cdef int mutex_wait(OwnedMutex* self) noexcept
"""Return when nobody has it: the caller takes it at once. The GIL is given up meanwhile."""

cdef void mutex_pass_on(OwnedMutex* self) noexcept
"""It is free, and threads wait for it."""


cdef inline void mutex_init(OwnedMutex* self) noexcept:
    """Make it free, whoever had it; nobody may be waiting. Memory of zeros is a free one."""
    self.owner = 0
    self.waiting = 0
    self.passed_over = False
    self.freed.event = 0
    self.freed.waiters = 0


cdef inline bint is_within(OwnedMutex* self, unsigned long me) noexcept:
    """Whether this thread has it, or the one that waits for this one."""
    cdef unsigned long owner = self.owner
    return owner != 0 and (owner == me or owner == acting_for())


cdef inline bint waits_for_itself(OwnedMutex* self, unsigned long me) noexcept:
    """Whether waiting for it would be waiting for oneself."""
    return is_within(self, me) and (self.owner == me or self.taken_at < acting_since())


cdef inline void mutex_taken(OwnedMutex* self, unsigned long me) noexcept:
    self.owner = me
    self.taken_at = hand_overs


cdef inline int mutex_lock(OwnedMutex* self) except -1:
    cdef unsigned long me = PyThread_get_thread_ident()
    if self.owner != 0:
        if waits_for_itself(self, me):
            mutex_refuse()
        mutex_wait(self)
    mutex_taken(self, me)
    return 0


cdef inline bint mutex_enter(OwnedMutex* self) noexcept:
    """Like mutex_lock. False: this thread has it already, or the one that waits for this one."""
    cdef unsigned long me = PyThread_get_thread_ident()
    if self.owner != 0:
        if is_within(self, me):
            return False
        mutex_wait(self)
    mutex_taken(self, me)
    return True


cdef inline bint mutex_try_lock(OwnedMutex* self) noexcept:
    """Take it unless a thread has it, be it this one."""
    if self.owner != 0:
        return False
    mutex_taken(self, PyThread_get_thread_ident())
    return True


cdef inline void mutex_unlock(OwnedMutex* self) noexcept:
    self.owner = 0
    if self.waiting:
        mutex_pass_on(self)


cdef inline int mutex_refuse() except -1:
    import pulsarx.errors
    raise pulsarx.errors.NotAllowedError(
        detail="called from within a call of the same producer or consumer in this thread, by a "
        "signal handler, a schema or a finalizer; do it after that call has returned")
