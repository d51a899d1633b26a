"""Says whether a message is what a selector wants, from its encoded metadata. Bytes are untrusted.

A condition is true, false or unknown, as in SQL: what compares with a property that is missing, or
cannot be read as what it is compared with, is unknown, and a selector wants what it is true of.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t

from pulsarx._core.selector cimport SelectorProgram

cdef struct SelectorMessage:
    const uint8_t* metadata      # encoded
    uint32_t metadata_size
    bint in_batch                # the metadata is SingleMessageMetadata, else MessageMetadata
    int64_t publish_time_ms

cdef int selector_match(const SelectorProgram* program, const SelectorMessage* message,
                        bint* matches) noexcept nogil
"""CORRUPT, TRUNCATED: the metadata is none."""

cdef int selector_match_batch(const SelectorProgram* program, const uint8_t* payload, uint32_t size,
                              uint32_t* at, uint32_t first, uint32_t end,
                              int64_t publish_time_ms, uint8_t* matches) noexcept nogil
"""Ask for messages first .. end - 1 of a batch, of which the first is at at[0]; at moves behind
them. matches: 1 or 0 for each, from that of `first` on.

What cannot be read matches, so that whoever takes it is told. Messages that compaction took out do
not.
"""
