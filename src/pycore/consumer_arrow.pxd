"""Receiving columns, on top of consumer_core. Beneath pulsarx.Consumer and pulsarx.Reader."""

from pulsarx._pycore.consumer_core cimport ConsumerCore


cdef class ConsumerArrow(ConsumerCore):
    pass
