"""Acknowledges in transactions, and commits and aborts what they acknowledged: between the table of
pending acknowledgements, the tracker and the dispatcher in force. Takes the subscription's mutex.
"""

from libc.stdint cimport uint64_t

from pulsarx._pycore.dispatch.entry_sink cimport Dispatcher
from pulsarx._pycore.dispatch.subscription_core cimport SubscriptionCore
from pulsarx._pycore.dispatch.transacted_acks cimport TransactionAcks

cdef TransactionAcks transaction_join(SubscriptionCore core, object transaction)
"""Find, or make, what is kept of the transaction, which knows of the subscription from now on.
Whatever its `enlist` raises leaves nothing. With no mutex held: that is code of others."""

cdef int transaction_add(SubscriptionCore core, Dispatcher dispatcher, TransactionAcks acks,
                         list runs) except -1
"""Acknowledge messages, (ledger id, first, count) each: all of them, or none.

TransactionConflict: one is acknowledged, or pending. InvalidTxnStatusError: the end of the
transaction has begun. NotAllowedError: the topic has no such message. No mutex is held, and
the caller settles the dispatcher.
"""

cdef int transaction_add_through(SubscriptionCore core, Dispatcher dispatcher,
                                 TransactionAcks acks, uint64_t ledger_id, uint64_t end) except -1
"""Acknowledge everything before a message; like transaction_add."""
