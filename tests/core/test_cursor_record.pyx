"""The bytes of a cursor file: what is written is read, and nothing else is."""

import random

from seeds import seeds

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsarx._core.ack_bits cimport (
    AckBits, ack_bits_add, ack_bits_count, ack_bits_free, ack_bits_has, ack_bits_init,
    ack_bits_put_word,
)
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_left, byte_reader_start
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start
from pulsarx._core.cursor_record cimport (
    CURSOR_BEFORE, CURSOR_LABEL_OFFSET, CURSOR_MASK, CURSOR_MESSAGE_END, CURSOR_REDELIVERED,
    CURSOR_RUN, CURSOR_RUN_MAX, CURSOR_TAIL_SIZE_MAX, CURSOR_THROUGH, CursorHeader, CursorRecord,
    CursorTail, cursor_header_decode, cursor_header_encode, cursor_ledger_decode,
    cursor_ledger_encode, cursor_ledger_size, cursor_tail_append, cursor_tail_end,
    cursor_tail_read, cursor_tail_scatter, cursor_tail_start,
)
from pulsarx._core.crc32c cimport crc32c, crc32c_u64
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_END, STATUS_FOLD, STATUS_FOREIGN, STATUS_OK, STATUS_TRUNCATED,
    STATUS_UNBORN, STATUS_UNSUPPORTED,
)

cdef uint64_t room[16]


cdef CursorHeader header_of(uint64_t generation):
    cdef CursorHeader header
    memset(&header, 0, sizeof(header))
    header.generation = generation
    header.base_ledger_id = 1000
    header.snapshot_size = 10
    header.tail_offset = 8192
    header.tail_size = 4096
    return header


cdef void start(CursorTail* tail, uint64_t generation):
    cdef CursorHeader header = header_of(generation)
    memset(room, 0, sizeof(room))
    cursor_tail_start(tail, &header, room, 8)


cdef list records(CursorTail* tail):
    cdef CursorRecord record
    cdef int status
    found = []
    for slot in range(8):
        status = cursor_tail_read(tail, slot, &record)
        if status == STATUS_OK:
            found.append((record.kind, record.ledger_id, record.first, record.count))
        elif status == STATUS_CORRUPT:
            found.append("damaged")
    return found


def test_in_order_acknowledgements_share_a_record():
    cdef CursorTail tail
    start(&tail, 1)
    for at in range(50):
        assert cursor_tail_append(&tail, CURSOR_RUN, 1000, at, 1) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_RUN, 1001, 50, 7) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_THROUGH, 1003, 4, 1) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_THROUGH, 1003, 9, 1) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_BEFORE, 1004, 0, 1) == STATUS_OK
    assert records(&tail) == [
        (CURSOR_RUN, 1000, 0, 50), (CURSOR_RUN, 1001, 50, 7), (CURSOR_THROUGH, 1003, 4, 6),
        (CURSOR_BEFORE, 1004, 0, 1)]


def test_a_run_ends_where_its_count_is_full():
    cdef CursorTail tail
    start(&tail, 1)
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000, 0, CURSOR_RUN_MAX) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000, CURSOR_RUN_MAX, 1) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000 + 16777215, <uint64_t>CURSOR_MESSAGE_END - 1,
                              1) == STATUS_OK
    assert records(&tail) == [
        (CURSOR_RUN, 1000, 0, 2 ** 32 - 1), (CURSOR_RUN, 1000, 2 ** 32 - 1, 1),
        (CURSOR_RUN, 1000 + 16777215, 2 ** 37 - 1, 1)]
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000 + 16777216, 0, 1) == STATUS_FOLD
    assert cursor_tail_append(&tail, CURSOR_RUN, 999, 0, 1) == STATUS_FOLD


