"""Producers and consumers at the other end of a connection, as `frame_cutter` sees them: they take
the commands that come once per entry without Python in between. By the thread that reads it."""

from libc.stdint cimport uint8_t, uint32_t, uint64_t


cdef class SendTaker:
    cdef bint has_taken                  # and was not told that nothing more comes now

    cdef int take_send(self, uint64_t sequence_id, const uint8_t* entry, size_t size) except -1
    """Publish an entry, and answer it. What is wrong with it is answered, not raised."""

    cdef int sends_taken(self, bint is_alone) except -1
    """Have what was published become durable: all that came together was taken. is_alone: it was
    one entry, and nothing waits behind it."""


cdef class AckTaker:
    cdef int take_ack(self, uint64_t ledger_id, uint64_t entry_id) except -1
    """Acknowledge an entry, at the latest with `acks_taken`. What fails is not told, as Pulsar's
    clients do not ask."""

    cdef int acks_taken(self) except -1
    cdef int take_flow(self, uint32_t permits) except -1
    """There is room for so many messages more."""
