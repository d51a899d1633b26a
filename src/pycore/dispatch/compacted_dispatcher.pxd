"""Dispatches a compacted topic to an Exclusive or Failover subscription, or to a reader.

What compaction removed counts as acknowledged once the active receiver has passed it, so that
backlog, mark-delete position and trimming go on.
"""

from libc.stdint cimport uint32_t

from pulsarx._pycore.dispatch.single_active_dispatcher cimport SingleActiveDispatcher
from pulsarx._pycore.ledger.compacted_reader cimport CompactedReader
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class CompactedDispatcher(SingleActiveDispatcher):
    cdef CompactedReader compacted       # the same as reader
    cdef uint32_t survivors_end          # of the entry read last: behind its last survivor

    cdef int pass_taken_out(self, EntryView view) except -1
