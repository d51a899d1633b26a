"""The order of keys. One thread at a time; the contract is in the pxd."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from pulsarx._core.invariant cimport invariant
from pulsarx._core.status cimport STATUS_NO_MEMORY, STATUS_OK
from pulsarx._core.waiting_list cimport (
    WAITING_NONE, WaitingMessage, waiting_list_find, waiting_list_init, waiting_list_put,
    waiting_list_remove, waiting_pool_free, waiting_pool_init,
)

cdef enum:
    FIRST_KEYS = 32     # a subscription with few keys stays small
    KEPT_KEYS = 16384   # 1 MB: more than that is for keys in use


cdef void key_order_init(KeyOrder* self, bint in_order) noexcept nogil:
    memset(self, 0, sizeof(KeyOrder))
    waiting_pool_init(&self.pool)
    self.free_key = KEY_NONE
    self.kept_keys = KEPT_KEYS
    self.in_order = in_order


cdef void key_order_free(KeyOrder* self) noexcept nogil:
    cdef uint32_t at
    for at in range(self.heap_count):
        free(self.heaps[at].places)
    free(self.heaps)
    free(self.keys)
    free(self.places)
    waiting_pool_free(&self.pool)
    key_order_init(self, self.in_order)


cdef void key_order_clear(KeyOrder* self) noexcept nogil:
    key_order_free(self)


cdef uint64_t key_order_memory_size(const KeyOrder* self) noexcept nogil:
    cdef uint64_t size = self.key_capacity * sizeof(KeyState) + self.place_count * sizeof(uint32_t)
    cdef uint32_t at
    for at in range(self.heap_count):
        size += sizeof(KeyHeap) + self.heaps[at].capacity * sizeof(KeyPlace)
    return size + self.pool.capacity * sizeof(WaitingMessage)


# ---- the table of keys ----

cdef void enter(KeyOrder* self, uint32_t key) noexcept nogil:
    """Enter the key into the hash table."""
    cdef uint32_t at = key_order_spread(self.keys[key].hash)
    while self.places[at & (self.place_count - 1)] != KEY_NONE:
        at += 1
    self.places[at & (self.place_count - 1)] = key


cdef void enter_all(KeyOrder* self) noexcept nogil:
    cdef uint32_t key
    if self.place_count == 0:
        return
    memset(self.places, 0xff, <size_t>self.place_count * sizeof(uint32_t))      # KEY_NONE
    for key in range(self.key_count):
        if self.keys[key].in_use:
            enter(self, key)


cdef uint32_t forget_idle_keys(KeyOrder* self) noexcept nogil:
    """Answers how many keys are in use still."""
    cdef uint32_t key = self.key_count
    cdef uint32_t used = 0
    cdef KeyState* state
    self.free_key = KEY_NONE
    while key:
        key -= 1
        state = &self.keys[key]
        if state.in_use and (state.unacknowledged or state.waiting):
            used += 1
            continue
        state.in_use = 0
        state.heap_at = self.free_key
        self.free_key = key
    enter_all(self)
    return used


cdef bint grow_keys(KeyOrder* self) noexcept nogil:
    cdef uint32_t capacity = self.key_capacity * 2 if self.key_capacity else FIRST_KEYS
    cdef KeyState* keys
    cdef uint32_t* places
    if self.key_capacity > KEY_NONE // 8:
        return False
    # The new table first: the old one is in force until both are there.
    places = <uint32_t*>malloc(<size_t>capacity * 2 * sizeof(uint32_t))
    if places == NULL:
        return False
    keys = <KeyState*>realloc(self.keys, <size_t>capacity * sizeof(KeyState))
    if keys == NULL:
        free(places)
        return False
    free(self.places)
    self.keys = keys
    self.key_capacity = capacity
    self.places = places
    self.place_count = capacity * 2
    enter_all(self)
    return True


cdef bint make_room(KeyOrder* self) noexcept nogil:
    """False: out of memory, though idle keys may have been forgotten."""
    if self.key_capacity < self.kept_keys and grow_keys(self):
        return True
    # Half of the table free again: forgetting is paid for by as many new keys.
    return forget_idle_keys(self) * 2 < self.key_capacity or grow_keys(self)


cdef uint32_t key_order_add_key(KeyOrder* self, uint32_t hash) noexcept nogil:
    """Make a key that is not known."""
    cdef uint32_t key
    cdef KeyState* state
    if (self.free_key == KEY_NONE and self.key_count == self.key_capacity
            and not make_room(self) and self.free_key == KEY_NONE):
        return KEY_NONE
    key = self.free_key
    if key != KEY_NONE:
        self.free_key = self.keys[key].heap_at
    else:
        key = self.key_count
        self.key_count += 1
    state = &self.keys[key]
    memset(state, 0, sizeof(KeyState))
    waiting_list_init(&state.messages)
    state.hash = hash
    state.heap_at = KEY_NONE
    state.holder = state.owner = KEY_NOBODY
    state.in_use = 1
    enter(self, key)
    return key


# ---- the heap of an owner: its ready keys by the position of their first waiting message ----

cdef inline bint is_before(const KeyPlace* one, const KeyPlace* other) noexcept nogil:
    if one.ledger_id != other.ledger_id:
        return one.ledger_id < other.ledger_id
    return one.message < other.message


cdef void sift(KeyOrder* self, KeyHeap* heap, uint32_t at, KeyPlace place) noexcept nogil:
    """Put the place into the hole at, or where it belongs above or below."""
    cdef KeyPlace* places = heap.places
    cdef uint32_t other
    while at and is_before(&place, &places[(at - 1) >> 1]):
        places[at] = places[(at - 1) >> 1]
        self.keys[places[at].key].heap_at = at
        at = (at - 1) >> 1
    while True:
        other = 2 * at + 1
        if other >= heap.count:
            break
        if other + 1 < heap.count and is_before(&places[other + 1], &places[other]):
            other += 1
        if not is_before(&places[other], &place):
            break
        places[at] = places[other]
        self.keys[places[at].key].heap_at = at
        at = other
    places[at] = place
    self.keys[place.key].heap_at = at


cdef void leave_heap(KeyOrder* self, KeyState* state) noexcept nogil:
    cdef KeyHeap* heap
    cdef uint32_t at = state.heap_at
    if at == KEY_NONE:
        return
    heap = &self.heaps[state.owner]
    state.heap_at = KEY_NONE
    heap.count -= 1
    if at < heap.count:
        sift(self, heap, at, heap.places[heap.count])


cdef bint entitle(KeyOrder* self, uint16_t owner) noexcept nogil:
    """A key of the owner gets waiting messages. False: out of memory; nothing changed."""
    cdef KeyHeap* heap
    cdef KeyPlace* places
    cdef uint32_t capacity
    if owner == KEY_NOBODY:
        return True
    heap = &self.heaps[owner]
    if heap.entitled == heap.capacity:
        capacity = heap.capacity * 2 if heap.capacity else 8
        places = <KeyPlace*>realloc(heap.places, <size_t>capacity * sizeof(KeyPlace))
        if places == NULL:
            return False
        heap.places = places
        heap.capacity = capacity
    heap.entitled += 1
    return True


cdef bint reach_heap(KeyOrder* self, uint16_t owner) noexcept nogil:
    cdef uint32_t count = owner + 1
    cdef KeyHeap* heaps
    if owner == KEY_NOBODY or count <= self.heap_count:
        return True
    invariant(owner < KEY_CONSUMERS_MAX)
    count += self.heap_count >> 1
    heaps = <KeyHeap*>realloc(self.heaps, count * sizeof(KeyHeap))
    if heaps == NULL:
        return False
    memset(heaps + self.heap_count, 0, (count - self.heap_count) * sizeof(KeyHeap))
    self.heaps = heaps
    self.heap_count = count
    return True


# ---- what happens to keys and messages ----

cdef void key_order_refresh(KeyOrder* self, uint32_t key, int64_t now_ms) noexcept nogil:
    """Let the heap of its owner and the note of being blocked be what the key's state asks for."""
    cdef KeyState* state = &self.keys[key]
    cdef KeyHeap* heap
    cdef KeyPlace place
    cdef const WaitingMessage* first
    cdef bint is_blocked
    if state.owner == KEY_NOBODY or state.waiting == 0:
        leave_heap(self, state)
        state.blocked_since_ms = 0
        return
    is_blocked = self.in_order and state.unacknowledged and state.holder != state.owner
    if not is_blocked:
        state.blocked_since_ms = 0
    elif state.blocked_since_ms == 0:
        state.blocked_since_ms = now_ms if now_ms else 1
    first = &self.pool.messages[state.messages.first]
    if is_blocked or not first.ready:
        leave_heap(self, state)
        return
    heap = &self.heaps[state.owner]
    place.ledger_id = first.ledger_id
    place.message = first.message
    place.key = key
    if state.heap_at == KEY_NONE:
        invariant(heap.count < heap.entitled)
        state.heap_at = heap.count
        heap.count += 1
    elif not (is_before(&place, &heap.places[state.heap_at])
              or is_before(&heap.places[state.heap_at], &place)):
        return
    sift(self, heap, state.heap_at, place)


