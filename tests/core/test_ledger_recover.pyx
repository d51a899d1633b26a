"""What recovery makes of the bytes of a ledger: what is torn, what is damage, how much of either,
and what it writes."""

import pytest

from failing_calls cimport EIO, ENOSPC, call_fails, calls_fail, calls_succeed
from ledger_bytes cimport put_entry
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.entry_frame cimport ENTRY_TRANSACTION
from pulsarx._core.file_faults cimport *
from pulsarx._core.file_ops cimport *
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport INDEX_RECORD_SIZE
from pulsarx._core.ledger_name cimport *
from pulsarx._core.ledger_recover cimport *
from pulsarx._core.limits cimport LEDGER_HEADER_SIZE
from pulsarx._core.status cimport *

cdef enum:
    SPAN = 96
    ENTRIES = 10
    END = 4096 + ENTRIES * SPAN
    SIZE = 131072

cdef uint8_t base[SIZE]
cdef LedgerHeader header
cdef LedgerPublished published
cdef LedgerRecover recovered


cdef void fill(uint64_t durable_count=0, uint32_t flags=0):
    """Ten entries of three messages each. durable_count: what the last one says."""
    cdef uint64_t at
    memset(base, 0, SIZE)
    memset(&header, 0, sizeof(header))
    memset(&published, 0, sizeof(published))
    header.uuid[1] = 3
    header.flags = flags
    ledger_header_encode(&header, base)
    ledger_header_decode(base, SIZE, &header)
    for at in range(ENTRIES):
        put_entry(base, header.seed, 4096 + at * SPAN, at, 3 * at, 3,
                  durable_count if at == ENTRIES - 1 else 0)


cdef void mark(bint cut, uint64_t end, uint64_t place):
    ledger_mark_encode(header.seed, cut, end, place,
                       base + (LEDGER_CUT_OFFSET if cut else LEDGER_SEAL_OFFSET))
    ledger_header_decode(base, SIZE, &header)


cdef void spoil(uint64_t entry, uint64_t count=1, uint8_t fill_with=255):
    memset(base + 4096 + entry * SPAN, fill_with, count * SPAN)


cdef tuple scanned(uint64_t size=SIZE):
    """Entries, messages, end in entries, damaged entries, and the damage: entry id and count."""
    assert ledger_recover_scan(&recovered, &header, False, base, size, &published) == STATUS_OK
    damage = [(recovered.damage[at].entry_id, recovered.damage[at].entry_count)
              for at in range(recovered.damage_count)]
    answer = (recovered.entry_count, recovered.message_count, (recovered.end - 4096) / SPAN,
              recovered.damaged_entries, damage)
    ledger_recover_free(&recovered)
    return answer


def test_whole_and_unborn():
    fill()
    assert scanned() == (10, 30, 10, 0, [])
    assert ledger_recover_scan(&recovered, &header, True, base, SIZE, &published) == STATUS_OK
    assert recovered.end == LEDGER_HEADER_SIZE and recovered.entry_count == 0
    ledger_recover_free(&recovered)


def test_what_was_not_flushed_is_torn_where_zeros_are_or_nothing_follows():
    fill()
    spoil(7, 1, 0)
    assert scanned() == (7, 21, 7, 0, [])
    fill()
    spoil(9)
    assert scanned() == (9, 27, 9, 0, [])
    fill()
    spoil(7)                                     # good entries behind: taken for damage
    assert scanned() == (10, 30, 10, 1, [(7, 1)])


def test_what_was_flushed_is_damage():
    fill(9)
    spoil(4, 2, 0)
    assert scanned() == (10, 30, 10, 2, [(4, 2)])
    fill()
    published.end, published.entry_count, published.message_count = END, 10, 30
    spoil(8, 2)
    header.flags = 0                             # what was published is not known to be flushed
    assert scanned() == (8, 24, 8, 0, [])
    header.flags = LEDGER_SYNC
    assert scanned() == (10, 30, 10, 2, [(8, 2)])
    published.message_count = 0                  # not known: one for each
    assert scanned() == (10, 26, 10, 2, [(8, 2)])
    published.entry_count = 12
    published.end = SIZE + 800                   # the file ends in front of what was published
    assert scanned(END)[0] == 12 and scanned(END)[4] == [(8, 4)]


def test_a_file_that_ends_in_front_of_what_was_flushed():
    fill(0, LEDGER_SYNC)
    published.end, published.entry_count, published.message_count = END, 10, 30
    assert scanned(END - 3 * SPAN) == (10, 30, 7, 3, [(7, 3)])
    published.entry_count = 5                    # less than what is there
    assert scanned() == (10, 30, 10, 0, [])


