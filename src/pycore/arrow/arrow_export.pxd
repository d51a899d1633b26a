"""Hands received columns out through the Arrow PyCapsule interface. Made by consumer_arrow."""

from pulsarx._pycore.arrow.arrow_block cimport ArrowBlock


cdef class ArrowMessages:
    cdef ArrowBlock* c_block             # owned: one reference
    cdef object topic                    # the LedgerTail the messages came from
    cdef str topic_name
    cdef readonly bytes schema_version   # of all of them; None: nobody asked


cdef ArrowMessages arrow_messages_new(ArrowBlock* block, object topic, str topic_name,
                                      bytes schema_version=*)
"""Takes over the caller's reference to a finished block, also when it raises. schema_version: of
all messages, b"" for none; None: unknown."""