cdef class Group:
    """Acknowledged bits of the groups of ledger 1000, as a tracker has them."""

    cdef dict bits

    def __cinit__(self):
        self.bits = {}

    cdef int scatter(self, CursorTail* tail, uint64_t first, uint64_t count, bint only_known):
        group = first // 32
        held = self.bits.get(group, 0) | (2 ** count - 1) << first % 32
        status = cursor_tail_scatter(tail, 1000, first, count, <uint32_t>(held & 2 ** 32 - 1),
                                     only_known)
        if status == STATUS_OK:
            self.bits[group] = held
        return status


def test_scattered_acknowledgements_share_the_record_of_their_group():
    cdef CursorTail tail
    group = Group()
    start(&tail, 1)
    assert group.scatter(&tail, 70, 1, True) == STATUS_END
    for at in (70, 5, 95, 64, 0, 31):
        assert group.scatter(&tail, at, 1, False) == STATUS_OK
    assert group.scatter(&tail, 80, 3, True) == STATUS_OK
    assert group.scatter(&tail, 30, 3, False) == STATUS_END
    assert sorted(records(&tail)) == [
        (CURSOR_MASK, 1000, 0, 1 | 1 << 5 | 1 << 31),
        (CURSOR_MASK, 1000, 64, 1 | 1 << 6 | 1 << 31 | 7 << 16)]


def test_a_group_whose_slot_is_taken_gets_another():
    cdef CursorTail tail
    group = Group()
    start(&tail, 1)
    assert group.scatter(&tail, 32 * 3, 1, False) == STATUS_OK
    assert group.scatter(&tail, 32 * 11, 1, False) == STATUS_OK
    assert group.scatter(&tail, 32 * 11 + 5, 1, False) == STATUS_OK
    assert group.scatter(&tail, 32 * 3 + 1, 1, False) == STATUS_OK
    assert sorted(records(&tail)) == [
        (CURSOR_MASK, 1000, 96, 3), (CURSOR_MASK, 1000, 352, 1), (CURSOR_MASK, 1000, 352, 33)]


def test_a_full_tail_asks_for_a_fold_and_still_extends():
    cdef CursorTail tail
    group = Group()
    start(&tail, 1)
    for at in range(1, 8):
        assert group.scatter(&tail, 32 * at, 1, False) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000, 1000, 1) == STATUS_OK
    assert tail.used == 8
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000, 2000, 1) == STATUS_FOLD
    assert group.scatter(&tail, 9999, 1, False) == STATUS_FOLD
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000, 1001, 5) == STATUS_OK
    assert group.scatter(&tail, 33, 1, False) == STATUS_OK
    assert (CURSOR_MASK, 1000, 32, 3) in records(&tail)
    assert (CURSOR_RUN, 1000, 1000, 6) in records(&tail)


def test_records_go_around_masks_before_and_after_a_restart():
    """Beside a list; a tail read again goes on where the one before stopped."""
    cdef CursorTail tail
    cdef CursorHeader header = header_of(1)
    for seed in seeds(300):
        chance = random.Random(seed)
        group = Group()
        start(&tail, 1)
        model = []
        at = 5000
        while True:
            if chance.random() < 0.6:
                first = 32 * chance.choice((1, 2, 6, 7)) + chance.randrange(9)
                status = group.scatter(&tail, first, 1, False)
            else:
                at += 10
                status = cursor_tail_append(&tail, CURSOR_RUN, 1000, at, 1)
                if status == STATUS_OK:
                    model.append((CURSOR_RUN, 1000, at, 1))
            if status:
                assert status == STATUS_FOLD and tail.used == 8
                break
            if chance.random() < 0.2:
                cursor_tail_start(&tail, &header, room, 8)
                records(&tail)
        masks = [(CURSOR_MASK, 1000, 32 * at, bits) for at, bits in group.bits.items()]
        found = records(&tail)
        assert "damaged" not in found
        assert [each for each in found if each[0] == CURSOR_RUN] == model
        assert set(masks) <= set(found)


