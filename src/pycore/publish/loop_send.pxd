"""Sends that a coroutine waits for. Told their end by any thread, with any mutex held; they settle
in the thread of their loop.
"""

from pulsarx._pycore.ground.loop_queue cimport LoopQueue
from pulsarx._pycore.publish.completion_queue cimport SendTold


cdef class LoopSend(SendTold):
    cdef LoopQueue queue
    cdef object future
    cdef object message_id
    cdef object error
    cdef bint starting                   # its caller has not come back from send_async yet
    cdef bint ended
