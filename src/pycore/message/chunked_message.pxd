"""A message that was published in chunks: where its chunks are, as far as they were read, and its
payload put together. Made by dispatchers, kept by the message.

Nothing of a payload is copied before `join`: the chunks stay in the mappings of their ledgers,
which are kept alive. Memory that is allocated follows from chunks that are there, never from what
their metadata claim.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts


cdef struct Chunk:
    uint64_t ledger_id
    uint64_t message                     # ordinal in its ledger
    uint64_t entry_id
    const uint8_t* entry                 # as it is stored
    const uint8_t* payload               # in it
    uint32_t entry_size
    uint32_t size


cdef class ChunkedMessage:
    cdef readonly bytes uuid
    cdef Chunk* chunks                   # owned; by their chunk id
    cdef uint32_t count                  # chunks that are there
    cdef uint32_t capacity
    cdef uint32_t chunk_count            # chunks that belong to it
    cdef uint32_t chunked_size           # bytes of all of them, as their metadata claim
    cdef uint64_t size                   # bytes of those that are there
    cdef bint encrypted                  # at least one of them is
    cdef int64_t touched_ms              # when the newest chunk was read
    # the newest chunk's entry; of a whole message the last one's, whose metadata are the message's
    cdef EntryFrame frame
    cdef const uint8_t* c_entry
    cdef object pin                      # what c_entry points into
    cdef list pins                       # what the chunks point into, each once

    cdef inline bint is_whole(self) noexcept:
        return self.count == self.chunk_count

    cdef inline uint64_t entries_size(self) noexcept:
        """Bytes of the entries that are its chunks."""
        cdef uint64_t size = 0
        cdef uint32_t number
        for number in range(self.count):
            size += self.chunks[number].entry_size
        return size

    cdef inline bint is_at(self, uint32_t chunk_id, uint64_t ledger_id, uint64_t message) noexcept:
        """Whether that chunk of it lies there."""
        return chunk_id < self.count and self.chunks[chunk_id].ledger_id == ledger_id and (
            self.chunks[chunk_id].message == message)

    cdef inline bint is_behind(self, uint64_t ledger_id, uint64_t message) noexcept:
        """Whether its first chunk lies behind that place."""
        return ledger_id < self.chunks[0].ledger_id or (
            ledger_id == self.chunks[0].ledger_id and message < self.chunks[0].message)

    cdef int add(self, object pin, uint64_t ledger_id, const EntryFrame* frame,
                 const uint8_t* entry, const EntryParts* parts) except -1
    """The next chunk was read. parts: of its entry."""

    cdef bytes join(self)
    """The payloads of all chunks, copied into one. CorruptDataError: they are not as long as their
    metadata claim."""

    cdef int check_size(self, uint64_t size) except -1
    """CorruptDataError: the payloads of all chunks, which have so many bytes, are not as long as
    their metadata claim."""

    cdef bytes stored(self)
    """Like join, for payloads that are encrypted, and may be of any length."""


cdef ChunkedMessage chunked_message_new(bytes uuid, uint32_t chunk_count, uint32_t chunked_size)
