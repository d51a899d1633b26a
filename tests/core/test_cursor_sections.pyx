"""Redelivery counts and due times of a cursor: what is written is read, and nothing else is."""

import random

from seeds import seed_of, seeds

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.cursor_record cimport (
    CURSOR_MESSAGE_END, CURSOR_REDELIVERED, CURSOR_RUN, CURSOR_SECTION_DUE,
    CURSOR_SECTION_REDELIVERY, CursorHeader, CursorRecord, CursorTail, cursor_tail_append,
    cursor_tail_end, cursor_tail_read, cursor_tail_redelivered, cursor_tail_start,
)
from pulsarx._core.cursor_sections cimport (
    RestoredMessages, SectionWriter, redeliveries_decode, restored_messages_free, section_check,
    section_decode, section_writer_add, section_writer_end, section_writer_free,
    section_writer_start,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_FOLD, STATUS_OK, STATUS_TRUNCATED

cdef uint64_t room[2 * 64]


cdef void start(CursorTail* tail, uint64_t slot_count):
    cdef CursorHeader header
    memset(&header, 0, sizeof(header))
    header.generation = 1
    header.base_ledger_id = 10
    memset(room, 0, sizeof(room))
    cursor_tail_start(tail, &header, room, slot_count)


cdef bytes section(uint32_t tag, list messages):
    cdef SectionWriter writer
    section_writer_start(&writer, tag)
    for ledger_id, message, value in messages:
        assert section_writer_add(&writer, ledger_id, message, value) == STATUS_OK
    assert section_writer_end(&writer) == STATUS_OK
    written = (<char*>writer.data)[:writer.size] if writer.size else b""
    section_writer_free(&writer)
    return written


cdef list listed(RestoredMessages* found):
    return [(found.messages[at].ledger_id, found.messages[at].message, found.messages[at].value)
            for at in range(found.count)]


cdef object decoded(uint32_t tag, bytes data):
    """The messages, or the status, of data behind which nothing may be read."""
    cdef RestoredMessages found = RestoredMessages(NULL, 0, 0)
    cdef uint8_t* copy = guarded_bytes(data)
    cdef int status = section_decode(tag, copy, len(data), &found)
    assert section_check(tag, copy, len(data)) == status
    free_guarded_bytes(copy, data)
    messages = listed(&found)
    restored_messages_free(&found)
    return status or messages


cdef list overlaid(bytes data, CursorTail* tail):
    cdef RestoredMessages found = RestoredMessages(NULL, 0, 0)
    cdef uint8_t* copy = guarded_bytes(data)
    status = redeliveries_decode(copy, len(data), tail, &found)
    free_guarded_bytes(copy, data)
    assert status == STATUS_OK
    messages = listed(&found)
    restored_messages_free(&found)
    return messages


def test_golden_bytes():
    counts = [(7, 0, 1), (7, 1, 300), (7, 130, 2), (9, 4, 65535)]
    assert section(CURSOR_SECTION_REDELIVERY, counts) == bytes.fromhex(
        "07 0101 01ac02 810102 00" "02 05ffff03 00")
    assert decoded(CURSOR_SECTION_REDELIVERY, section(CURSOR_SECTION_REDELIVERY, counts)) == counts
    due = [(7, 3, 1_700_000_000_000), (7, 4, 1_700_000_000_064), (8, 0, 1_700_000_000_000)]
    assert section(CURSOR_SECTION_DUE, due) == bytes.fromhex(
        "07 04 80a0abfef962 01 8001 00" "01 01 7f 00")
    assert decoded(CURSOR_SECTION_DUE, section(CURSOR_SECTION_DUE, due)) == due
    assert section(CURSOR_SECTION_DUE, []) == b""
    assert decoded(CURSOR_SECTION_DUE, b"") == []


def test_the_ends_of_all_ranges():
    end = <uint64_t>CURSOR_MESSAGE_END
    messages = [(0, 0, 0), (0, end - 1, 2**64 - 1), (2**64 - 1, 0, 2**63), (2**64 - 1, end - 1, 1)]
    assert decoded(CURSOR_SECTION_DUE, section(CURSOR_SECTION_DUE, messages)) == messages
    assert decoded(CURSOR_SECTION_REDELIVERY, section(CURSOR_SECTION_REDELIVERY, [(0, 0, 65536)])
                   ) == [(0, 0, 65535)]


def test_random_sections():
    chance = random.Random(seed_of(11))
    for _ in range(50):
        for tag, top in ((CURSOR_SECTION_REDELIVERY, 65535), (CURSOR_SECTION_DUE, 2**64 - 1)):
            places = {(chance.randrange(4), chance.randrange(chance.choice((9, 2**37))))
                      for _ in range(chance.randrange(200))}
            messages = [(*place, chance.randint(1, top)) for place in sorted(places)]
            assert decoded(tag, section(tag, messages)) == messages


def test_damage_is_noticed_or_read_within_bounds():
    chance = random.Random(seed_of(12))
    for tag in (CURSOR_SECTION_REDELIVERY, CURSOR_SECTION_DUE):
        whole = section(tag, [(3, 5 * at, 7 + at) for at in range(40)] + [(9, 1, 1)])
        for size in range(1, len(whole)):
            assert decoded(tag, whole[:size]) in (STATUS_TRUNCATED, STATUS_CORRUPT) or (
                whole[size - 1] == 0)
        for _ in range(3000):
            damaged = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            found = decoded(tag, bytes(damaged))
            if isinstance(found, list):
                places = [message[:2] for message in found]
                assert places == sorted(set(places))
                assert all(message[1] < <uint64_t>CURSOR_MESSAGE_END for message in found)


def test_what_is_never_written_is_refused():
    many = b"\xff" * 9 + b"\x01"
    for data in (b"\x05\x00", b"\x05\x01\x01\x00\x00\x01\x01\x00", b"\x05\x01\x00\x00",
                 b"\x05\x01\x80\x80\x04\x00", b"\x05" + many + b"\x01\x00",
                 b"\x05\x01\x01\x00" + many + b"\x01\x01\x00", b"\x05" + b"\xff" * 11):
        assert decoded(CURSOR_SECTION_REDELIVERY, data) == STATUS_CORRUPT, data
    for data in (b"\x05", b"\x05\x01", b"\x05\x01\x01", b"\x05\x01\x01\x01"):
        assert decoded(CURSOR_SECTION_REDELIVERY, data) == STATUS_TRUNCATED, data


def test_redeliveries_in_order_share_a_record_and_acknowledgements_between_do_not_matter():
    cdef CursorTail tail
    cdef CursorRecord record
    start(&tail, 8)
    for at in range(70_000):
        assert cursor_tail_redelivered(&tail, 12, at, 1) == STATUS_OK
        assert cursor_tail_append(&tail, CURSOR_RUN, 11, at, 1) == STATUS_OK
    assert cursor_tail_redelivered(&tail, 12, 70_000, 2) == STATUS_OK
    assert tail.used == 4
    found = []
    for slot in range(4):
        assert cursor_tail_read(&tail, slot, &record) == STATUS_OK
        found.append((record.kind, record.ledger_id, record.first, record.count,
                      record.redelivery_count))
    assert found == [(CURSOR_REDELIVERED, 12, 0, 65536, 1), (CURSOR_RUN, 11, 0, 70_000, 0),
                     (CURSOR_REDELIVERED, 12, 65536, 4464, 1),
                     (CURSOR_REDELIVERED, 12, 70_000, 1, 2)]


def test_golden_bytes_of_a_record():
    cdef CursorTail tail
    start(&tail, 8)
    cursor_tail_redelivered(&tail, 12, 300, 7)
    cursor_tail_redelivered(&tail, 12, 301, 7)
    assert room[0] == 5 << 61 | 2 << 37 | 300
    assert room[1] & 0xffffffff == 1 << 16 | 7
    assert room[1] >> 32 == 0xda8276e4


def test_a_full_or_closed_tail_asks_for_a_fold():
    cdef CursorTail tail
    start(&tail, 1)
    assert cursor_tail_redelivered(&tail, 10, 5, 1) == STATUS_OK
    assert cursor_tail_redelivered(&tail, 10, 6, 1) == STATUS_OK
    assert cursor_tail_redelivered(&tail, 10, 8, 1) == STATUS_FOLD
    assert cursor_tail_redelivered(&tail, 9, 7, 1) == STATUS_FOLD
    cursor_tail_end(&tail)
    assert cursor_tail_redelivered(&tail, 10, 7, 1) == STATUS_FOLD


def test_no_single_flip_in_a_record_is_read():
    cdef CursorTail tail
    cdef uint64_t kept0, kept1
    start(&tail, 8)
    cursor_tail_redelivered(&tail, 12, 300, 7)
    kept0, kept1 = room[0], room[1]
    for bit in range(128):
        room[0], room[1] = kept0, kept1
        room[bit // 64] ^= <uint64_t>1 << bit % 64
        assert overlaid(b"", &tail) == []


def test_the_latest_record_wins_over_earlier_ones_and_the_section():
    """Beside a dict."""
    cdef CursorTail tail
    for seed in seeds(300):
        chance = random.Random(seed)
        start(&tail, 64)
        model = {(chance.randrange(10, 13), chance.randrange(60)): chance.randint(1, 9)
                 for _ in range(chance.randrange(40))}
        kept = section(CURSOR_SECTION_REDELIVERY,
                       sorted((*place, count) for place, count in model.items()))
        while True:
            ledger_id, first = chance.randrange(10, 13), chance.randrange(60)
            count = chance.randint(1, 4)
            status = STATUS_OK
            for message in range(first, first + chance.choice((1, 1, 2, 30))):
                status = cursor_tail_redelivered(&tail, ledger_id, message, count)
                if status:
                    break
                model[ledger_id, message] = count
            if status or chance.random() < 0.02:
                break
        assert overlaid(kept, &tail) == sorted((*place, count) for place, count in model.items())


def test_counts_of_a_damaged_section_are_not_taken():
    """With a tail and without one."""
    cdef RestoredMessages found = RestoredMessages(NULL, 0, 0)
    cdef CursorTail tail
    start(&tail, 64)
    assert cursor_tail_redelivered(&tail, 12, 3, 5) == STATUS_OK
    for data in (b"\x80", b"\x07", b"\x07\x01", b"\x07\x01\x01\x80", b"\x07\x01\x01\x00\x80"):
        assert redeliveries_decode(data, len(data), NULL, &found) == STATUS_TRUNCATED, data
        assert redeliveries_decode(data, len(data), &tail, &found) == STATUS_TRUNCATED, data
        assert decoded(CURSOR_SECTION_REDELIVERY, data) == STATUS_TRUNCATED
    restored_messages_free(&found)
