"""Entries of compacted ledgers: what is written is read, and a place that cannot be is refused."""

from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from pulsarx._core.compacted_entry cimport *
from pulsarx._core.limits cimport LEDGER_MESSAGES_END
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK


def test_what_is_written_is_read():
    cdef CompactedPlace place, found
    cdef uint8_t data[60]
    last = <uint64_t>LEDGER_MESSAGES_END - 3
    for ledger_id, first_message, count, status in (
        (7, 5, 3, STATUS_OK), (7, last, 3, STATUS_OK), (7, last, 4, STATUS_CORRUPT),
        (0, 5, 3, STATUS_CORRUPT), (7, 5, 0, STATUS_CORRUPT),
    ):
        memset(&place, 0, sizeof(place))
        memset(&found, 0, sizeof(found))
        place.ledger_id, place.entry_id = ledger_id, 4
        place.first_message, place.message_count = first_message, count
        place.broker_time_ms = 0xFEDC12345678
        memset(data, 1, 60)
        compacted_entry_encode(&place, data, 60)
        assert data[0] == 0x0E and data[1] == 1 and data[40] == 1
        assert compacted_entry_decode(data, 60, &found) == status
        if status == STATUS_OK:
            assert (found.ledger_id, found.entry_id) == (7, 4)
            assert (found.first_message, found.message_count) == (first_message, count)
            assert found.broker_time_ms == 0xFEDC12345678
    assert compacted_entry_decode(data, 49, &found) == STATUS_CORRUPT
