# cython: language_level=3
"""Body of range_block.pxd."""

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from pulsarx._core.atomic cimport atomic_add_u32, atomic_sub_u32
from pulsarx._core.batch_decode cimport (
    BatchMessage, BatchShape, batch_decode_alike, batch_decode_next, batch_decode_plain,
    batch_decode_shape,
)
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.byte_writer cimport ByteWriter, byte_writer_start, byte_writer_varint
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_decode
from pulsarx._core.single_metadata cimport (
    METADATA_COMPACTED_OUT, METADATA_EVENT_TIME, METADATA_KEY_BASE64, METADATA_MARKER,
    METADATA_NULL_VALUE, METADATA_ORDERING_KEY, METADATA_PARTITION_KEY, METADATA_PROPERTIES,
    METADATA_SCHEMA_VERSION, METADATA_SEQUENCE_ID, PropertyView, SingleMetadata, property_next,
    single_metadata_decode,
)
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_END, STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE,
)
from pulsarx._core.sticky_key cimport sticky_key_decode
from pulsarx._pycore.arrow.arrow_block cimport (
    text_column_append, text_column_cut, text_column_free,
)
from pulsarx._pycore.arrow.arrow_memory cimport room_free, room_grow, room_new

cdef enum:
    IN_METADATA = 4              # protobuf fields of properties
    IN_BATCH = 1
    ID_ROOM = 24                 # an id of usual numbers, with space to spare
    ID_SIZE_MAX = 64
    KEY_ROOM = 16
    SCHEMA_VERSION_SIZE = 8
    TAG_PARTITION_KEY = 0x12     # protobuf tags of SingleMessageMetadata ...
    TAG_PAYLOAD_SIZE = 0x18
    TAG_LEDGER_ID = 0x08         # ... and of MessageIdData
    TAG_ENTRY_ID = 0x10
    TAG_PARTITION = 0x18
    TAG_BATCH_INDEX = 0x20
    TAG_BATCH_SIZE = 0x30


cdef TopicColumn* topic_column_new(const uint8_t* name, uint32_t size, int64_t rows) noexcept nogil:
    cdef TopicColumn* self = <TopicColumn*>calloc(1, sizeof(TopicColumn))
    cdef int64_t row
    if self == NULL:
        return NULL
    self.references = 1
    self.rows = rows
    self.offsets = <int32_t*>room_new(4 * <size_t>(rows + 1))
    self.data = <uint8_t*>room_new(<size_t>rows * size)
    if self.offsets == NULL or self.data == NULL:
        topic_column_release(self)
        return NULL
    self.offsets[0] = 0
    for row in range(rows):
        memcpy(self.data + row * size, name, size)
        self.offsets[row + 1] = <int32_t>((row + 1) * size)
    return self


cdef void topic_column_release(TopicColumn* self) noexcept nogil:
    if self == NULL or atomic_sub_u32(&self.references, 1) != 1:
        return
    room_free(self.offsets)
    room_free(self.data)
    free(self)


cdef inline size_t bits_size(int64_t rows) noexcept nogil:
    return <size_t>((rows + 7) >> 3)


cdef bint make_bytes(BytesColumn* column, int64_t rows, int64_t capacity,
                     uint8_t validity) noexcept nogil:
    """validity: 0xFF all rows are there until told otherwise, 0 none is."""
    column.offsets = <int32_t*>room_new(4 * <size_t>(rows + 1))
    column.data = <uint8_t*>room_new(<size_t>capacity)
    column.validity = <uint8_t*>room_new(bits_size(rows))
    if column.offsets == NULL or column.data == NULL or column.validity == NULL:
        return False
    column.offsets[0] = 0
    column.capacity = capacity
    memset(column.validity, validity, bits_size(rows))
    return True


cdef bint make_numbers(RangeBlock* self, uint32_t column, void** room,
                       size_t size) noexcept nogil:
    if self.columns & column:
        room[0] = room_new(size * <size_t>self.row_capacity)
        return room[0] != NULL
    return True


