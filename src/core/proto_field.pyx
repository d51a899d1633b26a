"""Passing over protobuf values, groups without recursion: their depth is the input's to choose."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_block, byte_reader_take, byte_reader_varint,
)
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_OK

cdef enum:
    GROUP_DEPTH_MAX = 32  # what protobuf's own parsers allow is 100; Pulsar has no group at all


cdef int skip_plain(ByteReader* reader, uint32_t wire) noexcept nogil:
    cdef const uint8_t* bytes = NULL
    cdef uint32_t size = 0
    cdef uint64_t value = 0
    if wire == WIRE_VARINT:
        return byte_reader_varint(reader, &value)
    if wire == WIRE_BLOCK:
        return byte_reader_block(reader, &bytes, &size)
    if wire == WIRE_FIXED_64:
        return byte_reader_take(reader, 8, &bytes)
    if wire == WIRE_FIXED_32:
        return byte_reader_take(reader, 4, &bytes)
    return STATUS_CORRUPT


cdef int skip_group(ByteReader* reader, uint32_t tag) noexcept nogil:
    cdef uint32_t[GROUP_DEPTH_MAX] open_fields
    cdef uint32_t depth = 1
    cdef int status
    open_fields[0] = tag >> 3
    while depth > 0:
        status = proto_field_tag(reader, &tag)
        if status == STATUS_OK and tag & 7 == WIRE_GROUP_START:
            if depth == GROUP_DEPTH_MAX:
                return STATUS_CORRUPT
            open_fields[depth] = tag >> 3
            depth += 1
        elif status == STATUS_OK and tag & 7 == WIRE_GROUP_END:
            depth -= 1
            if open_fields[depth] != tag >> 3:
                return STATUS_CORRUPT
        elif status == STATUS_OK:
            status = skip_plain(reader, tag & 7)
        if status != STATUS_OK:
            return status
    return STATUS_OK


cdef int proto_field_skip(ByteReader* reader, uint32_t tag) noexcept nogil:
    if tag & 7 == WIRE_GROUP_START:
        return skip_group(reader, tag)
    return skip_plain(reader, tag & 7)
