"""Chooses the consumer of a Key_Shared subscription that a key belongs to, by one of three
mappings.

With the subscription's mutex held. A consumer is an index below 65000 that the dispatcher chose.
"""

from libc.stdint cimport uint16_t, uint32_t

from pulsarx._core.hash_ranges cimport HashRanges
from pulsarx._core.hash_ring cimport HashRing

cdef enum SelectorKind:
    SELECTOR_HASH_RANGE = 1
    SELECTOR_CONSISTENT_HASHING = 2
    SELECTOR_STICKY = 3


cdef class HashRangeSelector:
    cdef readonly int kind               # SelectorKind
    cdef HashRanges c_ranges
    cdef HashRing c_ring
    cdef dict names                      # consumer index: its name
    cdef dict ring_names                 # consumer index: the name its points are made of
    cdef list turns                      # all of those, ascending: where one stands is its turn

    cdef int add(self, uint16_t consumer, str name, object sticky_ranges) except -1
    """A consumer joins. sticky_ranges: pairs of first and last slot, for SELECTOR_STICKY alone.

    ConsumerAssignError, naming both consumers and the ranges: there are none, they overlap, or
    nothing is left to split; the selector is as it was.
    """

    cdef int remove(self, uint16_t consumer) except -1
    """A consumer leaves. Nothing when it never joined, as one that was refused."""

    cdef uint16_t select(self, uint32_t hash) noexcept nogil
    """The owner of a key, by the murmur3_32 of its sticky key; 65535: nobody (a hole)."""

    cdef int claim(self, uint16_t consumer, str name, object sticky_ranges) except -1
    cdef int join_ring(self, uint16_t consumer, str name) except -1