cdef bint make_columns(RangeBlock* self, int64_t bytes_expected) noexcept nogil:
    cdef size_t rows = <size_t>self.row_capacity
    if self.columns & RANGE_VALUE and not make_bytes(
            &self.value, self.row_capacity, bytes_expected, 0xFF):
        return False
    if self.columns & RANGE_KEY and not make_bytes(
            &self.key, self.row_capacity, KEY_ROOM * self.row_capacity, 0):
        return False
    if self.columns & RANGE_MESSAGE_ID and not make_bytes(
            &self.message_id, self.row_capacity, ID_ROOM * self.row_capacity, 0xFF):
        return False
    if self.columns & RANGE_ORDERING_KEY and not make_bytes(
            &self.ordering_key, self.row_capacity, KEY_ROOM * self.row_capacity, 0):
        return False
    if self.columns & RANGE_KEY_BYTES and not make_bytes(
            &self.key_bytes, self.row_capacity, KEY_ROOM * self.row_capacity, 0):
        return False
    if not (make_numbers(self, RANGE_PUBLISH_TIME, <void**>&self.publish_times, 8)
            and make_numbers(self, RANGE_PARTITION, <void**>&self.partitions, 4)
            and make_numbers(self, RANGE_BATCH_INDEX, <void**>&self.batch_indexes, 4)
            and make_numbers(self, RANGE_LEDGER_ID, <void**>&self.ledger_ids, 8)
            and make_numbers(self, RANGE_ENTRY_ID, <void**>&self.entry_ids, 8)
            and make_numbers(self, RANGE_SEQUENCE_ID, <void**>&self.sequence_ids, 8)
            and make_numbers(self, RANGE_SCHEMA_VERSION, <void**>&self.schema_versions, 8)):
        return False
    if self.columns & RANGE_SCHEMA_VERSION:
        self.version_validity = <uint8_t*>room_new(bits_size(self.row_capacity))
        if self.version_validity == NULL:
            return False
        memset(self.version_validity, 0, bits_size(self.row_capacity))
    if self.columns & RANGE_EVENT_TIME:
        self.event_times = <int64_t*>room_new(8 * rows)
        self.event_validity = <uint8_t*>room_new(bits_size(self.row_capacity))
        if self.event_times == NULL or self.event_validity == NULL:
            return False
        memset(self.event_validity, 0, bits_size(self.row_capacity))
    if self.columns & RANGE_PROPERTIES:
        self.property_offsets = <int32_t*>room_new(4 * (rows + 1))
        if self.property_offsets == NULL:
            return False
        self.property_offsets[0] = 0
    return True


cdef RangeBlock* range_block_new(const ColumnOrder* order, int64_t rows, int64_t bytes_max,
                                 int64_t bytes_expected, TopicColumn* topic) noexcept nogil:
    cdef RangeBlock* self = <RangeBlock*>calloc(1, sizeof(RangeBlock))
    if self == NULL:
        return NULL
    self.references = 1
    self.order = order[0]
    self.columns = order.columns
    self.row_capacity = rows
    self.bytes_max = bytes_max
    if topic != NULL:
        atomic_add_u32(&topic.references, 1)
        self.topic = topic
    if not make_columns(self, min(bytes_max, bytes_expected)):
        range_block_release(self)
        return NULL
    return self


cdef void range_block_hold(RangeBlock* self) noexcept nogil:
    atomic_add_u32(&self.references, 1)


cdef void free_bytes(BytesColumn* column) noexcept nogil:
    room_free(column.offsets)
    room_free(column.data)
    room_free(column.validity)


cdef void range_block_release(RangeBlock* self) noexcept nogil:
    if self == NULL or atomic_sub_u32(&self.references, 1) != 1:
        return
    free_bytes(&self.value)
    free_bytes(&self.key)
    free_bytes(&self.message_id)
    text_column_free(&self.producer_name)
    free_bytes(&self.ordering_key)
    free_bytes(&self.key_bytes)
    room_free(self.partitions)
    room_free(self.batch_indexes)
    room_free(self.ledger_ids)
    room_free(self.entry_ids)
    room_free(self.sequence_ids)
    room_free(self.schema_versions)
    room_free(self.version_validity)
    room_free(self.publish_times)
    room_free(self.event_times)
    room_free(self.event_validity)
    room_free(self.property_offsets)
    text_column_free(&self.property_key)
    text_column_free(&self.property_value)
    topic_column_release(self.topic)
    free(self)


