# cython: language_level=3
"""Body of arrow_block.pxd."""

from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from pulsarx._core.atomic cimport atomic_add_u32, atomic_sub_u32
from pulsarx._core.batch_decode cimport (
    BatchMessage, BatchShape, batch_decode_alike, batch_decode_next, batch_decode_plain,
    batch_decode_shape,
)
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.message_metadata cimport MessageMetadata, message_metadata_decode
from pulsarx._core.single_metadata cimport (
    METADATA_COMPACTED_OUT, METADATA_EVENT_TIME, METADATA_NULL_VALUE, METADATA_PARTITION_KEY,
    METADATA_PROPERTIES, PropertyView, SingleMetadata, property_next, single_metadata_decode,
)
from pulsarx._core.status cimport (
    STATUS_CORRUPT, STATUS_END, STATUS_NO_MEMORY, STATUS_OK, STATUS_TOO_LARGE,
)
from pulsarx._pycore.arrow.arrow_memory cimport room_free, room_grow as grow
from pulsarx._pycore.arrow.arrow_text cimport text_is_valid, text_repair

cdef enum:
    SHRINK_FROM = 65536          # bytes of slack worth giving back
    IN_METADATA = 4              # protobuf fields of properties
    IN_BATCH = 1
    DESCRIBED = (METADATA_PARTITION_KEY | METADATA_EVENT_TIME | METADATA_NULL_VALUE
                 | METADATA_PROPERTIES | METADATA_COMPACTED_OUT)


cdef ArrowBlock* arrow_block_new() noexcept nogil:
    cdef ArrowBlock* self = <ArrowBlock*>calloc(1, sizeof(ArrowBlock))
    if self != NULL:
        self.references = 1
    return self


cdef void arrow_block_hold(ArrowBlock* self) noexcept nogil:
    atomic_add_u32(&self.references, 1)


cdef void text_column_free(TextColumn* column) noexcept nogil:
    room_free(column.offsets)
    room_free(column.data)


cdef void arrow_block_release(ArrowBlock* self) noexcept nogil:
    if self == NULL or atomic_sub_u32(&self.references, 1) != 1:
        return
    room_free(self.ledger_ids)
    room_free(self.entry_ids)
    room_free(self.partitions)
    room_free(self.batch_indexes)
    room_free(self.publish_times)
    room_free(self.value_offsets)
    room_free(self.value_data)
    room_free(self.value_validity)
    text_column_free(&self.key)
    room_free(self.key_validity)
    room_free(self.event_times)
    room_free(self.event_validity)
    room_free(self.property_offsets)
    text_column_free(&self.property_key)
    text_column_free(&self.property_value)
    room_free(self.zeros)
    free(self.runs)
    free(self)


cdef inline size_t bits_size(int64_t rows) noexcept nogil:
    return <size_t>((rows + 7) >> 3)


cdef int grow_rows(ArrowBlock* self, int64_t capacity) noexcept nogil:
    """Every column that is stored gets the same room. What was moved when one fails stays valid."""
    cdef size_t used = <size_t>self.row_count
    cdef size_t wanted = <size_t>capacity
    cdef size_t offsets_used = 4 * (used + 1) if self.value_offsets != NULL else 0
    cdef bint first = self.value_offsets == NULL
    if (grow(<void**>&self.ledger_ids, 8 * used, 8 * wanted, False) != STATUS_OK
            or grow(<void**>&self.entry_ids, 8 * used, 8 * wanted, False) != STATUS_OK
            or grow(<void**>&self.batch_indexes, 4 * used, 4 * wanted, False) != STATUS_OK
            or grow(<void**>&self.publish_times, 8 * used, 8 * wanted, False) != STATUS_OK
            or grow(<void**>&self.value_offsets, offsets_used, 4 * wanted + 4, False)
            != STATUS_OK):
        return STATUS_NO_MEMORY
    if first:
        self.value_offsets[0] = 0
    if self.value_validity != NULL and grow(
            <void**>&self.value_validity, bits_size(self.row_count), bits_size(capacity),
            True) != STATUS_OK:
        return STATUS_NO_MEMORY
    if self.key_validity != NULL and (
            grow(<void**>&self.key_validity, bits_size(self.row_count), bits_size(capacity),
                 True) != STATUS_OK
            or grow(<void**>&self.key.offsets, 4 * used + 4, 4 * wanted + 4, False)
            != STATUS_OK):
        return STATUS_NO_MEMORY
    if self.event_validity != NULL and (
            grow(<void**>&self.event_validity, bits_size(self.row_count), bits_size(capacity),
                 True) != STATUS_OK
            or grow(<void**>&self.event_times, 8 * used, 8 * wanted, True) != STATUS_OK):
        return STATUS_NO_MEMORY
    if self.property_offsets != NULL and grow(
            <void**>&self.property_offsets, 4 * used + 4, 4 * wanted + 4, False) != STATUS_OK:
        return STATUS_NO_MEMORY
    self.row_capacity = capacity
    return STATUS_OK


