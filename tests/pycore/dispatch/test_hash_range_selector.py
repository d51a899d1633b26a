"""The three mappings of Key_Shared: what the seeds say, and properties of any consumers."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from seeds import scaled

from pulsarx import errors
from pulsarx._pycore.dispatch.hash_range_selector import HashRangeSelector
from pulsarx._pycore.ranges.entry_codec import murmur3_32

HASH_RANGE, CONSISTENT_HASHING, STICKY = 1, 2, 3
ORDER = 3112179635
SLOTS = 65536
Ranges = list[tuple[int, int]]


def hash_of(key: str) -> int:
    return murmur3_32(key.encode())


def hash_range(*consumers: int) -> HashRangeSelector:
    selector = HashRangeSelector(HASH_RANGE)
    for consumer in consumers:
        selector.add_consumer(consumer, f"C{consumer}")
    return selector


def all_owners(selector: HashRangeSelector) -> list[int | None]:
    return [selector.owner_of(slot) for slot in range(SLOTS)]


# Auto-split hash range.


def test_the_largest_region_is_split() -> None:
    """'the largest region is chosen and is then split in half - the lower half will be mapped to
    the newly added consumer and upper half will be mapped to the consumer owning that region. Here
    is how it looks like from 1 to 4 consumers'"""
    assert hash_range(1).ranges() == [(0, 65536, 1)]
    assert hash_range(1, 2).ranges() == [(0, 32768, 2), (32768, 65536, 1)]
    assert hash_range(1, 2, 3).ranges() == [(0, 16384, 3), (16384, 32768, 2), (32768, 65536, 1)]
    assert hash_range(1, 2, 3, 4).ranges() == [
        (0, 16384, 3),
        (16384, 32768, 2),
        (32768, 49152, 4),
        (49152, 65536, 1),
    ]


def test_the_order_goes_to_c3() -> None:
    """'Given a message key `Order-3459134`, its hash would be `murmur32("Order-3459134") =
    3112179635`, and its index in the range would be `3112179635 mod 65536 = 6067`. That index is
    contained within region `[0, 16384)` thus consumer C3 will be mapped to this message key.'"""
    assert hash_of("Order-3459134") == ORDER
    assert ORDER % 65536 == 6067
    assert hash_range(1, 2, 3, 4).owner_of(ORDER) == 3


def test_regions_are_half_open() -> None:
    """'no regions overlap': slot 16384 ends `[0, 16384)` and belongs to the region above."""
    selector = hash_range(1, 2, 3, 4)
    assert (selector.owner_of(16383), selector.owner_of(16384)) == (3, 2)


def test_a_leavers_region_goes_to_the_right() -> None:
    """'When a consumer is disconnected its region will be merged into the region on its right.'
    C4: '|----- C3 -----| ----- C2 -----| ----- C1 -----|', then C1: '|----- C3 -----| -----
    C2 -----|'"""
    selector = hash_range(1, 2, 3, 4)
    selector.remove_consumer(4)
    assert selector.ranges() == [(0, 16384, 3), (16384, 32768, 2), (32768, 65536, 1)]
    selector.remove_consumer(1)
    assert selector.ranges() == [(0, 16384, 3), (16384, 65536, 2)]


def test_regions_are_even_only_for_a_power_of_two() -> None:
    """'at the expense of regions not evenly sized. This means some consumers gets more keys than
    others.'"""
    assert [end - start for start, end, _ in hash_range(*range(3)).ranges()] == [
        16384,
        16384,
        32768,
    ]
    assert {end - start for start, end, _ in hash_range(*range(2048)).ranges()} == {32}


