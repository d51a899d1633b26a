"""Facts about the table of the last message of each key."""

import random

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.key_positions cimport *
from pulsarx._core.status cimport STATUS_OK

from seeds import seed_of


cdef class Table:
    cdef KeyPositions keys

    def __cinit__(self):
        key_positions_init(&self.keys, 42)

    def __dealloc__(self):
        key_positions_free(&self.keys)

    cdef int put(self, bytes key, uint64_t ledger_id, uint64_t message) except -1:
        cdef const uint8_t* data = key
        cdef uint32_t size = len(key)
        cdef int status = key_positions_put(
            &self.keys, key_positions_hash(&self.keys, data, size), data, size, ledger_id, message)
        assert status == STATUS_OK
        return 0

    cdef object find(self, bytes key):
        cdef const uint8_t* data = key
        cdef uint32_t size = len(key)
        cdef uint64_t ledger_id = 99
        cdef uint64_t message = 99
        cdef uint64_t wanted = key_positions_hash(&self.keys, data, size)
        key_positions_fetch_slot(&self.keys, wanted)
        key_positions_fetch_record(&self.keys, wanted)
        if not key_positions_find(&self.keys, wanted, data, size, &ledger_id, &message):
            return None
        return ledger_id, message


def test_an_empty_table_has_no_key():
    cdef Table table = Table()
    assert table.find(b"") is None
    assert table.find(b"k") is None


def test_the_last_position_of_a_key_is_kept():
    cdef Table table = Table()
    table.put(b"k", 1, 2)
    table.put(b"k", 3, 4)
    table.put(b"", 5, 6)
    assert table.find(b"k") == (3, 4)
    assert table.find(b"") == (5, 6)
    table.put(b"k", 0, 7)
    assert table.find(b"k") == (0, 7)
    assert table.keys.key_count == 2


def test_any_keys_are_found_as_a_dict_finds_them():
    cdef Table table = Table()
    chance = random.Random(seed_of(5))
    known = {}
    keys = [chance.randbytes(chance.choice([0, 1, 7, 8, 9, 20, 300])) for _ in range(3000)]
    for number in range(20000):
        key = chance.choice(keys)
        table.put(key, number + 1, number)
        known[key] = (number + 1, number)
    for key in keys:
        assert table.find(key) == known.get(key)
    assert table.keys.key_count == len(known)
    assert table.find(b"another") is None


def test_a_key_may_be_larger_than_a_chunk():
    cdef Table table = Table()
    table.put(b"x" * (3 << 20), 1, 1)
    table.put(b"y", 2, 2)
    assert table.find(b"x" * (3 << 20)) == (1, 1)
    assert table.find(b"x" * (3 << 20) + b"y") is None
    assert table.find(b"y") == (2, 2)


def test_memory_follows_the_distinct_keys():
    cdef Table table = Table()
    for number in range(100000):
        table.put(b"%d" % (number % 10), 1, number)
    assert table.keys.memory_size < 2 << 20
    for number in range(100000):
        table.put(b"%d" % number, 1, number)
    assert table.keys.memory_size < 100000 * 64 + (2 << 20)
