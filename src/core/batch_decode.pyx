"""Walks a batch: repeated [metadata size u32 big endian][SingleMessageMetadata][payload]."""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_left, byte_reader_start, byte_reader_take, byte_reader_u32_be,
)
from pulsarx._core.message_metadata cimport EntryParts, entry_count_holds
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_END, STATUS_OK, STATUS_OUT_OF_RANGE, STATUS_TRUNCATED,
)

cdef enum:
    TAG_PARTITION_KEY = 0x12
    TAG_PAYLOAD_SIZE = 0x18
    TAG_SEQUENCE_ID = 0x40
    VARINT_SIZE_MAX = 10


cdef inline bint decode_usual(const uint8_t* at, const uint8_t* end,
                              BatchMessage* message) noexcept nogil:
    """Read [key] payload size [sequence id], as our encoder writes it. False: read it in full."""
    cdef uint32_t flags = 0
    cdef uint32_t payload_size
    if end - at >= 2 and at[0] == TAG_PARTITION_KEY and at[1] < 0x80:
        if at[1] > end - at - 2:
            return False
        at += 2 + at[1]
        flags = METADATA_PARTITION_KEY
    if end - at < 2 or at[0] != TAG_PAYLOAD_SIZE:
        return False
    payload_size = at[1] & 0x7F
    if at[1] < 0x80:
        at += 2
    elif end - at >= 3 and at[2] < 0x80:
        payload_size |= <uint32_t>at[2] << 7
        at += 3
    elif end - at >= 4 and at[3] < 0x80:
        payload_size |= (<uint32_t>(at[2] & 0x7F) << 7) | (<uint32_t>at[3] << 14)
        at += 4
    else:
        return False
    if at < end:
        if at[0] != TAG_SEQUENCE_ID or end - at < 2 or end - at > 1 + VARINT_SIZE_MAX:
            return False
        # Well formed if the first byte without a continuation bit is the header's last.
        at += 1
        while at < end and at[0] >= 0x80:
            at += 1
        if at + 1 != end:
            return False
        flags |= METADATA_SEQUENCE_ID
    message.flags = flags
    message.payload_size = payload_size
    return True


cdef int decode_in_full(const uint8_t* data, uint32_t size, BatchMessage* message) noexcept nogil:
    cdef SingleMetadata metadata
    cdef int status = single_metadata_decode(data, size, &metadata)
    if status != STATUS_OK:
        return status
    message.flags = metadata.flags
    message.payload_size = metadata.payload_size
    return STATUS_OK


cdef int batch_decode_next(const uint8_t* data, uint32_t size, uint32_t* at,
                           BatchMessage* message) noexcept nogil:
    cdef ByteReader reader
    cdef BatchMessage taken
    cdef int status
    if at[0] >= size:
        return STATUS_END if at[0] == size else STATUS_OUT_OF_RANGE
    byte_reader_start(&reader, data + at[0], size - at[0])
    status = byte_reader_u32_be(&reader, &taken.encoded_metadata_size)
    if status != STATUS_OK:
        return status
    status = byte_reader_take(&reader, taken.encoded_metadata_size, &taken.encoded_metadata)
    if status != STATUS_OK:
        return status
    if not decode_usual(taken.encoded_metadata, reader.at, &taken):
        status = decode_in_full(taken.encoded_metadata, taken.encoded_metadata_size, &taken)
        if status != STATUS_OK:
            return status
    if taken.payload_size > byte_reader_left(&reader):
        return STATUS_TRUNCATED
    taken.payload = reader.at
    message[0] = taken
    at[0] = <uint32_t>(reader.at - data) + taken.payload_size
    return STATUS_OK


cdef int entry_check(const EntryParts* parts, uint32_t message_count) noexcept nogil:
    cdef BatchMessage message
    cdef uint32_t at = 0
    cdef uint32_t left = message_count
    cdef int status
    if not entry_count_holds(parts, message_count):
        return STATUS_CORRUPT
    if parts.metadata.flags & METADATA_BATCH == 0 or parts.metadata.compression:
        return STATUS_OK
    while left:
        status = batch_decode_next(parts.payload, parts.payload_size, &at, &message)
        if status != STATUS_OK:
            return STATUS_CORRUPT if status == STATUS_END else status
        left -= 1
    return STATUS_OK if at == parts.payload_size else STATUS_CORRUPT
