"""Where a message is. Immutable; any thread may use it, and any module may make one."""

from libc.stdint cimport int32_t, int64_t


# No cdef method: the object then carries no pointer to a table of them and stays at 48 bytes.
cdef class MessageId:
    cdef int64_t c_ledger_id
    cdef int64_t c_entry_id
    cdef int32_t c_partition      # -1: the topic is no partition
    cdef int32_t c_batch_index    # -1: the entry holds one message, not a batch
    cdef int32_t c_batch_size     # messages of the batch, 0: not known; no part of equality


cdef MessageId message_id_new(int64_t ledger_id, int64_t entry_id, int32_t partition,
                              int32_t batch_index, int32_t batch_size)
"""Make an id without parsing arguments: for loops over messages."""