cdef int arrow_block_reserve(ArrowBlock* self, int64_t rows, int64_t value_bytes) noexcept nogil:
    cdef int64_t wanted = self.row_count + rows
    cdef int status
    if wanted > self.row_capacity:
        if wanted < 2 * self.row_capacity:
            wanted = 2 * self.row_capacity
        status = grow_rows(self, wanted)
        if status != STATUS_OK:
            return status
    wanted = self.value_size + value_bytes
    if wanted > self.value_capacity:
        if wanted < 2 * self.value_capacity:
            wanted = 2 * self.value_capacity
        status = grow(<void**>&self.value_data, <size_t>self.value_size, <size_t>wanted, False)
        if status != STATUS_OK:
            return status
        self.value_capacity = wanted
    return STATUS_OK


cdef inline void set_bit(uint8_t* bits, int64_t at) noexcept nogil:
    bits[at >> 3] |= <uint8_t>(1 << (at & 7))


cdef int append_text(TextColumn* column, const uint8_t* data, uint32_t size) noexcept nogil:
    """Append the bytes as UTF-8. The offset behind them is for the caller to write."""
    cdef bint valid = text_is_valid(data, size)
    cdef int64_t needed = column.data_size + (size if valid else 3 * <int64_t>size)
    cdef int64_t capacity = 2 * column.data_capacity
    if needed > INT32_MAX:
        return STATUS_TOO_LARGE
    if needed > column.data_capacity:
        capacity = max(capacity, needed, 1024)
        if grow(<void**>&column.data, <size_t>column.data_size, <size_t>capacity,
                False) != STATUS_OK:
            return STATUS_NO_MEMORY
        column.data_capacity = capacity
    if valid:
        if size:
            memcpy(column.data + column.data_size, data, size)
        column.data_size += size
    else:
        column.data_size += <int64_t>text_repair(data, size, column.data + column.data_size)
    return STATUS_OK


cdef int text_column_append(TextColumn* column, const uint8_t* data, uint32_t size) noexcept nogil:
    cdef int64_t capacity = 2 * column.capacity
    cdef int status
    if column.offsets == NULL or column.count == column.capacity:
        capacity = max(capacity, 64)
        if grow(<void**>&column.offsets, 4 * <size_t>(column.count + 1) if column.capacity else 0,
                4 * <size_t>(capacity + 1), False) != STATUS_OK:
            return STATUS_NO_MEMORY
        column.offsets[0] = 0
        column.capacity = capacity
    status = append_text(column, data, size)
    if status == STATUS_OK:
        column.count += 1
        column.offsets[column.count] = <int32_t>column.data_size
    return status


cdef int start_offsets(ArrowBlock* self, int32_t** offsets) noexcept nogil:
    """A column of offsets gets its first value in this row: all before it are empty."""
    cdef int status = grow(
        <void**>offsets, 0, 4 * <size_t>(self.row_capacity + 1), False)
    if status == STATUS_OK:
        memset(offsets[0], 0, 4 * <size_t>(self.row_count + 1))
    return status


