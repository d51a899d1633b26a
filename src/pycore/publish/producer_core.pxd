"""The hot calls of a producer: send, send_async, send_many. Beneath pulsarx.Producer."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._pycore.ground.job_queue cimport JobQueue
from pulsarx._pycore.publish.batcher cimport Batcher
from pulsarx._pycore.publish.entry_publisher cimport Receipt


cdef class ProducerCore(Batcher):
    cdef JobQueue background             # where one that was forgotten is closed
    cdef readonly bint is_forgotten      # its user dropped it; it will be closed there

    cdef bint accept(self, object content, object callback, object properties, object partition_key,
                     object ordering_key, object sequence_id, object replication_clusters,
                     object disable_replication, object event_timestamp, object deliver_at,
                     object deliver_after, Receipt receipt, bint* taken) except -1
    cdef int send_plain(self, object content, object callback, object key,
                        bint* taken) except -1
    cdef int send_told(self, object content, object callback, object key) except -1
    cdef int tell(self, object callback, object error) except -1
    """Tell a callback that its message was refused; no mutex held."""

    cdef bint may_wait(self) except -1
    cdef object id_of(self, Receipt receipt, uint32_t index)
    cdef list send_by_arrival(self, list contents, object keys, object properties,
                              object event_timestamps, list receipts)
    cdef list send_by_key(self, list contents, object keys, object properties,
                          object event_timestamps, list places)
    cdef Py_ssize_t fill_batch(self, list contents, Py_ssize_t at, object keys, object properties,
                               object event_timestamps, bint plain) except -1
    cdef int close_filled(self, list receipts) except -1


cdef int refuse_callback(object callback) except -1
"""TypeError: it cannot be called."""
