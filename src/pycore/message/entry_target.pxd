"""Hands the entries of a non-persistent topic from its publishers to its subscriptions.

EntryFanOut is one per topic, shared by its publishers and by the broker, which alone changes the
targets: it puts another list in the place of the one before, so a publisher that took one walks it
without a lock.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._pycore.ledger.ledger_tail cimport LedgerTail


cdef class EntryTarget:
    cdef uint32_t offer(self, bytes entry, bytes plain, const EntryFrame* frame,
                        bint* taken) except? 4294967295
    """Hand an entry to consumers that have room for it now; how many of its messages were dropped.

    plain: its payload, decompressed, where `needs_plain` asked for it; else None. taken: set where
    a consumer got any of it.
    """

    cdef bint needs_plain(self, const EntryFrame* frame) noexcept
    """Whether the messages of the entry go to several consumers, so that it is to be taken
    apart."""


cdef class EntryFanOut:
    cdef readonly LedgerTail tail        # what consumers of the topic wait on
    cdef list targets                    # of EntryTarget; never changed, only replaced
    cdef readonly uint64_t message_count # published, and bytes of their entries
    cdef readonly uint64_t size
