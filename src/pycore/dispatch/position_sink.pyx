# cython: language_level=3
"""Body of position_sink.pxd."""

from collections import deque

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx import errors
from pulsarx._pycore.dispatch.entry_sink cimport ConsumerEvents, Dispatcher, EntrySink
from pulsarx._pycore.ground.owner_link cimport (
    LINK_ACTIVE, LINK_CHUNK, LINK_FRAME_SIZE, LINK_RECORDED, LINK_RESET, LINK_RUN, LINK_TTL,
    link_frame_put,
)
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView

cdef enum:
    FIRST_FRAMES = 16


cdef class SinkEvents(ConsumerEvents):
    """See the pxd."""

    def __init__(self) -> None:
        self.waiting = deque()

    cdef int tell(self, bint active, int partition) except -1:
        self.waiting.append((active, partition))
        if self.wake is not None:
            self.wake()
        return 0


cdef class PositionSink(EntrySink):
    """Hands out positions for a connection. With the subscription's mutex held."""

    def __init__(self, Dispatcher dispatcher not None, EntryContext context not None,
                 str consumer_name not None, object settings):
        """settings: a ReceiverSettings of the broker."""
        super().__init__(dispatcher, context, consumer_name, settings)
        self.by_flow = True
        self.passes_on = True
        self.permits = 0

    def __dealloc__(self):
        PyMem_Free(self.frames)

    cdef bytes take_positions(self, uint32_t frames_max):
        cdef size_t size_max = <size_t>frames_max * LINK_FRAME_SIZE
        cdef bytes taken
        self.put_state()
        # What was on its way when the other end asked for a rewind comes back before it confirms
        # that: until then a later message of a key would overtake it.
        if self.dispatcher.shares and self.resets_told != self.resets_done:
            size_max = 0
        while self.size < size_max and (self.dispatcher.shares or self.permits > 0):
            if self.view is None or self.place.generation != self.dispatcher.generation:
                try:
                    if not self.fill():
                        break
                except errors.CorruptDataError:
                    continue             # the subscription has said in the log what is lost
            self.put_slice()
        # Those that were put before something raised are taken by the next call.
        taken = PyBytes_FromStringAndSize(<const char*>self.frames, <Py_ssize_t>self.size)
        self.size = 0
        return taken

    cdef int put_state(self) except -1:
        cdef ConsumerEvents events = self.events
        cdef uint64_t ttl_ms = <uint64_t>self.dispatcher.core.ttl_ms
        while events is not None and events.waiting:
            self.put(LINK_ACTIVE, 1 if events.waiting[0][0] else 0, 0, 0, 0)
            events.waiting.popleft()
        if self.told_ttl_ms != ttl_ms:
            self.put(LINK_TTL, ttl_ms, 0, 0, 0)
            self.told_ttl_ms = ttl_ms
        if self.told_generation != self.dispatcher.generation or (
                self.told_rewinds != self.rewinds):
            self.put_recorded()          # first: what is sent from now on may be among those again
            self.put(LINK_RESET, self.flown, <uint64_t>self.permits, self.rewinds,
                     self.told_generation != self.dispatcher.generation)
            self.told_generation = self.dispatcher.generation
            self.told_rewinds = self.rewinds
            self.resets_told += 1
        return 0

    cdef int put_recorded(self) except -1:
        if self.told_recorded != self.recorded:
            self.put(LINK_RECORDED, self.recorded, 0, 0, 0)
            self.told_recorded = self.recorded
        return 0

    cdef bint has_let_go(self) noexcept:
        return self.told_generation == self.dispatcher.generation and (
            self.resets_told == self.resets_done)

    cdef int take_rewind(self, uint64_t ledger_id, uint64_t message, uint64_t unseen_ledger,
                         uint64_t unseen) except -1:
        cdef bint knows = self.told_generation == self.dispatcher.generation
        self.rewinds += 1
        try:
            self.dispatcher.rewind(self, ledger_id, message, unseen_ledger, unseen)
        finally:
            if knows:
                self.told_generation = self.dispatcher.generation
        return 0

    cdef int put_slice(self) except -1:
        """The messages that are left of the current slice, which is used up."""
        cdef EntryView view = self.view
        cdef size_t size = self.size
        cdef int64_t permits = self.permits
        cdef uint32_t number = self.place.item_at if self.place.items != NULL else self.place.index
        cdef uint32_t begin = number
        cdef uint32_t claimed = number   # one behind the last one that was
        cdef uint32_t end = self.place.end
        cdef uint64_t first = 0
        cdef uint64_t count = 0
        cdef uint32_t index
        cdef int redeliveries = 0
        cdef int run_redeliveries = 0
        try:
            if not self.place.filtered:
                self.put_run(view, number, end - number, 0)
                number = end             # none is claimed
            for number in range(number, end):
                index = self.place.items[number].index if self.place.items != NULL else number
                redeliveries = self.dispatcher.claim(self, view, index)
                claimed = number + 1
                if redeliveries < 0:
                    continue
                if count and index == first + count and redeliveries == run_redeliveries:
                    count += 1
                    continue
                if count:
                    self.put_run(view, first, count, run_redeliveries)
                first = index
                count = 1
                run_redeliveries = redeliveries
            if count:
                self.put_run(view, first, count, run_redeliveries)
        except BaseException:
            self.size = size             # they come again: the other end has not heard of them
            if self.dispatcher.shares:
                for number in range(begin, claimed):
                    index = self.place.items[number].index if self.place.items != NULL else number
                    self.dispatcher.take_back(self, view.ledger_id, view.first_message + index, 1)
            else:
                self.permits = permits
            raise
        self.drop_view()
        return 0

    cdef int put_run(self, EntryView view, uint64_t index, uint64_t count,
                     uint64_t redelivery_count) except -1:
        cdef uint32_t at
        if not self.dispatcher.shares:   # the others counted when they pushed it
            self.permits -= <int64_t>count
        if view.chunked is not None:
            for at in range(view.chunked.count - 1):
                self.put(LINK_CHUNK, view.chunked.chunks[at].ledger_id,
                         view.chunked.chunks[at].message, 0, 0)
        return self.put(LINK_RUN, view.ledger_id, view.first_message + index, count,
                        redelivery_count)

    cdef int put(self, int kind, uint64_t first, uint64_t second, uint64_t third,
                 uint64_t fourth) except -1:
        cdef size_t capacity
        cdef uint8_t* grown
        if self.size + LINK_FRAME_SIZE > self.capacity:
            capacity = 2 * self.capacity if self.capacity else FIRST_FRAMES * LINK_FRAME_SIZE
            grown = <uint8_t*>PyMem_Realloc(self.frames, capacity)
            if grown == NULL:
                raise MemoryError("tell a consumer where its messages are: out of memory")
            self.frames = grown
            self.capacity = capacity
        link_frame_put(self.frames + self.size, kind, self.consumer_id, first, second, third,
                       fourth)
        self.size += LINK_FRAME_SIZE
        return 0
