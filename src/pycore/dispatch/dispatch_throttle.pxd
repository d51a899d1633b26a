"""Limits how fast a subscription or reader is given messages: by the limit of its topic, which it
shares with the others, and by its own.

A dispatcher asks before it delivers an entry, and says what it delivered. Who is refused waits for
the topic as for a message: when a period begins in which something may pass, all that wait for the
topic look again. With the subscription's mutex held unless a method says otherwise.
"""

from libc.stdint cimport int64_t, uint32_t, uint64_t

from pulsarx._pycore.ground.clock_core cimport ClockCore, Timer
from pulsarx._pycore.ground.rate_limit cimport RateLimit
from pulsarx._pycore.ledger.ledger_reader cimport LedgerReader
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail
from pulsarx._pycore.message.entry_view cimport EntryView


cdef class PeriodBegins:
    """The callback of a clock for when messages may pass the limit again. Keeps nothing alive."""
    cdef object throttle                 # weak reference


cdef class DispatchThrottle:
    cdef ClockCore clock
    cdef LedgerTail tail
    cdef RateLimit of_topic              # None: there is none
    cdef RateLimit of_subscription       # None: there is none
    cdef bint counts_entries             # and not the messages in them
    cdef bint spares_caught_up           # who has no backlog is not limited
    cdef bint is_spared                  # what passes now is not counted
    # entries of the ledgers between the one that is read and the one that grows, as of `changes`
    cdef uint64_t between
    cdef uint64_t between_of             # the ledger that is read
    cdef uint64_t between_changes
    cdef Timer timer                     # None: nobody waits
    cdef PeriodBegins on_period
    # how often it was refused, and why
    cdef uint64_t by_topic_messages
    cdef uint64_t by_topic_bytes
    cdef uint64_t by_subscription_messages
    cdef uint64_t by_subscription_bytes
    cdef object __weakref__

    cdef bint is_lifted(self) noexcept
    """Whether no limit is left: who asks may forget it."""

    cdef bint lets_pass(self, LedgerReader reader) except -1
    """Whether an entry may be delivered now; else who waits is woken when one may be. reader: of
    the dispatcher; None: it has none."""

    cdef int take(self, EntryView view, uint32_t messages, uint32_t entries) except -1
    """So many messages of an entry are delivered; entries: 0 where its first ones were before."""

    cdef int rest(self) except -1
    """Wake nobody for now."""

    cdef bint is_caught_up(self, LedgerReader reader) except -1
    cdef int wake_at(self, int64_t due_ms) except -1
