"""MessageMetadata by hand, fields in ascending order as protobuf writes them, and its surroundings.

  field  wire     what                               field  wire     what
      1  block    producer_name, required               18  block    ordering_key
      2  varint   sequence_id, required                 19  varint   deliver_at_time, int64
      3  varint   publish_time, required                20  varint   marker_type (seen, not read)
      4  block    properties {1 key, 2 value}           24  varint   highest_sequence_id
      6  block    partition_key                         25  varint   null_value
      7  block    replicate_to, repeated                26  block    uuid
      8  varint   compression, an enumeration           27  varint   num_chunks_from_msg
      9  varint   uncompressed_size                     28  varint   total_chunk_msg_size
     11  varint   num_messages_in_batch                 29  varint   chunk_id
     12  varint   event_time                            30  varint   null_partition_key
     13  block    encryption_keys (seen, not read)      22  varint   txnid_least_bits (on request)
     16  block    schema_version                        23  varint   txnid_most_bits (on request)
     17  varint   partition_key_b64_encoded

Fields 13, 14 and 15 say how the payload is encrypted; pycore reads them, where it is decrypted.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_block, byte_reader_left, byte_reader_start, byte_reader_take,
    byte_reader_u32_be, byte_reader_varint,
)
from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_block, byte_writer_bytes, byte_writer_start, byte_writer_varint,
    varint_size,
)
from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.invariant cimport invariant
from pulsarx._core.limits cimport METADATA_SIZE_MAX
from pulsarx._core.proto_field cimport WIRE_BLOCK, WIRE_VARINT, proto_field_skip, proto_field_tag
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_END, STATUS_OK

cdef enum:
    FIELD_PRODUCER_NAME = 1
    FIELD_SEQUENCE_ID = 2
    FIELD_PUBLISH_TIME = 3
    FIELD_PROPERTIES = 4
    FIELD_PARTITION_KEY = 6
    FIELD_REPLICATE_TO = 7
    FIELD_COMPRESSION = 8
    FIELD_UNCOMPRESSED_SIZE = 9
    FIELD_MESSAGE_COUNT = 11
    FIELD_EVENT_TIME = 12
    FIELD_ENCRYPTION_KEYS = 13
    FIELD_SCHEMA_VERSION = 16
    FIELD_KEY_BASE64 = 17
    FIELD_ORDERING_KEY = 18
    FIELD_DELIVER_AT = 19
    FIELD_MARKER_TYPE = 20
    FIELD_TRANSACTION_LEAST = 22
    FIELD_TRANSACTION_MOST = 23
    FIELD_HIGHEST_SEQUENCE_ID = 24
    FIELD_NULL_VALUE = 25
    FIELD_UUID = 26
    FIELD_CHUNK_COUNT = 27
    FIELD_CHUNKED_SIZE = 28
    FIELD_CHUNK_ID = 29
    FIELD_NULL_KEY = 30
    REQUIRED_FIELDS = 0b1110  # producer name, sequence id, publish time
    INT32_MAX = 0x7FFFFFFF
    CHUNK_NUMBER_END = 0x80000000    # a piece's numbers are int32: anything beyond is this
    MAGIC_CHECKSUM = 0x0E01
    MAGIC_BROKER_METADATA = 0x0E02


cdef inline uint64_t number_size(uint32_t field, uint64_t value) noexcept nogil:
    return (1 if field < 16 else 2) + varint_size(value)


cdef inline uint64_t block_size(uint32_t field, uint32_t size) noexcept nogil:
    return number_size(field, size) + size


cdef inline void write_number(ByteWriter* writer, uint32_t field, uint64_t value) noexcept nogil:
    byte_writer_varint(writer, field << 3 | WIRE_VARINT)
    byte_writer_varint(writer, value)


cdef inline void write_block(ByteWriter* writer, uint32_t field, const uint8_t* data,
                             uint32_t size) noexcept nogil:
    byte_writer_varint(writer, field << 3 | WIRE_BLOCK)
    byte_writer_block(writer, data, size)


cdef uint32_t message_metadata_size(const MessageMetadata* metadata) noexcept nogil:
    cdef uint32_t flags = metadata.flags
    cdef uint64_t size = block_size(FIELD_PRODUCER_NAME, metadata.producer_name_size)
    size += number_size(FIELD_SEQUENCE_ID, metadata.sequence_id)
    size += number_size(FIELD_PUBLISH_TIME, metadata.publish_time_ms)
    size += properties_size(metadata.properties, metadata.property_count)
    if flags & METADATA_PARTITION_KEY:
        size += block_size(FIELD_PARTITION_KEY, metadata.partition_key_size)
    if flags & METADATA_REPLICATE_TO:
        size += metadata.replicate_to_size
    if metadata.compression:
        size += number_size(FIELD_COMPRESSION, metadata.compression)
    if metadata.uncompressed_size:
        size += number_size(FIELD_UNCOMPRESSED_SIZE, metadata.uncompressed_size)
    if flags & METADATA_BATCH:
        size += number_size(FIELD_MESSAGE_COUNT, metadata.message_count)
    if flags & METADATA_EVENT_TIME:
        size += number_size(FIELD_EVENT_TIME, metadata.event_time_ms)
    if flags & METADATA_ENCRYPTED:
        size += metadata.encryption_size
    if flags & METADATA_SCHEMA_VERSION:
        size += block_size(FIELD_SCHEMA_VERSION, metadata.schema_version_size)
    if flags & METADATA_KEY_BASE64:
        size += number_size(FIELD_KEY_BASE64, 1)
    if flags & METADATA_ORDERING_KEY:
        size += block_size(FIELD_ORDERING_KEY, metadata.ordering_key_size)
    if flags & METADATA_DELIVER_AT:
        size += number_size(FIELD_DELIVER_AT, <uint64_t>metadata.deliver_at_ms)
    if flags & METADATA_HIGHEST_SEQUENCE:
        size += number_size(FIELD_HIGHEST_SEQUENCE_ID, metadata.highest_sequence_id)
    if flags & METADATA_NULL_VALUE:
        size += number_size(FIELD_NULL_VALUE, 1)
    if flags & METADATA_UUID:
        size += block_size(FIELD_UUID, metadata.uuid_size)
        size += number_size(FIELD_CHUNK_COUNT, metadata.chunk_count)
        size += number_size(FIELD_CHUNKED_SIZE, metadata.chunked_size)
        size += number_size(FIELD_CHUNK_ID, metadata.chunk_id)
    if flags & METADATA_NULL_KEY:
        size += number_size(FIELD_NULL_KEY, 1)
    return <uint32_t>size if size >> 32 == 0 else ~<uint32_t>0


cdef void message_metadata_encode(const MessageMetadata* metadata,
                                  ByteWriter* writer) noexcept nogil:
    cdef uint32_t flags = metadata.flags
    write_block(writer, FIELD_PRODUCER_NAME, metadata.producer_name, metadata.producer_name_size)
    write_number(writer, FIELD_SEQUENCE_ID, metadata.sequence_id)
    write_number(writer, FIELD_PUBLISH_TIME, metadata.publish_time_ms)
    properties_encode(metadata.properties, metadata.property_count, FIELD_PROPERTIES, writer)
    if flags & METADATA_PARTITION_KEY:
        write_block(writer, FIELD_PARTITION_KEY, metadata.partition_key,
                    metadata.partition_key_size)
    if flags & METADATA_REPLICATE_TO:
        byte_writer_bytes(writer, metadata.replicate_to, metadata.replicate_to_size)
    if metadata.compression:
        write_number(writer, FIELD_COMPRESSION, metadata.compression)
    if metadata.uncompressed_size:
        write_number(writer, FIELD_UNCOMPRESSED_SIZE, metadata.uncompressed_size)
    if flags & METADATA_BATCH:
        write_number(writer, FIELD_MESSAGE_COUNT, metadata.message_count)
    if flags & METADATA_EVENT_TIME:
        write_number(writer, FIELD_EVENT_TIME, metadata.event_time_ms)
    if flags & METADATA_ENCRYPTED:
        byte_writer_bytes(writer, metadata.encryption, metadata.encryption_size)
    if flags & METADATA_SCHEMA_VERSION:
        write_block(writer, FIELD_SCHEMA_VERSION, metadata.schema_version,
                    metadata.schema_version_size)
    if flags & METADATA_KEY_BASE64:
        write_number(writer, FIELD_KEY_BASE64, 1)
    if flags & METADATA_ORDERING_KEY:
        write_block(writer, FIELD_ORDERING_KEY, metadata.ordering_key, metadata.ordering_key_size)
    if flags & METADATA_DELIVER_AT:
        write_number(writer, FIELD_DELIVER_AT, <uint64_t>metadata.deliver_at_ms)
    if flags & METADATA_HIGHEST_SEQUENCE:
        write_number(writer, FIELD_HIGHEST_SEQUENCE_ID, metadata.highest_sequence_id)
    if flags & METADATA_NULL_VALUE:
        write_number(writer, FIELD_NULL_VALUE, 1)
    if flags & METADATA_UUID:
        write_block(writer, FIELD_UUID, metadata.uuid, metadata.uuid_size)
        write_number(writer, FIELD_CHUNK_COUNT, metadata.chunk_count)
        write_number(writer, FIELD_CHUNKED_SIZE, metadata.chunked_size)
        write_number(writer, FIELD_CHUNK_ID, metadata.chunk_id)
    if flags & METADATA_NULL_KEY:
        write_number(writer, FIELD_NULL_KEY, 1)


cdef void take_block(MessageMetadata* metadata, uint32_t field, const uint8_t* bytes,
                     uint32_t size) noexcept nogil:
    if field == FIELD_PRODUCER_NAME:
        metadata.producer_name = bytes
        metadata.producer_name_size = size
    elif field == FIELD_PROPERTIES:
        metadata.flags |= METADATA_PROPERTIES
        metadata.property_count += 1
    elif field == FIELD_ENCRYPTION_KEYS:
        metadata.flags |= METADATA_ENCRYPTED
    elif field == FIELD_PARTITION_KEY:
        metadata.flags |= METADATA_PARTITION_KEY
        metadata.partition_key = bytes
        metadata.partition_key_size = size
    elif field == FIELD_SCHEMA_VERSION:
        metadata.flags |= METADATA_SCHEMA_VERSION
        metadata.schema_version = bytes
        metadata.schema_version_size = size
    elif field == FIELD_ORDERING_KEY:
        metadata.flags |= METADATA_ORDERING_KEY
        metadata.ordering_key = bytes
        metadata.ordering_key_size = size
    elif field == FIELD_UUID:
        metadata.flags |= METADATA_UUID
        metadata.uuid = bytes
        metadata.uuid_size = size


cdef inline void set_flag(MessageMetadata* metadata, uint32_t flag, bint value) noexcept nogil:
    metadata.flags = metadata.flags | flag if value else metadata.flags & ~flag


cdef int take_number(MessageMetadata* metadata, uint32_t field, uint64_t value) noexcept nogil:
    if field == FIELD_SEQUENCE_ID:
        metadata.sequence_id = value
    elif field == FIELD_PUBLISH_TIME:
        metadata.publish_time_ms = value
    elif field == FIELD_COMPRESSION:
        # An unknown kind stays what it is: decompression refuses it by number.
        metadata.compression = <uint32_t>value
    elif field == FIELD_UNCOMPRESSED_SIZE:
        if value >> 32 != 0:
            return STATUS_CORRUPT
        metadata.uncompressed_size = <uint32_t>value
    elif field == FIELD_MESSAGE_COUNT:
        if value < 1 or value > INT32_MAX:
            return STATUS_CORRUPT
        metadata.flags |= METADATA_BATCH
        metadata.message_count = <uint32_t>value
    elif field == FIELD_EVENT_TIME:
        metadata.flags |= METADATA_EVENT_TIME
        metadata.event_time_ms = value
    elif field == FIELD_DELIVER_AT:
        metadata.flags |= METADATA_DELIVER_AT
        metadata.deliver_at_ms = <int64_t>value
    elif field == FIELD_HIGHEST_SEQUENCE_ID:
        metadata.flags |= METADATA_HIGHEST_SEQUENCE
        metadata.highest_sequence_id = value
    elif field == FIELD_KEY_BASE64:
        set_flag(metadata, METADATA_KEY_BASE64, value != 0)
    elif field == FIELD_NULL_VALUE:
        set_flag(metadata, METADATA_NULL_VALUE, value != 0)
    elif field == FIELD_NULL_KEY:
        set_flag(metadata, METADATA_NULL_KEY, value != 0)
    elif field == FIELD_MARKER_TYPE:
        metadata.flags |= METADATA_MARKER
    elif FIELD_CHUNK_COUNT <= field <= FIELD_CHUNK_ID:
        metadata.flags |= METADATA_UUID
        if value > INT32_MAX:
            value = <uint64_t>CHUNK_NUMBER_END
        if field == FIELD_CHUNK_COUNT:
            metadata.chunk_count = <uint32_t>value
        elif field == FIELD_CHUNKED_SIZE:
            metadata.chunked_size = <uint32_t>value
        else:
            metadata.chunk_id = <uint32_t>value
    return STATUS_OK


cdef int message_metadata_decode(const uint8_t* data, uint32_t size,
                                 MessageMetadata* metadata) noexcept nogil:
    cdef ByteReader reader
    cdef MessageMetadata taken
    cdef const uint8_t* bytes = NULL
    cdef uint32_t block = 0
    cdef uint32_t tag = 0
    cdef uint64_t value = 0
    cdef uint32_t seen = 0
    cdef int status
    memset(&taken, 0, sizeof(taken))
    taken.message_count = 1
    byte_reader_start(&reader, data, size)
    while reader.at < reader.end:
        status = proto_field_tag(&reader, &tag)
        if status != STATUS_OK:
            return status
        if tag & 7 == WIRE_VARINT:
            status = byte_reader_varint(&reader, &value)
            if status == STATUS_OK:
                status = take_number(&taken, tag >> 3, value)
        elif tag & 7 == WIRE_BLOCK:
            status = byte_reader_block(&reader, &bytes, &block)
            if status == STATUS_OK:
                take_block(&taken, tag >> 3, bytes, block)
        else:
            status = proto_field_skip(&reader, tag)
        if status != STATUS_OK:
            return status
        if is_required(tag):
            seen |= <uint32_t>1 << (tag >> 3)
    if seen != REQUIRED_FIELDS:
        return STATUS_CORRUPT
    metadata[0] = taken
    return STATUS_OK


cdef inline bint is_required(uint32_t tag) noexcept nogil:
    return tag == 0x0A or tag == 0x10 or tag == 0x18


cdef int replicate_to_next(ByteReader* reader, const uint8_t** field,
                           uint32_t* field_size) noexcept nogil:
    cdef const uint8_t* start
    cdef uint32_t tag = 0
    cdef int status
    while reader.at < reader.end:
        start = reader.at
        status = proto_field_tag(reader, &tag)
        if status == STATUS_OK:
            status = proto_field_skip(reader, tag)
        if status != STATUS_OK:
            return status
        if tag == (FIELD_REPLICATE_TO << 3 | WIRE_BLOCK):
            field[0] = start
            field_size[0] = <uint32_t>(reader.at - start)
            return STATUS_OK
    return STATUS_END


cdef bint message_metadata_transaction(const uint8_t* data, uint32_t size, uint64_t* most,
                                      uint64_t* least) noexcept nogil:
    cdef ByteReader reader
    cdef uint32_t tag = 0
    cdef uint32_t found = 0
    cdef int status = STATUS_OK
    byte_reader_start(&reader, data, size)
    while status == STATUS_OK and byte_reader_left(&reader):
        status = proto_field_tag(&reader, &tag)
        if status != STATUS_OK:
            return False
        if tag == FIELD_TRANSACTION_LEAST << 3 | WIRE_VARINT:
            status = byte_reader_varint(&reader, least)
            found |= 1
        elif tag == FIELD_TRANSACTION_MOST << 3 | WIRE_VARINT:
            status = byte_reader_varint(&reader, most)
            found |= 2
        else:
            status = proto_field_skip(&reader, tag)
    return status == STATUS_OK and found == 3


cdef uint32_t transaction_id_encode(uint64_t most, uint64_t least, uint8_t* room) noexcept nogil:
    cdef ByteWriter writer
    byte_writer_start(&writer, room, TRANSACTION_ID_SIZE_MAX)
    write_number(&writer, FIELD_TRANSACTION_LEAST, least)
    write_number(&writer, FIELD_TRANSACTION_MOST, most)
    return <uint32_t>(writer.at - room)


cdef inline uint32_t peek_magic(const ByteReader* reader) noexcept nogil:
    if byte_reader_left(reader) < 2:
        return 0
    return (<uint32_t>reader.at[0] << 8) | reader.at[1]


cdef int skip_broker_metadata(ByteReader* reader) noexcept nogil:
    cdef const uint8_t* bytes = NULL
    cdef uint32_t size = 0
    cdef int status = byte_reader_take(reader, 2, &bytes)
    invariant(status == STATUS_OK)               # the magic was there
    status = byte_reader_u32_be(reader, &size)
    if status == STATUS_OK:
        status = byte_reader_take(reader, size, &bytes)
    return status


cdef int take_checksum(ByteReader* reader, bint verify, EntryParts* parts) noexcept nogil:
    cdef const uint8_t* bytes = NULL
    cdef int status = byte_reader_take(reader, 2, &bytes)
    invariant(status == STATUS_OK)               # the magic was there
    status = byte_reader_u32_be(reader, &parts.checksum)
    if status != STATUS_OK:
        return status
    parts.has_checksum = True
    if verify and crc32c(0, reader.at, byte_reader_left(reader)) != parts.checksum:
        return STATUS_CORRUPT
    return STATUS_OK


cdef int entry_decode(const uint8_t* entry, uint32_t size, bint verify,
                      EntryParts* parts) noexcept nogil:
    cdef ByteReader reader
    cdef EntryParts taken
    cdef uint32_t metadata_size = 0
    cdef int status = STATUS_OK
    taken.checksum = 0
    taken.has_checksum = False
    byte_reader_start(&reader, entry, size)
    # An entry without checksum starts with neither magic: as a size it is above METADATA_SIZE_MAX.
    if peek_magic(&reader) == MAGIC_BROKER_METADATA:
        status = skip_broker_metadata(&reader)
    if status == STATUS_OK and peek_magic(&reader) == MAGIC_CHECKSUM:
        status = take_checksum(&reader, verify, &taken)
    if status == STATUS_OK:
        status = byte_reader_u32_be(&reader, &metadata_size)
    if status == STATUS_OK and metadata_size > METADATA_SIZE_MAX:
        status = STATUS_CORRUPT
    if status == STATUS_OK:
        taken.encoded_metadata_size = metadata_size
        status = byte_reader_take(&reader, metadata_size, &taken.encoded_metadata)
    if status == STATUS_OK:
        status = message_metadata_decode(taken.encoded_metadata, metadata_size, &taken.metadata)
    if status != STATUS_OK:
        return status
    taken.payload = reader.at
    taken.payload_size = <uint32_t>byte_reader_left(&reader)
    parts[0] = taken
    return STATUS_OK
