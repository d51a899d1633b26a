# cython: language_level=3
"""Cuts the bytes of one connection into frames, and passes frequent commands on to their receivers,
so that no Python runs for those between the socket and the thread that waits."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove

from pulsarx._pycore.ground.owner_link cimport LINK_RECORDED, LINK_RUN, LinkTaker, OwnerLink
from pulsarx._pycore.ground.weak_reference cimport referent
from pulsarx._pycore.wire.command_takers cimport AckTaker, SendTaker
from pulsarx._pycore.wire.hot_commands cimport (
    LINK_SIZE, AckParts, FlowParts, ReceiptParts, SendParts, ack_next, ack_parse, flow_parse,
    number_at, receipt_parse, send_parse, size_at,
)

cdef enum:
    TOTAL_SIZE = 4
    KEPT_SIZE = 512              # bytes that stay allocated while nothing waits


cdef class FrameCutter(LinkTaker):
    """One thread at a time."""

    # producer id: a SendTaker, or what is called with sequence id and entry of a SEND
    cdef readonly dict sends
    cdef readonly dict acks              # consumer id: an AckTaker, for its ACK and FLOW
    cdef readonly dict receipts          # producer id: `confirmed` of its ConnectionPublisher
    cdef readonly dict runs              # consumer id: weak reference to a GuestDispatcher
    cdef readonly dict links             # consumer id: called with kind and numbers of a link frame
    cdef public OwnerLink link           # over which it comes; None: over no such one
    cdef object arrived                  # a GuestDispatcher that is to be settled, or None
    cdef AckTaker acked                  # what took the last ACK, and was not told that it did
    cdef list sent                       # who took a SEND likewise
    cdef uint32_t sent_count             # how many came together
    cdef public uint32_t frame_size_max
    cdef uint8_t* data                   # owned
    cdef size_t at                       # of what is not cut yet
    cdef size_t end
    cdef size_t capacity
    cdef object failure                  # of what a caller took that waits; None: of nothing
    cdef bint by_caller                  # that takes just now: it waits for no mutex

    def __init__(self, uint32_t frame_size_max) -> None:
        """frame_size_max: bytes that a frame may have, without its total size."""
        self.frame_size_max = frame_size_max
        self.sends = {}
        self.acks = {}
        self.sent = []
        self.receipts = {}
        self.runs = {}
        self.links = {}

    def __dealloc__(self):
        PyMem_Free(self.data)

    @property
    def size(self) -> int:
        """Bytes that were fed and not cut."""
        return self.end - self.at

    def feed(self, data) -> None:
        """Take what came; its memory may be used again on return."""
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.keep(<const uint8_t*>view.buf, <size_t>view.len)
        finally:
            PyBuffer_Release(&view)

    cdef int keep(self, const uint8_t* data, size_t size) except -1:
        cdef uint8_t* grown
        cdef size_t capacity
        if self.at:
            self.end -= self.at
            memmove(self.data, self.data + self.at, self.end)
            self.at = 0
        if self.end + size > self.capacity:
            capacity = max(self.end + size, 2 * self.end)
            grown = <uint8_t*>PyMem_Realloc(self.data, capacity)
            if grown == NULL:
                raise MemoryError(f"take {size} bytes of a connection: out of memory")
            self.data = grown
            self.capacity = capacity
        if size:
            memcpy(self.data + self.end, data, size)
        self.end += size
        return 0

    cdef bint take(self, const uint8_t* data, size_t size) except -1:
        cdef const uint8_t* frame
        cdef uint32_t total
        cdef size_t at
        self.by_caller = True
        try:
            self.keep(data, size)
            while self.end - self.at >= TOTAL_SIZE:
                at = self.at
                frame = self.data + at + TOTAL_SIZE
                total = size_at(self.data + at)
                if total < 4 or total > self.frame_size_max:
                    self.settle()
                    return False
                if self.end - at - TOTAL_SIZE < total:
                    break
                self.at = at + TOTAL_SIZE + total
                if not self.tell(frame, total):
                    self.at = at
                    self.settle()
                    return False
            if not self.settle():
                return False
            self.shrink()
            return True
        except Exception as error:
            self.failure = error         # the connection ends with it, which this thread does not
            return False
        finally:
            self.by_caller = False

    def next(self) -> bytes | int | None:
        """The next frame that nobody is told of, without its total size; None: there is none by
        now; a number: it would have so many bytes, which is not allowed. Raises what one who was
        told raises."""
        cdef const uint8_t* frame
        cdef uint32_t total
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        while self.end - self.at >= TOTAL_SIZE:
            frame = self.data + self.at + TOTAL_SIZE
            total = size_at(self.data + self.at)
            # Before it has come: nobody is to wait, or take memory, for what is refused anyway.
            if total < 4 or total > self.frame_size_max:
                self.settle_all(False)
                return total
            if self.end - self.at - TOTAL_SIZE < total:
                break
            # First: who is told may feed this.
            self.at += TOTAL_SIZE + total
            try:
                if self.tell(frame, total):
                    continue
            except BaseException:
                self.settle_all(False)
                raise
            found = PyBytes_FromStringAndSize(<const char*>frame, total)
            self.settle_all(False)
            return found
        self.settle_all(True)
        self.shrink()
        return None

    cdef int settle_all(self, bint is_last) except -1:
        """Do what is done once for all that came together. is_last: nothing else is to be done."""
        cdef SendTaker each
        cdef bint is_alone = is_last and self.sent_count == 1
        try:
            self.settle()
            self.settle_acks()
        finally:
            self.sent_count = 0
            while self.sent:             # one that raises is told again, and those behind it
                each = self.sent[len(self.sent) - 1]
                each.sends_taken(is_alone)
                each.has_taken = False
                self.sent.pop()
        return 0

    cdef int settle_acks(self) except -1:
        cdef AckTaker acked = self.acked
        if acked is not None:
            self.acked = None
            acked.acks_taken()
        return 0

    cdef int shrink(self) except -1:
        if self.at == self.end:
            self.at = self.end = 0
            if self.capacity > KEPT_SIZE:
                PyMem_Free(self.data)
                self.data = NULL
                self.capacity = 0
        return 0

    cdef bint settle(self) except -1:
        """Wake the consumer of what has arrived: once for all that came together, which it may want
        together. False: that is for the reading thread."""
        if self.arrived is not None:
            if self.by_caller and self.arrived.is_busy():
                return False
            self.arrived.settled()
            # Behind that: an interrupted caller leaves it to the reading thread.
            self.arrived = None
        return True

    cdef bint tell(self, const uint8_t* frame, uint32_t size) except -1:
        """Whether somebody was told of a frame. Once who is told is called, it may be gone. A
        caller tells nobody whose mutex is taken: in the thread that has it the caller may be in the
        middle of another call, and in any other it would be deaf to signals until that is over."""
        cdef SendParts sent
        cdef ReceiptParts stored
        cdef uint32_t kind
        cdef size_t at
        if size_at(frame) == 0:
            if size != LINK_SIZE:
                return False
            kind = size_at(frame + 4)
            if self.links:
                found = self.links.get(number_at(frame + 8))
                if found is None:
                    return False
                found(kind, number_at(frame + 16), number_at(frame + 24), number_at(frame + 32),
                      number_at(frame + 40))
                return True
            if kind != LINK_RUN and kind != LINK_RECORDED:
                return False
            found = self.runs.get(number_at(frame + 8))
            if found is not None:
                found = referent(found)
            if found is None:
                return False
            if self.by_caller and found.is_busy():
                return False
            if kind == LINK_RECORDED:
                found.recorded(number_at(frame + 16))
                return True
            if found is not self.arrived:
                at = <size_t>(frame - self.data) - TOTAL_SIZE
                try:
                    if not self.settle():
                        return False
                except BaseException:    # of a signal handler, in one who was woken
                    self.at = at         # this frame is still to be told
                    raise
                self.arrived = found
            found.arrive(number_at(frame + 16), number_at(frame + 24), number_at(frame + 32),
                         number_at(frame + 40))
            return True
        if self.sends and send_parse(frame, size, &sent):
            found = self.sends.get(sent.producer_id)
            if found is None:
                return False
            if isinstance(found, SendTaker):
                if not (<SendTaker>found).has_taken:
                    self.sent.append(found)
                    (<SendTaker>found).has_taken = True
                self.sent_count += 1
                (<SendTaker>found).take_send(sent.sequence_id, sent.entry, sent.entry_size)
                return True
            if self.link is not None:
                self.link.defer(self.at == self.end)
            found(sent.sequence_id,
                  PyBytes_FromStringAndSize(<const char*>sent.entry, <Py_ssize_t>sent.entry_size))
            return True
        if self.acks and self.tell_consumer(frame, size):
            return True
        if self.receipts and receipt_parse(frame, size, &stored):
            found = self.receipts.get(stored.producer_id)
            if found is None:
                return False
            if self.by_caller and found.__self__.is_busy():
                return False
            found(stored.sequence_id, stored.ledger_id, stored.entry_id)
            return True
        return False

    cdef bint tell_consumer(self, const uint8_t* frame, uint32_t size) except -1:
        cdef AckParts acknowledged
        cdef FlowParts flown
        cdef uint64_t ledger_id = 0
        cdef uint64_t entry_id = 0
        if ack_parse(frame, size, &acknowledged):
            found = self.acks.get(acknowledged.consumer_id)
            if found is None:
                return False
            if found is not self.acked:
                self.settle_acks()
                self.acked = <AckTaker?>found
            while ack_next(&acknowledged, &ledger_id, &entry_id):
                (<AckTaker>found).take_ack(ledger_id, entry_id)
            return True
        if flow_parse(frame, size, &flown):
            found = self.acks.get(flown.consumer_id)
            if found is not None:
                (<AckTaker?>found).take_flow(flown.permits)
                return True
        return False
