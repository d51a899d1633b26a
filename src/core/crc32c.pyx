"""CRC-32C (Castagnoli): the way in; the instructions are in crc32c.h."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from "crc32c.h" nogil:
    void crc32c_prepare() noexcept
    uint32_t crc32c_state_u64(uint32_t state, uint64_t word) noexcept
    uint32_t crc32c_state_bytes(uint32_t state, const uint8_t* data, size_t size) noexcept
    uint32_t crc32c_older_bytes(uint32_t state, const uint8_t* data, size_t size) noexcept
    uint32_t crc32c_table_bytes(uint32_t state, const uint8_t* data, size_t size) noexcept


cdef uint32_t crc32c(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil:
    return ~crc32c_state_bytes(~seed, data, size)


cdef uint32_t crc32c_u64(uint32_t seed, uint64_t value) noexcept nogil:
    return ~crc32c_state_u64(~seed, value)


cdef uint32_t crc32c_older(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil:
    return ~crc32c_older_bytes(~seed, data, size)


cdef uint32_t crc32c_portable(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil:
    return ~crc32c_table_bytes(~seed, data, size)


# At import, which comes before any call: a module that cimports this one imports it first.
crc32c_prepare()
