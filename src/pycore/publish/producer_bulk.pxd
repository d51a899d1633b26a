"""Publishing many messages in one call, on top of producer_core. Beneath pulsarx.Producer."""

from pulsarx._pycore.publish.producer_core cimport ProducerCore


cdef class ProducerBulk(ProducerCore):
    cdef Py_ssize_t fill_batch(self, list contents, Py_ssize_t at, object keys, object properties,
                               object event_timestamps, bint plain) except -1
    cdef list send_many_by_key(self, list contents, object keys, object properties,
                               object event_timestamps)
    cdef int close_filled(self, list ids) except -1
