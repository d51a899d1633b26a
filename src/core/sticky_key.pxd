"""The hash of a message's sticky key, which Key_Shared dispatches by.

murmur3_32, seed 0, of the ordering key, else the partition key (decoded when it is base64), else
"NON_KEY".
"""

from libc.stdint cimport uint8_t, uint32_t

from pulsarx._core.single_metadata cimport SingleMetadata

cdef uint32_t sticky_key_hash(const SingleMetadata* metadata) noexcept nogil

cdef int sticky_key_of_encoded(const uint8_t* encoded_metadata, uint32_t size,
                               uint32_t* hash) noexcept nogil
"""Of a message in a batch, straight from its header: only the key fields are looked at. CORRUPT."""
