"""The checksum: known values, and the instruction against the table."""

import random

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.crc32c cimport crc32c, crc32c_older, crc32c_portable, crc32c_u64


cdef uint32_t fast(bytes data, uint32_t seed=0):
    cdef uint8_t* copy = guarded_bytes(data)
    cdef uint32_t found = crc32c(seed, copy, len(data))
    free_guarded_bytes(copy, data)
    return found


cdef uint32_t older(bytes data, uint32_t seed=0):
    cdef uint8_t* copy = guarded_bytes(data)
    cdef uint32_t found = crc32c_older(seed, copy, len(data))
    free_guarded_bytes(copy, data)
    return found


cdef uint32_t portable(bytes data, uint32_t seed=0):
    cdef uint8_t* copy = guarded_bytes(data)
    cdef uint32_t found = crc32c_portable(seed, copy, len(data))
    free_guarded_bytes(copy, data)
    return found


def test_known_values():
    # RFC 3720, B.4
    for data, checksum in [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
    ]:
        assert fast(data) == checksum
        assert older(data) == checksum
        assert portable(data) == checksum


def test_every_length_and_alignment_gives_the_same_by_instruction_and_by_table():
    source = random.Random(32)
    data = source.randbytes(1200)
    for size in range(1100):
        start = source.randrange(16)
        piece = data[start:start + size]
        seed = source.getrandbits(32)
        expected = portable(piece, seed)
        assert fast(piece, seed) == expected, size
        assert older(piece, seed) == expected, size


def test_large_blocks_of_several_lanes():
    source = random.Random(33)
    lanes = 24 * 1024
    for size in [lanes - 1, lanes, lanes + 215, lanes + 216, lanes * 2 + 5, 131072, 1000003]:
        data = source.randbytes(size)
        expected = portable(data)
        assert fast(data) == expected, size
        assert older(data) == expected, size


def test_a_checksum_goes_on_where_it_stopped():
    source = random.Random(34)
    data = source.randbytes(3000)
    whole = fast(data)
    for _ in range(200):
        cut = source.randrange(len(data) + 1)
        assert fast(data[cut:], fast(data[:cut])) == whole
        assert older(data[cut:], older(data[:cut])) == whole
        assert portable(data[cut:], portable(data[:cut])) == whole


def test_u64_is_the_checksum_of_its_little_endian_bytes():
    source = random.Random(35)
    for _ in range(200):
        value = source.getrandbits(64)
        seed = source.getrandbits(32)
        expected = portable(value.to_bytes(8, "little"), seed)
        assert crc32c_u64(<uint32_t>seed, <uint64_t>value) == expected
