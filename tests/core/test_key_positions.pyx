"""Facts about the table of the last message of each key."""

import random

import pytest

from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free

from pulsarx._core.key_positions cimport *
from pulsarx._core.status cimport STATUS_OK

from seeds import seed_of


cdef class Table:
    cdef KeyPositions keys

    def __cinit__(self):
        key_positions_init(&self.keys, 42)

    def __dealloc__(self):
        key_positions_free(&self.keys)

    cdef int put(self, bytes key, uint64_t position) except -1:
        cdef const uint8_t* data = key
        cdef uint32_t size = len(key)
        cdef int status = key_positions_put(
            &self.keys, key_positions_hash(&self.keys, data, size), data, size, position)
        assert status == STATUS_OK
        return 0

    cdef object find(self, bytes key):
        cdef const uint8_t* data = key
        cdef uint32_t size = len(key)
        cdef uint64_t position = 99
        cdef uint64_t wanted = key_positions_hash(&self.keys, data, size)
        key_positions_fetch_slot(&self.keys, wanted)
        key_positions_fetch_record(&self.keys, wanted)
        if not key_positions_find(&self.keys, wanted, data, size, &position):
            return None
        return position

    cdef set marked(self, uint64_t first, uint64_t count):
        """The positions that are marked, of so many from first on."""
        cdef size_t words = (count + 63) // 64
        cdef uint64_t* bits = <uint64_t*>calloc(words + 1, sizeof(uint64_t))
        cdef uint64_t at
        bits[words] = 0x5A5A5A5A
        key_positions_mark(&self.keys, first, count, bits)
        assert bits[words] == 0x5A5A5A5A
        found = {first + at for at in range(64 * words) if (bits[at >> 6] >> (at & 63)) & 1}
        free(bits)
        return found


def test_an_empty_table_has_no_key():
    cdef Table table = Table()
    assert table.find(b"") is None
    assert table.find(b"k") is None


def test_the_last_position_of_a_key_is_kept():
    cdef Table table = Table()
    table.put(b"k", 2)
    table.put(b"k", 4)
    table.put(b"", 6)
    assert table.find(b"k") == 4
    assert table.find(b"") == 6
    table.put(b"k", UINT64_MAX)
    assert table.find(b"k") == UINT64_MAX
    assert table.keys.key_count == 2


def test_any_keys_are_found_as_a_dict_finds_them():
    cdef Table table = Table()
    chance = random.Random(seed_of(5))
    known = {}
    keys = [chance.randbytes(chance.choice([0, 1, 7, 8, 9, 20, 300])) for _ in range(3000)]
    for number in range(20000):
        key = chance.choice(keys)
        table.put(key, number)
        known[key] = number
    for key in keys:
        assert table.find(key) == known.get(key)
    assert table.keys.key_count == len(known)
    assert table.find(b"another") is None
    for first, count in ((0, 20000), (0, 1), (19999, 1), (7000, 4097), (20000, 100)):
        assert table.marked(first, count) == set(known.values()) & set(range(first, first + count))


def test_a_removed_key_marks_nothing():
    cdef Table table = Table()
    table.put(b"gone", 3)
    table.put(b"kept", 4)
    table.put(b"gone", UINT64_MAX)
    assert table.marked(0, 64) == {4}
    assert table.marked(5, 64) == set()


def test_a_key_may_be_larger_than_a_chunk():
    cdef Table table = Table()
    table.put(b"a", 7)
    for size in (3 << 20, (4 << 20) - 12, (4 << 20) - 20, 9 << 20):
        table.put(b"x" * size, size)
        table.put(b"y%d" % size, size + 1)
    for size in (3 << 20, (4 << 20) - 12, (4 << 20) - 20, 9 << 20):
        assert table.find(b"x" * size) == size
        assert table.find(b"x" * (size - 1)) is None
        assert table.find(b"y%d" % size) == size + 1
    assert table.find(b"a") == 7
    assert len(table.marked(0, 10 << 20)) == 9


@pytest.mark.standard
def test_memory_follows_the_distinct_keys():
    cdef Table table = Table()
    for number in range(100000):
        table.put(b"%d" % (number % 10), number)
    assert table.keys.memory_size < 2 << 20
    for number in range(1000000):
        table.put(b"%d" % number, number)
    # Of each a record of 24 bytes, and half a slot more than it needs at the worst.
    assert table.keys.memory_size < 1000000 * (24 + 26) + (5 << 20)
    assert table.marked(0, 1000000) == set(range(1000000))
