"""The shared file of slots in which the ends of open ledgers are published. Any thread may call;
needs the GIL."""

from libc.stdint cimport uint32_t, uint64_t

from pulsarx._core.published_end cimport PublishedEnd

cdef class PublishedEnds:
    cdef PublishedEnd* c_slots        # the mapping; slot 0 is the header
    cdef uint64_t c_mapped            # bytes of addresses
    cdef readonly object path         # None: in memory
    cdef readonly bint writable
    cdef int c_fd                     # to grow, and to learn the size
    cdef uint64_t c_count             # slots the file has room for
    cdef uint64_t c_epoch
    cdef list free                    # numbers of free slots, owner only
    cdef dict left_slots              # slots that dead owners left, by ledger id; owner only
    cdef uint64_t c_next              # never used from here on
    cdef int c_size_check(self, uint64_t slot) except -1
    cdef uint64_t* c_switching(self) noexcept
    """Odd while several ends change at once; see ledger_append_switch."""

    cdef PublishedEnd* c_slot(self, uint64_t slot) except NULL
    cdef int c_start(self, uint64_t slot, uint64_t ledger_id) except -1
