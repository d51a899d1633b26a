"""LedgerWriter: creates one ledger file, appends to it, flushes and seals it. Any thread may
call."""

from libc.stdint cimport uint64_t

from pulsarx._core.ledger_footer cimport LedgerFooter
from pulsarx._core.ledger_state cimport LedgerAppend
from pulsarx._pycore.ledger.ledger_file cimport AppendIndex, LedgerFile
from pulsarx._pycore.ledger.published_ends cimport PublishedEnds

cdef class LedgerWriter:
    cdef LedgerAppend c_ledger           # for the core's functions; check c_check first
    cdef readonly uint64_t ledger_id
    cdef readonly object path            # None: in memory
    cdef readonly PublishedEnds slots    # keeps the slot mapped
    cdef readonly uint64_t slot
    cdef LedgerFile file                 # the one mapping, made by map()
    cdef readonly LedgerWriter before    # keeps c_ledger.before; None: it follows none
    cdef AppendIndex append_index        # owns c_ledger.index
    cdef LedgerFooter c_footer           # once c_sealed
    cdef bint c_sealed
    cdef bint c_born                     # created and not yet freed
    cdef bint c_forked                   # this is a forked child's copy: never to be used
    cdef int follow(self, LedgerWriter full) except -1
    """Become what takes the entries behind the last one of a fenced ledger."""

    cdef int c_begin(self) except -1
    cdef int c_raise(self, int status, object what) except -1
