"""The sparse index: sparse enough, grows without moving, finds the right record."""

from libc.stdint cimport INT64_MIN, int64_t, uint64_t

from pulsarx._core.ledger_index cimport *
from pulsarx._core.ledger_index cimport FIND_ENTRY, FIND_MESSAGE, FIND_PUBLISH_TIME


def test_a_record_every_64_kib_or_256_entries():
    cdef LedgerIndex index
    cdef IndexRecord record
    cdef uint64_t entry
    ledger_index_init(&index)
    for entry in range(10000):
        ledger_index_note(&index, 4096 + entry * 100, entry, 3 * entry, <int64_t>entry)
    assert index.count == (10000 + 255) // 256
    ledger_index_record(&index, 3, &record)
    assert (record.entry_id, record.first_message, record.offset) == (768, 3 * 768, 4096 + 76800)
    assert record.publish_max_ms == 767
    ledger_index_free(&index)
    for entry in range(100):
        ledger_index_note(&index, 4096 + entry * 40000, entry, entry, 0)
    assert index.count == 50
    ledger_index_free(&index)


def test_the_record_before_is_found_in_a_large_index():
    cdef LedgerIndex index
    cdef IndexRecord record
    cdef uint64_t entry
    cdef uint64_t count = 200000
    ledger_index_init(&index)
    for entry in range(count):
        ledger_index_note(&index, 4096 + entry * 70000, entry, 2 * entry, <int64_t>(10 * entry))
    assert index.count == count
    for entry in range(0, count, 777):
        assert ledger_index_before(&index, FIND_ENTRY, entry, <uint64_t>1 << 60, &record)
        assert record.entry_id == entry
        assert ledger_index_before(&index, FIND_MESSAGE, 2 * entry + 1, <uint64_t>1 << 60, &record)
        assert record.entry_id == entry
        # The first with this time lies at the record or behind it.
        assert ledger_index_before(&index, FIND_PUBLISH_TIME, 10 * entry, <uint64_t>1 << 60,
                                   &record)
        assert record.entry_id == entry
    assert ledger_index_before(&index, FIND_ENTRY, count, 4096 + 70000, &record)
    assert record.entry_id == 0
    ledger_index_free(&index)


def test_an_empty_index_has_no_record():
    cdef LedgerIndex index
    cdef IndexRecord record
    ledger_index_init(&index)
    assert not ledger_index_before(&index, FIND_ENTRY, 5, 100000, &record)
    ledger_index_free(&index)


def test_an_index_is_bounded_and_time_before_all_others_is_found():
    cdef LedgerIndex index
    cdef IndexRecord record
    ledger_index_init(&index)
    ledger_index_add(&index, 4096, 0, 0, True)
    assert ledger_index_before(&index, FIND_PUBLISH_TIME, <uint64_t>INT64_MIN, 1 << 20, &record)
    index.count = (<uint64_t>64 << INDEX_CHUNKS_MAX) - 64
    ledger_index_add(&index, 1 << 50, 1 << 40, 0, True)
    assert index.count == (<uint64_t>64 << INDEX_CHUNKS_MAX) - 64
    ledger_index_free(&index)