cdef inline int reserve(BytesColumn* column, int64_t more) noexcept nogil:
    cdef int64_t wanted = column.size + more
    cdef int status
    if wanted <= column.capacity:
        return STATUS_OK
    wanted = max(wanted, 2 * column.capacity)
    status = room_grow(<void**>&column.data, <size_t>column.size, <size_t>wanted, False)
    if status == STATUS_OK:
        column.capacity = wanted
    return status


cdef inline int64_t described_size(const RangeBlock* self) noexcept nogil:
    return (self.key.size + self.ordering_key.size + self.key_bytes.size
            + self.property_key.data_size + self.property_value.data_size)


cdef inline bint is_full(const RangeBlock* self, uint64_t more) noexcept nogil:
    """Would so many bytes more be too many? A message that alone is larger has a block of its
    own."""
    return self.row_count > 0 and (
        self.value.size + described_size(self) + <int64_t>more > self.bytes_max)


cdef inline void append(BytesColumn* column, int64_t row, const uint8_t* data,
                        uint32_t size) noexcept nogil:
    if size:
        memcpy(column.data + column.size, data, size)
    column.size += size
    column.offsets[row + 1] = <int32_t>column.size


cdef inline bint may_be_plain(const BlockEntry* entry, uint32_t at) noexcept nogil:
    """Saves a closer look at messages that have a key or properties."""
    return at <= entry.payload_size and entry.payload_size - at > 4 and (
        entry.payload[at + 4] == TAG_PAYLOAD_SIZE)


cdef uint32_t take_plain(RangeBlock* self, const BlockEntry* entry, uint32_t* at,
                         uint32_t wanted) noexcept nogil:
    """Append as many messages as have nothing but a payload, until one has more, or nothing more
    fits without a closer look. How many it were."""
    cdef BatchMessage found
    cdef BatchShape shape
    cdef const uint8_t* payload = entry.payload
    cdef uint32_t payload_size = entry.payload_size
    cdef uint32_t next_at = at[0]
    cdef uint32_t count = 0
    cdef int32_t* offsets = self.value.offsets
    cdef uint8_t* data = self.value.data
    cdef int64_t size = self.value.size
    cdef int64_t capacity = min(self.value.capacity, self.bytes_max - described_size(self))
    if offsets == NULL:
        while count < wanted and batch_decode_plain(payload, payload_size, &next_at, &found):
            count += 1
        at[0] = next_at
        self.row_count += count
        return count
    offsets += self.row_count + 1
    while count < wanted and batch_decode_plain(payload, payload_size, &next_at, &found):
        if size + found.payload_size > capacity:
            break
        memcpy(data + size, found.payload, found.payload_size)
        size += found.payload_size
        offsets[count] = <int32_t>size
        count += 1
        # Most have the size of the one before them. Where the next one begins is then known
        # without waiting for what this one says, which takes as long as all else.
        batch_decode_shape(payload, &found, at[0], next_at, &shape)
        at[0] = next_at
        while count < wanted and size + shape.payload_size <= capacity and (
                batch_decode_alike(payload, payload_size, next_at, &shape)):
            memcpy(data + size, payload + next_at + shape.header_size, shape.payload_size)
            size += shape.payload_size
            offsets[count] = <int32_t>size
            count += 1
            next_at += shape.size
        at[0] = next_at
    self.value.size = size
    self.row_count += count
    return count


cdef void fill_null(BytesColumn* column, int64_t first_row, int64_t end_row) noexcept nogil:
    """Rows of a column that began with no row valid."""
    cdef int64_t row
    cdef int32_t offset = <int32_t>column.size
    column.nulls += end_row - first_row
    for row in range(first_row, end_row):
        column.offsets[row + 1] = offset


