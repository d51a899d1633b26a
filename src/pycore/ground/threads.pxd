"""Starts the threads of PulsarX so that no signal can interrupt the start, and so that they have
begun before the interpreter ends. All of pycore and of the library uses it. A thread is the
system's, also where gevent has put greenlets in the place of threads.

A `threading.Thread` does neither. Its starter waits for it, for ever where it has no memory to
begin, and where a finalizer starts it while the interpreter ends, before Python 3.12.
"""

from libc.stdint cimport uint64_t

from pulsarx._core.wait_event cimport WaitEvent

cdef int thread_start(object run, str name) except -1
"""Run run() in a daemon thread of this name. RuntimeError: the system, or the interpreter that
ends, gives no thread, or there is no memory for one; nothing was started."""

cdef int await_memory() noexcept nogil
"""Sleep a moment, in a thread that cannot go on without memory and that others need."""

cdef bint threads_have_ended() noexcept
"""Whether the interpreter ends and finalizers run: threads but the main one are gone, or end as
soon as they want the GIL, so nobody may wait for them."""

cdef uint64_t fork_number() noexcept nogil
"""Return how many forks lie between the first process with PulsarX and this one."""


cdef class OwnThread:
    """A daemon thread that others may wait for. Nothing refers to its `threading.Thread`, which so
    goes in the thread itself: where it goes, Python code of `threading` runs, and loses what a
    signal handler raises in it."""
    cdef object work
    cdef str name
    cdef WaitEvent ended
    cdef unsigned long ident             # 0: it does not run
    cdef bint is_begun                   # it was started, and has not ended
    cdef uint64_t forks                  # when it was started
