# cython: language_level=3
"""Body of sealed_batches.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport entry_check
from pulsarx._core.batch_encode cimport (
    batch_encode_add, batch_encode_clear, batch_encode_compressed, batch_encode_finish,
    batch_encode_free, batch_encode_init, batch_encode_payload_size, batch_encode_plain_payload,
)
from pulsarx._core.entry_frame cimport (
    ENTRY_BATCH, ENTRY_CHUNK, ENTRY_COMPRESSED, ENTRY_MARKER, ENTRY_MIXED_KEYS, EntryFrame,
)
from pulsarx._core.ledger_append cimport ledger_append_entry, ledger_append_is_brief
from pulsarx._core.ledger_state cimport ledger_error
from pulsarx._core.limits cimport ENTRY_FRAME_SIZE
from pulsarx._core.message_metadata cimport EntryParts, MessageMetadata, entry_decode
from pulsarx._core.single_metadata cimport (
    METADATA_BATCH, METADATA_ENCRYPTED, METADATA_KEY_BASE64, METADATA_MARKER, METADATA_NULL_VALUE,
    METADATA_PARTITION_KEY, METADATA_SCHEMA_VERSION, METADATA_SEQUENCE_ID, METADATA_UUID,
    SingleMetadata,
)
from pulsarx._core.status cimport STATUS_LEDGER_FULL, STATUS_OK, STATUS_TOO_LARGE
from pulsarx._core.sticky_key cimport sticky_key_of_entry
from pulsarx._pycore.arrow.arrow_column cimport ROW_NULL, ROW_OK, column_take
from pulsarx._pycore.arrow.arrow_import cimport ArrowImport, arrow_rows_encode
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.publish.outgoing_message cimport outgoing_describe
from pulsarx._pycore.ground.raise_status cimport raise_status

cdef enum:
    HEADROOM = 1024              # for the metadata in front of a batch
    CAPACITY = 4096              # of a new buffer; it grows to what batches need
    MESSAGE_HEADER_SIZE = 24     # about, as the producers reckon
    SPARE_MAX = 1000
    GIL_KEPT_UP_TO = 4096


cdef class OpenBatch:
    """A batch that takes messages. One thread at a time."""

    def __cinit__(self):
        memset(&self.batch, 0, sizeof(self.batch))

    def __dealloc__(self):
        batch_encode_free(&self.batch)


cdef class SealedBatches:
    """Messages on their way into one file. One thread at a time."""

    def __init__(self, LedgerWriter writer not None, *, str producer_name not None, clock, compress,
                 int compression, uint32_t batch_messages_max, uint32_t batch_bytes_max,
                 uint32_t message_size_max, bint by_key, bint null_values,
                 bytes schema_version=None):
        self.writer = writer
        self.clock = clock
        self.compress = compress
        self.compression = compression
        self.name_utf8 = producer_name.encode()
        self.limits.batch_messages = batch_messages_max
        self.limits.batch_bytes = batch_bytes_max
        self.limits.message_size = message_size_max
        self.limits.refuse_null = not null_values
        self.by_key = by_key
        self.schema_version = schema_version
        self.keyed = {}
        self.spare = []
        self.mixed = self.new_batch()

    def __dealloc__(self):
        PyMem_Free(self.scratch.views)

    def add_table(self, data, value, key, properties, event_time) -> int:
        """Append all rows; how many. As send_arrow."""
        cdef ArrowImport source = ArrowImport(data, value, key, event_time, properties)
        cdef uint64_t before = self.row_count
        try:
            while source.advance():
                if self.by_key:
                    self.add_keyed_rows(source)
                else:
                    self.add_mixed_rows(source)
        finally:
            source.close()
        return self.row_count - before

    cdef int add_mixed_rows(self, ArrowImport source) except -1:
        cdef OpenBatch filled = self.mixed
        cdef uint64_t before
        cdef int64_t at
        cdef int status
        while source.rows.at < source.rows.length:
            if filled.batch.message_count == 0:
                filled.publish_ms = self.clock.now_ms()
            before = self.next_sequence_id
            at = source.rows.at
            with nogil:
                status = arrow_rows_encode(&source.rows, &self.limits, &filled.batch,
                                           &self.next_sequence_id)
            self.row_count += self.next_sequence_id - before
            if status != ROW_OK:
                source.raise_row(status)
            if source.rows.at < source.rows.length or (
                    filled.batch.message_count >= self.limits.batch_messages):
                self.store_batch(filled)
        return 0

    cdef int add_keyed_rows(self, ArrowImport source) except -1:
        cdef const uint8_t* data = NULL
        cdef int64_t length = source.rows.length
        cdef int64_t size = 0
        cdef int64_t at = source.rows.at
        cdef OpenBatch filled
        cdef bytes key
        cdef int status
        while at < length:
            key = b""
            if source.rows.key.kind:
                status = column_take(&source.rows.key, at, &data, &size)
                if status == ROW_OK:
                    key = PyBytes_FromStringAndSize(<const char*>data, size)
            size = 0
            column_take(&source.rows.value, at, &data, &size)
            filled = self.batch_for(key, <uint64_t>size)
            source.rows.at = at
            source.rows.length = at + 1
            status = arrow_rows_encode(&source.rows, &self.limits, &filled.batch,
                                       &self.next_sequence_id)
            source.rows.length = length
            if status != ROW_OK:
                source.raise_row(status)
            if source.rows.at == at:
                self.store_open()        # it does not fit any more: into an empty one
                continue
            self.row_count += 1
            self.keyed_count += 1
            self.keyed_size += MESSAGE_HEADER_SIZE + <uint64_t>(size + len(key))
            at += 1
        return 0

    def add(self, value, key, properties, event_time_ms, bint key_base64=False) -> None:
        """Append one message. value: bytes or None; key: bytes, str or None; key_base64: it is the
        base64 of the key."""
        cdef SingleMetadata metadata
        cdef OpenBatch filled
        cdef const uint8_t* payload = NULL
        cdef bytes key_bytes = key.encode() if isinstance(key, str) else key or b""
        cdef uint64_t size = 0
        cdef int status
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        if value is None:
            if self.limits.refuse_null:
                raise ValueError(f"row {self.row_count}: it has no value (None), which was not "
                                 "allowed")
            metadata.flags |= METADATA_NULL_VALUE
        elif isinstance(value, bytes):
            payload = <const uint8_t*>PyBytes_AS_STRING(value)
            size = <uint64_t>PyBytes_GET_SIZE(value)
        else:
            raise TypeError(f"row {self.row_count}: a value is bytes or None, not "
                            f"{type(value).__name__}")
        if size > self.limits.message_size:
            raise errors.MessageTooBig(
                detail=f"row {self.row_count} has {size} bytes; that is over max_message_size",
                size=size, max_size=self.limits.message_size)
        outgoing_describe(&metadata, &self.scratch, None, None, properties, event_time_ms, None)
        if key_bytes:
            metadata.flags |= METADATA_PARTITION_KEY | (METADATA_KEY_BASE64 if key_base64 else 0)
            metadata.partition_key = <const uint8_t*>PyBytes_AS_STRING(key_bytes)
            metadata.partition_key_size = <uint32_t>PyBytes_GET_SIZE(key_bytes)
        metadata.payload_size = <uint32_t>size
        metadata.sequence_id = self.next_sequence_id
        size += <uint64_t>PyBytes_GET_SIZE(key_bytes)
        filled = self.batch_for(key_bytes, size)
        status = batch_encode_add(&filled.batch, &metadata, payload)
        if status != STATUS_OK:
            raise_status(status, 0, f"add row {self.row_count} to the batch")
        self.next_sequence_id += 1
        self.row_count += 1
        if self.by_key:
            self.keyed_count += 1
            self.keyed_size += size + MESSAGE_HEADER_SIZE

    cdef OpenBatch batch_for(self, bytes key, uint64_t size):
        """An open batch with room for such a message."""
        cdef OpenBatch found
        cdef uint64_t there
        if not self.by_key:
            found = self.mixed
            there = batch_encode_payload_size(&found.batch)
            if found.batch.message_count and (
                    found.batch.message_count >= self.limits.batch_messages
                    or there + size + MESSAGE_HEADER_SIZE > self.limits.batch_bytes):
                self.store_batch(found)
        else:
            if self.keyed_count and (
                    self.keyed_count >= self.limits.batch_messages
                    or self.keyed_size + size + MESSAGE_HEADER_SIZE > self.limits.batch_bytes):
                self.store_open()
            found = self.keyed.get(key)
            if found is None:
                found = self.keyed[key] = self.spare.pop() if self.spare else self.new_batch()
        if found.batch.message_count == 0:
            found.publish_ms = self.clock.now_ms()
        return found

    cdef OpenBatch new_batch(self):
        cdef OpenBatch made = OpenBatch()
        batch_encode_init(&made.batch, HEADROOM + len(self.name_utf8), CAPACITY)
        return made

    def store_open(self) -> None:
        """Store what waits for company. Batches of keys by their last message, as producers do."""
        cdef OpenBatch closing
        cdef dict keyed = self.keyed
        if self.mixed.batch.message_count:
            self.store_batch(self.mixed)
        if not keyed:
            return
        self.keyed = {}
        self.keyed_count = 0
        self.keyed_size = 0
        for closing in sorted(keyed.values(), key=last_sequence_id):
            closing.batch.first_sequence_id = closing.batch.last_sequence_id
            self.store_batch(closing)
            if len(self.spare) < SPARE_MAX:
                self.spare.append(closing)

    cdef int store_batch(self, OpenBatch closing) except -1:
        cdef MessageMetadata envelope
        cdef EntryFrame frame
        cdef uint8_t* entry = NULL
        cdef const uint8_t* plain = NULL
        cdef uint32_t size = 0
        cdef bytes packed
        cdef int status
        memset(&envelope, 0, sizeof(envelope))
        memset(&frame, 0, sizeof(frame))
        envelope.message_count = 1
        envelope.publish_time_ms = <uint64_t>closing.publish_ms
        envelope.producer_name = <const uint8_t*>PyBytes_AS_STRING(self.name_utf8)
        envelope.producer_name_size = <uint32_t>PyBytes_GET_SIZE(self.name_utf8)
        if self.schema_version is not None:
            envelope.flags = METADATA_SCHEMA_VERSION
            envelope.schema_version = <const uint8_t*>PyBytes_AS_STRING(self.schema_version)
            envelope.schema_version_size = <uint32_t>PyBytes_GET_SIZE(self.schema_version)
        if self.compression:
            batch_encode_plain_payload(&closing.batch, &plain, &size)
            packed = self.compress(self.compression, plain[:size])
            envelope.compression = self.compression
            status = batch_encode_compressed(&closing.batch, &envelope,
                                             <const uint8_t*>PyBytes_AS_STRING(packed),
                                             <uint32_t>PyBytes_GET_SIZE(packed), &entry, &size)
        else:
            with nogil:
                status = batch_encode_finish(&closing.batch, &envelope, &entry, &size)
        if status != STATUS_OK:
            raise_status(status, 0, f"encode a batch of {closing.batch.message_count} messages")
        frame.entry_size = size
        frame.message_count = closing.batch.message_count
        frame.publish_time_ms = closing.publish_ms
        frame.flags = (ENTRY_BATCH if envelope.flags & METADATA_BATCH else 0) | (
            ENTRY_COMPRESSED if envelope.compression else 0) | (
            ENTRY_MIXED_KEYS if closing.batch.mixed_keys else 0)
        frame.sticky_hash = sticky_key_of_entry(&envelope)
        self.store(&frame, entry)
        batch_encode_clear(&closing.batch)
        return 0

    def take_sequence_id(self) -> int:
        """For an entry that is made elsewhere, as the next message."""
        self.next_sequence_id += 1
        return self.next_sequence_id - 1

    def add_entry(self, bytes entry not None, bint mixed_keys) -> None:
        """Append an entry as a Pulsar producer made it, byte for byte; its checksum is verified.

        mixed_keys: its messages may differ in key.
        """
        cdef EntryParts parts
        cdef EntryFrame frame
        cdef uint8_t* room
        cdef size_t size = <size_t>PyBytes_GET_SIZE(entry)
        cdef int status = STATUS_TOO_LARGE
        if size < <size_t>0x40000000:
            status = entry_decode(<const uint8_t*>PyBytes_AS_STRING(entry), <uint32_t>size, True,
                                  &parts)
        if status == STATUS_OK:
            status = entry_check(&parts, parts.metadata.message_count)
        if status != STATUS_OK:
            raise_status(status, 0, f"take an entry of {size} bytes")
        if not parts.has_checksum:
            raise ValueError(f"an entry of {size} bytes has no checksum in front (0x0e01)")
        if parts.metadata.flags & METADATA_ENCRYPTED:
            raise errors.OperationNotSupported(
                detail=f"take an entry of {size} bytes that is encrypted; producers encrypt what "
                "is sent")
        self.store_open()
        memset(&frame, 0, sizeof(frame))
        frame.entry_size = <uint32_t>size
        frame.publish_time_ms = <int64_t>parts.metadata.publish_time_ms
        frame.deliver_at_ms = parts.metadata.deliver_at_ms
        frame.message_count = 1
        if parts.metadata.flags & METADATA_BATCH:
            frame.message_count = parts.metadata.message_count
            frame.flags |= ENTRY_BATCH | (ENTRY_MIXED_KEYS if mixed_keys else 0)
        if parts.metadata.compression:
            frame.flags |= ENTRY_COMPRESSED
        if parts.metadata.flags & METADATA_UUID:
            frame.flags |= ENTRY_CHUNK
        if parts.metadata.flags & METADATA_MARKER:
            frame.flags |= ENTRY_MARKER
        frame.sticky_hash = sticky_key_of_entry(&parts.metadata)
        room = <uint8_t*>malloc(ENTRY_FRAME_SIZE + size + 8)
        if room == NULL:
            raise MemoryError(f"append {size} bytes")
        memcpy(room + ENTRY_FRAME_SIZE, PyBytes_AS_STRING(entry), size)
        try:
            self.store(&frame, room + ENTRY_FRAME_SIZE)
        finally:
            free(room)
        self.row_count += frame.message_count

    cdef int store(self, EntryFrame* frame, uint8_t* entry) except -1:
        cdef uint64_t offset
        cdef int status
        if frame.entry_size > GIL_KEPT_UP_TO or not (
                ledger_append_is_brief(&self.writer.c_ledger, frame.entry_size)):
            with nogil:
                status = ledger_append_entry(&self.writer.c_ledger, frame, entry, &offset)
        else:
            status = ledger_append_entry(&self.writer.c_ledger, frame, entry, &offset)
        if status == STATUS_LEDGER_FULL:
            raise errors.StorageError(
                detail=f"{self.writer.path} has {self.writer.end} bytes, the most that a ledger "
                "may have. Begin another file")
        if status != STATUS_OK:
            raise_status(status, ledger_error(&self.writer.c_ledger),
                         f"append {frame.entry_size} bytes to {self.writer.path}")
        return 0


def last_sequence_id(OpenBatch batch not None):
    return batch.batch.last_sequence_id