cdef int take_key(ArrowBlock* self, const SingleMetadata* single) noexcept nogil:
    cdef int64_t row = self.row_count
    cdef int status
    if single.flags & METADATA_PARTITION_KEY:
        if self.key_validity == NULL:
            if start_offsets(self, &self.key.offsets) != STATUS_OK or grow(
                    <void**>&self.key_validity, 0, bits_size(self.row_capacity),
                    True) != STATUS_OK:
                return STATUS_NO_MEMORY
        status = append_text(&self.key, single.partition_key, single.partition_key_size)
        if status != STATUS_OK:
            return status
        set_bit(self.key_validity, row)
    if self.key_validity != NULL:
        self.key.offsets[row + 1] = <int32_t>self.key.data_size
    return STATUS_OK


cdef int take_event_time(ArrowBlock* self, const SingleMetadata* single) noexcept nogil:
    cdef int64_t row = self.row_count
    # A time of 0 is none, as Message.event_timestamp has it; one beyond 2^63 no column can hold.
    if single.flags & METADATA_EVENT_TIME and <int64_t>single.event_time_ms > 0:
        if self.event_validity == NULL:
            if grow(<void**>&self.event_times, 0, 8 * <size_t>self.row_capacity, True) != (
                    STATUS_OK) or grow(<void**>&self.event_validity, 0,
                                       bits_size(self.row_capacity), True) != STATUS_OK:
                return STATUS_NO_MEMORY
        set_bit(self.event_validity, row)
        self.event_times[row] = <int64_t>single.event_time_ms
        self.event_count += 1
    return STATUS_OK


cdef int take_properties(ArrowBlock* self, const SingleMetadata* single, const uint8_t* metadata,
                         uint32_t metadata_size, uint32_t field) noexcept nogil:
    cdef ByteReader reader
    cdef PropertyView view
    cdef int status
    if single.flags & METADATA_PROPERTIES:
        if self.property_offsets == NULL:
            if start_offsets(self, &self.property_offsets) != STATUS_OK:
                return STATUS_NO_MEMORY
        byte_reader_start(&reader, metadata, metadata_size)
        while True:
            status = property_next(&reader, field, &view)
            if status == STATUS_END:
                break
            if status == STATUS_OK:
                status = text_column_append(&self.property_key, view.key, view.key_size)
            if status == STATUS_OK:
                status = text_column_append(&self.property_value, view.value, view.value_size)
            if status != STATUS_OK:
                return status
    if self.property_offsets != NULL:
        self.property_offsets[self.row_count + 1] = <int32_t>self.property_value.count
    return STATUS_OK


cdef void text_column_cut(TextColumn* column, int64_t count) noexcept nogil:
    if column.offsets != NULL and column.count > count:
        column.count = count
        column.data_size = column.offsets[count]


cdef int describe(ArrowBlock* self, const SingleMetadata* single, const uint8_t* metadata,
                  uint32_t metadata_size, uint32_t field) noexcept nogil:
    """Key, event time, properties, missing value of the next row. Any failure leaves no trace."""
    cdef int64_t key_size = self.key.data_size
    cdef int64_t property_count = self.property_value.count
    cdef int64_t row = self.row_count
    cdef int status = STATUS_OK
    if single.flags & METADATA_NULL_VALUE and self.value_validity == NULL:
        status = grow(<void**>&self.value_validity, 0, bits_size(self.row_capacity), True)
        if status == STATUS_OK:
            memset(self.value_validity, 0xFF, <size_t>(row >> 3))
            if row & 7:
                self.value_validity[row >> 3] = <uint8_t>((1 << (row & 7)) - 1)
    if status == STATUS_OK:
        status = take_key(self, single)
    if status == STATUS_OK:
        status = take_properties(self, single, metadata, metadata_size, field)
    if status == STATUS_OK:
        status = take_event_time(self, single)
    if status != STATUS_OK:
        self.key.data_size = key_size
        if self.key_validity != NULL:
            self.key_validity[row >> 3] &= <uint8_t>~(1 << (row & 7))
        text_column_cut(&self.property_key, property_count)
        text_column_cut(&self.property_value, property_count)
        return status
    if single.flags & METADATA_PARTITION_KEY:
        self.key.count += 1
    if self.value_validity != NULL:
        if single.flags & METADATA_NULL_VALUE:
            self.value_nulls += 1
        else:
            set_bit(self.value_validity, row)
    return STATUS_OK


