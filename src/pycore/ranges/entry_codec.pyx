"""Encodes and decodes entries for Python callers: tests, tools, Spark. Any thread may call.

They go through the same functions of the core as the product's.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.batch_encode cimport *
from pulsarx._core.byte_reader cimport ByteReader, byte_reader_start
from pulsarx._core.crc32c cimport crc32c as c_crc32c
from pulsarx._core.crc32c cimport crc32c_portable as c_crc32c_portable
from pulsarx._core.message_metadata cimport *
from pulsarx._core.murmur3 cimport murmur3_32 as c_murmur3_32
from pulsarx._core.single_metadata cimport *
from pulsarx._core.status cimport STATUS_END, STATUS_OK
from pulsarx._pycore.ground.raise_status cimport raise_status

cdef object UNCOMPRESSED_SIZE_MAX = 1 << 30


def crc32c(data, uint32_t seed=0):
    """The checksum of Pulsar's entries; seed: an earlier result to go on from."""
    return hashed(data, seed, c_crc32c)


def crc32c_portable(data, uint32_t seed=0):
    """The same without the processor's instruction, to compare with."""
    return hashed(data, seed, c_crc32c_portable)


ctypedef uint32_t (*HashFunction)(uint32_t, const uint8_t*, size_t) noexcept nogil


