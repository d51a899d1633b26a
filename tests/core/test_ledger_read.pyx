"""Reading a mapped ledger: bounds, damaged places, and finding across them, with an index of these
entries, of others, and without."""

from ledger_bytes cimport put_entry
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.ledger_index cimport *
from pulsarx._core.ledger_index cimport FIND_ENTRY, FIND_MESSAGE, FIND_PUBLISH_TIME
from pulsarx._core.ledger_read cimport *
from pulsarx._core.status cimport *

cdef enum:
    SEED = 7
    SPAN = 96
    COUNT = 10
    END = 4096 + COUNT * SPAN
    SIZE = 8192

cdef uint8_t base[SIZE]
cdef LedgerRead reader


cdef void fill():
    """Ten entries of three messages each, published at 0, 10, 20 ..."""
    cdef uint64_t number
    memset(base, 0, SIZE)
    for number in range(COUNT):
        put_entry(base, SEED, 4096 + number * SPAN, number, 3 * number, 3, 0, 10 * <int64_t>number)
    reader.base = base
    reader.mapped_size = SIZE
    reader.seed = SEED


cdef object found(int kind, uint64_t value, uint64_t end=END, LedgerIndex* index=NULL):
    """The number of the entry, and what is missing in front of it; or the status."""
    cdef uint64_t offset = 0
    cdef LedgerGap gap
    cdef int status = ledger_read_find(&reader, kind, value, end, index, &offset, &gap)
    cdef int other = ledger_read_find(&reader, kind, value, end, index, &offset, NULL)
    assert status == other
    missing = (gap.entry_id, gap.first_message) if gap.offset else None
    if status == STATUS_OK:
        return (offset - 4096) // SPAN, missing
    return status, missing


def test_bounds():
    cdef EntryFrame frame
    cdef const uint8_t* entry = NULL
    cdef uint64_t behind = 0
    fill()
    for offset, end in ((4088, END), (4100, END), (END + 8, END), (4096, SIZE + 8)):
        assert ledger_read_frame(&reader, offset, end, &frame) == STATUS_OUT_OF_RANGE
    assert ledger_read_frame(&reader, END, END, &frame) == STATUS_END
    assert ledger_read_frame(&reader, END - SPAN, END - SPAN + 56, &frame) == STATUS_CORRUPT
    assert ledger_read_frame(&reader, END - SPAN, END - 8, &frame) == STATUS_CORRUPT
    assert ledger_read_entry(&reader, END, END, &frame, &entry, &behind) == STATUS_END
    for offset, end in ((4088, END), (4100, END), (4096, SIZE + 8)):
        assert ledger_read_pass(&reader, offset, end, &behind) == STATUS_OUT_OF_RANGE
    assert found(FIND_ENTRY, 0, SIZE + 8) == (STATUS_OUT_OF_RANGE, None)
    assert found(FIND_ENTRY, 0, 4096) == found(FIND_ENTRY, 0, 0) == (STATUS_END, None)


def test_an_entry_is_one():
    """Its frame holds in all of them."""
    cdef EntryFrame frame
    cdef const uint8_t* entry = NULL
    cdef uint64_t behind = 0
    for at, value in ((64, 0), (65, 0), (66, 255), (80, 255), (64 + 31, 1)):
        fill()
        base[4096 + <int>at] = value
        assert ledger_read_entry(&reader, 4096, END, &frame, &entry, &behind) == STATUS_CORRUPT
        assert behind == 4096 + SPAN
    fill()
    put_entry(base, SEED, 4096, 0, 0, 1, 0, 5, 4)
    assert ledger_read_entry(&reader, 4096, END, &frame, &entry, &behind) == STATUS_CORRUPT


def test_finding():
    fill()
    for value in range(COUNT):
        assert found(FIND_ENTRY, value) == (value, None)
        assert found(FIND_MESSAGE, 3 * value + 2) == (value, None)
        assert found(FIND_PUBLISH_TIME, 10 * value) == (value, None)
    assert found(FIND_ENTRY, COUNT) == found(FIND_MESSAGE, 3 * COUNT) == (STATUS_END, None)
    assert found(FIND_PUBLISH_TIME, 95) == (STATUS_END, None)


def test_a_damaged_place_in_front_of_the_answer_is_told():
    fill()
    memset(base + 4096 + 3 * SPAN, 255, 2 * SPAN)          # two entries, as one place
    assert found(FIND_ENTRY, 3) == found(FIND_ENTRY, 4) == (5, (3, 9))
    assert found(FIND_ENTRY, 5) == (5, None)               # it cannot have been there
    assert found(FIND_ENTRY, 6) == (6, None)
    assert found(FIND_MESSAGE, 9) == (5, (3, 9))
    assert found(FIND_MESSAGE, 15) == (5, None)
    assert found(FIND_PUBLISH_TIME, 50) == (5, (3, 9))
    memset(base + 4096 + 9 * SPAN, 255, SPAN)
    assert found(FIND_ENTRY, 9) == (STATUS_END, (9, 27))


def test_an_index_is_believed_where_it_is_of_these_entries():
    cdef LedgerIndex index
    cdef uint64_t number
    fill()
    ledger_index_init(&index)
    for number in range(COUNT):
        ledger_index_add(&index, 4096 + number * SPAN, number, 3 * number, True)
    # What lies in front is not looked at.
    memset(base + 4096, 255, 2 * SPAN)
    assert found(FIND_ENTRY, 4, END, &index) == (4, None)
    assert found(FIND_MESSAGE, 14, END, &index) == (4, None)
    ledger_index_free(&index)
    fill()
    for shift_entry, shift_message in ((1, 0), (0, 1), (1, 3)):
        ledger_index_init(&index)
        ledger_index_add(&index, 4096 + 2 * SPAN, 2 + shift_entry, 6 + shift_message, True)
        assert found(FIND_ENTRY, 4, END, &index) == (4, None)
        ledger_index_free(&index)
    ledger_index_init(&index)
    ledger_index_add(&index, 4096 + 2 * SPAN + 4, 2, 6, True)        # where no frame can begin
    assert found(FIND_ENTRY, 4, END, &index) == (4, None)
    ledger_index_free(&index)
    ledger_index_init(&index)
    ledger_index_add(&index, 4096 + 3 * SPAN, 3, 9, True)
    assert found(FIND_ENTRY, 1, END, &index) == (1, None)            # in front of the first record
    memset(base + 4096 + 3 * SPAN, 255, SPAN)                        # the place itself is damaged
    assert found(FIND_ENTRY, 3, END, &index) == (4, (3, 9))
    ledger_index_free(&index)


def test_an_index_by_time_starts_where_nothing_later_lies_in_front():
    cdef LedgerIndex index
    cdef IndexRecord record
    ledger_index_init(&index)
    ledger_index_add(&index, 4096, 0, 0, True)
    index.publish_max_ms = 50
    ledger_index_add(&index, 5000, 1, 1, False)           # near the last one: no record
    ledger_index_add(&index, 4096 + INDEX_STEP_SIZE, 2, 2, False)
    ledger_index_add(&index, 4100 + INDEX_STEP_SIZE, 2 + INDEX_STEP_ENTRIES, 3, False)
    assert index.count == 3
    for value, offset in ((50, 4096), (51, 4100 + INDEX_STEP_SIZE)):
        assert ledger_index_before(&index, FIND_PUBLISH_TIME, value, 1 << 20, &record)
        assert record.offset == <uint64_t>offset
    assert not ledger_index_before(&index, FIND_ENTRY, 0, 4096, &record)
    ledger_index_free(&index)
