"""Key_Shared: which waiting message may go out next, and to whom.

The guarantee: at any time the unacknowledged messages of a key that were delivered are with one
consumer, and a message is delivered only when every earlier one of its key is acknowledged or with
that same consumer. A key waits for nobody but whoever holds its own messages.

Each key (the 32-bit hash of its sticky key) has a list of the messages that wait, in order of
their position. A message waits because its consumer has no permits, because another consumer
still holds earlier ones (draining), because an earlier one waits, or because it was negatively
acknowledged and its time has not come ("not ready": it blocks what is behind it). Each owner has a
heap of the keys whose first message may go out to it, by the position of that message, so what
waits is read back in the order of the ledger.

One thread at a time (the subscription's mutex).
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

cdef enum KeyLimits:
    KEY_NOBODY = 65535                  # no consumer
    KEY_NONE = 4294967295               # no key, no message
    KEY_CONSUMERS_MAX = 65000

cdef struct KeyState:
    uint32_t hash
    uint32_t unacknowledged             # delivered and not acknowledged: `holder` has them
    uint32_t waiting                    # messages in the list
    uint32_t head                       # WaitingMessage, ascending by position; KEY_NONE
    uint32_t tail
    uint32_t heap_at                    # place in its owner's heap, KEY_NONE: not in it
    uint16_t holder                     # KEY_NOBODY while unacknowledged is 0
    uint16_t owner                      # whom the mapping gives the key to; KEY_NOBODY: nobody
    int64_t blocked_since_ms            # since when another than its owner holds it back; 0: not

cdef struct WaitingMessage:             # 24 bytes
    uint64_t ledger_id
    uint64_t message
    uint32_t next
    uint32_t ready                      # 0: not before key_order_make_ready

cdef struct KeyHeap:
    uint32_t* keys                      # owned; indexes into KeyOrder.keys
    uint32_t count
    uint32_t capacity

cdef struct KeyOrder:
    KeyState* keys                      # owned; a key keeps its index while it is in use
    uint32_t key_count
    uint32_t key_capacity
    uint32_t* places                    # owned: hash table of indexes, a power of two
    uint32_t place_count
    WaitingMessage* messages            # owned pool
    uint32_t message_capacity
    uint32_t free_message
    uint32_t used_messages
    KeyHeap* heaps                      # owned, one a consumer index
    uint32_t heap_count
    uint64_t waiting                    # messages in all lists
    uint32_t free_key
    bint in_order                       # False: allow_out_of_order_delivery, no key ever waits for
                                        # another consumer or for a negative acknowledgement

cdef void key_order_init(KeyOrder* self, bint in_order) noexcept nogil
cdef void key_order_free(KeyOrder* self) noexcept nogil
cdef void key_order_clear(KeyOrder* self) noexcept nogil
"""Forget every key and message; memory may be kept."""

cdef uint32_t key_order_key(KeyOrder* self, uint32_t hash) noexcept nogil
"""The index of the key, made with owner KEY_NOBODY if it is not known; KEY_NONE: out of memory.

A key with nothing delivered and nothing waiting may be forgotten by any later call of this, so an
index is good until then. Idle keys stay for a while: a key that comes again costs one look-up.
"""

cdef bint key_order_is_new(const KeyOrder* self, uint32_t key) noexcept nogil
"""Whether nobody told its owner yet: ask the mapping and call key_order_own."""

cdef void key_order_own(KeyOrder* self, uint32_t key, uint16_t owner, int64_t now_ms) noexcept nogil
"""The mapping gives the key to owner (KEY_NOBODY: a hole). Called for new keys, and for all of them
(0 .. key_count - 1, unused ones are ignored) when consumers came or went."""

cdef bint key_order_may_pass(const KeyOrder* self, uint32_t key) noexcept nogil
"""Whether a message behind everything that is known of the key may go to its owner now."""

cdef void key_order_delivered(KeyOrder* self, uint32_t key) noexcept nogil
"""A message that may pass, or was taken by key_order_take, went to the owner."""

cdef void key_order_returned(KeyOrder* self, uint32_t hash, int64_t now_ms) noexcept nogil
"""A delivered message of the key is delivered no more: acknowledged, or to be redelivered (then
call key_order_wait for it first). The key may become ready for its owner by this."""

cdef int key_order_wait(KeyOrder* self, uint32_t key, uint64_t ledger_id, uint64_t message,
                        bint ready, int64_t now_ms) noexcept nogil
"""Put a message into the list of its key, at its place. NO_MEMORY.

ready False: negatively acknowledged, it and what is behind it wait for key_order_make_ready (out
of order: it is not put into the list at all before).
"""

cdef int key_order_make_ready(KeyOrder* self, uint32_t hash, uint64_t ledger_id, uint64_t message,
                              int64_t now_ms) noexcept nogil
"""The redelivery time of a message has come. NO_MEMORY only out of order."""

cdef void key_order_forget(KeyOrder* self, uint32_t hash, uint64_t ledger_id, uint64_t message,
                           int64_t now_ms) noexcept nogil
"""A waiting message was acknowledged or is dead: it leaves the list. Nothing when it is not in."""

cdef bint key_order_peek(KeyOrder* self, uint16_t consumer, uint64_t* ledger_id,
                         uint64_t* message) noexcept nogil
"""The earliest message that may go to this consumer; False: none. Call take to have it."""

cdef uint32_t key_order_take(KeyOrder* self, uint16_t consumer) noexcept nogil
"""Take what peek showed off its list; answers its key. Call key_order_delivered next."""
