"""Sends that a coroutine waits for. Told their end by any thread, with any mutex held; they settle
in the thread of their loop.
"""

from pulsarx._pycore.ground.loop_queue cimport LoopItem, LoopQueue


cdef class SendTold(LoopItem):
    """A callback that only notes how its send ended, so it is told at once, wherever that is."""

    cdef int told(self, object message_id, object error) except -1
    """The send ended; error: None for success."""

    cdef bint is_given_up(self) except -1
    """Whether nobody waits for it any more."""


cdef class LoopSend(SendTold):
    cdef LoopQueue queue
    cdef object future
    cdef object message_id
    cdef object error
    cdef bint starting                   # its caller has not come back from send_async yet
    cdef bint ended
