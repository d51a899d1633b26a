"""MessageMetadata, the header of an entry. Layout in FORMAT.md; source: PulsarApi.proto.

An entry: 0x0e01 u16 | crc32c u32 | metadata size u32 | MessageMetadata | payload, integers big
endian; the checksum covers everything after itself and may be absent (then no 0x0e01 either).
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.byte_reader cimport ByteReader
from pulsarx._core.byte_writer cimport ByteWriter
from pulsarx._core.limits cimport ENTRY_MESSAGE_SIZE_MIN
from pulsarx._core.single_metadata cimport METADATA_BATCH, PropertyView

cdef struct MessageMetadata:
    uint32_t flags                   # MetadataFlags
    uint32_t compression             # 0 none, 1 LZ4, 2 ZLIB, 3 ZSTD, 4 SNAPPY
    uint32_t uncompressed_size       # 0: not written
    uint32_t message_count           # 1 unless METADATA_BATCH
    uint64_t sequence_id
    uint64_t highest_sequence_id
    uint64_t publish_time_ms
    uint64_t event_time_ms
    int64_t deliver_at_ms
    const uint8_t* producer_name
    const uint8_t* partition_key
    const uint8_t* ordering_key
    const uint8_t* schema_version
    const uint8_t* uuid              # of METADATA_UUID, and what follows it: a piece
    uint32_t uuid_size
    uint32_t chunk_count             # pieces of the message
    uint32_t chunked_size            # bytes of all pieces together
    uint32_t chunk_id                # which one this is, from 0
    uint32_t producer_name_size
    uint32_t partition_key_size
    uint32_t ordering_key_size
    uint32_t schema_version_size
    const uint8_t* encryption        # encode only, of METADATA_ENCRYPTED: fields 13 to 15
    uint32_t encryption_size
    uint32_t replicate_to_size
    const uint8_t* replicate_to      # encode only, of METADATA_REPLICATE_TO: all fields 7
    const PropertyView* properties   # encode only; decode with property_next(reader, 4, ...)
    uint32_t property_count

cdef struct EntryParts:
    MessageMetadata metadata
    const uint8_t* encoded_metadata
    const uint8_t* payload
    uint32_t encoded_metadata_size
    uint32_t payload_size
    uint32_t checksum
    bint has_checksum

cdef uint32_t message_metadata_size(const MessageMetadata* metadata) noexcept nogil
cdef void message_metadata_encode(const MessageMetadata* metadata,
                                  ByteWriter* writer) noexcept nogil
cdef int message_metadata_decode(const uint8_t* data, uint32_t size,
                                 MessageMetadata* metadata) noexcept nogil
cdef bint message_metadata_transaction(const uint8_t* data, uint32_t size, uint64_t* most,
                                      uint64_t* least) noexcept nogil
"""The id of the transaction that encoded metadata name, as a client of a network writes it; False:
they name none, or no whole one."""

cdef enum:
    TRANSACTION_ID_SIZE_MAX = 24     # two tags and two numbers

cdef uint32_t transaction_id_encode(uint64_t most, uint64_t least, uint8_t* room) noexcept nogil
"""Write both fields of the id of a transaction; their size."""

cdef int replicate_to_next(ByteReader* reader, const uint8_t** field,
                           uint32_t* field_size) noexcept nogil
"""Go to the next field 7, as encode takes it. reader: started over the encoded metadata.

STATUS_END after the last one.
"""

cdef int entry_decode(const uint8_t* entry, uint32_t size, bint verify,
                      EntryParts* parts) noexcept nogil
"""Take an entry apart. verify: check its checksum too (STATUS_CORRUPT when it does not hold)."""

cdef inline bint entry_count_holds(const EntryParts* parts, uint32_t message_count) noexcept nogil:
    """Whether the entry holds so many messages, as far as its metadata and sizes tell."""
    cdef uint32_t size = parts.payload_size
    if parts.metadata.flags & METADATA_BATCH == 0:
        return message_count == 1
    if parts.metadata.compression:
        size = parts.metadata.uncompressed_size
    return parts.metadata.message_count == message_count and (
        <uint64_t>message_count * ENTRY_MESSAGE_SIZE_MIN <= size)
