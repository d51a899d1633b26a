"""The frame of an entry: what is encoded is decoded, and nothing else is."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.crc32c cimport crc32c, crc32c_u64
from pulsarx._core.entry_frame cimport *
from pulsarx._core.status cimport *


cdef EntryFrame sample() noexcept:
    cdef EntryFrame frame
    memset(&frame, 0, sizeof(frame))
    frame.entry_size = 1234
    frame.message_count = 7
    frame.entry_id = 1 << 40
    frame.durable_count = 99
    frame.first_message = 1 << 36
    frame.publish_time_ms = 1700000000000
    frame.deliver_at_ms = -5
    frame.sticky_hash = 0xDEADBEEF
    frame.flags = ENTRY_BATCH | ENTRY_CHUNK
    frame.broker_time = 0xCAFE0001
    return frame


def test_a_frame_comes_back():
    cdef EntryFrame frame = sample()
    cdef EntryFrame found
    cdef uint8_t room[64]
    memset(&found, 0, sizeof(found))
    entry_frame_encode(&frame, 77, 4096, room)
    assert entry_frame_decode(room, 77, 4096, &found) == STATUS_OK
    assert memcmp(&found, &frame, sizeof(frame) - 4) == 0      # with no padding at its end


def test_every_flipped_bit_other_seed_and_other_offset_are_noticed():
    cdef EntryFrame frame = sample()
    cdef EntryFrame found
    cdef uint8_t room[64]
    cdef int bit
    entry_frame_encode(&frame, 77, 4096, room)
    for bit in range(512):
        room[bit // 8] ^= 1 << (bit % 8)
        assert entry_frame_decode(room, 77, 4096, &found) == STATUS_CORRUPT, bit
        room[bit // 8] ^= 1 << (bit % 8)
    assert entry_frame_decode(room, 78, 4096, &found) == STATUS_CORRUPT
    assert entry_frame_decode(room, 77, 4104, &found) == STATUS_CORRUPT


def decoded(uint64_t first_message, uint32_t message_count, uint32_t flags):
    cdef EntryFrame frame = sample()
    cdef EntryFrame found
    cdef uint8_t room[64]
    frame.first_message = first_message
    frame.message_count = message_count
    frame.flags = flags
    entry_frame_encode(&frame, 77, 4096, room)
    return entry_frame_decode(room, 77, 4096, &found)


def test_a_count_that_cannot_be_is_no_frame_although_its_checksum_holds():
    """An entry of 1234 bytes has no room for more, and ordinals are below 2^37."""
    assert decoded(0, 205, ENTRY_BATCH) == STATUS_OK
    assert decoded(0, 206, ENTRY_BATCH) == STATUS_CORRUPT
    assert decoded(0, 206, ENTRY_BATCH | ENTRY_COMPRESSED) == STATUS_OK
    assert decoded(0, 0x7FFFFFFF, ENTRY_BATCH | ENTRY_COMPRESSED) == STATUS_CORRUPT
    assert decoded((<uint64_t>1 << 37) - 1, 1, 0) == STATUS_OK
    assert decoded((<uint64_t>1 << 37) - 1, 2, ENTRY_BATCH) == STATUS_CORRUPT
    assert decoded(<uint64_t>1 << 50, 1, 0) == STATUS_CORRUPT
    assert decoded(<uint64_t>-1, 1, 0) == STATUS_CORRUPT


def test_zeros_are_no_frame_and_not_damage():
    cdef EntryFrame found
    cdef uint8_t room[64]
    memset(room, 0, 64)
    assert entry_frame_decode(room, 77, 4096, &found) == STATUS_END
    room[63] = 1
    assert entry_frame_decode(room, 77, 4096, &found) == STATUS_CORRUPT


def test_the_layout_is_the_one_written_down():
    cdef EntryFrame frame = sample()
    cdef uint8_t room[64]
    cdef uint32_t stored = 0
    entry_frame_encode(&frame, 77, 4096, room)
    memcpy(&stored, room + 4, 4)
    assert stored == crc32c(crc32c(crc32c_u64(77, 4096), room, 4), room + 8, 56)
    raw = bytes(room[:64])
    assert int.from_bytes(raw[0:4], "little") == 1234
    assert int.from_bytes(raw[8:16], "little") == 1 << 40
    assert int.from_bytes(raw[32:40], "little") == 1700000000000
    assert int.from_bytes(raw[52:56], "little") == 0xDEADBEEF
    assert int.from_bytes(raw[16:24], "little") == 99
    assert int.from_bytes(raw[60:64], "little") == 0xCAFE0001


def test_the_first_entry_says_an_index_where_others_count_what_is_durable():
    cdef EntryFrame frame = sample()
    cdef EntryFrame found
    cdef uint8_t room[64]
    frame.first_index = 5000
    entry_frame_encode(&frame, 77, 4096, room)
    assert entry_frame_decode(room, 77, 4096, &found) == STATUS_OK
    assert (found.durable_count, found.first_index) == (99, 0)
    frame.entry_id = 0
    entry_frame_encode(&frame, 77, 4096, room)
    assert entry_frame_decode(room, 77, 4096, &found) == STATUS_OK
    assert (found.durable_count, found.first_index) == (0, 5000)


def test_spans_are_whole_words():
    assert entry_frame_span(0) == 64
    assert entry_frame_span(1) == 72
    assert entry_frame_span(8) == 72
    assert entry_frame_span(0xFFFFFFFF) == 64 + (1 << 32)
