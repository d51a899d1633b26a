"""Finds messages by id and does what follows from acknowledgements, for a consumer or reader beside
its dispatcher. Any thread may call, without a mutex.
"""

from libc.stdint cimport uint64_t

from pulsarx._pycore.ground.interval_job cimport IntervalJob
from pulsarx._pycore.ground.job_queue cimport JobQueue


cdef class ConsumerHost:
    cdef object ledgers                  # of the topic: finds ids
    cdef JobQueue background
    cdef object trim                     # the job that removes unneeded ledgers; or None
    cdef readonly IntervalJob flush      # of the cursor; None: nothing is kept

    cdef int locate(self, object message_id, uint64_t* ledger_id, uint64_t* first,
                    uint64_t* count) except -1
    """Find the messages that an id names; count 0: they are trimmed, or were never kept.

    NotAllowedError: the topic never had such a message. TypeError: no id.
    """

    cdef int ledger_acknowledged(self) except -1
    """The last message of a ledger was acknowledged: it may be trimmed."""
