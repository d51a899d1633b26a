"""The queue of coroutines of one asyncio loop that wait for messages of one consumer. Called in the
thread of the loop, except `__call__`, by which any thread says that messages may have come.

A coroutine gets its turn, and takes its message when it runs: so one that is cancelled in between
has taken nothing. `ready` holds a message for each turn that was given and not taken; they are the
last ones that were taken from the consumer, so giving one back gives back no other.
"""

from pulsarx._pycore.ground.loop_queue cimport LoopQueue
from pulsarx._pycore.ground.watchers cimport LoopItem


cdef class LoopReceives(LoopItem):
    cdef object consumer                 # with take_now, give_back, watch and unwatch
    cdef object take_now
    cdef LoopQueue queue
    cdef object turns                    # deque of futures that wait, in order
    cdef object ready                    # deque of messages
    cdef set given                       # futures whose turn has come
    cdef object notify                   # what the consumer calls: this
    cdef bint queued
    cdef bint watching
    cdef unsigned int at_once            # messages since others could run

    cdef int watch(self) except -1
    cdef int serve(self) except -1
