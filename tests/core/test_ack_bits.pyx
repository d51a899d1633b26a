"""ack_bits beside a set of ordinals, and the edges of its words."""

import random

from seeds import seeds

from libc.stdint cimport uint64_t

from pulsarx._core.ack_bits cimport (
    AckBits, ack_bits_add, ack_bits_clamp, ack_bits_count, ack_bits_count_below, ack_bits_free,
    ack_bits_group,
    ack_bits_has,
    ack_bits_hole_count,
    ack_bits_init, ack_bits_memory_size, ack_bits_next_unacknowledged, ack_bits_through,
)
from pulsarx._core.status cimport STATUS_DUPLICATE, STATUS_OK, STATUS_OUT_OF_RANGE


cdef int check(const AckBits* bits, set model, uint64_t size) except -1:
    cdef uint64_t at
    holes = 0
    next_free = size
    for at in range(size - 1, -1, -1) if size else ():
        held = at in model
        assert ack_bits_has(bits, at) == held, at
        if not held:
            next_free = at
        assert ack_bits_next_unacknowledged(bits, at, size) == next_free, at
        if at % 7 == 0:
            below = sum(1 for each in model if each < at)
            assert ack_bits_count_below(bits, at) == <uint64_t>below, at
        holes += held and at > 0 and at - 1 not in model
    assert ack_bits_count(bits) == <uint64_t>len(model)
    assert ack_bits_hole_count(bits) == holes
    assert not ack_bits_has(bits, size)
    assert not ack_bits_has(bits, bits.contiguous)
    return 0


def test_it_is_a_set():
    cdef AckBits bits
    cdef uint64_t newly = 0
    cdef uint64_t first, count, size
    cdef int status
    for seed in seeds(150):
        chance = random.Random(seed)
        size = chance.choice((1, 63, 64, 65, 128, 700))
        ack_bits_init(&bits)
        model = set()
        for _ in range(60):
            first = chance.randrange(size)
            count = chance.choice((1, 1, 1, 2, 7, 64, 130, size))
            what = chance.random()
            if what < 0.05:
                ack_bits_clamp(&bits, first)
                model = {at for at in model if at < first}
            elif what < 0.15:
                fresh = set(range(first)) - model
                status = ack_bits_through(&bits, first, &newly)
                assert status == (<int>STATUS_OK if fresh else <int>STATUS_DUPLICATE), seed
                assert not fresh or newly == <uint64_t>len(fresh), seed
                model |= fresh
            elif first + count > size:
                assert ack_bits_add(&bits, first, count, size, &newly) == STATUS_OUT_OF_RANGE
            else:
                fresh = set(range(first, first + count)) - model
                status = ack_bits_add(&bits, first, count, size, &newly)
                if fresh:
                    assert status == STATUS_OK and newly == <uint64_t>len(fresh), seed
                else:
                    assert status == STATUS_DUPLICATE, seed
                model |= fresh
            check(&bits, model, size)
        ack_bits_free(&bits)


def test_random_order_ends_contiguous_and_gives_the_memory_back():
    cdef AckBits bits
    cdef uint64_t newly = 0
    cdef uint64_t largest = 0
    ack_bits_init(&bits)
    order = list(range(100_000))
    random.Random(3).shuffle(order)
    for at in order:
        assert ack_bits_add(&bits, at, 1, 100_000, &newly) == STATUS_OK
        largest = max(largest, ack_bits_memory_size(&bits))
    assert bits.contiguous == 100_000 and bits.beyond == 0
    assert largest <= 100_000 * 1.25 / 8 + 64
    assert ack_bits_memory_size(&bits) <= 512
    ack_bits_free(&bits)


def test_bounds():
    cdef AckBits bits
    cdef uint64_t newly = 77
    ack_bits_init(&bits)
    assert ack_bits_add(&bits, 0, 0, 10, &newly) == STATUS_OUT_OF_RANGE
    assert ack_bits_add(&bits, 0, 11, 10, &newly) == STATUS_OUT_OF_RANGE
    assert ack_bits_add(&bits, 10, 1, 10, &newly) == STATUS_OUT_OF_RANGE
    assert ack_bits_add(&bits, <uint64_t>-1, 2, 10, &newly) == STATUS_OUT_OF_RANGE
    assert ack_bits_add(&bits, 2, <uint64_t>-1, 10, &newly) == STATUS_OUT_OF_RANGE
    assert ack_bits_add(&bits, 0, 1, 0, &newly) == STATUS_OUT_OF_RANGE
    assert newly == 77 and ack_bits_count(&bits) == 0 and ack_bits_memory_size(&bits) == 0
    ack_bits_free(&bits)


def test_groups_of_32_are_what_has_says():
    cdef AckBits bits
    cdef uint64_t newly = 0
    for seed in seeds(60):
        chance = random.Random(seed)
        ack_bits_init(&bits)
        ack_bits_through(&bits, chance.choice((0, 1, 31, 32, 40, 64, 95, 200)), &newly)
        for _ in range(chance.choice((0, 1, 90))):
            ack_bits_add(&bits, chance.randrange(400), 1, 400, &newly)
        for group in range(14):
            expected = sum(1 << at for at in range(32) if ack_bits_has(&bits, 32 * group + at))
            assert ack_bits_group(&bits, group) == expected, (seed, group)
        ack_bits_free(&bits)
