# cython: language_level=3
"""Body of relayed_dispatcher.pxd."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport Py_INCREF
from libc.stdint cimport UINT32_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from pulsarx import errors
from pulsarx._core.batch_decode cimport BatchMessage, batch_decode_next
from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.message_metadata cimport EntryParts
from pulsarx._core.status cimport STATUS_OK
from pulsarx._core.wait_event cimport wait_event_wake
from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.slice_queue cimport Slice, SliceItem, slice_item_set
from pulsarx._pycore.dispatch.non_persistent_dispatcher cimport (
    NonPersistentDispatcher, count_pushed, room_of,
)
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.ground.mutex cimport mutex_lock, mutex_unlock
from pulsarx._pycore.ground.owner_link cimport OwnerLink
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.entry_bytes cimport entry_bytes_check
from pulsarx._pycore.message.entry_view cimport EntryView, entry_view_packed, entry_view_unpack


cdef class RelayedDispatcher(NonPersistentDispatcher):
    """See the pxd."""

    def __init__(self, SubscriptionCore core not None, LedgerTail tail not None,
                 str topic_name not None, uint32_t decompressed_size_max,
                 str type_name not None, encode) -> None:
        """encode: flow_encode. type_name: as of the base."""
        self.encode = encode
        # Of Failover the owner says who is active.
        super().__init__(core, tail, topic_name, decompressed_size_max,
                         "Exclusive" if type_name == "Failover" else type_name)

    # The owner ------------------------------------------------------------------------------------

    def begin(self, OwnerLink link not None, uint64_t consumer_id) -> None:
        """An owner has attached the consumer, by this number, and has no permits yet."""
        cdef EntrySink each
        mutex_lock(&self.core.mutex)
        try:
            self.link = link
            self.consumer_id = consumer_id
            self.granted = 0
            for each in self.receivers:
                self.grant(each)
        finally:
            mutex_unlock(&self.core.mutex)

    def pause(self) -> None:
        """There is no owner: what it had sent and did not arrive is lost."""
        mutex_lock(&self.core.mutex)
        self.link = None
        mutex_unlock(&self.core.mutex)

    cdef int grant(self, EntrySink receiver) except -1:
        # An entry that the receiver has begun is with its consumer: the room of its messages is
        # given when it begins, for the next look comes with the next receive.
        cdef int64_t room = (<int64_t>receiver.queue_size - <int64_t>receiver.queued
                             if receiver.queue_size else room_of(receiver))
        cdef int64_t owed = room - self.granted
        cdef int64_t least = max(<int64_t>1, <int64_t>receiver.queue_size // 2)
        if self.link is None or owed < least:
            return 0
        # Native up to the socket, so that no signal comes between the two steps.
        self.link.write(self.encode(self.consumer_id, min(owed, <int64_t>UINT32_MAX)))
        self.granted += min(owed, <int64_t>UINT32_MAX)
        return 0

    def became(self, bint active) -> None:
        """It is the active consumer of a Failover subscription now, or is not any more. Mutex not
        held."""
        mutex_lock(&self.core.mutex)
        try:
            for each in self.receivers:
                if self.told is None:
                    self.told = []
                self.told.append((each, active))
        finally:
            mutex_unlock(&self.core.mutex)
        self.settled()

    # What comes -----------------------------------------------------------------------------------

    def arrive(self, bytes entry not None, object ack_set) -> None:
        """An entry came. ack_set: words of 64 bits, of which the messages are this consumer's whose
        bit is set; None: all are. Mutex not held. CorruptDataError: it is no entry."""
        cdef EntryFrame frame
        cdef EntryParts parts
        cdef EntryView view
        cdef EntrySink receiver
        cdef SliceItem* items = NULL
        cdef Slice slice
        cdef uint64_t count
        if PyBytes_GET_SIZE(entry) > <Py_ssize_t>UINT32_MAX:
            raise errors.CorruptDataError(detail=f"an entry of {len(entry)} bytes came")
        entry_bytes_check(<const uint8_t*>PyBytes_AS_STRING(entry),
                          <uint32_t>PyBytes_GET_SIZE(entry), &frame, &parts)
        mutex_lock(&self.core.mutex)
        try:
            # Those that are others' were counted too.
            self.granted -= frame.message_count
            if not self.receivers:
                return                   # it has just left
            receiver = self.receivers[0]
        finally:
            mutex_unlock(&self.core.mutex)
        view = entry_view_packed(entry, receiver.context, &frame,
                                 <const uint8_t*>PyBytes_AS_STRING(entry), None)
        memset(&slice, 0, sizeof(slice))
        slice.view = <void*>view
        slice.end = frame.message_count
        count = frame.message_count
        if ack_set:
            entry_view_unpack(view, self.decompressed_size_max)
            items = <SliceItem*>PyMem_Malloc(frame.message_count * sizeof(SliceItem))
            if items == NULL:
                raise MemoryError(f"take {frame.message_count} messages: out of memory")
            count = self.pick(view, ack_set, items)
            view = receiver.view_to_queue(view)
            slice.view = <void*>view
            slice.items = items
            slice.item_count = <uint32_t>count
            slice.end = 0
        mutex_lock(&self.core.mutex)
        try:
            if count and receiver in self.receivers:
                receiver.reserve_slice()
                receiver.push(&slice)
                Py_INCREF(view)          # the queue's
                items = NULL
                count_pushed(receiver, <uint32_t>count)
            self.grant(receiver)         # for what is others'
        finally:
            mutex_unlock(&self.core.mutex)
            PyMem_Free(items)
        wait_event_wake(self.tail.c_event)
        if self.tail.watchers:
            self.tail.notify()

    cdef uint64_t pick(self, EntryView view, object ack_set, SliceItem* items) except? 0:
        cdef BatchMessage each
        cdef list words = list(ack_set)
        cdef uint32_t at = 0
        cdef uint32_t index
        cdef uint32_t begin
        cdef uint64_t found = 0
        cdef uint64_t word
        for index in range(view.message_count):
            begin = at
            if batch_decode_next(view.c_payload, view.payload_size, &at, &each) != STATUS_OK:
                break                    # what is behind cannot be read either
            word = words[index // 64] & 0xFFFFFFFFFFFFFFFF if index // 64 < len(words) else 0
            if word >> (index % 64) & 1:
                slice_item_set(&items[found], begin, index)
                found += 1
        return found

    # What the consumer takes ----------------------------------------------------------------------

    cdef bint supply(self, EntrySink receiver) except -1:
        try:
            return NonPersistentDispatcher.supply(self, receiver)
        finally:
            self.grant(receiver)

    cdef bint is_ready(self, EntrySink receiver) except -1:
        cdef bint found = NonPersistentDispatcher.is_ready(self, receiver)
        self.grant(receiver)
        return found

    def join(self, EntrySink receiver not None, object key_shared=None) -> None:
        """See NonPersistentDispatcher. Ranges of keys are the owner's business."""
        NonPersistentDispatcher.join(self, receiver)
