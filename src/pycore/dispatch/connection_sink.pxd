"""An EntrySink that hands out whole entries for a connection, which sends them on as they are.

Permits are messages and come by Flow alone. Any permit lets an entry pass, once and with all of its
messages that are open, so that permits may go below 0. A message is HELD as soon as its entry was
taken: what the other end does with it until it acknowledges it is not known here.
"""

from libc.stdint cimport uint32_t

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.message.entry_view cimport EntryView
from pulsarx._pycore.wire.command_output cimport CommandOutput

cdef enum Exposed:
    EXPOSED_BROKER_TIME = 1
    EXPOSED_INDEX = 2


cdef struct ClaimedMessage:
    uint32_t index                       # in its batch
    uint32_t redelivery_count


cdef class ConnectionSink(EntrySink):
    # of the slice that was claimed last; owned
    cdef ClaimedMessage* claimed
    cdef uint32_t claimed_count
    cdef uint32_t claimed_capacity
    # Whether messages that an ack set leaves out take permits: some clients give permits for them,
    # although Pulsar takes none.
    cdef public bint counts_left_out
    # Which fields of BrokerEntryMetadata stand in front of each entry, as a sum of Exposed.
    cdef public uint32_t exposes

    cdef EntryView claim_next(self, CommandOutput output)
    """Claim what is to be sent of the next entry; None: nothing, or no permit. output: has room for
    a MESSAGE of it, before anything is claimed; None: it is not asked."""

    cdef bint is_whole(self, EntryView view) noexcept
    """Whether what was claimed is sent as the entry alone, with one redelivery count."""

    cdef int count_sent(self, EntryView view, Py_ssize_t deliveries) except -1
    """Take the permits of what was claimed, which is sent as so many commands."""

    cdef list deliveries(self, EntryView view)
    """Return what was claimed, as take_entry has it."""

    cdef bint is_pushed(self) noexcept
    cdef int claim_slice(self, EntryView view) except -1
    cdef int unclaim_slice(self, EntryView view) except -1
    cdef int grow_claimed(self) except -1

    cdef list take_entry(self)
    """Take what is to be sent of the next entry, as (ledger id, entry id, bytes of the entry,
    redelivery count, ack set, ordinal of its first message, messages) for each redelivery count
    among its messages; None: nothing, or no permit. messages 0: it is a chunk.

    ack set: words of 64 bits (signed), a bit for each message that is meant; None: all of them.
    """
