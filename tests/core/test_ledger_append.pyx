"""Ledger files straight through the core: append, flush, find, seal; from several native-speed
threads."""

import os
import threading

import pytest

from failing_calls cimport EIO, ENOSPC, calls_succeed, memory_fails
from libc.stdint cimport UINT64_MAX, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.entry_frame cimport (
    ENTRY_BATCH, ENTRY_CHUNK, ENTRY_COMPRESSED, ENTRY_MARKER, ENTRY_TRANSACTION, EntryFrame,
    entry_frame_decode, entry_frame_span,
)
from pulsarx._core.file_faults cimport *
from pulsarx._core.file_ops cimport *
from pulsarx._core.ledger_append cimport *
from pulsarx._core.ledger_flush cimport *
from pulsarx._core.ledger_prepare cimport LedgerPreparer
from pulsarx._core.ledger_state cimport *
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport LedgerIndex
from pulsarx._core.ledger_name cimport *
from pulsarx._core.ledger_read cimport *
from pulsarx._core.ledger_recover cimport *
from pulsarx._core.limits cimport LEDGER_MESSAGES_END
from pulsarx._core.published_end cimport (
    PUBLISHED_ENDED, PUBLISHED_OPEN, PUBLISHED_SEALED, PublishedEnd,
)
from pulsarx._core.status cimport *
from pulsarx._core.wait_event cimport WaitEvent

cdef PublishedEnd SLOT
cdef LedgerAppend LEDGER
cdef const char* PATH = NULL         # a file in memory
cdef WaitEvent* TOPIC = NULL


cdef int create(bint sync) noexcept nogil:
    cdef LedgerSettings settings
    memset(&settings, 0, sizeof(settings))
    memset(&SLOT, 0, sizeof(SLOT))
    settings.path = PATH
    settings.topic_event = TOPIC
    settings.uuid[3] = 17
    settings.entry_count_max = 1000000
    settings.size_max = 1 << 28
    settings.publish_on_flush = sync
    settings.published = &SLOT
    return ledger_append_create(&LEDGER, &settings)


cdef int append(uint32_t size, uint8_t fill, uint64_t* entry_id,
                uint32_t flags=0) noexcept nogil:
    """One entry of size bytes that are all `fill`; the room around it is full of other bytes
    before."""
    cdef EntryFrame frame
    cdef uint64_t offset = 0
    cdef uint32_t checksum
    cdef uint8_t* room = <uint8_t*>malloc(64 + size + 8)
    cdef int status
    memset(room, 0xAA, 64 + size + 8)
    memset(room + 64, fill, size)
    room[64] = 0x0E
    room[65] = 0x01
    checksum = crc32c(0, room + 70, size - 6)
    room[66] = checksum >> 24
    room[67] = checksum >> 16
    room[68] = checksum >> 8
    room[69] = checksum
    memset(&frame, 0, sizeof(frame))
    frame.entry_size = size
    frame.message_count = 3
    frame.publish_time_ms = 5
    frame.flags = flags
    status = ledger_append_entry(&LEDGER, &frame, room + 64, &offset)
    entry_id[0] = frame.entry_id
    free(room)
    return status


def append_many(count, flush):
    cdef uint64_t entry_id = 0
    cdef int turn
    cdef int turns = count
    cdef bint flushed = flush
    with nogil:
        for turn in range(turns):
            if append(40 + turn % 300, <uint8_t>(turn % 251), &entry_id) != STATUS_OK:
                with gil:
                    raise AssertionError("append")
            if flushed and ledger_append_flush(&LEDGER, entry_id + 1, -1) != STATUS_OK:
                with gil:
                    raise AssertionError("flush")


