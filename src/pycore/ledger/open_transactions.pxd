"""The messages of open transactions in one topic: whose they are. From the first of them on readers
see nothing of the topic; what ends a transaction lets them see on, in all its topics at one moment.

For the publishers of the topic and the coordinator of transactions. The order of the locks: a
producer's mutex, this one, those of a ledger.
"""

from libc.stdint cimport int64_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.ground.latch cimport Latch
from pulsarx._pycore.ground.mutex cimport OwnedMutex
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.ledger.ledger_writer cimport LedgerWriter

cdef struct MessageRange:
    uint64_t ledger_id
    uint64_t first
    uint64_t end


cdef class TransactionCore:
    """A transaction as publishers and subscriptions know it. The coordinator changes it."""
    cdef public bint is_open             # what is sent and acknowledged may join it
    cdef public bint is_finishing        # what was taken before that ended still does
    cdef public bint is_ended            # nor does what was sent before
    cdef public object failure           # of a send or an acknowledgement in it; None: none failed
    cdef readonly dict topics            # {OpenTransactions: True}: where it has messages
    # {producer: (sequence id published before, published last in it)}: that have sent in it
    cdef readonly dict senders
    # {producer: count}: sends that were taken, and are neither refused nor in its open batch yet
    cdef readonly dict under_way
    cdef Latch quiet                     # none is under way, or it has ended; None: nobody waits

    cpdef object fail(self, object error)
    """A send or an acknowledgement in it failed: it cannot be committed any more."""

    cdef int require_taking(self) except -1
    """InvalidTxnStatusError: it has ended, or is about to and waits for no sends."""

    cdef int refuse(self) except -1

    cdef int begin_send(self, object producer) except -1
    """Its end waits for this send. InvalidTxnStatusError: that has begun."""

    cdef int begin_later(self, object producer) except -1
    """Like begin_send, for what goes on behind the call that took it."""

    cdef int end_send(self, object producer) except -1

    cdef int entered(self, object sender, int64_t published) except -1
    """Have what a producer sends belong to it from now on. published: its last sequence id."""

    cdef int left(self, object sender, int64_t published) except -1
    """And does not any more."""

    cdef int64_t before(self, object sender, int64_t published) except? -1
    """The last sequence id of a producer without what it has sent here."""


cdef TransactionCore transaction_of(object given)
"""The transaction that a caller has given. TypeError: it is none."""


cdef class TransactionPart:
    """The messages of one transaction in one topic."""
    cdef LedgerWriter first_writer       # None: there is no message yet
    cdef uint64_t first_offset
    cdef uint64_t first_entry
    cdef uint64_t first_message
    cdef MessageRange* ranges            # owned, in order
    cdef size_t count
    cdef size_t capacity
    cdef int reserve(self) except -1
    """Have room for one range more."""


cdef class OpenTransactions:
    cdef OwnedMutex mutex
    cdef readonly LedgerTail tail
    # Transactions with messages here that have ended, since the topic was opened.
    cdef readonly uint64_t committed_count
    cdef readonly uint64_t aborted_count
    cdef dict parts                      # {TransactionCore: TransactionPart}, oldest first
    cdef object __weakref__

    cdef list without(self, TransactionCore transaction, bint committed)

    cdef int enter(self, TransactionCore transaction) except -1
    """Take the mutex, to append one entry of the transaction and note it. InvalidTxnStatusError,
    MemoryError: it is not taken."""

    cdef void note(self, TransactionCore transaction, LedgerWriter writer, uint64_t offset,
                   const EntryFrame* frame) noexcept
    """The entry is appended there."""

    cdef int leave(self, TransactionCore transaction) except -1