def test_an_entry_whose_frame_holds_and_its_bytes_do_not():
    fill()
    base[4096 + 3 * SPAN + 80] ^= 1
    assert scanned() == (10, 30, 10, 1, [(3, 1)])
    fill()
    base[4096 + 9 * SPAN + 80] ^= 1
    assert scanned() == (9, 27, 9, 0, [])        # nothing follows
    mark(False, END, END)
    assert scanned() == (10, 30, 10, 1, [(9, 1)])    # sealed: all was flushed


def test_a_frame_of_an_earlier_entry_does_not_follow():
    fill()
    spoil(3)
    for entry_id, first_message in ((2, 12), (3, 12), (4, 9), (4, 3)):
        put_entry(base, header.seed, 4096 + 4 * SPAN, entry_id, first_message, 3)
        assert scanned() == (10, 30, 10, 2, [(3, 2)])


def test_a_frame_of_another_entry_is_not_the_one_expected():
    """Its checksum holds, its place is another's."""
    for entry_id, first_message in ((6, 12), (4, 13), (3, 12), (4, 9)):
        fill()
        put_entry(base, header.seed, 4096 + 4 * SPAN, entry_id, first_message, 3)
        assert scanned() == (10, 30, 10, 1, [(4, 1)]), (entry_id, first_message)


def test_a_sealed_file():
    cdef LedgerFooter footer
    fill()
    mark(False, END, END)
    spoil(8, 2, 0)
    # Without a footer that holds, one entry is missing at the end at least.
    assert scanned() == (9, 25, 10, 1, [(8, 1)])
    assert scanned(END - SPAN)[2] == 9           # and the file is shorter than its seal says
    memset(&footer, 0, sizeof(footer))
    footer.end = footer.index_offset = END
    footer.entry_count, footer.message_count = 10, 30
    footer.index_checksum = crc32c(header.seed, base, 0)
    ledger_footer_encode(&footer, header.seed, base + END)
    assert scanned() == (10, 30, 10, 2, [(8, 1), (9, 1)])
    footer.entry_count, footer.message_count = 9, 25
    ledger_footer_encode(&footer, header.seed, base + END)
    assert scanned() == (9, 25, 10, 1, [(8, 1)])


def test_a_recovery_before_this_one_has_judged():
    fill()
    mark(True, END - SPAN, 4)
    assert scanned() == (9, 27, 9, 0, [])
    spoil(7, 2, 0)                               # what it kept is damage, whatever it looks like
    assert scanned() == (8, 22, 9, 1, [(7, 1)])
    mark(True, END - SPAN, 9)
    assert scanned() == (9, 23, 9, 2, [(7, 2)])
    assert scanned(END - 2 * SPAN)[2] == 8       # the file is shorter than it was
    fill()
    mark(True, 4096 + 8 * SPAN, 10)              # and says that more was flushed
    assert scanned() == (10, 26, 8, 2, [(8, 2)])


def test_times_of_publishing():
    for times, bounds in (
        ((9, 0, 5), (0, 9)), ((5, 7, 6), (5, 7)), ((0, 0, 4), (4, 4)), ((-3, 0, 2), (-3, 2)),
    ):
        fill()
        memset(base + 4096, 0, SIZE - 4096)
        for number, time in enumerate(times):
            put_entry(base, header.seed, 4096 + <int>number * SPAN, number, number, 1, 0, time)
        assert scanned()[0] == 3
        assert (recovered.first_publish_ms, recovered.last_publish_ms) == bounds


def test_more_damage_than_is_kept_is_counted():
    cdef uint64_t number
    cdef uint64_t at = 4096
    fill()
    for number in range(LEDGER_DAMAGE_MAX + 5):
        at = put_entry(base, header.seed, at, number, number, 1, 0, 5, 8)
        base[at - 2] ^= 1
    mark(False, at, at)
    entries, messages, _, damaged, damage = scanned()
    assert (entries, messages, damaged) == (1029, 1029, 1029) and len(damage) == 1024


def test_a_file_without_a_header():
    cdef LedgerHeader made
    cdef uint8_t folder[16]
    fill()
    memset(folder, 4, 16)
    assert ledger_recover_header(base, SIZE, header.uuid, folder, &made) == STATUS_OK
    assert made.seed == header.seed and made.folder_id[3] == 4 and made.damaged
    assert ledger_recover_header(base, 4096, header.uuid, folder, &made) == STATUS_UNBORN
    spoil(0, 2)
    assert ledger_recover_header(base, SIZE, header.uuid, folder, &made) == STATUS_OK
    spoil(0, ENTRIES)
    assert ledger_recover_header(base, SIZE, header.uuid, folder, &made) == STATUS_UNBORN


cdef int opened(tmp_path) except -1:
    cdef int fd = -1
    (tmp_path / "ledger").write_bytes(base[:SIZE])
    assert file_open(bytes(tmp_path / "ledger"), FILE_WRITE, &fd) == 0
    return fd


