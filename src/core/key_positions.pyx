"""Body of key_positions.pxd: open addressing over records in chunks that never move."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK

cdef extern from *:
    void __builtin_prefetch(const void* at) noexcept nogil

cdef extern from "stdlib.h":
    int posix_memalign(void** memory, size_t alignment, size_t size) noexcept nogil

cdef extern from "sys/mman.h":
    int madvise(void* memory, size_t size, int advice) noexcept nogil
    enum:
        MADV_HUGEPAGE

cdef enum:
    SLOTS_FIRST = 1024
    SLOTS_AHEAD = 16                 # whose records are fetched while the table grows
    CHUNK_SIZE = 1048576
    HUGE_PAGE = 2097152
    HUGE_CHUNKS = 16                 # after so many chunks they are of huge pages
    ADDRESS_BITS = 48                # of a pointer; the bits above hold a part of the hash

cdef uint64_t ADDRESS_MASK = (<uint64_t>1 << ADDRESS_BITS) - 1
cdef uint64_t MULTIPLIER = <uint64_t>0x9E3779B97F4A7C15


cdef void key_positions_init(KeyPositions* self, uint64_t seed) noexcept nogil:
    memset(self, 0, sizeof(KeyPositions))
    self.seed = seed


cdef void key_positions_free(KeyPositions* self) noexcept nogil:
    cdef KeyChunk* chunk = self.chunk
    cdef KeyChunk* before
    while chunk != NULL:
        before = chunk.before
        free(chunk)
        chunk = before
    free(self.slots)
    key_positions_init(self, self.seed)


cdef inline uint64_t mixed(uint64_t value) noexcept nogil:
    """Each bit of the answer depends on each bit of the value."""
    value ^= value >> 32
    value *= MULTIPLIER
    value ^= value >> 29
    value *= MULTIPLIER
    return value ^ (value >> 32)


cdef uint64_t key_positions_hash(const KeyPositions* self, const uint8_t* key,
                                 uint32_t size) noexcept nogil:
    cdef uint64_t found = self.seed ^ size
    cdef uint64_t word
    while size >= 8:
        memcpy(&word, key, 8)
        found = mixed(found ^ word)
        key += 8
        size -= 8
    word = 0
    if size:
        memcpy(&word, key, size)
    return mixed(found ^ word ^ (self.seed >> 7))


cdef void key_positions_fetch_slot(const KeyPositions* self, uint64_t hash) noexcept nogil:
    if self.slot_count:
        __builtin_prefetch(&self.slots[hash & (self.slot_count - 1)])


cdef void key_positions_fetch_record(const KeyPositions* self, uint64_t hash) noexcept nogil:
    cdef uint64_t slot
    if self.slot_count:
        slot = self.slots[hash & (self.slot_count - 1)]
        if slot:
            __builtin_prefetch(record_at(slot))


cdef inline KeyRecord* record_at(uint64_t slot) noexcept nogil:
    return <KeyRecord*><uintptr_t>(slot & ADDRESS_MASK)


cdef inline uint64_t slot_of(KeyRecord* record) noexcept nogil:
    cdef uint64_t address = <uint64_t><uintptr_t>record
    invariant(address >> ADDRESS_BITS == 0)
    return address | (record.hash & ~ADDRESS_MASK)


cdef uint64_t* slot_for(const KeyPositions* self, const uint8_t* key, uint32_t size,
                        uint64_t wanted) noexcept nogil:
    """The slot of a key, or the free one where it belongs."""
    cdef uint64_t mask = self.slot_count - 1
    cdef uint64_t at = wanted & mask
    cdef uint64_t slot
    cdef KeyRecord* record
    while True:
        slot = self.slots[at]
        if slot == 0:
            return &self.slots[at]
        if (slot ^ wanted) & ~ADDRESS_MASK == 0:
            record = record_at(slot)
            if record.hash == wanted and record.key_size == size and (
                    size == 0 or memcmp(record + 1, key, size) == 0):
                return &self.slots[at]
        at = (at + 1) & mask


cdef void* huge(uint64_t size) noexcept nogil:
    """Memory that is looked at here and there: with small pages each look costs a walk through the
    page table. NULL: there is none. To be freed with free."""
    cdef void* found = NULL
    if size < HUGE_PAGE:
        return malloc(size)
    if posix_memalign(&found, HUGE_PAGE, size) != 0:
        return NULL
    madvise(found, size, MADV_HUGEPAGE)      # where there are none it is slower, and that is all
    return found


cdef int grow(KeyPositions* self) noexcept nogil:
    cdef uint64_t count = 2 * self.slot_count if self.slot_count else <uint64_t>SLOTS_FIRST
    cdef uint64_t* slots = <uint64_t*>huge(count * sizeof(uint64_t))
    cdef uint64_t from_slot
    cdef uint64_t at
    cdef uint64_t old
    if slots == NULL:
        return STATUS_NO_MEMORY
    memset(slots, 0, count * sizeof(uint64_t))
    for old in range(self.slot_count):
        if old + SLOTS_AHEAD < self.slot_count and self.slots[old + SLOTS_AHEAD] != 0:
            __builtin_prefetch(record_at(self.slots[old + SLOTS_AHEAD]))
        from_slot = self.slots[old]
        if from_slot != 0:
            at = record_at(from_slot).hash & (count - 1)
            while slots[at] != 0:
                at = (at + 1) & (count - 1)
            slots[at] = from_slot
    self.memory_size += (count - self.slot_count) * sizeof(uint64_t)
    free(self.slots)
    self.slots = slots
    self.slot_count = count
    return STATUS_OK


cdef KeyRecord* new_record(KeyPositions* self, uint32_t key_size) noexcept nogil:
    cdef uint64_t size = (sizeof(KeyRecord) + <uint64_t>key_size + 7) & ~<uint64_t>7
    cdef uint64_t chunk_size = CHUNK_SIZE
    cdef KeyChunk* chunk
    cdef KeyRecord* record
    if size > self.room_size:
        if self.memory_size > <uint64_t>HUGE_CHUNKS * CHUNK_SIZE:
            chunk_size = 2 * HUGE_PAGE
        if size > chunk_size - sizeof(KeyChunk):
            chunk_size = size + sizeof(KeyChunk)
        chunk = <KeyChunk*>huge(chunk_size)
        if chunk == NULL:
            return NULL
        chunk.before = self.chunk
        self.chunk = chunk
        self.room = <uint8_t*>(chunk + 1)
        self.room_size = chunk_size - sizeof(KeyChunk)
        self.memory_size += chunk_size
    record = <KeyRecord*>self.room
    self.room += size
    self.room_size -= size
    return record


cdef int key_positions_put(KeyPositions* self, uint64_t hash, const uint8_t* key, uint32_t size,
                           uint64_t ledger_id, uint64_t message) noexcept nogil:
    cdef uint64_t* slot
    cdef KeyRecord* record
    cdef int status
    if 8 * (self.key_count + 1) > 5 * self.slot_count:
        status = grow(self)
        if status != STATUS_OK:
            return status
    slot = slot_for(self, key, size, hash)
    if slot[0] == 0:
        record = new_record(self, size)
        if record == NULL:
            return STATUS_NO_MEMORY
        record.hash = hash
        record.key_size = size
        record.unused = 0
        if size:
            memcpy(record + 1, key, size)
        slot[0] = slot_of(record)
        self.key_count += 1
    else:
        record = record_at(slot[0])
    record.ledger_id = ledger_id
    record.message = message
    return STATUS_OK


cdef bint key_positions_find(const KeyPositions* self, uint64_t hash, const uint8_t* key,
                             uint32_t size, uint64_t* ledger_id, uint64_t* message) noexcept nogil:
    cdef uint64_t* slot
    cdef KeyRecord* record
    if self.slot_count == 0:
        return False
    slot = slot_for(self, key, size, hash)
    if slot[0] == 0:
        return False
    record = record_at(slot[0])
    ledger_id[0] = record.ledger_id
    message[0] = record.message
    return True
