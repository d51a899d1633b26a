"""A ledger file mapped to be read. An object that points into the mapping holds the LedgerFile.
Needs the GIL unless it says nogil."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from pulsarx._core.ledger_footer cimport LedgerFooter, LedgerHeader
from pulsarx._core.ledger_index cimport LedgerIndex
from pulsarx._core.ledger_read cimport LedgerGap, LedgerRead

cdef class AppendIndex:
    """Owns the index of a ledger that is appended to: it outlives the writer as long as a map uses
    it."""
    cdef LedgerIndex* c_index

cdef class LedgerFile:
    cdef LedgerRead c_read
    cdef LedgerHeader c_header
    cdef LedgerFooter c_footer           # once c_footer_known
    cdef LedgerIndex c_sealed_index      # over the mapping, once c_footer_known
    cdef const LedgerIndex* c_index      # of a sealed file, or of the writer; NULL: none
    cdef bint c_footer_known
    cdef readonly bint unborn            # created and never written
    cdef readonly bint headless          # the header block is gone; the uuid is the one expected
    cdef bint c_is_read                  # into memory, and not mapped
    cdef bint c_has_large_folios         # so mapping it costs little
    cdef uint64_t c_file_size            # when it was mapped
    cdef readonly bint growing           # mapped past its end: a writer's map
    cdef readonly uint64_t ledger_id
    cdef readonly object path            # None: in memory
    cdef readonly bint is_shown          # path is what errors call it, and not where it lies
    cdef readonly uint64_t at            # where it begins in the file at path; 0 unless merged
    cdef AppendIndex append_index        # keeps c_index of a file that is being written
    # The index in its topic of the first message; -1: not known.
    cdef public int64_t first_index
    # Of a compacted file, by the id of the topic's ledger: that of the first message there.
    cdef public dict first_indexes
    cdef int64_t c_first_index(self, uint64_t ledger_id) except -2
    """The index of the first message of a ledger, whose entries the file holds; -1: not known."""

    cdef bint says_time(self, int64_t time_ms) noexcept
    """Whether c_broker_time can return it."""

    cdef int64_t c_broker_time(self, const uint8_t* entry) noexcept
    """When the broker stored an entry of the file, in ms since 1970; 0: not said."""

    cdef int c_footer_load(self) except -1
    cdef uint64_t c_size_now(self) except? 0
    """How many bytes the file has by now."""

    cdef int c_find(self, int kind, uint64_t value, uint64_t end, uint64_t* offset,
                    LedgerGap* gap) except -1
    """ledger_read_find with the file's index; offset is end when nothing is there."""

    cdef int c_raise(self, int status, object what) except -1

cdef LedgerFile ledger_file_map(int fd, uint64_t size, uint64_t file_size, uint64_t ledger_id,
                                object path, bytes uuid, bytes folder_id, uint64_t at = *,
                                bint is_read = *)
"""Map size bytes from at (on a page), which may reach past the end of the file; is_read: read them
instead. The descriptor stays the caller's. uuid, folder_id: what the file must be; None: whatever
it is."""
