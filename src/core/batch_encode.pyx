"""Builds entries: messages one behind the other, then the envelope in front of them.

What the envelope of a batch takes from its first message, as read in
Commands.initBatchMessageMetadata of the Java and the C++ client: producer name, publish time,
sequence id, partition key (with its base64 flag), ordering key, schema version. Not event time,
properties, null value or null key: those stay with each message. Java then adds the count and, as
highest_sequence_id, the sequence id of the last message. Its batch of one is the message's own
metadata without a count, so there they all move into the envelope. Uncompressed,
uncompressed_size is left out.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove, memset

from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start, byte_writer_u32_be
from pulsarx._core.crc32c cimport crc32c
from pulsarx._core.invariant cimport invariant
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE, ENTRY_SIZE_MAX, METADATA_SIZE_MAX
from pulsarx._core.message_metadata cimport *
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE

cdef enum:
    TAG_PARTITION_KEY = 0x12
    TAG_PAYLOAD_SIZE = 0x18
    TAG_SEQUENCE_ID = 0x40
    MAGIC_SIZE = 6           # 0x0e01 and the checksum
    ENTRY_START_SIZE = 10    # that and the size of the metadata
    PADDING_SIZE = 8         # the caller may write so much behind the entry
    HEADROOM_MIN = 256
    USUAL_HEADER_SIZE = 33   # size, three tags and their varints at their longest; no key
    NUMBERS_SIZE_MAX = 128   # fields of an envelope that are no blocks, tags of those that are
    USUAL_FLAGS = METADATA_PARTITION_KEY | METADATA_SEQUENCE_ID
    KEY_FLAGS = METADATA_PARTITION_KEY | METADATA_ORDERING_KEY
    BATCH_FLAGS = KEY_FLAGS | METADATA_KEY_BASE64
    SINGLE_FLAGS = BATCH_FLAGS | METADATA_EVENT_TIME | METADATA_NULL_VALUE | METADATA_NULL_KEY
    CALLER_FLAGS = METADATA_SCHEMA_VERSION | METADATA_DELIVER_AT | METADATA_ENCRYPTED


cdef void batch_encode_init(BatchEncode* self, size_t headroom, size_t capacity) noexcept nogil:
    memset(self, 0, sizeof(BatchEncode))
    if headroom < HEADROOM_MIN:
        headroom = HEADROOM_MIN
    self.first_capacity = headroom + capacity + PADDING_SIZE
    self.capacity = headroom         # of no buffer yet: whatever is added makes it grow
    self.payload_start = headroom
    batch_encode_clear(self)


cdef void batch_encode_free(BatchEncode* self) noexcept nogil:
    free(self.buffer)
    memset(self, 0, sizeof(BatchEncode))


cdef void batch_encode_clear(BatchEncode* self) noexcept nogil:
    self.payload_end = self.payload_start
    self.first_payload = self.payload_start
    self.message_count = 0
    self.mixed_keys = 0
    self.more_follow = 0
    self.first_sequence_id = 0
    self.last_sequence_id = 0
    self.first_key_kind = 0


cdef int reserve_behind(BatchEncode* self, size_t size) noexcept nogil:
    """Have room for size bytes after payload_end and the padding; doubles at least."""
    cdef size_t needed = self.payload_end + size + PADDING_SIZE
    cdef size_t capacity = self.capacity * 2
    cdef uint8_t* moved
    if needed <= self.capacity:
        return STATUS_OK
    if self.payload_end - self.payload_start + size > <size_t>ENTRY_SIZE_MAX:
        return STATUS_TOO_LARGE
    if capacity < self.first_capacity:
        capacity = self.first_capacity
    if capacity < needed:
        capacity = needed
    moved = <uint8_t*>realloc(self.buffer, capacity)
    if moved == NULL:
        return STATUS_NO_MEMORY
    self.buffer = moved
    self.capacity = capacity
    return STATUS_OK


cdef int reserve_before(BatchEncode* self, size_t front_end, size_t size) noexcept nogil:
    """Have size bytes before front_end (payload_start or first_payload); all offsets may move."""
    cdef size_t shift
    cdef uint8_t* moved
    if size <= front_end:
        return STATUS_OK
    shift = size - front_end
    moved = <uint8_t*>realloc(self.buffer, self.capacity + shift)
    if moved == NULL:
        return STATUS_NO_MEMORY
    memmove(moved + self.payload_start + shift, moved + self.payload_start,
            self.payload_end - self.payload_start)
    self.buffer = moved
    self.capacity += shift
    self.payload_start += shift
    self.payload_end += shift
    self.first_payload += shift
    self.first_key += shift
    return STATUS_OK


cdef inline uint8_t* write_varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value >= 0x80:
        at[0] = <uint8_t>(value | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef inline void write_u32_be(uint8_t* at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t>(value >> 24)
    at[1] = <uint8_t>(value >> 16)
    at[2] = <uint8_t>(value >> 8)
    at[3] = <uint8_t>value


cdef inline uint32_t sticky_key(const SingleMetadata* metadata, const uint8_t** key,
                                uint32_t* size) noexcept nogil:
    """Show the key that messages are dispatched by; answers what kind it is, 0: none."""
    if metadata.flags & METADATA_ORDERING_KEY:
        key[0] = metadata.ordering_key
        size[0] = metadata.ordering_key_size
        return METADATA_ORDERING_KEY
    key[0] = metadata.partition_key
    size[0] = metadata.partition_key_size
    if metadata.flags & METADATA_PARTITION_KEY:
        return metadata.flags & (METADATA_PARTITION_KEY | METADATA_KEY_BASE64)
    return 0


cdef void compare_key(BatchEncode* self, const SingleMetadata* metadata) noexcept nogil:
    cdef const uint8_t* key = NULL
    cdef uint32_t size = 0
    cdef uint32_t kind = sticky_key(metadata, &key, &size)
    if kind != self.first_key_kind:
        self.mixed_keys = 1
    elif size != self.first_key_size or (
            size != 0 and memcmp(self.buffer + self.first_key, key, size) != 0):
        self.mixed_keys = 1


cdef void note_first(BatchEncode* self, const SingleMetadata* metadata,
                     size_t payload_at) noexcept nogil:
    """Remember where the first message and its key are, once they are written."""
    cdef const uint8_t* key = NULL
    cdef uint32_t size = 0
    cdef SingleMetadata written
    self.first_sequence_id = metadata.sequence_id
    self.first_payload = payload_at
    self.first_key_kind = 0
    if metadata.flags & KEY_FLAGS:
        first_metadata(self, &written)
        self.first_key_kind = sticky_key(&written, &key, &size)
        self.first_key = <size_t>(key - self.buffer)
        self.first_key_size = size


cdef uint8_t* write_usual_header(uint8_t* at, const SingleMetadata* metadata) noexcept nogil:
    if metadata.flags & METADATA_PARTITION_KEY:
        at[0] = TAG_PARTITION_KEY
        at = write_varint(at + 1, metadata.partition_key_size)
        if metadata.partition_key_size:
            memcpy(at, metadata.partition_key, metadata.partition_key_size)
        at += metadata.partition_key_size
    at[0] = TAG_PAYLOAD_SIZE
    at = write_varint(at + 1, metadata.payload_size)
    if metadata.flags & METADATA_SEQUENCE_ID:
        at[0] = TAG_SEQUENCE_ID
        at = write_varint(at + 1, metadata.sequence_id)
    return at


cdef int write_any_header(BatchEncode* self, const SingleMetadata* metadata,
                          uint8_t** end) noexcept nogil:
    cdef ByteWriter writer
    cdef uint32_t size = single_metadata_size(metadata)
    cdef int status
    if size > METADATA_SIZE_MAX:
        return STATUS_TOO_LARGE
    status = reserve_behind(self, 4 + <size_t>size + metadata.payload_size)
    if status != STATUS_OK:
        return status
    byte_writer_start(&writer, self.buffer + self.payload_end + 4, size)
    single_metadata_encode(metadata, &writer)
    invariant(writer.at == writer.end)
    end[0] = writer.at
    return STATUS_OK


cdef int batch_encode_add(BatchEncode* self, const SingleMetadata* metadata,
                          const uint8_t* payload) noexcept nogil:
    cdef size_t needed = <size_t>USUAL_HEADER_SIZE + PADDING_SIZE + metadata.payload_size
    cdef uint8_t* start
    cdef uint8_t* at = NULL
    cdef int status
    if metadata.flags & METADATA_PARTITION_KEY:
        needed += metadata.partition_key_size
    if metadata.flags & ~(<uint32_t>USUAL_FLAGS) == 0 and metadata.property_count == 0:
        if needed > self.capacity - self.payload_end:
            status = reserve_behind(self, needed)
            if status != STATUS_OK:
                return status
        at = write_usual_header(self.buffer + self.payload_end + 4, metadata)
    else:
        status = write_any_header(self, metadata, &at)
        if status != STATUS_OK:
            return status
    start = self.buffer + self.payload_end
    write_u32_be(start, <uint32_t>(at - start - 4))
    if metadata.payload_size:
        memcpy(at, payload, metadata.payload_size)
    self.payload_end = <size_t>(at - self.buffer) + metadata.payload_size
    if self.message_count == 0:
        note_first(self, metadata, <size_t>(at - self.buffer))
    elif (metadata.flags & KEY_FLAGS) | self.first_key_kind:
        compare_key(self, metadata)
    self.last_sequence_id = metadata.sequence_id
    self.message_count += 1
    return STATUS_OK


cdef void first_metadata(const BatchEncode* self, SingleMetadata* first) noexcept nogil:
    cdef const uint8_t* header = self.buffer + self.payload_start + 4
    cdef int status = single_metadata_decode(
        header, <uint32_t>(self.first_payload - self.payload_start - 4), first)
    invariant(status == STATUS_OK)


cdef void fill_envelope(const BatchEncode* self, const SingleMetadata* first,
                        MessageMetadata* envelope) noexcept nogil:
    cdef bint single = self.message_count == 1
    envelope.flags = (envelope.flags & CALLER_FLAGS) | (
        first.flags & (SINGLE_FLAGS if single else BATCH_FLAGS))
    envelope.partition_key = first.partition_key
    envelope.partition_key_size = first.partition_key_size
    envelope.ordering_key = first.ordering_key
    envelope.ordering_key_size = first.ordering_key_size
    envelope.sequence_id = self.first_sequence_id
    envelope.message_count = self.message_count
    envelope.event_time_ms = first.event_time_ms if single else 0
    envelope.highest_sequence_id = 0
    envelope.properties = NULL
    envelope.property_count = 0
    if not single:
        envelope.flags |= METADATA_BATCH
    if single == (self.more_follow != 0):
        envelope.highest_sequence_id = self.last_sequence_id
        envelope.flags |= METADATA_HIGHEST_SEQUENCE


cdef int take_out_first(const BatchEncode* self, SingleMetadata* first,
                        PropertyView** copied) noexcept nogil:
    """Copy keys and properties of the first message out of where its envelope will be written.

    copied: one allocation for the caller to free, the properties first; NULL: nothing to copy.
    """
    cdef size_t header_size = self.first_payload - self.payload_start - 4
    cdef size_t views_size = first.property_count * sizeof(PropertyView)
    cdef uint32_t property_count = first.property_count
    cdef PropertyView* views
    cdef uint8_t* header
    cdef ByteReader reader
    cdef uint32_t index
    cdef int status
    copied[0] = NULL
    if first.flags & KEY_FLAGS == 0 and property_count == 0:
        return STATUS_OK
    views = <PropertyView*>malloc(views_size + header_size)
    if views == NULL:
        return STATUS_NO_MEMORY
    header = <uint8_t*>views + views_size
    memcpy(header, self.buffer + self.payload_start + 4, header_size)
    status = single_metadata_decode(header, <uint32_t>header_size, first)
    invariant(status == STATUS_OK)
    byte_reader_start(&reader, header, header_size)
    for index in range(property_count):
        status = property_next(&reader, 1, &views[index])
        invariant(status == STATUS_OK)
    copied[0] = views
    return STATUS_OK


cdef int write_envelope(BatchEncode* self, MessageMetadata* envelope, size_t front_end,
                        uint8_t** start) noexcept nogil:
    """Write all that stands before the payload at front_end; the checksum is still missing."""
    cdef ByteWriter writer
    cdef uint32_t size = message_metadata_size(envelope)
    if size > METADATA_SIZE_MAX:
        return STATUS_TOO_LARGE
    invariant(front_end >= <size_t>size + ENTRY_START_SIZE + ENTRY_FRAME_SIZE)
    start[0] = self.buffer + front_end - size - ENTRY_START_SIZE
    start[0][0] = 0x0E
    start[0][1] = 0x01
    byte_writer_start(&writer, start[0] + MAGIC_SIZE, 4 + <size_t>size)
    byte_writer_u32_be(&writer, size)
    message_metadata_encode(envelope, &writer)
    invariant(writer.at == writer.end)
    return STATUS_OK


cdef inline void write_checksum(uint8_t* start, const uint8_t* end) noexcept nogil:
    write_u32_be(start + 2, crc32c(0, start + MAGIC_SIZE, <size_t>(end - start - MAGIC_SIZE)))


cdef int finish(BatchEncode* self, MessageMetadata* envelope, const uint8_t* compressed,
                uint32_t payload_size, uint8_t** entry, uint32_t* entry_size) noexcept nogil:
    """compressed: NULL to leave the payload where it is; payload_size is its size then too."""
    cdef bint single = self.message_count == 1
    cdef bint in_place = single and compressed == NULL
    cdef size_t front_end = self.first_payload if in_place else self.payload_start
    cdef size_t needed = (<size_t>NUMBERS_SIZE_MAX + ENTRY_START_SIZE + ENTRY_FRAME_SIZE
                          + envelope.producer_name_size + envelope.schema_version_size
                          + (self.first_payload - self.payload_start))
    cdef size_t held = batch_encode_payload_size(self)
    cdef PropertyView* copied = NULL
    cdef SingleMetadata first
    cdef uint8_t* start = NULL
    cdef int status
    if envelope.flags & METADATA_ENCRYPTED:
        needed += envelope.encryption_size
    if needed + payload_size > <size_t>ENTRY_SIZE_MAX:
        return STATUS_TOO_LARGE
    status = reserve_before(self, front_end, needed)
    if status == STATUS_OK and payload_size > held:
        status = reserve_behind(self, payload_size - held)
    if status != STATUS_OK:
        return status
    front_end = self.first_payload if in_place else self.payload_start
    first_metadata(self, &first)
    if single:
        status = take_out_first(self, &first, &copied)
        if status != STATUS_OK:
            return status
    fill_envelope(self, &first, envelope)
    if single:
        envelope.properties = copied
        envelope.property_count = first.property_count
    status = write_envelope(self, envelope, front_end, &start)
    free(copied)
    envelope.properties = NULL
    if status != STATUS_OK:
        return status
    if compressed != NULL and payload_size:
        memcpy(self.buffer + front_end, compressed, payload_size)
    write_checksum(start, self.buffer + front_end + payload_size)
    point_into_entry(envelope, start, front_end - <size_t>(start - self.buffer))
    entry[0] = start
    entry_size[0] = <uint32_t>(self.buffer + front_end + payload_size - start)
    return STATUS_OK


cdef void point_into_entry(MessageMetadata* envelope, const uint8_t* start,
                           size_t size) noexcept nogil:
    """The first message's header may be gone by now: show its keys where they are written."""
    cdef int status
    if envelope.flags & KEY_FLAGS or envelope.property_count:
        status = message_metadata_decode(
            start + ENTRY_START_SIZE, <uint32_t>(size - ENTRY_START_SIZE), envelope)
        invariant(status == STATUS_OK)


