# cython: language_level=3
"""Body of key_batches.pxd.

Source: Pulsar's BatchMessageKeyBasedContainer.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport memset

from pulsarx._core.batch_encode cimport (
    BatchEncode, batch_encode_add, batch_encode_free, batch_encode_init,
)
from pulsarx._core.single_metadata cimport (
    METADATA_ORDERING_KEY, METADATA_PARTITION_KEY, SingleMetadata,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.publish.producer_store cimport ProducerStore
from pulsarx._pycore.ground.raise_status cimport raise_status

cdef enum:
    HEADROOM = 320             # for the metadata in front, without the producer's name
    CAPACITY = 512             # of a new buffer: batches of one key are small
    KEPT_CAPACITY = 16384      # larger buffers are not kept
    KEPT_BATCHES = 1000


cdef class StoredBatch:
    """Where one batch went. Only its producer makes it."""


cdef class KeyBatch:
    """The open batch of one key. One thread at a time."""

    def __cinit__(self):
        memset(&self.batch, 0, sizeof(self.batch))

    def __dealloc__(self):
        batch_encode_free(&self.batch)

    def __lt__(self, KeyBatch other not None):
        return self.batch.last_sequence_id < other.batch.last_sequence_id


cdef class KeyBatches(ProducerStore):
    """Puts messages into batches by key. Every method wants the mutex held by the caller."""

    def __cinit__(self):
        self.open_batches = {}
        self.spare_batches = []

    cdef int add_by_key(self, SingleMetadata* metadata, const uint8_t* payload,
                        object callback) except -1:
        """Put a message into the open batch of its key; close all batches before when it does not
        fit."""
        cdef KeyBatch found
        cdef uint32_t size = 24 + metadata.payload_size + metadata.partition_key_size
        size += metadata.ordering_key_size
        if self.keyed_count and self.keyed_size + size > self.batch_bytes_max:
            self.close_open()
        key = sticky_key(metadata)
        found = self.open_batches.get(key)
        if found is not None and metadata.sequence_id <= found.batch.last_sequence_id:
            self.close_open()
            found = None
        if found is None:
            found = self.open_batch()
        if self.keyed_count == 0:
            self.begin_batch()
        cdef int status = batch_encode_add(&found.batch, metadata, payload)
        if status != STATUS_OK:
            raise_status(status, 0, f"add a message of {metadata.payload_size} bytes to the batch")
        self.open_batches[key] = found
        if callback is not None:
            if found.callbacks is None:
                found.callbacks = []
            found.callbacks.append((found.batch.message_count - 1, callback))
        self.last_batch = found
        self.keyed_count += 1
        self.keyed_size += size
        return 0

    cdef KeyBatch open_batch(self):
        """An empty one, its publish time now."""
        cdef KeyBatch made
        cdef int status
        if self.spare_batches:
            made = self.spare_batches.pop()
        else:
            made = KeyBatch()
            status = batch_encode_init(&made.batch, HEADROOM + len(self.name_utf8), CAPACITY)
            if status != STATUS_OK:
                raise_status(status, 0, "make a batch")
        made.stored = StoredBatch()
        made.publish_ms = self.clock.now_ms()
        return made

    cdef int close_open(self) except -1:
        """Store the batches of all keys, ordered by their last sequence id.

        So a topic that drops what it has seen (sequence id of a batch: that of its last message)
        drops none of them. All are tried; raises what the first one failed with, when a send waits
        for one batch only what that one failed with: the next flush is told about the others.
        """
        cdef KeyBatch closing
        cdef list batches
        cdef bint caller_waits = self.caller_waits
        if not self.by_key:
            return self.close_batch()
        if self.keyed_count == 0:
            return 0
        failure = None
        batches = list(self.open_batches.values())
        batches.sort()
        self.open_batches = {}
        self.keyed_count = 0
        self.keyed_size = 0
        self.last_batch = None
        try:
            for closing in batches:
                told = self.awaited is None or closing is self.awaited
                self.caller_waits = caller_waits and told
                try:
                    self.close_key_batch(closing)
                except BaseException as error:
                    if failure is None and (told or not isinstance(error, Exception)):
                        failure = error
        finally:
            self.caller_waits = caller_waits
        if failure is not None:
            raise failure
        return 0

    cdef int close_key_batch(self, KeyBatch closing) except -1:
        """Store one batch, in the place of the batch of a producer that has only one."""
        cdef BatchEncode by_arrival = self.batch
        cdef StoredBatch stored = closing.stored
        cdef uint32_t count = closing.batch.message_count
        self.batch = closing.batch
        self.batch.first_sequence_id = self.batch.last_sequence_id
        self.batch_publish_ms = closing.publish_ms
        self.callbacks, closing.callbacks = closing.callbacks, None
        try:
            self.close_batch()
            stored.writer = self.stored_writer
            stored.ledger_id = self.stored_ledger_id
            stored.entry_id = self.stored_entry_id
            stored.message_count = count
        finally:
            closing.batch = self.batch
            self.batch = by_arrival
            if closing.batch.capacity <= KEPT_CAPACITY and len(self.spare_batches) < KEPT_BATCHES:
                self.spare_batches.append(closing)
        return 0

    cdef int close_with_last(self, uint32_t* index, uint32_t* count) except -1:
        """Store all batches for a send that waits for the message added last; its place is
        stored_ledger_id, stored_entry_id and the index in that batch."""
        cdef KeyBatch last = self.last_batch
        cdef StoredBatch stored = last.stored
        count[0] = last.batch.message_count
        index[0] = last.batch.message_count - 1
        self.awaited = last
        try:
            self.close_open()
        finally:
            self.awaited = None
        self.stored_writer = stored.writer
        self.stored_ledger_id = stored.ledger_id
        self.stored_entry_id = stored.entry_id
        return 0


cdef bytes sticky_key(const SingleMetadata* metadata):
    """What all messages of a batch have in common. An ordering key and an equal key differ."""
    if metadata.flags & METADATA_ORDERING_KEY:
        return b"o" + PyBytes_FromStringAndSize(
            <const char*>metadata.ordering_key, metadata.ordering_key_size)
    if metadata.flags & METADATA_PARTITION_KEY:
        return b"k" + PyBytes_FromStringAndSize(
            <const char*>metadata.partition_key, metadata.partition_key_size)
    return b""
