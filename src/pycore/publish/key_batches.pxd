"""Batches of one key each (BatchingType.KeyBased). Used by batcher, with the producer's mutex held.

Messages wait in one open batch per sticky key: the ordering key, else the key, else none. The
limits of a batch count over all of them together, and they are closed together.
"""

from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.single_metadata cimport SingleMetadata
from pulsarx._pycore.publish.open_batch cimport OpenBatch


cdef class KeyBatches:
    cdef dict by_key                     # kind and bytes of the sticky key: OpenBatch
    cdef list spare                      # closed ones, whose buffers are used again
    cdef OpenBatch last                  # that of the last message
    cdef OpenBatch awaited               # a send waits for this one alone
    cdef size_t headroom
    cdef readonly uint32_t message_count # in all of them
    cdef uint64_t size                   # bytes of all of them

    cdef bint fits(self, const SingleMetadata* metadata, uint64_t size_max) noexcept
    """Whether the message may join the batches there are."""

    cdef OpenBatch batch_of(self, const SingleMetadata* metadata)
    """The batch of the message's key, empty if it is its first."""

    cdef int added(self, const SingleMetadata* metadata, OpenBatch batch) except -1
    """The message is in its batch."""

    cdef list ready(self)
    """All of them, ordered by their last sequence id.

    So a topic that drops what it has seen (sequence id of a batch: that of its last message) drops
    none of them.
    """

    cdef int forget_closed(self) except -1
    """Drop the batches that were published or given up, and keep their buffers for new ones."""
