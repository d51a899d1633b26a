"""Body of compacted_entry.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.limits cimport LEDGER_MESSAGES_END
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK

cdef enum:
    CHECKSUM_END = 6
    ENTRY_SIZE_LEAST = 10            # magic, checksum, size of the metadata


cdef void compacted_entry_encode(const CompactedPlace* place, uint8_t* data,
                                 uint32_t size) noexcept nogil:
    cdef uint32_t checksum
    memset(data, 0, COMPACTED_HEADER_SIZE)
    memcpy(data + 8, &place.ledger_id, 8)
    memcpy(data + 16, &place.entry_id, 8)
    memcpy(data + 24, &place.first_message, 8)
    memcpy(data + 32, &place.message_count, 4)
    # Little endian: the lower bits come first.
    memcpy(data + 36, &place.broker_time_ms, 4)
    memcpy(data + 6, <const uint8_t*>&place.broker_time_ms + 4, 2)
    checksum = crc32c(0, data + CHECKSUM_END, size - CHECKSUM_END)
    data[0] = 0x0E
    data[1] = 0x01
    data[2] = <uint8_t>(checksum >> 24)
    data[3] = <uint8_t>(checksum >> 16)
    data[4] = <uint8_t>(checksum >> 8)
    data[5] = <uint8_t>checksum


cdef int compacted_entry_decode(const uint8_t* data, uint32_t size,
                                CompactedPlace* place) noexcept nogil:
    cdef CompactedPlace taken
    if size < COMPACTED_HEADER_SIZE + ENTRY_SIZE_LEAST:
        return STATUS_CORRUPT
    memcpy(&taken.ledger_id, data + 8, 8)
    memcpy(&taken.entry_id, data + 16, 8)
    memcpy(&taken.first_message, data + 24, 8)
    memcpy(&taken.message_count, data + 32, 4)
    taken.broker_time_ms = 0
    memcpy(&taken.broker_time_ms, data + 36, 4)
    memcpy(<uint8_t*>&taken.broker_time_ms + 4, data + 6, 2)
    if taken.ledger_id == 0 or taken.message_count == 0 or (
            taken.first_message > LEDGER_MESSAGES_END - taken.message_count):
        return STATUS_CORRUPT
    place[0] = taken
    return STATUS_OK
