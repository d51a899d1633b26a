"""The settings that all entries of one producer share: its name, its schema's version, how payloads
are compressed and encrypted, how large an entry may be. Beneath batcher and chunker; with the
producer's mutex held.
"""

from libc.stddef cimport size_t
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport MessageMetadata

cdef enum EnvelopeLimits:
    # bytes that an entry may have above max_message_size, for its metadata; as in Pulsar
    ENTRY_PADDING = 10240
    DECOMPRESSED_SIZE_MAX = 134217728    # what every client decompresses


cdef struct Payload:
    # What goes into an entry, in the bytes of whoever keeps them.
    const uint8_t* data
    uint32_t size


cdef class Envelope:
    cdef str topic_name
    cdef bytes name_utf8
    cdef bytes schema_version            # its version on the topic, in every entry; None: none
    cdef object compress                 # (kind, bytes) -> bytes
    cdef object encrypt                  # bytes -> (metadata fields, bytes); None: all is plain
    cdef uint32_t compression            # 0: none
    cdef uint32_t message_size_max
    cdef bint chunking                   # what does not fit into an entry goes into several

    cdef void fill(self, MessageMetadata* metadata, int64_t publish_ms) noexcept
    """Begin the metadata of an entry of one message."""

    cdef bytes pack(self, MessageMetadata* metadata, Payload* content)
    """Compress a payload. The bytes are to be kept until it was copied; None: it stays as it is."""

    cdef tuple seal(self, MessageMetadata* metadata, Payload* content)
    """Encrypt a payload; as pack."""

    cdef bint fits_entry(self, const MessageMetadata* metadata, uint32_t size) noexcept
    """Whether a payload of so many bytes goes into one entry."""

    cdef int check_size(self, Py_ssize_t size) except -1
    """MessageTooBig: no compression makes a content of so many bytes a message."""

    cdef inline int check_entry(self, uint32_t payload_size, uint32_t entry_size) except -1:
        """MessageTooBig: an entry is larger than consumers take."""
        if payload_size > self.message_size_max or (
                entry_size > self.message_size_max + ENTRY_PADDING):
            self.refuse_size(entry_size)
        return 0

    cdef int refuse_size(self, Py_ssize_t size) except -1


cdef void fill_frame(EntryFrame* frame, const MessageMetadata* metadata,
                     uint32_t entry_size) noexcept
"""Fill in the frame of an entry of one message, or of a chunk."""
