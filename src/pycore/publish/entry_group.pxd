"""Entries that came together over a connection and are stored with one write. By one thread at a
time."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame

cdef enum:
    GROUP_COUNT_MAX = 64
    GROUP_SIZE_MAX = 64 << 10    # bytes: written before another thread could take the GIL
    GROUPED_SIZE_MAX = 4 << 10   # bytes of an entry; for a larger one its own write is no matter


cdef class EntryGroup:
    cdef EntryFrame frames[GROUP_COUNT_MAX]
    cdef uint64_t sequence_ids[GROUP_COUNT_MAX]
    cdef uint32_t count
    cdef uint64_t size                   # of what is in the room
    cdef uint8_t* room                   # owned; as ledger_append_group has it
    cdef bint is_stored                  # or may be: they are not to be stored once more
    # Once they are stored:
    cdef uint64_t ledger_id
    cdef uint32_t answered               # the first so many of them are, or will be

    cdef bint has_room(self, uint32_t entry_size) noexcept
    cdef void add(self, const EntryFrame* frame, uint64_t sequence_id,
                  const uint8_t* entry) noexcept
    """Copy an entry, for which there is room."""

    cdef const uint8_t* entry_at(self, uint64_t offset) noexcept
    """Return the entry whose frame lies at this offset of the room."""


cdef EntryGroup group_take()
"""Return an empty one: one that was given back, so that a producer that has nothing to store has
none."""

cdef void group_give_back(EntryGroup group)
