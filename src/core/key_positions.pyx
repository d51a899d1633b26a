"""Body of key_positions.pxd: open addressing over records in chunks that never move."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK

cdef extern from "sys/mman.h":
    void* mmap(void* at, size_t size, int protection, int flags, int fd, long offset) noexcept nogil
    int munmap(void* memory, size_t size) noexcept nogil
    int madvise(void* memory, size_t size, int advice) noexcept nogil
    void* MAP_FAILED
    enum:
        MADV_HUGEPAGE
        MAP_ANONYMOUS
        MAP_PRIVATE
        PROT_READ
        PROT_WRITE

cdef enum:
    SLOTS_FIRST = 1024
    CHUNKS_FIRST = 16
    CHUNK_FIRST_SIZE = 1048576       # of the first one alone: most topics have few keys
    HUGE_PAGE = 2097152
    RECORD_HEAD_SIZE = 12            # the key follows without the padding of the struct

cdef uint64_t CHUNK_SIZE = <uint64_t>1 << KEY_CHUNK_BITS
cdef uint64_t CHUNKS_MAX = <uint64_t>1 << (32 + KEY_UNIT_BITS - KEY_CHUNK_BITS)
cdef uint64_t SLOTS_MAX = <uint64_t>1 << 32        # a slot has 32 bits of the hash
cdef uint64_t MULTIPLIER = <uint64_t>0x9E3779B97F4A7C15


cdef uint8_t* zeros_new(uint64_t size) noexcept nogil:
    """Memory that is looked at here and there: with small pages each look costs a walk through the
    page table. NULL: there is none."""
    cdef uint8_t* found
    cdef uint8_t* start
    if size < HUGE_PAGE:
        return <uint8_t*>calloc(size, 1)
    found = <uint8_t*>mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    if found == MAP_FAILED:
        return NULL
    start = <uint8_t*>((<uintptr_t>found + HUGE_PAGE - 1) & ~<uintptr_t>(HUGE_PAGE - 1))
    if start > found:
        munmap(found, start - found)
    munmap(start + size, found + HUGE_PAGE - start)
    madvise(start, size, MADV_HUGEPAGE)      # where there are none it is slower, and that is all
    return start


cdef void zeros_free(void* memory, uint64_t size) noexcept nogil:
    if size < HUGE_PAGE:
        free(memory)
    else:
        munmap(memory, size)


cdef void key_positions_init(KeyPositions* self, uint64_t seed) noexcept nogil:
    memset(self, 0, sizeof(KeyPositions))
    self.seed = seed


cdef void key_positions_free(KeyPositions* self) noexcept nogil:
    cdef uint32_t at
    for at in range(self.chunk_count):
        if self.chunks[at].size:
            zeros_free(self.chunks[at].records, self.chunks[at].size)
    free(self.chunks)
    if self.slots != NULL:
        zeros_free(self.slots, self.slot_count * sizeof(uint64_t))
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
        if slot >> 32 == wanted & <uint64_t>0xFFFFFFFF:
            record = key_positions_record(self, slot)
            if record.key_size == size and (
                    size == 0 or memcmp(key_of(record), key, size) == 0):
                return &self.slots[at]
        at = (at + 1) & mask


cdef int grow(KeyPositions* self) noexcept nogil:
    cdef uint64_t count = 2 * self.slot_count if self.slot_count else <uint64_t>SLOTS_FIRST
    cdef uint64_t* slots
    cdef uint64_t at
    cdef uint64_t old
    if count > SLOTS_MAX:
        return STATUS_NO_MEMORY
    slots = <uint64_t*>zeros_new(count * sizeof(uint64_t))
    if slots == NULL:
        return STATUS_NO_MEMORY
    for old in range(self.slot_count):
        if self.slots[old] != 0:
            at = (self.slots[old] >> 32) & (count - 1)
            while slots[at] != 0:
                at = (at + 1) & (count - 1)
            slots[at] = self.slots[old]
    self.memory_size += (count - self.slot_count) * sizeof(uint64_t)
    if self.slots != NULL:
        zeros_free(self.slots, self.slot_count * sizeof(uint64_t))
    self.slots = slots
    self.slot_count = count
    return STATUS_OK


cdef inline uint64_t record_size(uint64_t key_size) noexcept nogil:
    return (RECORD_HEAD_SIZE + key_size + 7) & ~<uint64_t>7


cdef inline uint8_t* key_of(KeyRecord* record) noexcept nogil:
    return <uint8_t*>record + RECORD_HEAD_SIZE


cdef int add_chunk(KeyPositions* self, uint64_t size) noexcept nogil:
    """A chunk with room for a record of this size, which may take the numbers of several."""
    cdef uint64_t numbers = (size + CHUNK_SIZE - 1) >> KEY_CHUNK_BITS
    cdef uint64_t count = self.chunk_count + numbers
    cdef uint64_t capacity = self.chunk_capacity if self.chunk_capacity else <uint64_t>CHUNKS_FIRST
    cdef uint64_t chunk_size = numbers << KEY_CHUNK_BITS
    cdef KeyChunk* chunks
    cdef uint8_t* records
    cdef uint64_t at
    if self.chunk_count == 0 and size < CHUNK_FIRST_SIZE:
        chunk_size = CHUNK_FIRST_SIZE
    if count > CHUNKS_MAX:
        return STATUS_NO_MEMORY
    while capacity < count:
        capacity *= 2
    if capacity > self.chunk_capacity:
        chunks = <KeyChunk*>realloc(self.chunks, capacity * sizeof(KeyChunk))
        if chunks == NULL:
            return STATUS_NO_MEMORY
        self.chunks = chunks
        self.chunk_capacity = <uint32_t>capacity
    records = zeros_new(chunk_size)
    if records == NULL:
        return STATUS_NO_MEMORY
    for at in range(numbers):
        self.chunks[self.chunk_count + at].records = records + (at << KEY_CHUNK_BITS)
        self.chunks[self.chunk_count + at].used = 0
        self.chunks[self.chunk_count + at].size = 0
    self.chunks[self.chunk_count].size = chunk_size
    if self.chunk_count == 0:
        self.chunks[0].used = 8              # a slot of zeros is free
    self.chunk_count = <uint32_t>count
    self.memory_size += chunk_size
    return STATUS_OK


cdef int new_record(KeyPositions* self, uint32_t key_size, uint64_t* place) noexcept nogil:
    """place: in units."""
    cdef uint64_t size = record_size(key_size)
    cdef KeyChunk* chunk
    cdef uint64_t number
    cdef int status
    if self.chunk_count:
        chunk = &self.chunks[self.chunk_count - 1]
        if chunk.size >= chunk.used + size:
            place[0] = (((<uint64_t>self.chunk_count - 1) << KEY_CHUNK_BITS)
                        + chunk.used) >> KEY_UNIT_BITS
            chunk.used += size
            return STATUS_OK
    number = self.chunk_count
    status = add_chunk(self, size + 8)
    if status != STATUS_OK:
        return status
    chunk = &self.chunks[number]
    place[0] = ((number << KEY_CHUNK_BITS) + chunk.used) >> KEY_UNIT_BITS
    chunk.used += size
    return STATUS_OK


cdef int key_positions_put(KeyPositions* self, uint64_t hash, const uint8_t* key, uint32_t size,
                           uint64_t position) noexcept nogil:
    cdef uint64_t* slot
    cdef KeyRecord* record
    cdef uint64_t place = 0
    cdef int status
    if 8 * (self.key_count + 1) > 5 * self.slot_count:
        status = grow(self)
        if status != STATUS_OK:
            return status
    slot = slot_for(self, key, size, hash)
    if slot[0] == 0:
        status = new_record(self, size, &place)
        if status != STATUS_OK:
            return status
        slot[0] = hash << 32 | place
        record = key_positions_record(self, slot[0])
        record.key_size = size
        if size:
            memcpy(key_of(record), key, size)
        self.key_count += 1
    else:
        record = key_positions_record(self, slot[0])
    record.position = position
    return STATUS_OK


cdef bint key_positions_find(const KeyPositions* self, uint64_t hash, const uint8_t* key,
                             uint32_t size, uint64_t* position) noexcept nogil:
    cdef uint64_t* slot
    if self.slot_count == 0:
        return False
    slot = slot_for(self, key, size, hash)
    if slot[0] == 0:
        return False
    position[0] = key_positions_record(self, slot[0]).position
    return True


cdef void key_positions_mark(const KeyPositions* self, uint64_t first, uint64_t count,
                             uint64_t* bits) noexcept nogil:
    cdef uint32_t number
    cdef uint8_t* at
    cdef uint8_t* end
    cdef KeyRecord* record
    cdef uint64_t position
    for number in range(self.chunk_count):
        at = self.chunks[number].records
        end = at + self.chunks[number].used
        if number == 0:
            at += 8
        while at < end:
            record = <KeyRecord*>at
            position = record.position - first
            if position < count:             # also where it lies in front, or is removed
                bits[position >> 6] |= <uint64_t>1 << (position & 63)
            at += record_size(record.key_size)
