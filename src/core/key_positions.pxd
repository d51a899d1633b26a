"""Where the last message of each key is: a hash table of keys to positions, for compaction.

One thread at a time. The table keeps a copy of each key, so its memory is bounded by the distinct
keys: of each its bytes, a record of 32 bytes and 13 to 26 bytes of the table.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef struct KeyRecord:
    uint64_t hash
    uint64_t ledger_id               # 0: the key was removed
    uint64_t message                 # ordinal in that ledger
    uint32_t key_size                # its bytes follow the record
    uint32_t unused

cdef struct KeyChunk:
    KeyChunk* before
    uint64_t unused                  # the records that follow are aligned

cdef struct KeyPositions:
    uint64_t* slots                  # owned; 0: free, else upper bits of the hash and a KeyRecord*
    uint64_t slot_count              # a power of two
    uint64_t key_count
    KeyChunk* chunk                  # owned, with those before it
    uint8_t* room                    # what is free in the chunk
    uint64_t room_size
    uint64_t memory_size             # bytes that are held
    uint64_t seed

cdef void key_positions_init(KeyPositions* self, uint64_t seed) noexcept nogil
"""seed: any number that who writes the keys does not know."""

cdef void key_positions_free(KeyPositions* self) noexcept nogil

cdef uint64_t key_positions_hash(const KeyPositions* self, const uint8_t* key,
                                 uint32_t size) noexcept nogil
"""What the functions below want of a key. Nearly each of them waits for memory, so a caller that
has many asks for all their slots first, then for their records, and then for them."""

cdef void key_positions_fetch_slot(const KeyPositions* self, uint64_t hash) noexcept nogil
cdef void key_positions_fetch_record(const KeyPositions* self, uint64_t hash) noexcept nogil

cdef int key_positions_put(KeyPositions* self, uint64_t hash, const uint8_t* key, uint32_t size,
                           uint64_t ledger_id, uint64_t message) noexcept nogil
"""The last message of the key so far; ledger_id 0: it has none any more. NO_MEMORY."""

cdef bint key_positions_find(const KeyPositions* self, uint64_t hash, const uint8_t* key,
                             uint32_t size, uint64_t* ledger_id, uint64_t* message) noexcept nogil
"""False: the key was never put."""