cdef void fill_absent(RangeBlock* self, int64_t first_row) noexcept nogil:
    """The rows from first_row on have no key, no event time and no property."""
    cdef int64_t row
    cdef int32_t offset
    if self.columns & RANGE_KEY:
        fill_null(&self.key, first_row, self.row_count)
    if self.columns & RANGE_ORDERING_KEY:
        fill_null(&self.ordering_key, first_row, self.row_count)
    if self.columns & RANGE_KEY_BYTES:
        fill_null(&self.key_bytes, first_row, self.row_count)
    if self.columns & RANGE_EVENT_TIME:
        memset(self.event_times + first_row, 0, 8 * <size_t>(self.row_count - first_row))
    if self.columns & RANGE_PROPERTIES:
        offset = self.property_offsets[first_row]
        for row in range(first_row, self.row_count):
            self.property_offsets[row + 1] = offset


cdef void take_value(RangeBlock* self, bint is_null, const uint8_t* payload,
                     uint32_t size) noexcept nogil:
    cdef int64_t row = self.row_count
    if is_null:
        self.value.validity[row >> 3] &= <uint8_t>~(1 << (row & 7))
        self.value.nulls += 1
    append(&self.value, row, payload, size)


cdef void take_optional(BytesColumn* column, int64_t row, bint present, const uint8_t* data,
                        uint32_t size) noexcept nogil:
    if present:
        column.validity[row >> 3] |= <uint8_t>(1 << (row & 7))
    else:
        column.nulls += 1
    append(column, row, data, size if present else 0)


cdef void take_key_bytes(RangeBlock* self, const SingleMetadata* single) noexcept nogil:
    """The key, decoded where the producer had one of bytes and sent base64."""
    cdef int64_t row = self.row_count
    cdef BytesColumn* column = &self.key_bytes
    cdef bint present = single.flags & METADATA_PARTITION_KEY != 0
    if not present or single.flags & METADATA_KEY_BASE64 == 0:
        take_optional(column, row, present, single.partition_key, single.partition_key_size)
        return
    column.validity[row >> 3] |= <uint8_t>(1 << (row & 7))
    column.size += sticky_key_decode(single.partition_key, single.partition_key_size,
                                     column.data + column.size)
    column.offsets[row + 1] = <int32_t>column.size


