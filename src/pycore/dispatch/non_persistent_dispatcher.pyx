# cython: language_level=3
"""Body of non_persistent_dispatcher.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING
from cpython.mem cimport PyMem_Calloc, PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.entry_frame cimport (
    ENTRY_BATCH, ENTRY_COMPRESSED, ENTRY_MIXED_KEYS, EntryFrame,
)
from pulsarx._core.message_metadata cimport EntryParts, entry_decode
from pulsarx._core.pending_acks cimport PENDING_NOBODY
from pulsarx._core.single_metadata cimport (
    METADATA_BATCH, METADATA_ORDERING_KEY, METADATA_PARTITION_KEY,
)
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.sticky_key cimport STICKY_NON_KEY, sticky_key_of_encoded, sticky_key_spread
from pulsarx._pycore.dispatch.active_choice cimport active_choice
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.dispatch.hash_range_selector cimport HashRangeSelector
from pulsarx._pycore.dispatch.slice_queue cimport (
    Slice, SliceItem, slice_item_set, slices_at,
)
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.raise_status cimport status_reason
from pulsarx._pycore.ground.rate_counter cimport RateCounter
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.entry_target cimport EntryTarget
from pulsarx._pycore.message.entry_view cimport (
    EntryView, entry_view_is_packed, entry_view_packed, entry_view_share, entry_view_unpack,
)
from pulsarx._pycore.message.message cimport Message, message_extent
from pulsarx._pycore.message.message_filter cimport MessageFilter
from pulsarx._pycore.message.message_at cimport message_place

cdef enum:
    OWNERS_MAX = 65000                   # as HashRangeSelector knows them


cdef class NonPersistentDispatcher(Dispatcher):
    """Hands out what is published to consumers that have room. Any thread may call; the mutex
    orders them."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max, str type_name not None,
                 HashRangeSelector selector=None, bint spread=False,
                 int partition_index=-1) -> None:
        """type_name: as Pulsar's statistics call the type of the subscription. selector: empty, for
        Key_Shared. spread: messages without a key go to any consumer, entry by entry."""
        super().__init__(core, tail, topic_name, decompressed_size_max)
        self.receivers = []
        self.owners = []
        self.exclusive = type_name == "Exclusive"
        self.shared = type_name in ("Shared", "Key_Shared")
        self.has_several = self.shared
        self.keeps_nothing = True
        self.selector = selector
        self.spread = spread
        self.partition_index = partition_index
        self.drops = RateCounter()
        mutex_lock(&core.mutex)
        core.dispatcher = self           # whole by now: a publisher may hand something out
        mutex_unlock(&core.mutex)

    # Who receives ---------------------------------------------------------------------------------

    def join(self, EntrySink receiver not None, object key_shared=None) -> None:
        """ConsumerBusy: it is Exclusive and has a consumer. ConsumerAssignError: sticky ranges that
        overlap with another's. Call `settled` afterwards."""
        mutex_lock(&self.core.mutex)
        try:
            if self.exclusive and self.receivers:
                raise errors.ConsumerBusy(
                    detail=f"the subscription of {self.topic_name} is Exclusive and has a "
                    f"consumer, {(<EntrySink>self.receivers[0]).consumer_name}; close that one "
                    "first")
            self.take_index(receiver, key_shared)
            self.receivers.append(receiver)
            if not self.shared and not self.activate() and not self.exclusive:
                self.tell(receiver, False)
        finally:
            mutex_unlock(&self.core.mutex)

    cdef int take_index(self, EntrySink receiver, object key_shared) except -1:
        cdef uint32_t index = 0
        if self.selector is None:
            receiver.index = 0
            return 0
        while index < <uint32_t>len(self.owners) and self.owners[index] is not None:
            index += 1
        if index == OWNERS_MAX:
            raise errors.ConsumerAssignError(
                detail=f"the subscription of {self.topic_name} has {index} consumers; that is the "
                "most")
        self.selector.add(<uint16_t>index, receiver.consumer_name, key_shared)
        if index == <uint32_t>len(self.owners):
            self.owners.append(receiver)
        else:
            self.owners[index] = receiver
        receiver.index = <uint16_t>index
        return 0

    def leave(self, EntrySink receiver not None) -> None:
        """Detach a receiver; the messages in its queue are lost. Call `settled` afterwards."""
        mutex_lock(&self.core.mutex)
        try:
            if receiver not in self.receivers:
                return
            self.receivers.remove(receiver)
            if self.selector is not None:
                self.selector.remove(receiver.index)
                self.owners[receiver.index] = None
            receiver.index = PENDING_NOBODY
            receiver.clear()
            receiver.queued = 0
            if not self.shared:
                self.activate()
        finally:
            mutex_unlock(&self.core.mutex)

    def release(self) -> None:
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        for each in self.receivers:
            each.clear()
            each.queued = 0
        mutex_unlock(&self.core.mutex)

    cdef int activate(self) except -1:
        """Let the right one receive; 1 when that is another than before, which keeps what it
        has."""
        cdef EntrySink chosen = active_choice(self.receivers, self.partition_index)
        cdef EntrySink before = self.active
        if chosen is before:
            return 0
        self.active = chosen
        if before is not None and before in self.receivers:
            self.tell(before, False)
        if chosen is not None:
            self.tell(chosen, True)
        return 1

    def tell(self, EntrySink receiver, bint active) -> None:
        if not self.exclusive:
            if self.told is None:
                self.told = []
            self.told.append((receiver, active))

    def forget_before(self, uint64_t ledger_id) -> None:
        """There are no ledgers."""

    def statistics(self) -> dict:
        """The figures of the consumers, and what was dropped because none had room."""
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        try:
            found = {
                "consumers": [
                    each.statistics(0) | {
                        "available_permits": room_of(each), "receiver_queue_messages": held_by(each)
                    } for each in self.receivers],
                "unacked_messages": 0,
                "msg_drop_count": self.drops.total,
                "msg_drop_rate": self.drops.per_second(self.core.now_ms()),
            }
            if not self.shared:
                found["active_consumer_name"] = (
                    self.active.consumer_name if self.active is not None else "")
        finally:
            mutex_unlock(&self.core.mutex)
        return found

    def given(self) -> list:
        """See Dispatcher."""
        cdef EntrySink each
        return [(each.consumer_name, each.given.messages, each.given.size)
                for each in list(self.receivers) if each is not None]

    def unacknowledged_messages(self) -> int:
        """See Dispatcher."""
        return 0

    def check(self) -> list:
        """Recount and return where the counts are wrong; for tests."""
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        try:
            return [f"{each.consumer_name} has {each.slice_messages()} messages and counts "
                    f"{held_by(each)}" for each in self.receivers
                    if each.slice_messages() != held_by(each)]
        finally:
            mutex_unlock(&self.core.mutex)

    # What is published ----------------------------------------------------------------------------

    cdef uint32_t hand_out(self, bytes entry, bytes plain, const EntryFrame* frame,
                           bint* taken) except? 4294967295:
        cdef EntrySink receiver
        cdef EntryView view
        cdef Slice slice
        cdef uint32_t wanted = frame.message_count
        cdef uint32_t dropped
        if self.core.filter is not None and self.receivers:
            wanted = self.select_published(entry, plain, frame)
            if wanted == 0:
                return 0
        dropped = wanted
        if self.splits(frame) and (plain is not None or not frame.flags & ENTRY_COMPRESSED):
            dropped = self.split(entry, plain, frame, taken)
        else:
            if not self.shared:
                receiver = self.active
            elif self.selector is None:
                receiver = self.next_receiver()
            else:
                receiver = self.owner_of(entry, frame)
            if receiver is not None and room_of(receiver) > 0:
                view = entry_view_packed(entry, receiver.context, frame,
                                         <const uint8_t*>PyBytes_AS_STRING(entry), plain)
                view = receiver.view_to_queue(view)
                if wanted < frame.message_count:
                    self.push_wanted(receiver, view, wanted)
                    taken[0] = True
                    return 0
                memset(&slice, 0, sizeof(slice))
                slice.end = frame.message_count
                slice.view = <void*>view
                receiver.reserve_slice()
                receiver.push(&slice)
                Py_INCREF(view)          # the queue's
                count_pushed(receiver, frame.message_count)
                taken[0] = True
                return 0
        if dropped:
            self.drops.add(dropped, frame.publish_time_ms)
        return dropped

    cdef uint32_t select_published(self, bytes entry, bytes plain,
                                   const EntryFrame* frame) except? 4294967295:
        cdef MessageFilter filter = self.core.filter
        cdef EntrySink receiver = self.receivers[0]
        cdef EntryView view = entry_view_packed(
            entry, receiver.context, frame, <const uint8_t*>PyBytes_AS_STRING(entry), plain)
        cdef uint32_t wanted = frame.message_count
        if view.metadata_flags & METADATA_BATCH and entry_view_is_packed(view):
            filter.message_count = 0     # whoever published it did not decompress it for this one
        else:
            filter.look(view)
            wanted -= filter.rejected_count
            self.core.counts.rejected += filter.rejected_count
        self.core.counts.accepted += wanted
        return wanted

    cdef int push_wanted(self, EntrySink receiver, EntryView view, uint32_t wanted) except -1:
        cdef MessageFilter filter = self.core.filter
        cdef BatchMessage read
        cdef SliceItem* items
        cdef Slice slice
        cdef uint32_t at = 0
        cdef uint32_t begin
        cdef uint32_t index
        cdef uint32_t found = 0
        receiver.reserve_slice()
        entry_view_unpack(view, self.decompressed_size_max)
        items = <SliceItem*>PyMem_Malloc(wanted * sizeof(SliceItem))
        if items == NULL:
            raise MemoryError(f"queue {wanted} messages for a consumer: out of memory")
        for index in range(view.message_count):
            begin = at
            if batch_decode_next(view.c_payload, view.payload_size, &at, &read) != STATUS_OK:
                break                    # what is behind cannot be read either
            if filter.c_matches[index]:
                slice_item_set(&items[found], begin, index)
                found += 1
        memset(&slice, 0, sizeof(slice))
        slice.view = <void*>view
        slice.items = items
        slice.item_count = found
        receiver.push(&slice)
        Py_INCREF(view)                  # the queue's
        count_pushed(receiver, found)
        return 0

    cdef EntrySink next_receiver(self):
        """Return the receiver whose turn it is: the next of the highest level (the lowest number)
        that has room."""
        cdef uint32_t count = <uint32_t>len(self.receivers)
        cdef uint32_t at = self.turn
        cdef EntrySink each
        cdef EntrySink best = None
        cdef uint32_t _
        for _ in range(count):
            at = at + 1 if at + 1 < count else 0
            each = self.receivers[at]
            if room_of(each) > 0 and (best is None or each.priority_level < best.priority_level):
                best = each
                self.turn = at
                if best.priority_level == 0:
                    break
        return best

    cdef EntrySink owner_of(self, bytes entry, const EntryFrame* frame):
        """The consumer of the key of an entry; None: nobody has it."""
        cdef EntryParts parts
        cdef uint32_t key_hash = frame.sticky_hash
        cdef uint16_t owner
        if self.spread and key_hash == STICKY_NON_KEY and entry_decode(
                <const uint8_t*>PyBytes_AS_STRING(entry), frame.entry_size, False,
                &parts) == STATUS_OK and not parts.metadata.flags & (
                METADATA_ORDERING_KEY | METADATA_PARTITION_KEY):
            key_hash = sticky_key_spread(&parts.metadata)
        owner = self.selector.select(key_hash)
        return self.owners[owner] if owner < <uint32_t>len(self.owners) else None

    # Batches of several keys ----------------------------------------------------------------------

    cdef bint splits(self, const EntryFrame* frame) noexcept:
        return self.selector is not None and frame.flags & ENTRY_MIXED_KEYS != 0

    cdef uint32_t split(self, bytes entry, bytes plain, const EntryFrame* frame,
                        bint* taken) except? 4294967295:
        """Hand each message to the owner of its key; how many were dropped."""
        cdef uint32_t count = frame.message_count
        cdef uint32_t owner_count = <uint32_t>len(self.owners)
        cdef uint32_t* offsets = <uint32_t*>PyMem_Malloc(count * sizeof(uint32_t))
        cdef uint16_t* owners = <uint16_t*>PyMem_Malloc(count * sizeof(uint16_t))
        cdef uint32_t* counts = <uint32_t*>PyMem_Calloc(max(owner_count, <uint32_t>1),
                                                        sizeof(uint32_t))
        cdef EntryView view = None
        cdef EntryView shared
        cdef EntrySink each
        cdef uint32_t dropped
        cdef uint32_t index
        try:
            if offsets == NULL or owners == NULL or counts == NULL:
                raise MemoryError(f"split a batch of {count} messages by key: out of memory")
            for each in self.receivers:
                view = entry_view_packed(entry, each.context, frame,
                                         <const uint8_t*>PyBytes_AS_STRING(entry), plain)
                break
            if view is None:
                return count
            dropped = self.find_owners(view, offsets, owners, counts)
            for index in range(owner_count):
                if counts[index] == 0:
                    continue
                each = self.owners[index]
                try:
                    shared = each.view_to_queue(entry_view_share(view, each.context))
                    self.push_picked(each, shared, offsets, owners, counts[index])
                except MemoryError:          # there is no room for those of this one
                    dropped += counts[index]
                    continue
                taken[0] = True
            return dropped
        finally:
            PyMem_Free(offsets)
            PyMem_Free(owners)
            PyMem_Free(counts)

    cdef uint32_t find_owners(self, EntryView view, uint32_t* offsets, uint16_t* owners,
                              uint32_t* counts) noexcept:
        """Choose a consumer for each message, PENDING_NOBODY for one that is dropped; how many
        are."""
        cdef BatchMessage read
        cdef EntryParts parts
        cdef EntrySink receiver
        cdef MessageFilter filter = self.core.filter
        cdef uint32_t spread_hash = STICKY_NON_KEY
        cdef uint32_t key_hash
        cdef uint32_t dropped = 0
        cdef uint32_t at = 0
        cdef uint32_t index
        cdef uint16_t owner
        cdef int status = STATUS_OK
        if self.spread and entry_decode(view.c_entry, view.entry_size, False,
                                        &parts) == STATUS_OK:
            spread_hash = sticky_key_spread(&parts.metadata)
        for index in range(view.message_count):
            owners[index] = PENDING_NOBODY
            offsets[index] = at
            if status == STATUS_OK:
                status = batch_decode_next(view.c_payload, view.payload_size, &at, &read)
            if status == STATUS_OK:
                status = sticky_key_of_encoded(read.encoded_metadata, read.encoded_metadata_size,
                                               &key_hash)
            if status != STATUS_OK:      # what is behind cannot be read either
                dropped += 1
                continue
            if filter is not None and filter.knows(view) and filter.c_matches[index] == 0:
                continue
            if key_hash == STICKY_NON_KEY and not read.flags & (
                    METADATA_ORDERING_KEY | METADATA_PARTITION_KEY):
                key_hash = spread_hash
            owner = self.selector.select(key_hash)
            if owner < <uint32_t>len(self.owners):
                receiver = self.owners[owner]
                if receiver is not None and room_of(receiver) > (
                        0 if receiver.takes_entries else counts[owner]):
                    owners[index] = owner
                    counts[owner] += 1
                    continue
            dropped += 1
        return dropped

    cdef int push_picked(self, EntrySink receiver, EntryView view, const uint32_t* offsets,
                         const uint16_t* owners, uint32_t count) except -1:
        """Queue the messages of a batch that were chosen for the receiver."""
        cdef SliceItem* items
        cdef Slice slice
        cdef uint32_t index
        cdef uint32_t found = 0
        receiver.reserve_slice()
        items = <SliceItem*>PyMem_Malloc(count * sizeof(SliceItem))
        if items == NULL:
            raise MemoryError(f"queue {count} messages for a consumer: out of memory")
        for index in range(view.message_count):
            if owners[index] == receiver.index:
                slice_item_set(&items[found], offsets[index], index)
                found += 1
        memset(&slice, 0, sizeof(slice))
        slice.view = <void*>view
        slice.items = items
        slice.item_count = count
        receiver.push(&slice)
        Py_INCREF(view)                  # the queue's
        count_pushed(receiver, count)
        return 0

    # What consumers take --------------------------------------------------------------------------

    cdef bint supply(self, EntrySink receiver) except -1:
        cdef EntryView view
        if receiver.queue.count == 0:
            receiver.drop_view()
            ask_for_one(receiver)
            return False
        view = <EntryView>slices_at(&receiver.queue, 0).view
        try:
            if not receiver.passes_on:
                # Still queued: an interrupted codec loses nothing.
                entry_view_unpack(view, self.decompressed_size_max)
        except errors.CorruptDataError as error:
            self.next_slice(receiver)
            receiver.drop_view()
            raise self.loss(errors.CorruptDataError, (
                f"read an entry of {view.message_count} messages of {self.topic_name}: "
                f"{errors.detail_of(error)}; {self.count_text(view.message_count)}"))
        self.next_slice(receiver)
        return True

    cdef int next_slice(self, EntrySink receiver) except -1:
        """Make the first queued slice the current one, of which the receiver's own fields say how
        much is left. Its messages are asked about where they are picked ones alone."""
        cdef Slice slice
        receiver.slice_at(1, &slice)
        receiver.queued -= slice.end - slice.first
        receiver.next_slice()
        receiver.place.filtered = receiver.place.items != NULL
        return 0

    cdef bint is_ready(self, EntrySink receiver) except -1:
        cdef uint32_t held = held_by(receiver)
        if held == 0:
            ask_for_one(receiver)
        return held != 0

    cdef int claim(self, EntrySink receiver, EntryView view, uint32_t index) except -2:
        return 0

    cdef int unreceive(self, EntrySink receiver, list messages) except -1:
        cdef Message message
        cdef Slice slice
        cdef uint32_t walked
        receiver.reserve_slices(<uint32_t>len(messages) + 1)
        self.requeue_current(receiver)
        for message in reversed(messages):
            memset(&slice, 0, sizeof(slice))
            if message.entry.metadata_flags & METADATA_BATCH:
                walked = 0
                slice.first = <uint32_t>message.batch_index
                if message_place(message.entry, slice.first, &slice.at, &walked) != STATUS_OK:
                    continue             # it was read from there a moment ago
            slice.end = slice.first + <uint32_t>message_extent(message)
            slice.view = <void*>message.entry
            receiver.push_first(&slice)
            Py_INCREF(message.entry)     # the queue's
            receiver.queued += slice.end - slice.first
        self.wakes = True
        return 0

    cdef int requeue_current(self, EntrySink receiver) except -1:
        """Put what is left of the current slice back in front of the queue, which has room."""
        cdef Slice slice
        if receiver.view is None:
            return 0
        memset(&slice, 0, sizeof(slice))
        slice.view = <void*>receiver.view
        slice.tag = receiver.place.tag
        if receiver.place.items == NULL:
            slice.at = receiver.place.at
            slice.first = receiver.place.index
            slice.end = receiver.place.end
            receiver.push_first(&slice)
        else:
            slice.item_count = receiver.place.end - receiver.place.item_at
            slice.items = <SliceItem*>PyMem_Malloc(slice.item_count * sizeof(SliceItem))
            if slice.items == NULL:
                raise MemoryError("take back messages: out of memory")
            for at in range(slice.item_count):
                slice.items[at] = receiver.place.items[receiver.place.item_at + at]
            receiver.push_first(&slice)
        Py_INCREF(receiver.view)         # the queue's
        receiver.queued = held_by(receiver)
        receiver.drop_view()
        return 0

    # Damage ---------------------------------------------------------------------------------------

    cdef int lose_rest(self, EntryView view, uint32_t index, int status) except -1:
        raise self.loss(errors.CorruptDataError, (
            f"read message {index} of a batch of {view.message_count} of {self.topic_name}: "
            f"{status_reason(status)}; {self.count_text(view.message_count - index)}"))

    cdef int lose_one(self, EntryView view, uint32_t index, int status) except -1:
        raise self.loss(errors.CorruptDataError, (
            f"read message {index} of a batch of {view.message_count} of {self.topic_name}: "
            f"{status_reason(status)}; {self.count_text(1)}"))

    # What there is no such thing as here ----------------------------------------------------------

    cdef int acknowledged(self, uint64_t ledger_id, uint64_t first, uint64_t count) except -1:
        return 0

    cdef int acknowledged_through(self, uint64_t ledger_id, uint64_t end) except -1:
        return 0

    cdef int nack(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                  int64_t delay_ms) except -1:
        return 0

    cdef int revive(self, EntrySink receiver, uint64_t ledger_id, uint64_t message,
                    int64_t delay_ms) except -1:
        return 0

    cdef int due(self, uint64_t ledger_id, uint64_t message, int64_t backoff_ms) except -1:
        return 0

    cdef int redeliver(self, EntrySink receiver) except -1:
        return 0


cdef class SubscriptionTarget(EntryTarget):
    """Hands entries to the dispatcher that a subscription has. Any thread may call."""

    def __init__(self, SubscriptionCore core not None) -> None:
        self.core = core

    cdef uint32_t offer(self, bytes entry, bytes plain, const EntryFrame* frame,
                        bint* taken) except? 4294967295:
        cdef NonPersistentDispatcher dispatcher
        mutex_lock(&self.core.mutex)
        try:
            dispatcher = self.core.dispatcher
            if dispatcher is None:       # the subscription has just gone
                return 0
            return dispatcher.hand_out(entry, plain, frame, taken)
        except MemoryError:              # there is no room for it
            return frame.message_count
        finally:
            mutex_unlock(&self.core.mutex)

    cdef bint needs_plain(self, const EntryFrame* frame) noexcept:
        cdef NonPersistentDispatcher dispatcher = self.core.dispatcher
        return dispatcher is not None and (
            dispatcher.splits(frame)
            or (dispatcher.core.filter is not None and frame.flags & ENTRY_BATCH != 0))
