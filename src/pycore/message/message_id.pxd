"""MessageId: the place of a message in its topic. Immutable; any thread may use it, and any module
may make one."""

from libc.stdint cimport int32_t, int64_t, uint8_t


# No cdef method: the object then carries no pointer to a table of them and stays at 64 bytes.
cdef class MessageId:
    cdef int64_t c_ledger_id
    cdef int64_t c_entry_id
    cdef int32_t c_partition      # -1: the topic is no partition
    cdef int32_t c_batch_index    # -1: the entry holds one message, not a batch
    cdef int32_t c_batch_size     # messages of the batch, 0: not known; no part of equality
    cdef uint8_t c_is_chunked     # it is the last chunk of a message; no part of equality
    cdef uint8_t c_has_topic      # its topic is known: it was received; no part of equality
    cdef int64_t c_first_ledger_id       # of c_is_chunked: where the first chunk is
    cdef int64_t c_first_entry_id


cdef MessageId message_id_new(int64_t ledger_id, int64_t entry_id, int32_t partition,
                              int32_t batch_index, int32_t batch_size)
"""Make an id without parsing arguments: for loops over messages."""

cdef MessageId message_id_chunked(int64_t ledger_id, int64_t entry_id, int32_t partition,
                                  int64_t first_ledger_id, int64_t first_entry_id)
"""The id of a message in chunks: of its last one, holding that of the first."""
