"""Regions of hash slots: the seeds' examples, sticky claims, and a list of slots as a model."""

import random

import pytest

from seeds import seed_of

from libc.stdint cimport uint16_t, uint32_t

from pulsarx._core.hash_ranges cimport *
from pulsarx._core.status cimport STATUS_OK, STATUS_OUT_OF_RANGE


cdef class Held:
    cdef HashRanges ranges

    def __cinit__(self):
        hash_ranges_init(&self.ranges)

    def __dealloc__(self):
        hash_ranges_free(&self.ranges)

    def split(self, consumer):
        return hash_ranges_split(&self.ranges, consumer)

    def merge(self, consumer):
        hash_ranges_merge(&self.ranges, consumer)

    def claim(self, consumer, pairs):
        """None, or which of the pairs is refused and what it overlaps."""
        cdef uint32_t[64] bounds
        cdef HashClash clash
        cdef int status
        assert len(pairs) <= 32
        for at, (first, last) in enumerate(pairs):
            bounds[2 * at] = first
            bounds[2 * at + 1] = last
        status = hash_ranges_claim(&self.ranges, consumer, bounds, len(pairs), &clash)
        if status == STATUS_OK:
            return None
        assert status == STATUS_OUT_OF_RANGE
        return clash.refused, (clash.holder.start, clash.holder.end, clash.holder.consumer)

    def release(self, consumer):
        hash_ranges_release(&self.ranges, consumer)

    def find(self, hash):
        return hash_ranges_find(&self.ranges, hash)

    def listed(self):
        return [
            (self.ranges.ranges[at].start, self.ranges.ranges[at].end,
             self.ranges.ranges[at].consumer)
            for at in range(self.ranges.count)
        ]


def joined(*consumers):
    held = Held()
    for consumer in consumers:
        assert held.split(consumer) == STATUS_OK
    return held


def test_how_it_looks_from_one_to_four_consumers():
    """'the largest region is chosen and is then split in half - the lower half will be mapped to
    the newly added consumer and upper half will be mapped to the consumer owning that region'"""
    held = Held()
    looks = []
    for consumer in (1, 2, 3, 4):
        held.split(consumer)
        looks.append(held.listed())
    assert looks == [
        [(0, 65536, 1)],
        [(0, 32768, 2), (32768, 65536, 1)],
        [(0, 16384, 3), (16384, 32768, 2), (32768, 65536, 1)],
        [(0, 16384, 3), (16384, 32768, 2), (32768, 49152, 4), (49152, 65536, 1)],
    ]


def test_of_equally_wide_regions_the_lowest_is_split():
    held = joined(1, 2, 3, 4, 5)
    assert held.listed()[:2] == [(0, 8192, 5), (8192, 16384, 3)]


def test_when_c4_is_disconnected():
    """'When a consumer is disconnected its region will be merged into the region on its right.'
    'C4 is disconnected: |----- C3 -----| ----- C2 -----| ----- C1 -----|'"""
    held = joined(1, 2, 3, 4)
    held.merge(4)
    assert held.listed() == [(0, 16384, 3), (16384, 32768, 2), (32768, 65536, 1)]


def test_when_c1_is_disconnected():
    """'C1 is disconnected: |----- C3 -----| ----- C2 -----|': the last region has none on its
    right, so it joins the one on its left."""
    held = joined(1, 2, 3, 4)
    held.merge(4)
    held.merge(1)
    assert held.listed() == [(0, 16384, 3), (16384, 65536, 2)]


def test_a_key_on_a_bound_belongs_to_the_upper_region():
    """'a single region', and '[0, 16384)' is half open: slot 16384 is the first of the next one."""
    held = joined(1, 2, 3, 4)
    assert [held.find(slot) for slot in (0, 16383, 16384, 32767, 32768, 49151, 49152, 65535)] == [
        3, 3, 2, 2, 4, 4, 1, 1,
    ]


def test_the_order_of_the_seeds_goes_to_c3():
    """'murmur32("Order-3459134") = 3112179635, and its index in the range would be
    3112179635 mod 65536 = 6067. That index is contained within region [0, 16384) thus consumer C3
    will be mapped to this message key.'"""
    assert 3112179635 % 65536 == 6067
    assert joined(1, 2, 3, 4).find(3112179635) == 3


def test_nobody_is_there():
    held = Held()
    assert held.find(5) == HASH_NOBODY
    held.merge(5)
    held = joined(9)
    held.merge(5)
    assert held.listed() == [(0, 65536, 9)]
    held.merge(9)
    assert held.listed() == []
    assert held.find(5) == HASH_NOBODY
    held.split(9)
    assert held.listed() == [(0, 65536, 9)]


def test_of_an_odd_width_the_newcomer_has_one_more():
    held = Held()
    held.claim(1, [(0, 2)])
    held.claim(2, [(3, 65535)])
    held.split(3)
    assert held.listed() == [(0, 3, 1), (3, 32770, 3), (32770, 65536, 2)]


