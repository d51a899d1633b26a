# cython: language_level=3
"""Body of connection_sink.pxd."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._core.single_metadata cimport METADATA_BATCH
from pulsarx._pycore.dispatch.crowd_member cimport CrowdMember
from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher, EntrySink
from pulsarx._pycore.message.chunked_message cimport Chunk
from pulsarx._pycore.message.entry_view cimport EntryContext, EntryView


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

    cdef list take_entry(self):
        cdef EntryView view
        cdef list claimed
        cdef list found
        # What others push was counted then.
        cdef bint is_pushed = self.dispatcher.shares or self.dispatcher.keeps_nothing
        while is_pushed or self.permits > 0:
            if self.view is None or self.place.generation != self.dispatcher.generation:
                if not self.fill():
                    return None
            view = self.view
            claimed = self.claim_slice(view)
            if claimed:
                found = deliveries(view, claimed)
                if not is_pushed:
                    self.permits -= <int64_t>len(claimed)
                if view.chunked is not None:
                    self.permits -= <int64_t>len(found) - 1
                elif self.counts_left_out:
                    self.permits -= <int64_t>(len(found) * view.message_count - len(claimed))
                return found
        return None

    def claim_slice(self, EntryView view) -> list:
        """(batch index, redelivery count) of what is left of the current slice; it is used up."""
        cdef list claimed = []
        cdef uint32_t at = 0
        cdef uint32_t index = 0
        cdef int count = 0
        try:
            while self.view is view:
                if view.metadata_flags & METADATA_BATCH:
                    self.locate_next(&at, &index)
                if self.place.filtered:
                    count = self.dispatcher.claim(self, view, index)
                if view.metadata_flags & METADATA_BATCH:
                    self.step(at, index)
                else:
                    self.drop_view()
                if count >= 0:
                    claimed.append((index, count))
        except BaseException:
            for index, count in claimed:
                self.dispatcher.unclaim(self, view, index)
            raise
        return claimed


cdef list deliveries(EntryView view, list claimed):
    cdef bytes entry = PyBytes_FromStringAndSize(<const char*>view.c_entry, view.entry_size)
    cdef dict by_count = {}
    cdef list found = []
    cdef Chunk* chunk
    cdef uint32_t number
    if view.chunked is not None:
        # All its chunks, one behind the other, each for a permit: clients give one for each.
        for number in range(view.chunked.count):
            chunk = &view.chunked.chunks[number]
            found.append((chunk.ledger_id, chunk.entry_id,
                          PyBytes_FromStringAndSize(<const char*>chunk.entry, chunk.entry_size),
                          claimed[0][1], None, 0, 0))
        return found
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
