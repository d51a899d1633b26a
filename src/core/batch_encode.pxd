"""Builds one entry in memory: a batch message by message, or a single message. One thread at a
time.

The buffer keeps room in front of the payload, so that metadata, checksum and the frame of the
ledger are written just before it and the whole is stored by one write without a copy:

  buffer                 entry            payload_start      payload_end
    | ... | frame 64 B    | 0e01 crc size metadata | messages ... | room for 8 bytes of padding
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from pulsarx._core.message_metadata cimport MessageMetadata
from pulsarx._core.single_metadata cimport SingleMetadata

cdef enum:
    PLAIN_TAG_SIZE = 0x18            # fields of SingleMessageMetadata
    PLAIN_TAG_SEQUENCE_ID = 0x40
    PLAIN_ROOM = 41                  # the longest header and the padding behind the entry

cdef struct BatchEncode:
    uint8_t* buffer                  # owned; NULL until something is added
    size_t capacity
    size_t first_capacity            # private: of the first buffer
    size_t payload_start
    size_t payload_end
    uint32_t message_count
    # 1 when two messages differ in sticky key: ordering key, else key, else none
    uint32_t mixed_keys
    uint32_t more_follow             # 1: entries that belong to this one are stored behind it
    uint64_t first_sequence_id
    uint64_t last_sequence_id
    # where the payload of the first message starts, and its metadata before it
    size_t first_payload
    size_t first_key                 # private: where the sticky key of the first message is
    uint32_t first_key_size
    uint32_t first_key_kind          # private: its flags; 0: it has none

cdef void batch_encode_init(BatchEncode* self, size_t headroom, size_t capacity) noexcept nogil
"""headroom: room kept before the payload, at least 256 + the producer name; it grows when a finish
needs more.

capacity: room for the payload to begin with. Memory is taken with the first message: most producers
of a program that has many are idle.
"""

cdef void batch_encode_free(BatchEncode* self) noexcept nogil
cdef void batch_encode_clear(BatchEncode* self) noexcept nogil

cdef inline size_t batch_encode_payload_size(const BatchEncode* self) noexcept nogil:
    return self.payload_end - self.payload_start

cdef int batch_encode_add(BatchEncode* self, const SingleMetadata* metadata,
                          const uint8_t* payload) noexcept nogil
"""Append one message of metadata.payload_size bytes; grows the buffer.

STATUS_NO_MEMORY, STATUS_TOO_LARGE (the entry would be larger than ENTRY_SIZE_MAX): nothing was
added.
"""

cdef inline uint8_t* batch_encode_varint(uint8_t* at, uint64_t value) noexcept nogil:
    while value >= 0x80:
        at[0] = <uint8_t>(value | 0x80)
        at += 1
        value >>= 7
    at[0] = <uint8_t>value
    return at + 1


cdef inline bint batch_encode_add_plain(BatchEncode* self, const uint8_t* payload, uint32_t size,
                                        uint64_t sequence_id) noexcept nogil:
    """batch_encode_add of a payload and a sequence id alone, for loops over many.

    False: nothing was added, call batch_encode_add. So it is for the first of a batch, where a key
    has come before, and where the buffer must grow.
    """
    cdef uint8_t* start
    cdef uint8_t* at
    cdef uint32_t header_size
    if self.message_count == 0 or self.first_key_kind != 0 or (
            <size_t>size + PLAIN_ROOM > self.capacity - self.payload_end):
        return False
    start = self.buffer + self.payload_end
    at = start + 5
    start[4] = PLAIN_TAG_SIZE
    at = batch_encode_varint(at, size)
    at[0] = PLAIN_TAG_SEQUENCE_ID
    at = batch_encode_varint(at + 1, sequence_id)
    header_size = <uint32_t>(at - start - 4)
    start[0] = 0
    start[1] = 0
    start[2] = 0
    start[3] = <uint8_t>header_size
    if size:
        memcpy(at, payload, size)
    self.payload_end = <size_t>(at - self.buffer) + size
    self.last_sequence_id = sequence_id
    self.message_count += 1
    return True

cdef int batch_encode_finish(BatchEncode* self, MessageMetadata* envelope, uint8_t** entry,
                             uint32_t* entry_size) noexcept nogil
"""Write magic, checksum and metadata in front of the messages; the buffer stays the owner of the
entry.

envelope in: producer name, publish time, schema version, compression fields 0. The rest is set
here: sequence ids, count, uncompressed size, keys of the first message. A batch of one becomes a
plain message (its key, properties, event time move into the envelope), as Pulsar's producers do.
more_follow: a batch is written without its highest_sequence_id, and a single message with it: the
other way round than an entry behind which none follows that belongs to it.
The entry has ENTRY_FRAME_SIZE bytes before and 8 behind that the caller may overwrite.
Keys in the envelope then point into the entry. The batch is used up by this: batch_encode_clear
comes next; counts and sequence ids may be read until then.
STATUS_NO_MEMORY, STATUS_TOO_LARGE: the batch is as it was.
Source: BatchMessageContainerImpl.createOpSendMsg.
"""

cdef int batch_encode_compressed(BatchEncode* self, MessageMetadata* envelope,
                                 const uint8_t* compressed,
                                 uint32_t compressed_size, uint8_t** entry,
                                 uint32_t* entry_size) noexcept nogil
"""Like finish, with the payload (which batch_encode_plain_payload shows) replaced by its compressed
or encrypted form.

envelope.compression is set by the caller, 0 for none, and so is what says how it is encrypted;
compressed lies outside the buffer. The
batch is used up by this.
"""

cdef void batch_encode_plain_payload(const BatchEncode* self, const uint8_t** payload,
                                     uint32_t* size) noexcept nogil
"""Show the bytes to compress: all messages with their headers, or the bare payload of a batch of
one."""

cdef int batch_encode_single(BatchEncode* self, const MessageMetadata* metadata,
                             const uint8_t* payload, uint32_t payload_size,
                             uint8_t** entry, uint32_t* entry_size) noexcept nogil
"""An entry of one message that was never in a batch; whatever the buffer held is dropped.

metadata and payload point outside the buffer.
"""
