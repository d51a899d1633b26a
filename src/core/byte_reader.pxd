"""Reads untrusted bytes through a cursor that knows its end; there is no other way to them. Any
module may use it.

Every take checks the bound and answers STATUS_TRUNCATED past the end; a failed take moves nothing.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK, STATUS_TRUNCATED


cdef struct ByteReader:
    const uint8_t* at
    const uint8_t* end


cdef inline void byte_reader_start(ByteReader* self, const uint8_t* data,
                                   size_t size) noexcept nogil:
    self.at = data
    self.end = data + size


cdef inline size_t byte_reader_left(const ByteReader* self) noexcept nogil:
    return <size_t>(self.end - self.at)


cdef inline int byte_reader_take(ByteReader* self, size_t size,
                                 const uint8_t** bytes) noexcept nogil:
    if size > <size_t>(self.end - self.at):
        return STATUS_TRUNCATED
    bytes[0] = self.at
    self.at += size
    return STATUS_OK


cdef inline int byte_reader_u32_be(ByteReader* self, uint32_t* value) noexcept nogil:
    cdef const uint8_t* at = self.at
    if self.end - at < 4:
        return STATUS_TRUNCATED
    value[0] = (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]
    self.at = at + 4
    return STATUS_OK


cdef inline int byte_reader_varint(ByteReader* self, uint64_t* value) noexcept nogil:
    """Take a protobuf varint; STATUS_CORRUPT when it runs over ten bytes."""
    cdef const uint8_t* at = self.at
    cdef uint64_t result = 0
    cdef unsigned int shift = 0
    while at < self.end:
        result |= <uint64_t>(at[0] & 0x7F) << shift
        if at[0] < 0x80:
            value[0] = result
            self.at = at + 1
            return STATUS_OK
        at += 1
        shift += 7
        if shift > 63:
            return STATUS_CORRUPT
    return STATUS_TRUNCATED


cdef inline int byte_reader_block(ByteReader* self, const uint8_t** bytes,
                                  uint32_t* size) noexcept nogil:
    """Take a protobuf length-delimited field: a varint size, then that many bytes."""
    cdef ByteReader ahead = self[0]
    cdef uint64_t claimed = 0
    cdef int status = byte_reader_varint(&ahead, &claimed)
    if status != STATUS_OK:
        return status
    if claimed > <uint64_t>(ahead.end - ahead.at):
        return STATUS_TRUNCATED
    bytes[0] = ahead.at
    size[0] = <uint32_t>claimed
    self.at = ahead.at + claimed
    return STATUS_OK
