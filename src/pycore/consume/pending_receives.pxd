"""The queue of futures that wait for messages of one consumer. Any thread may call.

A message is taken and its future claimed under one lock, which cancelling takes too: so no message
is ever taken for a future that was cancelled. Either is a single step to a signal handler.
Futures are completed, and their callbacks run, outside the lock.
"""

from pulsarx._pycore.ground.locks cimport Condition
from pulsarx._pycore.ground.work_pool cimport SerialWork


cdef class ReceiveQueue:
    cdef object consumer                 # with take_now, watch and unwatch
    cdef SerialWork work                 # lets a thread call serve
    cdef object due                      # its method: what the consumer calls
    cdef object futures                  # deque of those that wait
    cdef Condition lock                  # before the mutex of a subscription
    cdef bint watching

    cdef int watch(self) except -1