def run_threads(count, flush):
    threads = [threading.Thread(target=append_many, args=(count, flush)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


cdef uint64_t read_all(uint64_t end, uint64_t* messages) noexcept nogil:
    """How many entries there are, each verified, with ids and message counts in order; 0 when one
    is not."""
    cdef LedgerRead reader
    cdef EntryFrame frame
    cdef const uint8_t* entry = NULL
    cdef uint8_t* base = NULL
    cdef uint64_t offset = 4096
    cdef uint64_t count = 0
    if file_map(LEDGER.fd, 0, 1 << 28, False, &base):
        return 0
    memset(&reader, 0, sizeof(reader))
    reader.base = base
    reader.mapped_size = 1 << 28
    reader.seed = LEDGER.seed
    messages[0] = 0
    while ledger_read_entry(&reader, offset, end, &frame, &entry, &offset) == STATUS_OK:
        if frame.entry_id != count or frame.first_message != messages[0]:
            return 0
        count += 1
        messages[0] += frame.message_count
    file_unmap(base, 1 << 28)
    return count if offset == end else 0


def test_threads_append_and_every_entry_is_whole():
    cdef uint64_t messages = 0
    cdef LedgerFooter footer
    assert create(False) == STATUS_OK
    run_threads(5000, False)
    assert SLOT.entry_count == 20000 and SLOT.message_count == 60000 and SLOT.end == LEDGER.end
    assert read_all(LEDGER.end, &messages) == 20000 and messages == 60000
    assert ledger_append_seal(&LEDGER, True, &footer) == STATUS_OK
    assert footer.entry_count == 20000 and SLOT.state == PUBLISHED_SEALED
    assert ledger_append_seal(&LEDGER, True, &footer) == STATUS_CLOSED
    assert ledger_append_flush(&LEDGER, 20000, -1) == STATUS_OK
    assert ledger_append_flush(&LEDGER, 20001, -1) == STATUS_OUT_OF_RANGE
    ledger_append_close(&LEDGER)
    ledger_append_close(&LEDGER)
    assert append(40, 1, &messages) == STATUS_CLOSED
    ledger_append_free(&LEDGER)


def test_threads_flush_and_each_finds_its_own_durable():
    cdef uint64_t messages = 0
    assert create(True) == STATUS_OK
    run_threads(1000, True)
    assert SLOT.entry_count == 4000 and LEDGER.durable_count == 4000
    assert LEDGER.durable_messages == 12000 and LEDGER.durable_end == LEDGER.end
    assert read_all(SLOT.end, &messages) == 4000
    ledger_append_close(&LEDGER)
    assert ledger_append_flush(&LEDGER, 4001, -1) == STATUS_OUT_OF_RANGE
    ledger_append_free(&LEDGER)


def test_refused_entries_leave_nothing():
    cdef uint64_t entry_id = 0
    cdef EntryFrame frame
    cdef uint8_t room[200]
    cdef uint64_t offset = 0
    assert create(False) == STATUS_OK
    LEDGER.entry_count_max = 1
    assert append(40, 1, &entry_id) == STATUS_OK
    assert append(40, 1, &entry_id) == STATUS_LEDGER_FULL
    memset(&frame, 0, sizeof(frame))
    memset(room, 0, sizeof(room))
    frame.entry_size = 100
    frame.message_count = 1
    status = ledger_append_entry(&LEDGER, &frame, room + 64, &offset)
    assert status == STATUS_OUT_OF_RANGE
    frame.entry_size = 2000000000
    assert ledger_append_entry(&LEDGER, &frame, room + 64, &offset) == STATUS_TOO_LARGE
    assert LEDGER.entry_count == 1
    ledger_append_close(&LEDGER)
    ledger_append_free(&LEDGER)


cdef int append_group(uint32_t count, EntryFrame* frames, uint64_t* offset) noexcept nogil:
    """Entries of 40 bytes and more, of three messages each."""
    cdef uint8_t room[4096]
    cdef uint8_t* entry
    cdef uint64_t at = 0
    cdef uint32_t number
    cdef uint32_t checksum
    memset(room, 0, sizeof(room))
    memset(frames, 0, count * sizeof(EntryFrame))
    for number in range(count):
        frames[number].entry_size = 40 + number
        frames[number].message_count = 3
        frames[number].publish_time_ms = 5
        entry = room + at + 64
        memset(entry, number, 40 + number)
        entry[0] = 0x0E
        entry[1] = 0x01
        checksum = crc32c(0, entry + 6, 34 + number)
        entry[2] = checksum >> 24
        entry[3] = checksum >> 16
        entry[4] = checksum >> 8
        entry[5] = checksum
        at += entry_frame_span(40 + number)
    return ledger_append_group(&LEDGER, frames, count, room, at, offset)


@pytest.mark.parametrize("sync", [False, True])
def test_a_group_is_stored_like_its_entries_one_by_one(sync):
    cdef EntryFrame frames[8]
    cdef uint64_t offset = 0
    cdef uint64_t entry_id = 0
    cdef uint64_t messages = 0
    assert create(sync) == STATUS_OK
    assert ledger_append_prepare(&LEDGER, 1 << 16) == STATUS_OK
    assert append(40, 1, &entry_id) == STATUS_OK
    assert append_group(8, frames, &offset) == STATUS_OK
    assert [frames[at].entry_id for at in range(8)] == [*range(1, 9)]
    assert [frames[at].first_message for at in range(8)] == [*range(3, 27, 3)]
    assert append(40, 1, &entry_id) == STATUS_OK
    assert entry_id == 9
    if sync:
        assert SLOT.entry_count == 0
        assert ledger_append_flush(&LEDGER, 10, -1) == STATUS_OK
    assert (SLOT.entry_count, SLOT.message_count) == (10, 30)
    assert read_all(LEDGER.end, &messages) == 10
    assert messages == 30
    give_up()


def test_a_group_that_does_not_fit_is_not_begun():
    cdef EntryFrame frames[8]
    cdef uint64_t offset = 0
    cdef uint64_t end
    assert create(False) == STATUS_OK
    assert ledger_append_prepare(&LEDGER, 1 << 16) == STATUS_OK
    end = LEDGER.end
    LEDGER.entry_count_max = 7
    assert append_group(8, frames, &offset) == STATUS_LEDGER_FULL
    assert append_group(7, frames, &offset) == STATUS_OK
    assert LEDGER.end > end
    end = LEDGER.end
    LEDGER.entry_count_max = 100
    LEDGER.size_max = end + 100
    assert append_group(1, frames, &offset) == STATUS_LEDGER_FULL
    LEDGER.size_max = 1 << 28
    LEDGER.prepared_end = end + 100
    assert append_group(1, frames, &offset) == STATUS_LEDGER_FULL
    LEDGER.message_count = LEDGER_MESSAGES_END - 4
    LEDGER.prepared_end = end + (1 << 15)
    assert append_group(2, frames, &offset) == STATUS_LEDGER_FULL
    assert (LEDGER.end, LEDGER.entry_count) == (end, 7)
    for state, status in (
        (LEDGER_FENCED, STATUS_IO), (LEDGER_POISONED, STATUS_POISONED),
        (LEDGER_CLOSED, STATUS_CLOSED),
    ):
        LEDGER.state = state
        assert append_group(1, frames, &offset) == status
    LEDGER.state = LEDGER_OPEN
    give_up()


def test_a_group_with_what_is_no_entry_is_refused():
    cdef EntryFrame frame
    cdef uint8_t room[200]
    cdef uint64_t offset = 0
    assert create(False) == STATUS_OK
    memset(room, 0, sizeof(room))
    memset(&frame, 0, sizeof(frame))
    frame.entry_size = 40
    frame.message_count = 1
    status = ledger_append_group(&LEDGER, &frame, 1, room, 104, &offset)
    assert status == STATUS_OUT_OF_RANGE
    room[64] = 0x0E
    status = ledger_append_group(&LEDGER, &frame, 1, room, 104, &offset)
    assert status == STATUS_OUT_OF_RANGE
    room[65] = 0x01
    frame.message_count = 0
    status = ledger_append_group(&LEDGER, &frame, 1, room, 104, &offset)
    assert status == STATUS_OUT_OF_RANGE
    frame.message_count = 40
    status = ledger_append_group(&LEDGER, &frame, 1, room, 104, &offset)
    assert status == STATUS_OUT_OF_RANGE
    frame.message_count = 1
    frame.entry_size = 5
    status = ledger_append_group(&LEDGER, &frame, 1, room, 72, &offset)
    assert status == STATUS_OUT_OF_RANGE
    assert LEDGER.entry_count == 0
    give_up()


@pytest.mark.parametrize("kind", [FAULT_ERROR, FAULT_LATE_ERROR, FAULT_SHORT])
def test_of_a_group_whose_write_failed_nothing_is_found(kind):
    cdef EntryFrame frames[8]
    cdef uint64_t offset = 0
    cdef uint64_t end
    cdef uint64_t messages = 0
    cdef size_t done = 0
    cdef uint8_t found[64]
    cdef EntryFrame frame
    assert create(False) == STATUS_OK
    assert ledger_append_prepare(&LEDGER, 1 << 16) == STATUS_OK
    assert append_group(3, frames, &offset) == STATUS_OK
    end = LEDGER.end
    file_faults_install()
    assert file_faults_add(FILE_OP_WRITE, kind, 1, False, EIO) == STATUS_OK
    assert append_group(8, frames, &offset) == STATUS_IO
    file_faults_remove()
    assert (LEDGER.state, LEDGER.end, LEDGER.entry_count) == (LEDGER_FENCED, end, 3)
    assert read_all(end, &messages) == 3
    for number in range(8):
        assert file_read(LEDGER.fd, found, 64, end, &done) == 0 and done == 64
        assert entry_frame_decode(found, LEDGER.seed, end, &frame) == STATUS_END
        end += entry_frame_span(40 + number)
    give_up()


def test_a_group_that_cannot_be_cleared_may_lie_there():
    cdef EntryFrame frames[8]
    cdef uint64_t offset = 0
    assert create(False) == STATUS_OK
    assert ledger_append_prepare(&LEDGER, 1 << 16) == STATUS_OK
    file_faults_install()
    assert file_faults_add(FILE_OP_WRITE, FAULT_LATE_ERROR, 1, False, EIO) == STATUS_OK
    assert file_faults_add(FILE_OP_WRITE, FAULT_ERROR, 2, False, EIO) == STATUS_OK
    assert append_group(8, frames, &offset) == STATUS_TORN
    file_faults_remove()
    assert (LEDGER.state, LEDGER.entry_count) == (LEDGER_FENCED, 0)
    give_up()


def test_a_header_block_survives_losing_either_copy():
    check_header_block(False)


def test_a_header_block_with_a_name_survives_losing_any_part():
    check_header_block(True)


cdef int check_header_block(bint named) except -1:
    cdef LedgerHeader header, found
    cdef LedgerName name, name_found
    cdef uint8_t block[4096]
    cdef int bit
    memset(&header, 0, sizeof(header))
    header.uuid[5] = 9
    header.created_ms = 12345
    header.flags = LEDGER_SYNC
    ledger_header_encode(&header, block)
    if named:
        memset(&name, 0, sizeof(name))
        name.uuid[5] = 9
        name.name, name.name_size = <const uint8_t*>b"persistent://a/b/c", 18
        ledger_name_encode(&name, block + LEDGER_NAME_OFFSET)
    assert ledger_header_decode(block, 4096, &found) == STATUS_OK and not found.damaged
    for bit in range(4096 * 8):
        block[bit // 8] ^= 1 << (bit % 8)
        status = ledger_name_decode(block + LEDGER_NAME_OFFSET, &name_found)
        if bit >= LEDGER_NAME_OFFSET * 8:
            assert status == STATUS_CORRUPT, bit
        else:
            assert status == (<int>STATUS_OK if named else <int>STATUS_UNBORN), bit
        assert ledger_header_decode(block, 4096, &found) == STATUS_OK, bit
        assert found.damaged and found.uuid[5] == 9 and found.created_ms == 12345, bit
        assert not found.sealed and not found.cut
        block[bit // 8] ^= 1 << (bit % 8)


cdef void give_up():
    ledger_append_close(&LEDGER)
    ledger_append_free(&LEDGER)


def test_a_ledger_for_which_there_is_no_memory_leaves_nothing(tmp_path):
    global PATH
    path = bytes(tmp_path / "ledger")
    for in_memory in (True, False):
        PATH = NULL if in_memory else <const char*>path
        for name in (b"malloc", b"calloc"):
            memory_fails(name, 1)
            assert create(False) == STATUS_NO_MEMORY
            calls_succeed()
            assert LEDGER.state == LEDGER_CLOSED and LEDGER.fd == -1
            ledger_append_close(&LEDGER)
            ledger_append_free(&LEDGER)
            assert not (tmp_path / "ledger").exists()
    PATH = NULL
    assert create(False) == STATUS_OK
    give_up()


def test_a_ledger_in_the_folder_of_the_process(tmp_path, monkeypatch):
    global PATH
    monkeypatch.chdir(tmp_path)
    PATH = b"ledger"
    assert create(True) == STATUS_OK and (tmp_path / "ledger").exists()
    give_up()
    assert create(True) == STATUS_IO             # it must not exist
    PATH = NULL


def test_a_ledger_has_no_more_messages_than_ordinals():
    cdef uint64_t entry_id = 0
    assert create(False) == STATUS_OK
    LEDGER.message_count = <uint64_t>LEDGER_MESSAGES_END - 2
    assert append(40, 1, &entry_id) == STATUS_LEDGER_FULL
    LEDGER.message_count -= 1
    assert append(40, 1, &entry_id) == STATUS_OK
    give_up()


def test_what_is_no_entry_is_refused():
    cdef EntryFrame frame
    cdef uint8_t room[200]
    cdef uint64_t offset = 0
    assert create(False) == STATUS_OK
    for first, second, messages, size, status in (
        (0x0E, 1, 1, 40, STATUS_OK), (0x0E, 2, 1, 40, STATUS_OUT_OF_RANGE),
        (0x0F, 1, 1, 40, STATUS_OUT_OF_RANGE), (0x0E, 1, 0, 40, STATUS_OUT_OF_RANGE),
        (0x0E, 1, 1, 5, STATUS_OUT_OF_RANGE), (0x0E, 1, 7, 40, STATUS_OUT_OF_RANGE),
    ):
        memset(&frame, 0, sizeof(frame))
        memset(room, 0, sizeof(room))
        room[64], room[65] = first, second
        frame.entry_size, frame.message_count = size, messages
        assert ledger_append_entry(&LEDGER, &frame, room + 64, &offset) == status
    give_up()


def test_space_is_prepared_ahead_or_refused():
    assert create(False) == STATUS_OK
    assert ledger_append_prepare(&LEDGER, 1 << 20) == STATUS_OK
    assert LEDGER.prepared_end >= LEDGER.end + (1 << 20)
    file_faults_install()
    assert file_faults_add(FILE_OP_ALLOCATE, FAULT_ERROR, 1, True, ENOSPC) == STATUS_OK
    assert ledger_append_prepare(&LEDGER, 1 << 24) == STATUS_NO_SPACE
    assert LEDGER.error == ENOSPC and LEDGER.state == LEDGER_OPEN
    file_faults_remove()
    assert ledger_append_prepare(&LEDGER, 1 << 24) == STATUS_OK
    for state, status in (
        (LEDGER_FENCED, STATUS_IO), (LEDGER_POISONED, STATUS_POISONED),
        (LEDGER_SEALED, STATUS_CLOSED),
    ):
        LEDGER.state = state
        assert ledger_append_prepare(&LEDGER, 1) == status
    give_up()


def test_a_flush_that_another_thread_makes_is_waited_for_as_long_as_asked():
    cdef uint64_t entry_id = 0
    assert create(False) == STATUS_OK
    assert append(40, 1, &entry_id) == STATUS_OK
    assert ledger_flush_begin(&LEDGER, 1, -1) == STATUS_OK         # as another thread
    assert ledger_append_flush(&LEDGER, 1, 1) == STATUS_INTERRUPTED
    ledger_flush_end(&LEDGER, 0, LEDGER.end, 1, 3)
    assert ledger_append_flush(&LEDGER, 1, 1) == STATUS_OK
    give_up()


def test_a_poisoned_ledger_stays_so_and_a_closed_one_is_not_poisoned():
    cdef LedgerFooter footer
    assert create(False) == STATUS_OK
    for state, then in (
        (LEDGER_OPEN, LEDGER_POISONED), (LEDGER_POISONED, LEDGER_POISONED),
        (LEDGER_CLOSED, LEDGER_CLOSED), (LEDGER_SEALING, LEDGER_POISONED),
    ):
        LEDGER.state = state
        ledger_poison(&LEDGER, EIO)
        assert LEDGER.state == then and LEDGER.error == EIO
    assert ledger_append_seal(&LEDGER, True, &footer) == STATUS_POISONED
    LEDGER.state = LEDGER_SEALED
    assert ledger_append_flush(&LEDGER, 0, -1) == STATUS_OK
    assert ledger_flush_begin(&LEDGER, 1, -1) == STATUS_OUT_OF_RANGE
    assert ledger_append_seal(&LEDGER, True, &footer) == STATUS_CLOSED
    give_up()


def test_an_end_is_final_where_nothing_more_can_be_published():
    cdef uint64_t entry_id = 0
    for sync in (False, True):
        assert create(sync) == STATUS_OK
        assert append(40, 1, &entry_id) == STATUS_OK
        assert ledger_append_is_final(&LEDGER) == (not sync)
        for state in (LEDGER_POISONED, LEDGER_CLOSED):
            LEDGER.state = state
            assert ledger_append_is_final(&LEDGER)
        LEDGER.state = LEDGER_FENCED
        SLOT.state = PUBLISHED_OPEN
        ledger_append_end(&LEDGER)
        assert SLOT.state == (<uint64_t>PUBLISHED_OPEN if sync else <uint64_t>PUBLISHED_ENDED)
        assert ledger_append_flush(&LEDGER, 1, -1) == STATUS_OK
        assert ledger_append_is_final(&LEDGER) and SLOT.state == PUBLISHED_ENDED
        ledger_append_end(&LEDGER)               # said once
        SLOT.state = PUBLISHED_SEALED
        LEDGER.followed = 0
        ledger_append_end(&LEDGER)
        assert SLOT.state == PUBLISHED_SEALED
        give_up()


def test_who_waits_for_the_topic_or_in_another_process_is_woken():
    global TOPIC
    cdef WaitEvent event
    cdef uint64_t entry_id = 0
    memset(&event, 0, sizeof(event))
    TOPIC = &event
    for waiters in (0, 1):
        assert create(False) == STATUS_OK
        event.event = 0
        event.waiters = SLOT.event.waiters = waiters
        assert append(40, 1, &entry_id) == STATUS_OK
        assert event.event == SLOT.event.event == <uint32_t>waiters
        ledger_append_tell_others(&LEDGER)
        assert SLOT.event.event == 2 * <uint32_t>waiters
        give_up()
    assert create(True) == STATUS_OK
    SLOT.event.waiters = 1
    ledger_append_tell_others(&LEDGER)           # nothing is published yet
    assert SLOT.event.event == 0
    give_up()
    TOPIC = NULL


def test_what_is_behind_a_ledger_is_not_durable_before_it():
    """Not where the one in front cannot be flushed, for whatever reason."""
    cdef LedgerAppend front
    cdef LedgerFooter footer
    cdef uint64_t entry_id = 0
    for state, status, error in (
        (LEDGER_POISONED, STATUS_POISONED, EIO), (LEDGER_CLOSED, STATUS_CLOSED, 0),
    ):
        assert create(False) == STATUS_OK
        memset(&front, 0, sizeof(front))
        front.state, front.error = state, error
        front.entry_count = 1
        ledger_append_follow(&LEDGER, &front)
        assert append(40, 1, &entry_id) == STATUS_OK
        assert ledger_append_flush(&LEDGER, 1, -1) == status
        assert LEDGER.state == (<uint32_t>LEDGER_POISONED if error else <uint32_t>LEDGER_OPEN)
        assert LEDGER.error == error
        LEDGER.state = LEDGER_OPEN
        assert ledger_append_seal(&LEDGER, True, &footer) == status
        ledger_append_forget(&LEDGER)
        assert LEDGER.before == NULL
        give_up()


cdef tuple seen():
    """What readers may see: the end, entries, messages."""
    assert (LEDGER.visible_end, LEDGER.visible_entries, LEDGER.visible_messages) == (
        SLOT.end, SLOT.entry_count, SLOT.message_count)
    return SLOT.end, SLOT.entry_count, SLOT.message_count


@pytest.mark.parametrize("sync", [False, True])
def test_what_is_behind_an_entry_of_a_transaction_is_held_back_until_a_switch(sync):
    cdef uint64_t entry_id = 0
    cdef uint64_t switching = 6
    cdef LedgerHold hold
    ends = []
    assert create(sync) == STATUS_OK
    for flags in (0, ENTRY_TRANSACTION, 0, ENTRY_TRANSACTION, 0):
        ends.append(LEDGER.end)
        assert append(40, 1, &entry_id, flags) == STATUS_OK
        assert seen()[0] <= ends[min(1, len(ends) - 1)] or len(ends) == 1
    assert ledger_append_flush(&LEDGER, 5, -1) == STATUS_OK
    assert seen() == (ends[1], 1, 3) and LEDGER.held_end == ends[1]
    assert not ledger_append_is_final(&LEDGER)
    hold.ledger = &LEDGER
    hold.end, hold.entry_count, hold.message_count = ends[3], 3, 9
    ledger_append_switch(&hold, 1, &switching)
    assert switching == 8 and seen() == (ends[3], 3, 9)
    assert append(40, 1, &entry_id, ENTRY_TRANSACTION) == STATUS_OK
    assert seen() == (ends[3], 3, 9)             # it holds nothing that is not held
    hold.end = UINT64_MAX
    ledger_append_switch(&hold, 1, &switching)
    flushed = LEDGER.durable_end if sync else LEDGER.end
    assert switching == 10 and seen() == (flushed, 5 if sync else 6, 15 if sync else 18)
    assert ledger_append_flush(&LEDGER, 6, -1) == STATUS_OK
    assert seen() == (LEDGER.end, 6, 18) and ledger_append_is_final(&LEDGER)
    give_up()


@pytest.mark.parametrize("flags", [ENTRY_BATCH | ENTRY_COMPRESSED, ENTRY_CHUNK, ENTRY_MARKER])
def test_the_footer_says_whether_all_entries_are_plain(flags):
    cdef uint64_t entry_id = 0
    cdef LedgerFooter footer
    assert create(False) == STATUS_OK
    for each in (0, flags, 0):
        assert append(40, 1, &entry_id, each) == STATUS_OK
    assert ledger_append_seal(&LEDGER, True, &footer) == STATUS_OK
    assert footer.flags == (LEDGER_PLAIN if flags & ENTRY_BATCH else 0)
    give_up()


@pytest.mark.parametrize("sync", [False, True])
def test_ledgers_are_switched_together_and_a_held_one_has_not_ended(sync):
    cdef PublishedEnd slot
    cdef LedgerAppend following
    cdef LedgerSettings settings
    cdef LedgerHold holds[2]
    cdef uint64_t entry_id = 0
    cdef uint64_t switching = 0
    assert create(sync) == STATUS_OK
    SLOT.state = PUBLISHED_OPEN
    memset(&settings, 0, sizeof(settings))
    memset(&slot, 0, sizeof(slot))
    settings.uuid[3] = 18
    settings.entry_count_max = 100
    settings.size_max = 1 << 20
    settings.publish_on_flush = sync
    settings.published = &slot
    assert ledger_append_create(&following, &settings) == STATUS_OK
    assert append(40, 1, &entry_id, ENTRY_TRANSACTION) == STATUS_OK
    assert ledger_append_flush(&LEDGER, 1, -1) == STATUS_OK
    ledger_append_fence(&LEDGER)
    ledger_append_hold_all(&following)
    ledger_append_end(&LEDGER)
    assert SLOT.state == PUBLISHED_OPEN and seen() == (4096, 0, 0)
    for at in range(2):
        holds[at].end, holds[at].entry_count, holds[at].message_count = UINT64_MAX, 0, 0
    holds[0].ledger, holds[1].ledger = &LEDGER, &following
    ledger_append_switch(holds, 2, &switching)
    assert switching == 2 and following.held_end == UINT64_MAX
    assert SLOT.state == PUBLISHED_ENDED and seen() == (LEDGER.end, 1, 3)
    ledger_append_close(&following)
    slot.end = 5                                 # it is of another ledger by now
    holds[0].ledger = &following
    ledger_append_switch(holds, 1, &switching)
    assert slot.end == 5
    ledger_append_free(&following)
    give_up()
