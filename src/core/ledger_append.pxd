"""Appends to one ledger file. Any thread may call; the ledger's mutexes order them."""

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t

from pulsarx._core.atomic cimport atomic_load_u64
from pulsarx._core.entry_frame cimport EntryFrame, entry_frame_span
from pulsarx._core.ledger_footer cimport LedgerFooter
from pulsarx._core.ledger_state cimport LedgerAppend
from pulsarx._core.published_end cimport PublishedEnd
from pulsarx._core.wait_event cimport WaitEvent

cdef struct LedgerSettings:
    const char* path                  # NULL: a file in memory
    uint8_t uuid[16]
    uint8_t folder_id[16]
    int64_t created_ms
    uint64_t entry_count_max
    uint64_t size_max
    uint64_t first_index              # in its topic of the first message; 0 where not known
    const uint8_t* name_record        # NULL: none
    uint32_t publish_on_flush
    uint32_t zero_space
    uint32_t flushed_later            # by the creator, once it is sealed; not even the header now
    PublishedEnd* published
    WaitEvent* topic_event

cdef int ledger_append_create(LedgerAppend* self, const LedgerSettings* settings) noexcept nogil
"""Create the file (it must not exist) and open the ledger. self stays where it is until
ledger_append_free.

publish_on_flush: the file and its directory entry are on the device when this returns.
NO_SPACE, IO (self.error): nothing is left behind, ledger_append_free need not be called. NO_MEMORY.
"""

cdef int ledger_append_reopen(LedgerAppend* self, const LedgerSettings* settings,
                              const uint8_t* base, uint64_t end) noexcept nogil
"""Open a ledger that its owner left open, to be held back and sealed: it is FENCED, and readers see
nothing of it until ledger_append_switch. base: its mapping, whole up to end, which is behind its
last entry. Of the settings, those of a new file are not looked at. self stays where it is until
ledger_append_free.

CORRUPT, TRUNCATED: an entry is not where it was. IO (self.error), NO_MEMORY. Then the file is as it
was, ledger_append_free need not be called.
"""

cdef int ledger_append_prepare(LedgerAppend* self, uint64_t size) noexcept nogil
"""Prepare space for the next size bytes now, in this thread. NO_SPACE: nothing was changed."""

cdef inline bint ledger_append_is_brief(LedgerAppend* self, uint32_t entry_size) noexcept nogil:
    """Whether an entry is stored without more than one write of its size: there is space for it.
    Others that append may change that."""
    cdef uint64_t span = entry_frame_span(entry_size)
    return atomic_load_u64(&self.end) + span <= atomic_load_u64(&self.prepared_end)

cdef int ledger_append_entry(LedgerAppend* self, EntryFrame* frame, uint8_t* entry,
                             uint64_t* offset) noexcept nogil
"""Store one entry of frame.entry_size bytes, with one write.

The ENTRY_FRAME_SIZE bytes before entry and the 8 behind it are overwritten (frame, padding).
frame in: entry_size, message_count, publish_time_ms, deliver_at_ms, sticky_hash, flags. Out:
entry_id, first_message.
Published at once unless publish_on_flush. Durable after ledger_append_flush, not before.
LEDGER_FULL: a limit is reached, nothing was written (an empty ledger takes any entry). NO_SPACE:
nothing was written.
OUT_OF_RANGE: no message, or not an entry (it starts with 0x0e01 and its checksum). TOO_LARGE: no
ledger takes it.
IO: the write failed, the ledger is FENCED. POISONED, CLOSED.
Source: BookKeeper LedgerStorage.addEntry.
"""

cdef int ledger_append_quietly(LedgerAppend* self, EntryFrame* frame, uint8_t* entry,
                               uint64_t* offset) noexcept nogil
"""Like ledger_append_entry, for a caller that wakes the waiting readers itself: those of other
processes by ledger_append_tell_others, and those of the topic."""

cdef int ledger_append_group(LedgerAppend* self, EntryFrame* frames, uint32_t count, uint8_t* room,
                             uint64_t size, uint64_t* offset) noexcept nogil
"""Store several entries, each as ledger_append_entry does, with one write.

room: of size bytes; in it lies each entry behind ENTRY_FRAME_SIZE bytes and in front of zeros up to
entry_frame_span. offset: of the last one.
LEDGER_FULL: a limit is reached or there is no prepared space for all of them; nothing was written,
and they may be stored one by one. TORN: what lies there cannot be cleared, so recovery may find
some, though they are refused. Any other failure, IO too: none of them is stored.
"""

cdef void ledger_append_tell_others(LedgerAppend* self) noexcept nogil

cdef void ledger_append_follow(LedgerAppend* self, LedgerAppend* full) noexcept nogil
"""The empty ledger self takes what comes behind the last entry of full, which must be fenced. What
is in self becomes durable, and with publish_on_flush visible, only after all of full; when that
cannot be flushed, self is POISONED as well. full stays where it is until ledger_append_forget.
"""

cdef void ledger_append_forget(LedgerAppend* self) noexcept nogil
"""The ledger in front of self is sealed, or given up: it is not looked at any more. Waits for a
flush that is going on."""

cdef void ledger_append_fence(LedgerAppend* self) noexcept nogil
"""Refuse further appends; what is stored stays, and can be flushed and sealed."""

cdef struct LedgerHold:
    LedgerAppend* ledger
    uint64_t end                      # readers see nothing from here on; UINT64_MAX: all
    uint64_t entry_count              # in front of it
    uint64_t message_count

cdef void ledger_append_hold_all(LedgerAppend* self) noexcept nogil
"""Readers see nothing of an empty ledger, as of the one in front of it; nobody else knows it."""

cdef void ledger_append_switch(LedgerHold* holds, uint64_t count,
                               uint64_t* switching) noexcept nogil
"""Let readers of all these ledgers, in the order of their ids, see another part of each, at one
moment: `switching` is odd meanwhile, and what readers see counts for them only if it was even, and
the same, before and after they looked. Another thread does not call it at the same time for the
same `switching`. Wakes the readers."""

cdef void ledger_append_end(LedgerAppend* self) noexcept nogil
"""Another ledger takes the entries from now on: the slot of this fenced one says that it has ended,
as soon as all of it is published, and its readers are woken."""

cdef bint ledger_append_is_final(LedgerAppend* self) noexcept nogil
"""Whether readers will never see more of a fenced ledger than they may now."""

cdef int ledger_append_flush(LedgerAppend* self, uint64_t entry_count,
                             int64_t sleep_ns) noexcept nogil
"""Return when the first entry_count entries are on the device. Leader and followers: one flush
serves all waiting threads.

sleep_ns: how long to wait for another thread's flush before INTERRUPTED is answered; negative: for
ever. INTERRUPTED: that time is over or a signal arrived; nothing is wrong, call again.

A failed flush poisons the ledger; from then on this answers POISONED for what was not durable
before.
"""

cdef int ledger_append_seal(LedgerAppend* self, bint flush, LedgerFooter* footer) noexcept nogil
"""Flush, write index and footer, flush, say so in the header block, flush. Then unused space is
given back. flush False: written in that order, and the device has it when the system pleases.

NO_SPACE: no room for the footer; the ledger is as it was. IO: it is FENCED; seal may be called
again. POISONED, CLOSED.
"""

cdef void ledger_append_close(LedgerAppend* self) noexcept nogil
"""Close the file without sealing or flushing. May be called twice. The slot stays as it is."""

cdef void ledger_append_free(LedgerAppend* self) noexcept nogil
"""Give memory back; after ledger_append_close, when no thread can call any more. index may be taken
out (NULL) before."""
