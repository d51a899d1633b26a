# cython: language_level=3
"""Body of producer_bulk.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

import pulsarx._pycore.publish.send_entry  # gives ProducerCore its send_async

from pulsarx._core.batch_encode cimport batch_encode_add, batch_encode_payload_size
from pulsarx._core.single_metadata cimport METADATA_SEQUENCE_ID, SingleMetadata
from pulsarx._core.status cimport STATUS_OK
from pulsarx._pycore.publish.key_batches cimport StoredBatch
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.message.message_id cimport message_id_new
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.publish.outgoing_message cimport outgoing_content, outgoing_describe
from pulsarx._pycore.publish.producer_core cimport ProducerCore
from pulsarx._pycore.publish.producer_store cimport DURABILITY_SYNC, PRODUCER_OPEN
from pulsarx._pycore.ground.raise_status cimport raise_status


cdef class ProducerBulk(ProducerCore):
    """send_many and send_arrow: many messages in one call. They always form batches, batching
    enabled or not."""

    def send_many(self, payloads, *, keys=None, properties=None, event_timestamps=None) -> list:
        """Publish a list of messages in order; returns their MessageIds when all are durable, as
        send.

        payloads: contents as for send. keys, properties, event_timestamps: None, or a list as long,
            None where one
        has none. An error leaves published what came before; the text says how many.
        """
        cdef list contents = payloads if type(payloads) is list else list(payloads)
        cdef Py_ssize_t count = PyList_GET_SIZE(contents)
        cdef Py_ssize_t at = 0
        cdef list ids = []
        cdef LedgerWriter writer = None
        cdef uint64_t entry_id = 0
        cdef object refused = None
        cdef bint plain = (keys is None and properties is None and event_timestamps is None
                           and self.bytes_schema)
        for name, column in (("keys", keys), ("properties", properties), ("event_timestamps",
                event_timestamps)):
            if isinstance(column, str):
                raise ValueError(f"{name} is a str; give a list, one element a message")
            if column is not None and len(column) != count:
                raise ValueError(f"{name} has {len(column)} elements and payloads {count}")
        if self.by_key:
            return self.send_many_by_key(contents, keys, properties, event_timestamps)
        mutex_lock(&self.mutex)
        self.caller_waits = True
        try:
            if self.state != PRODUCER_OPEN:
                self.check_open()
            self.close_batch()
            while at < count:
                at = self.fill_batch(contents, at, keys, properties, event_timestamps, plain)
                self.close_filled(ids)
        except Exception as error:
            refused = error
            self.close_filled(ids)
        finally:
            if ids:
                writer = self.stored_writer
                entry_id = self.stored_entry_id
            self.caller_waits = False
            mutex_unlock(&self.mutex)
        if writer is not None and self.durability == DURABILITY_SYNC:
            self.wait_durable(writer, entry_id)
        if refused is not None:
            refused.add_note(f"{len(ids)} of {count} messages were published")
            raise refused
        return ids

    cdef Py_ssize_t fill_batch(self, list contents, Py_ssize_t at, object keys, object properties,
                               object event_timestamps, bint plain) except -1:
        """Add contents from at on until the batch is full; returns where to go on. Mutex held,
        batch empty."""
        cdef SingleMetadata metadata
        cdef Py_ssize_t count = PyList_GET_SIZE(contents)
        cdef const uint8_t* payload
        cdef object content
        cdef int status
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        self.batch_publish_ms = self.clock.now_ms()
        while at < count and self.batch.message_count < self.batch_messages_max:
            content = <object>PyList_GET_ITEM(contents, at)
            if not (plain and type(content) is bytes):
                memset(&metadata, 0, sizeof(metadata))
                metadata.flags = METADATA_SEQUENCE_ID
                if not (self.bytes_schema and type(content) is bytes):
                    content = outgoing_content(self.schema, content, &metadata)
                outgoing_describe(&metadata, &self.scratch, None if keys is None else keys[at],
                                  None,
                                  None if properties is None else properties[at],
                                  None if event_timestamps is None else event_timestamps[at], None)
            payload = NULL
            metadata.payload_size = 0
            if content is not None:
                payload = <const uint8_t*>PyBytes_AS_STRING(content)
                metadata.payload_size = <uint32_t>PyBytes_GET_SIZE(content)
                if metadata.payload_size > self.message_size_max:
                    self.refuse_size(metadata.payload_size)
            if self.batch.message_count and (batch_encode_payload_size(
                    &self.batch) + metadata.payload_size + 24
                                             > self.batch_bytes_max):
                return at
            metadata.sequence_id = self.next_sequence_id
            status = batch_encode_add(&self.batch, &metadata, payload)
            if status != STATUS_OK:
                raise_status(status, 0, f"add a message of {metadata.payload_size} bytes to the "
                                        f"batch")
            self.next_sequence_id += 1
            at += 1
        return at

    cdef list send_many_by_key(self, list contents, object keys, object properties,
                               object event_timestamps):
        """send_many where batches are of one key each."""
        cdef StoredBatch stored
        cdef LedgerWriter writer = None
        cdef uint64_t entry_id = 0
        cdef uint32_t index
        cdef list places = []                # of each message: its batch, and its index there
        cdef list ids = []
        cdef object refused = None
        mutex_lock(&self.mutex)
        cdef uint32_t pending_max = self.pending_max
        self.caller_waits = True
        self.pending_max = 0                 # the caller waits for all of it
        try:
            if self.state != PRODUCER_OPEN:
                self.check_open()
            self.close_open()
            for at, content in enumerate(contents):
                self.accept(content, None, None if properties is None else properties[at],
                            None if keys is None else keys[at], None, None, None, False,
                            None if event_timestamps is None else event_timestamps[at], None, None)
                places.append((self.last_batch.stored, self.last_batch.batch.message_count - 1))
                if self.keyed_count >= self.batch_messages_max:
                    self.close_open()
            self.close_open()
        except Exception as error:
            refused = error
            self.close_open()
        finally:
            self.caller_waits = False
            self.pending_max = pending_max
            if places:
                writer = self.stored_writer
                entry_id = self.stored_entry_id
            mutex_unlock(&self.mutex)
        for stored, index in places:
            if stored.message_count == 1:
                ids.append(message_id_new(<int64_t>stored.ledger_id, <int64_t>stored.entry_id,
                                          self.tail.partition, -1, 0))
            elif stored.message_count:
                ids.append(message_id_new(<int64_t>stored.ledger_id, <int64_t>stored.entry_id,
                                          self.tail.partition, <int>index,
                                          <int>stored.message_count))
        if writer is not None and self.durability == DURABILITY_SYNC:
            self.wait_durable(writer, entry_id)
        if refused is not None:
            refused.add_note(f"{len(ids)} of {len(contents)} messages were published")
            raise refused
        return ids

    cdef int close_filled(self, list ids) except -1:
        """Store what fill_batch added and append its message ids."""
        cdef uint32_t count = self.batch.message_count
        cdef uint32_t index
        self.close_batch()
        if count == 1:
            ids.append(message_id_new(<int64_t>self.stored_ledger_id,
                                      <int64_t>self.stored_entry_id, self.tail.partition, -1, 0))
            return 0
        for index in range(count):
            ids.append(message_id_new(<int64_t>self.stored_ledger_id,
                                      <int64_t>self.stored_entry_id, self.tail.partition,
                                      <int>index, <int>count))
        return 0

