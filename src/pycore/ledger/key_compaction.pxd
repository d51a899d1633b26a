"""The two passes of a compaction over a topic: first the last message of each key, then a copy of
the entries that hold one. One thread at a time; both passes read the same messages.

A position is the number of a message in a pass. The second pass looks at no key: before it comes to
some messages, the positions of all keys mark the survivors among them in a bitmap. An entry of
which all messages survive, or none, is not looked into.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.key_positions cimport KeyPositions
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._pycore.ledger.followed_chunks cimport FollowedChunks
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


cdef struct EntryInHand:
    CompactedMessage* messages           # owned
    uint32_t capacity
    uint32_t count


cdef struct SurvivorMarks:               # of messages of the second pass, a bit each
    uint64_t* words                      # owned
    uint64_t capacity                    # words
    uint64_t least                       # messages that are marked together
    uint64_t first
    uint64_t count                       # messages


cdef struct LastSurvivor:                # ledger id 0: there is none
    uint64_t ledger_id
    uint64_t entry_id
    int64_t batch_index


cdef enum EntryKind:
    KIND_MESSAGES                        # those in `messages`
    KIND_WHOLE                           # cannot be looked into: it is copied as it is
    KIND_NOTHING                         # a marker
    KIND_CHUNK                           # a piece of a message, which is the one in `messages`


cdef class KeyCompaction:
    cdef KeyPositions keys
    cdef FollowedChunks chunks
    cdef bint retain_null_key
    cdef object decompress
    cdef object compress
    cdef uint32_t decompressed_size_max
    cdef uint64_t end_ledger_id
    cdef uint64_t end_message
    cdef EntryInHand hand
    cdef bytes plain                     # its decompressed payload, which the messages point into
    cdef uint8_t* room                   # owned: what is written
    cdef uint64_t room_size
    cdef readonly uint64_t scanned_count # messages, of the first pass
    cdef uint64_t copied_count           # messages that the second pass has come to
    cdef bint others_survive             # what no key tells of: without one, in chunks, unreadable
    cdef SurvivorMarks marks
    cdef uint64_t written_back           # bytes of the new ledger that are on their way
    cdef readonly uint64_t kept_count    # messages, of the second pass
    cdef LastSurvivor last_survivor
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
    cdef bint choose_chunk(self, const EntryParts* parts, uint64_t first) except -1
    cdef int note_keys(self, uint64_t first) noexcept nogil
    cdef uint32_t choose(self, uint64_t first) noexcept nogil
    cdef void write_back(self, LedgerWriter writer) noexcept nogil
    cdef int store(self, LedgerReader reader, LedgerWriter writer, uint32_t survivors,
                   const uint8_t* entry, uint32_t size, uint32_t flags) except -1
    cdef int store_rewritten(self, LedgerReader reader, LedgerWriter writer, uint32_t survivors,
                             const EntryParts* parts) except -1