cdef int batch_encode_finish(BatchEncode* self, MessageMetadata* envelope, uint8_t** entry,
                             uint32_t* entry_size) noexcept nogil:
    cdef const uint8_t* payload = NULL
    cdef uint32_t payload_size = 0
    batch_encode_plain_payload(self, &payload, &payload_size)
    envelope.compression = 0
    envelope.uncompressed_size = 0
    return finish(self, envelope, NULL, payload_size, entry, entry_size)


cdef int batch_encode_compressed(BatchEncode* self, MessageMetadata* envelope,
                                 const uint8_t* compressed, uint32_t compressed_size,
                                 uint8_t** entry, uint32_t* entry_size) noexcept nogil:
    cdef const uint8_t* payload = NULL
    batch_encode_plain_payload(self, &payload, &envelope.uncompressed_size)
    if envelope.compression == 0:            # encrypted alone
        envelope.uncompressed_size = 0
    return finish(self, envelope, compressed, compressed_size, entry, entry_size)


cdef void batch_encode_plain_payload(const BatchEncode* self, const uint8_t** payload,
                                     uint32_t* size) noexcept nogil:
    cdef size_t start = self.first_payload if self.message_count == 1 else self.payload_start
    invariant(self.message_count > 0)
    payload[0] = self.buffer + start
    # Adding stops at ENTRY_SIZE_MAX, so it fits.
    size[0] = <uint32_t>(self.payload_end - start)


cdef int batch_encode_single(BatchEncode* self, const MessageMetadata* metadata,
                             const uint8_t* payload, uint32_t payload_size,
                             uint8_t** entry, uint32_t* entry_size) noexcept nogil:
    cdef MessageMetadata envelope = metadata[0]
    cdef uint8_t* start = NULL
    cdef size_t needed = (<size_t>ENTRY_START_SIZE + ENTRY_FRAME_SIZE
                          + message_metadata_size(metadata))
    cdef int status
    batch_encode_clear(self)
    if needed + payload_size > <size_t>ENTRY_SIZE_MAX:
        return STATUS_TOO_LARGE
    status = reserve_before(self, self.payload_start, needed)
    if status == STATUS_OK:
        status = reserve_behind(self, payload_size)
    if status == STATUS_OK:
        status = write_envelope(self, &envelope, self.payload_start, &start)
    if status != STATUS_OK:
        return status
    if payload_size:
        memcpy(self.buffer + self.payload_start, payload, payload_size)
    write_checksum(start, self.buffer + self.payload_start + payload_size)
    entry[0] = start
    entry_size[0] = <uint32_t>(self.buffer + self.payload_start + payload_size - start)
    return STATUS_OK
