"""CRC-32C (Castagnoli), the checksum of Pulsar's entries and of every file here. Any module may use
it.

Hardware where the processor has it (checked once at run time), a table otherwise.
crc32c("123456789") = 0xe3069283.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef uint32_t crc32c(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil
"""seed: 0 to start, or an earlier result to go on from there."""

cdef uint32_t crc32c_u64(uint32_t seed, uint64_t value) noexcept nogil
"""The checksum of the eight little-endian bytes of value; a few cycles."""

cdef uint32_t crc32c_older(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil
"""Compute it like processors without AVX-512."""

cdef uint32_t crc32c_portable(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil
"""Compute it like processors without any such instruction."""
