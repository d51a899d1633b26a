"""Decides for Key_Shared which waiting message may be dispatched next, and to which consumer.

The guarantee: at any time the unacknowledged messages of a key that were delivered are with one
consumer, and a message is delivered only when every earlier one of its key is acknowledged or with
that same consumer. A key waits for no consumer but the one that holds its messages.

Each key (the 32-bit hash of its sticky key) has a list of the messages that wait, in order of
their position. A message waits because its consumer has no permits, because another consumer
still holds earlier ones (draining), because an earlier one waits, or because it was negatively
acknowledged and its time has not come ("not ready": it blocks what is behind it). Each owner has a
heap of the keys whose first message may go out to it, by the position of that message, so what
waits is read back in the order of the ledger.

A key is forgotten when it is idle (nothing delivered, nothing waiting) and its place is wanted, so
the table grows with the keys in use at a time, not with those ever seen.

One thread at a time (the subscription's mutex).
"""

from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.invariant cimport invariant
from pulsarx._core.waiting_list cimport WaitingList, WaitingPool

cdef extern from *:
    void __builtin_prefetch(const void* at) noexcept nogil

cdef enum KeyLimits:
    KEY_NOBODY = 65535                  # no consumer
    KEY_NONE = 4294967295               # no key, no message
    KEY_CONSUMERS_MAX = 65000

cdef struct KeyState:                   # 48 bytes
    uint32_t hash
    uint32_t unacknowledged             # delivered and not acknowledged: `holder` has them
    uint32_t waiting                    # messages in the list
    WaitingList messages
    uint32_t heap_at                    # place in its owner's heap, KEY_NONE: not in it
    # KEY_NOBODY while unacknowledged is 0; out of order: whom the last one went to
    uint16_t holder
    uint16_t owner                      # whom the mapping gives the key to; KEY_NOBODY: none
    uint8_t in_use                      # 0: the rest means nothing
    uint8_t owned                       # 0: nobody told the owner yet
    uint32_t queued                     # the user's; 0 when the key is made
    # since when messages wait because another than its owner holds earlier ones; 0: they do not
    int64_t blocked_since_ms

cdef struct KeyPlace:
    uint64_t ledger_id                  # of its first waiting message
    uint64_t message
    uint32_t key

cdef struct KeyHeap:
    KeyPlace* places                    # owned
    uint32_t count
    uint32_t capacity                   # not below entitled: what becomes ready always finds room
    uint32_t entitled                   # keys of this owner with waiting messages

cdef struct KeyOrder:
    KeyState* keys                      # owned; a key keeps its index while it is in use
    uint32_t key_count                  # indexes given out so far; some may be out of use
    uint32_t key_capacity
    uint32_t* places                    # owned: hash table of indexes
    uint32_t place_count                # a power of two; 0 before the first key
    uint32_t kept_keys                  # tables up to this grow before idle keys are forgotten
    uint32_t free_key                   # head of the list of keys out of use, linked by heap_at
    WaitingPool pool
    KeyHeap* heaps                      # owned, one a consumer index
    uint32_t heap_count
    uint64_t waiting                    # messages in all lists
    # False: allow_out_of_order_delivery, no key ever waits for another consumer or for a negative
    # acknowledgement
    bint in_order
    bint lacks_owners                   # memory ran out: keys lost their owner, and are new

cdef void key_order_init(KeyOrder* self, bint in_order) noexcept nogil
cdef void key_order_free(KeyOrder* self) noexcept nogil
cdef void key_order_clear(KeyOrder* self) noexcept nogil
"""Forget every key and message; gives all memory back."""

cdef uint32_t key_order_add_key(KeyOrder* self, uint32_t hash) noexcept nogil
cdef void key_order_refresh(KeyOrder* self, uint32_t key, int64_t now_ms) noexcept nogil

cdef inline uint32_t key_order_spread(uint32_t hash) noexcept nogil:
    """Return where in the table to look first, to be cut to its size."""
    return (hash ^ (hash >> 16)) * <uint32_t>2654435769

cdef inline uint32_t key_order_find(const KeyOrder* self, uint32_t hash) noexcept nogil:
    """The index of the key; KEY_NONE: it is not known."""
    cdef uint32_t at = key_order_spread(hash)
    cdef uint32_t key
    if self.place_count == 0:
        return KEY_NONE
    while True:
        at &= self.place_count - 1
        key = self.places[at]
        if key == KEY_NONE or self.keys[key].hash == hash:
            return key
        at += 1

cdef inline void key_order_expect(const KeyOrder* self, uint16_t hint) noexcept nogil:
    """The key with this index, if there is one, will be asked for soon: have its state brought near
    meanwhile."""
    if hint < self.key_count:
        __builtin_prefetch(&self.keys[hint])

cdef inline uint32_t key_order_guess(const KeyOrder* self, uint32_t hash,
                                     uint16_t hint) noexcept nogil:
    """key_order_find, quicker where the hint is the index of the key, as it mostly is where that
    index was given out before: the table is not looked into."""
    if hint < self.key_count and self.keys[hint].hash == hash and self.keys[hint].in_use:
        return hint
    return key_order_find(self, hash)