class HashRangeConsumers(RuleBasedStateMachine):
    """Consumers join and leave in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.selector = HashRangeSelector(HASH_RANGE)
        self.present: set[int] = set()
        self.next_consumer = 0
        self.regions: dict[int, tuple[int, int]] = {}

    @initialize(count=st.integers(0, 40))
    def begin(self, count: int) -> None:
        for _ in range(count):
            self.join()

    @rule()
    def join(self) -> None:
        before = self.regions
        self.selector.add_consumer(self.next_consumer, "same name")
        self.present.add(self.next_consumer)
        self.regions = {owner: (start, end) for start, end, owner in self.selector.ranges()}
        if before:
            [loser] = [owner for owner in before if self.regions[owner] != before[owner]]
            widest = max(end - start for start, end in before.values())
            start, end = before[loser]
            assert end - start == widest
            assert start == min(s for s, e in before.values() if e - s == widest)
            middle = self.regions[self.next_consumer][1]
            assert self.regions[self.next_consumer] == (start, middle)
            assert self.regions[loser] == (middle, end)
            assert abs((middle - start) - (end - middle)) <= 1
        self.next_consumer += 1

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        leaver = data.draw(st.sampled_from(sorted(self.present)))
        self.present.remove(leaver)
        before = self.regions
        self.selector.remove_consumer(leaver)
        self.regions = {owner: (start, end) for start, end, owner in self.selector.ranges()}
        start, end = before.pop(leaver)
        changed = [owner for owner in before if self.regions[owner] != before[owner]]
        if not self.present:
            assert changed == []
        elif end < SLOTS:
            assert self.regions[changed[0]] == (start, before[changed[0]][1])
        else:
            assert self.regions[changed[0]] == (before[changed[0]][0], SLOTS)
        assert len(changed) <= 1

    @invariant()
    def every_slot_has_one_owner(self) -> None:
        """'Each consumer is mapped into a single region in this range, so all mapped regions cover
        the entire range, and no regions overlap.'"""
        ranges = self.selector.ranges()
        assert {owner for _, _, owner in ranges} == self.present
        assert len(ranges) == len(self.present)
        bounds = [0, *(end for _, end, _ in ranges)]
        assert [start for start, _, _ in ranges] == bounds[:-1]
        assert bounds[-1] == (SLOTS if self.present else 0)
        for start, end, owner in ranges:
            assert start < end
            assert self.selector.owner_of(start) == self.selector.owner_of(end - 1) == owner
            assert self.selector.owner_of(start + 65535 * SLOTS) == owner
        if not self.present:
            assert self.selector.owner_of(7) is None


TestHashRangeConsumers = HashRangeConsumers.TestCase
TestHashRangeConsumers.settings = settings(
    max_examples=scaled(40), stateful_step_count=40, deadline=None
)


# Auto-split consistent hashing.


def ring(*names: str) -> HashRangeSelector:
    selector = HashRangeSelector(CONSISTENT_HASHING)
    for consumer, name in enumerate(names):
        selector.add_consumer(consumer, name)
    return selector


def expected_points(name: str) -> list[int]:
    return sorted(hash_of(f"{name}{i}") & 0x7FFFFFFF for i in range(1, 101))


def test_one_hundred_points_of_a_consumer() -> None:
    """'if the consumer name is "orders-aggregator-pod-2345-consumer" then we would mark 100 points
    on that circle: murmur32("orders-aggregator-pod-2345-consumer1") = 1003084738,
    murmur32("orders-aggregator-pod-2345-consumer2") = 373317202, ...,
    murmur32("orders-aggregator-pod-2345-consumer100") = 320276078'"""
    name = "orders-aggregator-pod-2345-consumer"
    selector = ring(name)
    assert [place for place, _ in selector.points()] == expected_points(name)
    assert {(1003084738, 0), (373317202, 0), (320276078, 0)} <= set(selector.points())


def list_of(points: list[tuple[int, int]], key_hash: int) -> list[int]:
    """The consumers on the point of a key, in their order."""
    first = bisect_left(points, (key_hash & 0x7FFFFFFF, 0)) % len(points)
    found = []
    while first < len(points) and points[first][0] == points[first - len(found)][0]:
        found.append(points[first][1])
        first += 1
    return found


