# cython: language_level=3
"""Body of connection_sink.pxd."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.byte_writer cimport (
    ByteWriter, byte_writer_start, byte_writer_u32_be, byte_writer_varint,
)
from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._pycore.dispatch.crowd_member cimport CrowdMember
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.ledger.ledger_file cimport LedgerFile
from pulsarx._pycore.message.chunked_message cimport Chunk
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView
from pulsarx._pycore.wire.command_output cimport CommandOutput
from pulsarx._pycore.wire.hot_commands cimport COMMAND_SIZE_MAX

cdef enum BrokerEntryMetadata:
    BROKER_METADATA_MAGIC_LOW = 0x02     # behind 0x0e
    TAG_BROKER_TIMESTAMP = 1 << 3
    TAG_INDEX = 2 << 3
    BROKER_METADATA_SIZE_MAX = 28

cdef enum:
    CLAIMED_LEAST = 4


cdef class ConnectionSink(EntrySink):
    """Hands out whole entries for a connection. With the subscription's mutex held."""

    def __init__(self, Dispatcher dispatcher not None, EntryContext context not None,
                 str consumer_name not None, object settings):
        """settings: a ReceiverSettings of the broker."""
        super().__init__(dispatcher, context, consumer_name, settings)
        self.member = CrowdMember.__new__(CrowdMember)   # in no crowd yet
        self.by_flow = True
        self.takes_entries = True
        self.passes_on = True
        self.permits = 0

    def __dealloc__(self) -> None:
        PyMem_Free(self.claimed)

    cdef bint is_pushed(self) noexcept:
        """Whether what it has was counted when others pushed it."""
        return self.dispatcher.shares or self.dispatcher.keeps_nothing

    cdef EntryView claim_next(self, CommandOutput output):
        cdef EntryView view
        cdef bint is_pushed = self.is_pushed()
        while is_pushed or self.permits > 0:
            if self.view is None or self.place.generation != self.dispatcher.generation:
                if not self.fill():
                    return None
            view = self.view
            if output is not None:
                output.room(COMMAND_SIZE_MAX + view.entry_size)
            self.claim_slice(view)
            if self.claimed_count:
                return view
        return None

    cdef bint is_whole(self, EntryView view) noexcept:
        cdef uint32_t at
        if view.chunked is not None or self.exposes or self.claimed_count != view.message_count:
            return False
        for at in range(1, self.claimed_count):
            if self.claimed[at].redelivery_count != self.claimed[0].redelivery_count:
                return False
        return True

    cdef int count_sent(self, EntryView view, Py_ssize_t deliveries) except -1:
        if not self.is_pushed():
            self.permits -= <int64_t>self.claimed_count
        if view.chunked is not None:
            self.permits -= <int64_t>deliveries - 1
        elif self.counts_left_out:
            self.permits -= <int64_t>deliveries * view.message_count - <int64_t>self.claimed_count
        return 0

    cdef list deliveries(self, EntryView view):
        return deliveries_of(view, [(self.claimed[at].index, self.claimed[at].redelivery_count)
                                 for at in range(self.claimed_count)], self.exposes)

    cdef list take_entry(self):
        cdef list found
        cdef EntryView view = self.claim_next(None)
        if view is None:
            return None
        found = self.deliveries(view)
        self.count_sent(view, len(found))
        return found

    cdef int claim_slice(self, EntryView view) except -1:
        """Claim what is left of the current slice; it is used up."""
        cdef uint32_t at = 0
        cdef uint32_t index = 0
        cdef int count = 0
        self.claimed_count = 0
        try:
            while self.view is view:
                if self.claimed_count == self.claimed_capacity:
                    self.grow_claimed()
                if view.metadata_flags & METADATA_BATCH:
                    self.locate_next(&at, &index)
                if self.place.filtered:
                    count = self.dispatcher.claim(self, view, index)
                if view.metadata_flags & METADATA_BATCH:
                    self.step(at, index)
                else:
                    self.drop_view()
                if count >= 0:
                    self.claimed[self.claimed_count].index = index
                    self.claimed[self.claimed_count].redelivery_count = <uint32_t>count
                    self.claimed_count += 1
        except BaseException:
            self.unclaim_slice(view)
            raise
        return 0

    cdef int unclaim_slice(self, EntryView view) except -1:
        """Give back what was claimed, which is not sent."""
        cdef uint32_t at
        for at in range(self.claimed_count):
            self.dispatcher.unclaim(self, view, self.claimed[at].index)
        return 0

    cdef int grow_claimed(self) except -1:
        cdef uint32_t capacity = max(2 * self.claimed_capacity, <uint32_t>CLAIMED_LEAST)
        cdef ClaimedMessage* grown = <ClaimedMessage*>PyMem_Realloc(
            self.claimed, capacity * sizeof(ClaimedMessage))
        if grown == NULL:
            raise MemoryError(f"deliver {capacity} messages of an entry")
        self.claimed = grown
        self.claimed_capacity = capacity
        return 0