cdef int add_run(ArrowBlock* self, uint64_t ledger_id, uint64_t first,
                 uint64_t count) noexcept nogil:
    """Remember which messages the rows are; neighbours become one run."""
    cdef AckRun* last
    cdef AckRun* larger
    cdef int64_t capacity
    if count == 0:
        return STATUS_OK
    if self.run_count:
        last = self.runs + self.run_count - 1
        if last.ledger_id == ledger_id and last.first + last.count == first:
            last.count += count
            return STATUS_OK
    if self.run_count == self.run_capacity:
        capacity = max(8, 2 * self.run_capacity)
        larger = <AckRun*>realloc(self.runs, <size_t>capacity * sizeof(AckRun))
        if larger == NULL:
            return STATUS_NO_MEMORY
        self.runs = larger
        self.run_capacity = capacity
    last = self.runs + self.run_count
    last.ledger_id = ledger_id
    last.first = first
    last.count = count
    self.run_count += 1
    return STATUS_OK


cdef void fill_fixed(ArrowBlock* self, const BlockEntry* entry, int64_t first) noexcept nogil:
    """The columns that are the same for all rows of an entry, from row first on."""
    cdef int64_t row
    cdef int64_t ledger_id = <int64_t>entry.ledger_id
    cdef int64_t entry_id = <int64_t>entry.entry_id
    cdef int64_t publish_time_ms = entry.publish_time_ms
    cdef int64_t* ledger_ids = self.ledger_ids
    cdef int64_t* entry_ids = self.entry_ids
    cdef int64_t* publish_times = self.publish_times
    for row in range(first, self.row_count):
        ledger_ids[row] = ledger_id
    for row in range(first, self.row_count):
        entry_ids[row] = entry_id
    for row in range(first, self.row_count):
        publish_times[row] = publish_time_ms


cdef uint32_t take_alike(ArrowBlock* self, const BlockEntry* entry, const BatchShape* shape,
                         uint32_t* at, uint32_t number, uint32_t until) noexcept nogil:
    """Append the messages from number on that have the shape of the one before; the next one."""
    while number < until and self.value_size + shape.payload_size <= INT32_MAX and (
            batch_decode_alike(entry.payload, entry.payload_size, at[0], shape)):
        memcpy(self.value_data + self.value_size, entry.payload + at[0] + shape.header_size,
               shape.payload_size)
        self.value_size += shape.payload_size
        self.batch_indexes[self.row_count] = <int32_t>number
        self.row_count += 1
        self.value_offsets[self.row_count] = <int32_t>self.value_size
        at[0] += shape.size
        number += 1
    return number


