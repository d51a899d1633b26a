"""Header blocks, seal records and footers that are not what we wrote: each bound by itself, with
checksums that hold."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport INDEX_RECORD_SIZE
from pulsarx._core.ledger_name cimport *
from pulsarx._core.limits cimport (
    ENTRY_MESSAGES_MAX, ENTRY_SPAN_MIN, LEDGER_HEADER_SIZE, LEDGER_MESSAGES_END,
)
from pulsarx._core.status cimport *

cdef uint8_t block[LEDGER_HEADER_SIZE]
cdef uint8_t file[2 * LEDGER_HEADER_SIZE]
cdef LedgerHeader header
cdef LedgerFooter footer


cdef void new_block():
    memset(&header, 0, sizeof(header))
    header.uuid[2] = 5
    ledger_header_encode(&header, block)


cdef void sum_sector(uint8_t* sector, uint32_t hole, uint32_t seed):
    cdef uint32_t checksum = crc32c(crc32c(seed, sector, hole), sector + hole + 4, 508 - hole)
    memcpy(sector + hole, &checksum, 4)


def test_a_newer_version_is_not_read():
    new_block()
    block[8] = 3
    sum_sector(block, 12, 0)
    assert ledger_header_decode(block, 8192, &header) == STATUS_UNSUPPORTED
    # One that sums otherwise is believed where both copies claim it.
    block[LEDGER_HEADER_COPY_OFFSET + 8] = 3
    memcpy(block + LEDGER_HEADER_COPY_OFFSET + 12, block + 8, 4)
    memcpy(block + 12, block + 8, 4)
    assert ledger_header_decode(block, 8192, &header) == STATUS_UNSUPPORTED
    block[8] = block[LEDGER_HEADER_COPY_OFFSET + 8] = 0
    assert ledger_header_decode(block, 8192, &header) == STATUS_CORRUPT
    block[LEDGER_HEADER_COPY_OFFSET + 8] = 3
    assert ledger_header_decode(block, 8192, &header) == STATUS_CORRUPT


def test_what_is_not_a_header():
    new_block()
    assert ledger_header_decode(block, 100, &header) == STATUS_TRUNCATED
    assert ledger_header_decode(block, 7, &header) == STATUS_FOREIGN
    block[0] = 1
    assert ledger_header_decode(block, 100, &header) == STATUS_FOREIGN
    # The copy is one of ours, and damaged as well.
    block[LEDGER_HEADER_COPY_OFFSET + 20] ^= 1
    assert ledger_header_decode(block, 8192, &header) == STATUS_CORRUPT
    block[<int>LEDGER_HEADER_COPY_OFFSET] = 1
    assert ledger_header_decode(block, 8192, &header) == STATUS_FOREIGN
    memset(block, 0, LEDGER_HEADER_SIZE)
    assert ledger_header_decode(block, 0, &header) == STATUS_UNBORN
    assert ledger_header_decode(block, 100, &header) == STATUS_UNBORN
    assert ledger_header_decode(block, 8192, &header) == STATUS_UNBORN


def test_a_seal_record_names_a_place_where_frames_can_end():
    cdef uint32_t seed
    new_block()
    assert ledger_header_decode(block, 8192, &header) == STATUS_OK and not header.sealed
    seed = header.seed
    for end, holds in ((4096, True), (4104, True), (4088, False), (4097, False)):
        ledger_mark_encode(seed, False, end, end, block + LEDGER_SEAL_OFFSET)
        ledger_mark_encode(seed, True, end, 3, block + LEDGER_CUT_OFFSET)
        assert ledger_header_decode(block, 8192, &header) == STATUS_OK
        assert (header.sealed, header.cut) == (holds, holds), end
        assert header.damaged == (not holds)
        if holds:
            assert header.seal_end == <uint64_t>end and header.cut_durable_count == 3


def test_a_name_record_holds_a_name():
    cdef LedgerName name, found
    cdef uint8_t record[LEDGER_NAME_RECORD_SIZE]
    cdef uint32_t checksum
    memset(&name, 0, sizeof(name))
    name.name, name.name_size = <const uint8_t*>b"topic", 5
    ledger_name_encode(&name, record)
    assert ledger_name_decode(record, &found) == STATUS_OK and found.name_size == 5
    for size in (0, LEDGER_NAME_SIZE_MAX + 1):
        record[84], record[85] = size & 255, size >> 8
        checksum = crc32c(crc32c(0, record, 8), record + 12, LEDGER_NAME_RECORD_SIZE - 12)
        memcpy(record + 8, &checksum, 4)
        assert ledger_name_decode(record, &found) == STATUS_CORRUPT


# The footer: three records of an index, one of damage, at 4096 + 720.

cdef enum:
    END = LEDGER_HEADER_SIZE + 10 * ENTRY_SPAN_MIN
    RECORDS_SIZE = 3 * INDEX_RECORD_SIZE + LEDGER_DAMAGE_SIZE
    FOOTER_AT = END + RECORDS_SIZE
    SIZE = FOOTER_AT + LEDGER_FOOTER_SIZE

cdef list INDEX = [(4096, 0, 0), (4096 + 144, 2, 6), (4096 + 288, 4, 9)]


cdef void new_footer(list index):
    cdef uint64_t* record
    memset(file, 0, sizeof(file))
    memset(&header, 0, sizeof(header))
    memset(&footer, 0, sizeof(footer))
    header.sealed = True
    header.seed = 77
    header.seal_end = END
    header.footer_offset = FOOTER_AT
    footer.end = footer.index_offset = END
    footer.entry_count = 10
    footer.message_count = 30
    footer.index_count = 3
    footer.damage_count = 1
    for number, (offset, entry_id, first_message) in enumerate(index):
        record = <uint64_t*>(file + END + <int>number * INDEX_RECORD_SIZE)
        record[0], record[1], record[2] = offset, entry_id, first_message
    footer.index_checksum = crc32c(header.seed, file + END, RECORDS_SIZE)


cdef int written():
    """What is read of the footer as it stands."""
    cdef LedgerFooter found
    ledger_footer_encode(&footer, header.seed, file + FOOTER_AT)
    return ledger_footer_decode(file, SIZE, &header, &found)


def test_a_footer_that_holds():
    new_footer(INDEX)
    assert written() == STATUS_OK
    footer.entry_count = 11                  # nothing need be left of damaged entries
    assert written() == STATUS_OK


def test_a_footer_lies_behind_the_data_and_within_the_file():
    new_footer(INDEX)
    header.sealed = False
    assert written() == STATUS_CORRUPT
    header.sealed = True
    for offset in (END - 8, SIZE + 8, SIZE - 8):
        header.footer_offset = offset
        assert written() == STATUS_TRUNCATED
    header.footer_offset = FOOTER_AT - 8
    assert written() == STATUS_CORRUPT
    new_footer(INDEX)
    written()
    file[FOOTER_AT + 20] ^= 1
    assert ledger_footer_decode(file, SIZE, &header, &footer) == STATUS_CORRUPT


def test_places_and_counts_of_a_footer_are_of_one_file():
    new_footer(INDEX)
    footer.end += 8
    assert written() == STATUS_CORRUPT
    new_footer(INDEX)
    footer.index_offset -= 8
    assert written() == STATUS_CORRUPT
    new_footer(INDEX)
    footer.index_count = 5
    assert written() == STATUS_CORRUPT
    footer.index_count = 2
    assert written() == STATUS_CORRUPT
    new_footer(INDEX)
    footer.index_checksum ^= 1
    assert written() == STATUS_CORRUPT
    new_footer(INDEX)
    footer.message_count = <uint64_t>LEDGER_MESSAGES_END + 1
    assert written() == STATUS_CORRUPT
    footer.message_count = 11 * <uint64_t>ENTRY_MESSAGES_MAX
    assert written() == STATUS_CORRUPT


def test_a_footer_without_damage_counts_no_more_entries_than_fit():
    cdef uint64_t at
    new_footer(INDEX)
    # The record of damage becomes one of the index.
    record = (4096 + 432, 6, 12)
    for at in range(3):
        (<uint64_t*>(file + END + 3 * INDEX_RECORD_SIZE))[at] = record[at]
    footer.index_count, footer.damage_count = 4, 0
    footer.index_checksum = crc32c(header.seed, file + END, RECORDS_SIZE)
    assert written() == STATUS_OK
    footer.entry_count = 11
    assert written() == STATUS_CORRUPT


def test_an_end_in_front_of_the_first_frame():
    new_footer([])
    header.seal_end = footer.end = footer.index_offset = LEDGER_HEADER_SIZE - 8
    footer.index_count = 0
    footer.damage_count = (FOOTER_AT - LEDGER_HEADER_SIZE + 8) // LEDGER_DAMAGE_SIZE
    header.footer_offset = footer.end + footer.damage_count * LEDGER_DAMAGE_SIZE
    footer.index_checksum = crc32c(header.seed, file + footer.end,
                                   header.footer_offset - footer.end)
    ledger_footer_encode(&footer, header.seed, file + header.footer_offset)
    assert ledger_footer_decode(file, SIZE, &header, &footer) == STATUS_CORRUPT


def test_each_record_of_the_index_may_name_a_frame():
    for number, record in (
        (0, (4088, 0, 0)), (2, (END, 4, 9)), (1, (4241, 2, 6)), (2, (4384, 10, 9)),
        (2, (4384, 4, 30)), (2, (4384, 2, 9)), (2, (4384, 4, 6)), (2, (4304, 4, 9)),
    ):
        index = list(INDEX)
        index[number] = record
        new_footer(index)
        assert written() == STATUS_CORRUPT, record
