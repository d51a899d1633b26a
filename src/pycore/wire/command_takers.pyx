# cython: language_level=3
"""Body of command_takers.pxd."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef class SendTaker:
    """See the pxd."""

    cdef int take_send(self, uint64_t sequence_id, const uint8_t* entry, size_t size) except -1:
        raise NotImplementedError

    cdef int sends_taken(self, bint is_alone) except -1:
        return 0


cdef class AckTaker:
    """See the pxd."""

    cdef int take_ack(self, uint64_t ledger_id, uint64_t entry_id) except -1:
        raise NotImplementedError

    cdef int acks_taken(self) except -1:
        return 0

    cdef int take_flow(self, uint32_t permits) except -1:
        raise NotImplementedError
