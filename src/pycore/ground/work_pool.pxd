"""A pool of threads that run what a client's users gave it: listeners, futures, consumer events. A
server has such threads for its connections.

SerialWork is a step that runs there whenever it is due: never twice at a time, never forgotten.
`due` and `put` are one step to a signal handler and may be called at any moment, with any mutex
held.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.wait_event cimport WaitEvent
from pulsarx._pycore.ground.deadline cimport Deadline


cdef class WorkPool:
    cdef object __weakref__
    cdef object jobs                     # deque: appending is one step
    cdef WaitEvent came                  # a job was put
    cdef WaitEvent progress              # a job has run
    cdef uint64_t put_count
    cdef uint64_t done_count
    cdef dict running                    # thread: its job
    cdef readonly uint32_t size          # threads at most
    cdef object name                     # of the threads, before their number
    cdef readonly uint32_t started
    cdef bint closed

    cdef int put(self, object job) except -1
    cdef int put_job(self, object job) except -1
    cdef object take(self)
    cdef object register(self)
    cdef bint is_idle(self) noexcept


cdef class SerialWork:
    cdef WorkPool pool
    cdef object step                     # does some work; True: there is more
    cdef readonly str name               # what it is, for messages
    cdef bint is_due
    cdef bint taken                      # it runs, or is posted to run

    cpdef int due(self) except -1
    """There may be something to do."""
