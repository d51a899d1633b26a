# cython: language_level=3
"""Body of key_batches.pxd.

Source: Pulsar's BatchMessageKeyBasedContainer.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stddef cimport size_t
from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport batch_encode_payload_size
from pulsarx._core.single_metadata cimport (
    METADATA_ORDERING_KEY, METADATA_PARTITION_KEY, SingleMetadata, single_metadata_size,
)
from pulsarx._pycore.publish.open_batch cimport OpenBatch

cdef enum:
    HEADROOM = 320             # for the metadata in front, without the producer's name
    CAPACITY = 512             # of a new buffer: batches of one key are small
    KEPT_CAPACITY = 16384      # larger buffers are not kept
    KEPT_BATCHES = 1000


cdef class KeyBatches:
    """The open batches of one producer."""

    def __init__(self, size_t name_size) -> None:
        """name_size: bytes of the producer's name."""
        self.by_key = {}
        self.spare = []
        self.headroom = HEADROOM + name_size

    cdef bint fits(self, const SingleMetadata* metadata, uint64_t size_max) noexcept:
        return self.message_count == 0 or self.size + size_of(metadata) <= size_max

    cdef OpenBatch batch_of(self, const SingleMetadata* metadata):
        cdef object key = sticky_key(metadata)
        cdef OpenBatch found = self.by_key.get(key)
        if found is None:
            found = self.spare.pop() if self.spare else OpenBatch(self.headroom, CAPACITY)
            self.by_key[key] = found
        return found

    cdef int added(self, const SingleMetadata* metadata, OpenBatch batch) except -1:
        self.last = batch
        self.message_count += 1
        self.size += size_of(metadata)
        return 0

    cdef list ready(self):
        cdef OpenBatch each
        cdef list batches = [each for each in self.by_key.values() if each.batch.message_count]
        batches.sort()
        return batches

    cdef int forget_closed(self) except -1:
        cdef OpenBatch each
        cdef dict left = {}
        self.message_count = 0
        self.size = 0
        for key, each in self.by_key.items():
            if each.batch.message_count:
                left[key] = each
                self.message_count += each.batch.message_count
                self.size += batch_encode_payload_size(&each.batch)
            elif each.batch.capacity <= KEPT_CAPACITY and len(self.spare) < KEPT_BATCHES:
                self.spare.append(each)
        self.by_key = left
        self.last = None
        return 0


cdef inline uint32_t size_of(const SingleMetadata* metadata) noexcept:
    """How many bytes a message adds to its batch."""
    return 4 + single_metadata_size(metadata) + metadata.payload_size


cdef bytes sticky_key(const SingleMetadata* metadata):
    """Return the key that all messages of a batch share. An ordering key and an equal key
    differ."""
    if metadata.flags & METADATA_ORDERING_KEY:
        return b"o" + PyBytes_FromStringAndSize(
            <const char*>metadata.ordering_key, metadata.ordering_key_size)
    if metadata.flags & METADATA_PARTITION_KEY:
        return b"k" + PyBytes_FromStringAndSize(
            <const char*>metadata.partition_key, metadata.partition_key_size)
    return b""
