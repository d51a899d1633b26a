"""Encodes and decodes header block, seal and cut record and footer. The layout is in the .pxd."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.ledger_index cimport INDEX_RECORD_SIZE
from pulsarx._core.ledger_name cimport LEDGER_NAME_OFFSET, LedgerName, ledger_name_decode
from pulsarx._core.limits cimport (
    ENTRY_ALIGNMENT, ENTRY_MESSAGES_MAX, ENTRY_SPAN_MIN, LEDGER_HEADER_SIZE, LEDGER_MESSAGES_END,
)
from pulsarx._core.status cimport *

cdef extern from *:
    """
    static const uint8_t MAGIC_LEDGER[8] = {'P','U','L','S','A','R','X','L'};
    static const uint8_t MAGIC_SEAL[8] = {'P','U','L','S','A','R','X','S'};
    static const uint8_t MAGIC_CUT[8] = {'P','U','L','S','A','R','X','C'};
    static const uint8_t MAGIC_FOOTER[8] = {'P','U','L','S','A','R','X','F'};
    """
    const uint8_t* MAGIC_LEDGER
    const uint8_t* MAGIC_SEAL
    const uint8_t* MAGIC_CUT
    const uint8_t* MAGIC_FOOTER


cdef inline void put_u32(uint8_t* at, uint32_t value) noexcept nogil:
    memcpy(at, &value, 4)


cdef inline void put_u64(uint8_t* at, uint64_t value) noexcept nogil:
    memcpy(at, &value, 8)


cdef inline uint32_t get_u32(const uint8_t* at) noexcept nogil:
    cdef uint32_t value = 0
    memcpy(&value, at, 4)
    return value


cdef inline uint64_t get_u64(const uint8_t* at) noexcept nogil:
    cdef uint64_t value = 0
    memcpy(&value, at, 8)
    return value


cdef inline uint32_t checksum_around(uint32_t seed, const uint8_t* data, size_t hole,
                                     size_t size) noexcept nogil:
    """The checksum of data without the four bytes at hole, which hold it."""
    return crc32c(crc32c(seed, data, hole), data + hole + 4, size - hole - 4)


cdef bint all_zero(const uint8_t* data, uint64_t size) noexcept nogil:
    # Each byte as the one before it: memcmp looks at 64 at a time.
    return size == 0 or (data[0] == 0 and memcmp(data, data + 1, size - 1) == 0)


cdef void ledger_header_encode(const LedgerHeader* header, uint8_t* block) noexcept nogil:
    memset(block, 0, LEDGER_HEADER_SIZE)
    memcpy(block, MAGIC_LEDGER, 8)
    put_u32(block + 8, LEDGER_FORMAT_VERSION)
    memcpy(block + 16, header.uuid, 16)
    put_u64(block + 32, <uint64_t>header.created_ms)
    put_u32(block + 40, header.flags)
    memcpy(block + 44, header.folder_id, 16)
    put_u32(block + 12, checksum_around(0, block, 12, LEDGER_SECTOR_SIZE))
    memcpy(block + LEDGER_HEADER_COPY_OFFSET, block, LEDGER_SECTOR_SIZE)


cdef int header_sector_decode(const uint8_t* sector, LedgerHeader* header) noexcept nogil:
    if memcmp(sector, MAGIC_LEDGER, 8) != 0:
        return STATUS_FOREIGN
    if get_u32(sector + 12) != checksum_around(0, sector, 12, LEDGER_SECTOR_SIZE):
        return STATUS_CORRUPT
    if not LEDGER_FORMAT_VERSION_LEAST <= get_u32(sector + 8) <= LEDGER_FORMAT_VERSION:
        return STATUS_UNSUPPORTED
    memcpy(header.uuid, sector + 16, 16)
    header.created_ms = <int64_t>get_u64(sector + 32)
    header.flags = get_u32(sector + 40)
    memcpy(header.folder_id, sector + 44, 16)
    header.seed = crc32c(0, header.uuid, 16)
    return STATUS_OK


cdef int header_status(const uint8_t* block, int status) noexcept nogil:
    """Return the status for a block neither of whose headers is valid; status: of the first."""
    cdef const uint8_t* copy = block + LEDGER_HEADER_COPY_OFFSET
    # A newer version may sum otherwise: two equal claims are believed.
    if (memcmp(block, MAGIC_LEDGER, 8) == 0 and memcmp(block, copy, 12) == 0
            and get_u32(block + 8) > LEDGER_FORMAT_VERSION):
        return STATUS_UNSUPPORTED
    if all_zero(block, LEDGER_HEADER_SIZE):
        return STATUS_UNBORN
    if status == STATUS_FOREIGN and memcmp(copy, MAGIC_LEDGER, 8) == 0:
        return STATUS_CORRUPT
    return status


cdef bint mark_decode(const uint8_t* sector, const uint8_t* magic, uint32_t seed, uint64_t* end,
                      uint64_t* place) noexcept nogil:
    if memcmp(sector, magic, 8) != 0:
        return False
    if get_u32(sector + 8) != checksum_around(seed, sector, 8, LEDGER_SECTOR_SIZE):
        return False
    if get_u64(sector + 16) < LEDGER_HEADER_SIZE or get_u64(sector + 16) & 7:
        return False
    end[0] = get_u64(sector + 16)
    place[0] = get_u64(sector + 24)
    return True


cdef bint name_holds(const uint8_t* record, const LedgerHeader* header) noexcept nogil:
    """Whether a name record is this file's, or there is none."""
    cdef LedgerName name
    cdef int status = ledger_name_decode(record, &name)
    if status == STATUS_OK:
        return memcmp(name.uuid, header.uuid, 16) == 0
    return status == STATUS_UNBORN


