"""SingleMessageMetadata, the header of one message inside a batch. Layout in FORMAT.md; source:
PulsarApi.proto.

Encode: fill the struct, ask the size, write. Decode: pointers into the given bytes, nothing copied.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._core.byte_reader cimport ByteReader
from pulsarx._core.byte_writer cimport ByteWriter

cdef enum MetadataFlags:
    METADATA_PARTITION_KEY = 1
    METADATA_ORDERING_KEY = 2
    METADATA_EVENT_TIME = 4
    METADATA_SEQUENCE_ID = 8
    METADATA_KEY_BASE64 = 16
    METADATA_NULL_VALUE = 32
    METADATA_NULL_KEY = 64
    METADATA_COMPACTED_OUT = 128
    METADATA_PROPERTIES = 256        # decode: at least one property is there
    METADATA_BATCH = 512             # num_messages_in_batch is present: the payload is a batch
    METADATA_DELIVER_AT = 1024
    METADATA_HIGHEST_SEQUENCE = 2048
    METADATA_SCHEMA_VERSION = 4096
    METADATA_UUID = 8192             # chunk fields are present
    METADATA_MARKER = 16384
    METADATA_ENCRYPTED = 32768       # encryption_keys are present: so is the payload
    METADATA_REPLICATE_TO = 65536    # the message says where it is to be replicated to

cdef struct PropertyView:
    const uint8_t* key
    const uint8_t* value
    uint32_t key_size
    uint32_t value_size

cdef struct SingleMetadata:
    uint32_t flags                   # MetadataFlags
    uint32_t payload_size
    uint64_t event_time_ms
    uint64_t sequence_id
    const uint8_t* partition_key
    const uint8_t* ordering_key
    uint32_t partition_key_size
    uint32_t ordering_key_size
    const PropertyView* properties   # encode only; decode with property_next
    uint32_t property_count          # decode sets it too

cdef uint32_t single_metadata_size(const SingleMetadata* metadata) noexcept nogil
cdef void single_metadata_encode(const SingleMetadata* metadata, ByteWriter* writer) noexcept nogil
cdef int single_metadata_decode(const uint8_t* data, uint32_t size,
                                SingleMetadata* metadata) noexcept nogil
"""Unknown fields are skipped. STATUS_CORRUPT or STATUS_TRUNCATED: not such a message, or
payload_size missing."""

cdef int property_next(ByteReader* reader, uint32_t field, PropertyView* property) noexcept nogil
"""Go to the next property (protobuf field `field`: 1 in SingleMessageMetadata, 4 in
MessageMetadata).

reader: started over the whole encoded metadata. STATUS_END after the last one.
"""

cdef uint64_t properties_size(const PropertyView* properties, uint32_t count) noexcept nogil
cdef void properties_encode(const PropertyView* properties, uint32_t count, uint32_t field,
                            ByteWriter* writer) noexcept nogil
"""All properties as protobuf field `field`: 1 in SingleMessageMetadata, 4 in MessageMetadata."""
