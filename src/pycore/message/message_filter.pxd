"""Decides by a selector which messages of an entry are delivered. Dispatchers ask it, with the
subscription's mutex held, and `range_reader`, which has one to itself.

It keeps what it found about the entry that was looked at last.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.selector cimport SelectorProgram
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class MessageFilter:
    cdef readonly str selector           # as it was given
    cdef SelectorProgram c_program       # owned
    # of the entry looked at last: which, and for each of its messages 1 if it is delivered, else 0
    cdef uint8_t* c_matches              # owned
    cdef uint32_t capacity
    cdef uint32_t message_count
    cdef uint64_t ledger_id
    cdef uint64_t first_message
    cdef uint32_t rejected_count

    cdef int look(self, EntryView view) except -1
    """Ask about the messages of an entry, which is not packed. Where they lie in an encrypted batch
    is not known: all of it is delivered."""

    cdef bint wants(self, EntryView view, uint32_t at) except -1
    """Like look, about the message of a batch at an offset in the payload; of another entry, about
    that. Keeps nothing."""

    cdef bint wants_entry(self, EntryView view) noexcept
    cdef uint8_t* reserve(self, uint32_t count) except NULL
    """Room for what is found about so many messages."""

    cdef uint32_t run_end(self, uint32_t index) noexcept
    """One behind the last message from index on for which the same was found."""

    cdef inline bint knows(self, EntryView view) noexcept:
        """Whether the entry is the one looked at last."""
        return self.message_count == view.message_count and (
            view.ledger_id == self.ledger_id and view.first_message == self.first_message)

    cdef inline bint rejects(self, uint64_t ledger_id, uint64_t message) noexcept:
        """Whether the message is one of the entry looked at last, and not delivered."""
        return ledger_id == self.ledger_id and message - self.first_message < (
            self.message_count) and self.c_matches[message - self.first_message] == 0