cdef int ledger_header_decode(const uint8_t* block, uint64_t size,
                              LedgerHeader* header) noexcept nogil:
    cdef int status, copy_status
    cdef const uint8_t* seal = block + LEDGER_SEAL_OFFSET
    cdef const uint8_t* cut = block + LEDGER_CUT_OFFSET
    if size < LEDGER_HEADER_SIZE:
        if all_zero(block, size):
            return STATUS_UNBORN
        return STATUS_TRUNCATED if size >= 8 and memcmp(block, MAGIC_LEDGER,
                                                        8) == 0 else STATUS_FOREIGN
    memset(header, 0, sizeof(LedgerHeader))
    copy_status = header_sector_decode(block + LEDGER_HEADER_COPY_OFFSET, header)
    status = header_sector_decode(block, header)
    if status == STATUS_UNSUPPORTED:
        return status
    if status != STATUS_OK and copy_status != STATUS_OK:
        return header_status(block, status)
    header.sealed = mark_decode(seal, MAGIC_SEAL, header.seed, &header.seal_end,
                                &header.footer_offset)
    header.cut = mark_decode(cut, MAGIC_CUT, header.seed, &header.cut_end,
                             &header.cut_durable_count)
    # A record that is there and does not hold, or bytes where none belong: said, but no reason to
    # refuse entries.
    header.damaged = (
        status != STATUS_OK
        or memcmp(block, block + LEDGER_HEADER_COPY_OFFSET, LEDGER_SECTOR_SIZE) != 0
        or not (header.sealed or all_zero(seal, LEDGER_SECTOR_SIZE))
        or not (header.cut or all_zero(cut, LEDGER_SECTOR_SIZE))
        or not all_zero(block + 1536, 512) or not name_holds(block + LEDGER_NAME_OFFSET, header))
    return STATUS_OK


cdef void ledger_mark_encode(uint32_t seed, bint cut, uint64_t end, uint64_t place,
                             uint8_t* sector) noexcept nogil:
    memset(sector, 0, LEDGER_SECTOR_SIZE)
    memcpy(sector, MAGIC_CUT if cut else MAGIC_SEAL, 8)
    put_u64(sector + 16, end)
    put_u64(sector + 24, place)
    put_u32(sector + 8, checksum_around(seed, sector, 8, LEDGER_SECTOR_SIZE))


cdef void ledger_footer_encode(const LedgerFooter* footer, uint32_t seed,
                               uint8_t* room) noexcept nogil:
    memset(room, 0, LEDGER_FOOTER_SIZE)
    memcpy(room, MAGIC_FOOTER, 8)
    put_u32(room + 12, footer.digest)
    put_u64(room + 16, footer.end)
    put_u64(room + 24, footer.entry_count)
    put_u64(room + 32, footer.message_count)
    put_u64(room + 40, <uint64_t>footer.first_publish_ms)
    put_u64(room + 48, <uint64_t>footer.last_publish_ms)
    put_u64(room + 56, footer.index_offset)
    put_u64(room + 64, footer.index_count)
    put_u32(room + 72, footer.damage_count)
    put_u32(room + 76, footer.index_checksum)
    put_u64(room + 80, footer.torn_size)
    put_u32(room + 88, footer.flags)
    put_u32(room + 8, checksum_around(seed, room, 8, LEDGER_FOOTER_SIZE))


