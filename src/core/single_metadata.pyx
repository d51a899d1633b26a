"""SingleMessageMetadata by hand, fields in ascending order as protobuf writes them.

  field  wire     what
      1  block    properties {1 key, 2 value}, repeated
      2  block    partition_key
      3  varint   payload_size, int32, required
      4  varint   compacted_out
      5  varint   event_time
      6  varint   partition_key_b64_encoded
      7  block    ordering_key
      8  varint   sequence_id
      9  varint   null_value
     10  varint   null_partition_key

A false flag is left out, as the C++ client does; Java writes it. Readers see no difference.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.byte_reader cimport (
    ByteReader, byte_reader_block, byte_reader_start, byte_reader_varint,
)
from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_block, byte_writer_varint, varint_size,
)
from pulsarx._core.proto_field cimport WIRE_BLOCK, proto_field_skip, proto_field_tag
from pulsarx._core.status cimport STATUS_CORRUPT, STATUS_END, STATUS_OK

cdef enum:
    TAG_PROPERTY = 0x0A
    TAG_PARTITION_KEY = 0x12
    TAG_PAYLOAD_SIZE = 0x18
    TAG_COMPACTED_OUT = 0x20
    TAG_EVENT_TIME = 0x28
    TAG_KEY_BASE64 = 0x30
    TAG_ORDERING_KEY = 0x3A
    TAG_SEQUENCE_ID = 0x40
    TAG_NULL_VALUE = 0x48
    TAG_NULL_KEY = 0x50
    TAG_PROPERTY_KEY = 0x0A
    TAG_PROPERTY_VALUE = 0x12
    PAYLOAD_SIZE_MAX = 0x7FFFFFFF  # int32


cdef inline uint64_t property_inner_size(const PropertyView* property) noexcept nogil:
    return (2 + <uint64_t>varint_size(property.key_size) + property.key_size
            + varint_size(property.value_size) + property.value_size)


cdef uint64_t properties_size(const PropertyView* properties, uint32_t count) noexcept nogil:
    cdef uint64_t size = 0
    cdef uint64_t inner
    cdef uint32_t index
    for index in range(count):
        inner = property_inner_size(&properties[index])
        size += 1 + varint_size(inner) + inner
    return size


cdef void properties_encode(const PropertyView* properties, uint32_t count, uint32_t field,
                            ByteWriter* writer) noexcept nogil:
    cdef uint32_t index
    for index in range(count):
        byte_writer_varint(writer, field << 3 | WIRE_BLOCK)
        byte_writer_varint(writer, property_inner_size(&properties[index]))
        byte_writer_varint(writer, TAG_PROPERTY_KEY)
        byte_writer_block(writer, properties[index].key, properties[index].key_size)
        byte_writer_varint(writer, TAG_PROPERTY_VALUE)
        byte_writer_block(writer, properties[index].value, properties[index].value_size)


cdef uint32_t single_metadata_size(const SingleMetadata* metadata) noexcept nogil:
    cdef uint32_t flags = metadata.flags
    cdef uint64_t size = 1 + varint_size(metadata.payload_size)
    size += properties_size(metadata.properties, metadata.property_count)
    if flags & METADATA_PARTITION_KEY:
        size += 1 + varint_size(metadata.partition_key_size)
        size += metadata.partition_key_size
    if flags & METADATA_COMPACTED_OUT:
        size += 2
    if flags & METADATA_EVENT_TIME:
        size += 1 + varint_size(metadata.event_time_ms)
    if flags & METADATA_KEY_BASE64:
        size += 2
    if flags & METADATA_ORDERING_KEY:
        size += 1 + varint_size(metadata.ordering_key_size)
        size += metadata.ordering_key_size
    if flags & METADATA_SEQUENCE_ID:
        size += 1 + varint_size(metadata.sequence_id)
    if flags & METADATA_NULL_VALUE:
        size += 2
    if flags & METADATA_NULL_KEY:
        size += 2
    return <uint32_t>size if size >> 32 == 0 else ~<uint32_t>0


cdef void single_metadata_encode(const SingleMetadata* metadata, ByteWriter* writer) noexcept nogil:
    cdef uint32_t flags = metadata.flags
    properties_encode(metadata.properties, metadata.property_count, 1, writer)
    if flags & METADATA_PARTITION_KEY:
        byte_writer_varint(writer, TAG_PARTITION_KEY)
        byte_writer_block(writer, metadata.partition_key, metadata.partition_key_size)
    byte_writer_varint(writer, TAG_PAYLOAD_SIZE)
    byte_writer_varint(writer, metadata.payload_size)
    if flags & METADATA_COMPACTED_OUT:
        byte_writer_varint(writer, TAG_COMPACTED_OUT)
        byte_writer_varint(writer, 1)
    if flags & METADATA_EVENT_TIME:
        byte_writer_varint(writer, TAG_EVENT_TIME)
        byte_writer_varint(writer, metadata.event_time_ms)
    if flags & METADATA_KEY_BASE64:
        byte_writer_varint(writer, TAG_KEY_BASE64)
        byte_writer_varint(writer, 1)
    if flags & METADATA_ORDERING_KEY:
        byte_writer_varint(writer, TAG_ORDERING_KEY)
        byte_writer_block(writer, metadata.ordering_key, metadata.ordering_key_size)
    if flags & METADATA_SEQUENCE_ID:
        byte_writer_varint(writer, TAG_SEQUENCE_ID)
        byte_writer_varint(writer, metadata.sequence_id)
    if flags & METADATA_NULL_VALUE:
        byte_writer_varint(writer, TAG_NULL_VALUE)
        byte_writer_varint(writer, 1)
    if flags & METADATA_NULL_KEY:
        byte_writer_varint(writer, TAG_NULL_KEY)
        byte_writer_varint(writer, 1)


cdef inline void set_flag(uint32_t* flags, uint32_t flag, uint64_t value) noexcept nogil:
    flags[0] = flags[0] | flag if value else flags[0] & ~flag


cdef int take_block(ByteReader* reader, uint32_t tag, SingleMetadata* metadata) noexcept nogil:
    cdef const uint8_t* bytes = NULL
    cdef uint32_t size = 0
    cdef int status = byte_reader_block(reader, &bytes, &size)
    if status != STATUS_OK:
        return status
    if tag == TAG_PROPERTY:
        metadata.flags |= METADATA_PROPERTIES
        metadata.property_count += 1
    elif tag == TAG_PARTITION_KEY:
        metadata.flags |= METADATA_PARTITION_KEY
        metadata.partition_key = bytes
        metadata.partition_key_size = size
    else:
        metadata.flags |= METADATA_ORDERING_KEY
        metadata.ordering_key = bytes
        metadata.ordering_key_size = size
    return STATUS_OK


cdef int take_number(ByteReader* reader, uint32_t tag, SingleMetadata* metadata) noexcept nogil:
    cdef uint64_t value = 0
    cdef int status = byte_reader_varint(reader, &value)
    if status != STATUS_OK:
        return status
    if tag == TAG_PAYLOAD_SIZE:
        if value > PAYLOAD_SIZE_MAX:
            return STATUS_CORRUPT
        metadata.payload_size = <uint32_t>value
    elif tag == TAG_EVENT_TIME:
        metadata.flags |= METADATA_EVENT_TIME
        metadata.event_time_ms = value
    elif tag == TAG_SEQUENCE_ID:
        metadata.flags |= METADATA_SEQUENCE_ID
        metadata.sequence_id = value
    elif tag == TAG_COMPACTED_OUT:
        set_flag(&metadata.flags, METADATA_COMPACTED_OUT, value)
    elif tag == TAG_KEY_BASE64:
        set_flag(&metadata.flags, METADATA_KEY_BASE64, value)
    elif tag == TAG_NULL_VALUE:
        set_flag(&metadata.flags, METADATA_NULL_VALUE, value)
    else:
        set_flag(&metadata.flags, METADATA_NULL_KEY, value)
    return STATUS_OK


cdef int single_metadata_decode(const uint8_t* data, uint32_t size,
                                SingleMetadata* metadata) noexcept nogil:
    cdef ByteReader reader
    cdef SingleMetadata taken
    cdef uint32_t tag = 0
    cdef bint has_payload_size = False
    cdef int status
    memset(&taken, 0, sizeof(taken))
    byte_reader_start(&reader, data, size)
    while reader.at < reader.end:
        status = proto_field_tag(&reader, &tag)
        if status != STATUS_OK:
            return status
        if tag == TAG_PROPERTY or tag == TAG_PARTITION_KEY or tag == TAG_ORDERING_KEY:
            status = take_block(&reader, tag, &taken)
        elif TAG_PAYLOAD_SIZE <= tag <= TAG_NULL_KEY and tag & 7 == 0:
            status = take_number(&reader, tag, &taken)
            has_payload_size = has_payload_size or tag == TAG_PAYLOAD_SIZE
        else:
            status = proto_field_skip(&reader, tag)
        if status != STATUS_OK:
            return status
    if not has_payload_size:
        return STATUS_CORRUPT
    metadata[0] = taken
    return STATUS_OK


cdef int property_decode(const uint8_t* data, uint32_t size, PropertyView* property) noexcept nogil:
    cdef ByteReader reader
    cdef PropertyView taken
    cdef uint32_t tag = 0
    cdef uint32_t seen = 0
    cdef int status
    memset(&taken, 0, sizeof(taken))
    byte_reader_start(&reader, data, size)
    while reader.at < reader.end:
        status = proto_field_tag(&reader, &tag)
        if status != STATUS_OK:
            return status
        if tag == TAG_PROPERTY_KEY:
            status = byte_reader_block(&reader, &taken.key, &taken.key_size)
            seen |= 1
        elif tag == TAG_PROPERTY_VALUE:
            status = byte_reader_block(&reader, &taken.value, &taken.value_size)
            seen |= 2
        else:
            status = proto_field_skip(&reader, tag)
        if status != STATUS_OK:
            return status
    if seen != 3:
        return STATUS_CORRUPT
    property[0] = taken
    return STATUS_OK


cdef int property_next(ByteReader* reader, uint32_t field, PropertyView* property) noexcept nogil:
    cdef const uint8_t* bytes = NULL
    cdef uint32_t size = 0
    cdef uint32_t tag = 0
    cdef int status
    while reader.at < reader.end:
        status = proto_field_tag(reader, &tag)
        if status != STATUS_OK:
            return status
        if tag == (field << 3 | WIRE_BLOCK):
            status = byte_reader_block(reader, &bytes, &size)
            if status == STATUS_OK:
                status = property_decode(bytes, size, property)
            return status
        status = proto_field_skip(reader, tag)
        if status != STATUS_OK:
            return status
    return STATUS_END
