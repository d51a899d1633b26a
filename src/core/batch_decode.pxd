"""Walks the messages of a batch. Bytes are untrusted: every step is bounded."""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.single_metadata cimport SingleMetadata

cdef struct BatchMessage:
    const uint8_t* encoded_metadata
    const uint8_t* payload
    uint32_t encoded_metadata_size
    uint32_t payload_size
    uint32_t flags                   # MetadataFlags of the message

cdef int batch_decode_next(const uint8_t* data, uint32_t size, uint32_t* at,
                           BatchMessage* message) noexcept nogil
"""Take the message that starts at at[0] and move at[0] behind it.

Reads only what a walk needs (sizes and flags): decode the rest with single_metadata_decode on
demand.
Tuned for headers as our own encoder writes them. STATUS_END at the end of the payload; at is
unmoved on failure.
"""
