# cython: language_level=3
"""Body of consumer_host.pxd."""

from libc.stdint cimport uint64_t

from pulsarx._pycore.ground.control_plane cimport control_plane
from pulsarx._pycore.ground.interval_job cimport IntervalJob
from pulsarx._pycore.ground.job_queue cimport JobQueue


cdef class ConsumerHost:
    """See the pxd."""

    def __init__(self, ledgers, JobQueue background=None, trim=None,
                 IntervalJob flush=None) -> None:
        """ledgers: of the topic. trim: the job that removes unneeded ledgers. flush: makes
        acknowledgements durable."""
        self.ledgers = ledgers
        self.background = background
        self.trim = trim
        self.flush = flush

    cdef int locate(self, object message_id, uint64_t* ledger_id, uint64_t* first,
                    uint64_t* count) except -1:
        ledger_id[0], first[0], count[0] = control_plane.perform_held(
            self.ledgers.locate_for_acknowledgement, (message_id,))
        return 0

    cdef int ledger_acknowledged(self) except -1:
        if self.background is not None:
            self.background.put(self.trim)
        return 0
