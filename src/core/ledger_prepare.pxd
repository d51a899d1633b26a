"""Allocates space of ledger files ahead of the writes, by one native thread a process. For
ledger_append only.

The thread starts with the first request, takes no signals and sleeps while nothing is due. A
writer that outruns it allocates what it needs itself. Where a file system overwrites in place, the
thread writes the space with zeros: the page cache has it in large folios then, so that entries are
written and read at twice the speed. The device may get the zeros before the entries, so no more
than three eighths of a ledger are ahead (or 128 KiB), unless entries come so fast that they outrun
the thread. Durable ledgers have zeros everywhere, and they are flushed, so that a later flush of an
entry changes no metadata of the file system. Ledgers in memory have no zeros.
"""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.atomic cimport atomic_load_u64, pthread_mutex_t
from pulsarx._core.ledger_state cimport LedgerAppend
from pulsarx._core.wait_event cimport WaitEvent

cdef struct LedgerPreparer:
    LedgerAppend* ledger
    LedgerPreparer* next           # in the queue
    pthread_mutex_t mutex          # held to change prepared_end
    WaitEvent progress             # prepared_end moved, or mutex was released
    uint64_t step                  # the next one; guarded by mutex
    uint64_t ask_at                # atomic: an end beyond this asks the thread
    uint32_t queued                # guarded by the queue's mutex
    uint32_t stopping              # atomic: give up between two pieces
    bint zeros                     # the thread writes the space that it prepares

cdef int ledger_prepare_start(LedgerAppend* self) noexcept nogil
"""Make self.preparer and the first step of the new file, header block included but not written.
errno."""

cdef int ledger_prepare_nothing(LedgerAppend* self) noexcept nogil
"""Make self.preparer of a file to which nothing is added. errno."""

cdef int ledger_prepare_room(LedgerAppend* self, uint64_t end) noexcept nogil
"""Have space up to end, or an errno with nothing changed. Called with append_mutex held."""

cdef void ledger_prepare_ask(LedgerAppend* self) noexcept nogil
"""Ask the thread for the next step."""

cdef inline bint ledger_prepare_due(LedgerAppend* self, uint64_t end) noexcept nogil:
    return end > atomic_load_u64(&(<LedgerPreparer*>self.preparer).ask_at)

cdef void ledger_prepare_stop(LedgerAppend* self) noexcept nogil
"""From here on the thread does not touch this ledger. May be called twice."""

cdef void ledger_prepare_free(LedgerAppend* self) noexcept nogil