cdef int key_order_own(KeyOrder* self, uint32_t key, uint16_t owner,
                       int64_t now_ms) noexcept nogil:
    cdef KeyState* state = &self.keys[key]
    cdef int status = STATUS_OK
    if not state.in_use:
        return STATUS_OK
    state.owned = 1
    if owner == state.owner:
        return STATUS_OK
    if not reach_heap(self, owner) or (state.waiting and not entitle(self, owner)):
        owner = KEY_NOBODY
        state.owned = 0
        self.lacks_owners = True
        status = STATUS_NO_MEMORY
    leave_heap(self, state)
    if state.waiting and state.owner != KEY_NOBODY:
        self.heaps[state.owner].entitled -= 1
    state.owner = owner
    key_order_refresh(self, key, now_ms)
    return status


cdef int key_order_wait(KeyOrder* self, uint32_t key, uint64_t ledger_id, uint64_t message,
                        bint ready, int64_t now_ms) noexcept nogil:
    cdef KeyState* state = &self.keys[key]
    cdef uint32_t before = self.pool.count
    cdef uint32_t place
    if not ready and not self.in_order:
        return STATUS_OK
    if state.waiting == 0 and not entitle(self, state.owner):
        state.owner = KEY_NOBODY
        state.owned = 0
        self.lacks_owners = True
    if waiting_list_put(&self.pool, &state.messages, ledger_id, message,
                        &place) == STATUS_NO_MEMORY:
        if state.waiting == 0 and state.owner != KEY_NOBODY:
            self.heaps[state.owner].entitled -= 1
        return STATUS_NO_MEMORY
    state.waiting += self.pool.count - before
    self.waiting += self.pool.count - before
    self.pool.messages[place].ready = ready
    if place == state.messages.first:
        key_order_refresh(self, key, now_ms)
    return STATUS_OK


