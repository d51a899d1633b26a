"""LZ4: another implementation as an oracle, and blocks that lie."""

import random

import pytest

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t

from pulsarx._core.lz4_block cimport lz4_block_bound, lz4_block_compress, lz4_block_decompress
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TOO_LARGE


cdef bytes block_of(bytes data):
    cdef uint8_t* plain = guarded_bytes(data)
    cdef bytes room = bytes(lz4_block_bound(len(data)))
    cdef uint8_t* block = guarded_bytes(room)
    cdef size_t size = lz4_block_compress(plain, len(data), block, len(room))
    found = block[:size]
    free_guarded_bytes(block, room)
    free_guarded_bytes(plain, data)
    return found


cdef object plain_of(bytes data, size_t size):
    """The bytes, or the status."""
    cdef uint8_t* block = guarded_bytes(data)
    cdef bytes room = bytes(size)
    cdef uint8_t* plain = guarded_bytes(room)
    cdef int status = lz4_block_decompress(block, len(data), plain, size)
    found = plain[:size] if status == STATUS_OK else status
    free_guarded_bytes(plain, room)
    free_guarded_bytes(block, data)
    return found


def texts():
    source = random.Random(5)
    for size in (0, 1, 12, 13, 64, 1000, 65_536, 200_000):
        yield source.randbytes(size)
        yield bytes(size)
        yield (b"pulsar, " * size)[:size]


def test_what_was_compressed_comes_back():
    for data in texts():
        assert plain_of(block_of(data), len(data)) == data


def test_another_implementation_reads_it_and_is_read():
    lz4 = pytest.importorskip("cramjam").lz4
    for data in texts():
        if data:
            found = lz4.decompress_block(block_of(data), output_len=len(data))
            assert bytes(found) == data
        packed = bytes(lz4.compress_block(data, store_size=False))
        assert plain_of(packed, len(data)) == data


def test_blocks_that_lie_are_refused():
    for block, size in [
        (b"", 0), (b"", 1), (b"\x00", 1), (b"\x30ab", 3), (b"\x30abc", 2), (b"\x30abc", 4),
        (b"\x14a\x00\x00\x10b", 9), (b"\x14a\x05\x00\x10b", 9), (b"\xf0\xff", 300),
    ]:
        assert plain_of(block, size) == STATUS_CORRUPT, block


def test_no_garbage_leaves_the_room():
    """The bytes behind block and room may not be touched: guarded_bytes."""
    source = random.Random(9)
    for data in texts():
        block = block_of(data)
        for _ in range(20):
            at = source.randrange(len(block))
            found = plain_of(block[:at] + source.randbytes(1) + block[at + 1:], len(data))
            assert found == STATUS_CORRUPT or len(found) == len(data)


def test_sizes_beyond_those_of_lz4_are_told():
    cdef uint8_t byte = 0
    assert lz4_block_bound(<size_t>1 << 32) == 0
    assert lz4_block_decompress(&byte, 1, &byte, <size_t>1 << 32) == STATUS_TOO_LARGE
    assert lz4_block_decompress(&byte, <size_t>1 << 32, &byte, 1) == STATUS_TOO_LARGE


def test_room_beyond_what_an_int_can_say_is_room():
    cdef uint8_t room[100]
    assert lz4_block_compress(b"a" * 50, 50, room, <size_t>1 << 32) > 0
