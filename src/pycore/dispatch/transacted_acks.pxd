"""Keeps which messages of a subscription are acknowledged in transactions that have not ended.

One for each subscription with such acknowledgements; it outlives consumers and dispatchers. What
is pending here is unacknowledged for the tracker and taken for dispatchers. A message that the
tracker has as acknowledged is pending no more, whether it still stands here or not: a plain
acknowledgement need not look. Everything with the subscription's mutex held.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.message_runs cimport MessageRuns
from pulsarx._core.pending_acks cimport PendingAcks, pending_acks_find
from pulsarx._pycore.cursor.ack_tracker cimport AckTracker


cdef class TransactionAcks:
    """The acknowledgements of one transaction."""
    cdef readonly object transaction
    cdef uint32_t slot                   # the tag of its messages
    cdef bint is_enlisted                # the transaction knows of the subscription
    cdef bint is_sealed                  # its end has begun: no acknowledgement is added
    cdef uint64_t count                  # messages that are acknowledged one by one
    cdef uint64_t first_ledger           # none of them lies before this one
    cdef uint64_t first_message
    cdef uint64_t through_ledger         # everything before a message is, too; 0: no such one
    cdef uint64_t through_end


cdef class TransactedAcks:
    cdef PendingAcks c_messages          # acknowledged one by one, by any transaction
    cdef dict by_id                      # id of the transaction -> TransactionAcks
    cdef list slots                      # TransactionAcks, None where a slot is free
    cdef TransactionAcks through         # which acknowledges cumulatively; None: none does

    cdef inline bint has(self, uint64_t ledger_id, uint64_t message) noexcept:
        """Whether the message is pending, provided that it is not acknowledged."""
        if self.through is not None and (
                ledger_id < self.through.through_ledger
                or (ledger_id == self.through.through_ledger
                    and message < self.through.through_end)):
            return True
        return self.c_messages.count != 0 and (
            pending_acks_find(&self.c_messages, ledger_id, message) != NULL)

    cdef uint64_t next_untaken(self, AckTracker tracker, uint64_t ledger_id, uint64_t message,
                               uint64_t end) noexcept
    """The first message of [message, end) that is neither acknowledged nor pending, else end."""

    cdef TransactionAcks find(self, object transaction)
    cdef TransactionAcks join(self, object transaction)
    """Find what is kept of a transaction, or begin to keep it."""

    cdef tuple add(self, TransactionAcks mine, AckTracker tracker, list runs)
    """Note messages, (ledger id, first, count) each, as pending: all of them, or none. The tracker
    has these ledgers. None: it is done; else (ledger id, message, transaction) of the first that
    collides, the transaction None where it is acknowledged. MemoryError: nothing changed."""

    cdef tuple add_through(self, TransactionAcks mine, AckTracker tracker, uint64_t ledger_id,
                           uint64_t end)
    """Note everything before a message as pending; like add."""

    cdef int release(self, TransactionAcks mine, uint64_t ledger_id, uint64_t message) noexcept
    """A message of a transaction is pending no more."""

    cdef int runs_of(self, TransactionAcks mine, AckTracker tracker, MessageRuns* runs) except -1
    """Append the messages that a transaction acknowledged one by one and that are still pending."""

    cdef bint has_through(self, TransactionAcks mine, AckTracker tracker) noexcept
    """Whether a transaction has acknowledged cumulatively, and that is still pending."""

    cdef int forget(self, TransactionAcks mine) noexcept
    """Nothing of a transaction is pending any more. Asking for its messages again takes as long as
    the part of the topic that it reached over is long."""

    cdef int drop_acknowledged(self, AckTracker tracker) noexcept
    """Forget what is acknowledged: it may be unacknowledged again soon."""