cdef int key_order_make_ready(KeyOrder* self, uint32_t hash, uint64_t ledger_id, uint64_t message,
                              int64_t now_ms) noexcept nogil:
    cdef uint32_t key, place
    if not self.in_order:
        key = key_order_key(self, hash)
        if key == KEY_NONE:
            return STATUS_NO_MEMORY
        return key_order_wait(self, key, ledger_id, message, True, now_ms)
    key = key_order_find(self, hash)
    if key == KEY_NONE:
        return STATUS_OK
    place = waiting_list_find(&self.pool, &self.keys[key].messages, ledger_id, message)
    if place == WAITING_NONE:
        return STATUS_OK
    self.pool.messages[place].ready = True
    if place == self.keys[key].messages.first:
        key_order_refresh(self, key, now_ms)
    return STATUS_OK


cdef void take_out(KeyOrder* self, uint32_t key, uint32_t place, int64_t now_ms) noexcept nogil:
    """Take a waiting message off its list."""
    cdef KeyState* state = &self.keys[key]
    cdef bint was_first = place == state.messages.first
    waiting_list_remove(&self.pool, &state.messages, place)
    self.waiting -= 1
    state.waiting -= 1
    if was_first:
        key_order_refresh(self, key, now_ms)
    if state.waiting == 0 and state.owner != KEY_NOBODY:
        self.heaps[state.owner].entitled -= 1


cdef void key_order_forget(KeyOrder* self, uint32_t hash, uint64_t ledger_id, uint64_t message,
                           int64_t now_ms) noexcept nogil:
    cdef uint32_t key = key_order_find(self, hash)
    cdef uint32_t place
    if key == KEY_NONE:
        return
    place = waiting_list_find(&self.pool, &self.keys[key].messages, ledger_id, message)
    if place != WAITING_NONE:
        take_out(self, key, place, now_ms)


cdef uint32_t key_order_take(KeyOrder* self, uint16_t consumer) noexcept nogil:
    cdef uint32_t key
    if consumer >= self.heap_count or self.heaps[consumer].count == 0:
        return KEY_NONE
    key = self.heaps[consumer].places[0].key
    # It was ready for its owner, so the one behind is not blocked by another: no time is needed.
    take_out(self, key, self.keys[key].messages.first, 0)
    return key
