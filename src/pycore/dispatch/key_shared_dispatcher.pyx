# cython: language_level=3
"""Body of key_shared_dispatcher.pxd."""

from cpython.list cimport PyList_GET_ITEM
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport UINT64_MAX, int64_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.cursor_state cimport CursorState, LedgerAcks, cursor_state_find
from pulsarx._core.entry_frame cimport ENTRY_MIXED_KEYS
from pulsarx._core.key_order cimport (
    KEY_NONE, KeyState, key_order_clear, key_order_delivered, key_order_expect,
    key_order_find, key_order_forget, key_order_free, key_order_guess, key_order_init, key_order_is,
    key_order_is_new, key_order_key,
    key_order_make_ready, key_order_may_pass, key_order_own, key_order_peek, key_order_returned,
    key_order_take, key_order_wait,
)
from pulsarx._core.pending_acks cimport (
    PENDING_COUNTED, PENDING_DEAD, PENDING_DUE, PENDING_GIVEN, PENDING_HELD, PENDING_NACKED,
    PENDING_NOBODY, PENDING_NONE, PENDING_QUEUED, PendingAck, pending_acks_add, pending_acks_find,
    pending_acks_next, pending_acks_set_state,
)
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.single_metadata cimport METADATA_ORDERING_KEY, METADATA_PARTITION_KEY
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.sticky_key cimport STICKY_NON_KEY, sticky_key_of_encoded, sticky_key_spread
from pulsarx._pycore.message.entry_view cimport ENTRY_PLAIN, EntryView
from pulsarx._pycore.dispatch.hash_range_selector cimport HashRangeSelector
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.pending_dispatcher cimport (
    PickedItems, count_queued, picked_add, picked_begin, picked_free, picked_push, picked_reserve,
    queue_for,
)
from pulsarx._pycore.dispatch.shared_dispatcher cimport SharedDispatcher, is_acknowledged
from pulsarx._pycore.dispatch.slice_queue cimport Slice, SliceItem
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.dispatch.transacted_acks cimport TransactedAcks


cdef enum:
    # Entries of messages that left their queue are kept up to so many, beside as many as are
    # unacknowledged and as there are keys.
    QUEUED_KEPT = 1024

cdef uint64_t MARKED = <uint64_t>1 << 32


cdef uint32_t spread_hash(LedgerReader reader, uint32_t key_hash, bint keyless) noexcept:
    """The hash of the messages without a key in the entry read last. keyless: False where they may
    have one after all; key_hash, then.

    They are spread by entry, as in Pulsar: those of one batch stay together.
    """
    cdef EntryParts parts
    if entry_decode(reader.c_entry, reader.c_frame.entry_size, False, &parts) != STATUS_OK:
        return key_hash                      # told when it is taken apart
    if not keyless and parts.metadata.flags & (METADATA_ORDERING_KEY | METADATA_PARTITION_KEY):
        return key_hash
    return sticky_key_spread(&parts.metadata)


cdef inline uint32_t known_key(KeySharedDispatcher self, uint32_t key_hash) noexcept:
    """The index of the key, whose owner is told; KEY_NONE: out of memory."""
    cdef uint32_t key = key_order_key(&self.c_keys, key_hash)
    if key != KEY_NONE and key_order_is_new(&self.c_keys, key):
        self.own(key, 0)       # nothing waits yet
    return key


