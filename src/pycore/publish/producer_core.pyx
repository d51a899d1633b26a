# cython: language_level=3
"""Body of producer_core.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.single_metadata cimport METADATA_SEQUENCE_ID, SingleMetadata
from pulsarx._pycore.publish.key_batches cimport KeyBatches
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.message.message_id cimport message_id_new
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.publish.outgoing_message cimport (
    outgoing_check_replication, outgoing_content, outgoing_deliver_at, outgoing_describe,
)
from pulsarx._pycore.publish.producer_store cimport DURABILITY_SYNC, PRODUCER_OPEN


cdef class ProducerCore(KeyBatches):
    """Takes messages from callers, one at a time. Any thread may call."""

    def send(self, content, properties=None, partition_key=None, ordering_key=None,
             sequence_id=None,
             replication_clusters=None, disable_replication=False, event_timestamp=None,
             deliver_at=None,
             deliver_after=None):
        """Publish one message and return its MessageId once it is as durable as the client was
        opened for.

        An open batch goes out with it at once. Safe to call from any thread; concurrent calls share
        one flush.
        Raises MessageTooBig, StorageFullError (nothing was stored), LedgerPoisonedError,
        AlreadyClosed.
        """
        cdef LedgerWriter writer
        cdef uint64_t ledger_id
        cdef uint64_t entry_id
        cdef uint32_t index = 0
        cdef uint32_t count = 1
        cdef bint alone
        mutex_lock(&self.mutex)
        self.caller_waits = True
        try:
            alone = self.accept(content, None, properties, partition_key, ordering_key, sequence_id,
                                replication_clusters, disable_replication, event_timestamp,
                                deliver_at, deliver_after)
            if not alone and self.by_key:
                self.close_with_last(&index, &count)
            elif not alone:
                count = self.batch.message_count
                index = count - 1
                self.close_batch()
            writer = self.stored_writer
            ledger_id = self.stored_ledger_id
            entry_id = self.stored_entry_id
        finally:
            self.caller_waits = False
            mutex_unlock(&self.mutex)
        if self.durability == DURABILITY_SYNC:
            self.wait_durable(writer, entry_id)
        if count == 1:
            return message_id_new(<int64_t>ledger_id, <int64_t>entry_id, self.tail.partition, -1, 0)
        return message_id_new(<int64_t>ledger_id, <int64_t>entry_id, self.tail.partition,
                              <int>index, <int>count)

    def send_async_described(
            self, content, callback, properties=None, partition_key=None, ordering_key=None,
            sequence_id=None,
            replication_clusters=None, disable_replication=False, event_timestamp=None,
            deliver_at=None,
            deliver_after=None) -> None:
        """send_async with whatever arguments; send_async itself is in send_entry."""
        mutex_lock(&self.mutex)
        try:
            self.accept(content, callback, properties, partition_key, ordering_key, sequence_id,
                        replication_clusters, disable_replication, event_timestamp, deliver_at,
                        deliver_after)
            if self.batching and (
                    self.batch.message_count + self.keyed_count >= self.batch_messages_max):
                self.close_open()
        finally:
            mutex_unlock(&self.mutex)

    cdef int send_plain(self, object content, object callback, object key) except -1:
        """send_async of bytes into a batch, with a key or None: what the fast entry calls."""
        cdef SingleMetadata metadata
        cdef Py_ssize_t size = PyBytes_GET_SIZE(content)
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        if size > self.message_size_max:
            self.refuse_size(size)
        metadata.payload_size = <uint32_t>size
        if key is not None:
            outgoing_describe(&metadata, &self.scratch, key, None, None, None, None)
        mutex_lock(&self.mutex)
        try:
            if self.state != PRODUCER_OPEN:
                self.check_open()
            if self.is_crowded():
                self.make_room()
            metadata.sequence_id = self.next_sequence_id
            self.next_sequence_id += 1
            self.add(&metadata, <const uint8_t*>PyBytes_AS_STRING(content), callback)
            if self.batch.message_count >= self.batch_messages_max:
                self.close_batch()
        finally:
            mutex_unlock(&self.mutex)
        return 0

    cdef bint accept(self, object content, object callback, object properties, object partition_key,
                     object ordering_key, object sequence_id, object replication_clusters, object
                     disable_replication,
                     object event_timestamp, object deliver_at, object deliver_after) except -1:
        """Check one message and put it into the open batch, or store it when it goes alone (True).
        Mutex held."""
        cdef SingleMetadata metadata
        cdef const uint8_t* payload = NULL
        cdef int64_t deliver_at_ms = 0
        if self.state != PRODUCER_OPEN:
            self.check_open()
        memset(&metadata, 0, sizeof(metadata))
        metadata.flags = METADATA_SEQUENCE_ID
        if not (self.bytes_schema and type(content) is bytes):
            content = outgoing_content(self.schema, content, &metadata)
        if content is not None:
            if PyBytes_GET_SIZE(content) > self.message_size_max:
                self.refuse_size(PyBytes_GET_SIZE(content))
            payload = <const uint8_t*>PyBytes_AS_STRING(content)
            metadata.payload_size = <uint32_t>PyBytes_GET_SIZE(content)
        if partition_key is not None or properties is not None or ordering_key is not None or (
                sequence_id is not None or event_timestamp is not None):
            outgoing_describe(&metadata, &self.scratch, partition_key, ordering_key, properties,
                              event_timestamp,
                              sequence_id)
        if replication_clusters is not None or disable_replication is not False:
            outgoing_check_replication(replication_clusters, disable_replication)
        if deliver_at is not None or deliver_after is not None:
            deliver_at_ms = outgoing_deliver_at(self.clock, deliver_at, deliver_after)
        if self.is_crowded():
            self.make_room()
        if sequence_id is None:
            metadata.sequence_id = self.next_sequence_id
            self.next_sequence_id += 1
        if not self.batching or deliver_at_ms:
            self.close_open()
            if callback is not None:
                self.callbacks = [(-1, callback)]
            self.store_single(&metadata, payload, deliver_at_ms)
            return True
        if self.by_key:
            self.add_by_key(&metadata, payload, callback)
        else:
            self.add(&metadata, payload, callback)
        return False
