"""The hot calls of a producer: send, send_async. Beneath pulsarx.Producer."""

from pulsarx._pycore.publish.key_batches cimport KeyBatches


cdef class ProducerCore(KeyBatches):
    cdef bint accept(self, object content, object callback, object properties, object partition_key,
                     object ordering_key, object sequence_id, object replication_clusters,
                     object disable_replication, object event_timestamp, object deliver_at,
                     object deliver_after) except -1
    cdef int send_plain(self, object content, object callback, object key) except -1