cdef void take_event_time(RangeBlock* self, const SingleMetadata* single) noexcept nogil:
    cdef int64_t row = self.row_count
    self.event_times[row] = 0
    # A time of 0 is none, as Message.event_timestamp has it; what no microseconds can say is none.
    if single.flags & METADATA_EVENT_TIME and 0 < single.event_time_ms <= (
            <uint64_t>INT64_MAX // 1000):
        self.event_validity[row >> 3] |= <uint8_t>(1 << (row & 7))
        self.event_times[row] = <int64_t>single.event_time_ms * 1000
        self.event_count += 1


cdef int take_properties(RangeBlock* self, const SingleMetadata* single, const uint8_t* metadata,
                         uint32_t metadata_size, uint32_t field) noexcept nogil:
    cdef ByteReader reader
    cdef PropertyView view
    cdef int status = STATUS_OK
    if single.flags & METADATA_PROPERTIES:
        byte_reader_start(&reader, metadata, metadata_size)
        while status == STATUS_OK:
            status = property_next(&reader, field, &view)
            if status == STATUS_END:
                break
            if status == STATUS_OK:
                status = text_column_append(&self.property_key, view.key, view.key_size)
            if status == STATUS_OK:
                status = text_column_append(&self.property_value, view.value, view.value_size)
            if status != STATUS_OK:
                return status
    self.property_offsets[self.row_count + 1] = <int32_t>self.property_value.count
    return STATUS_OK


cdef inline bint describe_usual(const BatchMessage* found, SingleMetadata* single) noexcept nogil:
    """The key of a header [key] [payload size] [sequence id], without decoding all of it."""
    cdef const uint8_t* header = found.encoded_metadata
    cdef uint32_t size
    if found.flags & (METADATA_EVENT_TIME | METADATA_PROPERTIES | METADATA_ORDERING_KEY
                      | METADATA_KEY_BASE64):
        return False
    single.flags = found.flags
    if found.flags & METADATA_PARTITION_KEY == 0:
        return True
    if found.encoded_metadata_size < 4 or header[0] != TAG_PARTITION_KEY or header[1] >= 0x80:
        return False
    size = header[1]
    if found.encoded_metadata_size < size + 4 or header[size + 2] != TAG_PAYLOAD_SIZE:
        return False
    single.partition_key = header + 2
    single.partition_key_size = size
    return True


cdef int take_row(RangeBlock* self, const SingleMetadata* single, const uint8_t* metadata,
                  uint32_t metadata_size, uint32_t field, const uint8_t* payload,
                  uint32_t payload_size) noexcept nogil:
    """Append one message; what its entry says is for fill_places. Any failure leaves no trace."""
    cdef bint has_key = single.flags & METADATA_PARTITION_KEY != 0
    cdef bint has_order = single.flags & METADATA_ORDERING_KEY != 0
    cdef int status = STATUS_OK
    if self.columns & RANGE_VALUE:
        status = reserve(&self.value, payload_size)
    if status == STATUS_OK and self.columns & RANGE_KEY and has_key:
        status = reserve(&self.key, single.partition_key_size)
    if status == STATUS_OK and self.columns & RANGE_KEY_BYTES and has_key:
        status = reserve(&self.key_bytes, single.partition_key_size)
    if status == STATUS_OK and self.columns & RANGE_ORDERING_KEY and has_order:
        status = reserve(&self.ordering_key, single.ordering_key_size)
    if status == STATUS_OK and self.columns & RANGE_PROPERTIES:
        status = take_properties(self, single, metadata, metadata_size, field)
        if status != STATUS_OK:
            text_column_cut(&self.property_key, self.property_offsets[self.row_count])
            text_column_cut(&self.property_value, self.property_offsets[self.row_count])
    if status != STATUS_OK:
        # A column of 2 GiB in one block: bytes_max is far below.
        return STATUS_CORRUPT if status == STATUS_TOO_LARGE else status
    if self.columns & RANGE_VALUE:
        take_value(self, single.flags & METADATA_NULL_VALUE, payload, payload_size)
    if self.columns & RANGE_KEY:
        take_optional(&self.key, self.row_count, has_key, single.partition_key,
                      single.partition_key_size)
    if self.columns & RANGE_KEY_BYTES:
        take_key_bytes(self, single)
    if self.columns & RANGE_ORDERING_KEY:
        take_optional(&self.ordering_key, self.row_count, has_order, single.ordering_key,
                      single.ordering_key_size)
    if self.columns & RANGE_SEQUENCE_ID:
        self.sequence_ids[self.row_count] = <int64_t>single.sequence_id
    if self.columns & RANGE_EVENT_TIME:
        take_event_time(self, single)
    self.row_count += 1
    return STATUS_OK


cdef inline void write_field(ByteWriter* writer, uint64_t tag, int64_t value) noexcept nogil:
    byte_writer_varint(writer, tag)
    byte_writer_varint(writer, <uint64_t>value)


cdef int fill_ids(RangeBlock* self, const BlockEntry* entry, int64_t first_row, int64_t first_index,
                  int64_t batch_size) noexcept nogil:
    """Ids as MessageId.serialize writes them; batch_size 0: of a message that is in no batch."""
    cdef uint8_t head[ID_SIZE_MAX]
    cdef ByteWriter writer
    cdef uint32_t head_size
    cdef int64_t row
    cdef BytesColumn* ids = &self.message_id
    byte_writer_start(&writer, head, ID_SIZE_MAX)
    write_field(&writer, TAG_LEDGER_ID, <int64_t>entry.ledger_id)
    write_field(&writer, TAG_ENTRY_ID, <int64_t>entry.entry_id)
    if self.partition != -1:
        write_field(&writer, TAG_PARTITION, self.partition)
    head_size = <uint32_t>(writer.at - head)
    if reserve(ids, (self.row_count - first_row) * (head_size + 12) + ID_SIZE_MAX) != STATUS_OK:
        return STATUS_NO_MEMORY
    for row in range(first_row, self.row_count):
        byte_writer_start(&writer, ids.data + ids.size, ID_SIZE_MAX)
        memcpy(writer.at, head, head_size)
        writer.at += head_size
        if batch_size:
            write_field(&writer, TAG_BATCH_INDEX, first_index + row - first_row)
            write_field(&writer, TAG_BATCH_SIZE, batch_size)
        ids.size = writer.at - ids.data
        ids.offsets[row + 1] = <int32_t>ids.size
    return STATUS_OK


cdef int fill_of_metadata(RangeBlock* self, const BlockEntry* entry,
                          int64_t first_row) noexcept nogil:
    """The name of the producer, and the version of the schema, as a number: 8 bytes, big endian."""
    cdef MessageMetadata metadata
    cdef uint64_t version = 0
    cdef int64_t row
    cdef int at
    cdef int status = message_metadata_decode(entry.metadata, entry.metadata_size, &metadata)
    if status != STATUS_OK:
        return status
    if self.columns & RANGE_PRODUCER_NAME:
        for row in range(first_row, self.row_count):
            status = text_column_append(&self.producer_name, metadata.producer_name,
                                        metadata.producer_name_size)
            if status != STATUS_OK:
                return STATUS_NO_MEMORY
    if self.columns & RANGE_SCHEMA_VERSION:
        if metadata.flags & METADATA_SCHEMA_VERSION == 0 or (
                metadata.schema_version_size != SCHEMA_VERSION_SIZE):
            self.version_nulls += self.row_count - first_row
            memset(self.schema_versions + first_row, 0, 8 * <size_t>(self.row_count - first_row))
            return STATUS_OK
        for at in range(SCHEMA_VERSION_SIZE):
            version = version << 8 | metadata.schema_version[at]
        for row in range(first_row, self.row_count):
            self.schema_versions[row] = <int64_t>version
            self.version_validity[row >> 3] |= <uint8_t>(1 << (row & 7))
    return STATUS_OK


cdef int fill_places(RangeBlock* self, const BlockEntry* entry, int64_t first_row,
                     int64_t first_index, int64_t batch_size) noexcept nogil:
    """Fill in the columns that come from the entry, for the rows from first_row on, which are
    neighbours in it."""
    cdef int64_t row
    cdef int64_t time_us = entry.publish_time_ms
    cdef int status
    if self.columns & RANGE_PARTITION:
        for row in range(first_row, self.row_count):
            self.partitions[row] = self.partition
    if self.columns & RANGE_LEDGER_ID:
        for row in range(first_row, self.row_count):
            self.ledger_ids[row] = <int64_t>entry.ledger_id
    if self.columns & RANGE_ENTRY_ID:
        for row in range(first_row, self.row_count):
            self.entry_ids[row] = <int64_t>entry.entry_id
    if self.columns & RANGE_BATCH_INDEX:
        for row in range(first_row, self.row_count):
            self.batch_indexes[row] = (
                <int32_t>(first_index + row - first_row) if batch_size else -1)
    if self.columns & RANGE_OF_METADATA:
        status = fill_of_metadata(self, entry, first_row)
        if status != STATUS_OK:
            return status
    if self.columns & RANGE_PUBLISH_TIME:
        # A time that no microseconds can say comes from a damaged clock: the furthest instead.
        time_us = time_us * 1000 if 0 <= time_us <= INT64_MAX // 1000 else INT64_MAX
        for row in range(first_row, self.row_count):
            self.publish_times[row] = time_us
    if self.columns & RANGE_MESSAGE_ID:
        return fill_ids(self, entry, first_row, first_index, batch_size)
    return STATUS_OK


cdef uint64_t entry_sequence_id(const BlockEntry* entry) noexcept nogil:
    cdef MessageMetadata metadata
    if message_metadata_decode(entry.metadata, entry.metadata_size, &metadata) != STATUS_OK:
        return 0
    return metadata.sequence_id


cdef int take_described(RangeBlock* self, const BlockEntry* entry, uint32_t* at, uint32_t index,
                        bint* skipped) noexcept nogil:
    """Append the next message of a batch, whatever it has; skipped: it was compacted out."""
    cdef BatchMessage found
    cdef SingleMetadata single
    cdef uint32_t next_at = at[0]
    cdef int status = batch_decode_next(entry.payload, entry.payload_size, &next_at, &found)
    skipped[0] = False
    if status != STATUS_OK:
        # The entry claims more messages than it has.
        return STATUS_CORRUPT if status == STATUS_END else status
    if found.flags & METADATA_COMPACTED_OUT:
        skipped[0] = True
        at[0] = next_at
        return STATUS_OK
    if is_full(self, <uint64_t>found.encoded_metadata_size + (
            found.payload_size if self.columns & RANGE_VALUE else 0)):
        return STATUS_TOO_LARGE
    if self.columns & RANGE_DESCRIBED == 0:
        single.flags = found.flags
    elif self.columns & RANGE_SEQUENCE_ID or not describe_usual(&found, &single):
        status = single_metadata_decode(found.encoded_metadata, found.encoded_metadata_size,
                                        &single)
        if status == STATUS_OK and single.flags & METADATA_SEQUENCE_ID == 0:
            # As Pulsar's client numbers the messages of such a batch.
            single.sequence_id = entry_sequence_id(entry) + index
    if status == STATUS_OK:
        status = take_row(self, &single, found.encoded_metadata, found.encoded_metadata_size,
                          IN_BATCH, found.payload, found.payload_size)
    if status == STATUS_OK:
        at[0] = next_at
    return status


cdef int range_block_take_batch(RangeBlock* self, const BlockEntry* entry, uint32_t* at,
                                uint32_t* index, uint32_t until) noexcept nogil:
    cdef bint skipped = False
    cdef int64_t first_row = self.row_count
    cdef int64_t plain_row
    cdef uint32_t number = index[0]
    cdef uint32_t first_index = number
    cdef int status = STATUS_OK
    cdef int filled
    while number < until and status == STATUS_OK:
        if self.row_count == self.row_capacity:
            status = STATUS_TOO_LARGE
            break
        if self.columns & RANGE_SEQUENCE_ID == 0 and may_be_plain(entry, at[0]):
            plain_row = self.row_count
            number += take_plain(self, entry, at, <uint32_t>min(
                <int64_t>(until - number), self.row_capacity - plain_row))
            if self.columns & RANGE_DESCRIBED:
                fill_absent(self, plain_row)
            if number == until or self.row_count == self.row_capacity:
                continue
        status = take_described(self, entry, at, number, &skipped)
        if status == STATUS_OK:
            number += 1
        if skipped:
            filled = fill_places(self, entry, first_row, first_index, entry.message_count)
            if filled != STATUS_OK:
                return filled
            first_row = self.row_count
            first_index = number
    index[0] = number
    filled = fill_places(self, entry, first_row, first_index, entry.message_count)
    return status if filled == STATUS_OK else filled


cdef int range_block_take_single(RangeBlock* self, const BlockEntry* entry) noexcept nogil:
    cdef MessageMetadata metadata
    cdef SingleMetadata single
    cdef int64_t row = self.row_count
    cdef int status = message_metadata_decode(entry.metadata, entry.metadata_size, &metadata)
    if status != STATUS_OK or metadata.flags & METADATA_MARKER:
        return status
    if row == self.row_capacity or is_full(self, <uint64_t>entry.metadata_size + (
            entry.payload_size if self.columns & RANGE_VALUE else 0)):
        return STATUS_TOO_LARGE
    memset(&single, 0, sizeof(single))
    single.flags = metadata.flags
    single.partition_key = metadata.partition_key
    single.partition_key_size = metadata.partition_key_size
    single.ordering_key = metadata.ordering_key
    single.ordering_key_size = metadata.ordering_key_size
    single.sequence_id = metadata.sequence_id
    single.event_time_ms = metadata.event_time_ms
    status = take_row(self, &single, entry.metadata, entry.metadata_size, IN_METADATA,
                      entry.payload, entry.payload_size)
    if status != STATUS_OK:
        return status
    return fill_places(self, entry, row, 0, 0)