cdef int ledger_footer_decode(const uint8_t* base, uint64_t size, const LedgerHeader* header,
                              LedgerFooter* footer) noexcept nogil:
    cdef const uint8_t* at
    cdef uint64_t records_size
    cdef LedgerFooter found
    if not header.sealed:
        return STATUS_CORRUPT
    if header.footer_offset < header.seal_end or header.footer_offset > size:
        return STATUS_TRUNCATED
    if size - header.footer_offset < LEDGER_FOOTER_SIZE:
        return STATUS_TRUNCATED
    at = base + header.footer_offset
    if memcmp(at, MAGIC_FOOTER, 8) != 0:
        return STATUS_CORRUPT
    if get_u32(at + 8) != checksum_around(header.seed, at, 8, LEDGER_FOOTER_SIZE):
        return STATUS_CORRUPT
    found.digest = get_u32(at + 12)
    found.end = get_u64(at + 16)
    found.entry_count = get_u64(at + 24)
    found.message_count = get_u64(at + 32)
    found.first_publish_ms = <int64_t>get_u64(at + 40)
    found.last_publish_ms = <int64_t>get_u64(at + 48)
    found.index_offset = get_u64(at + 56)
    found.index_count = get_u64(at + 64)
    found.damage_count = get_u32(at + 72)
    found.index_checksum = get_u32(at + 76)
    found.torn_size = get_u64(at + 80)
    found.flags = get_u32(at + 88)
    if found.end != header.seal_end or found.index_offset != found.end:
        return STATUS_CORRUPT
    records_size = header.footer_offset - found.index_offset
    if found.index_count > records_size // INDEX_RECORD_SIZE:
        return STATUS_CORRUPT
    records_size -= found.index_count * INDEX_RECORD_SIZE
    if <uint64_t>found.damage_count * LEDGER_DAMAGE_SIZE != records_size:
        return STATUS_CORRUPT
    records_size = header.footer_offset - found.index_offset
    if crc32c(header.seed, base + found.index_offset, records_size) != found.index_checksum:
        return STATUS_CORRUPT
    if not counts_hold(&found) or not index_holds(base + found.index_offset, &found):
        return STATUS_CORRUPT
    footer[0] = found
    return STATUS_OK


cdef bint counts_hold(const LedgerFooter* footer) noexcept nogil:
    """Whether there is room for what the footer counts. No bytes need be left of damaged entries at
    the end."""
    if footer.end < LEDGER_HEADER_SIZE or footer.message_count > LEDGER_MESSAGES_END:
        return False
    if footer.damage_count == 0 and footer.entry_count > (
            footer.end - LEDGER_HEADER_SIZE) // ENTRY_SPAN_MIN:
        return False
    return footer.message_count // ENTRY_MESSAGES_MAX <= footer.entry_count


cdef bint index_holds(const uint8_t* records, const LedgerFooter* footer) noexcept nogil:
    """Whether each record may name a frame, and they are in order."""
    cdef uint64_t position
    cdef uint64_t offset
    cdef uint64_t entry_id
    cdef uint64_t first_message
    cdef uint64_t offset_before = 0
    cdef uint64_t entry_before = 0
    cdef uint64_t message_before = 0
    for position in range(footer.index_count):
        offset = get_u64(records)
        entry_id = get_u64(records + 8)
        first_message = get_u64(records + 16)
        if offset < LEDGER_HEADER_SIZE or offset >= footer.end or offset % ENTRY_ALIGNMENT:
            return False
        if entry_id >= footer.entry_count or first_message >= footer.message_count:
            return False
        if position and (entry_id <= entry_before or first_message <= message_before
                         or offset < offset_before + ENTRY_SPAN_MIN):
            return False
        offset_before = offset
        entry_before = entry_id
        message_before = first_message
        records += INDEX_RECORD_SIZE
    return True