def test_no_single_or_double_flip_in_a_record_is_read():
    cdef CursorTail tail
    cdef uint64_t kept0, kept1
    start(&tail, 1)
    cursor_tail_append(&tail, CURSOR_RUN, 1000, 5, 3)
    kept0, kept1 = room[0], room[1]
    for one in range(128):
        for other in range(one, 128):
            room[0], room[1] = kept0, kept1
            room[one // 64] ^= <uint64_t>1 << one % 64
            if other != one:
                room[other // 64] ^= <uint64_t>1 << other % 64
            assert records(&tail) == ["damaged"]


def test_a_record_holds_in_its_own_slot_and_generation_only():
    cdef CursorTail tail
    cdef CursorHeader header = header_of(2)
    start(&tail, 1)
    cursor_tail_append(&tail, CURSOR_RUN, 1000, 5, 3)
    room[2], room[3] = room[0], room[1]
    assert records(&tail) == [(CURSOR_RUN, 1000, 5, 3), "damaged"]
    cursor_tail_start(&tail, &header, room, 8)
    assert records(&tail) == ["damaged", "damaged"]


def test_headers():
    cdef uint8_t block[4096]
    cdef CursorHeader header = header_of(12)
    cdef CursorHeader back
    cursor_header_encode(&header, NULL, 0, block)
    assert cursor_header_decode(block, 12288, &back) == STATUS_OK
    cursor_header_encode(&header, <const uint8_t*>b"label", 5, block)
    assert cursor_header_decode(block, 12288, &back) == STATUS_OK
    assert block[CURSOR_LABEL_OFFSET + 4] == ord("l") and block[CURSOR_LABEL_OFFSET + 5] == 0
    assert back.generation == 12 and back.base_ledger_id == 1000 and back.tail_offset == 8192
    assert cursor_header_decode(block, 4095, &back) == STATUS_TRUNCATED
    assert cursor_header_decode(block, 4100, &back) == STATUS_TRUNCATED
    for at in range(4096):
        block[at] ^= 4
        expected = <int>STATUS_FOREIGN if at < 8 else <int>STATUS_CORRUPT
        assert cursor_header_decode(block, 12288, &back) == expected
        block[at] ^= 4
    memset(block, 0, 4096)
    assert cursor_header_decode(block, 12288, &back) == STATUS_UNBORN


def test_ledgers_of_a_snapshot_come_back_and_no_cut_one_does():
    cdef AckBits bits, back
    cdef ByteWriter writer
    cdef ByteReader reader
    cdef uint64_t newly = 0
    cdef uint64_t delta = 0
    cdef uint64_t size, at
    cdef bytearray encoded
    cdef uint8_t* bytes_at
    for seed in range(60):
        chance = random.Random(seed)
        ack_bits_init(&bits)
        for _ in range(chance.choice((0, 1, 5, 40))):
            ack_bits_add(&bits, chance.randrange(3000), chance.choice((1, 30, 64, 400)), 1 << 20,
                         &newly)
        size = cursor_ledger_size(seed, &bits)
        encoded = bytearray(size)
        bytes_at = encoded
        byte_writer_start(&writer, bytes_at, size)
        cursor_ledger_encode(seed, &bits, &writer)
        assert writer.at == writer.end
        byte_reader_start(&reader, bytes_at, size)
        ack_bits_init(&back)
        assert cursor_ledger_decode(&reader, &delta, &back) == STATUS_OK
        assert byte_reader_left(&reader) == 0 and delta == <uint64_t>seed
        assert back.contiguous == bits.contiguous and ack_bits_count(&back) == ack_bits_count(&bits)
        for at in range(4000):
            assert ack_bits_has(&bits, at) == ack_bits_has(&back, at)
        ack_bits_free(&back)
        for cut in range(0, size, 1 + size // 50):
            byte_reader_start(&reader, bytes_at, cut)
            assert cursor_ledger_decode(&reader, &delta, &back) == STATUS_TRUNCATED
            ack_bits_free(&back)
        ack_bits_free(&bits)


def test_each_bound_of_a_header():
    """By itself, under a checksum that holds."""
    cdef CursorHeader header = header_of(1)
    cdef CursorHeader found
    cdef uint8_t block[4096]
    cdef uint64_t value
    cdef uint32_t checksum
    cdef uint64_t file_size = 1 << 40
    for at, bytes_of, number, status in (
        (8, 4, 2, STATUS_UNSUPPORTED),                             # version
        (76, 4, 8, STATUS_CORRUPT),                                # size of a slot
        (64, 8, <uint64_t>CURSOR_TAIL_SIZE_MAX + 4096, STATUS_CORRUPT),
        (64, 8, 4097, STATUS_CORRUPT),                             # no whole blocks
        (56, 8, 8193, STATUS_CORRUPT),                             # the tail not on one
        (56, 8, 0, STATUS_CORRUPT),                                # the tail in the header
        (48, 8, 4097, STATUS_CORRUPT),                             # the snapshot in the tail
        (48, 8, 4096, STATUS_OK),
    ):
        cursor_header_encode(&header, NULL, 0, block)
        value = number
        memcpy(block + <int>at, &value, bytes_of)
        checksum = crc32c(crc32c(0, block, 12), block + 16, 4080)
        memcpy(block + 12, &checksum, 4)
        assert cursor_header_decode(block, file_size, &found) == status, (at, number)
    assert cursor_header_decode(block, 8191, &found) == STATUS_TRUNCATED


cdef int read_back(uint64_t word0, uint64_t count) except -1:
    """The status of a record that says so, under a checksum that holds."""
    cdef CursorTail tail
    cdef CursorRecord record
    cdef uint32_t checksum
    start(&tail, 1)
    checksum = crc32c_u64(tail.seed, word0)
    room[0] = word0
    room[1] = count | <uint64_t>crc32c_u64(checksum, count) << 32
    return cursor_tail_read(&tail, 0, &record)


def test_each_bound_of_a_record():
    cdef uint64_t last = <uint64_t>CURSOR_MESSAGE_END - 1
    for kind, first, count, status in (
        (CURSOR_RUN, 5, 1, STATUS_OK), (0, 5, 1, STATUS_CORRUPT), (6, 5, 1, STATUS_CORRUPT),
        (CURSOR_RUN, 5, 0, STATUS_CORRUPT), (CURSOR_RUN, last, 1, STATUS_OK),
        (CURSOR_RUN, last, 2, STATUS_CORRUPT), (CURSOR_MASK, 32, 7, STATUS_OK),
        (CURSOR_MASK, 33, 7, STATUS_CORRUPT),
        (CURSOR_MASK, last - 31, <uint64_t>1 << 31, STATUS_OK),
        (CURSOR_REDELIVERED, 5, 3 << 16 | 2, STATUS_OK),
        (CURSOR_REDELIVERED, 5, 3 << 16, STATUS_CORRUPT),
        (CURSOR_REDELIVERED, last, 1 << 16 | 2, STATUS_CORRUPT),
    ):
        assert read_back(<uint64_t>kind << 61 | <uint64_t>first, count) == status, (kind, first)


def test_masks_need_slots_of_a_power_of_two():
    cdef CursorTail tail
    cdef CursorHeader header = header_of(1)
    for slots in (0, 3, 8):
        memset(room, 0, sizeof(room))
        cursor_tail_start(&tail, &header, room, slots)
        assert (tail.home_mask == 0) == (slots != 8)
        assert cursor_tail_scatter(&tail, 1000, 5, 1, 32, False) == (
            <int>STATUS_OK if slots == 8 else <int>STATUS_END)
    # Those of two groups are no mask.
    assert cursor_tail_scatter(&tail, 1000, 31, 2, 3, False) == STATUS_END
    cursor_tail_end(&tail)
    assert cursor_tail_scatter(&tail, 1000, 5, 1, 32, False) == STATUS_END
    assert cursor_tail_append(&tail, CURSOR_RUN, 1000, 5, 1) == STATUS_FOLD


def test_what_is_acknowledged_through_grows_only_upwards():
    cdef CursorTail tail
    start(&tail, 1)
    assert cursor_tail_append(&tail, CURSOR_THROUGH, 1000, 0, 10) == STATUS_OK
    assert cursor_tail_append(&tail, CURSOR_THROUGH, 1000, 5, 20) == STATUS_OK
    assert records(&tail) == [(CURSOR_THROUGH, 1000, 0, 25)]
    assert cursor_tail_append(&tail, CURSOR_THROUGH, 1000, 5, 10) == STATUS_OK
    assert len(records(&tail)) == 2
    # A run that would be longer than one record can say.
    assert cursor_tail_append(&tail, CURSOR_THROUGH, 1000, <uint64_t>1 << 33, 1) == STATUS_OK
    assert len(records(&tail)) == 3


def test_words_of_a_snapshot_that_say_nothing_new():
    """Below what is acknowledged anyway, and without a bit."""
    cdef AckBits bits
    cdef ByteReader reader
    cdef uint64_t delta = 0
    # contiguous 70; a mixed run of two words, of which the first is partly below it.
    data = bytes([3, 70, 2 << 2 | 3]) + bytes(8) + (1 << 7).to_bytes(8, "little") + bytes([0])
    ack_bits_init(&bits)
    byte_reader_start(&reader, data, len(data))
    assert cursor_ledger_decode(&reader, &delta, &bits) == STATUS_OK
    assert delta == 3 and ack_bits_count(&bits) == 71 and ack_bits_has(&bits, 135)
    ack_bits_free(&bits)
    ack_bits_init(&bits)
    bits.contiguous = 200
    assert ack_bits_put_word(&bits, 2, 255) == STATUS_OK and ack_bits_count(&bits) == 200
    ack_bits_free(&bits)


cdef int decoded_status(bytes data) except -1:
    cdef AckBits bits
    cdef ByteReader reader
    cdef uint64_t delta = 0
    cdef int status
    ack_bits_init(&bits)
    byte_reader_start(&reader, data, len(data))
    status = cursor_ledger_decode(&reader, &delta, &bits)
    ack_bits_free(&bits)
    return status


def varint(number):
    written = bytearray()
    while number >= 128:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])


def test_each_bound_of_a_ledger_in_a_snapshot():
    end = <uint64_t>CURSOR_MESSAGE_END
    mixed = bytes([1 << 2 | 3]) + bytes([1] + 7 * [0])
    for data, status in (
        (varint(end) + b"\0", STATUS_OK),
        (varint(end + 1) + b"\0", STATUS_CORRUPT),
        (b"\0" + mixed + b"\0", STATUS_CORRUPT),               # message 0 is acknowledged
        (b"\0" + bytes([1]) + b"\0", STATUS_CORRUPT),          # a run of no words
        (b"\0" + varint((end >> 6) + 1 << 2 | 1) + b"\0", STATUS_CORRUPT),
        (b"\0" + bytes([1 << 2 | 2]) + b"\0", STATUS_CORRUPT),  # would be contiguous
        (b"\5" + bytes([1 << 2 | 1, 1 << 2 | 2]) + b"\0", STATUS_OK),
        (b"\5" + bytes([1 << 2]) + b"\0", STATUS_CORRUPT),     # of no kind
        (b"\5" + bytes([2 << 2 | 3]) + bytes(9), STATUS_TRUNCATED),
        (b"\5" + bytes([1 << 2 | 1]), STATUS_TRUNCATED),
        (b"", STATUS_TRUNCATED),
    ):
        assert decoded_status(b"\1" + data) == status, data
    assert decoded_status(b"") == STATUS_TRUNCATED
