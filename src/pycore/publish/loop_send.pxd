"""Sends that a coroutine waits for. Told their end by any thread, with any mutex held; they settle
in the thread of their loop.
"""

from libc.stdint cimport uint64_t

from pulsarx._pycore.ground.loop_queue cimport LoopQueue
from pulsarx._pycore.publish.completion_queue cimport SendTold


cdef class LoopSend(SendTold):
    cdef LoopQueue queue
    cdef object future
    cdef object message_id
    cdef object error
    cdef bint starting                   # its caller has not come back from send_async yet
    cdef bint ended

    cdef int take(self, result, message_id) except -1


cdef class LoopSender:
    """The sends of one producer. A batch is open as long as each turn of the loop sends more, and
    no longer than its delay."""
    cdef object send_async
    cdef object send_open
    cdef uint64_t begun                  # sends that were not over at once, in all loops
