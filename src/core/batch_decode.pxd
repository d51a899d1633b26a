"""Walks the messages of a batch. Bytes are untrusted: every step is bounded."""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._core.single_metadata cimport METADATA_SEQUENCE_ID, SingleMetadata

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

cdef int entry_check(const EntryParts* parts, uint32_t message_count) noexcept nogil
"""Whether an entry holds so many messages, every one looked at; those of a compressed batch, which
would have to be decompressed first, as far as sizes tell. CORRUPT, TRUNCATED."""


cdef inline bint batch_decode_plain(const uint8_t* data, uint32_t size, uint32_t* at,
                                    BatchMessage* message) noexcept nogil:
    """batch_decode_next of a message with nothing but a payload and a sequence id, for loops.

    Sets payload, payload_size and flags. False: it is not such a one, or not whole; nothing was
    changed, call batch_decode_next.
    """
    cdef uint32_t left = size - at[0]
    cdef const uint8_t* start = data + at[0]
    cdef uint32_t end
    cdef uint32_t field = 6
    cdef uint32_t payload_size
    if at[0] > size or left < 8 or start[0] | start[1] | start[2] or start[3] < 4 or (
            start[4] != 0x18):
        return False
    end = 4 + <uint32_t>start[3]
    payload_size = start[5] & 0x7F
    if start[5] >= 0x80:
        if end < 9 or left < 9 or start[6] >= 0x80:
            return False
        payload_size |= <uint32_t>start[6] << 7
        field = 7
    # The sequence id is the rest of the header: its last byte alone has no continuation bit.
    if end > left or payload_size > left - end or start[field] != 0x40 or (
            end - field > 11 or start[end - 1] >= 0x80):
        return False
    field += 1
    while field < end - 1:
        if start[field] < 0x80:
            return False
        field += 1
    message.payload = start + end
    message.payload_size = payload_size
    message.flags = METADATA_SEQUENCE_ID
    at[0] += end + payload_size
    return True