cdef class KeySharedDispatcher(SharedDispatcher):
    """A Key_Shared subscription. Any thread may call; the mutex orders them."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max, object limits,
                 HashRangeSelector selector not None, bint in_order, bint spread=False):
        """selector: empty. in_order: False for allow_out_of_order_delivery. spread: messages
        without a key go to any consumer, entry by entry."""
        self.spread = spread
        key_order_init(&self.c_keys, in_order)
        self.in_order = in_order
        self.selector = selector
        self.has_keys = True
        self.look_ahead_of_receiver = limits.look_ahead_per_consumer
        self.look_ahead_of_all = limits.look_ahead_per_subscription
        self.queued_used = 1
        super().__init__(core, tail, topic_name, decompressed_size_max, limits)

    def __dealloc__(self):
        cdef uint32_t at
        key_order_free(&self.c_keys)
        for at in range(self.list_count):
            picked_free(&self.c_lists[at])
        PyMem_Free(self.c_lists)
        PyMem_Free(self.c_queued)
        PyMem_Free(self.c_marks)

    # Who has which keys ---------------------------------------------------------------------------

    cdef int joined(self, EntrySink receiver, object key_shared) except -1:
        self.selector.add(receiver.index, receiver.consumer_name, key_shared)
        self.any_context = receiver.context
        self.assign_all()
        # The look-ahead limits grow with the number of receivers. Keys go to the newcomer alone,
        # which looks.
        if self.look_ahead_stopped or self.keys_behind or self.c_keys.lacks_owners:
            self.wakes = True
        return 0

    cdef int left(self, EntrySink receiver) except -1:
        self.selector.remove(receiver.index)
        self.assign_all()
        # What waited for it is for others now.
        if self.core.pending.due_count or self.look_ahead_stopped or self.keys_behind or (
                self.c_keys.lacks_owners):
            self.wakes = True
        return 0

    cdef int assign_all(self) except -1:
        cdef int64_t now_ms = self.core.now_ms()
        cdef uint32_t key
        self.c_keys.lacks_owners = False
        for key in range(self.c_keys.key_count):
            if self.c_keys.keys[key].in_use:
                self.own(key, now_ms)
        return 0

    cdef int catch_up(self) except -1:
        """Do what memory ran out for."""
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef PendingAck* ack
        self.assign_all()
        self.wakes = True
        if self.keys_behind:
            self.keys_behind = False
            while True:
                ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
                if ack == NULL:
                    break
                if ack.state == PENDING_DUE or ack.state == PENDING_NACKED:
                    self.key_waits(ack.key_hash, ledger_id, message, ack.state == PENDING_DUE)
                message += 1
        if self.keys_behind or self.c_keys.lacks_owners:
            raise MemoryError("keep messages for later: out of memory")
        return 0

    cdef int keys_cleared(self) except -1:
        key_order_clear(&self.c_keys)
        self.forget_queued()
        self.look_ahead_stopped = False
        self.keys_behind = False
        return 0

    cdef uint32_t key_of(self, uint32_t key_hash) except? 4294967295:
        cdef uint32_t key = known_key(self, key_hash)
        if key == KEY_NONE:
            raise MemoryError("remember a key: out of memory")
        return key

    cdef int64_t blocked_now_ms(self, uint32_t key) except -1:
        """The time, if the key's next waiting message is the first that waits for another than its
        owner; it is noted then, and not asked for otherwise."""
        cdef KeyState* state = &self.c_keys.keys[key]
        if not self.in_order or state.unacknowledged == 0 or state.holder == state.owner or (
                state.blocked_since_ms):
            return 0
        return self.core.now_ms()

    cdef int own(self, uint32_t key, int64_t now_ms) noexcept:
        return key_order_own(&self.c_keys, key, self.selector.select(self.c_keys.keys[key].hash),
                             now_ms)

    # Dispatch -------------------------------------------------------------------------------------

    cdef bint step(self) except -1:
        cdef EntrySink each
        cdef uint64_t ledger_id
        cdef uint64_t message
        cdef bint anybody = False
        cdef Py_ssize_t at
        if self.keys_behind or self.c_keys.lacks_owners:
            self.catch_up()
        for at in range(len(self.receivers)):
            if <object>PyList_GET_ITEM(self.receivers, at) is None:
                continue
            each = <EntrySink>PyList_GET_ITEM(self.receivers, at)
            if self.room(each):
                if not anybody and self.core.throttle is not None and not self.lets_pass():
                    return False
                anybody = True
                if self.c_keys.waiting == 0:
                    break
                if key_order_peek(&self.c_keys, each.index, &ledger_id, &message) and (
                        not self.blocked or self.was_given(ledger_id, message)):
                    return self.give_waiting(each)
        if not anybody or self.blocked:
            return False
        if self.core.pending.due_count and self.core.pending.due_count >= self.look_ahead_max():
            self.look_ahead_stopped = True
            return False
        self.look_ahead_stopped = False
        return self.route()

    cdef uint64_t look_ahead_max(self) noexcept:
        """Bound the look-ahead like Pulsar's dispatcher; without look-ahead limits the limits of
        unacknowledged messages count."""
        cdef uint64_t of_receivers = self.look_ahead_of_receiver
        cdef uint64_t of_all = self.look_ahead_of_all
        if of_receivers == 0 and of_all == 0:
            of_receivers = self.receiver_max
            of_all = self.unacknowledged_max
        of_receivers *= self.receiver_count
        if of_receivers == 0 or (of_all and of_all < of_receivers):
            of_receivers = of_all
        return of_receivers if of_receivers else UINT64_MAX

    cdef bint was_given(self, uint64_t ledger_id, uint64_t message) noexcept:
        """Whether it goes out again, so that the subscription's limit does not hold it."""
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        return ack == NULL or ack.flags & PENDING_GIVEN != 0

    cdef bint give_waiting(self, EntrySink receiver) except -1:
        """Give the receiver what waited for it, as far as it is of one entry."""
        cdef uint64_t room = self.room(receiver)
        cdef uint64_t of_ledger = 0
        cdef uint64_t end = 0
        cdef uint64_t ledger_id
        cdef uint64_t message
        cdef uint32_t given
        cdef PendingAck* ack
        self.last_tag += 1
        self.unsaid = None
        try:
            while self.c_picked.count < room and key_order_peek(
                    &self.c_keys, receiver.index, &ledger_id, &message):
                if self.c_picked.count and (ledger_id != of_ledger or message >= end
                                            or message < self.again_view.first_message):
                    break
                if self.blocked and room != UINT64_MAX and not self.was_given(ledger_id, message):
                    break
                ack = pending_acks_find(&self.core.pending, ledger_id, message)
                if not self.find_again(receiver.context, ledger_id, message):
                    break
                if self.core.filter is not None and not self.still_selected(ledger_id, message):
                    continue
                if self.again_view.encryption != ENTRY_PLAIN or receiver.takes_entries:
                    room = UINT64_MAX    # as a whole
                of_ledger = ledger_id
                end = self.again_view.first_message + self.again_view.message_count
                if self.c_picked.view == NULL:
                    picked_begin(&self.c_picked, receiver, self.again_view)
                picked_reserve(&self.c_picked)
                key_order_delivered(&self.c_keys, key_order_take(&self.c_keys, receiver.index))
                self.enqueue(receiver, ledger_id, message, ack, ack.key_hash, self.last_tag)
                picked_add(&self.c_picked, self.again_at, self.again_index)
        finally:
            given = self.c_picked.count
            picked_push(&self.c_picked, receiver, self.last_tag)
            if self.look_ahead_stopped and self.core.pending.due_count < self.look_ahead_max():
                self.look_ahead_stopped = False
                self.wakes = True      # others may be read for again
        if self.core.throttle is not None and given:
            self.core.throttle.take(self.again_view, given, 1)
        self.forget_large(receiver)
        self.say_loss()
        return True

    cdef bint route(self) except -1:
        """Send the messages of the next entry to the owners of their keys."""
        # Of one for which memory ran out, those that were sent are known.
        if self.view is None and not self.read_new(self.any_context, False):
            return self.look_again()
        if self.view.entry_flags & ENTRY_MIXED_KEYS and self.view.encryption == ENTRY_PLAIN:
            self.route_mixed()
        else:
            self.route_key(self.key_hash_of(self.reader))
        self.view = None
        return True

    cdef uint32_t key_hash_of(self, LedgerReader reader) noexcept:
        cdef uint32_t key_hash = reader.c_frame.sticky_hash
        if key_hash == STICKY_NON_KEY and self.spread:
            return spread_hash(reader, key_hash, False)
        return key_hash

    cdef int read_keys(self, LedgerReader reader, EntryView view, uint32_t* at,
                       RoutedMessage* found, uint32_t* count) noexcept:
        """Read the keys of the next messages; count: how many, out: how many could be read.
        reader: has just read the entry of the view."""
        cdef BatchMessage read
        cdef uint32_t n
        cdef int status
        for n in range(count[0]):
            found[n].at = at[0]
            status = batch_decode_next(view.c_payload, view.payload_size, at, &read)
            if status == STATUS_OK:
                status = sticky_key_of_encoded(read.encoded_metadata, read.encoded_metadata_size,
                                               &found[n].key_hash)
            if status != STATUS_OK:
                count[0] = n
                return status
            found[n].header_size = 4 + read.encoded_metadata_size
            found[n].payload_size = read.payload_size
            found[n].flags = read.flags
            if self.spread and found[n].key_hash == STICKY_NON_KEY and not read.flags & (
                    METADATA_ORDERING_KEY | METADATA_PARTITION_KEY):
                found[n].key_hash = spread_hash(reader, STICKY_NON_KEY, True)
        return STATUS_OK

    cdef int route_key(self, uint32_t key_hash) except -1:
        """All messages of the view have one key."""
        cdef EntryView view = self.view
        cdef uint32_t key = self.key_of(key_hash)
        cdef uint16_t owner = self.c_keys.keys[key].owner
        cdef uint64_t room
        cdef uint64_t message = view.first_message
        cdef uint64_t end = message + view.message_count
        cdef PendingAck* ack
        if key_order_may_pass(&self.c_keys, key):
            receiver = <EntrySink>PyList_GET_ITEM(self.receivers, owner)
            room = self.room(receiver)
            if room:
                self.give_run(receiver, room, key_hash, <uint16_t>key)
                if self.view is None:
                    return 0
                message += self.view_index
        while message < end:
            if not self.core.is_taken(view.ledger_id, message):
                ack = self.core.add(view.ledger_id, message)
                if ack.state == PENDING_NONE or ack.state == PENDING_COUNTED:
                    self.let_wait(view.ledger_id, message, ack, key_hash)
            message += 1
        return 0

    cdef int let_wait(self, uint64_t ledger_id, uint64_t message, PendingAck* ack,
                      uint32_t key_hash) except -1:
        """A message that was read cannot go out yet."""
        ack.key_hash = key_hash
        ack.consumer = PENDING_NOBODY
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DUE)
        self.key_waits(key_hash, ledger_id, message, True)
        if self.keys_behind:
            # Nothing may be routed past it that is behind it.
            raise MemoryError("keep a message for later: out of memory")
        return 0

    cdef int route_mixed(self) except -1:
        """The view is a batch of several keys: each message goes its own way."""
        cdef EntryView view = self.view
        cdef RoutedMessage[ROUTED_AT_ONCE] found
        cdef uint32_t at = 0
        cdef uint32_t first = 0
        cdef uint32_t count
        cdef uint32_t n
        cdef uint32_t tag
        cdef int status = STATUS_OK
        self.last_tag += 1
        tag = self.last_tag
        try:
            while first < view.message_count and status == STATUS_OK:
                count = min(view.message_count - first, <uint32_t>ROUTED_AT_ONCE)
                status = self.read_keys(self.reader, view, &at, found, &count)
                # Looked up together, so that the memory is waited for once and not for each.
                for n in range(count):
                    found[n].key = key_order_find(&self.c_keys, found[n].key_hash)
                self.route_some(first, found, count, tag)
                first += count
            if self.core.throttle is not None:
                self.take_listed(view)
        finally:
            self.push_lists(tag)
        if status != STATUS_OK:
            self.view = None
            self.lose_rest(view, first, status)
        return 0

    cdef int route_some(self, uint32_t first, const RoutedMessage* found, uint32_t count,
                        uint32_t tag) except -1:
        """Queue each message with the owner of its key, or let it wait."""
        cdef EntryView view = self.view
        cdef CursorState* state = &self.core.tracker.c_state
        cdef LedgerAcks* acks = cursor_state_find(state, view.ledger_id)
        cdef TransactedAcks transacted = self.core.transacted
        cdef uint64_t ledger_id = view.ledger_id
        cdef uint64_t message = view.first_message + first
        cdef uint32_t at
        cdef uint32_t key
        cdef uint16_t owner
        cdef PickedItems* listed
        cdef SliceItem* item
        cdef PendingAck* ack
        # Where nothing is acknowledged from here on, as usual, it is not asked of each.
        cdef bint unread = transacted is None and ledger_id >= state.acknowledged_below and (
            acks == NULL or (acks.bits.beyond == 0 and acks.bits.contiguous <= message))
        for at in range(count):
            message = view.first_message + first + at
            if not unread and (is_acknowledged(state, acks, ledger_id, message) or (
                    transacted is not None and transacted.has(ledger_id, message))):
                continue
            key = found[at].key
            if not key_order_is(&self.c_keys, key, found[at].key_hash) or (
                    key_order_is_new(&self.c_keys, key)):
                key = self.key_of(found[at].key_hash)
            owner = self.c_keys.keys[key].owner
            listed = NULL
            if key_order_may_pass(&self.c_keys, key):
                if owner < self.list_count and self.c_lists[owner].room:
                    listed = &self.c_lists[owner]
                    picked_reserve(listed)
                else:
                    listed = self.list_with_room(owner, view)
            # Last, and with it a state: an empty one would hide the message.
            ack = pending_acks_add(&self.core.pending, ledger_id, message)
            if ack == NULL:
                raise MemoryError("remember a delivered message: out of memory")
            if ack.state != PENDING_NONE and ack.state != PENDING_COUNTED:
                continue
            if listed == NULL:
                self.let_wait(ledger_id, message, ack, found[at].key_hash)
                continue
            # A guess where there are more keys: what is found by it is looked at.
            queue_for(self, owner, ledger_id, message, ack, found[at].key_hash, <uint16_t>key, tag)
            count_queued(self, <EntrySink>listed.receiver, 1)
            listed.room -= 1
            key_order_delivered(&self.c_keys, key)
            item = &listed.items[listed.count]
            item.at = found[at].at
            item.index = first + at
            item.header_size = found[at].header_size
            item.payload_size = found[at].payload_size
            item.flags = found[at].flags
            listed.count += 1
        return 0

    cdef PickedItems* list_with_room(self, uint16_t owner, EntryView view) except? NULL:
        cdef EntrySink receiver = <EntrySink>PyList_GET_ITEM(self.receivers, owner)
        cdef PickedItems* found
        cdef uint64_t room = self.room(receiver)
        if receiver.takes_entries and (room or self.has_listed(owner)):
            room = UINT64_MAX            # all that is its of the entry
        if room == 0:
            return NULL
        found = self.list_of(owner, receiver, view)
        found.receiver = <void*>receiver
        found.room = room
        if not receiver.takes_entries and self.unacknowledged_max and (
                self.unacknowledged + view.message_count > self.unacknowledged_max):
            found.room = 1               # what the others get counts as well: asked each time
        return found

    cdef inline bint has_listed(self, uint16_t owner) noexcept:
        """Whether the owner gets messages of the entry that is being routed."""
        return owner < self.list_count and self.c_lists[owner].count != 0

    cdef PickedItems* list_of(self, uint16_t owner, EntrySink receiver, EntryView view) except NULL:
        cdef PickedItems* found
        cdef uint32_t capacity
        if owner >= self.list_count:
            capacity = <uint32_t>len(self.receivers)
            found = <PickedItems*>PyMem_Realloc(self.c_lists, capacity * sizeof(PickedItems))
            if found == NULL:
                raise MemoryError(f"dispatch to {capacity} consumers: out of memory")
            memset(&found[self.list_count], 0,
                   (capacity - self.list_count) * sizeof(PickedItems))
            self.c_lists = found
            self.list_count = capacity
        found = &self.c_lists[owner]
        if found.view == NULL:
            picked_begin(found, receiver, view)
        picked_reserve(found)
        return found

    cdef int take_listed(self, EntryView view) except -1:
        """Count what the lists hold against the dispatch rate."""
        cdef uint32_t begins = 1
        cdef uint32_t owner
        for owner in range(self.list_count):
            if self.c_lists[owner].count:
                self.core.throttle.take(view, self.c_lists[owner].count, begins)
                begins = 0
        return 0

    cdef void push_lists(self, uint32_t tag) noexcept:
        """Queue what each receiver got of the entry."""
        cdef uint32_t owner
        for owner in range(self.list_count):
            if self.c_lists[owner].view != NULL:
                picked_push(&self.c_lists[owner],
                            <EntrySink>PyList_GET_ITEM(self.receivers, owner), tag)

    # What PendingDispatcher tells -----------------------------------------------------------------

    cdef void key_held(self, const PendingAck* ack) noexcept:
        key_order_expect(&self.c_keys, ack.key_hint)

    cdef int key_waits(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message,
                       bint ready) except -1:
        cdef uint32_t key = known_key(self, key_hash)
        if key == KEY_NONE or key_order_wait(&self.c_keys, key, ledger_id, message, ready,
                                             self.blocked_now_ms(key)) != STATUS_OK:
            self.keys_behind = True
            self.wakes = True
        return 0

    cdef int key_ready(self, uint32_t key_hash, uint64_t ledger_id, uint64_t message) except -1:
        # Out of order the key may be forgotten by now.
        if known_key(self, key_hash) == KEY_NONE or key_order_make_ready(
                &self.c_keys, key_hash, ledger_id, message, 0) != STATUS_OK:
            self.keys_behind = True
        self.wakes = True
        return 0

    cdef int key_returned(self, uint32_t key_hash, uint16_t key_hint) except -1:
        cdef uint32_t key = key_order_returned(&self.c_keys, key_hash, key_hint, 0)
        if self.c_keys.keys[key].waiting and self.c_keys.keys[key].unacknowledged == 0:
            self.wakes = True
        return 0

    cdef int key_given(self, uint32_t key_hash, uint16_t key_hint, uint32_t count) noexcept:
        cdef uint32_t key = key_order_guess(&self.c_keys, key_hash, key_hint)
        for _ in range(count):
            key_order_delivered(&self.c_keys, key)
        return 0

    cdef int key_forgotten(self, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1:
        key_order_forget(&self.c_keys, key_hash, ledger_id, message, 0)
        self.wakes = True
        return 0

    cdef int revive(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    int64_t delay_ms) except -1:
        cdef PendingAck* ack = pending_acks_find(&self.core.pending, ledger_id, message)
        cdef uint32_t key_hash = 0
        if ack == NULL or ack.state != PENDING_DEAD:
            return 0
        if self.any_context is None:
            self.any_context = receiver.context
        # The dispatcher that gave it up may have been of another type, and known nothing of keys.
        if not self.frame_again(ledger_id, message):
            return self.lost(ledger_id, message)
        if not self.learn_key(ledger_id, message, &key_hash):
            return self.lost(ledger_id, message)
        ack.key_hash = key_hash
        return SharedDispatcher.revive(self, receiver, ledger_id, message, delay_ms)

    cdef bint learn_key(self, uint64_t ledger_id, uint64_t message, uint32_t* key_hash) except -1:
        cdef uint32_t at = 0
        cdef uint32_t count = 1
        cdef RoutedMessage found
        key_hash[0] = self.key_hash_of(self.again)
        if self.again.c_frame.flags & ENTRY_MIXED_KEYS:
            if not self.find_again(self.any_context, ledger_id, message):
                return False
            if self.again_view.encryption != ENTRY_PLAIN:
                return True
            at = self.again_at
            if self.read_keys(self.again, self.again_view, &at, &found, &count) != STATUS_OK:
                return False
            key_hash[0] = found.key_hash
        return True

    cdef int key_came_back(self, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1:
        cdef uint32_t key = key_order_find(&self.c_keys, key_hash)
        if key == KEY_NONE:
            return 0
        return self.key_recalled(self.c_keys.keys[key].holder, key_hash, ledger_id, message)

    cdef int key_recalled(self, uint16_t holder, uint32_t key_hash, uint64_t ledger_id,
                          uint64_t message) except -1:
        cdef EntrySink receiver
        cdef Slice slice
        cdef uint32_t number
        cdef uint32_t key
        if not self.in_order or self.all_go_back or holder >= len(self.receivers):
            return 0
        key = key_order_find(&self.c_keys, key_hash)
        if key == KEY_NONE or self.c_keys.keys[key].unacknowledged == 0:
            return 0           # nothing else of it was given to anybody: no queue need be walked
        receiver = self.receivers[holder]
        if receiver is None or receiver.queued == 0:
            return 0
        if self.index_queue(receiver):
            return self.recall_queued(receiver, key_hash, ledger_id, message)
        for number in range(receiver.queue.count + 1):
            if receiver.slice_at(number, &slice):
                self.recall_slice(holder, key_hash, ledger_id, message, &slice)
        return 0

    cdef bint index_queue(self, EntrySink receiver) except -1:
        cdef uint32_t number = receiver.queue.count + 1
        cdef uint32_t newest = 0
        cdef bint found = False
        cdef uint64_t* mark
        cdef Slice slice
        if not self.reach_marks(receiver.index):
            return False
        if self.queued_count > 2 * self.unacknowledged + self.c_keys.key_count + QUEUED_KEPT:
            self.forget_queued()
        mark = &self.c_marks[receiver.index]
        # Tags grow from slice to slice, so what is in already is at the front.
        while number:
            number -= 1
            if not receiver.slice_at(number, &slice):
                continue
            if mark[0] and self.last_tag - slice.tag >= self.last_tag - <uint32_t>mark[0]:
                break
            if not found:
                newest = slice.tag
                found = True
            if not self.index_slice(&slice, receiver.index):
                self.forget_queued()
                return False
        if found:
            mark[0] = MARKED | newest
        return True

    cdef bint reach_marks(self, uint16_t receiver) noexcept:
        cdef uint32_t count = receiver + 1
        cdef uint64_t* grown
        if count <= self.mark_count:
            return True
        count = max(count, <uint32_t>len(self.receivers))
        grown = <uint64_t*>PyMem_Realloc(self.c_marks, count * sizeof(uint64_t))
        if grown == NULL:
            return False
        memset(grown + self.mark_count, 0, (count - self.mark_count) * sizeof(uint64_t))
        self.c_marks = grown
        self.mark_count = count
        return True

    cdef bint index_slice(self, const Slice* slice, uint16_t holder) noexcept:
        cdef EntryView view = <EntryView>slice.view
        cdef QueuedMessage* grown
        cdef QueuedMessage* entry
        cdef KeyState* state
        cdef PendingAck* ack
        cdef uint64_t at
        cdef uint32_t number
        cdef uint32_t place
        cdef uint32_t key
        cdef uint32_t capacity
        for number in range(slice.first, slice.end):
            at = view.first_message + (
                slice.items[number].index if slice.items != NULL else number)
            ack = pending_acks_find(&self.core.pending, view.ledger_id, at)
            if ack == NULL or ack.state != PENDING_QUEUED or ack.consumer != holder or (
                    ack.tag != slice.tag):
                continue
            key = key_order_find(&self.c_keys, ack.key_hash)
            if key == KEY_NONE:
                continue
            place = self.queued_free
            if place:
                self.queued_free = self.c_queued[place].next
            else:
                if self.queued_used >= self.queued_capacity:
                    capacity = max(2 * self.queued_capacity, <uint32_t>64)
                    grown = <QueuedMessage*>PyMem_Realloc(
                        self.c_queued, <size_t>capacity * sizeof(QueuedMessage))
                    if grown == NULL:
                        return False
                    self.c_queued = grown
                    self.queued_capacity = capacity
                place = self.queued_used
                self.queued_used += 1
            entry = &self.c_queued[place]
            state = &self.c_keys.keys[key]
            entry.ledger_id = view.ledger_id
            entry.message = at
            entry.tag = slice.tag
            entry.next = state.queued
            state.queued = place
            self.queued_count += 1
        return True

    cdef void forget_queued(self) noexcept:
        cdef uint32_t key
        for key in range(self.c_keys.key_count):
            self.c_keys.keys[key].queued = 0
        if self.mark_count:
            memset(self.c_marks, 0, self.mark_count * sizeof(uint64_t))
        PyMem_Free(self.c_queued)
        self.c_queued = NULL
        self.queued_capacity = 0
        self.queued_used = 1
        self.queued_free = 0
        self.queued_count = 0

    cdef int recall_queued(self, EntrySink receiver, uint32_t key_hash, uint64_t ledger_id,
                           uint64_t message) except -1:
        cdef uint32_t key = key_order_find(&self.c_keys, key_hash)
        cdef uint32_t place = self.c_keys.keys[key].queued
        cdef uint32_t following
        cdef uint32_t kept = 0
        cdef QueuedMessage entry
        cdef PendingAck* ack
        self.c_keys.keys[key].queued = 0
        while place:
            entry = self.c_queued[place]
            following = entry.next
            ack = pending_acks_find(&self.core.pending, entry.ledger_id, entry.message)
            if ack != NULL and ack.state == PENDING_QUEUED and ack.tag == entry.tag and (
                    ack.consumer == receiver.index):
                if entry.ledger_id > ledger_id or (entry.ledger_id == ledger_id
                                                   and entry.message > message):
                    self.recall(ack, entry.ledger_id, entry.message)
                else:
                    self.c_queued[place].next = kept
                    kept = place
                    place = following
                    continue
            self.c_queued[place].next = self.queued_free
            self.queued_free = place
            self.queued_count -= 1
            place = following
        self.c_keys.keys[key].queued = kept
        return 0

    cdef int recall(self, PendingAck* ack, uint64_t ledger_id, uint64_t message) except -1:
        """A message goes from its queue behind the earlier ones of its key."""
        cdef uint32_t key_hash = ack.key_hash
        self.let_go(ack)
        ack.consumer = PENDING_NOBODY
        pending_acks_set_state(&self.core.pending, ledger_id, message, ack, PENDING_DUE)
        self.key_waits(key_hash, ledger_id, message, True)
        self.key_returned(key_hash, ack.key_hint)
        return 0

    cdef int recall_slice(self, uint16_t holder, uint32_t key_hash, uint64_t ledger_id,
                          uint64_t message, const Slice* slice) except -1:
        cdef EntryView view = <EntryView>slice.view
        cdef uint64_t at
        cdef uint32_t number
        cdef PendingAck* ack
        for number in range(slice.first, slice.end):
            at = view.first_message + (
                slice.items[number].index if slice.items != NULL else number)
            if view.ledger_id < ledger_id or (view.ledger_id == ledger_id and at <= message):
                continue
            ack = pending_acks_find(&self.core.pending, view.ledger_id, at)
            if ack == NULL or ack.key_hash != key_hash or ack.state != PENDING_QUEUED or (
                    ack.consumer != holder or ack.tag != slice.tag):
                continue
            self.recall(ack, view.ledger_id, at)
        return 0

    # For statistics -------------------------------------------------------------------------------

    def key_statistics(self) -> dict:
        """keys_held_back: keys that wait because another consumer than their owner has messages of
        them: key_hash, held_by, since_ms, waiting_messages. msg_in_replay: messages that were read
        and cannot go out now. look_ahead_limit: of them; reading stops there, 0: never."""
        cdef uint32_t key
        cdef KeyState* state
        cdef list found = []
        for key in range(self.c_keys.key_count):
            state = &self.c_keys.keys[key]
            if state.in_use and state.waiting and state.blocked_since_ms and (
                    state.holder < len(self.receivers)):
                holder = self.receivers[state.holder]
                found.append({
                    "key_hash": state.hash,
                    "held_by": (<EntrySink>holder).consumer_name if holder is not None else "",
                    "since_ms": state.blocked_since_ms,
                    "waiting_messages": state.waiting,
                })
        ranges = [(start, end, (<EntrySink>self.receivers[index]).consumer_name)
                  for start, end, index in self.selector.ranges()]
        limit = self.look_ahead_max()
        return {
            "keys_held_back": found,
            "hash_ranges": ranges,
            "msg_in_replay": self.core.pending.due_count,
            "look_ahead_limit": limit if limit != UINT64_MAX else 0,
            "blocked_subscription_on_look_ahead": bool(self.look_ahead_stopped),
        }

    def check_keys(self) -> list:
        cdef uint64_t ledger_id = 0
        cdef uint64_t message = 0
        cdef uint32_t key
        cdef PendingAck* ack
        cdef KeyState* state
        cdef dict delivered = {}
        cdef dict waiting = {}
        cdef dict holders = {}
        cdef list found = []
        if self.keys_behind or self.c_keys.lacks_owners:
            self.catch_up()
        while True:
            ack = pending_acks_next(&self.core.pending, &ledger_id, &message)
            if ack == NULL:
                break
            key_hash = ack.key_hash
            if ack.state == PENDING_QUEUED or ack.state == PENDING_HELD:
                delivered[key_hash] = delivered.get(key_hash, 0) + 1
                holders.setdefault(key_hash, set()).add(ack.consumer)
            elif ack.state == PENDING_DUE or (ack.state == PENDING_NACKED and self.in_order):
                waiting[key_hash] = waiting.get(key_hash, 0) + 1
            message += 1
        for key in range(self.c_keys.key_count):
            state = &self.c_keys.keys[key]
            if not state.in_use:
                continue
            counts = (state.unacknowledged, state.waiting)
            right = (delivered.pop(state.hash, 0), waiting.pop(state.hash, 0))
            if counts != right:
                found.append(f"key {state.hash}: delivered and waiting {counts}, not {right}")
            if self.in_order and holders.get(state.hash, {state.holder}) != {state.holder}:
                found.append(f"key {state.hash} is with {holders[state.hash]}")
        if delivered or waiting:
            found.append(f"keys nobody knows: {delivered} {waiting}")
        return found
