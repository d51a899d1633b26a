"""Walks the fields of a protobuf message, known or not. Bytes are untrusted; all is bounded."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_varint
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK

cdef enum WireType:
    WIRE_VARINT = 0
    WIRE_FIXED_64 = 1
    WIRE_BLOCK = 2
    WIRE_GROUP_START = 3
    WIRE_GROUP_END = 4
    WIRE_FIXED_32 = 5


cdef inline int proto_field_tag(ByteReader* reader, uint32_t* tag) noexcept nogil:
    """Take a tag: field number << 3 | wire type. STATUS_CORRUPT: number 0 or over 32 bits."""
    cdef uint64_t taken = 0
    cdef int status
    if reader.at < reader.end and 8 <= reader.at[0] < 0x80:
        tag[0] = reader.at[0]
        reader.at += 1
        return STATUS_OK
    status = byte_reader_varint(reader, &taken)
    if status != STATUS_OK:
        return status
    if taken < 8 or taken >> 32 != 0:
        return STATUS_CORRUPT
    tag[0] = <uint32_t>taken
    return STATUS_OK


cdef int proto_field_skip(ByteReader* reader, uint32_t tag) noexcept nogil
"""Pass over the value that follows this tag; a group with all that is in it."""
