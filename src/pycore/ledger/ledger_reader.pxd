"""A place in the ledgers of a topic from which entries are read one after the other.

Belongs to one dispatcher, which calls it with its mutex held; no call sleeps. What an entry pointer
points into stays mapped as long as `span` is the same, or whoever pins `span.file`.
"""

from libc.stdint cimport uint8_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan, LedgerTail


cdef class LedgerReader:
    cdef readonly LedgerTail tail
    cdef readonly LedgerSpan span        # the ledger being read; None before the first
    cdef str topic_name
    cdef uint64_t passed_ledger_id       # the last ledger that was read to its end, or skipped
    cdef uint64_t offset                 # of the next frame in span
    cdef uint64_t next_message           # ordinal in span of the message it begins with
    cdef uint64_t entry_offset           # of the entry read last
    cdef uint64_t told_ledger_id         # the cut ledger whose missing end was told
    cdef EntryFrame c_frame              # of the entry read last
    cdef const uint8_t* c_entry          # its bytes; NULL: none since the last move

    cdef bint next_entry(self) except -1
    """Read the next published entry into c_frame and c_entry; False: there is none yet.

    CorruptDataError for a damaged entry, once; the call after it goes on behind the damage.
    """

    cdef void unread(self) noexcept
    """Nothing came of the entry read last: the next call reads it again."""

    cdef bint read_message(self, uint64_t ledger_id, uint64_t message) except -1
    """Read the entry that holds a message, and go on behind it; False: it is gone, or damaged."""

    cdef int go(self, LedgerSpan span, uint64_t offset, uint64_t ledger_id,
                uint64_t message) noexcept
    """Move to what `locate` found."""

    cdef int find(self, uint64_t ledger_id, uint64_t message) except -1
    """Move to a message. If the file does not open, reading begins with its ledger, later."""

    cdef int skip_to(self, uint64_t message) except -1
    """Pass over the entries of this ledger that end at or before a message further on."""

    cdef bint advance(self) except -1
    cdef int tell_missing(self) except -1
    cdef int pass_damage(self, int status, object entry_id, uint64_t next_offset,
                         uint64_t end) except -1
