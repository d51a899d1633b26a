# cython: language_level=3
"""Body of publish_gate.pxd."""


cdef class Gate:
    """Base of the gates. Each kind sets c_gate to the PublishGate it holds."""
