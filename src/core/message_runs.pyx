"""Sets of messages as runs. One thread at a time; the contract is in the pxd."""

from libc.stdint cimport uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memmove, memset

from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK

cdef enum:
    FIRST_RUNS = 8


cdef void message_runs_init(MessageRuns* self) noexcept nogil:
    memset(self, 0, sizeof(MessageRuns))


cdef void message_runs_free(MessageRuns* self) noexcept nogil:
    free(self.runs)
    message_runs_init(self)


cdef int message_runs_append(MessageRuns* self, uint64_t ledger_id, uint64_t first,
                             uint64_t end) noexcept nogil:
    cdef MessageRun* last
    cdef MessageRun* grown
    cdef size_t capacity
    if first >= end:
        return STATUS_OK
    if self.count:
        last = &self.runs[self.count - 1]
        invariant(ledger_id > last.ledger_id
                  or (ledger_id == last.ledger_id and first >= last.first))
        if last.ledger_id == ledger_id and first <= last.end:
            last.end = max(last.end, end)
            return STATUS_OK
    if self.count == self.capacity:
        capacity = 2 * self.capacity if self.capacity else <size_t>FIRST_RUNS
        grown = <MessageRun*>realloc(self.runs, capacity * sizeof(MessageRun))
        if grown == NULL:
            return STATUS_NO_MEMORY
        self.runs = grown
        self.capacity = capacity
    self.runs[self.count].ledger_id = ledger_id
    self.runs[self.count].first = first
    self.runs[self.count].end = end
    self.count += 1
    return STATUS_OK


cdef inline bint begins_before(const MessageRun* run, const MessageRun* other) noexcept nogil:
    return run.ledger_id < other.ledger_id or (
        run.ledger_id == other.ledger_id and run.first < other.first)


cdef int message_runs_union(const MessageRuns* self, const MessageRuns* other,
                            MessageRuns* joined) noexcept nogil:
    cdef size_t mine = 0
    cdef size_t others = 0
    cdef const MessageRun* run
    while mine < self.count or others < other.count:
        if others == other.count or (
                mine < self.count and begins_before(&self.runs[mine], &other.runs[others])):
            run = &self.runs[mine]
            mine += 1
        else:
            run = &other.runs[others]
            others += 1
        if message_runs_append(joined, run.ledger_id, run.first, run.end) != STATUS_OK:
            message_runs_free(joined)
            return STATUS_NO_MEMORY
    return STATUS_OK


cdef size_t message_runs_find(const MessageRuns* self, uint64_t ledger_id,
                              uint64_t message) noexcept nogil:
    cdef size_t low = 0
    cdef size_t high = self.count
    cdef size_t middle
    while low < high:
        middle = low + (high - low) // 2
        if self.runs[middle].ledger_id < ledger_id or (
                self.runs[middle].ledger_id == ledger_id and self.runs[middle].end <= message):
            low = middle + 1
        else:
            high = middle
    return low


cdef void message_runs_cut(MessageRuns* self, uint64_t ledger_id,
                           uint64_t message) noexcept nogil:
    cdef size_t at = message_runs_find(self, ledger_id, message)
    if at < self.count and self.runs[at].ledger_id == ledger_id and self.runs[at].first < message:
        self.runs[at].end = message
        at += 1
    self.count = at


cdef void message_runs_cut_before(MessageRuns* self, uint64_t ledger_id,
                                  uint64_t message) noexcept nogil:
    cdef size_t at = message_runs_find(self, ledger_id, message)
    if at < self.count and self.runs[at].ledger_id == ledger_id and self.runs[at].first < message:
        self.runs[at].first = message
    if at:
        memmove(self.runs, self.runs + at, (self.count - at) * sizeof(MessageRun))
        self.count -= at
