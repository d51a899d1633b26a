"""Batches of one key each (BatchingType.KeyBased): between producer_store and producer_core.

Messages wait in one open batch per sticky key: the ordering key, else the key, else none. The
limits of a batch count over all of them together, and they are closed together.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._core.single_metadata cimport SingleMetadata
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.publish.producer_store cimport ProducerStore


cdef class StoredBatch:
    """Where one batch went. message_count 0: it is not stored."""
    cdef LedgerWriter writer
    cdef uint64_t ledger_id
    cdef uint64_t entry_id
    cdef uint32_t message_count


cdef class KeyBatch:
    """The open batch of one key. Belongs to one producer."""
    cdef BatchEncode batch
    cdef list callbacks
    cdef StoredBatch stored
    cdef int64_t publish_ms


cdef class KeyBatches(ProducerStore):
    cdef dict open_batches               # kind and bytes of the sticky key: KeyBatch
    cdef list spare_batches              # closed ones, whose buffers are used again
    cdef KeyBatch last_batch             # that of the last message
    cdef KeyBatch awaited                # a send waits for this one alone
    cdef uint64_t keyed_size             # bytes of all open ones

    cdef int add_by_key(self, SingleMetadata* metadata, const uint8_t* payload,
                        object callback) except -1
    cdef int close_with_last(self, uint32_t* index, uint32_t* count) except -1
    cdef int close_key_batch(self, KeyBatch closing) except -1
    cdef KeyBatch open_batch(self)
