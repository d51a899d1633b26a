# cython: language_level=3
"""Body of envelope.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.entry_frame cimport ENTRY_CHUNK, ENTRY_COMPRESSED, EntryFrame
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_size
from pulsarx._core.single_metadata cimport (
    METADATA_ENCRYPTED, METADATA_SCHEMA_VERSION, METADATA_UUID,
)
from pulsarx._core.sticky_key cimport sticky_key_of_entry


cdef class Envelope:
    """See the pxd."""

    def __init__(self, object options, str name not None, str topic_name not None, object compress,
                 uint32_t message_size_max) -> None:
        """options: a ProducerOptions. name: of the producer."""
        self.topic_name = topic_name
        self.name_utf8 = name.encode()
        self.compress = compress
        self.compression = int(options.compression_type)
        self.message_size_max = message_size_max
        self.chunking = options.chunking_enabled

    cdef void fill(self, MessageMetadata* metadata, int64_t publish_ms) noexcept:
        memset(metadata, 0, sizeof(MessageMetadata))
        metadata.message_count = 1
        metadata.publish_time_ms = <uint64_t>publish_ms
        metadata.producer_name = <const uint8_t*>PyBytes_AS_STRING(self.name_utf8)
        metadata.producer_name_size = <uint32_t>PyBytes_GET_SIZE(self.name_utf8)
        if self.schema_version is not None:
            metadata.flags = METADATA_SCHEMA_VERSION
            metadata.schema_version = <const uint8_t*>PyBytes_AS_STRING(self.schema_version)
            metadata.schema_version_size = <uint32_t>PyBytes_GET_SIZE(self.schema_version)

    cdef bytes pack(self, MessageMetadata* metadata, Payload* content):
        cdef bytes packed
        if self.compression == 0 or content.size == 0:
            return None
        packed = self.compress(self.compression, content.data[:content.size])
        metadata.compression = self.compression
        metadata.uncompressed_size = content.size
        content.data = <const uint8_t*>PyBytes_AS_STRING(packed)
        content.size = <uint32_t>PyBytes_GET_SIZE(packed)
        return packed

    cdef tuple seal(self, MessageMetadata* metadata, Payload* content):
        cdef bytes fields
        cdef bytes secret
        if self.encrypt is None:
            return None
        fields, secret = self.encrypt(content.data[:content.size])
        metadata.flags |= METADATA_ENCRYPTED
        metadata.encryption = <const uint8_t*>PyBytes_AS_STRING(fields)
        metadata.encryption_size = <uint32_t>PyBytes_GET_SIZE(fields)
        content.data = <const uint8_t*>PyBytes_AS_STRING(secret)
        content.size = <uint32_t>PyBytes_GET_SIZE(secret)
        return fields, secret

    cdef bint fits_entry(self, const MessageMetadata* metadata, uint32_t size) noexcept:
        return <uint64_t>size + message_metadata_size(metadata) <= self.message_size_max

    cdef int check_size(self, Py_ssize_t size) except -1:
        if size <= self.message_size_max:
            return 0
        if self.compression:
            if size > DECOMPRESSED_SIZE_MAX:
                raise errors.MessageTooBig(
                    detail=f"send {size} bytes to {self.topic_name}: consumers decompress "
                    f"{DECOMPRESSED_SIZE_MAX} bytes at most",
                    size=size, max_size=DECOMPRESSED_SIZE_MAX)
            return 0
        if not self.chunking:
            self.refuse_size(size)
        if size > INT32_MAX:
            raise errors.MessageTooBig(
                detail=f"send {size} bytes to {self.topic_name}: a message in chunks is at most "
                f"{INT32_MAX} bytes long", size=size, max_size=INT32_MAX)
        return 0

    cdef int refuse_size(self, Py_ssize_t size) except -1:
        raise errors.MessageTooBig(
            detail=f"send {size} bytes to {self.topic_name}: max_message_size is "
            f"{self.message_size_max}",
            size=size, max_size=self.message_size_max)


cdef void fill_frame(EntryFrame* frame, const MessageMetadata* metadata,
                     uint32_t entry_size) noexcept:
    memset(frame, 0, sizeof(EntryFrame))
    frame.entry_size = entry_size
    frame.message_count = 1
    frame.publish_time_ms = <int64_t>metadata.publish_time_ms
    frame.deliver_at_ms = metadata.deliver_at_ms
    frame.flags = (ENTRY_COMPRESSED if metadata.compression else 0) | (
        ENTRY_CHUNK if metadata.flags & METADATA_UUID else 0)
    frame.sticky_hash = sticky_key_of_entry(metadata)
