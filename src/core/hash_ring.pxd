"""Assigns hashes to consumers of Key_Shared by consistent hashing: a ring of 2^31 places, 100
points a consumer.

Point i (1..100) of a consumer is murmur3_32(name + str(i)), sign bit cleared. A key belongs to the
first point at or behind its hash (sign bit cleared), going round. Points on one place are a list in
the order of their consumers' names, picked by that hash mod its length. One thread at a time.
Source: the seeds; Pulsar's ConsistentHashingStickyKeyConsumerSelector up to 2.11.
"""

from libc.stdint cimport uint8_t, uint16_t, uint32_t

cdef enum HashRingLimits:
    HASH_RING_POINTS = 100
    HASH_RING_NOBODY = 65535            # no consumer

cdef struct HashPoint:
    uint32_t place
    uint16_t consumer
    uint16_t turn                       # place of its consumer's name among all names, ascending

cdef struct HashRing:
    HashPoint* points                   # owned, ascending by (place, turn)
    uint32_t count
    uint32_t capacity

cdef void hash_ring_init(HashRing* self) noexcept nogil
cdef void hash_ring_free(HashRing* self) noexcept nogil

cdef int hash_ring_add(HashRing* self, uint16_t consumer, const uint8_t* name, uint32_t name_size,
                       uint16_t turn) noexcept nogil
"""A consumer joins that has no points yet, with a name no other has.

turn: how many of the others have a lesser name; those that have a greater one move up by one turn.
NO_MEMORY: nothing changed.
"""

cdef void hash_ring_remove(HashRing* self, uint16_t consumer) noexcept nogil
"""A consumer leaves; those behind its turn move down by one. Nothing when it has no points."""

cdef uint16_t hash_ring_find(const HashRing* self, uint32_t hash) noexcept nogil
"""HASH_RING_NOBODY: the ring is empty."""
