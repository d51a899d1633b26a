"""An EntrySink that hands out whole entries for a connection, which sends them on as they are.

Permits are messages and come by Flow alone. Any permit lets an entry pass, once and with all of its
messages that are open, so that permits may go below 0. A message is HELD as soon as its entry was
taken: what the other end does with it until it acknowledges it is not known here.
"""

from libc.stdint cimport uint32_t

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink

cdef enum Exposed:
    EXPOSED_BROKER_TIME = 1
    EXPOSED_INDEX = 2


cdef class ConnectionSink(EntrySink):
    # Whether messages that an ack set leaves out take permits: some clients give permits for them,
    # although Pulsar takes none.
    cdef public bint counts_left_out
    # Which fields of BrokerEntryMetadata stand in front of each entry, as a sum of Exposed.
    cdef public uint32_t exposes

    cdef list take_entry(self)
    """Take what is to be sent of the next entry, as (ledger id, entry id, bytes of the entry,
    redelivery count, ack set, ordinal of its first message, messages) for each redelivery count
    among its messages; None: nothing, or no permit. messages 0: it is a chunk.

    ack set: words of 64 bits (signed), a bit for each message that is meant; None: all of them.
    """
