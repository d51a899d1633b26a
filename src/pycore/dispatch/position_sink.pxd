"""An EntrySink that hands out where messages are, for a consumer in another process that reads them
there itself.

Permits are messages and come by Flow alone. A message is HELD as soon as it was taken: what the
other end does with it until it acknowledges it, or gives it back, is not known here. The frames are
those of pulsarx._pycore.ground.owner_link.
"""

from libc.stdint cimport uint8_t, uint32_t, uint64_t

from pulsarx._pycore.dispatch.entry_sink cimport ConsumerEvents, EntrySink
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class SinkEvents(ConsumerEvents):
    """Keeps what the consumer is told until its connection asks."""
    cdef public object wake              # has the connection ask soon; None: it asks anyway


cdef class PositionSink(EntrySink):
    cdef uint64_t consumer_id            # as the other end knows it
    cdef uint64_t flown                  # permits that came in all
    cdef uint64_t rewinds                # rewinds that were asked for, and done
    cdef uint64_t recorded               # acknowledgements, since it came
    # what the other end knows
    cdef uint64_t told_rewinds
    cdef uint64_t told_recorded
    cdef uint64_t told_ttl_ms
    cdef uint64_t told_generation
    cdef uint64_t resets_told
    cdef uint64_t resets_done            # by the other end, as it said
    # the frames being put together
    cdef uint8_t* frames                 # owned
    cdef size_t size
    cdef size_t capacity

    cdef bytes take_positions(self, uint32_t frames_max)
    """The frames that there are to send, about so many at most; empty: none."""

    cdef int take_rewind(self, uint64_t ledger_id, uint64_t message, uint64_t unseen_ledger,
                         uint64_t unseen) except -1
    """See Dispatcher.rewind. The other end hears when it is done."""

    cdef int put(self, int kind, uint64_t first, uint64_t second, uint64_t third,
                 uint64_t fourth) except -1
    cdef int put_state(self) except -1
    cdef int put_recorded(self) except -1
    cdef int put_slice(self) except -1
    cdef int put_run(self, EntryView view, uint64_t index, uint64_t count,
                     uint64_t redelivery_count) except -1
