"""Snappy: its format by hand, another implementation as an oracle, and blocks that lie."""

import random

import pytest

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint16_t
from libc.stdlib cimport free, malloc

from pulsarx._core.snappy_block cimport (
    SNAPPY_TABLE_SIZE, snappy_block_bound, snappy_block_compress, snappy_block_decompress,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK


cdef bytes block_of(bytes data):
    cdef uint8_t* plain = guarded_bytes(data)
    cdef bytes room = bytes(snappy_block_bound(len(data)))
    cdef uint8_t* block = guarded_bytes(room)
    cdef uint16_t* table = <uint16_t*>malloc(SNAPPY_TABLE_SIZE * sizeof(uint16_t))
    cdef size_t size = snappy_block_compress(plain, len(data), block, table)
    found = block[:size]
    free(table)
    free_guarded_bytes(block, room)
    free_guarded_bytes(plain, data)
    return found


cdef object plain_of(bytes data, size_t size):
    """The bytes, or the status."""
    cdef uint8_t* block = guarded_bytes(data)
    cdef bytes room = bytes(size)
    cdef uint8_t* plain = guarded_bytes(room)
    cdef int status = snappy_block_decompress(block, len(data), plain, size)
    found = plain[:size] if status == STATUS_OK else status
    free_guarded_bytes(plain, room)
    free_guarded_bytes(block, data)
    return found


def texts():
    """Random ones, ones that repeat near and far, and both at the borders of 64 KiB."""
    source = random.Random(7)
    words = [source.randbytes(source.randint(1, 12)) for _ in range(50)]
    for size in [*range(70), 255, 256, 257, 65535, 65536, 65537, 65550, 65551, 200_000]:
        yield source.randbytes(size)
        yield bytes(size)
        yield (b"ab" * size)[:size]
        yield b"".join(source.choices(words, k=size // 6 + 1))[:size]


def test_what_was_compressed_comes_back():
    for data in texts():
        packed = block_of(data)
        assert plain_of(packed, len(data)) == data
        assert len(packed) <= snappy_block_bound(len(data))


def test_another_implementation_reads_it_and_is_read():
    snappy = pytest.importorskip("cramjam").snappy
    for data in texts():
        assert bytes(snappy.decompress_raw(block_of(data))) == data
        assert plain_of(bytes(snappy.compress_raw(data)), len(data)) == data


def test_repetitions_take_few_bytes():
    assert len(block_of(b"pulsar " * 1000)) < 7000 // 15
    assert len(block_of(bytes(60_000))) < 60_000 // 20


def test_elements_by_hand():
    for block, plain in [
        (b"\x00", b""),
        (b"\x03\x08abc", b"abc"),
        (b"\x03\xf0\x02abc", b"abc"),  # lengths in one to four bytes
        (b"\x03\xf4\x02\x00abc", b"abc"),
        (b"\x03\xf8\x02\x00\x00abc", b"abc"),
        (b"\x03\xfc\x02\x00\x00\x00abc", b"abc"),
        (b"\x07\x08abc\x01\x03", b"abcabca"),  # copies with one, two and four bytes of offset
        (b"\x05\x08abc\x06\x03\x00", b"abcab"),
        (b"\x05\x08abc\x07\x03\x00\x00\x00", b"abcab"),
        (b"\x0a\x00a\x15\x01", b"a" * 10),  # itself, again and again
        (b"\x83\x00\x08abc", b"abc"),  # a size in more bytes than it needs
    ]:
        assert plain_of(block, len(plain)) == plain, block


def test_blocks_that_lie_are_refused():
    for block, size in [
        (b"", 0), (b"\x80", 0), (b"\x80" * 11, 0), (b"\x01", 1), (b"\x00\x00a", 0),
        (b"\x03\x08ab", 3), (b"\x02\x08abc", 2), (b"\x04\x08abc", 4), (b"\x03\x08abc", 4),
        (b"\x03\xf0", 3), (b"\x03\xf4\x02", 3), (b"\x03\xfc\xff\xff\xff\xff", 3),
        (b"\x07\x08abc\x01", 7), (b"\x07\x08abc\x01\x00", 7), (b"\x07\x08abc\x01\x04", 7),
        (b"\x05\x08abc\x06\x03", 5), (b"\x05\x08abc\x07\x03\x00\x00", 5), (b"\x04\x01\x01", 4),
        (b"\x05\x08abc\x0a\x03\x00", 5),
    ]:
        assert plain_of(block, size) == STATUS_CORRUPT, block


def test_no_garbage_leaves_the_room():
    """The bytes behind block and room may not be touched: guarded_bytes."""
    source = random.Random(9)
    valid = [block_of(data) for data in texts() if 0 < len(data) < 70_000]
    for block in valid:
        for _ in range(20):
            at = source.randrange(1, len(block) + 1)
            size = snappy_size(block)
            garbled = block[:at] + source.randbytes(1) + block[at + 1:]
            found = plain_of(garbled, size)
            assert found == STATUS_CORRUPT or len(found) == size
            assert plain_of(block[:at], size) in (STATUS_CORRUPT, plain_of(block, size))


def snappy_size(block):
    size = shift = 0
    for byte in block:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return size


def test_more_than_a_block_can_say_has_no_bound():
    assert snappy_block_bound(0xFFFFFFFF) > 0xFFFFFFFF and snappy_block_bound(0x100000000) == 0
