"""Walks the messages of a batch. Bytes are untrusted: every step is bounded."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

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


cdef struct BatchShape:
    uint64_t head                    # the first bytes, up to the tag of the sequence id
    uint64_t head_mask
    uint64_t sequence_end            # of the last bytes of the header: their continuation bits
    uint64_t sequence_mask
    uint32_t sequence_at             # where the sequence id begins
    uint32_t header_size             # in front of the payload
    uint32_t payload_size
    uint32_t size                    # of both


cdef inline uint64_t load_word(const uint8_t* at) noexcept nogil:
    cdef uint64_t word
    memcpy(&word, at, 8)
    return word


cdef inline void batch_decode_shape(const uint8_t* data, const BatchMessage* message, uint32_t at,
                                    uint32_t behind, BatchShape* shape) noexcept nogil:
    """Fill in the shape of the message that batch_decode_plain took from at to behind; the messages
    after it often have the same."""
    cdef uint32_t sequence_size
    shape.payload_size = message.payload_size
    shape.size = behind - at
    shape.header_size = shape.size - shape.payload_size
    shape.sequence_at = 8 if data[at + 5] >= 0x80 else 7
    shape.head_mask = <uint64_t>-1 >> (64 - 8 * shape.sequence_at)
    shape.head = load_word(data + at) & shape.head_mask
    sequence_size = shape.header_size - shape.sequence_at
    if sequence_size > 8:
        sequence_size = 8
        shape.head_mask = 0              # and head is not 0: none is like it
    shape.sequence_mask = <uint64_t>0x8080808080808080 >> (64 - 8 * sequence_size)
    shape.sequence_end = shape.sequence_mask & ~(<uint64_t>0x80 << (8 * sequence_size - 8))


cdef inline bint batch_decode_alike(const uint8_t* data, uint32_t size, uint32_t at,
                                    const BatchShape* shape) noexcept nogil:
    """Whether the message at `at`, which is no more than size, has the same sizes in the same
    places and is all there: what batch_decode_plain would take. False: ask that."""
    return (size - at >= shape.size and size - at >= shape.sequence_at + 8
            and load_word(data + at) & shape.head_mask == shape.head
            and load_word(data + at + shape.sequence_at) & shape.sequence_mask
            == shape.sequence_end)
