"""Dispatches a Key_Shared subscription: each message to the consumer its key belongs to, the
messages of a key in order.

Which consumer a key belongs to, HashRangeSelector says; what may go out when, KeyOrder. What is
read for a consumer without room waits in KeyOrder, so one that stalls holds back its own keys only.
With the subscription's mutex held unless a method says otherwise.
"""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t

from pulsarx._core.key_order cimport KeyOrder
from pulsarx._core.pending_acks cimport PendingAck
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.dispatch.hash_range_selector cimport HashRangeSelector
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.slice_queue cimport Slice
from pulsarx._pycore.dispatch.pending_dispatcher cimport PickedItems
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.dispatch.shared_dispatcher cimport SharedDispatcher

cdef enum:
    ROUTED_AT_ONCE = 32

cdef struct RoutedMessage:
    uint32_t at                          # offset in the entry's payload
    uint32_t key_hash
    uint32_t key                         # what key_order_find said a moment ago
    uint32_t header_size                 # the rest as in SliceItem
    uint32_t payload_size
    uint32_t flags

cdef struct QueuedMessage:              # 24 bytes
    uint64_t ledger_id
    uint64_t message
    uint32_t tag                         # of its slice
    uint32_t next                        # of its key; 0: it is the last. Or the next unused one


cdef class KeySharedDispatcher(SharedDispatcher):
    cdef KeyOrder c_keys
    cdef HashRangeSelector selector
    cdef EntryContext any_context        # for entries nobody is given yet
    cdef bint in_order
    cdef bint spread                     # messages without a key do not have one key together
    cdef PickedItems* c_lists            # owned: of a mixed entry, what each receiver gets
    cdef uint32_t list_count

    # how much may wait that was read for consumers without room, or behind others of its key
    cdef uint64_t look_ahead_of_receiver # 0: no limit
    cdef uint64_t look_ahead_of_all      # 0: no limit
    cdef bint look_ahead_stopped         # somebody has room, and is read for no further

    # What lies in receiver queues, by key: made when a message is taken back, and behind since.
    # Entries of messages that left their queue otherwise stay until they are come across.
    cdef QueuedMessage* c_queued         # owned; the first is none
    cdef uint32_t queued_used            # from here on they were never used
    cdef uint32_t queued_capacity
    cdef uint32_t queued_free            # head of the list of unused ones
    cdef uint32_t queued_count           # in the lists of keys
    # owned, one a receiver: MARKED and the tag of its last slice that is in; 0: none is
    cdef uint64_t* c_marks
    cdef uint32_t mark_count

    # Memory ran out: a message that waits is in no list of its key, and in core.pending alone. With
    # c_keys.lacks_owners what is caught up before anything is dispatched.
    cdef bint keys_behind

    cdef int catch_up(self) except -1
    cdef uint32_t key_of(self, uint32_t key_hash) except? 4294967295
    cdef int64_t blocked_now_ms(self, uint32_t key) except -1
    cdef int own(self, uint32_t key, int64_t now_ms) noexcept
    cdef int assign_all(self) except -1
    cdef bint was_given(self, uint64_t ledger_id, uint64_t message) noexcept
    cdef bint give_waiting(self, EntrySink receiver) except -1
    cdef bint route(self) except -1
    cdef int route_key(self, uint32_t key_hash) except -1
    cdef int let_wait(self, uint64_t ledger_id, uint64_t message, PendingAck* ack,
                      uint32_t key_hash) except -1
    cdef int route_mixed(self) except -1
    cdef int read_keys(self, LedgerReader reader, EntryView view, uint32_t* at,
                       RoutedMessage* found, uint32_t* count) noexcept
    cdef int route_some(self, uint32_t first, const RoutedMessage* found, uint32_t count,
                        uint32_t tag) except -1
    cdef PickedItems* list_of(self, uint16_t owner, EntrySink receiver, EntryView view) except NULL
    """The list of the owner, with a place for one more message of the view."""

    cdef PickedItems* list_with_room(self, uint16_t owner, EntryView view) except? NULL
    """The list of the owner, with a place for a message that it has room for; NULL: it has none."""

    cdef int take_listed(self, EntryView view) except -1
    cdef void push_lists(self, uint32_t tag) noexcept
    cdef uint64_t look_ahead_max(self) noexcept
    """How many messages may wait before reading stops."""

    cdef bint index_queue(self, EntrySink receiver) except -1
    """Enter what was queued since the last time; False: out of memory."""

    cdef bint reach_marks(self, uint16_t receiver) noexcept
    cdef bint index_slice(self, const Slice* slice, uint16_t holder) noexcept
    cdef void forget_queued(self) noexcept
    cdef int recall_queued(self, EntrySink receiver, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1
    cdef int recall_slice(self, uint16_t holder, uint32_t key_hash, uint64_t ledger_id,
                          uint64_t message, const Slice* slice) except -1
    cdef int recall(self, PendingAck* ack, uint64_t ledger_id, uint64_t message) except -1
    cdef inline bint has_listed(self, uint16_t owner) noexcept