def test_when_no_region_can_be_split_nothing_changes():
    held = joined(0)
    while len(held.listed()) < 2048:
        held.split(len(held.listed()))
    for start, end, consumer in held.listed()[1:]:
        held.release(consumer)
    held.claim(1, [(32, 32)])
    held.claim(2, [(33, 33)])
    assert [(start, end) for start, end, _ in held.listed()] == [(0, 32), (32, 33), (33, 34)]
    for consumer in range(3000, 3031):
        assert held.split(consumer) == STATUS_OK
    before = held.listed()
    assert [end - start for start, end, _ in before] == [1] * 34
    assert held.split(4000) == STATUS_OUT_OF_RANGE
    assert held.listed() == before


def test_the_sticky_example():
    """'Suppose we have 2 consumers (C1 and C2) each specified their ranges' ... 'That index is
    contained within [0, 16384) thus consumer C1 will map to this message key.'"""
    held = Held()
    assert held.claim(1, [(0, 16383), (32768, 49151)]) is None
    assert held.claim(2, [(16384, 32767), (49152, 65535)]) is None
    assert held.listed() == [
        (0, 16384, 1), (16384, 32768, 2), (32768, 49152, 1), (49152, 65536, 2),
    ]
    assert held.find(3112179635) == 1
    assert [held.find(slot) for slot in (16383, 16384, 32767, 32768, 49151, 49152, 65535)] == [
        1, 2, 2, 1, 1, 2, 2,
    ]


def test_a_claim_that_overlaps_changes_nothing_and_says_what():
    held = Held()
    held.claim(1, [(100, 199), (300, 399)])
    for pair in [(199, 250), (0, 100), (120, 130), (0, 250), (100, 199)]:
        assert held.claim(2, [(500, 600), pair]) == (1, (100, 200, 1)), pair
        assert held.listed() == [(100, 200, 1), (300, 400, 1)]
    assert held.claim(2, [(0, 65535)]) == (0, (100, 200, 1))
    assert held.claim(2, [(200, 299), (399, 399)]) == (1, (300, 400, 1))
    assert held.listed() == [(100, 200, 1), (300, 400, 1)]


def test_a_claim_that_overlaps_itself_changes_nothing():
    held = Held()
    held.claim(1, [(0, 9)])
    assert held.claim(2, [(20, 29), (10, 20)]) == (1, (20, 30, 2))
    assert held.listed() == [(0, 10, 1)]


def test_holes_belong_to_nobody():
    held = Held()
    held.claim(1, [(10, 19), (40, 40)])
    assert [held.find(slot) for slot in (0, 9, 10, 19, 20, 39, 40, 41, 65535)] == [
        HASH_NOBODY, HASH_NOBODY, 1, 1, HASH_NOBODY, HASH_NOBODY, 1, HASH_NOBODY, HASH_NOBODY,
    ]
    held.release(1)
    assert held.find(10) == HASH_NOBODY
    assert held.listed() == []


def owners(held):
    """The owner of each slot, from the list; the find of random slots must say the same."""
    found = [HASH_NOBODY] * HASH_SLOTS
    for start, end, consumer in held.listed():
        assert start < end <= HASH_SLOTS
        assert set(found[start:end]) == {HASH_NOBODY}
        found[start:end] = [consumer] * (end - start)
    for slot in random.Random(5).sample(range(HASH_SLOTS), 200):
        assert held.find(slot) == held.find(slot + 7 * HASH_SLOTS) == found[slot]
    return found


@pytest.mark.standard
def test_joining_and_leaving_touches_one_other_consumer():
    """'it affects only a single existing consumer upon add/delete consumer'"""
    source = random.Random(seed_of(17))
    held = Held()
    present = set()
    before = owners(held)
    for step in range(300):
        if present and source.random() < 0.45:
            consumer = source.choice(sorted(present))
            held.merge(consumer)
            present.remove(consumer)
        else:
            consumer = step
            assert held.split(consumer) == STATUS_OK
            present.add(consumer)
        after = owners(held)
        assert set(after) == (present or {HASH_NOBODY})
        assert len(held.listed()) == len(present)
        moved = {(old, new) for old, new in zip(before, after) if old != new}
        assert len(moved) == 1 and consumer in next(iter(moved))
        before = after


def test_random_claims_as_a_list_of_slots():
    source = random.Random(seed_of(23))
    held = Held()
    slots = [HASH_NOBODY] * HASH_SLOTS
    present = set()
    refused = 0
    for consumer in range(200):
        pairs = []
        for _ in range(source.randrange(1, 5)):
            first = source.randrange(HASH_SLOTS)
            pairs.append((first, min(first + source.randrange(2000), HASH_SLOTS - 1)))
        wanted = [slot for first, last in pairs for slot in range(first, last + 1)]
        free = len(set(wanted)) == len(wanted) and all(slots[s] == HASH_NOBODY for s in wanted)
        clash = held.claim(consumer, pairs)
        assert (clash is None) == free
        if free:
            present.add(consumer)
            for slot in wanted:
                slots[slot] = consumer
        else:
            refused += 1
            first, last = pairs[clash[0]]
            assert clash[1][0] <= last and first < clash[1][1]
        if source.random() < 0.3 and present:
            leaver = source.choice(sorted(present))
            present.remove(leaver)
            held.release(leaver)
            slots = [HASH_NOBODY if owner == leaver else owner for owner in slots]
        assert owners(held) == slots
    assert 20 < refused < 180
