# cython: language_level=3
"""Body of consumer_arrow.pxd."""

from pulsarx._pycore.consumer_core cimport ConsumerCore


cdef class ConsumerArrow(ConsumerCore):
    """receive_arrow."""
