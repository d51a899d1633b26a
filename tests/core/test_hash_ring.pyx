"""The ring of consistent hashing, beside one that is built anew from the seeds' words."""

import random

from seeds import seed_of

from libc.stdint cimport uint8_t, uint16_t, uint32_t

from pulsarx._core.hash_ring cimport *
from pulsarx._core.murmur3 cimport murmur3_32
from pulsarx._core.status cimport STATUS_OK

NAME = "orders-aggregator-pod-2345-consumer"


def murmur(text):
    data = text if isinstance(text, bytes) else text.encode()
    return murmur3_32(0, <const uint8_t*><const char*>data, len(data))


cdef class Held:
    cdef HashRing ring
    cdef dict names

    def __cinit__(self):
        hash_ring_init(&self.ring)
        self.names = {}

    def __dealloc__(self):
        hash_ring_free(&self.ring)

    def add(self, consumer, name):
        data = name.encode()
        turn = sum(other < data for other in self.names.values())
        self.names[consumer] = data
        assert hash_ring_add(&self.ring, consumer, <const uint8_t*><const char*>data, len(data),
                             turn) == STATUS_OK

    def remove(self, consumer):
        self.names.pop(consumer, None)
        hash_ring_remove(&self.ring, consumer)

    def find(self, hash):
        return hash_ring_find(&self.ring, hash)

    def set_points(self, *places):
        """Put a point of consumers 0, 1, ... on the given places."""
        self.add(0, "made up")
        for at, place in enumerate(places):
            self.ring.points[at] = HashPoint(place, at, at)
        self.ring.count = len(places)

    def listed(self):
        return [(self.ring.points[at].place, self.ring.points[at].turn,
                 self.ring.points[at].consumer) for at in range(self.ring.count)]

    def anew(self):
        """What the list has to be: all points of all consumers, in order."""
        turns = {name: turn for turn, name in enumerate(sorted(self.names.values()))}
        return sorted(
            (murmur(name + str(i).encode()) & 0x7FFFFFFF, turns[name], consumer)
            for consumer, name in self.names.items() for i in range(1, 101)
        )


def test_one_hundred_points_are_marked():
    """'we mark 100 points on that circle and associate them to the newly added consumer. For each
    number between 1 and 100, we concatenate the consumer name to that number and run the hash
    function on it': consumer1 = 1003084738, consumer2 = 373317202, consumer100 = 320276078."""
    assert murmur(NAME + "1") == 1003084738
    assert murmur(NAME + "2") == 373317202
    assert murmur(NAME + "100") == 320276078
    held = Held()
    held.add(7, NAME)
    places = [place for place, _, _ in held.listed()]
    assert len(places) == 100 and places == sorted(places)
    assert {1003084738, 373317202, 320276078} <= set(places)
    assert murmur(NAME + "0") & 0x7FFFFFFF not in places
    assert held.listed() == held.anew()


def test_points_of_names_of_every_length():
    for size in range(40):
        held = Held()
        held.add(3, "é" * (size % 3) + "x" * size)
        assert held.listed() == held.anew(), size


def test_a_key_goes_clockwise_to_the_next_point():
    """'putting its hash on the circle then continue clock-wise on the circle until you reach a
    marking point', and 'when reaching MAX_INT, the next number would be zero'"""
    held = Held()
    held.set_points(10, 20, 0x7FFFFFF0)
    found = [held.find(place) for place in (0, 10, 11, 20, 21, 0x7FFFFFF0, 0x7FFFFFF1, 0x7FFFFFFF)]
    assert found == [0, 0, 1, 1, 2, 2, 0, 0]


def test_the_sign_bit_is_no_part_of_the_place():
    """'a range of number from 0 to MAX_INT (32-bit)'"""
    held = Held()
    held.set_points(10, 20, 0x7FFFFFF0)
    assert held.find(0x80000000 | 15) == held.find(15) == 1


def test_several_consumers_on_one_point():
    """'The point might have more than one consumer on it ... we take the consumer in that position:
    hash % consumer_list_size = index'"""
    held = Held()
    held.set_points(5, 9, 9, 9)
    assert [held.find(place) for place in (6, 7, 8, 9)] == [1, 2, 3, 1]
    assert held.find(0x80000000 | 7) == 2
    held.set_points(9, 9)
    assert [held.find(place) for place in (8, 9, 10, 11)] == [0, 1, 0, 1]


def test_consumers_on_one_point_stand_in_the_order_of_their_names():
    """Point 11 of 'c' is point 1 of 'c1': both are murmur32('c11')."""
    held = Held()
    held.add(5, "c1")
    held.add(6, "c")
    place = murmur("c11") & 0x7FFFFFFF
    assert [consumer for at, _, consumer in held.listed() if at == place] == [6, 5]
    assert held.find(place) == (6, 5)[place % 2]
    held.remove(6)
    assert held.find(place) == 5


def test_an_empty_ring_has_nobody():
    held = Held()
    assert held.find(1) == HASH_RING_NOBODY
    held.remove(1)
    held.add(1, "a")
    assert held.find(1) == 1
    held.remove(2)
    held.remove(1)
    assert held.listed() == []
    assert held.find(1) == HASH_RING_NOBODY


def test_random_joins_and_leaves_as_a_ring_built_anew():
    source = random.Random(seed_of(31))
    held = Held()
    present = {}
    for step in range(150):
        if present and source.random() < 0.4:
            leaver = source.choice(sorted(present))
            del present[leaver]
            held.remove(leaver)
        else:
            # Short names of the same letters share points: 'c' + '11' is 'c1' + '1'.
            name = source.choice(["c", "c1", "c11", "", "1", "é"]) + str(step) * (step % 2)
            if name not in present.values():
                present[step] = name
                held.add(step, name)
        assert held.listed() == held.anew()


def test_only_the_leavers_and_the_newcomers_keys_move():
    source = random.Random(seed_of(37))
    keys = [source.getrandbits(32) for _ in range(3000)]
    held = Held()
    for consumer in range(20):
        before = [held.find(key) for key in keys]
        held.add(consumer, f"pod-{consumer}-of-many")
        after = [held.find(key) for key in keys]
        assert all(new in (old, consumer) for old, new in zip(before, after))
    for consumer in range(0, 20, 2):
        before = after
        held.remove(consumer)
        after = [held.find(key) for key in keys]
        assert all(new == old or old == consumer for old, new in zip(before, after))
    shares = [after.count(consumer) for consumer in range(1, 20, 2)]
    assert 150 < min(shares) and max(shares) < 450
