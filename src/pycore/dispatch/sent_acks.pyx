# cython: language_level=3
"""Body of sent_acks.pxd."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint64_t
from libc.string cimport memmove

from pulsarx._pycore.ground.owner_link cimport LINK_ACKNOWLEDGE_THROUGH

cdef enum:
    FIRST_ACKS = 64


cdef int sent_acks_keep(SentAcks* self, int kind, uint64_t ledger_id, uint64_t first,
                        uint64_t count) except -1:
    cdef SentAck* grown
    cdef size_t capacity
    if self.end == self.capacity and self.at and 2 * self.at >= self.capacity:
        self.end -= self.at
        memmove(self.acks, self.acks + self.at, self.end * sizeof(SentAck))
        self.at = 0
    elif self.end == self.capacity:
        capacity = 2 * self.capacity if self.capacity else FIRST_ACKS
        grown = <SentAck*>PyMem_Realloc(self.acks, capacity * sizeof(SentAck))
        if grown == NULL:
            raise MemoryError("keep an acknowledgement: out of memory")
        self.acks = grown
        self.capacity = capacity
    self.acks[self.end].kind = kind
    self.acks[self.end].ledger_id = ledger_id
    self.acks[self.end].first = first
    self.acks[self.end].count = count
    self.end += 1
    if ledger_id > self.told_ledger:
        self.told_ledger = ledger_id
        self.told_end = first + count
    elif ledger_id == self.told_ledger:
        self.told_end = max(self.told_end, first + count)
    return 0


cdef bint sent_acks_cover(SentAcks* self, uint64_t ledger_id, uint64_t first,
                          uint64_t count) noexcept:
    cdef SentAck* sent
    cdef size_t at
    # Messages come in order, so those that come are mostly behind all of them.
    if ledger_id > self.told_ledger or (ledger_id == self.told_ledger and first >= self.told_end):
        return False
    for at in range(self.at, self.end):
        sent = &self.acks[at]
        if sent.kind == LINK_ACKNOWLEDGE_THROUGH:
            if ledger_id < sent.ledger_id or (
                    ledger_id == sent.ledger_id and first < sent.first):
                return True
        elif ledger_id == sent.ledger_id and first < sent.first + sent.count and (
                sent.first < first + count):
            return True
    return False


cdef void sent_acks_recorded(SentAcks* self, uint64_t count) noexcept:
    if count > self.recorded_count:
        self.at = min(self.at + <size_t>(count - self.recorded_count), self.end)
        self.recorded_count = count
    if self.at == self.end:
        self.told_ledger = self.told_end = 0


cdef void sent_acks_free(SentAcks* self) noexcept:
    PyMem_Free(self.acks)
