"""Seals a ledger file: everything before the seal record is flushed before the record is
written."""

from libc.errno cimport EDQUOT, EFBIG, ENOMEM, ENOSPC
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from pulsarx._core.atomic cimport atomic_load_u64
from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.file_ops cimport (
    file_allocate, file_flush, file_punch_hole, file_size, file_write,
)
from pulsarx._core.ledger_footer cimport *
from pulsarx._core.ledger_index cimport *
from pulsarx._core.status cimport *

cdef enum:
    PAGE_SIZE = 4096


cdef int fail(int status, int errno_of, int* error) noexcept nogil:
    error[0] = errno_of
    return status


cdef void give_back(int fd, uint64_t end) noexcept nogil:
    """All space behind end: also what was allocated, and could not be written with zeros then. In
    front of the flush, which would have the device write those zeros."""
    cdef uint64_t size = 0
    end = (end + PAGE_SIZE - 1) & ~<uint64_t>(PAGE_SIZE - 1)
    if file_size(fd, &size) == 0 and size > end:
        file_punch_hole(fd, end, size - end)


cdef int ledger_seal_write(int fd, uint32_t seed, const LedgerIndex* index,
                           const LedgerDamage* damage,
                           LedgerFooter* footer, bint flush, int* error) noexcept nogil:
    cdef uint64_t index_count = atomic_load_u64(&index.count)
    cdef uint64_t index_size = index_count * INDEX_RECORD_SIZE
    cdef uint64_t records_size = index_size + <uint64_t>footer.damage_count * LEDGER_DAMAGE_SIZE
    cdef uint64_t position
    cdef uint8_t sector[LEDGER_SECTOR_SIZE]
    cdef IndexRecord record
    cdef uint8_t* room
    cdef int failed = file_allocate(fd, footer.end, records_size + LEDGER_FOOTER_SIZE)
    if failed == ENOSPC or failed == EDQUOT or failed == EFBIG:
        return fail(STATUS_NO_SPACE, failed, error)
    if failed:
        return fail(STATUS_IO, failed, error)
    room = <uint8_t*>malloc(records_size + LEDGER_FOOTER_SIZE)
    if room == NULL:
        return fail(STATUS_NO_SPACE, ENOMEM, error)
    for position in range(index_count):
        ledger_index_record(index, position, &record)
        memcpy(room + position * INDEX_RECORD_SIZE, &record, INDEX_RECORD_SIZE)
    if footer.damage_count:
        memcpy(room + index_size, damage, records_size - index_size)
    footer.index_offset = footer.end
    footer.index_count = index_count
    footer.index_checksum = crc32c(seed, room, records_size)
    ledger_footer_encode(footer, seed, room + records_size)
    failed = file_write(fd, room, records_size + LEDGER_FOOTER_SIZE, footer.end)
    free(room)
    if failed:
        return fail(STATUS_IO, failed, error)
    give_back(fd, footer.end + records_size + LEDGER_FOOTER_SIZE)
    if flush:
        failed = file_flush(fd)
    if failed:
        return fail(STATUS_POISONED, failed, error)
    ledger_mark_encode(seed, False, footer.end, footer.end + records_size, sector)
    failed = file_write(fd, sector, LEDGER_SECTOR_SIZE, LEDGER_SEAL_OFFSET)
    if failed:
        return fail(STATUS_IO, failed, error)
    if flush:
        failed = file_flush(fd)
    if failed:
        return fail(STATUS_POISONED, failed, error)
    return STATUS_OK
