"""Writes bytes into a buffer that the caller sized. Any module may use it.

Size first, then encode: running past the end is our bug, so it is an invariant and not a status.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsarx._core.invariant cimport invariant


cdef struct ByteWriter:
    uint8_t* at
    uint8_t* end


cdef inline void byte_writer_start(ByteWriter* self, uint8_t* room, size_t size) noexcept nogil:
    self.at = room
    self.end = room + size


cdef inline uint32_t varint_size(uint64_t value) noexcept nogil:
    cdef uint32_t size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


cdef inline void byte_writer_bytes(ByteWriter* self, const uint8_t* data,
                                   size_t size) noexcept nogil:
    invariant(<size_t>(self.end - self.at) >= size)
    memcpy(self.at, data, size)
    self.at += size


cdef inline void byte_writer_u32_be(ByteWriter* self, uint32_t value) noexcept nogil:
    invariant(self.end - self.at >= 4)
    self.at[0] = <uint8_t>(value >> 24)
    self.at[1] = <uint8_t>(value >> 16)
    self.at[2] = <uint8_t>(value >> 8)
    self.at[3] = <uint8_t>value
    self.at += 4


cdef inline void byte_writer_varint(ByteWriter* self, uint64_t value) noexcept nogil:
    invariant(self.end - self.at >= 10 or <uint32_t>(self.end - self.at) >= varint_size(value))
    while value >= 0x80:
        self.at[0] = <uint8_t>(value | 0x80)
        self.at += 1
        value >>= 7
    self.at[0] = <uint8_t>value
    self.at += 1


cdef inline void byte_writer_block(ByteWriter* self, const uint8_t* data,
                                   uint32_t size) noexcept nogil:
    byte_writer_varint(self, size)
    byte_writer_bytes(self, data, size)
