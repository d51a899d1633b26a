"""The answers to the entries that come over one connection: what was asked counts as in flight
until it is answered. Any thread may call; each step is one under the GIL."""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.publish.completion_queue cimport SendTold
from pulsarx._pycore.wire.command_output cimport CommandOutput
from pulsarx._pycore.wire.command_takers cimport SendTaker


cdef class EntriesInFlight:
    cdef readonly int64_t size           # bytes of entries that are not answered
    cdef public int64_t size_max
    cdef object wake                     # called when it is full no more
    cdef bint has_room                   # again, and nobody was woken yet


cdef class EntryAnswers(SendTaker):
    cdef EntriesInFlight in_flight       # of its connection; None: it is at the end of none
    cdef int64_t unanswered              # bytes of its entries among those
    cdef readonly uint64_t producer_id
    cdef CommandOutput output

    cdef EntryAnswer expected(self, uint64_t sequence_id, int64_t size)
    cdef int write_receipt(self, uint64_t sequence_id, int64_t ledger_id, int64_t entry_id,
                           int partition) except -1
    """Say that an entry is stored. MemoryError: nothing was said."""

    cdef int land(self, int64_t size) except -1


cdef class EntryAnswer(SendTold):
    cdef EntryAnswers producer
    cdef int64_t size
    cdef uint64_t sequence_id
    cdef list kept                       # places of those messages that were new; None: all were
