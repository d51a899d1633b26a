"""Collects what other threads have finished for one asyncio loop, until the loop takes it. `put`
may be called by any thread, with any mutex held; the rest is called in the thread of the loop.

The loop watches one eventfd, so a burst of completions costs one system call and wakes it once.
"""

from pulsarx._pycore.ground.watchers cimport LoopItem


cdef class LoopQueue:
    cdef object loop                     # weak reference
    cdef list items                      # None in the place of those that are settled
    cdef Py_ssize_t settled              # this many, the first ones
    cdef int event                       # file descriptor of the eventfd
    cdef bint woken                      # it was written to, and not yet read
    cdef set sending                     # senders that the loop is about to call
    cdef object __weakref__

    cdef object make_future(self)
    cdef int call_soon(self, object call, object first, object second) except -1
    cdef bint is_of(self, object loop) noexcept
    cdef int put(self, LoopItem item) except -1
    cdef int wake(self) noexcept


cdef class LoopCall(LoopItem):
    """A call of the control plane that a coroutine waits for."""
    cdef LoopQueue queue
    cdef object function
    cdef tuple arguments
    cdef dict named
    cdef object give_back                # called with a result its caller left; or None
    cdef readonly object future
    cdef object result
    cdef object error
    cdef bint done
    cdef bint left

    cdef int return_result(self) except -1


cdef class LoopEvent(LoopItem):
    """Something that happens once, for a coroutine. Called by whoever makes it happen."""
    cdef LoopQueue queue
    cdef readonly object future


cdef LoopQueue loop_queue_here()
"""The queue of the loop that runs in this thread. RuntimeError: none does."""

cdef int loop_fail(object future, object error) except -1
"""Set the exception of a future, unless it is done: a copy, as it may be told to several."""
