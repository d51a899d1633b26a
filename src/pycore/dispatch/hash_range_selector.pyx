"""The consumers of a Key_Shared subscription and their keys; the contract is in the pxd."""

from bisect import bisect_left

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport uint8_t, uint16_t, uint32_t

from pulsarx import errors
from pulsarx._core.hash_ranges cimport (
    HASH_NOBODY, HASH_SLOTS, HashClash, hash_ranges_claim, hash_ranges_find, hash_ranges_free,
    hash_ranges_init, hash_ranges_merge, hash_ranges_release, hash_ranges_split,
)
from pulsarx._core.hash_ring cimport (
    hash_ring_add, hash_ring_find, hash_ring_free, hash_ring_init, hash_ring_remove,
)
from pulsarx._core.status cimport STATUS_OUT_OF_RANGE
from pulsarx._pycore.ground.raise_status cimport raise_status


cdef list checked_ranges(str name, object sticky_ranges):
    cdef list ranges = [(first, last) for first, last in sticky_ranges or ()]
    if not ranges:
        raise errors.ConsumerAssignError(
            detail=f"consumer {name!r} cannot join: in sticky mode it must say which hash ranges "
            "it takes")
    for first, last in ranges:
        if not 0 <= first <= last < HASH_SLOTS:
            raise errors.ConsumerAssignError(
                detail=f"consumer {name!r} cannot join: its sticky range {first}..{last} does not "
                f"run upwards within 0..{HASH_SLOTS - 1}")
    return ranges


