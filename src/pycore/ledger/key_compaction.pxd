"""The two passes of a compaction over a topic: first the last message of each key, then a copy of
the entries that hold one. One thread at a time; both passes read the same messages.

A position is the number of a message in a pass. The second pass looks at no key: before it comes to
some messages, the positions of all keys mark the survivors among them in a bitmap. An entry of
which all messages survive, or none, is not looked into.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.compacted_entry cimport CompactedPlace
from pulsarx._core.key_positions cimport KeyPositions
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter


cdef struct CompactedMessage:            # of an entry that is looked at
    const uint8_t* start                 # its header, in a batch
    const uint8_t* key                   # NULL: it has none
    uint64_t hash                        # of the key
    uint32_t size                        # with its header
    uint32_t key_size
    bint is_removal                      # it has no value
    bint taken_out                       # by an earlier compaction
    bint survives


cdef enum EntryKind:
    KIND_MESSAGES                        # those in `messages`
    KIND_WHOLE                           # cannot be looked into: it is copied as it is
    KIND_NOTHING                         # a marker
    KIND_CHUNK                           # a piece of a message, which is the one in `messages`


cdef class KeyCompaction:
    cdef KeyPositions keys
    cdef KeyPositions chunked            # where chunked messages end, by where they begin
    # by uuid, of messages whose last chunk did not come yet: [position of the first chunk, chunks
    # that came, chunks that belong to it]
    cdef dict open
    cdef Py_ssize_t open_max
    cdef bint lost_sight                 # there were more: some are not in it
    cdef dict left_open                  # `open` behind the first pass; None: that goes on
    cdef bint retain_null_key
    cdef object decompress
    cdef object compress
    cdef uint32_t decompressed_size_max
    cdef uint64_t end_ledger_id
    cdef uint64_t end_message
    cdef CompactedMessage* messages      # owned, of the entry in hand
    cdef uint32_t message_capacity
    cdef uint32_t message_count
    cdef bytes plain                     # its decompressed payload
    cdef const uint8_t* payload
    cdef uint32_t payload_size
    cdef uint8_t* room                   # owned: what is written
    cdef uint64_t room_size
    cdef readonly uint64_t scanned_count # messages, of the first pass
    cdef uint64_t copied_count           # messages that the second pass has come to
    cdef bint others_survive             # what no key tells of: without one, in chunks, unreadable
    cdef uint64_t* marks                 # owned: a bit each, of messages of the second pass
    cdef uint64_t marks_capacity         # words
    cdef uint64_t marks_least            # messages
    cdef uint64_t marked_from
    cdef uint64_t marked_count           # messages
    cdef uint64_t written_back           # bytes of the new ledger that are on their way
    cdef readonly uint64_t kept_count    # messages, of the second pass
    # Of the last survivor; 0, 0: there is none.
    cdef uint64_t last_ledger_id
    cdef uint64_t last_entry_id
    cdef int64_t last_batch_index
    cdef readonly list ledgers           # [ledger id, behind its last survivor], ascending

    cdef bint next_entry(self, LedgerReader reader) except -1
    cdef bint needs_rewrite(self) noexcept
    cdef int look_into(self, LedgerReader reader, EntryParts* parts) except -1
    cdef void fetch_keys(self, uint32_t start, uint32_t end) noexcept nogil
    cdef int mark_survivors(self, LedgerReader reader, uint64_t first, uint32_t count) except -1
    cdef uint32_t marked(self, uint64_t first, uint32_t count) noexcept nogil
    cdef bint is_marked(self, uint64_t position) noexcept nogil
    cdef int reserve_messages(self, uint32_t count) except -1
    cdef int reserve_room(self, uint64_t size) except -1
    cdef list follow(self, const EntryParts* parts, uint64_t first)
    cdef int note_end(self, list chunked, uint64_t first) noexcept
    cdef bint choose_chunk(self, const EntryParts* parts, uint64_t first) except -1
    cdef int note_keys(self, uint64_t first) noexcept nogil
    cdef uint32_t choose(self, uint64_t first) noexcept nogil
    cdef void write_back(self, LedgerWriter writer) noexcept nogil
    cdef int store(self, LedgerReader reader, LedgerWriter writer, uint32_t survivors,
                   const uint8_t* entry, uint32_t size, uint32_t flags) except -1
    cdef int store_rewritten(self, LedgerReader reader, LedgerWriter writer, uint32_t survivors,
                             const EntryParts* parts) except -1
