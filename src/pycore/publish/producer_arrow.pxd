"""Publishing tables, on top of producer_bulk. Beneath pulsarx.Producer."""

from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t

from pulsarx._pycore.arrow.arrow_import cimport ArrowImport
from pulsarx._pycore.publish.producer_bulk cimport ProducerBulk

cdef struct SentRows:
    int64_t count
    uint64_t ledger_id       # of the last one
    uint64_t entry_id
    uint32_t batch_size


cdef class ProducerArrow(ProducerBulk):
    cdef int send_rows(self, ArrowImport source, SentRows* sent, list writers,
                       const int32_t* partitions) except -1