cdef class HashRangeSelector:
    """Chooses the consumer that a key belongs to. With the subscription's mutex held.

    kind: 1 auto-split hash range, 2 auto-split consistent hashing, 3 sticky.
    """

    def __cinit__(self, int kind) -> None:
        hash_ranges_init(&self.c_ranges)
        hash_ring_init(&self.c_ring)
        if kind < <int>SELECTOR_HASH_RANGE or kind > <int>SELECTOR_STICKY:
            raise ValueError(f"a selector is of kind 1, 2 or 3, not {kind}")
        self.kind = kind
        self.names = {}
        self.ring_names = {}
        self.turns = []

    def __dealloc__(self) -> None:
        hash_ranges_free(&self.c_ranges)
        hash_ring_free(&self.c_ring)

    # For the dispatcher.

    cdef int add(self, uint16_t consumer, str name, object sticky_ranges) except -1:
        cdef int status
        if consumer == HASH_NOBODY or consumer in self.names:
            raise errors.InternalError(
                detail=f"consumer {consumer} cannot join: its index is in use")
        self.names[consumer] = name
        try:
            if self.kind == SELECTOR_STICKY:
                self.claim(consumer, name, sticky_ranges)
            elif self.kind == SELECTOR_CONSISTENT_HASHING:
                self.join_ring(consumer, name)
            else:
                status = hash_ranges_split(&self.c_ranges, consumer)
                if status == STATUS_OUT_OF_RANGE:
                    raise errors.ConsumerAssignError(
                        detail=f"consumer {name!r} cannot join: all {HASH_SLOTS} hash slots are "
                        f"divided among {len(self.names) - 1} consumers, and none has two to share")
                raise_status(status, 0, f"add consumer {name!r}")
        except:
            del self.names[consumer]
            raise
        return 0

    cdef int claim(self, uint16_t consumer, str name, object sticky_ranges) except -1:
        cdef list ranges = checked_ranges(name, sticky_ranges)
        cdef uint32_t index
        cdef HashClash clash
        cdef int status
        cdef uint32_t* bounds = <uint32_t*>PyMem_Malloc(len(ranges) * 2 * sizeof(uint32_t))
        if bounds == NULL:
            raise MemoryError(f"{len(ranges)} sticky ranges")
        try:
            for index in range(<uint32_t>len(ranges)):
                bounds[2 * index], bounds[2 * index + 1] = ranges[index]
            status = hash_ranges_claim(&self.c_ranges, consumer, bounds, <uint32_t>len(ranges),
                                       &clash)
        finally:
            PyMem_Free(bounds)
        if status == STATUS_OUT_OF_RANGE:
            first, last = ranges[clash.refused]
            holder = f"consumer {self.names[clash.holder.consumer]!r}"
            if clash.holder.consumer == consumer:
                holder = "its own"
            raise errors.ConsumerAssignError(
                detail=f"consumer {name!r} cannot join: its sticky range {first}..{last} overlaps "
                f"{clash.holder.start}..{clash.holder.end - 1} of {holder}; choose other ranges")
        return raise_status(status, 0, f"add consumer {name!r}")

    cdef int join_ring(self, uint16_t consumer, str name) except -1:
        """Consumers of equal names get points of their own, as in Pulsar 4: the first keeps what
        the seeds say, the others add their number among them."""
        cdef bytes plain = name.encode("utf-8", "surrogatepass")
        cdef bytes ring_name = plain
        cdef Py_ssize_t turn = bisect_left(self.turns, ring_name)
        cdef int number = 0
        cdef int status
        while turn < len(self.turns) and self.turns[turn] == ring_name:
            number += 1
            ring_name = b"%b\0%d\0" % (plain, number)
            turn = bisect_left(self.turns, ring_name)
        self.turns.insert(turn, ring_name)
        try:
            self.ring_names[consumer] = ring_name
            status = hash_ring_add(&self.c_ring, consumer, <const uint8_t*><const char*>ring_name,
                                   <uint32_t>len(ring_name), <uint16_t>turn)
            raise_status(status, 0, f"add consumer {name!r}")
        except:
            del self.turns[turn]
            self.ring_names.pop(consumer, None)
            raise
        return 0

    cdef int remove(self, uint16_t consumer) except -1:
        if consumer not in self.names:
            return 0
        if self.kind == SELECTOR_STICKY:
            hash_ranges_release(&self.c_ranges, consumer)
        elif self.kind == SELECTOR_CONSISTENT_HASHING:
            del self.turns[bisect_left(self.turns, self.ring_names[consumer])]
            hash_ring_remove(&self.c_ring, consumer)
            del self.ring_names[consumer]
        else:
            hash_ranges_merge(&self.c_ranges, consumer)
        del self.names[consumer]
        return 0

    cdef uint16_t select(self, uint32_t hash) noexcept nogil:
        if self.kind == SELECTOR_CONSISTENT_HASHING:
            return hash_ring_find(&self.c_ring, hash)
        return hash_ranges_find(&self.c_ranges, hash)

    # For statistics and tests.

    def add_consumer(self, uint16_t consumer, str name not None,
                     sticky_ranges: object = None) -> None:
        """A consumer joins; ConsumerAssignError: it cannot, and nothing changed."""
        self.add(consumer, name, sticky_ranges)

    def remove_consumer(self, uint16_t consumer) -> None:
        """A consumer leaves; nothing when it never joined."""
        self.remove(consumer)

    def owner_of(self, uint32_t hash) -> int | None:
        """The consumer a key belongs to, by the 32-bit murmur3 of its sticky key; None: nobody."""
        cdef uint16_t consumer = self.select(hash)
        return None if consumer == HASH_NOBODY else consumer

    def ranges(self) -> list[tuple[int, int, int]]:
        """(start, end, consumer) of each region, ascending, end not in it; none of a ring."""
        cdef uint32_t index
        return [
            (self.c_ranges.ranges[index].start, self.c_ranges.ranges[index].end,
             self.c_ranges.ranges[index].consumer)
            for index in range(self.c_ranges.count)
        ]

    def points(self) -> list[tuple[int, int]]:
        """(place, consumer) of each point of a ring, ascending, in the order of their list on one
        place."""
        cdef uint32_t index
        return [(self.c_ring.points[index].place, self.c_ring.points[index].consumer)
                for index in range(self.c_ring.count)]