cdef int arrow_block_take_batch(ArrowBlock* self, const BlockEntry* entry, uint32_t* at,
                                uint32_t* index, uint32_t until) noexcept nogil:
    cdef BatchMessage found
    cdef BatchShape shape
    cdef SingleMetadata single
    cdef int64_t first_row = self.row_count
    cdef uint32_t next_at = at[0]
    cdef uint32_t number = index[0]
    cdef uint32_t run_start = number
    cdef bint described
    cdef bint is_plain
    cdef int status = arrow_block_reserve(self, until - number, entry.payload_size - at[0])
    described = self.key_validity != NULL or self.event_validity != NULL or (
        self.property_offsets != NULL or self.value_validity != NULL)
    while status == STATUS_OK and number < until:
        is_plain = not described and batch_decode_plain(entry.payload, entry.payload_size,
                                                        &next_at, &found)
        if not is_plain:
            status = batch_decode_next(entry.payload, entry.payload_size, &next_at, &found)
        if status != STATUS_OK:
            # The entry claims more messages than it has.
            status = STATUS_CORRUPT if status == STATUS_END else status
            break
        if self.value_size + found.payload_size > INT32_MAX:
            status = STATUS_TOO_LARGE
            break
        if described or found.flags & DESCRIBED:
            if found.flags & METADATA_COMPACTED_OUT:
                status = add_run(self, entry.ledger_id, entry.first_message + run_start,
                                 number - run_start)
                number += 1
                run_start = number
                at[0] = next_at
                continue
            status = single_metadata_decode(
                found.encoded_metadata, found.encoded_metadata_size, &single)
            if status == STATUS_OK:
                status = describe(self, &single, found.encoded_metadata,
                                  found.encoded_metadata_size, IN_BATCH)
            if status != STATUS_OK:
                break
            described = True
        memcpy(self.value_data + self.value_size, found.payload, found.payload_size)
        self.value_size += found.payload_size
        self.batch_indexes[self.row_count] = <int32_t>number
        self.row_count += 1
        self.value_offsets[self.row_count] = <int32_t>self.value_size
        number += 1
        if is_plain:
            batch_decode_shape(entry.payload, &found, at[0], next_at, &shape)
            number = take_alike(self, entry, &shape, &next_at, number, until)
        at[0] = next_at
    index[0] = number
    fill_fixed(self, entry, first_row)
    if add_run(self, entry.ledger_id, entry.first_message + run_start,
               number - run_start) != STATUS_OK:
        return STATUS_NO_MEMORY
    return status


cdef int arrow_block_take_single(ArrowBlock* self, const BlockEntry* entry) noexcept nogil:
    cdef MessageMetadata metadata
    cdef SingleMetadata single
    cdef int64_t row = self.row_count
    cdef int status = message_metadata_decode(entry.metadata, entry.metadata_size, &metadata)
    if status != STATUS_OK:
        return status
    if self.value_size + entry.payload_size > INT32_MAX:
        return STATUS_TOO_LARGE
    status = arrow_block_reserve(self, 1, entry.payload_size)
    if status != STATUS_OK:
        return status
    memset(&single, 0, sizeof(single))
    single.flags = metadata.flags
    single.partition_key = metadata.partition_key
    single.partition_key_size = metadata.partition_key_size
    single.event_time_ms = metadata.event_time_ms
    status = describe(self, &single, entry.metadata, entry.metadata_size, IN_METADATA)
    if status == STATUS_OK:
        status = add_run(self, entry.ledger_id, entry.first_message, 1)
    if status != STATUS_OK:
        return status
    if entry.payload_size:
        memcpy(self.value_data + self.value_size, entry.payload, entry.payload_size)
    self.value_size += entry.payload_size
    self.batch_indexes[row] = -1
    self.row_count = row + 1
    self.value_offsets[row + 1] = <int32_t>self.value_size
    fill_fixed(self, entry, row)
    return STATUS_OK


cdef int arrow_block_finish(ArrowBlock* self, int32_t partition) noexcept nogil:
    """Fill in what is the same in all rows, and give back room that was not needed."""
    cdef size_t rows = <size_t>self.row_count
    cdef size_t row
    if grow(<void**>&self.partitions, 0, 4 * rows, False) != STATUS_OK:
        return STATUS_NO_MEMORY
    for row in range(rows):
        self.partitions[row] = partition
    if grow(<void**>&self.zeros, 0, 8 * rows + 8, True) != STATUS_OK:
        return STATUS_NO_MEMORY
    if self.value_size + <int64_t>SHRINK_FROM < self.value_capacity // 2:
        if grow(<void**>&self.value_data, <size_t>self.value_size, <size_t>self.value_size,
                False) != STATUS_OK:
            return STATUS_NO_MEMORY
        self.value_capacity = self.value_size
    return STATUS_OK