cdef inline bint key_order_is(const KeyOrder* self, uint32_t key, uint32_t hash) noexcept nogil:
    """Whether an index found before is still that of the key."""
    return key != KEY_NONE and self.keys[key].hash == hash and self.keys[key].in_use != 0

cdef inline uint32_t key_order_key(KeyOrder* self, uint32_t hash) noexcept nogil:
    """The index of the key, made with owner KEY_NOBODY if it is not known; KEY_NONE: out of memory.

    A key with nothing delivered and nothing waiting may be forgotten by any later call of this, so
    an index is good until then. Idle keys stay for a while: a key that comes again costs one
    look-up.
    """
    cdef uint32_t key = key_order_find(self, hash)
    return key_order_add_key(self, hash) if key == KEY_NONE else key

cdef inline bint key_order_is_new(const KeyOrder* self, uint32_t key) noexcept nogil:
    """Whether its owner was not told yet: ask the mapping and call key_order_own."""
    return not self.keys[key].owned

cdef int key_order_own(KeyOrder* self, uint32_t key, uint16_t owner, int64_t now_ms) noexcept nogil
"""The mapping gives the key to owner (KEY_NOBODY: a hole). Called for new keys, and for all of them
(0 .. key_count - 1, unused ones are ignored) when consumers came or went. NO_MEMORY: the key has
no owner, and is new; its messages wait until it is told again. See lacks_owners."""

cdef inline bint key_order_may_pass(const KeyOrder* self, uint32_t key) noexcept nogil:
    """Whether a message behind everything that is known of the key may go to its owner now."""
    cdef const KeyState* state = &self.keys[key]
    if state.waiting or state.owner == KEY_NOBODY:
        return False
    return state.unacknowledged == 0 or state.holder == state.owner or not self.in_order

cdef inline void key_order_delivered(KeyOrder* self, uint32_t key) noexcept nogil:
    """A message that may pass, or was taken by key_order_take, went to the owner."""
    cdef KeyState* state = &self.keys[key]
    invariant(state.owner != KEY_NOBODY)
    invariant(state.unacknowledged == 0 or state.holder == state.owner or not self.in_order)
    state.unacknowledged += 1
    state.holder = state.owner

cdef inline uint32_t key_order_returned(KeyOrder* self, uint32_t hash, uint16_t hint,
                                        int64_t now_ms) noexcept nogil:
    """A delivered message of the key is delivered no more: acknowledged, or to be redelivered (then
    call key_order_wait for it first). The key, whose index is answered, may become ready for its
    owner by this. hint: see key_order_guess."""
    cdef uint32_t key = key_order_guess(self, hash, hint)
    invariant(key != KEY_NONE and self.keys[key].unacknowledged > 0)
    self.keys[key].unacknowledged -= 1
    if self.keys[key].unacknowledged == 0:
        self.keys[key].holder = KEY_NOBODY
        if self.keys[key].waiting:
            key_order_refresh(self, key, now_ms)
    return key

cdef int key_order_wait(KeyOrder* self, uint32_t key, uint64_t ledger_id, uint64_t message,
                        bint ready, int64_t now_ms) noexcept nogil
"""Put a message into the list of its key, at its place; one that is in takes over ready. NO_MEMORY:
it is not in the list. Where only the owner has no room for the key, the key loses its owner.

ready False: negatively acknowledged, it and what is behind it wait for key_order_make_ready (out
of order: it is not put into the list at all before).
"""

cdef int key_order_make_ready(KeyOrder* self, uint32_t hash, uint64_t ledger_id, uint64_t message,
                              int64_t now_ms) noexcept nogil
"""The redelivery time of a message has come; nothing when it is not in the list (out of order: it
is put there, and its key may be new by that). NO_MEMORY only out of order."""

cdef void key_order_forget(KeyOrder* self, uint32_t hash, uint64_t ledger_id, uint64_t message,
                           int64_t now_ms) noexcept nogil
"""A waiting message was acknowledged or is dead: it leaves the list. Nothing when it is not in."""

cdef inline bint key_order_peek(KeyOrder* self, uint16_t consumer, uint64_t* ledger_id,
                                uint64_t* message) noexcept nogil:
    """The earliest message that may go to this consumer; False: none. Call take to have it."""
    if consumer >= self.heap_count or self.heaps[consumer].count == 0:
        return False
    ledger_id[0] = self.heaps[consumer].places[0].ledger_id
    message[0] = self.heaps[consumer].places[0].message
    return True

cdef uint32_t key_order_take(KeyOrder* self, uint16_t consumer) noexcept nogil
"""Take what peek showed off its list; answers its key, KEY_NONE when there was nothing. Call
key_order_delivered next."""

cdef uint64_t key_order_memory_size(const KeyOrder* self) noexcept nogil