cdef bytes broker_metadata(LedgerFile file, uint64_t ledger_id, const uint8_t* entry,
                           uint64_t last_message, uint32_t exposes):
    """Return what stands in front of an entry: 0x0e02, size, BrokerEntryMetadata, whose index is
    that of the entry's last message; nothing, where nothing of it is known."""
    cdef uint8_t fields[BROKER_METADATA_SIZE_MAX]
    cdef uint8_t head[6]
    cdef ByteWriter writer
    cdef int64_t time_ms = file.c_broker_time(entry) if exposes & EXPOSED_BROKER_TIME else 0
    cdef int64_t first = file.c_first_index(ledger_id) if exposes & EXPOSED_INDEX else -1
    cdef uint32_t size
    byte_writer_start(&writer, fields, BROKER_METADATA_SIZE_MAX)
    if time_ms > 0:
        byte_writer_varint(&writer, TAG_BROKER_TIMESTAMP)
        byte_writer_varint(&writer, <uint64_t>time_ms)
    if first >= 0:
        byte_writer_varint(&writer, TAG_INDEX)
        byte_writer_varint(&writer, <uint64_t>first + last_message)
    size = <uint32_t>(writer.at - fields)
    if size == 0:
        return b""
    head[0] = 0x0E
    head[1] = BROKER_METADATA_MAGIC_LOW
    byte_writer_start(&writer, head + 2, 4)
    byte_writer_u32_be(&writer, size)
    return head[:6] + fields[:size]


cdef LedgerFile file_of(list pins, uint64_t ledger_id):
    """The one that holds the entries of a ledger."""
    for pin in pins:
        if (<LedgerFile>pin).first_indexes is None:
            if (<LedgerFile>pin).ledger_id == ledger_id:
                return pin
        elif ledger_id in (<LedgerFile>pin).first_indexes:
            return pin
    return None


cdef bytes chunk_bytes(EntryView view, const Chunk* chunk, uint32_t exposes):
    cdef bytes entry = PyBytes_FromStringAndSize(<const char*>chunk.entry, chunk.entry_size)
    cdef LedgerFile file
    if exposes:
        file = file_of(view.chunked.pins, chunk.ledger_id)
        if file is not None:
            return broker_metadata(file, chunk.ledger_id, chunk.entry, chunk.message,
                                   exposes) + entry
    return entry


cdef list deliveries_of(EntryView view, list claimed, uint32_t exposes):
    cdef bytes entry
    cdef dict by_count = {}
    cdef list found = []
    cdef Chunk* chunk
    cdef uint32_t number
    if view.chunked is not None:
        # All its chunks, one behind the other, each for a permit: clients give one for each.
        for number in range(view.chunked.count):
            chunk = &view.chunked.chunks[number]
            found.append((chunk.ledger_id, chunk.entry_id, chunk_bytes(view, chunk, exposes),
                          claimed[0][1], None, 0, 0))
        return found
    entry = PyBytes_FromStringAndSize(<const char*>view.c_entry, view.entry_size)
    if exposes and type(view.pin) is LedgerFile:
        entry = broker_metadata(view.pin, view.ledger_id, view.c_entry,
                                view.first_message + view.message_count - 1, exposes) + entry
    for index, count in claimed:
        by_count.setdefault(count, []).append(index)
    for count, indexes in by_count.items():
        found.append((view.ledger_id, view.entry_id, entry, count,
                      None if len(indexes) == view.message_count
                      else ack_set_of(indexes, view.message_count),
                      view.first_message, view.message_count))
    return found


cdef list ack_set_of(list indexes, uint32_t message_count):
    cdef list words = [0] * ((message_count + 63) >> 6)
    cdef uint32_t index
    for index in indexes:
        words[index >> 6] |= <object>(<uint64_t>1 << (index & 63))
    return [<int64_t><uint64_t>word for word in words]
