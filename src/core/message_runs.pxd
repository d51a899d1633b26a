"""A set of messages of several ledgers, as runs in the order of their positions.

One thread at a time. Runs never touch: those that do are one. It takes 24 bytes a run.
"""

from libc.stdint cimport uint64_t

cdef struct MessageRun:
    uint64_t ledger_id
    uint64_t first
    uint64_t end                        # one behind the last message

cdef struct MessageRuns:
    MessageRun* runs                    # owned
    size_t count
    size_t capacity

cdef void message_runs_init(MessageRuns* self) noexcept nogil
cdef void message_runs_free(MessageRuns* self) noexcept nogil
"""Forget all messages; gives all memory back."""

cdef int message_runs_append(MessageRuns* self, uint64_t ledger_id, uint64_t first,
                             uint64_t end) noexcept nogil
"""Add [first, end) of a ledger, which may not begin in front of the last run. NO_MEMORY: nothing
changed."""

cdef int message_runs_union(const MessageRuns* self, const MessageRuns* other,
                            MessageRuns* joined) noexcept nogil
"""Append what is in either to an empty set. NO_MEMORY: the set is empty."""

cdef size_t message_runs_find(const MessageRuns* self, uint64_t ledger_id,
                              uint64_t message) noexcept nogil
"""The index of the first run that ends behind the message; count: none does."""

cdef void message_runs_cut(MessageRuns* self, uint64_t ledger_id, uint64_t message) noexcept nogil
"""Forget this message and all behind it."""

cdef void message_runs_cut_before(MessageRuns* self, uint64_t ledger_id,
                                  uint64_t message) noexcept nogil
"""Forget all messages before this one."""


cdef inline bint message_runs_has(const MessageRuns* self, uint64_t ledger_id,
                                  uint64_t message) noexcept nogil:
    cdef size_t at = message_runs_find(self, ledger_id, message)
    return at < self.count and self.runs[at].ledger_id == ledger_id and (
        self.runs[at].first <= message)


cdef inline bint message_runs_meet(const MessageRuns* self, uint64_t ledger_id, uint64_t first,
                                   uint64_t end) noexcept nogil:
    """Whether some message of [first, end) is in it."""
    cdef size_t at = message_runs_find(self, ledger_id, first)
    return at < self.count and self.runs[at].ledger_id == ledger_id and self.runs[at].first < end