@pytest.mark.parametrize("named", ["no", "yes", "of another", "cut off"])
def test_the_header_is_written_again_and_a_name_that_holds_stays(tmp_path, named):
    cdef LedgerFooter footer
    cdef LedgerName name
    cdef LedgerHeader found
    cdef int error = 0
    cdef int fd
    fill()
    memset(&name, 0, sizeof(name))
    memcpy(name.uuid, header.uuid, 16)
    name.uuid[0] = named == "of another"
    name.name, name.name_size = <const uint8_t*>b"topic", 5
    if named != "no":
        ledger_name_encode(&name, base + LEDGER_NAME_OFFSET)
    fd = opened(tmp_path)
    if named == "cut off":
        (tmp_path / "ledger").write_bytes(base[:LEDGER_NAME_OFFSET + 100])
    assert ledger_recover_scan(&recovered, &header, False, base, SIZE, &published) == STATUS_OK
    recovered.headless = True
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == STATUS_OK and error == 0
    assert footer.entry_count == 10 and footer.flags == LEDGER_RECOVERED | LEDGER_PLAIN
    written = (tmp_path / "ledger").read_bytes()
    assert ledger_header_decode(written, len(written), &found) == STATUS_OK
    assert found.sealed and found.cut and found.seal_end == END
    assert (b"topic" in written[:4096]) == (named == "yes")
    # Sealed is sealed.
    recovered.header.sealed = True
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == STATUS_DUPLICATE
    recovered.unborn = True
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == STATUS_UNBORN
    ledger_recover_free(&recovered)
    file_close(fd)


# Of a seal without a header: the name is read; header, cut record, footer and seal record are
# written, each flushed.
@pytest.mark.parametrize(("op", "call", "status"), [
    (FILE_OP_READ, 1, STATUS_IO), (FILE_OP_ALLOCATE, 1, STATUS_IO),
    *((FILE_OP_WRITE, call, STATUS_IO) for call in (1, 2, 3, 4)),
    *((FILE_OP_FLUSH, call, STATUS_POISONED) for call in (1, 2, 3, 4)),
])
def test_each_step_of_a_seal_may_fail_and_is_done_again(tmp_path, op, call, status):
    cdef LedgerFooter footer
    cdef int error = 0
    cdef int fd
    fill()
    fd = opened(tmp_path)
    assert ledger_recover_scan(&recovered, &header, False, base, SIZE, &published) == STATUS_OK
    recovered.headless = True
    file_faults_install()
    assert file_faults_add(op, FAULT_ERROR, call, False, EIO) == STATUS_OK
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == status and error == EIO
    file_faults_remove()
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == STATUS_OK and error == 0
    ledger_recover_free(&recovered)
    file_close(fd)


def test_a_seal_without_room_or_memory(tmp_path):
    cdef LedgerFooter footer
    cdef int error = 0
    cdef int fd
    fill()
    fd = opened(tmp_path)
    assert ledger_recover_scan(&recovered, &header, False, base, SIZE, &published) == STATUS_OK
    file_faults_install()
    assert file_faults_add(FILE_OP_ALLOCATE, FAULT_ERROR, 1, False, ENOSPC) == STATUS_OK
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == STATUS_NO_SPACE
    file_faults_remove()
    assert calls_fail(b"malloc", 1, 1, 0, 12)
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == STATUS_NO_SPACE
    calls_succeed()
    # Space that cannot be given back, as its size is not told, is no reason to fail.
    call_fails(b"fstat", EIO)
    assert ledger_recover_seal(&recovered, fd, &footer, &error) == STATUS_OK
    calls_succeed()
    ledger_recover_free(&recovered)
    file_close(fd)


def test_the_flags_of_entries_are_noticed_where_their_frames_hold():
    fill()
    assert scanned()[0] == 10 and recovered.entry_flags == 0
    put_entry(base, header.seed, 4096 + 9 * SPAN, 9, 27, 3, 0, 5, 30, ENTRY_TRANSACTION)
    assert scanned()[0] == 10 and recovered.entry_flags == ENTRY_TRANSACTION
    memset(base + 4096 + 9 * SPAN + 64, 255, 8)      # a torn tail is of nobody
    assert scanned()[0] == 9 and recovered.entry_flags == 0
    fill()
    put_entry(base, header.seed, 4096 + 4 * SPAN, 4, 12, 3, 0, 5, 30, ENTRY_TRANSACTION)
    memset(base + 4096 + 4 * SPAN + 64, 255, 8)      # damaged, in front of others
    assert scanned() == (10, 30, 10, 1, [(4, 1)]) and recovered.entry_flags == ENTRY_TRANSACTION