cdef object hashed(object data, uint32_t seed, HashFunction function):
    cdef Py_buffer view
    cdef uint32_t result
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            result = function(seed, <const uint8_t*>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
    return result


def murmur3_32(data, uint32_t seed=0):
    """MurmurHash3 x86 32 bit, unsigned."""
    return hashed(data, seed, c_murmur3_32)


cdef bytes key_bytes(object key):
    if key is None or isinstance(key, bytes):
        return key
    # Not every key on disk is UTF-8; decode_entry shows such bytes as surrogates.
    return key.encode("utf-8", "surrogateescape")


cdef str text(const uint8_t* data, uint32_t size):
    return (<const char*>data)[:size].decode("utf-8", "surrogateescape")


cdef class MessageFields:
    """The fields of one message beside its payload, as C pointers. Made and used within one
    call."""

    cdef SingleMetadata c_metadata
    cdef PropertyView* c_properties  # owned
    cdef list kept                   # the bytes that the pointers point into

    def __cinit__(self):
        memset(&self.c_metadata, 0, sizeof(SingleMetadata))
        self.c_properties = NULL
        self.kept = []

    def __dealloc__(self):
        free(self.c_properties)

    cdef const uint8_t* keep(self, bytes data, uint32_t* size) except NULL:
        if len(data) >> 31:
            raise OverflowError(f"a key or property of {len(data)} bytes is too long")
        self.kept.append(data)
        size[0] = <uint32_t>len(data)
        return <const uint8_t*><const char*>data

    cdef int take(self, size_t payload_size, uint64_t sequence_id, key, ordering_key, properties,
                  uint64_t event_time_ms, bint null_value) except -1:
        cdef SingleMetadata* metadata = &self.c_metadata
        if payload_size >> 30:
            raise OverflowError(f"a payload of {payload_size} bytes is too long")
        metadata.payload_size = <uint32_t>payload_size
        metadata.sequence_id = sequence_id
        metadata.flags = METADATA_SEQUENCE_ID
        if key is not None:
            metadata.flags |= METADATA_PARTITION_KEY
            metadata.partition_key = self.keep(key_bytes(key), &metadata.partition_key_size)
        if ordering_key is not None:
            metadata.flags |= METADATA_ORDERING_KEY
            metadata.ordering_key = self.keep(key_bytes(ordering_key), &metadata.ordering_key_size)
        if event_time_ms:
            metadata.flags |= METADATA_EVENT_TIME
            metadata.event_time_ms = event_time_ms
        if null_value:
            metadata.flags |= METADATA_NULL_VALUE
        if properties:
            self.take_properties(properties)
        return 0

    cdef int take_properties(self, properties) except -1:
        cdef PropertyView* view
        self.c_properties = <PropertyView*>calloc(len(properties), sizeof(PropertyView))
        if self.c_properties == NULL:
            raise MemoryError
        for name, value in properties.items():
            view = &self.c_properties[self.c_metadata.property_count]
            view.key = self.keep(key_bytes(name), &view.key_size)
            view.value = self.keep(key_bytes(value), &view.value_size)
            self.c_metadata.property_count += 1
        self.c_metadata.properties = self.c_properties
        return 0


cdef class EntryBuffer:
    """A buffer of the core for one call."""

    cdef BatchEncode c_batch

    def __cinit__(self):
        batch_encode_init(&self.c_batch, 1024, 4096)

    def __dealloc__(self):
        batch_encode_free(&self.c_batch)


cdef object compress_payload(int kind, object payload):
    # Not at the top: compression lies above this layer, as do all callers of this module.
    from pulsarx.compression import compress

    return compress(kind, payload)


cdef bytes start_envelope(MessageMetadata* envelope, str producer_name, int64_t publish_time_ms,
                          bytes schema_version, int compression):
    """Set the fields that every entry has; returns the bytes that must be kept alive."""
    cdef bytes name = producer_name.encode("utf-8", "surrogateescape")
    memset(envelope, 0, sizeof(MessageMetadata))
    envelope.producer_name = <const uint8_t*><const char*>name
    envelope.producer_name_size = <uint32_t>len(name)
    envelope.publish_time_ms = <uint64_t>publish_time_ms
    envelope.message_count = 1
    envelope.compression = compression
    if schema_version:
        envelope.flags |= METADATA_SCHEMA_VERSION
        envelope.schema_version = <const uint8_t*><const char*>schema_version
        envelope.schema_version_size = <uint32_t>len(schema_version)
    return name


def encode_entry(bytes payload not None, *, str producer_name, uint64_t sequence_id,
                 int64_t publish_time_ms, key=None, ordering_key=None, properties=None,
                 uint64_t event_time_ms=0, int64_t deliver_at_ms=0, bytes schema_version=b"",
                 bint null_value=False, int compression=0, bint key_base64=False):
    """The bytes of an entry that is one message and no batch. key_base64: the key is that of bytes.
    """
    cdef MessageFields fields = MessageFields()
    cdef EntryBuffer buffer = EntryBuffer()
    cdef MessageMetadata envelope
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    cdef bytes name = start_envelope(&envelope, producer_name, publish_time_ms, schema_version,
                                     compression)
    fields.take(len(payload), sequence_id, key, ordering_key, properties, event_time_ms, null_value)
    if compression:
        envelope.uncompressed_size = <uint32_t>len(payload)
        payload = compress_payload(compression, payload)
    envelope.flags |= fields.c_metadata.flags & ~<uint32_t>METADATA_SEQUENCE_ID
    if key_base64:
        envelope.flags |= METADATA_KEY_BASE64
    envelope.sequence_id = sequence_id
    envelope.partition_key = fields.c_metadata.partition_key
    envelope.partition_key_size = fields.c_metadata.partition_key_size
    envelope.ordering_key = fields.c_metadata.ordering_key
    envelope.ordering_key_size = fields.c_metadata.ordering_key_size
    envelope.properties = fields.c_metadata.properties
    envelope.property_count = fields.c_metadata.property_count
    envelope.event_time_ms = event_time_ms
    if deliver_at_ms:
        envelope.flags |= METADATA_DELIVER_AT
        envelope.deliver_at_ms = deliver_at_ms
    raise_status(
        batch_encode_single(&buffer.c_batch, &envelope, <const uint8_t*><const char*>payload,
                            <uint32_t>len(payload), &entry, &size),
        0, f"encode an entry of {len(payload)} bytes by {name!r}")
    return PyBytes_FromStringAndSize(<const char*>entry, size)


def encode_batch(messages, *, str producer_name, int64_t publish_time_ms, bytes schema_version=b"",
                 int compression=0):
    """The bytes of an entry that is a batch of (payload, fields) pairs.

    fields, all optional: sequence_id (else the index in the batch), key, ordering_key, properties,
    event_time_ms, null_value. One message alone becomes a plain entry.
    """
    cdef EntryBuffer buffer = EntryBuffer()
    cdef MessageFields fields
    cdef MessageMetadata envelope
    cdef const uint8_t* plain = NULL
    cdef uint8_t* entry = NULL
    cdef uint32_t size = 0
    cdef bytes payload
    cdef bytes name = start_envelope(&envelope, producer_name, publish_time_ms, schema_version,
                                     compression)
    if not messages:
        raise ValueError("a batch needs at least one message")
    for index, (payload, named) in enumerate(messages):
        fields = MessageFields()
        fields.take(len(payload), named.get("sequence_id", index), named.get("key"),
                    named.get("ordering_key"), named.get("properties"),
                    named.get("event_time_ms", 0), named.get("null_value", False))
        raise_status(
            batch_encode_add(&buffer.c_batch, &fields.c_metadata,
                             <const uint8_t*><const char*>payload),
            0, f"add message {index} of {len(payload)} bytes to a batch")
    if compression:
        batch_encode_plain_payload(&buffer.c_batch, &plain, &size)
        payload = compress_payload(compression, PyBytes_FromStringAndSize(<const char*>plain, size))
        raise_status(
            batch_encode_compressed(&buffer.c_batch, &envelope,
                                    <const uint8_t*><const char*>payload,
                                    <uint32_t>len(payload), &entry, &size),
            0, f"encode a compressed batch by {name!r}")
    else:
        raise_status(batch_encode_finish(&buffer.c_batch, &envelope, &entry, &size),
                     0, f"encode a batch by {name!r}")
    return PyBytes_FromStringAndSize(<const char*>entry, size)


cdef dict read_properties(const uint8_t* data, uint32_t size, uint32_t field):
    cdef ByteReader reader
    cdef PropertyView view
    cdef dict found = {}
    cdef int status
    byte_reader_start(&reader, data, size)
    while True:
        status = property_next(&reader, field, &view)
        if status == STATUS_END:
            return found
        raise_status(status, 0, "decode the properties of a message")
        found[text(view.key, view.key_size)] = text(view.value, view.value_size)


cdef dict read_fields(uint32_t flags, const uint8_t* key, uint32_t key_size,
                      const uint8_t* ordering_key, uint32_t ordering_key_size,
                      uint64_t event_time_ms, object sequence_id):
    return {
        "key": text(key, key_size) if flags & METADATA_PARTITION_KEY else None,
        "key_base64": bool(flags & METADATA_KEY_BASE64),
        "ordering_key": ordering_key[:ordering_key_size] if flags & METADATA_ORDERING_KEY else None,
        "event_time_ms": event_time_ms,
        "sequence_id": sequence_id,
        "null_value": bool(flags & METADATA_NULL_VALUE),
        "null_key": bool(flags & METADATA_NULL_KEY),
        "compacted_out": bool(flags & METADATA_COMPACTED_OUT),
    }


cdef list read_batch(bytes payload, uint32_t message_count):
    """All messages of a batch; an error when there are fewer or more than the envelope says."""
    cdef const uint8_t* data = <const uint8_t*><const char*>payload
    cdef uint32_t size = <uint32_t>len(payload)
    cdef uint32_t at = 0
    cdef BatchMessage message
    cdef SingleMetadata metadata
    cdef list found = []
    while True:
        status = batch_decode_next(data, size, &at, &message)
        if status == STATUS_END and len(found) == message_count:
            return found
        where = f"decode message {len(found)} of {message_count} at byte {at} of a batch"
        if status == STATUS_END or (status == STATUS_OK and len(found) == message_count):
            from pulsarx.errors import CorruptDataError

            raise CorruptDataError(detail=f"{where}: the count does not fit the {size} bytes")
        raise_status(status, 0, where)
        raise_status(single_metadata_decode(message.encoded_metadata, message.encoded_metadata_size,
                                            &metadata), 0, where)
        one = read_fields(metadata.flags, metadata.partition_key, metadata.partition_key_size,
                          metadata.ordering_key, metadata.ordering_key_size, metadata.event_time_ms,
                          metadata.sequence_id if metadata.flags & METADATA_SEQUENCE_ID else None)
        one["properties"] = read_properties(message.encoded_metadata,
                                            message.encoded_metadata_size, 1)
        one["payload"] = message.payload[:message.payload_size]
        found.append(one)


def decode_entry(bytes entry not None, bint verify=True, limit=UNCOMPRESSED_SIZE_MAX):
    """Fields of the metadata, and `messages`: one dict each, decompressed. An encrypted entry is
    shown as one message, its payload as it is stored.

    limit: bytes after decompression.
    """
    cdef EntryParts parts
    cdef MessageMetadata* metadata = &parts.metadata
    cdef bytes payload
    if len(entry) >> 31:
        raise OverflowError(f"an entry of {len(entry)} bytes is too long")
    raise_status(entry_decode(<const uint8_t*><const char*>entry, <uint32_t>len(entry), verify,
                              &parts),
                 0, f"decode an entry of {len(entry)} bytes")
    payload = parts.payload[:parts.payload_size]
    if metadata.compression and not metadata.flags & METADATA_ENCRYPTED:
        from pulsarx.compression import decompress

        payload = decompress(metadata.compression, payload, metadata.uncompressed_size, limit)
    found = read_fields(metadata.flags, metadata.partition_key, metadata.partition_key_size,
                        metadata.ordering_key, metadata.ordering_key_size, metadata.event_time_ms,
                        metadata.sequence_id)
    found["properties"] = read_properties(parts.encoded_metadata, parts.encoded_metadata_size, 4)
    if metadata.flags & METADATA_BATCH and not metadata.flags & METADATA_ENCRYPTED:
        found["messages"] = read_batch(payload, metadata.message_count)
    else:
        found["messages"] = [{**found, "payload": payload}]
    found["producer_name"] = text(metadata.producer_name, metadata.producer_name_size)
    found["publish_time_ms"] = metadata.publish_time_ms
    found["deliver_at_ms"] = metadata.deliver_at_ms
    found["highest_sequence_id"] = metadata.highest_sequence_id
    found["schema_version"] = metadata.schema_version[:metadata.schema_version_size]
    found["message_count"] = metadata.message_count
    found["batch"] = bool(metadata.flags & METADATA_BATCH)
    found["encrypted"] = bool(metadata.flags & METADATA_ENCRYPTED)
    found["chunk"] = bool(metadata.flags & METADATA_UUID)
    found["marker"] = bool(metadata.flags & METADATA_MARKER)
    found["compression"] = metadata.compression
    found["uncompressed_size"] = metadata.uncompressed_size
    found["checksum"] = parts.checksum if parts.has_checksum else None
    return found
