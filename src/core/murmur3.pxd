"""MurmurHash3 x86 32 bit, the hash of sticky keys and of one routing scheme. Any module may use it.

murmur3_32(0, "Order-3459134") = 3112179635. Source: Pulsar Murmur3_32Hash (which clears the sign
bit of this value).
"""

from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t murmur3_32(uint32_t seed, const uint8_t* data, size_t size) noexcept nogil

# The same in pieces: murmur3_blocks as often as needed, first with the seed, then murmur3_end.
cdef uint32_t murmur3_blocks(uint32_t hashed, const uint8_t* data, size_t size) noexcept nogil
"""size: a multiple of 4."""

cdef uint32_t murmur3_end(uint32_t hashed, const uint8_t* tail, size_t size) noexcept nogil
"""size: of the whole; tail: its last size mod 4 bytes."""