def model_owner(points: list[tuple[int, int]], key_hash: int) -> int:
    """'putting its hash on the circle then continue clock-wise on the circle until you reach a
    marking point' ... 'hash % consumer_list_size = index'"""
    place = key_hash & 0x7FFFFFFF
    consumers = list_of(points, key_hash)
    return consumers[place % len(consumers)]


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["c", "c1", "c11", "", "1", "é", "a longer name"]), min_size=1),
    st.lists(st.integers(0, 2**32 - 1), min_size=1),
)
def test_a_key_goes_to_the_next_point(names: list[str], hashes: list[int]) -> None:
    selector = ring(*names)
    points = selector.points()
    assert points == sorted(points, key=lambda point: point[0])
    for key_hash in [*hashes, *(place for place, _ in points[::17])]:
        assert selector.owner_of(key_hash) == model_owner(points, key_hash)


def test_one_point_of_two_consumers_has_them_in_the_order_of_their_names() -> None:
    """'The point might have more than one consumer on it': point 11 of 'c', point 1 of 'c1'."""
    place = hash_of("c11") & 0x7FFFFFFF
    for names in (["c", "c1"], ["c1", "c"]):
        selector = ring(*names)
        sharing = [consumer for at, consumer in selector.points() if at == place]
        assert [names[consumer] for consumer in sharing] == ["c", "c1"]
        owner = selector.owner_of(place)
        assert owner is not None
        assert names[owner] == ("c", "c1")[place % 2]


def test_consumers_of_the_same_name_have_points_of_their_own() -> None:
    selector = ring("same", "same", "same", "other")
    points = selector.points()
    assert Counter(consumer for _, consumer in points) == dict.fromkeys(range(4), 100)
    assert [place for place, consumer in points if consumer == 0] == expected_points("same")
    assert len({place for place, _ in points}) > 395
    shares = Counter(selector.owner_of(hash_of(f"k{i}")) for i in range(10000))
    assert min(shares.values()) > 1500
    # Whoever bears the plain name may leave; the next one to join takes its place on the ring.
    selector.remove_consumer(0)
    assert selector.points() == [point for point in points if point[1] != 0]
    selector.add_consumer(9, "same")
    assert [(p, 0 if c == 9 else c) for p, c in selector.points()] == points


def test_names_that_look_like_ours_for_equal_names() -> None:
    selector = ring("a", "a", "a\x001\x00", "a\x001\x00", "a")
    assert len({place for place, _ in selector.points()}) > 490


def test_the_distribution_is_even() -> None:
    """'Since the hash function has the uniform distribution attribute, those points would be
    uniformly distributed across the circle.'"""
    selector = ring(*(f"orders-aggregator-pod-{i}" for i in range(10)))
    shares = Counter(selector.owner_of(hash_of(f"k{i}")) for i in range(30000))
    assert set(shares) == set(range(10))
    assert min(shares.values()) > 3000 * 0.6
    assert max(shares.values()) < 3000 * 1.5


def test_a_newcomer_takes_a_slice_from_each() -> None:
    """'those 100 points act as if the new consumer takes a small slice of keys out of each existing
    consumer'"""
    names = [f"orders-aggregator-pod-{i}" for i in range(10)]
    selector = ring(*names)
    keys = [hash_of(f"k{i}") for i in range(30000)]
    before = [selector.owner_of(key) for key in keys]
    selector.add_consumer(10, "the new one")
    taken = [old for key, old in zip(keys, before) if selector.owner_of(key) == 10]
    assert set(taken) == set(range(10))


