"""Messages that wait, each list in the order of their positions; lists share a pool of nodes.

One thread at a time. Adding at either end and taking the first cost the same however long a list
is; anywhere else the cost grows with the logarithm of its length: a million negatively acknowledged
messages of one key may come back in any order. A list is a treap: a search tree by position whose
nodes are at random levels, the randomness being a hash of the node's index.
"""

from libc.stdint cimport uint32_t, uint64_t

cdef enum WaitingLimits:
    WAITING_NONE = 4294967295           # no message

cdef struct WaitingMessage:             # 32 bytes
    uint64_t ledger_id
    uint64_t message
    uint32_t left                       # the earlier ones below it
    uint32_t right                      # the later ones; the next free one while it is unused
    uint32_t parent
    uint32_t ready                      # the user's

cdef struct WaitingPool:
    WaitingMessage* messages            # owned
    uint32_t capacity
    uint32_t used                       # from here on they were never used
    uint32_t free_message               # head of the list of unused ones
    uint32_t count                      # in all lists

cdef struct WaitingList:
    uint32_t first                      # the earliest; WAITING_NONE: the list is empty
    uint32_t last
    uint32_t root

cdef void waiting_pool_init(WaitingPool* pool) noexcept nogil
cdef void waiting_pool_free(WaitingPool* pool) noexcept nogil

cdef inline void waiting_list_init(WaitingList* self) noexcept nogil:
    self.first = self.last = self.root = WAITING_NONE

cdef int waiting_list_put(WaitingPool* pool, WaitingList* self, uint64_t ledger_id,
                          uint64_t message, uint32_t* place) noexcept nogil
"""Put the message into the list, not ready; place: its index in the pool, good until it is removed.
DUPLICATE: it was in, place says where. NO_MEMORY."""

cdef uint32_t waiting_list_find(const WaitingPool* pool, const WaitingList* self,
                                uint64_t ledger_id, uint64_t message) noexcept nogil
"""Its index in the pool, WAITING_NONE: it is not in."""

cdef void waiting_list_remove(WaitingPool* pool, WaitingList* self, uint32_t place) noexcept nogil

cdef uint32_t waiting_list_next(const WaitingPool* pool, uint32_t place) noexcept nogil
"""The one behind, WAITING_NONE: it is the last."""
