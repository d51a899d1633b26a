"""Reads a ledger file part by part into a buffer that is used again. Beneath range_reader; for one
thread at a time.

For files whose pages the system keeps one by one: there, to read a ledger once from end to end by
its mapping takes a tenth longer than to copy it, for the pages are mapped and unmapped one by one.
And for what is not in memory: the system reads further ahead of who reads than of who has mapped,
a third less time with its usual 128 KiB. Else the mapping takes a sixth less than the copy.
"""

from libc.stdint cimport uint64_t, uint8_t

from pulsarx._core.entry_frame cimport EntryFrame
from pulsarx._core.ledger_read cimport LedgerRead

cdef struct ReadWindow:
    int descriptor                       # owned; -1: there is no window
    uint64_t at                          # where the ledger begins in the file
    uint64_t start                       # of what is in the window, in the ledger
    uint8_t* room                        # owned
    LedgerRead read                      # of the bytes in front of mapped_size

cdef int read_window_open(ReadWindow* self, const char* path, uint64_t at,
                          const LedgerRead* read) noexcept nogil
"""Make a window on a file; STATUS_OK, or there is none. read: of the mapping, for its seed."""

cdef void read_window_close(ReadWindow* self) noexcept nogil
"""May be called twice."""

cdef int read_window_entry(ReadWindow* self, uint64_t offset, uint64_t end, EntryFrame* frame,
                           const uint8_t** entry, uint64_t* next_offset) noexcept nogil
"""Like ledger_read_entry, whose answer counts where this one is not STATUS_OK: then the entry is
larger than the window, or damaged, or the file is not that of the mapping any more. entry holds
until the next call."""
