"""Lists of waiting messages. One thread at a time; the contract is in the pxd."""

from libc.stdint cimport uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

from pulsarx._core.status cimport STATUS_DUPLICATE, STATUS_NO_MEMORY, STATUS_OK

cdef enum:
    KEPT_MESSAGES = 1024    # an emptied pool of up to 32 KiB is kept


cdef void waiting_pool_init(WaitingPool* pool) noexcept nogil:
    memset(pool, 0, sizeof(WaitingPool))
    pool.free_message = WAITING_NONE


cdef void waiting_pool_free(WaitingPool* pool) noexcept nogil:
    free(pool.messages)
    waiting_pool_init(pool)


cdef uint32_t allocate(WaitingPool* pool) noexcept nogil:
    """An unused message, WAITING_NONE: out of memory."""
    cdef uint32_t place = pool.free_message
    cdef uint32_t capacity = 16
    cdef WaitingMessage* messages
    if place != WAITING_NONE:
        pool.free_message = pool.messages[place].right
    else:
        if pool.used == pool.capacity:
            if pool.capacity > WAITING_NONE // 2:
                return WAITING_NONE
            if pool.capacity:
                capacity = pool.capacity * 2
            messages = <WaitingMessage*>realloc(
                pool.messages, <size_t>capacity * sizeof(WaitingMessage))
            if messages == NULL:
                return WAITING_NONE
            pool.messages = messages
            pool.capacity = capacity
        place = pool.used
        pool.used += 1
    pool.count += 1
    return place


cdef void give_back(WaitingPool* pool, uint32_t place) noexcept nogil:
    pool.messages[place].right = pool.free_message
    pool.free_message = place
    pool.count -= 1
    if pool.count == 0:
        if pool.capacity > KEPT_MESSAGES:
            waiting_pool_free(pool)
        pool.used = 0
        pool.free_message = WAITING_NONE


cdef inline uint32_t level(uint32_t place) noexcept nogil:
    """Random, but always the same: a node lies above those of a lower level. (The mixer is the end
    of MurmurHash3.)"""
    place ^= place >> 16
    place *= <uint32_t>0x85ebca6b
    place ^= place >> 13
    place *= <uint32_t>0xc2b2ae35
    return place ^ (place >> 16)


cdef inline bint is_before(uint64_t ledger_id, uint64_t message,
                           const WaitingMessage* other) noexcept nogil:
    if ledger_id != other.ledger_id:
        return ledger_id < other.ledger_id
    return message < other.message


cdef inline void replace(WaitingPool* pool, WaitingList* self, uint32_t place,
                         uint32_t other) noexcept nogil:
    """Let other, which may be none, hang where place hangs."""
    cdef uint32_t parent = pool.messages[place].parent
    if other != WAITING_NONE:
        pool.messages[other].parent = parent
    if parent == WAITING_NONE:
        self.root = other
    elif pool.messages[parent].left == place:
        pool.messages[parent].left = other
    else:
        pool.messages[parent].right = other


cdef void rotate_up(WaitingPool* pool, WaitingList* self, uint32_t place) noexcept nogil:
    """Let the node and its parent change places."""
    cdef WaitingMessage* node = &pool.messages[place]
    cdef uint32_t above = node.parent
    cdef WaitingMessage* parent = &pool.messages[above]
    cdef uint32_t between
    replace(pool, self, above, place)
    if parent.left == place:
        between = parent.left = node.right
        node.right = above
    else:
        between = parent.right = node.left
        node.left = above
    if between != WAITING_NONE:
        pool.messages[between].parent = above
    parent.parent = place


cdef uint32_t descend(const WaitingPool* pool, const WaitingList* self, uint64_t ledger_id,
                      uint64_t message, uint32_t* parent) noexcept nogil:
    """The message, or WAITING_NONE and below which node it belongs."""
    cdef uint32_t place = self.root
    cdef const WaitingMessage* node
    parent[0] = WAITING_NONE
    while place != WAITING_NONE:
        node = &pool.messages[place]
        if node.message == message and node.ledger_id == ledger_id:
            return place
        parent[0] = place
        place = node.left if is_before(ledger_id, message, node) else node.right
    return WAITING_NONE


cdef int waiting_list_put(WaitingPool* pool, WaitingList* self, uint64_t ledger_id,
                          uint64_t message, uint32_t* place) noexcept nogil:
    cdef uint32_t parent = self.last
    cdef uint32_t found, added, height
    cdef WaitingMessage* node
    if parent != WAITING_NONE:
        node = &pool.messages[parent]
        if not (node.ledger_id < ledger_id
                or (node.ledger_id == ledger_id and node.message < message)):
            parent = self.first
            if not is_before(ledger_id, message, &pool.messages[parent]):
                found = descend(pool, self, ledger_id, message, &parent)
                if found != WAITING_NONE:
                    place[0] = found
                    return STATUS_DUPLICATE
    added = allocate(pool)
    if added == WAITING_NONE:
        return STATUS_NO_MEMORY
    node = &pool.messages[added]
    node.ledger_id = ledger_id
    node.message = message
    node.left = node.right = WAITING_NONE
    node.parent = parent
    node.ready = 0
    if parent == WAITING_NONE:
        self.first = self.last = self.root = added
    elif is_before(ledger_id, message, &pool.messages[parent]):
        pool.messages[parent].left = added
        if self.first == parent:
            self.first = added
    else:
        pool.messages[parent].right = added
        if self.last == parent:
            self.last = added
    height = level(added)
    while node.parent != WAITING_NONE and level(node.parent) < height:
        rotate_up(pool, self, added)
    place[0] = added
    return STATUS_OK


cdef uint32_t waiting_list_find(const WaitingPool* pool, const WaitingList* self,
                                uint64_t ledger_id, uint64_t message) noexcept nogil:
    cdef uint32_t parent = WAITING_NONE
    cdef const WaitingMessage* node
    if self.first == WAITING_NONE:
        return WAITING_NONE
    node = &pool.messages[self.first]
    if node.message == message and node.ledger_id == ledger_id:
        return self.first
    return descend(pool, self, ledger_id, message, &parent)


cdef uint32_t waiting_list_next(const WaitingPool* pool, uint32_t place) noexcept nogil:
    cdef uint32_t other = pool.messages[place].right
    if other != WAITING_NONE:
        while pool.messages[other].left != WAITING_NONE:
            other = pool.messages[other].left
        return other
    other = pool.messages[place].parent
    while other != WAITING_NONE and pool.messages[other].right == place:
        place = other
        other = pool.messages[place].parent
    return other


cdef uint32_t before(const WaitingPool* pool, uint32_t place) noexcept nogil:
    """The one before the last of a list."""
    cdef uint32_t other = pool.messages[place].left
    if other == WAITING_NONE:
        return pool.messages[place].parent
    while pool.messages[other].right != WAITING_NONE:
        other = pool.messages[other].right
    return other


cdef void waiting_list_remove(WaitingPool* pool, WaitingList* self, uint32_t place) noexcept nogil:
    cdef WaitingMessage* node = &pool.messages[place]
    if self.first == place:
        self.first = waiting_list_next(pool, place)
    if self.last == place:
        self.last = before(pool, place)
    while node.left != WAITING_NONE and node.right != WAITING_NONE:
        if level(node.left) > level(node.right):
            rotate_up(pool, self, node.left)
        else:
            rotate_up(pool, self, node.right)
    replace(pool, self, place, node.left if node.left != WAITING_NONE else node.right)
    give_back(pool, place)
