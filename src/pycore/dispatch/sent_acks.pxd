"""The acknowledgements of a consumer that the owner of its folder was told, and has not recorded:
kept in the order of the calls, to be told to the next owner. Beneath guest_dispatcher, with its
mutex.
"""

from libc.stdint cimport uint64_t


cdef struct SentAck:
    int kind                             # LINK_ACKNOWLEDGE, LINK_ACKNOWLEDGE_THROUGH, LINK_EXPIRED
    uint64_t ledger_id
    uint64_t first
    uint64_t count


cdef struct SentAcks:
    SentAck* acks                        # owned; those from `at` up to `end`
    size_t at
    size_t end
    size_t capacity
    uint64_t recorded_count              # by the owner there is
    # behind all messages of those; ledger 0: there are none
    uint64_t told_ledger
    uint64_t told_end


cdef int sent_acks_keep(SentAcks* self, int kind, uint64_t ledger_id, uint64_t first,
                        uint64_t count) except -1
"""Put one behind the others. MemoryError: nothing has changed."""

cdef bint sent_acks_cover(SentAcks* self, uint64_t ledger_id, uint64_t first,
                          uint64_t count) noexcept
"""Whether any of these messages is acknowledged by them."""

cdef void sent_acks_recorded(SentAcks* self, uint64_t count) noexcept
"""The owner has recorded so many in all."""

cdef void sent_acks_free(SentAcks* self) noexcept
"""Give back what they take."""
