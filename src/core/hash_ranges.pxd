"""Assigns the 65536 hash slots of Key_Shared to consumers, in half-open ranges [start, end):
auto-split hash range, and sticky ranges.

Auto-split has one region a consumer and no hole. A new consumer takes the lower half of the widest
region (the lowest of equally wide ones); a leaver's region joins the one on its right, the last one
the one on its left. Sticky: as many regions as claimed, and holes. One thread at a time.
Source: the seeds; Pulsar's HashRangeAutoSplitStickyKeyConsumerSelector, whose regions are closed
at the other end.
"""

from libc.stdint cimport uint16_t, uint32_t

cdef enum HashRangeLimits:
    HASH_SLOTS = 65536
    HASH_NOBODY = 65535                 # no consumer

cdef struct HashRange:
    uint32_t start
    uint32_t end                        # one behind the last slot
    uint16_t consumer

cdef struct HashRanges:
    HashRange* ranges                   # owned, ascending; without holes in auto-split mode
    uint32_t count
    uint32_t capacity

cdef struct HashClash:
    uint32_t refused                    # which of the given ranges
    HashRange holder                    # what it overlaps; of the claimer itself: given before it

cdef void hash_ranges_init(HashRanges* self) noexcept nogil
cdef void hash_ranges_free(HashRanges* self) noexcept nogil

cdef int hash_ranges_split(HashRanges* self, uint16_t consumer) noexcept nogil
"""A consumer joins that has no region yet. OUT_OF_RANGE: no region is left to be split. NO_MEMORY.
After either, nothing has changed."""

cdef void hash_ranges_merge(HashRanges* self, uint16_t consumer) noexcept nogil
"""A consumer of the auto-split mode leaves; nothing when it has no region."""

cdef int hash_ranges_claim(HashRanges* self, uint16_t consumer, const uint32_t* bounds,
                           uint32_t range_count, HashClash* clash) noexcept nogil
"""Sticky mode: a consumer joins that has no region yet.

bounds: range_count pairs (first slot, last slot), first <= last < HASH_SLOTS. OUT_OF_RANGE: a range
overlaps another, clash says which; clash is written only then. NO_MEMORY. After either, nothing has
changed.
"""

cdef void hash_ranges_release(HashRanges* self, uint16_t consumer) noexcept nogil
"""Sticky mode: its ranges become holes."""

cdef uint16_t hash_ranges_find(const HashRanges* self, uint32_t hash) noexcept nogil
"""The consumer that has slot hash mod 65536; HASH_NOBODY: none."""
