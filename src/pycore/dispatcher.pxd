"""Reads a subscription's entries in order and hands them to its consumer. One per subscription or
reader.

Lock order: dispatcher mutex, then whatever the core takes. Methods that say so want the mutex held
    by the caller.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._pycore.ack_tracker cimport AckTracker
from pulsarx._pycore.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.ledger_tail cimport LedgerSpan, LedgerTail
from pulsarx._pycore.mutex cimport OwnedMutex


cdef class Dispatcher:
    # guards everything here, the tracker and the consumer's current entry
    cdef OwnedMutex mutex
    cdef readonly LedgerTail tail
    cdef readonly AckTracker tracker     # None: a reader, which remembers nothing
    cdef readonly LedgerSpan span        # the ledger being read; None before the first
    cdef EntryContext context
    cdef uint64_t passed_ledger_id       # the last ledger that was read to its end, or skipped
    cdef uint64_t offset                 # of the next frame in span
    cdef uint64_t skip_ledger_id         # a reader that starts inside an entry:
    # messages of this ledger below this ordinal are not wanted
    cdef uint64_t skip_messages
    cdef uint32_t decompressed_size_max
    cdef uint64_t told_ledger_id         # the cut ledger whose missing end was told
    cdef uint64_t generation             # moves with every seek: what was read before it is stale

    cdef EntryView next_view(self)
    cdef bint advance(self) except -1
    cdef bint is_wanted(self, EntryView view, uint64_t message) noexcept
    cdef int tell_missing(self) except -1
    cdef int pass_damage(self, int status, object entry_id, uint64_t next_offset,
                         uint64_t end) except -1
