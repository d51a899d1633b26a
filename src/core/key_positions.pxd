"""A hash table from the key of a message to the position of its last message, for compaction.

One thread at a time. A position is any number below UINT64_MAX, that of a removed key. The table
keeps a copy of each key, so its memory is bounded by the distinct keys: of each its bytes, 12
bytes, up to 7 of padding, and 13 to 26 of the table, half as much again while that grows.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from *:
    void __builtin_prefetch(const void* at) noexcept nogil

cdef enum KeyChunkSizes:
    KEY_CHUNK_BITS = 22              # chunks of 4 MiB: two huge pages
    KEY_UNIT_BITS = 3                # records begin at a multiple of 8 bytes

cdef struct KeyRecord:               # its bytes follow
    uint64_t position
    uint32_t key_size

cdef struct KeyChunk:
    uint8_t* records
    uint64_t used                    # bytes
    uint64_t size                    # 0: the chunk before is larger than one, and goes on here

cdef struct KeyPositions:
    # 0: free, else 32 bits of the hash above the place of the record, in units, of all chunks.
    uint64_t* slots                  # owned
    uint64_t slot_count              # a power of two
    uint64_t key_count
    KeyChunk* chunks                 # owned, with their records, which never move
    uint32_t chunk_count
    uint32_t chunk_capacity
    uint64_t memory_size             # bytes that are held
    uint64_t seed

cdef void key_positions_init(KeyPositions* self, uint64_t seed) noexcept nogil
"""seed: any number that who writes the keys does not know."""

cdef void key_positions_free(KeyPositions* self) noexcept nogil

cdef uint64_t key_positions_hash(const KeyPositions* self, const uint8_t* key,
                                 uint32_t size) noexcept nogil
"""Hash a key, as the functions below expect it. Nearly each of them waits for memory, so a caller
that has many asks for all their slots first, then for their records, and then for them."""

cdef inline void key_positions_fetch_slot(const KeyPositions* self, uint64_t hash) noexcept nogil:
    if self.slot_count:
        __builtin_prefetch(&self.slots[hash & (self.slot_count - 1)])

cdef inline KeyRecord* key_positions_record(const KeyPositions* self, uint64_t slot) noexcept nogil:
    """The record of a slot that is not free."""
    cdef uint64_t at = (slot & <uint64_t>0xFFFFFFFF) << KEY_UNIT_BITS
    return <KeyRecord*>(self.chunks[at >> KEY_CHUNK_BITS].records
                        + (at & ((<uint64_t>1 << KEY_CHUNK_BITS) - 1)))

cdef inline void key_positions_fetch_record(const KeyPositions* self,
                                            uint64_t hash) noexcept nogil:
    cdef uint64_t slot
    if self.slot_count:
        slot = self.slots[hash & (self.slot_count - 1)]
        if slot and slot >> 32 == hash & <uint64_t>0xFFFFFFFF:
            __builtin_prefetch(key_positions_record(self, slot))

cdef int key_positions_put(KeyPositions* self, uint64_t hash, const uint8_t* key, uint32_t size,
                           uint64_t position) noexcept nogil
"""The last message of the key so far; UINT64_MAX: it has none any more. NO_MEMORY: also where all
keys together take more than 32 GiB."""

cdef bint key_positions_find(const KeyPositions* self, uint64_t hash, const uint8_t* key,
                             uint32_t size, uint64_t* position) noexcept nogil
"""False: the key was never put."""

cdef void key_positions_mark(const KeyPositions* self, uint64_t first, uint64_t count,
                             uint64_t* bits) noexcept nogil
"""Set the bit of each position there is from first on; bits: of so many positions, all clear."""
