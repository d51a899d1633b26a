"""Java's String.hashCode, the routing hash of Pulsar's JavaStringHash. Any module may use it."""

from libc.stdint cimport uint8_t, uint32_t

cdef uint32_t java_string_hash(const uint8_t* utf8, uint32_t size) noexcept nogil
"""Over the UTF-16 code units of the text, sign bit cleared.

A byte that does not belong to well-formed UTF-8 counts as one U+FFFD.
java_string_hash("Order-3459134") = 1082638286. Source: Pulsar JavaStringHash.
"""