class RingConsumers(RuleBasedStateMachine):
    """Consumers of few names join and leave; nothing moves but to the newcomer, from the leaver."""

    def __init__(self) -> None:
        super().__init__()
        self.selector = HashRangeSelector(CONSISTENT_HASHING)
        self.present: dict[int, str] = {}
        self.next_consumer = 0
        self.keys = [murmur3_32(b"key", seed) for seed in range(200)]
        self.lists: list[list[int]] = [[] for _ in self.keys]

    def look(self) -> list[tuple[list[int], list[int]]]:
        """Who shares the point of each key, before and after."""
        points = self.selector.points()
        before = self.lists
        self.lists = [list_of(points, key) if points else [] for key in self.keys]
        for key, consumers in zip(self.keys, self.lists):
            owner = consumers[key % 2**31 % len(consumers)] if consumers else None
            assert self.selector.owner_of(key) == owner
        return [(old, new) for old, new in zip(before, self.lists) if old != new]

    @rule(name=st.sampled_from(["c", "c1", "c11", "", "1", "pod-1", "pod-2"]))
    def join(self, name: str) -> None:
        self.selector.add_consumer(self.next_consumer, name)
        self.present[self.next_consumer] = name
        for old, new in self.look():
            # It is on a point before theirs, or joins them on their point.
            assert self.next_consumer in new
            assert new == [self.next_consumer] or set(new) - set(old) == {self.next_consumer}
        self.next_consumer += 1

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        leaver = data.draw(st.sampled_from(sorted(self.present)))
        del self.present[leaver]
        self.selector.remove_consumer(leaver)
        for old, new in self.look():
            assert leaver in old
            assert set(old) == {leaver} or [c for c in old if c != leaver] == new

    @invariant()
    def every_consumer_has_all_its_points(self) -> None:
        points = self.selector.points()
        assert Counter(consumer for _, consumer in points) == dict.fromkeys(self.present, 100)
        assert all(self.lists) == bool(self.present)


TestRingConsumers = RingConsumers.TestCase
TestRingConsumers.settings = settings(
    max_examples=scaled(30), stateful_step_count=20, deadline=None
)


# Sticky.


def test_the_sticky_example() -> None:
    """'C1 = [0, 16384), (32768, 49152]', 'C2 = [16384, 32768), (49,152, 65536]': 'That index is
    contained within [0, 16384) thus consumer C1 will map to this message key.'"""
    selector = HashRangeSelector(STICKY)
    selector.add_consumer(1, "C1", [(0, 16383), (32768, 49151)])
    selector.add_consumer(2, "C2", [(16384, 32767), (49152, 65535)])
    assert selector.ranges() == [
        (0, 16384, 1),
        (16384, 32768, 2),
        (32768, 49152, 1),
        (49152, 65536, 2),
    ]
    assert selector.owner_of(ORDER) == 1
    assert Counter(all_owners(selector)) == {1: 32768, 2: 32768}


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        (None, "consumer 'new' cannot join: in sticky mode it must say which hash ranges it takes"),
        ([], "consumer 'new' cannot join: in sticky mode it must say which hash ranges it takes"),
        (
            [(0, 9), (15, 25)],
            "consumer 'new' cannot join: its sticky range 15..25 overlaps 10..20 of consumer "
            "'old'; choose other ranges",
        ),
        (
            [(0, 9), (5, 9)],
            "consumer 'new' cannot join: its sticky range 5..9 overlaps 0..9 of its own; choose "
            "other ranges",
        ),
        (
            [(-1, 5)],
            "consumer 'new' cannot join: its sticky range -1..5 does not run upwards within "
            "0..65535",
        ),
        (
            [(0, 65536)],
            "consumer 'new' cannot join: its sticky range 0..65536 does not run upwards within "
            "0..65535",
        ),
        (
            [(9, 8)],
            "consumer 'new' cannot join: its sticky range 9..8 does not run upwards within "
            "0..65535",
        ),
    ],
)
def test_a_refused_consumer_leaves_no_trace(ranges: Ranges | None, message: str) -> None:
    """'If the newly connected consumer didn't supply their ranges, or they overlap with existing
    consumer ranges, it's disconnected, removed from the consumers list and reverted as if it never
    tried to connect.'"""
    selector = HashRangeSelector(STICKY)
    selector.add_consumer(1, "old", [(10, 20)])
    with pytest.raises(errors.ConsumerAssignError) as raised:
        selector.add_consumer(2, "new", ranges)
    assert raised.value.detail.endswith(message)
    assert selector.ranges() == [(10, 21, 1)]
    selector.remove_consumer(2)
    assert selector.ranges() == [(10, 21, 1)]
    selector.add_consumer(2, "new", [(21, 21)])
    assert selector.ranges() == [(10, 21, 1), (21, 22, 2)]


