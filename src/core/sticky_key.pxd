"""The hash of a message's sticky key, which Key_Shared dispatches by.

murmur3_32, seed 0, of the ordering key, else the partition key (decoded when it is base64), else
"NON_KEY". A key that is there counts even when it is empty. What calls itself base64 and is not
counts as the characters it is. Source: Pulsar's Commands.resolveStickyKey; "NON_KEY": the seeds.
"""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.single_metadata cimport SingleMetadata

cdef enum StickyKeyHash:
    STICKY_NON_KEY = 1110787044         # murmur3_32(0, "NON_KEY"): of a message without a key

cdef uint32_t sticky_key_hash(const SingleMetadata* metadata) noexcept nogil
"""The hash of a message in a batch, decoded."""

cdef uint32_t sticky_key_decode(const uint8_t* key, uint32_t size, uint8_t* bytes) noexcept nogil
"""Write the bytes that a base64 key stands for, size at most, and return how many they are. What is
not base64 is copied as it is."""

cdef uint32_t sticky_key_of_entry(const MessageMetadata* metadata) noexcept nogil
"""The hash of a message that is an entry, or of the first one of a batch."""

cdef uint32_t sticky_key_spread(const MessageMetadata* metadata) noexcept nogil
"""The hash of the messages without a key in an entry, where they are to be spread over the
consumers: that of "<producer name>-<sequence id of the entry>", as in Pulsar 4."""

cdef int sticky_key_of_encoded(const uint8_t* encoded_metadata, uint32_t size,
                               uint32_t* hash) noexcept nogil
"""The hash of a message in a batch, straight from the header that batch_decode_next has shown.

Fast for a key, a payload size and a sequence id; what carries more is decoded in full, with the
statuses of that. A header whose BatchMessage.flags name neither key need not be looked at: it is
STICKY_NON_KEY.
"""
