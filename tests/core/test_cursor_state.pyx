"""Acknowledgements of all ledgers of a topic, their snapshot, and snapshots that are none."""

from guarded_bytes cimport free_guarded_bytes, guarded_bytes
from libc.stdint cimport uint8_t, uint64_t
from libc.string cimport memset

from pulsarx._core.ack_bits cimport *
from pulsarx._core.cursor_record cimport *
from pulsarx._core.cursor_state cimport *
from pulsarx._core.status cimport *


cdef int apply(CursorState* state, kind, ledger_id, first, count):
    cdef CursorRecord record
    memset(&record, 0, sizeof(record))
    record.kind = kind
    record.ledger_id, record.first, record.count = ledger_id, first, count
    return cursor_state_apply(state, &record)


cdef bytes encoded(CursorState* state):
    data = bytearray(cursor_state_size(state))
    cursor_state_encode(state, data, len(data))
    return bytes(data)


cdef object decoded(bytes data):
    """Each ledger with what is acknowledged, or the status."""
    cdef CursorState state
    cdef uint8_t* copy = guarded_bytes(data)
    cdef int status
    cursor_state_init(&state)
    status = cursor_state_decode(&state, copy, len(data))
    free_guarded_bytes(copy, data)
    found = [(state.ledgers[at].ledger_id, ack_bits_count(&state.ledgers[at].bits))
             for at in range(state.ledger_count)]
    cursor_state_free(&state)
    return status or found


def test_a_snapshot_holds_what_records_said():
    cdef CursorState state
    cursor_state_init(&state)
    assert apply(&state, CURSOR_RUN, 5, 0, 10) == STATUS_OK
    assert apply(&state, CURSOR_RUN, 5, 3, 4) == STATUS_DUPLICATE
    assert apply(&state, CURSOR_MASK, 7, 64, 0b1011) == STATUS_OK
    assert apply(&state, CURSOR_REDELIVERED, 9, 64, 1) == STATUS_OK
    assert apply(&state, CURSOR_RUN, 6, CURSOR_MESSAGE_END, 1) == STATUS_OUT_OF_RANGE
    assert apply(&state, CURSOR_MASK, 6, <uint64_t>CURSOR_MESSAGE_END - 1, 2) == STATUS_OUT_OF_RANGE
    assert decoded(encoded(&state)) == [(5, 10), (6, 0), (7, 3)]
    assert apply(&state, CURSOR_THROUGH, 7, 0, 66) == STATUS_OK
    assert decoded(encoded(&state)) == [(7, 67)]
    assert apply(&state, CURSOR_RUN, 6, 1, 1) == STATUS_DUPLICATE
    cursor_state_free(&state)


def test_snapshots_that_are_none():
    cdef CursorState state
    cursor_state_init(&state)
    apply(&state, CURSOR_RUN, 5, 70, 10)
    apply(&state, CURSOR_RUN, 300, 70, 10)
    data = encoded(&state)
    cursor_state_free(&state)
    assert decoded(data) == [(5, 10), (300, 10)]
    for size in range(len(data)):
        assert decoded(data[:size]) == STATUS_TRUNCATED, size
    assert decoded(data + b"\0") == STATUS_CORRUPT
    assert decoded(b"\x80" * 11) == STATUS_CORRUPT
    # A ledger that is said twice: the last one holds.
    assert decoded(bytes([0, 2, 5, 3, 0, 0, 4, 0])) == [(5, 4)]


def test_ledgers_of_which_nothing_is_acknowledged_are_forgotten():
    cdef CursorState state
    cursor_state_init(&state)
    cursor_state_forget_unused(&state, 0)
    for ledger_id in range(1, 6):
        assert cursor_state_add(&state, ledger_id) != NULL
    assert apply(&state, CURSOR_RUN, 3, 1, 1) == STATUS_OK
    cursor_state_forget_unused(&state, 1)
    assert state.ledger_count == 3
    cursor_state_forget_unused(&state, 3)
    assert state.ledger_count == 3
    cursor_state_forget(&state, 3)
    assert state.ledger_count == 1 and cursor_state_base(&state) == 3
    cursor_state_forget(&state, 2)
    assert state.acknowledged_below == 3
    cursor_state_free(&state)


def test_a_seal_cuts_what_lies_behind_the_end():
    cdef CursorState state
    cdef LedgerAcks* ledger
    cursor_state_init(&state)
    # Three words of the bitmap, of which the seal leaves one, and a clear one behind.
    apply(&state, CURSOR_RUN, 5, 10, 1)
    apply(&state, CURSOR_RUN, 5, 200, 70)
    ledger = cursor_state_find(&state, 5)
    cursor_state_seal(&state, ledger, 100)
    assert decoded(encoded(&state)) == [(5, 1)]
    assert not ack_bits_has(&ledger.bits, 200) and ack_bits_end(&ledger.bits) > 100
    ack_bits_clamp(&ledger.bits, 11)
    assert ack_bits_count(&ledger.bits) == 1
    ack_bits_clamp(&ledger.bits, 1000)            # behind the bitmap: nothing to cut
    assert ack_bits_count(&ledger.bits) == 1
    ack_bits_clamp(&ledger.bits, 10)              # the last one goes, and the bitmap with it
    assert ack_bits_count(&ledger.bits) == 0 and ack_bits_end(&ledger.bits) == 0
    ack_bits_clamp(&ledger.bits, 5)               # empty
    assert ack_bits_group(&ledger.bits, 7) == 0
    ack_bits_clamp(&ledger.bits, 0)
    # A ledger in front of what is acknowledged is wholly acknowledged, once its end is known.
    apply(&state, CURSOR_BEFORE, 9, 0, 1)
    ledger = cursor_state_find(&state, 5)
    cursor_state_seal(&state, ledger, 50)
    assert ack_bits_count(&ledger.bits) == 50
    cursor_state_free(&state)