def test_a_hole_belongs_to_nobody() -> None:
    """'It's your responsibility to make sure there are no overlaps and all the range is covered by
    regions.'"""
    selector = HashRangeSelector(STICKY)
    selector.add_consumer(1, "C1", [(0, 6066), (6068, 65535)])
    assert selector.owner_of(ORDER) is None
    selector.add_consumer(2, "C2", [(6067, 6067)])
    assert selector.owner_of(ORDER) == 2
    selector.remove_consumer(1)
    assert Counter(all_owners(selector)) == {None: 65535, 2: 1}


RANGE = st.integers(0, 1999).flatmap(
    lambda first: st.tuples(st.just(first), st.integers(first, min(first + 300, 1999)))
)


class StickyConsumers(RuleBasedStateMachine):
    """Consumers claim and release ranges, beside a table of slots; 2000 of them are looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.selector = HashRangeSelector(STICKY)
        self.slots: list[int | None] = [None] * 2000
        self.present: set[int] = set()
        self.next_consumer = 0

    @rule(ranges=st.lists(RANGE, min_size=1, max_size=4))
    def join(self, ranges: Ranges) -> None:
        wanted = [slot for first, last in ranges for slot in range(first, last + 1)]
        consumer = self.next_consumer
        self.next_consumer += 1
        if len(set(wanted)) < len(wanted) or any(self.slots[slot] is not None for slot in wanted):
            before = self.selector.ranges()
            with pytest.raises(errors.ConsumerAssignError, match="overlaps"):
                self.selector.add_consumer(consumer, f"C{consumer}", ranges)
            assert self.selector.ranges() == before
        else:
            self.selector.add_consumer(consumer, f"C{consumer}", ranges)
            self.present.add(consumer)
            for slot in wanted:
                self.slots[slot] = consumer

    @precondition(lambda self: self.present)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        leaver = data.draw(st.sampled_from(sorted(self.present)))
        self.present.remove(leaver)
        self.selector.remove_consumer(leaver)
        self.slots = [None if owner == leaver else owner for owner in self.slots]

    @invariant()
    def every_slot_has_its_owner(self) -> None:
        assert [self.selector.owner_of(slot) for slot in range(2000)] == self.slots
        assert self.selector.owner_of(2000) is None


TestStickyConsumers = StickyConsumers.TestCase
TestStickyConsumers.settings = settings(
    max_examples=scaled(40), stateful_step_count=20, deadline=None
)


# All three.


@pytest.mark.parametrize("kind", [HASH_RANGE, CONSISTENT_HASHING, STICKY])
def test_an_index_that_is_in_use_is_our_own_bug(kind: int) -> None:
    selector = HashRangeSelector(kind)
    selector.add_consumer(3, "a", [(0, 9)])
    before = selector.ranges(), selector.points()
    for consumer in (3, 65535):
        with pytest.raises(errors.InternalError):
            selector.add_consumer(consumer, "b", [(10, 19)])
    assert (selector.ranges(), selector.points()) == before
    selector.remove_consumer(4)
    assert (selector.ranges(), selector.points()) == before


@pytest.mark.parametrize("kind", [HASH_RANGE, CONSISTENT_HASHING, STICKY])
def test_without_consumers_nobody_has_a_key(kind: int) -> None:
    selector = HashRangeSelector(kind)
    assert selector.kind == kind
    assert selector.owner_of(ORDER) is None
    selector.add_consumer(0, "a", [(0, 65535)])
    assert selector.owner_of(ORDER) == 0
    selector.remove_consumer(0)
    assert selector.owner_of(ORDER) is None
    assert (selector.ranges(), selector.points()) == ([], [])


def test_other_kinds_are_refused() -> None:
    for kind in (0, 4, -1):
        with pytest.raises(ValueError, match="kind 1, 2 or 3"):
            HashRangeSelector(kind)
