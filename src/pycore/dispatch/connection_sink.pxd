"""An EntrySink that hands out whole entries for a connection, which sends them on as they are.

Permits are messages and come by Flow alone. All messages of an entry that is sent count, those too
that its ack set leaves out: clients pass over them and give permits for them. A message is HELD as
soon as its entry was taken: what the other end does with it until it acknowledges it is not known
here.
"""

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink


cdef class ConnectionSink(EntrySink):
    cdef list take_entry(self)
    """What there is to send of the next entry, as (ledger id, entry id, bytes of the entry,
    redelivery count, ack set, ordinal of its first message, messages) for each redelivery count
    among its messages; None: nothing, or no permit. messages 0: it is a chunk.

    ack set: words of 64 bits (signed), a bit for each message that is meant; None: all of them.
    """
