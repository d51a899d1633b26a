"""Makes valid UTF-8 of text columns: Arrow's strings must be valid. For arrow_block alone."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef bint text_is_valid(const uint8_t* data, uint32_t size) noexcept nogil

cdef uint64_t text_repair(const uint8_t* data, uint32_t size, uint8_t* room) noexcept nogil
"""Copy, with U+FFFD for what is not UTF-8, as Python's `replace`; answers the size.

room: three times the size.
"""
