"""A ring of points in one ascending array; the contract is in the pxd.

Turns are kept dense: a consumer that comes or goes shifts the others by one. Their order among each
other stays as it was, so the array stays sorted and nothing is built anew.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memcpy, memset

from pulsarx._core.murmur3 cimport murmur3_blocks, murmur3_end
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK

cdef enum:
    PLACE_BITS = 0x7FFFFFFF
    DIGITS_MAX = 3          # of HASH_RING_POINTS


cdef void hash_ring_init(HashRing* self) noexcept nogil:
    memset(self, 0, sizeof(HashRing))


cdef void hash_ring_free(HashRing* self) noexcept nogil:
    free(self.points)
    hash_ring_init(self)


cdef int reserve(HashRing* self) noexcept nogil:
    cdef uint32_t wanted = self.count + HASH_RING_POINTS
    cdef HashPoint* grown
    if wanted <= self.capacity:
        return STATUS_OK
    wanted += wanted >> 1
    grown = <HashPoint*>realloc(self.points, <size_t>wanted * sizeof(HashPoint))
    if grown == NULL:
        return STATUS_NO_MEMORY
    self.points = grown
    self.capacity = wanted
    return STATUS_OK


cdef uint32_t write_number(uint8_t* at, uint32_t number) noexcept nogil:
    """Write a number below 1000 in decimal digits; answers how many."""
    cdef uint32_t size = 0
    if number >= 100:
        at[size] = <uint8_t>(0x30 + number // 100)
        size += 1
    if number >= 10:
        at[size] = <uint8_t>(0x30 + number // 10 % 10)
        size += 1
    at[size] = <uint8_t>(0x30 + number % 10)
    return size + 1


cdef int by_place(const void* left, const void* right) noexcept nogil:
    cdef uint32_t first = (<const HashPoint*>left).place
    cdef uint32_t second = (<const HashPoint*>right).place
    return (first > second) - (first < second)


cdef void points_of(HashPoint* points, uint16_t consumer, const uint8_t* name, uint32_t name_size,
                    uint16_t turn) noexcept nogil:
    """The points of one consumer, ascending. What they share of the name is hashed once."""
    cdef uint32_t rest = name_size & 3
    cdef uint32_t start = murmur3_blocks(0, name, name_size - rest)
    cdef uint8_t[3 + DIGITS_MAX] tail
    cdef uint32_t index, size, blocks, hashed
    memcpy(tail, name + name_size - rest, rest)
    for index in range(HASH_RING_POINTS):
        size = rest + write_number(tail + rest, index + 1)
        blocks = size & ~<uint32_t>3
        hashed = murmur3_end(murmur3_blocks(start, tail, blocks), tail + blocks,
                             <size_t>name_size - rest + size)
        points[index].place = hashed & <uint32_t>PLACE_BITS
        points[index].consumer = consumer
        points[index].turn = turn
    qsort(points, HASH_RING_POINTS, sizeof(HashPoint), by_place)


cdef inline bint stands_behind(const HashPoint* one, const HashPoint* other) noexcept nogil:
    return one.place > other.place or (one.place == other.place and one.turn > other.turn)


cdef int hash_ring_add(HashRing* self, uint16_t consumer, const uint8_t* name, uint32_t name_size,
                       uint16_t turn) noexcept nogil:
    cdef HashPoint[HASH_RING_POINTS] added
    cdef uint32_t left = self.count
    cdef uint32_t fresh = HASH_RING_POINTS
    cdef uint32_t index
    cdef int status = reserve(self)
    if status != STATUS_OK:
        return status
    for index in range(self.count):
        if self.points[index].turn >= turn:
            self.points[index].turn += 1
    points_of(added, consumer, name, name_size, turn)
    # From the end, into the room behind: what has not been moved yet is never overwritten.
    while fresh > 0:
        if left > 0 and stands_behind(&self.points[left - 1], &added[fresh - 1]):
            left -= 1
            self.points[left + fresh] = self.points[left]
        else:
            fresh -= 1
            self.points[left + fresh] = added[fresh]
    self.count += HASH_RING_POINTS
    return STATUS_OK


cdef void hash_ring_remove(HashRing* self, uint16_t consumer) noexcept nogil:
    cdef uint32_t index
    cdef uint32_t kept = 0
    cdef uint32_t turn = ~<uint32_t>0
    for index in range(self.count):
        if self.points[index].consumer == consumer:
            turn = self.points[index].turn
        else:
            self.points[kept] = self.points[index]
            kept += 1
    self.count = kept
    for index in range(kept):
        if self.points[index].turn > turn:
            self.points[index].turn -= 1


cdef uint16_t hash_ring_find(const HashRing* self, uint32_t hash) noexcept nogil:
    cdef uint32_t place = hash & <uint32_t>PLACE_BITS
    cdef uint32_t low = 0
    cdef uint32_t high = self.count
    cdef uint32_t middle, end
    if self.count == 0:
        return HASH_RING_NOBODY
    while low < high:
        middle = (low + high) >> 1
        if self.points[middle].place >= place:
            high = middle
        else:
            low = middle + 1
    if low == self.count:
        low = 0
    end = low + 1
    while end < self.count and self.points[end].place == self.points[low].place:
        end += 1
    return self.points[low + place % (end - low)].consumer
