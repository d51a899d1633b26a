"""Posts a job when an object is deallocated that its user should have closed.

Deallocation runs anywhere: in the middle of a call that holds a mutex, between two lines of any
thread. So nothing is done there but to post a job, in one step. While the interpreter ends, nothing
at all: brokers are closed by then, and there are no more threads.
"""

cdef class WhenForgotten:
    """Kept by what may be forgotten; posts the job when that is gone. The job must not refer to it.
    """
    cdef object post
    cdef object job                      # None: cancelled


cdef class PostLater:
    """A callback of weak references: posts a job, whatever it is called with."""
    cdef object post
    cdef object job
    cdef object noted                    # a deque that gets the item first, or None
    cdef object item
