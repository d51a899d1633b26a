"""The dispatcher of a consumer whose subscription is in another process, which owns the folder.

The owner says which messages are this consumer's (`arrive`); their bytes are read here, from the
mapped ledger. A message that arrived is DUE until the receiver has room, then QUEUED and HELD, as
those of a Shared subscription are in process: acknowledgement timeouts, dead letters, chunks and
keys of encryption are this process's business. What becomes of a message goes to the owner:

here                                    there
an acknowledgement                      the same
a negative one, an overdue one          the same, with its delay, which runs there
room in the queue                       permits
everything again                        held ones are counted, those that nobody saw are not
too old to be handed out                acknowledged, and counted as that

How old messages may become is told by the owner, after each change too.

On Exclusive and Failover nothing comes again alone: the delay runs here, and when it is over the
owner is asked to rewind, and told what nobody saw. What arrives until it has done that is void.
On Key_Shared what nobody saw goes back with each negative acknowledgement, as later messages of its
key may be among it; and so does what arrives until the owner has heard of it.

What is acknowledged is kept until the owner has recorded it, and sent once more to the next owner.
A message may be on its way here meanwhile: it is not handed out (`sent_acks_cover`). The owner says
what it has recorded before it sends messages from another place of the subscription, so what a seek
brings back is handed out.

`reset`: what arrived before is void, for the subscription was moved, or another consumer reads on,
or it was rewound. With the core's mutex held unless a method says otherwise.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._pycore.dispatch.entry_sink cimport EntrySink
from pulsarx._pycore.dispatch.pending_dispatcher cimport PendingDispatcher
from pulsarx._pycore.dispatch.sent_acks cimport SentAcks
from pulsarx._pycore.ground.owner_link cimport OwnerLink
from pulsarx._pycore.ledger.compacted_reader cimport CompactedReader
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.open_transactions cimport TransactionCore


cdef class GuestDispatcher(PendingDispatcher):
    cdef OwnerLink link
    cdef uint64_t consumer_id            # as the owner knows it
    cdef LedgerReader plain              # of the topic's ledgers
    cdef CompactedReader compacted       # of what compaction left; None: it is not asked for
    cdef object settle_there             # returns when the owner has done what it was told
    # acknowledges in a transaction of a number there, (number, runs) or (number, None, ledger id,
    # end); a weak method. With no mutex held
    cdef public object transact_there
    cdef bint keeps_key_order            # Key_Shared
    cdef bint attached                   # at the owner; else it is not told anything
    cdef bint rewinds                    # Exclusive and Failover: nothing comes again alone
    cdef EntrySink receiver              # None: it left, or never came
    cdef bint asking                     # without a queue: for a message, now
    cdef int64_t granted                 # messages the owner may still send
    cdef uint64_t flown                  # permits that were given to the owner in all
    cdef uint64_t flown_asked            # of them, those that it had when it was asked
    cdef uint64_t rewinds_asked          # rewinds the owner was asked for
    cdef uint64_t rewinds_done           # of them, those it has told of
    cdef uint64_t resets_done
    cdef SentAcks sent                   # that the owner has not recorded yet
    cdef set kept                        # (ledger id, ordinal) held since the owner before; or None
    # the first message that did not arrive yet, of those in order; ledger 0: none did
    cdef uint64_t arrived_ledger
    cdef uint64_t arrived_end
    cdef list coming                     # (ledger id, ordinal) of chunks whose last one comes next
    cdef dict pieces                     # (ledger id, ordinal) of a last chunk -> such a list
    cdef object __weakref__              # of its connection, which keeps no consumer

    cdef object begin_in(self, TransactionCore transaction)
    cdef int dispatch(self) except -1
    cdef int step_to(self, uint64_t ledger_id, uint64_t message) except -1
    cdef int give_permits(self) except -1
    cdef int return_unseen(self) except -1
    """Return to the owner what arrived and was not handed out."""

    cdef int tell_ack(self, int kind, uint64_t ledger_id, uint64_t first,
                      uint64_t count) except -1
    cdef int go_there(self, uint64_t ledger_id, uint64_t message, int64_t delay_ms) except -1
    cdef int rewind_there(self, uint64_t ledger_id, uint64_t message) except -1
    cdef int tell_refused(self, uint64_t ledger_id, uint64_t message) except -1
