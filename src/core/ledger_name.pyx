"""Encodes and decodes the name record of a ledger. The layout is in the .pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_UNBORN

cdef extern from *:
    """
    typedef struct {
        uint8_t magic[8];
        uint32_t checksum, flags;
        uint8_t uuid[16], folder_id[16];
        uint64_t ledger_id, horizon_ledger_id, horizon_entry, horizon_message;
        uint32_t partition_count, name_size;
    } LedgerNameBytes;
    _Static_assert(sizeof(LedgerNameBytes) == 88, "the record is laid out without padding");
    static const uint8_t MAGIC_NAME[8] = {'P','U','L','S','A','R','X','N'};
    """
    const uint8_t* MAGIC_NAME
    ctypedef struct LedgerNameBytes:
        uint8_t magic[8]
        uint32_t checksum
        uint32_t flags
        uint8_t uuid[16]
        uint8_t folder_id[16]
        uint64_t ledger_id
        uint64_t horizon_ledger_id
        uint64_t horizon_entry
        uint64_t horizon_message
        uint32_t partition_count
        uint32_t name_size

cdef enum:
    NAME_AT = LEDGER_NAME_RECORD_SIZE - LEDGER_NAME_SIZE_MAX


cdef uint32_t record_checksum(const uint8_t* record) noexcept nogil:
    return crc32c(crc32c(0, record, 8), record + 12, LEDGER_NAME_RECORD_SIZE - 12)


cdef void ledger_name_encode(const LedgerName* self, uint8_t* record) noexcept nogil:
    cdef LedgerNameBytes packed
    memset(&packed, 0, sizeof(packed))
    memcpy(packed.magic, MAGIC_NAME, 8)
    packed.flags = self.flags
    memcpy(packed.uuid, self.uuid, 16)
    memcpy(packed.folder_id, self.folder_id, 16)
    packed.ledger_id = self.ledger_id
    packed.horizon_ledger_id = self.horizon_ledger_id
    packed.horizon_entry = self.horizon_entry
    packed.horizon_message = self.horizon_message
    packed.partition_count = self.partition_count
    packed.name_size = self.name_size
    memset(record, 0, LEDGER_NAME_RECORD_SIZE)
    memcpy(record, &packed, sizeof(packed))
    memcpy(record + NAME_AT, self.name, self.name_size)
    packed.checksum = record_checksum(record)
    memcpy(record, &packed, sizeof(packed))


cdef bint is_blank(const uint8_t* record) noexcept nogil:
    # Each byte as the one before it: memcmp looks at 64 at a time.
    return record[0] == 0 and memcmp(record, record + 1, LEDGER_NAME_RECORD_SIZE - 1) == 0


cdef int ledger_name_decode(const uint8_t* record, LedgerName* self) noexcept nogil:
    cdef LedgerNameBytes packed
    memcpy(&packed, record, sizeof(packed))
    if memcmp(packed.magic, MAGIC_NAME, 8) != 0:
        return STATUS_UNBORN if is_blank(record) else STATUS_CORRUPT
    if packed.checksum != record_checksum(record):
        return STATUS_CORRUPT
    if packed.name_size == 0 or packed.name_size > LEDGER_NAME_SIZE_MAX:
        return STATUS_CORRUPT
    memcpy(self.uuid, packed.uuid, 16)
    memcpy(self.folder_id, packed.folder_id, 16)
    self.ledger_id = packed.ledger_id
    self.horizon_ledger_id = packed.horizon_ledger_id
    self.horizon_entry = packed.horizon_entry
    self.horizon_message = packed.horizon_message
    self.flags = packed.flags
    self.partition_count = packed.partition_count
    self.name_size = packed.name_size
    self.name = record + NAME_AT
    return STATUS_OK
