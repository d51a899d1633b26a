"""Regions of hash slots, ascending; the contract is in the pxd."""

from libc.stdint cimport uint16_t, uint32_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK, STATUS_OUT_OF_RANGE


cdef void hash_ranges_init(HashRanges* self) noexcept nogil:
    memset(self, 0, sizeof(HashRanges))


cdef void hash_ranges_free(HashRanges* self) noexcept nogil:
    free(self.ranges)
    hash_ranges_init(self)


cdef int reserve(HashRanges* self, uint32_t more) noexcept nogil:
    cdef uint32_t wanted = self.count + more
    cdef HashRange* grown
    if wanted <= self.capacity:
        return STATUS_OK
    wanted += wanted >> 1
    grown = <HashRange*>realloc(self.ranges, <size_t>wanted * sizeof(HashRange))
    if grown == NULL:
        return STATUS_NO_MEMORY
    self.ranges = grown
    self.capacity = wanted
    return STATUS_OK


cdef void insert(HashRanges* self, uint32_t at, uint32_t start, uint32_t end,
                 uint16_t consumer) noexcept nogil:
    """Put a region before the one at `at`; room was reserved."""
    invariant(self.count < self.capacity)
    memmove(self.ranges + at + 1, self.ranges + at, (self.count - at) * sizeof(HashRange))
    self.ranges[at].start = start
    self.ranges[at].end = end
    self.ranges[at].consumer = consumer
    self.count += 1


cdef uint32_t first_ending_behind(const HashRanges* self, uint32_t slot) noexcept nogil:
    """Index of the first region that ends behind the slot, count if there is none."""
    cdef uint32_t low = 0
    cdef uint32_t high = self.count
    cdef uint32_t middle
    while low < high:
        middle = (low + high) >> 1
        if self.ranges[middle].end > slot:
            high = middle
        else:
            low = middle + 1
    return low


cdef int hash_ranges_split(HashRanges* self, uint16_t consumer) noexcept nogil:
    cdef uint32_t index, width, start
    cdef uint32_t widest = 0
    cdef uint32_t widest_at = 0
    cdef int status = reserve(self, 1)
    if status != STATUS_OK:
        return status
    if self.count == 0:
        insert(self, 0, 0, HASH_SLOTS, consumer)
        return STATUS_OK
    for index in range(self.count):
        width = self.ranges[index].end - self.ranges[index].start
        if width > widest:
            widest = width
            widest_at = index
    if widest < 2:
        return STATUS_OUT_OF_RANGE
    # The newcomer gets the odd slot, as in Pulsar.
    start = self.ranges[widest_at].start
    self.ranges[widest_at].start = self.ranges[widest_at].end - (widest >> 1)
    insert(self, widest_at, start, self.ranges[widest_at].start, consumer)
    return STATUS_OK


cdef void hash_ranges_merge(HashRanges* self, uint16_t consumer) noexcept nogil:
    cdef uint32_t at = 0
    while at < self.count and self.ranges[at].consumer != consumer:
        at += 1
    if at == self.count:
        return
    if at + 1 < self.count:
        self.ranges[at + 1].start = self.ranges[at].start
    elif at > 0:
        self.ranges[at - 1].end = self.ranges[at].end
    self.count -= 1
    memmove(self.ranges + at, self.ranges + at + 1, (self.count - at) * sizeof(HashRange))


cdef int hash_ranges_claim(HashRanges* self, uint16_t consumer, const uint32_t* bounds,
                           uint32_t range_count, HashClash* clash) noexcept nogil:
    cdef uint32_t index, at, first, last
    cdef int status = reserve(self, range_count)
    if status != STATUS_OK:
        return status
    for index in range(range_count):
        first = bounds[2 * index]
        last = bounds[2 * index + 1]
        invariant(first <= last and last < <uint32_t>HASH_SLOTS)
        at = first_ending_behind(self, first)
        if at < self.count and self.ranges[at].start <= last:
            clash.refused = index
            clash.holder = self.ranges[at]
            hash_ranges_release(self, consumer)
            return STATUS_OUT_OF_RANGE
        insert(self, at, first, last + 1, consumer)
    return STATUS_OK


cdef void hash_ranges_release(HashRanges* self, uint16_t consumer) noexcept nogil:
    cdef uint32_t index
    cdef uint32_t kept = 0
    for index in range(self.count):
        if self.ranges[index].consumer != consumer:
            self.ranges[kept] = self.ranges[index]
            kept += 1
    self.count = kept


cdef uint16_t hash_ranges_find(const HashRanges* self, uint32_t hash) noexcept nogil:
    cdef uint32_t slot = hash & (HASH_SLOTS - 1)
    cdef uint32_t at = first_ending_behind(self, slot)
    if at == self.count or self.ranges[at].start > slot:
        return HASH_NOBODY
    return self.ranges[at].consumer
