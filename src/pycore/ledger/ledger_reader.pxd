"""Reads entries one after the other from a place in the ledgers of a topic.

Belongs to one dispatcher, which calls it with its mutex held; no call sleeps. What an entry pointer
points into stays mapped as long as `span` is the same, or while `span.file` is held.

The reader knows which entry and message come next, so nothing is skipped in silence: not a
damaged entry, not one that is missing where reading began, not the end of a ledger that was cut,
not a ledger whose file does not open, not an entry whose frame lies about its place.
"""

from libc.stdint cimport uint8_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.ledger_read cimport LedgerRead
from pulsarx._pycore.ledger.ledger_tail cimport LedgerSpan, LedgerTail

cdef enum ReadStep:
    READ_NOTHING = 0             # nothing more is published
    READ_ENTRY = 1               # the next entry is in c_frame and c_entry
    # the lost_ fields say what cannot be read; the next step goes on behind it
    READ_DAMAGE = 2
    READ_AGAIN = 3               # within this file: the reader moved
    READ_TURN = 4                # of a compacted topic: its reader goes on in the compacted ledger


cdef class LedgerReader:
    cdef readonly LedgerTail tail
    cdef readonly LedgerSpan span        # the ledger being read; None before the first
    cdef str topic_name
    cdef uint64_t passed_ledger_id       # the last ledger that was read to its end, or skipped
    cdef uint64_t offset                 # of the next frame in span
    cdef uint64_t next_message           # ordinal of the message it begins with
    cdef bint inside                     # or that lies somewhere in it: reading began there
    cdef uint64_t next_entry_id          # of that frame; ENTRY_UNKNOWN where reading began
    cdef uint64_t seen_changes           # of the ledgers, when there was none to go on with
    cdef uint64_t start_ledger_id        # where reading began, while that ledger is not open
    cdef bint defers                     # a ledger to be fetched first is raised, LedgerWanted
    cdef uint64_t entry_offset           # of the entry read last
    cdef EntryFrame c_frame              # of the entry read last
    cdef const uint8_t* c_entry          # its bytes; NULL: none since the last move

    # What READ_DAMAGE found: messages lost_first .. lost_end - 1 of a ledger cannot be read. An
    # empty range: how many there are is not known.
    cdef readonly uint64_t lost_ledger_id
    cdef readonly uint64_t lost_first
    cdef readonly uint64_t lost_end
    cdef object lost_what                # what was read, where
    cdef object lost_why
    cdef object lost_next                # where reading goes on

    cdef int plain_ahead(self) noexcept
    """How many entries of the open ledger there are to be read, where they are few and are taken
    apart without Python; -1: others, or it is not known."""

    cdef int next_entry(self) except -1
    """A ReadStep, but never READ_AGAIN."""

    cdef uint64_t passed_aborted(self, LedgerSpan span, uint64_t offset) except? 0
    """The offset where reading goes on: behind the entries of aborted transactions at another."""

    cdef bint turns(self, bint is_lost) except -1
    """About to go on to another ledger: whether the reader reads on elsewhere instead."""

    cdef int read_message(self, uint64_t ledger_id, uint64_t message) except -1
    """Read the entry that holds a message, and go on behind it. READ_NOTHING: its ledger is gone.
    READ_DAMAGE: the lost range holds the message."""

    cdef int lose_entry(self, object why) except -1
    """The entry read last cannot be taken apart: fill the lost_ fields with its messages."""

    cdef void let_go(self) noexcept
    """Nothing is read any more: give the mapping back to whoever else has it."""

    cdef void unread(self) noexcept
    """Nothing came of the entry read last: the next call reads it again."""

    cdef str damage_text(self, str count)
    """Say in words what READ_DAMAGE found; count: how many messages that costs, in words."""

    cdef int go(self, LedgerSpan span, uint64_t offset, uint64_t entry_id, uint64_t ledger_id,
                uint64_t message) noexcept
    """Move to what `locate` found."""

    cdef int find(self, uint64_t ledger_id, uint64_t message) except -1
    """Move to a message. If the file does not open, reading begins with its ledger, later."""

    cdef int skip_to(self, uint64_t message) except -1
    """Pass over the entries of this ledger that end at or before a message further on."""

    cdef int advance(self) except -1
    cdef int pass_rest(self) except -1
    cdef int pass_ledger(self, object error) except -1
    cdef int pass_damage(self, int status, uint64_t next_offset, uint64_t end) except -1
    cdef int lose(self, uint64_t end, object what, object why, object following) except -1
    cdef bint fits(self, const EntryFrame* frame, uint64_t message_count) noexcept nogil
    """Whether a frame that holds can belong where the reader is, or behind. message_count: how many
    messages the ledger has."""

    cdef bint next_frame(self, const LedgerRead* read, uint64_t* offset, uint64_t end,
                         uint64_t message_count, EntryFrame* frame) noexcept nogil
    """Find the first frame from offset on that fits; False: there is none below end."""
