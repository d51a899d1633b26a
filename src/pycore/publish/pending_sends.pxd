"""Entries that are stored but not yet known durable, oldest first: what `max_pending_messages`
counts beside the open
batch, and whose callbacks are still owed. One per producer; its mutex orders the calls.
"""

from libc.stdint cimport uint64_t

from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter


cdef class PendingSends:
    # deque of (writer, entry count to flush, messages, callbacks, entry id)
    cdef object entries
    cdef object completions              # where callbacks are run
    cdef readonly uint64_t message_count
    cdef int partition                   # of the topic, for the ids that callbacks are told

    cdef int add(self, LedgerWriter writer, uint64_t entry_id, uint64_t messages,
                 list callbacks) except -1
    cdef int settle(self) except -1
    cdef tuple oldest(self)
    cdef tuple newest(self)
    cdef bint fail(self, object error) except -1
