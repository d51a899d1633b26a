"""Puts messages into batches and batches into a ledger file of their own. Beneath
pulsarx.broker.staging.sealed_writer.

It works as a producer does, without a topic: no reader sees the file before it is sealed.
"""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.batch_encode cimport BatchEncode
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.single_metadata cimport SingleMetadata
from pulsarx._pycore.arrow.arrow_import cimport ArrowImport, EncodeLimits
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter
from pulsarx._pycore.publish.outgoing_message cimport PropertyScratch


cdef class OpenBatch:
    """A batch that takes messages."""
    cdef BatchEncode batch               # owned
    cdef int64_t publish_ms              # when its first message came


cdef class SealedBatches:
    cdef readonly LedgerWriter writer
    cdef object clock
    cdef object compress                 # (kind, data) -> bytes
    cdef bytes name_utf8
    cdef EncodeLimits limits
    cdef uint32_t compression
    cdef bint by_key
    cdef bytes schema_version            # in every entry; None: none
    cdef uint64_t next_sequence_id
    cdef readonly uint64_t row_count     # taken so far
    cdef OpenBatch mixed                 # the one batch, unless by_key
    cdef dict keyed                      # key: OpenBatch, in the order of their first messages
    cdef list spare
    cdef uint32_t keyed_count            # messages in all of them
    cdef uint64_t keyed_size             # about their bytes
    cdef PropertyScratch scratch

    cdef int add_mixed_rows(self, ArrowImport source) except -1
    cdef int add_keyed_rows(self, ArrowImport source) except -1
    cdef OpenBatch batch_for(self, bytes key, uint64_t size)
    cdef OpenBatch new_batch(self)
    cdef int store_batch(self, OpenBatch closing) except -1
    cdef int store(self, EntryFrame* frame, uint8_t* entry) except -1
